"""The planner: what to buy next for a campaign, read off its newest numbers by closed forms, at once."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analytics.estimation.estimate import Z95, Refusal
from analytics.methods import REPORTED
from analytics.models import Computation, ConfusionEstimate, Estimate
from analytics.papers.calibration import informativeness
from analytics.planning.planner import bronze_worth, error_for_power
from analytics.planning.purchases import Purchase, next_purchase
from analytics.services.papers_plan import PapersPlan, papers_plans
from analytics.services.recomputation import latest_computation
from judging.models import Campaign
from sampling.frames import newest_draw
from sampling.measures.families import grade_gains
from sampling.measures.registry import parse_linear
from sampling.selections import NOT_BY_DOCUMENT

POINTS = 25  # of a curve
EXAMPLE_COSTS = (1.0, 10.0)  # of a judgment and of a gold label, where the campaign has none
USUAL_POWER = 0.8
NOT_FOR_SALE = 1e12  # a price that no money pays


@dataclass(frozen=True)
class Terms:
    """What is to be known, and what it may cost. `difference` is the smallest that matters."""

    measure: str
    run: str
    against: str = ""
    cost_judgment: float = EXAMPLE_COSTS[0]
    cost_gold: float = EXAMPLE_COSTS[1]
    difference: float | None = None
    power: float = USUAL_POWER
    money: float | None = None


@dataclass(frozen=True)
class State:
    """What is bought so far, and the parts of the variance at these numbers."""

    drawing: float
    gold: float
    n_judged: int
    n_audited: int
    n_frame: int
    judgments_per_item: int

    @property
    def half_width(self) -> float:
        return Z95 * math.sqrt(self.drawing + self.gold)

    def buy(self, cost_judgment: float, cost_gold: float, **wanted: Any) -> Purchase | Refusal:
        """Return the cheapest purchase for `half_width`, or the best one for `budget`: `analytics.planning.purchases`.

        Gold for what is judged is always one of the choices: of a pair whose documents are all judged, n and N count
        many documents that do not matter to it, and more of these are no gain.
        """
        known = (self.drawing, self.gold, self.n_judged, self.n_audited, cost_judgment, cost_gold)
        given = {"frame_size": self.n_frame, "judgments_per_item": self.judgments_per_item}
        found = next_purchase(*known, **given | wanted)
        gold_alone = next_purchase(*known, **given | wanted | {"frame_size": self.n_judged})
        if isinstance(found, Refusal) or isinstance(gold_alone, Refusal):
            return gold_alone if isinstance(found, Refusal) else found
        is_cheaper = (
            gold_alone.cost < found.cost
            if "half_width" in wanted
            else gold_alone.half_width < found.half_width
        )
        return gold_alone if is_cheaper else found


@dataclass(frozen=True)
class Plan:
    """The answer: what to buy next, and what it brings; or the reason why there is none."""

    terms: Terms
    refusal: str = ""
    computation: Computation | None = None
    estimate: Estimate | None = None
    state: State | None = None
    difference: float = 0.0  # asked for, or else the present half-width
    wanted: float = 0.0  # half-width
    needed: Purchase | Refusal | None = None
    spent: Purchase | Refusal | None = None  # what the stated money buys
    informativeness: float | None = None  # K, the share of the gold gains' spread that one judgment explains
    bronze: str = ""  # whether judging is worth buying at all, in words
    topics_needed: int | None = None
    papers: tuple[PapersPlan, ...] = ()
    papers_refusal: str = ""
    curve: tuple[
        tuple[float, float, float, float], ...
    ] = ()  # money; half-widths: best, gold alone, judgments alone


def costs_of(campaign: Campaign) -> tuple[float, float, bool]:
    """Return what a judgment and a gold label cost, and whether the campaign says so."""
    known = campaign.cost_per_judgment, campaign.cost_per_gold
    return known[0] or EXAMPLE_COSTS[0], known[1] or EXAMPLE_COSTS[1], None not in known


def usual_pair(campaign: Campaign) -> tuple[str, str]:
    """Return the pair that the campaign was drawn for, else its first two runs."""
    draw = newest_draw(campaign)
    if draw is not None and draw.question == "pair":
        return tuple(draw.parameters["runs"][:2])
    runs = list(campaign.collection.runs.values_list("run_id", flat=True)[:2])
    return (runs[0], runs[1]) if len(runs) > 1 else (runs[0] if runs else "", "")


def plan(*, campaign: Campaign, terms: Terms) -> Plan:
    """Return what to buy next: a look at one estimate, and arithmetic."""
    computation = latest_computation(campaign=campaign)
    found = _estimate(computation, terms) if computation else None
    if computation is None or found is None:
        return Plan(terms, "there are no numbers for this question yet: a plan needs the newest numbers")
    newest = newest_draw(campaign)
    if newest is not None and newest.has_whole_topics:
        return Plan(terms, NOT_BY_DOCUMENT, computation, found)
    if found.value is None:
        return Plan(terms, found.refusal, computation, found)
    if computation.is_by_gold_judges:
        reason = (
            "every judged document was graded by a gold judge: only more judged documents narrow this interval, "
            "and the preview of a top-up says by how much"
        )
        return Plan(terms, reason, computation, found)
    parts = found.components
    if {"drawing", "gold"} != set(parts):
        reason = "its variance has other parts than “drawing” and “gold”, or none"
        return Plan(terms, f"{reason}: plan with P@k or DCG@k, from recomputed numbers", computation, found)
    if parts["drawing"] + parts["gold"] <= 0:
        return Plan(
            terms,
            "nothing is left to buy: every document it depends on is judged and audited",
            computation,
            found,
        )
    draw = newest
    state = State(
        drawing=parts["drawing"],
        gold=parts["gold"],
        n_judged=computation.n_items,
        n_audited=computation.n_audited,
        n_frame=max(draw.n_frame if draw else 0, computation.n_items),
        judgments_per_item=campaign.judgments_per_item,
    )
    k = _explained_share(campaign, computation, terms.measure)
    bronze = "" if k is None else bronze_words(k, terms.cost_judgment, terms.cost_gold)
    known = Plan(terms, "", computation, found, state, informativeness=k, bronze=bronze)
    planned = _plan_of(known, state, len(draw.parameters["topics"]) if draw else 0)
    papers = papers_plans(
        campaign=campaign,
        computation=computation,
        measure=terms.measure,
        runs=(terms.run, terms.against),
        difference=planned.difference,
        power=terms.power,
        cost_judgment=terms.cost_judgment,
        cost_gold=terms.cost_gold,
    )
    if isinstance(papers, str):
        return replace(planned, papers_refusal=papers)
    return replace(planned, papers=tuple(papers))


def _estimate(computation: Computation, terms: Terms) -> Estimate | None:
    """Return the corrected estimate; of a pair in the order in which it is stored, which does not matter here."""
    rows = computation.estimates.filter(measure=terms.measure, method=REPORTED.key)
    if not terms.against:
        return rows.filter(run__run_id=terms.run, run_b=None).first()
    pair = rows.filter(
        run__run_id__in=(terms.run, terms.against), run_b__run_id__in=(terms.run, terms.against)
    )
    return pair.first()


def _plan_of(known: Plan, state: State, n_topics: int) -> Plan:
    terms = known.terms
    difference = terms.difference or _two_digits(state.half_width)
    wanted = Z95 * error_for_power(difference, power=terms.power)
    prices = (terms.cost_judgment, terms.cost_gold)
    needed = state.buy(*prices, half_width=wanted)
    return replace(
        known,
        difference=difference,
        wanted=wanted,
        needed=needed,
        spent=state.buy(*prices, budget=terms.money) if terms.money else None,
        topics_needed=_topics_needed(known, wanted / Z95, n_topics),
        curve=_curve(state, *prices, most=_most_money(state, terms, needed)),
    )


def _most_money(state: State, terms: Terms, needed: Purchase | Refusal) -> float:
    """Return the money at the end of the curve: beyond what is needed, or else all that can be spent."""
    cost_item = terms.cost_judgment * state.judgments_per_item
    everything = cost_item * (state.n_frame - state.n_judged) + terms.cost_gold * (
        state.n_frame - state.n_audited
    )
    enough = everything if isinstance(needed, Refusal) else needed.cost
    return min(1.5 * max(enough, terms.money or 0.0, 50 * terms.cost_gold), max(everything, terms.cost_gold))


def _curve(
    state: State, cost_judgment: float, cost_gold: float, *, most: float
) -> tuple[tuple[float, float, float, float], ...]:
    def width(*prices: float, money: float, **wanted: Any) -> float:
        bought = state.buy(*prices, budget=money, **wanted) if money > 0 else None
        return bought.half_width if isinstance(bought, Purchase) else state.half_width

    return tuple(
        (
            money,
            width(cost_judgment, cost_gold, money=money),
            width(cost_judgment, cost_gold, money=money, frame_size=state.n_judged),
            width(cost_judgment, NOT_FOR_SALE, money=money),
        )
        for money in (most * step / (POINTS - 1) for step in range(POINTS))
    )


def bronze_words(k: float, cost_judgment: float, cost_gold: float) -> str:
    """Return whether ordinary judgments are worth their money beside gold, K being what one of them explains."""
    share = f"One judgment explains about {100 * k:.0f} % of the variance of gold grades (K = {k:.2f})."
    if k <= 0:
        return f"{share} Not worth buying: it adds no information to gold labels."
    worth = bronze_worth(k, cost_bronze=cost_judgment, cost_gold=cost_gold)
    # By calibration, the papers' counterpart of the corrected number; their matrix inverse is dearer (Eq 7).
    if worth.calibration_cost >= worth.gold_only_cost:
        return (
            f"{share} Not worth buying at these costs: gold labels alone give the same half-width for less."
        )
    times = worth.gold_only_cost / worth.calibration_cost
    return f"{share} Worth buying: gold labels alone would cost {times:.2g} times as much for the same half-width."


def _explained_share(campaign: Campaign, computation: Computation, measure: str) -> float | None:
    """Return K, the share of the gold gains' spread that one judgment explains, from all judges' errors together."""
    pooled = computation.confusions.filter(scope=ConfusionEstimate.Scope.POOLED).first()
    if pooled is None:
        return None
    parsed = parse_linear(measure)
    counts = np.array(pooled.counts, dtype=np.float64)
    gains = grade_gains(
        parsed, campaign.scale.gains(), parsed.relevant_grade or campaign.scale.relevant_grade
    )
    if counts.sum() <= 0:
        return None
    found = informativeness(counts, counts.sum(axis=0), gains)
    return None if isinstance(found, Refusal) else found


def _topics_needed(known: Plan, error: float, n_topics: int) -> int | None:
    """Return how many topics like these the difference takes, for a claim about topics in general."""
    spread = known.estimate.topics_standard_error if known.estimate else None
    if spread is None or not n_topics:
        return None
    return math.ceil(n_topics * (spread / error) ** 2)


def _two_digits(width: float) -> float:
    """Return the number with two digits.

    >>> _two_digits(0.04567)
    0.046
    """
    return float(f"{width:.2g}")


def plan_json(found: Plan) -> dict[str, Any]:
    """Return the plan as a program reads it."""
    terms, state = found.terms, found.state
    asked = {
        "measure": terms.measure,
        "run": terms.run,
        "against": terms.against or None,
        "cost_per_judgment": terms.cost_judgment,
        "cost_per_gold": terms.cost_gold,
        "power": terms.power,
        "refusal": found.refusal or None,
    }
    if state is None:
        return asked
    return {
        **asked,
        "difference": found.difference,
        "half_width_now": state.half_width,
        "half_width_wanted": found.wanted,
        "variance": {"drawing": state.drawing, "gold": state.gold},
        "informativeness": found.informativeness,
        "needed": _purchase_json(found.needed),
        "money_buys": _purchase_json(found.spent),
        "topics_needed": found.topics_needed,
        "papers": [
            {
                "method": one.name,
                "unit": one.unit,
                "bronze": one.plan.bronze,
                "gold": one.plan.gold,
                "cost": one.plan.cost,
            }
            for one in found.papers
        ],
        "curve": [dict(zip(("money", *LINES), row, strict=True)) for row in found.curve],
    }


LINES = ("best", "gold_alone", "judgments_alone")


def _purchase_json(purchase: Purchase | Refusal | None) -> dict[str, Any] | None:
    if purchase is None:
        return None
    if isinstance(purchase, Refusal):
        return {"refusal": purchase.reason}
    names = ("items", "judgments", "gold", "cost", "half_width")
    return {"refusal": None, **{name: getattr(purchase, name) for name in names}}
