"""What a plan is asked: which run or pair, in which measure, for which claim, at which prices; checked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.estimation.claims import CLAIMS, LIKE_THESE, Claim, Family, claim_of
from analytics.services.families import asked_family, default_claim
from analytics.services.recomputation import measures_of
from judging.models import Campaign
from judging.refusal import Refused
from sampling.frames import newest_draw
from sampling.measures.registry import sums_among, usual_spelling

EXAMPLE_COSTS = (1.0, 10.0)  # of a judgment and of a gold label, where the campaign has none
USUAL_POWER = 0.8
LEAST_POWER, MOST_POWER = 0.5, 0.999
LEAST, MOST = 1e-9, 1e9  # of a difference or a price


class TermsRefused(Refused):
    """A field of the question that no plan can be made for."""

    title = "This plan cannot be made"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason if reason.startswith(field) else f"{field}: {reason}")
        self.field, self.reason = field, reason


@dataclass(frozen=True)
class Terms:
    """What is to be known, and what it may cost. `difference` is the smallest that matters; None: none is named.

    `family` is that among whose comparisons the p of a pair is adjusted; None: of a single comparison.
    """

    measure: str
    run: str
    against: str = ""
    cost_judgment: float = EXAMPLE_COSTS[0]
    cost_gold: float = EXAMPLE_COSTS[1]
    difference: float | None = None
    power: float = USUAL_POWER
    money: float | None = None
    claim: Claim = LIKE_THESE
    family: Family | None = None

    @property
    def subject(self) -> str:
        """Return what a plan is of: a difference, or the value of a run."""
        return "difference" if self.against else "value"


def terms_of(
    campaign: Campaign,
    *,
    measure: str = "",
    run: str = "",
    against: str = "",
    claim: str = "",
    family: str = "",
    cost_judgment: float | None = None,
    cost_gold: float | None = None,
    difference: float | None = None,
    power: float = USUAL_POWER,
    money: float | None = None,
    measures: Sequence[str] = (),
) -> Terms:
    """Return the question with what is left out filled in; TermsRefused with the field that is wrong.

    `measures` are those of the campaign, if they are known. Without a run it is the usual pair.
    """
    known = sums_among(list(measures or measures_of(campaign)))
    asked = usual_spelling(measure)
    if measure and asked not in known:
        raise TermsRefused("measure", f"a plan is made for {', '.join(known)}; got {measure!r}")
    for name, number in (
        ("cost_judgment", cost_judgment),
        ("cost_gold", cost_gold),
        ("difference", difference),
    ):
        if number is not None and not LEAST <= number <= MOST:
            raise TermsRefused(name, f"it must be from {LEAST:g} to {MOST:g}, got {number:g}")
    if money is not None and not 0 <= money < math.inf:
        raise TermsRefused("money", f"it must be at least 0, got {money:g}")
    if not LEAST_POWER <= power <= MOST_POWER:
        raise TermsRefused("power", f"it must be from {LEAST_POWER} to {MOST_POWER}, got {power:g}")
    if claim and claim not in {one.key for one in CLAIMS}:
        raise TermsRefused("claim", f"it must be {' or '.join(one.key for one in CLAIMS)}, got {claim!r}")
    pair = _known_pair(campaign, run, against)
    among = _known_family(campaign, family)
    usual = costs_of(campaign)
    return Terms(
        measure=asked or known[0],
        run=pair[0],
        against=pair[1],
        cost_judgment=cost_judgment or usual[0],
        cost_gold=cost_gold or usual[1],
        difference=difference,
        power=power,
        money=money,
        claim=claim_of(claim) if claim else default_claim(campaign),
        family=among if pair[1] else None,
    )


def _known_family(campaign: Campaign, name: str) -> Family:
    try:
        return asked_family(campaign, name)
    except ValueError as fault:
        raise TermsRefused("family", str(fault)) from fault


def _known_pair(campaign: Campaign, run: str, against: str) -> tuple[str, str]:
    if against and not run:
        raise TermsRefused("run", "name the run that it is compared with")
    if not run:
        run, against = usual_pair(campaign)
        if not run:
            raise TermsRefused("run", "the collection has no runs")
    else:
        named = [("run", run), ("against", against)]
        known = _tags(campaign)
        for field, name in named:
            if name and name not in known:
                raise TermsRefused(field, f"the collection has no run {name!r}")
    if run == against:
        raise TermsRefused("against", "both runs are the same: choose another run")
    return run, against


def costs_of(campaign: Campaign) -> tuple[float, float, bool]:
    """Return what a judgment and a gold label cost, and whether the campaign says so."""
    known = campaign.cost_per_judgment, campaign.cost_per_gold
    return known[0] or EXAMPLE_COSTS[0], known[1] or EXAMPLE_COSTS[1], None not in known


def usual_pair(campaign: Campaign) -> tuple[str, str]:
    """Return the pair that the campaign was drawn for, else its first two runs."""
    draw = newest_draw(campaign)
    if draw is not None and draw.question == "pair":
        return tuple(draw.parameters["runs"][:2])
    first, second, *_ = [*_tags(campaign), "", ""]
    return first, second


def _tags(campaign: Campaign) -> list[str]:
    """Return the tags of the runs, in their order."""
    return [run.run_id for run in campaign.collection.runs.all()]
