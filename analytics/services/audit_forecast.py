"""After each recomputation: how narrow the campaign's interval would be after one more audit, by strategy.

The question is the newest draw's: the pair it asks about, or, of several pairs or runs, the one with the median
half-width. The audit is the schedule's next one, by the gold tier, in
the schedule's measure or else the draw's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.frames import CampaignArrays
from analytics.methods import REPORTED
from analytics.models import AuditForecast, Computation, before_cutting
from analytics.numbers.predictions import Predictions
from analytics.planning.audit_outlook import AuditedTarget, Outlook, outlook, predicted_errors
from analytics.services.claim_intervals import spread_of_topics, topic_values
from analytics.services.gold_spread import gold_at, measure_gains
from analytics.services.label_classes import bronze_classes
from judging.models import Campaign
from sampling.arrays import run_table
from sampling.audit_plan import Auditable, items_of_next_audit, middle_grades
from sampling.contrasts import contrast_among
from sampling.frames import tags_of_then
from sampling.judged import judged_items
from sampling.measures.design_weights import PriorGrades, design_weights
from sampling.measures.families import Measure
from sampling.measures.registry import parse_measure
from sampling.models import AuditSchedule, AuditTier, Draw
from sampling.selections import NOT_AUDITED
from sampling.services.auditable import asked_runs
from sampling.services.learned_audits import has_enough_gold, has_learned
from sampling.strategies import DEFAULT_STRATEGY, strategies_for, strategy_at_work

ITEMS_WITHOUT_A_SCHEDULE = 50
ACCURACY = 0.01  # of the number of items: for a forecast close enough
Target = tuple[int, int | None]


def store_forecasts(
    computation: Computation, arrays: CampaignArrays, campaign: Campaign, predictions: Predictions
) -> list[AuditForecast]:
    """Store a forecast of every strategy, or why there is none. Call it when the computation's estimates are stored.

    Reads the estimates, the schedule and the newest audit; everything else is in the arrays. Numbers are the same for
    the same draw and as many judgments: these are the seed. None where whole topics were drawn: audits take topics
    there, which no play knows.
    """
    if not arrays.runs or arrays.has_whole_topics:
        return []
    schedule = AuditSchedule.objects.filter(campaign=campaign).first()
    measure = parse_measure((schedule and schedule.measure) or arrays.draw.parameters["measure"])
    question = _question(computation, arrays, measure.name)
    run, run_b = question.target
    given = {
        "computation": computation,
        "measure": measure.name,
        "run": arrays.runs[run],
        "run_b": None if run_b is None else arrays.runs[run_b],
        "half_width_now": question.reported_half_width,
    }
    found = _next_audit(arrays, campaign, predictions, question.target, measure)
    narrower = 1.0 if isinstance(found, Refusal) else found.share_of_class_means(question.half_width)
    rows = []
    seed = (arrays.draw.seed, arrays.n_judgments)
    for strategy in strategies_for(has_whole_topics=False):
        result = found if isinstance(found, Refusal) else found.forecast(strategy.key, seed)
        row = AuditForecast(
            **given, strategy=strategy.key, n_more=0.0 if isinstance(found, Refusal) else found.n_more
        )
        if isinstance(result, Refusal):
            row.refusal = result.reason
        else:
            _fill(row, result.times(narrower), question, arrays.n_topics, seed)
        rows.append(row)
    return AuditForecast.objects.bulk_create(rows)


def _fill(
    row: AuditForecast, found: Outlook, question: "_Question", n_topics: int, seed: tuple[int, int]
) -> None:
    """Fill in the forecast for these topics, and for topics like these where the spread between them is known.

    Widths are those of the reported interval, with the room for documents that could not be judged; no audit moves
    that, and it is no part of the variance.
    """
    room, between = question.room, question.between
    row.half_width_after, row.half_width_error = found.plays.median + room, found.standard_error
    row.middle_low, row.middle_high = (end + room for end in found.plays.middle)
    row.drawing_share = min(1.0, found.plays.drawing_share)
    if between is None:
        return
    over = found.plays.over_topics(between, n_topics, np.random.default_rng(seed))
    row.topics_half_width_after = over.median + room
    row.topics_share = share_of(between, over.variances)


def share_of(part: float, wholes: Sequence[float]) -> float:
    """Return the share of a part in the mean of the wholes, 0 if there is nothing.

    The mean of equal numbers can be below them by a rounding: a share is at most 1 all the same.
    """
    mean = float(np.mean(wholes))
    return min(1.0, part / mean) if mean else 0.0


def asked_targets(draw: Draw, run_ids: list[str]) -> list[Target]:
    """Return what the draw's question compares, as places of runs: pairs, or single runs (run, None)."""
    runs = asked_runs(draw, run_ids)
    is_without_baseline = (
        draw.question == "baseline" and draw.parameters["runs"][0] not in run_ids
    )  # set aside
    if draw.question in ("pool", "system") or len(runs) == 1 or is_without_baseline:
        return [(run, None) for run in runs]
    if draw.question == "baseline":
        baseline = run_ids.index(draw.parameters["runs"][0])
        return [(min(run, baseline), max(run, baseline)) for run in runs if run != baseline]
    return list(combinations(runs, 2))


@dataclass(frozen=True)
class _Question:
    """A run or a pair, half of its interval for what could be judged, and the spread between its topics.

    `room`: by how much documents that could not be judged make half of the reported interval wider.
    """

    target: Target
    half_width: float | None = None
    room: float = 0.0
    between: float | None = None

    @property
    def reported_half_width(self) -> float | None:
        return None if self.half_width is None else self.half_width + self.room


def _question(computation: Computation, arrays: CampaignArrays, measure: str) -> _Question:
    """Return the pair or run asked about whose reported half-width is the median of all asked.

    The first of those asked where none has an interval; no spread where there is none for topics like these.
    """
    asked = asked_targets(arrays.draw, tags_of_then(arrays.draw, arrays.runs))
    place = {run.pk: index for index, run in enumerate(arrays.runs)}
    rows = computation.estimates.filter(measure=measure, method=REPORTED.key, value__isnull=False)
    known: dict[Target, _Question] = {}
    values = topic_values(computation, measure)
    ends = (before_cutting("low"), before_cutting("high"), "outside_low", "outside_high")
    found: Iterable[tuple[Any, ...]] = rows.values_list("run_id", "run_b_id", "standard_error", *ends)
    for run, run_b, error, low, high, below, above in found:
        target = place[run], None if run_b is None else place[run_b]
        room = ((below or 0.0) + (above or 0.0)) / 2
        between = spread_of_topics(values, run, run_b, error)
        known[target] = _Question(target, (high - low) / 2 - room, room, between)
    ordered = sorted(
        (known[target].reported_half_width or 0.0, target) for target in asked if target in known
    )
    ordered = [entry for entry in ordered if entry[0]]
    return known[ordered[(len(ordered) - 1) // 2][1]] if ordered else _Question(asked[len(asked) // 2])


@dataclass(frozen=True)
class _NextAudit:
    """The next audit: the expected number of items it adds, what strategies go by, and the pair or run in question.

    `now` is that pair or run at the items that were open to the audits so far.
    """

    n_more: float
    auditable: Auditable
    target: AuditedTarget
    now: AuditedTarget
    check_counts: Floats
    gold: GoldPrediction | None  # at the items of `target`; None while there is too little gold to learn from

    def share_of_class_means(self, half_width_now: float | None) -> float:
        """Return how wide the reported interval is beside that of class means, which the plays compute.

        A play has no time to fit predictions of gold: what they save today they are taken to save after the audit.
        """
        by_classes = self.now.half_width() if half_width_now else Refusal("no interval yet")
        if isinstance(by_classes, Refusal) or not half_width_now or by_classes <= 0:
            return 1.0
        return half_width_now / by_classes

    def forecast(self, strategy: str, seed: tuple[int, int]) -> Outlook | Refusal:
        """Return the forecast; of an audit that learns, that of the default one, by so much narrower as is predicted.

        The plays know of an item its bronze grade alone, so they cannot show what else leaves it in doubt.
        """
        learns = strategy_at_work(strategy, self.auditable.judged).learns
        pi = self._probabilities(DEFAULT_STRATEGY if learns else strategy)
        # One seed for all strategies: they are compared on the same plays.
        found = outlook(self.target, pi, self.check_counts, np.random.default_rng(seed))
        if not learns or self.gold is None or isinstance(found, Refusal):
            return found
        errors = predicted_errors(self.target, self.gold, np.stack([pi, self._probabilities(strategy)]))
        narrower = float(errors[1] / errors[0]) if errors[0] > 0 else 1.0
        return found.times(narrower)

    def _probabilities(self, strategy: str) -> Floats:
        return self.auditable.probabilities(strategy, self.n_more, tolerance=ACCURACY * self.n_more)


def _next_audit(
    arrays: CampaignArrays,
    campaign: Campaign,
    predictions: Predictions,
    target: Target,
    measure: Measure[Any],
) -> _NextAudit | Refusal:
    if arrays.is_foreign:
        return Refusal(NOT_AUDITED)
    if arrays.is_by_gold_judges:
        return Refusal("every judged document was graded by a gold judge: nothing is left to audit")
    if arrays.audit_assumption:
        return Refusal(
            "the numbers rest on gold that was declared an audit; one that is drawn here replaces it"
        )
    if arrays.n_audit_pending:
        waiting = f"{arrays.n_audit_pending} selected items wait for the gold tier"
        return Refusal(f"{waiting}; the forecast follows once they are judged")
    n_labels = np.bincount(arrays.label_item, minlength=arrays.judged.size)
    complete = n_labels >= (1 if arrays.is_complete else campaign.judgments_per_item)
    if not complete.any():
        return Refusal("no item has all its judgments yet")
    members = complete | (arrays.audit_probability > 0)
    not_covered = arrays.not_covered(members, "item that an audit could select")
    if not_covered:
        return Refusal(*not_covered)
    n_more = _size(arrays, campaign, int(complete.sum()))
    n_more = min(n_more, float((1 - arrays.audit_probability[members]).sum()))
    if n_more < 1:
        return Refusal("every judged item is already audited")
    return _read(arrays, campaign, predictions, target, measure, members, n_more)


def _size(arrays: CampaignArrays, campaign: Campaign, n_complete: int) -> float:
    """Return how many items the schedule's next audit adds; where it has ended, what one audit more would."""
    schedule = AuditSchedule.objects.filter(campaign=campaign, tier=AuditTier.GOLD).first()
    newest = campaign.audits.filter(tier=AuditTier.GOLD, declaration="").order_by("-sequence")
    n_drawn = int(arrays.n_drawn.sum())
    each = float(schedule.items_each_time) if schedule else ITEMS_WITHOUT_A_SCHEDULE
    planned = items_of_next_audit(
        already=newest.values_list("expected_in_total", flat=True).first() or 0.0,
        each_time=each,
        in_total=float(schedule.items_in_total) if schedule else float(n_drawn),
        n_judged=min(n_complete, n_drawn),
        n_drawn=n_drawn,
    )
    return planned or each


def _check_counts(arrays: CampaignArrays) -> Floats:
    """Return how often checks of each grade were given each grade, as the sizes of an audit count them.

    The gold of a complete file is none of these: `sampling.services.auditable`.
    """
    counts = np.zeros((arrays.n_grades, arrays.n_grades))
    known = (arrays.check_true >= 0) & (arrays.check_true < arrays.n_grades) & (not arrays.is_complete)
    np.add.at(counts, (arrays.check_true[known], arrays.check_given[known]), 1)
    return counts


def _read(
    arrays: CampaignArrays,
    campaign: Campaign,
    predictions: Predictions,
    target: Target,
    measure: Measure[Any],
    members: NDArray[np.bool_],
    n_more: float,
) -> _NextAudit:
    relevant = measure.relevant_grade or campaign.scale.relevant_grade
    gains = measure_gains(campaign, measure)
    prior = predictions.of_gains(gains, relevant)[arrays.judged]
    weights = design_weights(
        measure,
        arrays.returned,
        arrays.n_topics,
        PriorGrades(arrays.topic_index, arrays.frame["prior"].to_numpy(), gains[relevant:]),
    )
    grades = middle_grades(arrays.label_item, arrays.label_grade, arrays.judged.size)
    classes = bronze_classes(arrays, campaign)
    places, drawn = arrays.judged[members], arrays.inclusion_probability[members]
    bronze = grades[members]
    checks = _check_counts(arrays)
    asked = asked_runs(arrays.draw, tags_of_then(arrays.draw, arrays.runs))
    is_enough = has_enough_gold(arrays.n_fitted_expected)
    gold = gold_at(arrays, campaign, predictions, members, gains) if is_enough else None
    run, run_b = target
    weight = (weights.row(run) - (0.0 if run_b is None else weights.row(run_b)))[arrays.judged]

    def at(some: NDArray[np.bool_]) -> AuditedTarget:
        return AuditedTarget(
            weight=weight[some],
            draw_probability=arrays.draw_probability(some)[some],
            prior=prior[some],
            bronze_class=classes[some],
            bronze_grade=grades[some],
            audited=arrays.audited[some],
            gold_grade=arrays.audit_grade[some],
            audit_probability=arrays.audit_probability[some],
            gains=gains,
        )

    return _NextAudit(
        n_more=n_more,
        check_counts=checks,
        auditable=Auditable(
            judged_items(
                run_table("contrast", contrast_among(weights.rows(asked))[places][None]),
                inclusion_probability=drawn,
                topic_index=arrays.topic_index[places],
                bronze_grade=bronze,
                check_counts=checks,
                gains=gains,
                fold=arrays.frame["fold"].to_numpy().astype(np.int64)[places],
                gold_spread=None if gold is None else gold.spread,
            ),
            earlier=arrays.audit_probability[members],
            has_learned=has_learned(campaign, AuditTier.GOLD),
        ),
        target=at(members),
        now=at(arrays.audit_probability > 0),
        gold=None if gold is None else replace(gold, before=gold.before[places]),
    )
