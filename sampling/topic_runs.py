"""What runs return topic by topic: any measure's values in every topic, and what they are before anything is judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import IndexArray, integers, numbers, probabilities
from sampling.contrasts import squared_contrast
from sampling.measures.families import FloatArray, Measure
from sampling.measures.kinds import RankedGains
from sampling.measures.sparse import SparseRuns

N_WORLDS = 16  # of labels, in which the spread of a value is found to a fifth
SEED = 20261123  # of these worlds alone: no draw depends on it
LEAST_SPREAD = (
    0.1  # of the root mean square spread: the labels of a topic may differ from what the runs let one expect
)


@dataclass(frozen=True, eq=False)
class TopicRuns:
    """The ranks of a frame's items, by run in the order of topic and rank.

    Attributes
    ----------
    topic_index : int array [frame]
    n_topics : int
    item, rank : tuples of int arrays, one a run
        Places in the frame, and the ranks at which the run returns them.
    """

    topic_index: IndexArray
    n_topics: int
    item: tuple[IndexArray, ...]
    rank: tuple[IndexArray, ...]

    @classmethod
    def of(cls, returned: SparseRuns, topic_index: IndexArray, n_topics: int) -> "TopicRuns":
        """Return the runs of a table of ranks [run, frame]."""
        topic = integers("topic_index", topic_index, returned.n_items, n_topics - 1)
        deepest = int(returned.value.max(initial=0))
        items, ranks = [], []
        for run in range(returned.n_runs):
            own = np.flatnonzero(returned.run == run)
            item, rank = returned.item[own].astype(np.int64), returned.value[own].astype(np.int64)
            order = np.argsort(topic[item] * (deepest + 1) + rank, kind="stable")
            items.append(item[order])
            ranks.append(rank[order])
        return cls(topic, n_topics, tuple(items), tuple(ranks))

    @property
    def n_runs(self) -> int:
        return len(self.item)

    def first_ranks(self, measure: Measure[Any]) -> "list[FirstRanks]":
        """Return what every run returns within the measure's ranks; ValueError for a ratio of sums over topics."""
        if measure.averaging == "micro":
            raise ValueError(f"{measure.name} is a ratio of sums over topics: a topic alone has none")
        found = []
        for item, rank in zip(self.item, self.rank, strict=True):
            near = np.flatnonzero(rank <= measure.last_rank)
            topic = self.topic_index[item[near]]
            n_returned = np.zeros(self.n_topics, dtype=np.int64)
            n_returned[topic] = rank[near]  # ranks ascend: the last one stays
            found.append(FirstRanks(topic, item[near], rank[near], n_returned))
        return found

    def values(self, measure: Measure[Any], gain: ArrayLike) -> FloatArray:
        """Return the measure of every run in every topic, [run, topic], from the gain of every item of the frame.

        Raises
        ------
        ValueError
            Gains that are negative or not finite; a ratio of sums, which no topic has.
        """
        gains = numbers("gain", gain, self.topic_index.size)
        reached = np.flatnonzero(gains)
        judged = self.topic_index[reached], gains[reached]
        values = np.zeros((self.n_runs, self.n_topics))
        for run, first in enumerate(self.first_ranks(measure)):
            own = gains[first.item]
            counted = np.flatnonzero(own)
            values[run] = measure.kind.by_topic(measure, first.ranked_gains(counted, own[counted], *judged))
        return values

    def is_needed(self, measure: Measure[Any], rows: Sequence[int]) -> np.ndarray:
        """Return [frame] which items have to be judged for the measure of some runs: a ratio needs the whole pool."""
        if measure.kind.key == "ratio":
            return np.ones(self.topic_index.size, dtype=bool)
        needed = np.zeros(self.topic_index.size, dtype=bool)
        for run in rows:
            needed[self.item[run][self.rank[run] <= measure.last_rank]] = True
        return needed

    def agreement(self) -> FloatArray:
        """Return by topic how likely a document that one run returns is returned by another one, too; 0 for one run."""
        if self.n_runs < 2:
            return np.zeros(self.n_topics)
        count = np.bincount(np.concatenate(self.item), minlength=self.topic_index.size).astype(np.float64)
        shared = np.bincount(self.topic_index, count * (count - 1), self.n_topics)
        whole = np.bincount(self.topic_index, count, self.n_topics) * (self.n_runs - 1)
        return np.asarray(np.divide(shared, whole, out=np.zeros(self.n_topics), where=whole > 0))


@dataclass(frozen=True, eq=False)
class FirstRanks:
    """What one run returns within a measure's ranks, in the order of topic and rank.

    Attributes
    ----------
    topic, item, rank : int arrays [document]
    n_returned : int array [topic]
    """

    topic: IndexArray
    item: IndexArray
    rank: IndexArray
    n_returned: IndexArray

    def ranked_gains(
        self, counted: IndexArray, gain: FloatArray, judged_topic: IndexArray, judged_gain: FloatArray
    ) -> RankedGains:
        """Return the run where the documents at these places have a gain, and no other."""
        return RankedGains(
            self.n_returned.size,
            self.topic[counted],
            self.rank[counted],
            gain,
            self.n_returned,
            judged_topic,
            judged_gain,
        )


@dataclass(frozen=True, eq=False)
class TopicOutlook:
    """A measure in every topic as it is expected before anything is judged.

    Attributes
    ----------
    expected : array [run, topic]
        The plug-in value: its mean over the worlds of labels.
    deviations : array [world, run, topic]
        Of the value in every world from this mean.
    """

    expected: FloatArray
    deviations: FloatArray

    def spread(self, question: str, rows: Sequence[int]) -> FloatArray:
        """Return by topic the root mean square standard deviation of what the question compares."""
        lowest = self.deviations.min(axis=1)[
            :, None
        ]  # contrasts of runs are differences, which a shift leaves alone
        is_absolute = question in ("system", "pool")
        worlds = np.abs(self.deviations) if is_absolute else self.deviations - lowest
        squares = [squared_contrast(question, world[list(rows)]) for world in worlds]
        return np.asarray(np.sqrt(np.sum(squares, axis=0) / (len(squares) - 1)))


def topic_outlook(
    runs: TopicRuns, measure: Measure[Any], prior: ArrayLike, relevant_gain: float
) -> TopicOutlook:
    """Return the measure in worlds of labels: an item is relevant with its prior probability, independently.

    The worlds are the same each time. They are a guess that shapes chances and predictions and never moves a number's
    centre: wrong ones make intervals wide.

    Parameters
    ----------
    prior : array [frame]
        Probability of relevance, within [0, 1].
    relevant_gain : float
        The gain of a relevant item.
    """
    p = probabilities("prior", prior, runs.topic_index.size)
    gain = float(numbers("relevant_gain", [relevant_gain])[0])
    rng = np.random.default_rng(SEED)
    labels = np.zeros(
        p.size, dtype=np.uint16
    )  # a bit a world: all worlds of a run's documents are read at once
    for world in range(N_WORLDS):
        labels |= (rng.random(p.size) < p).astype(np.uint16) << world
    first = runs.first_ranks(measure)
    own_labels = [labels[run.item] for run in first]
    worlds = np.zeros((N_WORLDS, runs.n_runs, runs.n_topics))
    for world in range(N_WORLDS):
        relevant = _places_of(labels, world)
        judged = runs.topic_index[relevant], np.full(relevant.size, gain)
        for run, own in enumerate(own_labels):
            counted = _places_of(own, world)
            ranked = first[run].ranked_gains(counted, np.full(counted.size, gain), *judged)
            worlds[world, run] = measure.kind.by_topic(measure, ranked)
    expected = worlds.mean(axis=0)
    return TopicOutlook(expected, worlds - expected)


def _places_of(labels: np.ndarray, world: int) -> IndexArray:
    """Return where the world's bit is set."""
    return np.flatnonzero(labels & (1 << world))


def with_floor(spread: FloatArray) -> FloatArray:
    """Return spreads of at least a tenth of their root mean square, so that every topic can be taken.

    >>> with_floor(np.array([0.0, 1.0, 1.0, 2**0.5])).round(6).tolist()
    [0.1, 1.0, 1.0, 1.414214]
    """
    return np.maximum(spread, LEAST_SPREAD * float(np.sqrt(np.square(spread).mean())))
