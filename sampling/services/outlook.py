"""What a campaign's corrected number is expected to be worth: its planned audit, played on a draw to come or made."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.models import Campaign
from sampling.arrays import FloatArray
from sampling.audit_plays import N_PLAYS, AuditPlay
from sampling.campaign_plan import CampaignPlan, PlayedWidths, TopicSpread
from sampling.judged import question_influence
from sampling.measures.families import weights_of_runs
from sampling.measures.kinds import Linear
from sampling.measures.sparse import SparseRuns
from sampling.models import Audit, AuditSchedule, AuditTier
from sampling.outlook import (
    LabelErrors,
    Outlook,
    grade_chances,
    label_classes,
    outlook,
    spread_between_topics,
)
from sampling.services.population import Population
from sampling.strategies import DEFAULT_STRATEGY, schedulable_strategies

SEED = 20  # of the plays: the same forecast at every look
NO_AUDIT = "There will be no corrected number: no audit is planned"
OUT_OF_REACH = "No corrected number can be expected: some documents that affect the question cannot be drawn"
WITH_REPLACEMENT = "The corrected number is not forecast for draws with replacement"
WHOLE_TOPICS = "The corrected number is not forecast where whole topics are drawn"
RATIO = "The corrected number is not forecast where the question is about a ratio"
NO_INTERVAL = "There will probably be no interval of the corrected number"
ASSUMED_TOPICS = "assumed, as topics would differ if documents were relevant as the prior predicts"
PLAYS_OF_CURVES = 5  # of audits, at each of a dozen budgets
MOST_PLAYED = 12  # comparisons of a question
LARGEST_PLAYED = 300_000  # drawn documents
ONE_CONTRAST = ("pair", "system", "ranking")  # here audits go by the contrast that the draw goes by


@dataclass(frozen=True)
class PlannedAudit:
    """How many items the audits of the gold tier are to select in all, by which strategy; None: gold judges judge."""

    strategy: str
    n_items: float | None
    n_assessors: int  # who judge before it; asked once, however many draws are forecast


def planned_audit(campaign: Campaign) -> PlannedAudit | None:
    """Return the audits that are planned or made, None where there are none.

    A census has no size to plan by: the newest audit beside it counts. Where a census is all there is, as many items
    are audited as it took, by the default strategy.
    """
    tiers = list(campaign.assessors.values_list("tier", flat=True))
    if set(tiers) == {AuditTier.GOLD.value}:
        return PlannedAudit("", None, len(tiers))
    schedule = AuditSchedule.objects.filter(campaign=campaign, tier=AuditTier.GOLD, is_active=True).first()
    made = Audit.objects.filter(campaign=campaign, tier=AuditTier.GOLD, declaration="").order_by("-sequence")
    with_size = [strategy.key for strategy in schedulable_strategies()]
    newest = made.filter(strategy__in=with_size).first()
    n_judges = sum(tier != AuditTier.GOLD for tier in tiers)
    plans = [(schedule.strategy, float(schedule.items_in_total))] if schedule else []
    plans += [(newest.strategy, newest.expected_in_total)] if newest else []
    if not plans and (census := made.first()):
        plans = [(DEFAULT_STRATEGY, census.expected_in_total)]
    return PlannedAudit(plans[0][0], max(size for _, size in plans), n_judges) if plans else None


@dataclass(frozen=True, eq=False)
class ExpectedDraw:
    """The documents that a draw can select, as the audit will see them; `contrast` is of the campaign's question.

    `prior` is what their grades are expected by, `known_prior` what predictions of gold start from.
    """

    probability: FloatArray
    contrast: FloatArray
    topic_index: NDArray[np.int64]
    prior: FloatArray
    known_prior: FloatArray
    ranks: SparseRuns  # of the pooled runs
    depth: int
    score: FloatArray | None = None
    drawn: NDArray[np.bool_] | None = None  # once that is known


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers that are forecast: the mean over them of w^2, and w of runs, at most some of many comparisons."""

    squares: FloatArray
    runs: SparseRuns
    comparisons: tuple[tuple[int, int | None], ...]
    gains: FloatArray
    relevant: int
    n_topics: int
    topics: TopicSpread | None = None  # where the spread between topics is measured

    def chances(self, prior: FloatArray) -> FloatArray:
        """Return p[item, grade] of items that are relevant with these probabilities."""
        return grade_chances(prior, self.gains.size, self.relevant)


Player = Callable[[CampaignPlan, int], PlayedWidths | str]
_players: list[Player] = []


def play_campaigns_with(player: Player) -> None:
    """Let this function play campaigns with the reported estimator, which an app that imports this one has.

    It takes a plan and a seed and returns the widths, or why there would be no interval.
    """
    if player not in _players:
        _players.append(player)


def design_outlook(
    population: Population, probability: FloatArray, errors: LabelErrors, topics: TopicSpread | None = None
) -> dict[str, Any]:
    """Return what is expected of the corrected number of a design with these probabilities, as JSON.

    `topics` is the spread between topics where it is measured; else it is assumed.
    """
    if refusal := _no_forecast(population):
        return no_outlook(refusal)
    expected = _expected_draw(population, probability, _contrast(population))
    return corrected_outlook(
        population.campaign, expected, _numbers(population, topics), population.gains, errors
    )


def design_widths(
    population: Population, probabilities: Iterable[FloatArray], errors: LabelErrors
) -> list[float | None]:
    """Return the half-width of the corrected number for these topics, in closed form, of each of these draws.

    Every draw has the planned audit. None for all where there will be no corrected number.
    """
    planned = planned_audit(population.campaign)
    if planned is None or _no_forecast(population):
        return [None for _ in probabilities]
    numbers, contrast, found = _numbers(population, None), _contrast(population), []
    chances = numbers.chances(population.design_prior)  # the same for all
    for probability in probabilities:
        expected = _expected_draw(population, probability, contrast)
        plan = _plan(population.campaign, expected, numbers, population.gains, errors, planned, chances)
        found.append(_closed_form(plan, expected, numbers, plays=PLAYS_OF_CURVES).half_width)
    return found


def _no_forecast(population: Population) -> str:
    """Return why the corrected number of such a design is not forecast; empty where it is."""
    if population.design.selection_kind.with_replacement:
        return WITH_REPLACEMENT
    return "" if isinstance(population.measure.kind, Linear) else RATIO


def _expected_draw(population: Population, probability: FloatArray, contrast: FloatArray) -> ExpectedDraw:
    return ExpectedDraw(
        probability,
        contrast,
        np.asarray(population.pooled.topic_index, dtype=np.int64),
        population.design_prior,
        population.prior,
        population.pooled.returned,
        population.design.depth,
        population.score,
    )


def _numbers(population: Population, topics: TopicSpread | None) -> Numbers:
    """Return the comparisons of the design's question."""
    ranks = population.pooled.returned.rows(population.rows)
    return Numbers(
        squares=population.says.squared_contrast,
        runs=weights_of_runs(population.measure, ranks, len(population.topics)),
        comparisons=tuple(comparisons_among(population.design.question, len(population.rows))),
        gains=population.gains,
        relevant=population.relevant_grade,
        n_topics=len(population.topics),
        topics=topics,
    )


def comparisons_among(question: str, n_runs: int) -> list[tuple[int, int | None]]:
    """Return what a question compares, as places of its runs: runs (run, None) or pairs; some of many, evenly chosen.

    >>> comparisons_among("baseline", 3), comparisons_among("system", 1)
    ([(0, 1), (0, 2)], [(0, None)])
    """
    asked: list[tuple[int, int | None]]
    if question in ("system", "pool"):
        asked = [(run, None) for run in range(n_runs)]
    elif question == "baseline":
        asked = [(0, run) for run in range(1, n_runs)]
    else:
        asked = list(combinations(range(n_runs), 2))
    if len(asked) > MOST_PLAYED:
        asked = [asked[place] for place in np.linspace(0, len(asked) - 1, MOST_PLAYED).astype(int)]
    return asked


def _contrast(population: Population) -> FloatArray:
    if population.design.question in ONE_CONTRAST:
        return np.sqrt(population.says.squared_contrast)
    weights = weights_of_runs(population.measure, population.pooled.returned, len(population.topics))
    own = weights if population.design.question == "pool" else weights.rows(population.rows)
    return question_influence(own, np.ones(population.n_items))


def corrected_outlook(
    campaign: Campaign, expected: ExpectedDraw, numbers: Numbers, asked: FloatArray, errors: LabelErrors
) -> dict[str, Any]:
    """Return half-width, shares of the variance, size of the audit and origin of the errors, or why there is none.

    The half-width is the median of plays of the campaign, with what the middle 80 % of them lie between: for these
    topics, and in `topics_like_these` for the default claim. `asked` are the gains of the campaign's question, which
    audits go by.
    """
    planned = planned_audit(campaign)
    if planned is None:
        return no_outlook(NO_AUDIT)
    chances = numbers.chances(expected.prior)
    plan = _plan(campaign, expected, numbers, asked, errors, planned, chances)
    found = _closed_form(plan, expected, numbers)
    if found.half_width is None:
        return no_outlook(OUT_OF_REACH)
    n_judged = float(expected.probability.sum() if expected.drawn is None else expected.drawn.sum())
    is_by_gold = planned.n_items is None
    said = no_outlook("") | {
        "n_gold": None if planned.n_items is None else min(planned.n_items, n_judged),
        "errors_from": "none, gold assessors judge all" if is_by_gold else errors.origin,
        "is_assumed": errors.is_assumed and not is_by_gold,
    }
    if found.half_width == 0 or n_judged > LARGEST_PLAYED:
        only = PlayedWidths((found.half_width,), (found.variance or 0.0,), found.drawing_share, 0)
        return said | _figures(only, numbers, expected, chances)
    if not _players:
        raise RuntimeError("no app plays campaigns")
    played = _players[0](plan, SEED)
    if isinstance(played, str):
        return said | {"refusal": f"{NO_INTERVAL}: in a simulated campaign {played}"}
    return said | _figures(played, numbers, expected, chances)


def _figures(
    found: PlayedWidths, numbers: Numbers, expected: ExpectedDraw, chances: FloatArray
) -> dict[str, Any]:
    """Return the figures for these topics, and for topics like these where there are at least two."""
    shown = {**_claim(found, found, 0.0), "n_plays": found.n_plays}
    if numbers.n_topics < 2:
        return shown
    spread = numbers.topics or _assumed_spread(numbers, expected, chances)
    over = found.over_topics(spread.variance, numbers.n_topics, np.random.default_rng(SEED))
    return shown | {
        "topics_like_these": {
            **_claim(over, found, spread.variance),
            "n_topics": numbers.n_topics,
            "topics_from": spread.origin,
            "is_assumed": spread.is_assumed,
        }
    }


def _claim(shown: PlayedWidths, found: PlayedWidths, between: float) -> dict[str, Any]:
    """Return the figures of one claim: `found` is for these topics, `between` what topics add to its variance."""
    judging = float(np.mean(found.variances))
    whole, drawing = judging + between, found.drawing_share
    parts = {"drawing": drawing * judging, "assessors": (1 - drawing) * judging, "topics": between}
    return {
        "half_width": shown.median,
        "middle": list(shown.middle) if found.n_plays else None,
        "shares": {name: part / whole for name, part in parts.items()} if whole else {},
    }


def _assumed_spread(numbers: Numbers, expected: ExpectedDraw, chances: FloatArray) -> TopicSpread:
    """Return the spread between topics if grades fell independently as the prior predicts."""
    between = spread_between_topics(
        numbers.runs,
        numbers.comparisons,
        expected.topic_index,
        numbers.n_topics,
        gain=chances @ numbers.gains,
        square=chances @ np.square(numbers.gains),
    )
    return TopicSpread(between, ASSUMED_TOPICS, True)


def _plan(
    campaign: Campaign,
    expected: ExpectedDraw,
    numbers: Numbers,
    asked: FloatArray,
    errors: LabelErrors,
    planned: PlannedAudit,
    chances: FloatArray,
) -> CampaignPlan:
    """Return the campaign to come, over the documents that can be drawn; `chances` are of all, by true grade."""
    can = np.flatnonzero(expected.probability > 0)
    judging = AuditPlay(
        expected.probability[can],
        expected.contrast[can],
        expected.topic_index[can],
        chances if can.size == len(chances) else chances[can],
        errors.matrix,
        asked,
        campaign.judgments_per_item,
    )
    return CampaignPlan(
        judging=judging,
        places=can,
        runs=numbers.runs,
        comparisons=numbers.comparisons,
        gains=numbers.gains,
        ranks=expected.ranks,
        depth=expected.depth,
        prior=expected.known_prior[can],
        score=None if expected.score is None else expected.score[can],
        n_assessors=planned.n_assessors,
        strategy=planned.strategy,
        n_items=planned.n_items,
        drawn=None if expected.drawn is None else expected.drawn[can],
    )


def _closed_form(
    plan: CampaignPlan, expected: ExpectedDraw, numbers: Numbers, plays: int = N_PLAYS
) -> Outlook:
    """Return the variance by source in closed form; a document with weight and without a chance makes it infinite."""
    judging, can = plan.judging, plan.places
    out_of_reach = np.ones(expected.probability.size, dtype=bool)
    out_of_reach[can] = False
    if numbers.squares[out_of_reach].any():
        return Outlook(np.inf, np.inf)
    audit = np.ones(can.size)
    if plan.n_items is not None:
        rng = np.random.default_rng(SEED)
        audit = judging.audit_probabilities(plan.strategy, plan.n_items, rng, drawn=plan.drawn, plays=plays)
    return outlook(
        numbers.squares[can],
        judging.draw_probability,
        judging.chances,
        classes=label_classes(judging.errors, judging.n_labels),
        gains=plan.gains,
        audit_probability=audit,
        drawn=plan.drawn,
    )


def no_outlook(why: str) -> dict[str, Any]:
    return {
        "half_width": None,
        "middle": None,
        "n_plays": 0,
        "shares": {},
        "n_gold": None,
        "errors_from": "",
        "is_assumed": False,
        "topics_like_these": None,
        "refusal": why,
    }
