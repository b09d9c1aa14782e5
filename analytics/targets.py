"""The weights of all targets of a measure, runs and pairs of runs, without a table [target, frame].

129 runs have 8,256 pairs: on a frame of 87,000 pairs of topic and document such a table is six gigabytes. Runs return
little of what all runs return, and what is known of a pair follows from its two runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.sparse import SparseRuns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 4_000_000  # weights held at a time


@dataclass(frozen=True)
class TargetWeights:
    """Weights of every run, then of every pair a < b: w_a - w_b. `runs` holds those of the runs, [run, frame]."""

    runs: SparseRuns

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def targets(self) -> list[tuple[int, int | None]]:
        """Return the runs (run, None), then the pairs (a, b), a < b."""
        pairs = zip(*(index.tolist() for index in self._pairs), strict=True)
        return [*((run, None) for run in range(self.runs.n_runs)), *pairs]

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        first, second = np.triu_indices(self.runs.n_runs, 1)
        return first, second

    def _with_pairs(self, rows: Floats) -> Floats:
        first, second = self._pairs
        return np.concatenate([rows, rows[first] - rows[second]])

    def at(self, places: ArrayLike) -> Floats:
        """Return the weights [target, place] of some items of the frame, which may repeat.

        >>> from sampling.sparse import from_dense
        >>> TargetWeights(from_dense(np.array([[0.0, 0.5], [0.25, 0.25]]))).at([1]).tolist()
        [[0.5], [0.25], [0.25]]
        """
        wanted, back = np.unique(np.asarray(places, dtype=np.int64), return_inverse=True)
        column = np.full(self.runs.n_items, -1, dtype=np.int64)
        column[wanted] = np.arange(wanted.size)
        kept = np.flatnonzero(column[self.runs.item] >= 0)
        rows = np.zeros((self.runs.n_runs, wanted.size))
        rows[self.runs.run[kept], column[self.runs.item[kept]]] = self.runs.value[kept]
        return self._with_pairs(rows[:, back])

    def totals_by_topic(self, values: ArrayLike, topic_index: Ints, n_topics: int) -> Floats:
        """Return sum of w * value over each topic's items of the frame, [target, topic]."""
        value, entries = np.asarray(values, dtype=np.float64), self.runs
        cell = entries.run.astype(np.int64) * n_topics + topic_index[entries.item]
        size = entries.n_runs * n_topics
        totals = np.bincount(cell, entries.value * value[entries.item], size).astype(np.float64)
        return self._with_pairs(totals.reshape(entries.n_runs, n_topics))

    def totals(self, values: ArrayLike) -> Floats:
        """Return sum of w * value over the frame, by target: the measure if the values are the gains."""
        return self.totals_by_topic(values, np.zeros(self.runs.n_items, dtype=np.int64), 1)[:, 0]

    def _blocks(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield the weights [target, item] of the items that some run weighs, some items at a time."""
        weighed = np.unique(self.runs.item).astype(np.int64)
        step = max(1, BLOCK // max(1, len(self)))
        for start in range(0, weighed.size, step):
            places = weighed[start : start + step]
            yield places, self.at(places)

    def is_zero(self) -> NDArray[np.bool_]:
        """Return by target whether no item has a weight: a run returns nothing, or a pair weighs every item alike."""
        by_run = np.argsort(self.runs.run, kind="stable")
        ends = np.cumsum(np.bincount(self.runs.run, minlength=self.runs.n_runs))[:-1]
        kinds: dict[tuple[bytes, bytes], int] = {(b"", b""): 0}
        kind = np.array(
            [
                kinds.setdefault((self.runs.item[own].tobytes(), self.runs.value[own].tobytes()), len(kinds))
                for own in np.split(by_run, ends)
            ]
        )
        first, second = self._pairs
        return np.concatenate([kind == 0, kind[first] == kind[second]])

    def n_weighed(self) -> Ints:
        """Return how many items have a weight, by target: a pass over all pairs and items."""
        counts = np.zeros(len(self), dtype=np.int64)
        for _, weights in self._blocks():
            counts += np.count_nonzero(weights, axis=1)
        return counts

    def unsupported_share(self, inclusion_probability: ArrayLike) -> Floats:
        """Return the share of ``sum |w|`` on items that the design can never select, by target.

        Anything above 0 is a bias no interval shows (methods/sampling.md, section 4): refuse it.
        """
        never = np.asarray(inclusion_probability, dtype=np.float64) <= 0.0
        total, outside = np.zeros(len(self)), np.zeros(len(self))
        if not never[self.runs.item].any():
            return outside
        for places, weights in self._blocks():
            size = np.abs(weights)
            total += size.sum(axis=1)
            outside += size[:, never[places]].sum(axis=1)
        return np.divide(outside, total, out=np.zeros(len(self)), where=total > 0.0)
