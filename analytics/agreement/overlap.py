"""Which documents are called relevant: the overlap of two sets of them, and who disagrees with whom."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats, Ints, Refusal
from analytics.estimation.samples import Labels

LEAST_DOCUMENTS = 10  # judged by both, for a pair of assessors to be told of


def overlap(
    label_a: ArrayLike, label_b: ArrayLike, relevant_grade: int, *, weight: ArrayLike | None = None
) -> float | Refusal:
    """Return Jaccard's overlap of the two sets of relevant documents: those in both over those in either.

    With weights 1/pi it is that of the pool, a ratio of two Horvitz-Thompson sums. Two assessors who agree by chance
    alone still overlap: compare it among pairs of one sample. Refused where nobody calls a document relevant.

    Source: Voorhees (2000), "overlap"; Bailey et al. (2008) give the tables behind it.

    Parameters
    ----------
    label_a, label_b : int arrays [document]
        Grades from 0; the same documents in the same order.
    weight : array [document], optional
        Not negative.

    Examples
    --------
    >>> round(overlap([2, 1, 0, 0], [1, 0, 1, 0], 1), 6)  # one document of three
    0.333333
    """
    a, b = np.asarray(label_a), np.asarray(label_b)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"labels must be of the same documents, got {a.shape} and {b.shape}")
    w = np.ones(a.size) if weight is None else finite("weight", weight, a.shape)
    if (w < 0).any():
        raise ValueError(f"weight must not be negative, got {w.min()}")
    one, other = a >= relevant_grade, b >= relevant_grade
    either = float(w[one | other].sum())
    if either <= 0:
        return Refusal("neither calls a document relevant", 1)
    return float(w[one & other].sum()) / either


@dataclass(frozen=True, eq=False)
class AssessorPairs:
    """Pairs of assessors with documents that both judged, an entry a pair.

    Attributes
    ----------
    first, second : int arrays
        The two, first below second.
    counts : int array [pair, 2, 2]
        Documents by whether the first and the second call them relevant.
    """

    first: Ints
    second: Ints
    counts: Ints

    @property
    def n_documents(self) -> Ints:
        return np.asarray(self.counts.sum(axis=(1, 2)))

    @property
    def agreement(self) -> Floats:
        """Return the share of documents on whose relevance the two agree."""
        return np.asarray(np.trace(self.counts, axis1=1, axis2=2) / self.n_documents)

    @property
    def kappa(self) -> Floats:
        """Return Cohen's kappa; NaN where both gave one and the same label throughout."""
        n = self.n_documents
        by_first, by_second = self.counts.sum(axis=2) / n[:, None], self.counts.sum(axis=1) / n[:, None]
        chance = (by_first * by_second).sum(axis=1)
        kappa: Floats = np.divide(
            self.agreement - chance, 1 - chance, out=np.full(n.size, np.nan), where=chance < 1
        )
        return kappa

    def part(self, chosen: ArrayLike) -> "AssessorPairs":
        """Return some of the pairs, in this order."""
        return AssessorPairs(
            *(column[np.asarray(chosen)] for column in (self.first, self.second, self.counts))
        )


def assessor_pairs(labels: Labels, least: int = LEAST_DOCUMENTS) -> AssessorPairs:
    """Return every pair of assessors who judged `least` documents or more in common, by their places.

    Of an assessor's several labels of a document each counts. Time grows with the labels times those of a document.

    Examples
    --------
    >>> labels = Labels([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 2, 1], n_items=2, n_assessors=2, n_grades=3)
    >>> found = assessor_pairs(labels, least=2)
    >>> found.counts.tolist(), found.agreement.tolist()
    ([[[0, 0], [1, 1]]], [0.5])
    """
    integers("least", [least], 1, 2**31)
    order = np.lexsort((labels.assessor, labels.item))
    item, who = labels.item[order], labels.assessor[order]
    relevant = (labels.grade[order] >= labels.relevant_grade).astype(np.int64)
    cells: list[Ints] = []
    for lag in range(1, int(np.bincount(labels.item, minlength=1).max(initial=0))):
        place = np.flatnonzero((item[lag:] == item[:-lag]) & (who[lag:] != who[:-lag]))
        pair = who[place] * labels.n_assessors + who[place + lag]
        cells.append(pair * 4 + 2 * relevant[place] + relevant[place + lag])
    cell, n = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *cells]), return_counts=True)
    pair, row = np.unique(cell // 4, return_inverse=True)
    counts = np.zeros((pair.size, 4), dtype=np.int64)
    counts[row, cell % 4] = n
    found = AssessorPairs(
        pair // max(labels.n_assessors, 1), pair % max(labels.n_assessors, 1), counts.reshape(-1, 2, 2)
    )
    return found.part(np.flatnonzero(found.n_documents >= least))
