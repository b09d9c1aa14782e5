"""What gold of earlier audits says of the documents that the next one can select.

Gold is predicted by an app that imports this one (analytics): it hands its predictor over when it is loaded, and an
audit that learns asks it. Of an item the predictor may use only what audits brought in other folds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from judging.models import Campaign, Item
from sampling.measures.families import FloatArray, Measure
from sampling.models import Audit, AuditTier, GoldFit
from sampling.services.auditable import AuditRefused
from sampling.strategies import FEWEST_GOLD


@dataclass(frozen=True, eq=False)
class GoldSpread:
    """The variance that complete audits of the gold tier predict of each item's gold gain, without its own fold.

    `n_audits` they were, and `n_expected` items they were to select: known before any of them was drawn.
    """

    variance: FloatArray
    n_audits: int
    n_expected: float


Predictor = Callable[[Campaign, Sequence[Item], Measure[Any]], GoldSpread | None]
_predictors: list[Predictor] = []


def predict_gold_with(predictor: Predictor) -> None:
    """Let this function say what gold of earlier audits leaves in doubt."""
    if predictor not in _predictors:
        _predictors.append(predictor)


def gold_spread(campaign: Campaign, items: Sequence[Item], measure: Measure[Any]) -> GoldSpread | None:
    """Return what the next audit can learn from of gains in the measure; None while there is too little gold.

    How much there is, is how much was to be selected: what was selected depends on every fold.
    """
    if not _predictors:
        raise RuntimeError("no app predicts gold")
    found = _predictors[0](campaign, items, measure)
    return found if found is not None and has_enough_gold(found.n_expected) else None


def has_enough_gold(n_expected: float) -> bool:
    """Return whether an audit can learn from audits that were to select so many items."""
    return round(n_expected) >= FEWEST_GOLD


def has_learned(campaign: Campaign, tier: str) -> bool:
    """Return whether probabilities of an audit of the tier say what gold of other folds brought."""
    return campaign.audits.filter(tier=tier, learned_from__gte=1).exists()


def fixed_gold_fit(campaign: Campaign) -> str | None:
    """Return what predictions learn from since the first audit that learned; None before it."""
    learned = Audit.objects.filter(campaign=campaign, tier=AuditTier.GOLD, learned_from__gte=1)
    return learned.order_by("sequence").values_list("gold_fit", flat=True).first()


def chosen_gold_fit(campaign: Campaign, asked: str | None) -> str:
    """Return what is asked for, else what stands; AuditRefused where something else stands."""
    fixed = fixed_gold_fit(campaign)
    if asked is not None and asked not in GoldFit.values:
        raise AuditRefused(f"gold_fit must be one of {GoldFit.values}, got {asked!r}")
    if fixed is not None and asked not in (None, fixed):
        raise AuditRefused(
            f"the first audit that learned was made with {fixed!r}: later ones keep it, got {asked!r}"
        )
    return fixed or asked or GoldFit.REFIT
