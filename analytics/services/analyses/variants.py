"""The same campaign with other evidence: fewer labels, one joined grade an item, another audit; and its numbers."""

from dataclasses import dataclass, replace

import numpy as np

from analytics.estimation.claims import Claim
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Estimates, Floats, Refusal, all_refused
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.evidence import LinearTargets, Targets
from analytics.estimation.ranking import Bools
from analytics.estimation.topics import over_topics_of
from analytics.estimation.wording import LEVEL
from analytics.frames import CampaignArrays, Ints
from analytics.frames.cuts import with_checks, with_judged
from analytics.methods import NAIVE, Method
from analytics.numbers.columns import EstimateColumns, columns
from analytics.numbers.targets import linear_targets, targets_of
from analytics.services.basis import Basis
from analytics.services.claim_intervals import CLAIM_COLUMNS
from sampling.measures.families import largest_value
from sampling.measures.registry import parse_linear, parse_measure

NOT_ESTIMABLE = 9


@dataclass(frozen=True)
class Numbers:
    """The numbers of all runs, then of all pairs (a, b), a < b. `ends` and `p` are by the key of a claim."""

    value: Floats  # [target], NaN where refused
    unbounded_value: Floats  # before it was cut off at the measure's range: by it runs are ordered
    ends: dict[str, tuple[Floats, Floats]]  # low and high [target], NaN where the claim has none
    p: dict[str, Floats]  # [pair], of one comparison; NaN where the claim has none
    refusal: list[str]
    n_runs: int

    @property
    def reason(self) -> str:
        """Return why nothing at all has a number, else an empty text."""
        return self.refusal[0] if self.refusal and all(self.refusal) else ""

    def verdicts(self, claim: Claim, family: Bools) -> Ints:
        """Return what the claim says of each pair, by Holm's p among the pairs of the family that it tests.

        1 a is higher, -1 b is higher, 0 not significant, NOT_ESTIMABLE: no test, or not of the family.
        """
        p = np.where(family, self.p[claim.key], np.nan)
        verdict = np.full(p.size, NOT_ESTIMABLE)
        tested = np.flatnonzero(np.isfinite(p))
        if tested.size:
            sign = np.sign(self.value[self.n_runs :][tested])
            verdict[tested] = np.where(holm(p[tested]) < LEVEL, sign, 0.0).astype(np.int64)
        return verdict


def numbers(basis: Basis, measure: str, method: Method) -> Numbers:
    """Return the numbers of a measure by a method."""
    targets = targets_of(basis, parse_measure(measure))
    answer = method.answer(basis.evidence, targets)
    over = answer.over_topics if method.has_topic_interval else None
    return _numbers_of(_columns(targets, method, answer.these_topics, over))


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
    if refused:
        nothing = all_refused(len(targets.weights), Refusal(*refused))
        return _numbers_of(_columns(targets, NAIVE, nothing, nothing))
    utility, prior = targets.gains[grade[members]], targets.prediction[arrays.judged[members]]
    inclusion = arrays.draw_probability(open_to)[members] * chance[members]
    made = difference_estimator(
        targets.judged.over(members), utility, inclusion, prior=prior, prior_total=targets.prior_total
    )
    parts = targets.topic_parts(basis.evidence, members, (utility - prior) / inclusion)
    return _numbers_of(_columns(targets, NAIVE, made, over_topics_of(targets.weights, parts)))


def _columns(
    targets: Targets, method: Method, made: Estimates, over_topics: Estimates | None
) -> EstimateColumns:
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
        over_topics=over_topics,
        tested=tested,
        largest=largest,
        outside=targets.outside if isinstance(targets, LinearTargets) else None,
    )


def _numbers_of(table: EstimateColumns) -> Numbers:
    of_pair = table.run_b >= 0
    unknown = np.full(of_pair.size, np.nan)
    ends, p_values = {}, {}
    for claim, (low, high, p) in CLAIM_COLUMNS.items():
        ends[claim] = table.numbers.get(low, unknown), table.numbers.get(high, unknown)
        known = table.numbers.get(p, unknown)[of_pair]
        # a ratio as judged has no test: its interval says as much
        p_values[claim] = known if np.isfinite(known).any() else _p_of_interval(*ends[claim], of_pair)
    values = table.numbers["value"], table.numbers["unbounded_value"]
    return Numbers(*values, ends, p_values, table.refusal, int((~of_pair).sum()))


def _p_of_interval(lows: Floats, highs: Floats, chosen: Bools) -> Floats:
    """Return 0.01 where the interval excludes 0 and 1 elsewhere: told apart as the interval says, not adjusted."""
    low, high = lows[chosen], highs[chosen]
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
