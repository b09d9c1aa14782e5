"""The weights of all targets of a measure, runs and pairs of runs, and sums over them, without a table [target, item].

100 runs have 4,950 pairs: on 250,000 items such a table is ten gigabytes. Runs return little of what all runs
return, and what is known of a pair follows from its two runs:

    sum (w_a - w_b) x  =  sum w_a x  -  sum w_b x
    sum f(w_a - w_b) x  =  sum over a's items of f(w_a - w_b) x  +  sum over b's other items of f(-w_b) x,  if f(0) = 0

Nothing large is subtracted in the second: two runs that do not differ where x is not 0 give exactly 0, and a sum of
squares is never negative.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite
from sampling.measures.sparse import SparseRuns, from_dense

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Asked = tuple[Callable[[Floats], Floats], Floats]
BLOCK = 500_000  # numbers held at a time
PLACES = 100_000  # items whose weights are held at a time
EQUAL = 1e-13  # of a sum of squares: what rounding leaves of the spread of numbers that are equal


def fourth_powers(weights: Floats) -> Floats:
    """Return w^4, as `sums` asks for it."""
    return np.asarray(np.square(np.square(weights)))


def not_zero(weights: Floats) -> Floats:
    """Return 1 where w is not 0, as `sums` asks for it."""
    return np.asarray(weights != 0, dtype=np.float64)


@dataclass(frozen=True)
class TargetWeights:
    """Weights of every run, then of every pair a < b: w_a - w_b. `runs` holds those of the runs, [run, item].

    If not `paired` the runs alone are the targets. So any table of weights can be given: `as_targets`.
    """

    runs: SparseRuns
    paired: bool = True

    def __len__(self) -> int:
        n = self.runs.n_runs
        return n * (n + 1) // 2 if self.paired else n

    @property
    def n_items(self) -> int:
        return self.runs.n_items

    @cached_property
    def targets(self) -> list[tuple[int, int | None]]:
        """Return the runs (run, None), then the pairs (a, b), a < b."""
        pairs = zip(*(index.tolist() for index in self.pairs), strict=True)
        return [*((run, None) for run in range(self.runs.n_runs)), *pairs]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Return the first and the second run of every pair."""
        if not self.paired:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        first, second = np.triu_indices(self.runs.n_runs, 1)
        return first, second

    @cached_property
    def _ends(self) -> Ints:
        """Return where the entries of each item begin, and where the last end."""
        return np.concatenate([[0], np.cumsum(self.runs.counts())])

    # -- some items, some targets ---------------------------------------------------------------------------

    def over(self, places: ArrayLike) -> "TargetWeights":
        """Return the weights of some items only, in the given order; an item may come twice.

        >>> TargetWeights(from_dense(np.array([[0.0, 0.5], [0.25, 0.75]]))).over([1, 1, 0]).totals([1, 1, 1]).tolist()
        [1.0, 1.75, -0.75]
        """
        wanted, ends = np.asarray(places, dtype=np.int64), self._ends
        count = ends[wanted + 1] - ends[wanted]
        item = np.repeat(np.arange(wanted.size, dtype=np.int32), count)
        entry = np.arange(item.size) + (ends[wanted] - np.cumsum(count) + count)[item]
        entries = SparseRuns(
            self.runs.n_runs, wanted.size, self.runs.run[entry], item, self.runs.value[entry]
        )
        return TargetWeights(entries, self.paired)

    def subset(self, targets: ArrayLike) -> "TargetWeights":
        """Return the weights of some targets only, as targets without pairs: what is left of them is written out."""
        chosen = np.asarray(targets, dtype=np.int64)
        if (chosen < self.runs.n_runs).all():
            return TargetWeights(self.runs.rows(chosen), paired=False)
        used = np.unique(self.runs.item)
        found = from_dense(self.of_targets(self.over(used).runs.dense(), chosen))
        entries = SparseRuns(chosen.size, self.n_items, found.run, used[found.item], found.value)
        return TargetWeights(entries, paired=False)

    def times(self, factor: Floats) -> "TargetWeights":
        """Return the weights times a number an item."""
        return TargetWeights(self.runs.with_values(self.runs.value * factor[self.runs.item]), self.paired)

    def at(self, places: ArrayLike) -> Floats:
        """Return the weights [target, place] of some items of the frame, which may repeat.

        >>> TargetWeights(from_dense(np.array([[0.0, 0.5], [0.25, 0.25]]))).at([1]).tolist()
        [[0.5], [0.25], [0.25]]
        """
        return self.of_targets(self.over(places).runs.dense())

    def of_targets(self, rows: NDArray[Any], targets: Ints | slice = slice(None)) -> Floats:
        """Return [target, ...] from [run, ...] of something linear in w: what a has, less what b has."""
        n, (first, second) = self.runs.n_runs, self.pairs
        place = np.arange(len(self))[targets]
        run, pair = place[place < n], place[place >= n] - n
        found = np.empty((place.size, *rows.shape[1:]))
        found[place < n] = rows[run]
        found[place >= n] = rows[first[pair]] - rows[second[pair]]
        return found

    def blocks(self, rows: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield `of_targets(rows)` in parts of bounded size: which targets, and [target, ...]."""
        step = max(1, BLOCK // max(1, rows[:1].size))
        for start in range(0, len(self), step):
            part = slice(start, min(start + step, len(self)))
            yield part, self.of_targets(rows, part)

    # -- sums -----------------------------------------------------------------------------------------------

    def run_totals(self, values: ArrayLike, group: Ints, n_groups: int) -> Floats:
        """Return sum of w * value over each group's items, [run, group]."""
        value, entries = np.asarray(values, dtype=np.float64), self.runs
        cell = entries.run.astype(np.int64) * n_groups + group[entries.item]
        size = entries.n_runs * n_groups
        totals = np.bincount(cell, entries.value * value[entries.item], size).astype(np.float64)
        return totals.reshape(entries.n_runs, n_groups)

    def totals_at(self, places: Ints, values: Floats, group: Ints, n_groups: int) -> Floats:
        """Return `over(places).run_totals(values, group, n_groups)` to the last digit, without all of these weights.

        >>> weights = TargetWeights(from_dense(np.array([[0.0, 0.5], [0.25, 0.75]])))
        >>> weights.totals_at(np.array([1, 1, 0]), np.ones(3), np.array([0, 1, 1]), 2).tolist()
        [[0.5, 0.5], [0.75, 1.0]]
        """
        totals = np.zeros(self.runs.n_runs * n_groups)
        for start in range(0, places.size, PLACES):
            part = slice(start, start + PLACES)
            entries = self.over(places[part]).runs
            cell = entries.run.astype(np.int64) * n_groups + group[part][entries.item]
            np.add.at(totals, cell, entries.value * values[part][entries.item])  # one after the other
        return totals.reshape(self.runs.n_runs, n_groups)

    def totals_by_topic(self, values: ArrayLike, topic_index: Ints, n_topics: int) -> Floats:
        """Return sum of w * value over each topic's items, [target, topic]."""
        return self.of_targets(self.run_totals(values, topic_index, n_topics))

    def totals(self, values: ArrayLike) -> Floats:
        """Return sum of w * value over the items, by target: the measure if the values are the gains."""
        return self.totals_by_topic(values, np.zeros(self.n_items, dtype=np.int64), 1)[:, 0]

    def squares(self, values: ArrayLike) -> Floats:
        """Return sum of w^2 * value over the items, by target; for values [item, column] by target and column."""
        return self.sums((np.square, np.asarray(values, dtype=np.float64)))[0]

    def counts(self, mask: ArrayLike) -> Ints:
        """Return how many items under the mask have a weight, by target."""
        counted = self.sums((not_zero, np.asarray(mask, dtype=np.float64)))[0]
        return np.rint(counted).astype(np.int64)

    def sums(self, *asked: Asked) -> list[Floats]:
        """Return sum of f(w) * value over the items, by target, for every (f, values), in one pass over the weights.

        f works on arrays of weights, and f(0) = 0. Values are [item], or [item, column]: then [target, column].

        >>> weights = TargetWeights(from_dense(np.array([[0.0, 0.5], [0.25, 0.25]])))
        >>> weights.sums((np.square, np.array([16.0, 16.0])))[0].tolist()
        [4.0, 2.0, 2.0]
        """
        tables = [(f, values[:, None] if values.ndim == 1 else values) for f, values in asked]
        found = []
        for f, values in tables:
            weight = f(self.runs.value)
            terms = (weight * column[self.runs.item] for column in values.T)
            rows = [np.bincount(self.runs.run, term, self.runs.n_runs) for term in terms]
            found.append(np.stack(rows, axis=-1).astype(np.float64))
        if self.paired:
            pairs = self._pair_sums(tables)
            found = [np.concatenate(parts) for parts in zip(found, pairs, strict=True)]
        flat = [values.ndim == 1 for _, values in asked]
        return [sums[:, 0] if is_flat else sums for sums, is_flat in zip(found, flat, strict=True)]

    def _pair_sums(self, asked: list[Asked]) -> list[Floats]:
        n = self.runs.n_runs
        found = [np.zeros((values.shape[1], n, n)) for _, values in asked]
        counted = np.any([values.any(axis=1) for _, values in asked], axis=0)
        for run, places, mine, after, absent in self._differences(counted):
            for (f, _), all_values, sums in zip(asked, (values for _, values in asked), found, strict=True):
                values = all_values[places]
                sums[:, run, run + 1 :] += values.T @ f(after)
                sums[:, :run, run] += (values * f(-mine)[:, None]).T @ absent
        first, second = self.pairs
        return [np.ascontiguousarray(sums[:, first, second].T) for sums in found]

    def squares_by_topic(self, values: ArrayLike, topic_index: Ints, n_topics: int) -> Floats:
        """Return sum of w^2 * value over each topic's items, [target, topic]."""
        order = np.argsort(topic_index, kind="stable")
        value, topic = np.asarray(values, dtype=np.float64)[order], topic_index[order]
        here, n = self.over(order), self.runs.n_runs
        squared = TargetWeights(here.runs.with_values(np.square(here.runs.value)))
        of_runs = squared.run_totals(value, topic, n_topics)
        if not self.paired:
            return of_runs
        sums = np.zeros((n, n, n_topics))
        for run, places, mine, after, absent in here._differences(value != 0):
            topics = topic[places]
            first = np.flatnonzero(np.diff(topics, prepend=-1))
            column = value[places][:, None]
            terms = np.concatenate(
                [column * np.square(mine)[:, None] * absent, column * np.square(after)], axis=1
            )
            by_topic = np.add.reduceat(terms, first, axis=0).T if first.size else np.zeros((n - 1, 0))
            sums[:run, run, topics[first]] += by_topic[:run]
            sums[run, run + 1 :, topics[first]] += by_topic[run:].T
        first, second = self.pairs
        return np.concatenate([of_runs, sums[first, second]])

    def spreads(self, share: Floats, group: Ints, n_groups: int) -> Iterator[tuple[slice, Floats]]:
        """Yield sum of share * (w - centre)^2 of each group, [target, group], in parts: `blocks`.

        The centre is the group's mean of w, weighted by the share (above 0), items without weight included.
        """
        whole = np.bincount(group, share, n_groups)
        squares = self.squares_by_topic(share, group, n_groups)
        for part, total in self.blocks(self.run_totals(share, group, n_groups)):
            spread = squares[part] - np.divide(total**2, whole, out=np.zeros_like(total), where=whole > 0)
            spread[spread <= EQUAL * squares[part]] = 0.0
            yield part, spread

    def _differences(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, Ints, Floats, Floats, Floats]]:
        """Yield each run with the wanted items it weighs, some at a time: the run, the items' places, its weights there
        [item], these less those of each later run [item, run], and 1 where an earlier run has none [item, run].
        """
        n = self.runs.n_runs
        weighed = np.flatnonzero(wanted & (np.diff(self._ends) > 0))
        here = self.over(weighed)
        items = here.items_of_runs()
        step = max(1, BLOCK // max(1, n))
        edges = np.append(np.arange(0, weighed.size, step), weighed.size).astype(np.int32)
        bounds = [np.searchsorted(places, edges).tolist() for places in items]
        for block, (start, stop) in enumerate(pairwise(edges.tolist())):
            first, last = here._ends[[start, stop]]
            table = np.zeros((stop - start, n))
            table[here.runs.item[first:last] - start, here.runs.run[first:last]] = here.runs.value[first:last]
            for run, places in enumerate(items):
                own = places[slice(*bounds[run][block : block + 2])]
                weights = table[own - start]
                mine = weights[:, run]
                absent = np.asarray(weights[:, :run] == 0, dtype=np.float64)
                yield run, weighed[own], mine, mine[:, None] - weights[:, run + 1 :], absent

    def items_of_runs(self) -> list[Ints]:
        """Return by run the places of the items it weighs, ascending."""
        n = self.runs.n_runs
        short = self.runs.run.astype(np.uint16) if n < 1 << 16 else self.runs.run  # sorted faster
        by_run = np.argsort(short, kind="stable")
        ends = np.cumsum(np.bincount(self.runs.run, minlength=n))[:-1]
        return np.split(self.runs.item[by_run], ends)

    # -- what the weights alone say -------------------------------------------------------------------------

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
        first, second = self.pairs
        return np.concatenate([kind == 0, kind[first] == kind[second]])

    def n_weighed(self) -> Ints:
        """Return how many items have a weight, by target."""
        return self.counts(np.ones(self.n_items))

    def unsupported_share(self, inclusion_probability: ArrayLike) -> Floats:
        """Return the share of ``sum |w|`` on items that the design can never select, by target.

        Anything above 0 is a bias no interval shows (docs/methods/derivations/sampling.md, section 1.3): refuse it.
        """
        never = np.asarray(inclusion_probability, dtype=np.float64) <= 0.0
        outside = np.zeros(len(self))
        if not never[self.runs.item].any():
            return outside
        outside, total = self.sums((np.abs, np.stack([never, np.ones(never.size)], axis=1)))[0].T
        return np.asarray(np.divide(outside, total, out=np.zeros(len(self)), where=total > 0.0))


Weights = ArrayLike | TargetWeights


def weight_rows(weights: ArrayLike) -> Floats:
    """Return weights as [target, item]; one row given flat becomes one target."""
    array = finite("weights", weights)
    if array.ndim not in (1, 2):
        raise ValueError(f"weights must have 1 or 2 axes, got {array.ndim}")
    return np.atleast_2d(array)


def as_targets(weights: Weights) -> TargetWeights:
    """Return weights [target, item], or of one target [item], in the form that all estimators work with."""
    if isinstance(weights, TargetWeights):
        return weights
    return TargetWeights(from_dense(weight_rows(weights)), paired=False)


def rows_alone(n_rows: int) -> TargetWeights:
    """Return targets without pairs, of no items: for numbers of which each row stands for itself."""
    nothing = np.zeros(0, dtype=np.int32)
    return TargetWeights(SparseRuns(n_rows, 0, nothing, nothing, np.zeros(0)), paired=False)
