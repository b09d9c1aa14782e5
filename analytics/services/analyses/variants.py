"""The same campaign with other evidence: fewer labels, one joined grade an item, another audit; and its numbers."""

from dataclasses import dataclass, replace

import numpy as np

from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Estimates, Floats, Refusal, all_refused
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.evidence import LinearTargets, Targets
from analytics.estimation.ranking import Bools
from analytics.estimation.wording import LEVEL
from analytics.frames import CampaignArrays, Ints
from analytics.frames.cuts import with_checks, with_judged
from analytics.methods import NAIVE, Method
from analytics.services.basis import Basis
from analytics.services.estimate_rows import EstimateColumns, columns
from analytics.services.targets import linear_targets, targets_of
from sampling.measures.families import largest_value
from sampling.measures.registry import parse_linear, parse_measure

NOT_ESTIMABLE = 9


@dataclass(frozen=True)
class Numbers:
    """The numbers of all runs, then of all pairs (a, b), a < b; and what they say of each pair.

    `verdict`: 1 a is better, -1 b is better, 0 not told apart (Holm's p over all pairs), NOT_ESTIMABLE.
    """

    value: Floats  # [target], NaN where refused
    unbounded_value: Floats  # before it was cut off at the measure's range: by it runs are ordered
    low: Floats
    high: Floats
    refusal: list[str]
    n_runs: int
    verdict: Ints  # [pair]

    @property
    def reason(self) -> str:
        """Return why nothing at all has a number, else an empty text."""
        return self.refusal[0] if self.refusal and all(self.refusal) else ""


def numbers(basis: Basis, measure: str, method: Method) -> Numbers:
    """Return the numbers of a measure by a method."""
    targets = targets_of(basis, parse_measure(measure))
    return _numbers_of(_columns(targets, method, method.answer(basis.evidence, targets).these_topics))


def of_tier(basis: Basis, measure: str, grade: Ints, chance: Floats) -> Numbers:
    """Return the numbers of one tier's grades alone, taken as right: `grade` [judged], -1 where it has none.

    `chance` [judged] is that of being asked about, given that it was judged; 0 where that could not be.
    """
    targets = linear_targets(basis, parse_linear(measure))
    arrays, open_to = basis.arrays, np.asarray(chance > 0)
    refused = arrays.not_covered(open_to, "item that this tier could have judged")
    members = np.flatnonzero(open_to & (grade >= 0))
    if not members.size:
        refused = "no judgment of this tier counts here yet", None
    made: Estimates
    if refused:
        made = all_refused(len(targets.weights), Refusal(*refused))
    else:
        made = difference_estimator(
            targets.judged.over(members),
            targets.gains[grade[members]],
            arrays.draw_probability(open_to)[members] * chance[members],
            prior=targets.prediction[arrays.judged[members]],
            prior_total=targets.prior_total,
        )
    return _numbers_of(_columns(targets, NAIVE, made))


def _columns(targets: Targets, method: Method, made: Estimates) -> EstimateColumns:
    """Return the rows, with p-values of every sum, also where the method's are not reported."""
    measure = targets.measure
    tested = method.is_tested or measure.kind.is_sum
    largest = largest_value(measure, targets.gains)
    return columns(
        measure.name,
        method.key,
        targets.pairs,
        made,
        settled=targets.settled,
        tested=tested,
        largest=largest,
        outside=targets.outside if isinstance(targets, LinearTargets) else None,
    )


def _numbers_of(table: EstimateColumns) -> Numbers:
    of_pair = table.run_b >= 0
    value = table.numbers["value"]
    p = table.numbers.get("p_value", np.full(value.size, np.nan))[of_pair]
    if not np.isfinite(p).any():  # a ratio as judged has no test: its interval says as much
        p = _p_of_interval(table, of_pair)
    adjusted = np.full(p.size, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    if tested.size:
        adjusted[tested] = holm(p[tested])
    verdict = np.where(adjusted < LEVEL, np.sign(value[of_pair]), 0.0)
    verdict = np.where(np.isnan(value[of_pair]), NOT_ESTIMABLE, verdict).astype(np.int64)
    n_runs = int((~of_pair).sum())
    ends = table.numbers["unbounded_value"], table.numbers["low"], table.numbers["high"]
    return Numbers(value, *ends, table.refusal, n_runs, verdict)


def _p_of_interval(table: EstimateColumns, chosen: Bools) -> Floats:
    """Return 0.01 where the interval excludes 0 and 1 elsewhere: told apart as the interval says, not adjusted."""
    low, high = table.numbers["low"][chosen], table.numbers["high"][chosen]
    p = np.where((low > 0) | (high < 0), LEVEL / 2 / max(1, low.size), 1.0)
    return np.where(np.isnan(low), np.nan, p)


# -- other evidence -----------------------------------------------------------------------------------------


def with_labels(arrays: CampaignArrays, kept: Bools) -> CampaignArrays:
    """Return the arrays as if only these labels had been given.

    An item without a label left is not judged: it counts among those not reached yet, which the chance to be judged
    knows of. Its audit, if it had one, says nothing any more.
    """
    left = with_judged(arrays, np.unique(arrays.label_item[kept]), np.flatnonzero(kept))
    return replace(left, n_judgments=arrays.n_judgments - int((~kept).sum()))


def without_assessor(arrays: CampaignArrays, assessor: int) -> CampaignArrays:
    """Return the arrays without what one assessor (by their place among them) judged: labels, and gold checks."""
    left = with_labels(arrays, arrays.label_assessor != assessor)
    return with_checks(left, arrays.check_assessor != assessor)


def with_one_grade(arrays: CampaignArrays, grade: Ints) -> CampaignArrays:
    """Return the arrays with one label an item, the grade [judged] that its labels say together."""
    n = arrays.judged.size
    return replace(
        arrays,
        label_item=np.arange(n),
        label_assessor=np.zeros(n, dtype=np.int64),
        label_grade=grade.astype(np.int64),
        label_time=np.zeros(n),
        label_judgment=np.arange(n),
    )


def halves(arrays: CampaignArrays) -> tuple[Bools, Bools]:
    """Return which labels belong to the first half of their topic's, and which to the second, by when they were given.

    Within a topic items come in random order, so that each half is a random part of the topic's items.
    """
    topic = arrays.topic_index[arrays.judged[arrays.label_item]]
    order = np.lexsort((arrays.label_judgment, topic))
    counts = np.bincount(topic, minlength=arrays.n_topics)
    starts = np.cumsum(counts) - counts
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size) - starts[topic[order]]
    early = place < (counts[topic] + 1) // 2
    return early, ~early
