"""The planner: what to buy next for a campaign, read off its newest numbers by closed forms, at once."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db.models import OuterRef, Q, Subquery

from analytics.estimation.claims import LIKE_THESE
from analytics.estimation.estimate import Z95, Floats, Refusal, quantiles95
from analytics.estimation.topics import between_topics
from analytics.estimation.wording import LEVEL
from analytics.methods import REPORTED
from analytics.models import Computation, ConfusionEstimate, Estimate
from analytics.papers.calibration import informativeness
from analytics.planning.exact_gold import ExactGold
from analytics.planning.planner import bronze_worth, error_for_power, topics_for_power
from analytics.planning.purchases import Purchase, next_purchase
from analytics.services.claim_intervals import OLDER
from analytics.services.papers_plan import PapersPlan, papers_plans
from analytics.services.plan_family import FamilyTest, family_test
from analytics.services.plan_terms import Terms
from judging.models import Campaign
from sampling.frames import newest_draw
from sampling.measures.families import grade_gains
from sampling.measures.registry import parse_linear
from sampling.models import AuditTier, Draw
from sampling.selections import NOT_BY_DOCUMENT
from sampling.services.census_documents import census_documents
from sampling.strategies import CENSUS

POINTS = 25  # of a curve
NOT_FOR_SALE = 1e12  # a price that no money pays
NO_DIFFERENCE = "enter the difference that matters"


@dataclass(frozen=True)
class State:
    """What is bought so far, and the parts of the variance at these numbers.

    `between` is the part of topics like these, which no judgment and no gold label changes; 0 for these topics.
    `degrees_of_freedom` are those of t over topics; infinite for these topics.
    """

    drawing: float
    gold: float
    n_judged: int
    n_audited: int
    n_frame: int
    judgments_per_item: int
    between: float = 0.0
    degrees_of_freedom: float = math.inf

    @property
    def quantile(self) -> float:
        """Return by how many standard errors a half-width is counted."""
        return float(quantiles95(np.array([self.degrees_of_freedom]))[0]) if self.has_topics else Z95

    @property
    def has_topics(self) -> bool:
        return math.isfinite(self.degrees_of_freedom)

    @property
    def half_width(self) -> float:
        return self.quantile * math.sqrt(self.drawing + self.gold + self.between)

    @property
    def half_width_of_topics(self) -> float:
        """Return what the choice of topics leaves, however much is judged."""
        return self.quantile * math.sqrt(self.between)

    def buy(self, cost_judgment: float, cost_gold: float, **wanted: Any) -> Purchase | Refusal:
        """Return the cheapest purchase for `half_width`, or the best one for `budget`: `analytics.planning.purchases`.

        Gold for what is judged is always one of the choices: of a pair whose documents are all judged, n and N count
        many documents that do not matter to it, and more of these are no gain.
        """
        known = (self.drawing, self.gold, self.n_judged, self.n_audited, cost_judgment, cost_gold)
        given = {
            "frame_size": self.n_frame,
            "judgments_per_item": self.judgments_per_item,
            "fixed_variance": self.between,
            "quantile": self.quantile,
        }
        found = next_purchase(*known, **given | wanted)
        gold_alone = next_purchase(*known, **given | wanted | {"frame_size": self.n_judged})
        if isinstance(found, Refusal) or isinstance(gold_alone, Refusal):
            return gold_alone if isinstance(gold_alone, Purchase) else found
        is_cheaper = (
            gold_alone.cost < found.cost
            if "half_width" in wanted
            else gold_alone.half_width < found.half_width
        )
        return gold_alone if is_cheaper else found


@dataclass(frozen=True)
class Plan:
    """The answer: what to buy next, and what it brings; or the reason why there is none.

    Without a difference that matters there is no half-width to reach: `wanted`, `needed` and `topics_needed` are None.
    """

    terms: Terms
    refusal: str = ""
    computation: Computation | None = None
    estimate: Estimate | None = None
    tested: FamilyTest | None = None  # of a pair: where it stands in its family
    state: State | None = None
    wanted: float | None = None  # half-width
    needed: Purchase | Refusal | None = None
    spent: Purchase | Refusal | None = None  # what the stated money buys
    exact: ExactGold | None = None  # gold on named documents; None where no gold is missing
    informativeness: float | None = None  # K, the share of the gold gains' spread that one judgment explains
    bronze: str = ""  # whether judging is worth buying at all, in words
    topics_needed: int | None = None
    papers: tuple[PapersPlan, ...] = ()
    papers_refusal: str = ""
    curve: tuple[
        tuple[float, float, float, float], ...
    ] = ()  # money; half-widths: best, gold alone, judgments alone

    @property
    def exact_sentence(self) -> str:
        """Return what gold on named documents brings, in a sentence; empty where there is none to ask for."""
        if self.exact is None or self.state is None:
            return ""
        return self.exact.sentence(self.terms.subject, of_topics=self.state.has_topics)


def plan(*, campaign: Campaign, terms: Terms) -> Plan:
    """Return what to buy next: a look at one estimate, and arithmetic."""
    computation = _computation(campaign)
    rows = _estimates(computation, terms) if computation else []
    found = next((row for row in rows if bool(row.run_b_id) == bool(terms.against)), None)
    draw = newest_draw(campaign)
    if computation is None or found is None or draw is None:
        return Plan(terms, "there are no numbers for this question yet: a plan needs the newest numbers")
    tested = family_test(computation, found, terms)
    topics = _topic_differences(rows, found, terms) if terms.claim is LIKE_THESE else None
    refusal = _refusal(computation, found, draw) or (topics.reason if isinstance(topics, Refusal) else "")
    refusal = refusal or (tested.refusal if tested else "")
    if refusal or isinstance(topics, Refusal):
        return Plan(terms, refusal, computation, found, tested)
    parts = found.components
    state = State(
        drawing=parts["drawing"],
        gold=parts["gold"],
        n_judged=computation.n_items,
        n_audited=computation.n_audited,
        n_frame=max(draw.n_frame, computation.n_items),
        judgments_per_item=campaign.judgments_per_item,
    )
    if topics is not None:
        between = between_topics(float(topics.var(ddof=1)), topics.size, state.drawing + state.gold)
        state = replace(state, between=between, degrees_of_freedom=topics.size - 1)
    if state.half_width == 0:
        reason = "nothing is left to buy: every document it depends on is judged and audited"
        return Plan(terms, reason, computation, found, tested)
    k = _explained_share(campaign, computation.pooled_counts, terms.measure)
    bronze = "" if k is None else bronze_words(k, terms.cost_judgment, terms.cost_gold)
    known = Plan(terms, "", computation, found, tested, state, informativeness=k, bronze=bronze)
    planned = _plan_of(known, state, topics)
    planned = replace(planned, exact=_exact_gold(campaign, draw, planned, state))
    planned = replace(planned, curve=_curve(state, planned, most=_most_money(state, planned)))
    return _with_papers(campaign, computation, planned)


def _refusal(computation: Computation, found: Estimate, draw: Draw) -> str:
    """Return why no purchase can be planned from this number; empty where one can."""
    if draw.has_whole_topics:
        return NOT_BY_DOCUMENT
    if found.value is None:
        return found.refusal
    if computation.is_by_gold_judges:
        return (
            "every judged document was graded by a gold judge: only more judged documents narrow this interval, "
            "and the preview of a top-up says by how much"
        )
    if {"drawing", "gold"} != set(found.components):
        reason = "its variance has other parts than “drawing” and “gold”, or none"
        return f"{reason}: plan with P@k or DCG@k, from recomputed numbers"
    return ""


def _topic_differences(stored: list[Estimate], found: Estimate, terms: Terms) -> Floats | Refusal:
    """Return n times every topic's part of the number, whose mean it is and whose spread is that of topics."""
    if found.value is None:
        return Refusal(found.refusal)
    runs = [terms.run, terms.against] if terms.against else [terms.run]
    own = [row for row in stored if row.run_b_id is None and row.topic_values is not None]
    values = {row.run.run_id: np.array(row.topic_values) for row in own}
    if len(values) < len(runs):
        return Refusal(f"{OLDER}, or plan for these topics")
    z: Floats = values[runs[0]] - (values[runs[1]] if terms.against else 0.0)
    if z.size < 2:
        return Refusal(f"{z.size} topic says nothing about others: plan for these topics")
    return z


def _computation(campaign: Campaign) -> Any:
    """Return the newest computation with the errors of all judges together; None where there is none."""
    pooled = ConfusionEstimate.objects.filter(
        computation=OuterRef("pk"), scope=ConfusionEstimate.Scope.POOLED
    ).order_by("pk")
    rows = campaign.computations.annotate(pooled_counts=Subquery(pooled.values("counts")[:1]))
    return rows.order_by("-id").first()


def _estimates(computation: Computation, terms: Terms) -> list[Estimate]:
    """Return the corrected estimates of the runs and of the pair.

    The pair's is in the order in which it is stored, which does not matter here.
    """
    named = [name for name in (terms.run, terms.against) if name]
    asked = Q(run_b=None) | Q(run_b__run_id__in=named)
    rows = computation.estimates.filter(asked, measure=terms.measure, method=REPORTED.key)
    return list(rows.filter(run__run_id__in=named).select_related("run", "run_b").order_by("pk"))


def _plan_of(known: Plan, state: State, topics: Floats | None) -> Plan:
    """Return the plan with what the difference takes, and what the money buys."""
    terms = known.terms
    prices = (terms.cost_judgment, terms.cost_gold)
    spent = state.buy(*prices, budget=terms.money) if terms.money else None
    if terms.difference is None:
        return replace(known, spent=spent)
    freedom, level = state.degrees_of_freedom, known.tested.level if known.tested else LEVEL
    wanted = state.quantile * error_for_power(
        terms.difference, power=terms.power, level=level, degrees_of_freedom=freedom
    )
    variance = 0.0 if topics is None else float(topics.var(ddof=1))
    return replace(
        known,
        wanted=wanted,
        needed=state.buy(*prices, half_width=wanted),
        spent=spent,
        topics_needed=_more_topics(
            topics, topics_for_power(terms.difference, variance, power=terms.power, level=level)
        )
        if topics is not None and variance > 0
        else None,
    )


def _more_topics(topics: Floats, needed: int) -> int | None:
    """Return how many topics are needed in all, where that is more than there are."""
    return needed if needed > topics.size else None


def _exact_gold(campaign: Campaign, draw: Draw, planned: Plan, state: State) -> ExactGold | None:
    """Return what gold on every judged document that counts brings; None where no gold is missing."""
    terms, computation, found = planned.terms, planned.computation, planned.estimate
    if state.gold <= 0 or computation is None or found is None:
        return None
    runs = {run.run_id: run for run in campaign.collection.runs.all()}
    counted = census_documents(
        campaign, draw, parse_linear(terms.measure), runs[terms.run], runs.get(terms.against)
    )
    n_drawn = sum(batch.n_drawn for batch in campaign.draws.all())
    is_exact = counted.is_whole and computation.n_items >= n_drawn and found.outside_low is None
    after = replace(state, gold=0.0, drawing=0.0 if is_exact else state.drawing)
    cost = terms.cost_gold * len(counted.lacking)
    other = planned.needed
    if not isinstance(other, Purchase):
        prices = (terms.cost_judgment, terms.cost_gold)
        other = state.buy(*prices, budget=cost) if cost > 0 else None
    return ExactGold(
        documents=counted.lacking,
        n_weighed=counted.n_weighed,
        cost=cost,
        is_exact=is_exact,
        half_width_these=Z95 * math.sqrt(after.drawing),
        half_width=after.half_width,
        at_random=other if isinstance(other, Purchase) else None,
        wanted=planned.wanted,
        awaited=counted.n_awaited,
        is_requested=_has_census(campaign, terms),
    )


def _has_census(campaign: Campaign, terms: Terms) -> bool:
    """Return whether a census of this question was made, whichever of its runs was named first."""
    if not getattr(campaign, "has_census", True):
        return False
    made = campaign.audits.filter(strategy=CENSUS, tier=AuditTier.GOLD)
    asked = sorted((terms.run, terms.against))
    return any(
        sorted((audit.run, audit.against)) == asked
        and parse_linear(audit.measure).name == parse_linear(terms.measure).name
        for audit in made
    )


def _with_papers(campaign: Campaign, computation: Computation, planned: Plan) -> Plan:
    terms = planned.terms
    if terms.difference is None:
        return replace(planned, papers_refusal=NO_DIFFERENCE)
    papers = papers_plans(
        campaign=campaign,
        computation=computation,
        measure=terms.measure,
        runs=(terms.run, terms.against),
        difference=terms.difference,
        power=terms.power,
        cost_judgment=terms.cost_judgment,
        cost_gold=terms.cost_gold,
    )
    if isinstance(papers, str):
        return replace(planned, papers_refusal=papers)
    return replace(planned, papers=tuple(papers))


def _most_money(state: State, planned: Plan) -> float:
    """Return the money at the end of the curve: beyond what is needed, or what brings half of what can be gained."""
    terms = planned.terms
    cost_item = terms.cost_judgment * state.judgments_per_item
    everything = cost_item * (state.n_frame - state.n_judged) + terms.cost_gold * (
        state.n_frame - state.n_audited
    )
    target = planned.needed
    if planned.wanted is None:
        half_way = (state.half_width + state.half_width_of_topics) / 2
        target = state.buy(terms.cost_judgment, terms.cost_gold, half_width=half_way)
    enough = target.cost if isinstance(target, Purchase) else everything
    named = planned.exact.cost if planned.exact else 0.0
    return min(
        1.5 * max(enough, named, terms.money or 0.0, 50 * terms.cost_gold), max(everything, terms.cost_gold)
    )


def _curve(state: State, planned: Plan, *, most: float) -> tuple[tuple[float, float, float, float], ...]:
    cost_judgment, cost_gold = planned.terms.cost_judgment, planned.terms.cost_gold

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


def _explained_share(campaign: Campaign, pooled: Any, measure: str) -> float | None:
    """Return K, the share of the gold gains' spread that one judgment explains, from all judges' errors together."""
    if pooled is None:
        return None
    parsed = parse_linear(measure)
    counts = np.array(pooled, dtype=np.float64)
    gains = grade_gains(
        parsed, campaign.scale.gains(), parsed.relevant_grade or campaign.scale.relevant_grade
    )
    if counts.sum() <= 0:
        return None
    found = informativeness(counts, counts.sum(axis=0), gains)
    return None if isinstance(found, Refusal) else found
