"""The four kinds of measures: what a value is made of, and so which judgments it needs.

`Linear`, `Ratio`, `Complete` and `Pairs` answer what callers ask of a measure; no other code checks its name.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sampling.measures.families import Measure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_PAIRS = 20_000_000


@dataclass(frozen=True)
class RankedGains:
    """What a run returns and what is judged, topic by topic; of completely judged topics.

    Attributes
    ----------
    n_topics : int
    topic, rank, gain : arrays [document]
        What the run returns, ordered by topic and rank. Documents of gain 0 may be left out.
    n_returned : int array [topic]
        Documents that the run returns, with those of gain 0.
    judged_topic, judged_gain : arrays [judged]
        All judged documents, returned or not. Documents of gain 0 may be left out.
    """

    n_topics: int
    topic: Ints
    rank: Ints
    gain: Floats
    n_returned: Ints
    judged_topic: Ints
    judged_gain: Floats

    def to_rank(self, last_rank: int) -> "RankedGains":
        """Return the same with the run cut off behind that rank."""
        near = self.rank <= last_rank
        if near.all() and self.n_returned.max(initial=0) <= last_rank:
            return self
        n_returned = np.minimum(self.n_returned, last_rank)
        return replace(
            self, topic=self.topic[near], rank=self.rank[near], gain=self.gain[near], n_returned=n_returned
        )

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the returned documents' values, by topic."""
        return np.bincount(self.topic, values, self.n_topics).astype(np.float64)

    def table(self) -> Floats:
        """Return gains [topic, rank], 0 behind the last document of a topic; those of a rank lie side by side."""
        gains = np.zeros((self.n_topics, int(self.n_returned.max(initial=0))), order="F")
        gains[self.topic, self.rank - 1] = self.gain
        return gains


@dataclass(frozen=True)
class Linear:
    """A sum over the returned documents of lambda(rank) * gain: a sample of judgments estimates it without bias.

    `weights(measure, rank)` are lambda at these ranks, all within the cutoff. There is one, because nothing below the
    pool is ever judged.
    """

    weights: Callable[["Measure[Linear]", Floats], Floats]
    key: ClassVar[str] = "linear"
    noun: ClassVar[str] = "a sum over documents"
    is_sum: ClassVar[bool] = True
    needs_cutoff: ClassVar[bool] = True

    def grade_gains(self, scale_gains: Floats) -> Floats:
        """Return what the measure gives for every grade of a scale."""
        return scale_gains

    def largest(self, measure: "Measure[Linear]", gains: Floats) -> float:
        """Return the largest value: all ranks hold documents of the highest gain."""
        ranks = np.arange(1.0, measure.last_rank + 1)
        return math.fsum(self.weights(measure, ranks)) * float(gains.max())

    def by_topic(self, measure: "Measure[Linear]", run: RankedGains) -> Floats:
        """Return the value of every topic."""
        return run.sums(self.weights(measure, run.rank.astype(np.float64)) * run.gain)


@dataclass(frozen=True)
class Numerator:
    """The part of a ratio that the run adds: a sum over its documents of weight(rank) * gain.

    With `has_products` each document's gain is multiplied by 1 + the gains above it, as in average precision.
    """

    weights: Callable[[Floats], Floats]
    has_products: bool = False

    def by_topic(self, run: RankedGains) -> Floats:
        worth = self.weights(run.rank.astype(np.float64)) * run.gain
        return run.sums(worth * (1 + sums_above(run.gain, run.topic)) if self.has_products else worth)


Counts: TypeAlias = Sequence[Floats]  # [topic, ...] a stair
# (steps of the stairs, documents of a topic that reach each, those known to, ranks that can count) -> the denominator
# of every topic [topic, ...], and that of the ratio of sums [...]
Denominator: TypeAlias = Callable[[Floats, Counts, Counts, int], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Ratio:
    """What a run gains, divided by what can be gained: the denominator depends on documents that may be unjudged.

    Gains are a staircase, so that the denominator follows from how many documents of a topic reach each stair. `pairs`
    is the same measure as a sum over pairs, where it is one. Without `has_prediction` what was not judged counts as
    predicted to be 0: such a measure has a value of its sample, and no interval. `has_one_step`: differences of runs
    are estimated from few gold labels in one step, within the limits of `analytics.estimation.one_step`. Most ratios
    may go without a cutoff: the whole pooled ranking counts.
    """

    numerator: Numerator
    denominator: Denominator
    pairs: "Pairs | None" = None
    has_prediction: bool = True
    has_one_step: bool = False
    needs_cutoff: bool = False
    key: ClassVar[str] = "ratio"
    noun: ClassVar[str] = "a ratio"
    is_sum: ClassVar[bool] = False

    def grade_gains(self, scale_gains: Floats) -> Floats:
        return scale_gains

    def largest(self, measure: "Measure[Ratio]", gains: Floats) -> float:
        """Return 1: a run gains all that can be gained."""
        return 1.0

    def by_topic(self, measure: "Measure[Ratio]", run: RankedGains) -> Floats:
        """Return the value of every topic, 0 where nothing can be gained."""
        levels = np.unique(run.judged_gain[run.judged_gain > 0])
        if not levels.size:
            return np.zeros(run.n_topics)
        counts = [
            np.bincount(run.judged_topic[run.judged_gain >= level], minlength=run.n_topics)[:, None].astype(
                np.float64
            )
            for level in levels
        ]
        depth = min(measure.last_rank, int(counts[0].max()))
        whole, _ = self.denominator(np.diff(levels, prepend=0.0), counts, counts, depth)
        return quotient(self.numerator.by_topic(run), whole[:, 0])


@dataclass(frozen=True)
class Complete:
    """Any other function of the gains of the first ranks: known only where all of them are judged.

    `of_topic(measure, gains)` takes gains [..., rank], 0 where nothing is returned, and returns values [...]. It is
    linear in each gain, so that an item's mean gain may take the place of the gain, and never smaller where a gain is
    larger. `gains(highest_grade)`, where given, is what the measure gives for every grade, whatever the scale's own
    gains are.
    """

    of_topic: Callable[["Measure[Complete]", Floats], Floats]
    gains: Callable[[int], Floats] | None = None
    key: ClassVar[str] = "complete"
    noun: ClassVar[str] = "a measure of completely judged ranks"
    is_sum: ClassVar[bool] = False
    needs_cutoff: ClassVar[bool] = True

    def grade_gains(self, scale_gains: Floats) -> Floats:
        return scale_gains if self.gains is None else self.gains(scale_gains.size - 1)

    def largest(self, measure: "Measure[Complete]", gains: Floats) -> float:
        """Return the largest value: all ranks hold documents of the highest gain."""
        return float(self.of_topic(measure, np.full(measure.last_rank, gains.max())))

    def by_topic(self, measure: "Measure[Complete]", run: RankedGains) -> Floats:
        """Return the value of every topic."""
        return self.of_topic(measure, run.table())


@dataclass(frozen=True)
class Pairs:
    """A sum over pairs of documents, one ranked above the other, of a weight times a utility.

    `weights(upper, lower, n_returned, n_relevant)`: of pairs at these ranks, in a topic for which the run returns so
    many documents. `utility(gain_above, gain_below)` is 0 or 1. `has_itself`: a document is paired with itself too.
    `by_relevant`: the weight is divided by the number of relevant documents, which is unknown in a sample.
    """

    weights: Callable[[Floats, Floats, Floats, Floats], Floats]
    utility: Callable[[Floats, Floats], Floats]
    has_itself: bool = False
    by_relevant: bool = False
    key: ClassVar[str] = "pairs"
    noun: ClassVar[str] = "a sum over pairs of documents"
    is_sum: ClassVar[bool] = False
    needs_cutoff: ClassVar[bool] = False

    def grade_gains(self, scale_gains: Floats) -> Floats:
        return scale_gains

    def by_topic(self, measure: "Measure[Pairs]", run: RankedGains) -> Floats:
        """Return the value of every topic; ValueError for a topic with more than 20 million pairs."""
        longest = int(run.n_returned.max(initial=0))
        if longest * (longest + 1) // 2 > MAX_PAIRS:
            raise ValueError(f"{measure.name} takes at most {MAX_PAIRS} pairs a topic: choose a cutoff")
        relevant = np.bincount(run.judged_topic[run.judged_gain > 0], minlength=run.n_topics)
        return np.array(
            [
                self._of_topic(gains[:n], float(n_relevant))
                for gains, n, n_relevant in zip(run.table(), run.n_returned, relevant, strict=True)
            ]
        )

    def _of_topic(self, gains: Floats, n_relevant: float) -> float:
        if self.by_relevant and not n_relevant:
            return 0.0
        above, below = np.triu_indices(gains.size, 0 if self.has_itself else 1)
        whole = np.full(above.size, float(gains.size)), np.full(above.size, n_relevant)
        upper, lower = above.astype(np.float64) + 1, below.astype(np.float64) + 1
        weight = self.weights(upper, lower, *whole)
        return float(weight @ self.utility(gains[above], gains[below]))


Kind: TypeAlias = Linear | Ratio | Complete | Pairs
KINDS = (Linear, Ratio, Complete, Pairs)


def quotient(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient, 0 where both are 0 (nothing is relevant)."""
    return np.asarray(np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0))


def sums_above(values: Floats, topic: Ints) -> Floats:
    """Return the sum of the values above each row within its topic; rows are ordered by topic.

    >>> sums_above(np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1])).tolist()
    [0.0, 1.0, 0.0]
    """
    if topic.size == 0:
        return values
    total = np.cumsum(values, axis=0)
    exclusive = total - values
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    start = exclusive[first]
    return np.asarray(exclusive - np.repeat(start, np.diff(first, append=topic.size), axis=0))


def topic_sums(topic: Ints, rows: Floats, n_topics: int) -> Floats:
    """Return [row, topic], the sum of each row's values over the items of each topic.

    >>> topic_sums(np.array([0, 2, 2]), np.ones((1, 3)), 3).tolist()
    [[1.0, 0.0, 2.0]]
    """
    sums = [np.bincount(topic, weights=row, minlength=n_topics) for row in rows]
    return np.asarray(sums, dtype=np.float64)
