"""What the judgments of an item say together: the bronze score whose classes the audit corrects."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np

from analytics.aggregation.dawid_skene import Aggregation, dawid_skene, majority, measured, one_coin, spammers
from analytics.estimation.confusion import assessor_counts, shrink
from analytics.estimation.estimators import Refusal
from analytics.estimation.labels import vote_classes
from analytics.frames import CampaignArrays, Floats, Ints
from judging.models import Campaign

STEPS = 12  # classes a grade
Score = Campaign.BronzeScore
MODELS: dict[str, Callable[..., Aggregation | Refusal]] = {
    Score.DAWID_SKENE: dawid_skene,
    Score.ONE_COIN: one_coin,
    Score.SPAMMERS: spammers,
}
# Classes, matrices and forecasts of one recomputation ask for the same fit.
_fitted: WeakKeyDictionary[CampaignArrays, dict[str, Aggregation | Refusal]] = WeakKeyDictionary()


def bronze_classes(arrays: CampaignArrays, campaign: Campaign) -> Ints:
    """Return the class of every judged item, ordered: better scores have higher numbers.

    Any score serves: it decides how narrow the corrected interval is, never whether it is right. It may use judgments
    and gold checks, but never the audit, whose items it would otherwise know.
    """
    score = used_score(arrays, campaign)
    if score == Score.ONE_LABEL:
        return _first_labels(arrays) * STEPS
    if score == Score.MACHINE:
        said = arrays.frame["score"].to_numpy()[arrays.judged]
        return np.where(np.isnan(said), -1, np.rint(np.nan_to_num(said) * STEPS)).astype(np.int64)
    fitted = _fit(arrays, score) if score != Score.VOTE_SHARE else None
    if not isinstance(fitted, Aggregation):
        return vote_classes(arrays.label_item, arrays.label_grade, arrays.judged.size, steps=STEPS)
    expected = fitted.posterior[: arrays.judged.size] @ np.arange(arrays.n_grades)
    return np.rint(expected * STEPS).astype(np.int64)


def used_score(arrays: CampaignArrays, campaign: Campaign) -> str:
    """Return the campaign's choice, or the mean of grades while the choice cannot be had.

    Nobody gave scores, or a model has too little to learn from: then every number says which score it used.
    """
    score = campaign.bronze_score
    if score == Score.MACHINE and "score" not in arrays.frame.columns:
        return Score.VOTE_SHARE
    if score in (*MODELS, Score.EMPIRICAL_BAYES) and not isinstance(_fit(arrays, score), Aggregation):
        return Score.VOTE_SHARE
    return score


def joined_grades(arrays: CampaignArrays, campaign: Campaign) -> dict[str, tuple[str, Floats]]:
    """Return, by ways of joining the grades of an item, its words and shares[judged, grade]; a tie is shared."""
    everything = np.arange(arrays.judged.size)
    ways = {"majority": ("majority of an item's grades", _fit(arrays, "majority"))}
    score = used_score(arrays, campaign)
    if score in (*MODELS, Score.EMPIRICAL_BAYES):
        ways[score] = (Score(score).label, _fit(arrays, score))
    return {
        name: (words, found.decided(everything))
        for name, (words, found) in ways.items()
        if isinstance(found, Aggregation)
    }


def _first_labels(arrays: CampaignArrays) -> Ints:
    """Return the grade given first to each item; who comes first is chance."""
    first = np.full(arrays.judged.size, arrays.label_item.size, dtype=np.int64)
    np.minimum.at(first, arrays.label_item, np.arange(arrays.label_item.size))
    return arrays.label_grade[first].astype(np.int64)


def _fit(arrays: CampaignArrays, way: str) -> Aggregation | Refusal:
    """Return the fit, made once; items beyond the judged are gold checks, each answer one of its own."""
    fits = _fitted.setdefault(arrays, {})
    if way not in fits:
        fits[way] = _fit_anew(arrays, way)
    return fits[way]


def _fit_anew(arrays: CampaignArrays, way: str) -> Aggregation | Refusal:
    n_judged, n_checks = arrays.judged.size, arrays.check_true.size
    sizes = {"n_assessors": len(arrays.assessors), "n_grades": arrays.n_grades}
    labels = (arrays.label_item, arrays.label_assessor, arrays.label_grade)
    if not n_judged:
        return Refusal("nobody has judged yet", 1)
    if way == "majority":
        return majority(*labels, n_items=n_judged, **sizes)
    if way == Score.EMPIRICAL_BAYES:
        answers = (arrays.check_assessor, arrays.check_true, arrays.check_given)
        shrunk = (
            shrink(assessor_counts(*answers, **sizes)) if n_checks else Refusal("there are no gold checks", 1)
        )
        if isinstance(shrunk, Refusal):
            return shrunk
        return measured(*labels, n_items=n_judged, confusion=shrunk.matrices)
    checks = np.arange(n_judged, n_judged + n_checks)
    given = (checks, arrays.check_assessor, arrays.check_given)
    return MODELS[way](
        *(np.concatenate([own, check]) for own, check in zip(labels, given, strict=True)),
        n_items=n_judged + n_checks,
        known_item=checks,
        known_grade=arrays.check_true,
        **sizes,
    )
