"""The two halves of nDCG and AP, from pseudo-labels, and their bootstrap: numerators of runs, denominators of topics.

Both are also known as functions of the labels' noise, so that a replicate of the bootstrap costs no more than the
judged items do: a numerator is a polynomial of degree 1 or 2 in the noise, a denominator a function of one sum a
topic and stair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.pseudolabels import PseudoLabels
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio, quotient, sums_above, topic_sums

CHUNK_NUMBERS = 1_000_000  # of one array of replicates: 8 MB


@dataclass(frozen=True)
class RankedItems:
    """One run's items within the cutoff, ordered by topic and rank."""

    item: Ints
    topic: Ints
    rank: Ints
    weight: Floats  # discount (nDCG) or 1/rank (AP)
    utility: Floats
    place: Ints  # of the item among the noisy ones, -1 where its u* has no noise


def ranked_items(measure: Measure[Ratio], labels: PseudoLabels, ranks: Ints) -> RankedItems:
    """Return what a run lists within the cutoff; ValueError for two items at one rank."""
    item = np.flatnonzero((ranks > 0) & (ranks <= measure.last_rank))
    item = item[np.lexsort((ranks[item], labels.topic_index[item]))]
    topic, rank = labels.topic_index[item], ranks[item]
    twice = (np.diff(topic) == 0) & (np.diff(rank) == 0)
    if twice.any():
        raise ValueError(
            f"a run must have one item at a rank of a topic, got two at rank {rank[1:][twice][0]}"
        )
    place = np.full(labels.topic_index.size, -1, dtype=np.int64)
    place[labels.judged[labels.noisy]] = np.arange(labels.noisy.size)
    weight = measure.kind.numerator.weights(rank.astype(np.float64))
    return RankedItems(item, topic, rank, weight, labels.utility[item], place[item])


def _by_topic(values: Floats, topic: Ints, n_topics: int) -> Floats:
    """Return [topic, replicate], the sums of the rows of each topic; rows are sorted by topic."""
    sums = np.zeros((n_topics, values.shape[1]))
    if topic.size:
        first = np.flatnonzero(np.diff(topic, prepend=-1))
        sums[topic[first]] = np.add.reduceat(values, first, axis=0)
    return sums


@dataclass(frozen=True)
class Numerator:
    """A run's numerator as a polynomial in the noise e of its noisy items, of degree 1 (nDCG) or 2 (AP).

    ``value[topic] + sum slope_i e_i + sum_{j before i} weight_i e_i e_j``. Items not judged, or known for
    certain, have no noise, so a replicate costs what the others of the run cost.
    """

    value: Floats  # [topic]
    place: Ints
    topic: Ints
    slope: Floats
    weight: Floats | None  # None: linear

    def replicates(self, noise: Floats) -> Floats:
        """Return [topic, replicate] for noise[noisy, replicate]."""
        mine = noise[self.place]
        terms = mine * self.slope[:, None]
        if self.weight is not None:
            terms += mine * self.weight[:, None] * sums_above(mine, self.topic)
        return self.value[:, None] + _by_topic(terms, self.topic, self.value.size)


def numerator(measure: Measure[Ratio], labels: PseudoLabels, run: RankedItems) -> Numerator:
    """Return the polynomial of one run."""
    noisy = run.place >= 0
    place, topic = run.place[noisy], run.topic[noisy]
    weighted = run.weight * run.utility
    if not measure.kind.numerator.has_products:
        value = topic_sums(run.topic, weighted[None], labels.n_topics)[0]
        return Numerator(value, place, topic, run.weight[noisy], None)
    above = sums_above(run.utility, run.topic)
    terms = np.stack([weighted * (1 + above), weighted])
    value, total = topic_sums(run.topic, terms, labels.n_topics)
    below = total[run.topic] - sums_above(weighted, run.topic) - weighted
    slope = run.weight * (1 + above) + below
    return Numerator(value, place, topic, slope[noisy], run.weight[noisy])


class Denominator:
    """R, or the gain of the ideal ranking, per topic, from the numbers of items on the stairs."""

    def __init__(self, measure: Measure[Ratio], labels: PseudoLabels):
        self.labels, self.measure = labels, measure
        noisy = labels.topic_index[labels.judged[labels.noisy]]
        self.order = np.argsort(noisy, kind="stable")
        self.topic = noisy[self.order]
        pooled = int(np.bincount(labels.topic_index, minlength=1).max(initial=1))
        self.depth = min(measure.last_rank, pooled)

    def values(
        self, stair_noise: Sequence[Floats] | None = None, found_noise: Sequence[Floats] | None = None
    ) -> tuple[Floats, Floats]:
        """Return ([topic, replicate] for macro, [replicate] for micro) under noise[noisy, replicate] a stair.

        At least what was found, and for macro at least one relevant document a topic: without one its
        numerator is 0 whatever the denominator, and the tools count it as 0. In a replicate the number found has
        noise too: with a bound that stood still the replicates would lie above it too often, and the estimate
        would be corrected for a bias it does not have.
        """
        totals = self._disturb(self.labels.stair_total, stair_noise)
        found = self._disturb(self.labels.stair_found, found_noise)
        return self.measure.kind.denominator(self.labels.steps, totals, found, self.depth)

    def of_sums(self) -> Floats:
        """Return [topic] what every topic adds to the denominator of the ratio of sums."""
        counts = [(total[:, None], found[:, None]) for total, found in zip(
            self.labels.stair_total, self.labels.stair_found, strict=True
        )]  # fmt: skip
        return np.array(
            [
                float(
                    self.measure.kind.denominator(
                        self.labels.steps,
                        [total[topic : topic + 1] for total, _ in counts],
                        [found[topic : topic + 1] for _, found in counts],
                        self.depth,
                    )[1][0]
                )
                for topic in range(self.labels.n_topics)
            ]
        )

    def _disturb(self, counts: Floats, noise: Sequence[Floats] | None) -> list[Floats]:
        """Return [topic, replicate] per stair: the counts with their noise."""
        rows = [row[:, None] for row in counts]
        if noise is None:
            return rows
        return [
            row + _by_topic(one[self.order], self.topic, self.labels.n_topics)
            for row, one in zip(rows, noise, strict=True)
        ]


# -- the bootstrap ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replicates:
    """Estimates [run] and replicates [run, replicate] of both averages; `total` is micro's denominator.

    `by_topic` are the estimates of every topic [run, topic], `mean_by_topic` the means of their replicates.
    """

    macro: Floats
    micro: Floats
    macro_replicates: Floats
    micro_replicates: Floats
    total: float
    by_topic: Floats
    mean_by_topic: Floats


@dataclass(frozen=True)
class ErrorReplicates:
    """The replicates that the bias is read from, and the cautious ones that the standard error is."""

    seen: Replicates
    cautious: Replicates
    rankings: list[tuple[bytes, bytes]]  # equal where two runs list the same inside the cutoff


def _replicate(
    measure: Measure[Ratio], labels: PseudoLabels, runs: Sequence[RankedItems], replicates: int, seed: int
) -> Replicates:
    numerators = [numerator(measure, labels, run) for run in runs]
    denominator = Denominator(measure, labels)
    by_topic, whole = denominator.values()
    value = np.stack([one.value for one in numerators])
    of_topics = quotient(value, np.broadcast_to(by_topic[:, 0], value.shape))
    macro = of_topics.mean(axis=1)
    added = np.zeros(value.shape)
    micro = quotient(value.sum(axis=1), np.broadcast_to(whole, macro.shape))
    macro_b, micro_b = np.zeros((2, len(numerators), replicates))
    n_noisy = labels.noisy.size
    n_multipliers = n_noisy * (2 if labels.known_noun == "audited" else 1)
    chunk = max(1, min(replicates, CHUNK_NUMBERS // max(1, n_multipliers)))
    rng = np.random.default_rng(seed)
    for start in range(0, replicates, chunk):
        part = slice(start, min(start + chunk, replicates))
        # one row a replicate: the stream is the same however the replicates are cut into chunks
        multiplier = (
            np.ascontiguousarray(rng.standard_exponential((part.stop - part.start, n_multipliers)).T) - 1
        )
        stair_noise, found_noise = labels.replicates(multiplier)
        noise = sum(
            (step * one for step, one in zip(labels.steps, stair_noise, strict=True)),
            start=np.zeros((n_noisy, 1)),
        )
        by_topic, total = denominator.values(stair_noise, found_noise)
        for run, one in enumerate(numerators):
            drawn = one.replicates(noise)
            ratios = quotient(drawn, by_topic)
            macro_b[run, part] = ratios.mean(axis=0)
            added[run] += ratios.sum(axis=1)
            micro_b[run, part] = quotient(drawn.sum(axis=0), total)
    mean_of_topics = added / replicates if replicates else of_topics
    return Replicates(macro, micro, macro_b, micro_b, float(whole[0]), of_topics, mean_of_topics)


def error_replicates(
    measure: Measure[Ratio], labels: PseudoLabels, rank: Ints, replicates: int, seed: int
) -> ErrorReplicates:
    """Return the replicates of every run; ValueError for two items of a run at one rank of a topic."""
    runs = [ranked_items(measure, labels, row) for row in rank]
    seen = _replicate(measure, labels, runs, replicates, seed)
    wide = labels.cautious()
    rankings = [(run.item.tobytes(), run.rank.tobytes()) for run in runs]
    if np.array_equal(wide.draw_noise, labels.draw_noise):
        return ErrorReplicates(seen, seen, rankings)
    again = [ranked_items(measure, wide, row) for row in rank]
    return ErrorReplicates(seen, _replicate(measure, wide, again, replicates, seed), rankings)
