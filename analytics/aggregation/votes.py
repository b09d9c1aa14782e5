"""Labels as sparse tables, and the two halves of expectation-maximisation over them.

`Votes` holds every label once: a row an item, a column an assessor's grade (grade * n_assessors + assessor), entries
the number of times. The posterior of an item is then a product of this table with log probabilities (E), the
expected counts of a confusion matrix a product of its transpose with the posterior (M). Both are done in blocks of
items that fit the processor's cache. Tables of assessors are kept as rows[given, assessor, true] here.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.samples import Labels

BLOCK = 262_144  # items at a time, times the square of the grades: such a product stays on one processor
LEAST = 1e-10  # what an empty cell counts when there is no prior: the other labels then decide, never 0/0
LOG_UNDERFLOW = -640.0  # of a log likelihood: from here on all of a block are taken from their item's largest


@dataclass(frozen=True)
class KnownGrades:
    """Items whose grade is known, sorted by item."""

    item: Ints
    grade: Ints


def shares(filled: Floats) -> Floats:
    """Return rows[given, assessor, true] that sum to 1 over `given`, even where an assessor has no label.

    >>> shares(np.array([[[3.0, 0.0]], [[1.0, 0.0]]])).tolist()
    [[[0.75, 0.5]], [[0.25, 0.5]]]
    """
    totals = filled.sum(axis=0)
    even = np.full_like(filled, 1 / filled.shape[0])
    return np.asarray(np.divide(filled, totals, out=even, where=totals > 0))


def known_items(
    known_item: ArrayLike | None, known_grade: ArrayLike | None, n_items: int, n_grades: int
) -> KnownGrades:
    """Return the items with a known grade. Raise ValueError for an item that occurs twice."""
    if (known_item is None) != (known_grade is None):
        raise ValueError("known_item and known_grade belong together, got only one of them")
    if known_item is None or known_grade is None:
        return KnownGrades(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    item = integers("known_item", known_item, 0, n_items - 1)
    grade = integers("known_grade", known_grade, 0, n_grades - 1)
    if item.size != grade.size:
        raise ValueError(f"known_item and known_grade must be equally long, got {item.size} and {grade.size}")
    order = np.argsort(item, kind="stable")
    if (np.diff(item[order]) == 0).any():
        twice = int(item[order][1:][np.diff(item[order]) == 0][0])
        raise ValueError(f"known_item must name an item once, got {twice} twice")
    return KnownGrades(item[order], grade[order])


def pseudo_labels(prior: ArrayLike, n_assessors: int, n_grades: int) -> Floats:
    """Return the prior as rows[given, assessor or 1, true]: labels added to every cell of the M-step.

    `prior` is one number, a table [true, given], or one for each assessor [assessor, true, given].
    """
    table = finite("prior", prior)
    if (table < 0).any():
        raise ValueError(f"prior must be >= 0, got {table.min()}")
    if table.shape not in ((), (n_grades, n_grades), (n_assessors, n_grades, n_grades)):
        raise ValueError(
            f"prior must be a number, [true, given] or [assessor, true, given], got {table.shape}"
        )
    full = np.broadcast_to(table, (1, n_grades, n_grades)) if table.ndim < 3 else table
    return np.ascontiguousarray(full.transpose(2, 0, 1))


def column_sums(values: Floats) -> Floats:
    """Return the sums of few columns and many rows, 64 rows side by side: a long sum is faster than a short one.

    >>> column_sums(np.ones((65, 2))).tolist()
    [65.0, 65.0]
    """
    n_columns = values.shape[1]
    whole = values.shape[0] // 64 * 64
    wide = values[:whole].reshape(-1, 64 * n_columns).sum(axis=0)
    return np.asarray(wide.reshape(64, n_columns).sum(axis=0) + values[whole:].sum(axis=0))


@dataclass(frozen=True)
class _Block:
    """Some items: their part of the table, its transpose; which (from 0) have which known grade, which no label."""

    items: slice
    part: "scipy.sparse.csr_array"
    transposed: "scipy.sparse.csc_array"
    place: Ints
    grade: Ints
    empty: Ints

    def by_grade(self, values: Floats) -> Floats:
        """Return the sums over the items that have labels, [grade]."""
        return np.asarray(column_sums(values) - values[self.empty].sum(axis=0))


@dataclass(frozen=True)
class ExpectedCounts:
    """What one pass over the labels gives: E, and the sums that M needs.

    `counts[given, assessor, true]` of labels, `of_grades[grade]` of items with labels; `change` is the largest of the
    posterior against the one before.
    """

    log_likelihood: float
    change: float
    counts: Floats
    of_grades: Floats


def block_size(n_grades: int) -> int:
    """Return the number of items in a block; at four grades their posterior is half a megabyte.

    >>> block_size(4)
    16384
    """
    return max(1, BLOCK // n_grades**2)


class Votes:
    """All labels, and the current posterior of the items.

    `posterior[item, grade]` is that of the last `take()`; `expect` computes a new one beside it.
    """

    def __init__(
        self, table: "scipy.sparse.csr_array", n_assessors: int, n_grades: int, known: KnownGrades
    ) -> None:
        """Take a table[item, grade * n_assessors + assessor] of counts."""
        self.n_items, self.n_assessors, self.n_grades = table.shape[0], n_assessors, n_grades
        self.known = known
        self.labels_of_item = np.asarray(table.sum(axis=1)).ravel()
        self.cells = np.asarray(table.sum(axis=0)).ravel().reshape(n_grades, n_assessors)
        self.counted = self.labels_of_item > 0  # the others say nothing about the prevalence
        self.counted[known.item] = True
        self.posterior = np.full((self.n_items, n_grades), 1 / n_grades)
        self._table = table
        self._other = np.empty_like(self.posterior)
        self._blocks = self._blocks_of(table)
        self._sum = np.ones((n_grades, n_grades))  # x @ this: every column is the sum of the row
        self._floor = LEAST * (self.cells > 0)[:, :, None]

    def _blocks_of(self, table: "scipy.sparse.csr_array") -> list[_Block]:
        """Return the items, a block at a time. Where all entries are 1, one short row of ones serves all blocks."""
        edges = [*range(0, self.n_items, block_size(self.n_grades)), self.n_items]
        most = int(np.diff(table.indptr[edges]).max())
        ones = np.ones(most) if (table.data == 1).all() else None
        blocks = []
        for start, stop in pairwise(edges):
            pointer = table.indptr[start : stop + 1]
            entries = slice(int(pointer[0]), int(pointer[-1]))
            data = table.data[entries] if ones is None else ones[: entries.stop - entries.start]
            parts = (data, table.indices[entries], pointer - pointer[0])
            part = scipy.sparse.csr_array(parts, shape=(stop - start, table.shape[1]))
            known = slice(*np.searchsorted(self.known.item, [start, stop]).tolist())
            place = self.known.item[known] - start
            empty = np.flatnonzero(~self.counted[start:stop])
            blocks.append(_Block(slice(start, stop), part, part.T, place, self.known.grade[known], empty))
        return blocks

    def vote_counts(self) -> Floats:
        """Return how many labels of each grade an item has, [item, grade]."""
        of_grade = np.repeat(np.eye(self.n_grades), self.n_assessors, axis=0)
        return np.asarray(self._table @ of_grade)

    # -- E --------------------------------------------------------------------------------------------------

    def expect(self, rows: Floats, prevalence: Floats) -> ExpectedCounts:
        """Compute the posterior under rows[given, assessor, true], and sum it up.

        The change is against `posterior`, which stays as it is until `take`. Each cell's logarithms are shifted by
        their largest, so that no sum is above 0; the shift is added back to the log-likelihood.
        """
        used = (self.cells > 0)[:, :, None]
        logs = np.log(np.where(used, rows, 1.0)).reshape(-1, self.n_grades)
        peak = logs.max(axis=1)
        shifted, everywhere = logs - peak[:, None], self._tile(np.log(prevalence))
        total, change = float((self.cells.ravel() * peak).sum()), 0.0
        counts, of_grades = np.zeros_like(shifted), np.zeros(self.n_grades)
        for block in self._blocks:
            scores = block.part @ shifted
            scores.reshape(-1)[:] += everywhere[: scores.size]
            new = self._other[block.items]
            total += self._normalise(scores, block, new)
            counts += block.transposed @ new
            of_grades += block.by_grade(new)
            np.subtract(new, self.posterior[block.items], out=scores)
            change = max(change, float(scores.max()), -float(scores.min()))
        return ExpectedCounts(total, change, counts.reshape(rows.shape), of_grades)

    def _tile(self, of_grades: Floats) -> Floats:
        """Return the values once an item of the longest block, so that adding them is one long sum."""
        return np.tile(of_grades, min(self.n_items, block_size(self.n_grades)))

    def _normalise(self, scores: Floats, block: _Block, posterior: Floats) -> float:
        """Write the posterior of log scores; return the sum of the log-likelihoods. The scores are used up."""
        fixed = scores[block.place, block.grade]
        largest = np.zeros(scores.shape[0])
        if scores.min() < LOG_UNDERFLOW:
            largest = scores.max(axis=1)
            scores -= largest[:, None]
        np.exp(scores, out=scores)
        sums = scores @ self._sum
        log_likelihood = np.log(sums[:, 0])
        np.divide(scores, sums, out=posterior)
        log_likelihood[block.place] = fixed - largest[block.place]
        posterior[block.place] = 0.0
        posterior[block.place, block.grade] = 1.0
        return float(log_likelihood.sum() + largest.sum())

    def take(self) -> None:
        """Make the posterior that `expect` computed the current one."""
        self.posterior, self._other = self._other, self.posterior

    def put(self, posterior: Floats) -> None:
        """Make this the current posterior, but for items whose grade is known."""
        self.posterior[:] = posterior
        self.posterior[self.known.item] = 0.0
        self.posterior[self.known.item, self.known.grade] = 1.0

    # -- M --------------------------------------------------------------------------------------------------

    def counts(self) -> tuple[Floats, Floats]:
        """Return expected counts[given, assessor, true] of labels and [grade] of items, from `posterior`."""
        sums = np.asarray(self._table.T @ self.posterior).reshape((*self.cells.shape, self.n_grades))
        return sums, self.posterior[self.counted].sum(axis=0)

    def with_prior(self, counts: Floats, prior: Floats) -> Floats:
        """Return counts with the prior's labels; a used cell is never empty."""
        return np.asarray(np.maximum(counts + prior, self._floor))

    # -- curvature ------------------------------------------------------------------------------------------

    def response(self, rows: Floats, prevalence: Floats) -> tuple[Floats, Floats]:
        """Return how the counts move when the *logarithms* of rows and prevalence move by these amounts.

        To first order: an item's posterior p moves by p (s - sum p s), s the sum of its labels' moves.
        """
        moves, everywhere = rows.reshape(-1, self.n_grades), self._tile(prevalence)
        counts, of_grades = np.zeros_like(moves), np.zeros(self.n_grades)
        for block in self._blocks:
            s = block.part @ moves
            s.reshape(-1)[:] += everywhere[: s.size]
            p = self.posterior[block.items]
            s -= (p * s) @ self._sum
            s *= p
            counts += block.transposed @ s
            of_grades += block.by_grade(s)
        return counts.reshape(rows.shape), of_grades


def votes(labels: Labels, known_item: ArrayLike | None = None, known_grade: ArrayLike | None = None) -> Votes:
    """Return the labels as a table. The order of the labels does not matter, not even to the last bit."""
    n_assessors = labels.n_assessors
    known = known_items(known_item, known_grade, labels.n_items, labels.n_grades)
    shape = (labels.n_items, n_assessors * labels.n_grades)
    column = labels.grade * n_assessors + labels.assessor
    places = (labels.item.astype(np.int32), column.astype(np.int32))
    table = scipy.sparse.coo_array((np.ones(labels.item.size), places), shape=shape).tocsr()
    return Votes(table, n_assessors, labels.n_grades, known)
