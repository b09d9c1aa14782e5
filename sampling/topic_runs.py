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
        items, ranks = [], []
        for run in range(returned.n_runs):
            own = np.flatnonzero(returned.run == run)
            item, rank = returned.item[own].astype(np.int64), returned.value[own].astype(np.int64)
            order = np.lexsort((rank, topic[item]))
            items.append(item[order])
            ranks.append(rank[order])
        return cls(topic, n_topics, tuple(items), tuple(ranks))

    @property
    def n_runs(self) -> int:
        return len(self.item)

    def values(self, measure: Measure[Any], gain: ArrayLike) -> FloatArray:
        """Return the measure of every run in every topic, [run, topic], from the gain of every item of the frame.

        Raises
        ------
        ValueError
            Gains that are negative or not finite; a ratio of sums, which no topic has.
        """
        if measure.averaging == "micro":
            raise ValueError(f"{measure.name} is a ratio of sums over topics: a topic alone has none")
        gains = numbers("gain", gain, self.topic_index.size)
        reached = np.flatnonzero(gains)
        judged_topic, judged_gain = self.topic_index[reached], gains[reached]
        values = np.zeros((self.n_runs, self.n_topics))
        for run, (item, rank) in enumerate(zip(self.item, self.rank, strict=True)):
            near = rank <= measure.last_rank
            n_returned = np.zeros(self.n_topics, dtype=np.int64)
            n_returned[self.topic_index[item[near]]] = rank[near]  # ranks ascend: the last one stays
            counted = near & (gains[item] > 0)
            ranked = RankedGains(
                self.n_topics,
                self.topic_index[item[counted]],
                rank[counted],
                gains[item[counted]],
                n_returned,
                judged_topic,
                judged_gain,
            )
            values[run] = measure.kind.by_topic(measure, ranked)
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
    rng = np.random.default_rng(SEED)
    worlds = np.stack(
        [runs.values(measure, np.where(rng.random(p.size) < p, relevant_gain, 0.0)) for _ in range(N_WORLDS)]
    )
    expected = worlds.mean(axis=0)
    return TopicOutlook(expected, worlds - expected)


def with_floor(spread: FloatArray) -> FloatArray:
    """Return spreads of at least a tenth of their root mean square, so that every topic can be taken.

    >>> with_floor(np.array([0.0, 1.0, 1.0, 2**0.5])).round(6).tolist()
    [0.1, 1.0, 1.0, 1.414214]
    """
    return np.maximum(spread, LEAST_SPREAD * float(np.sqrt(np.square(spread).mean())))
