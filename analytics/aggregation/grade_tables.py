"""One grade an item from the counts of the grades it was given."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NO_GRADE = -1


def lower_medians(table: NDArray[np.int32]) -> Ints:
    """Return by item the median of its grades, between two the lower one; `NO_GRADE` where it has none.

    >>> lower_medians(np.array([[1, 0, 1], [0, 1, 2], [0, 0, 0]])).tolist()
    [0, 2, -1]
    """
    n = table.sum(axis=1)
    reached = np.cumsum(table, axis=1) > ((n - 1) // 2)[:, None]
    return np.where(n > 0, reached.argmax(axis=1), NO_GRADE)


def majorities(table: NDArray[np.int32]) -> Ints:
    """Return by item the grade given most often, of several the lowest; `NO_GRADE` where it has none.

    >>> majorities(np.array([[1, 0, 1], [0, 1, 2], [0, 0, 0]])).tolist()
    [0, 2, -1]
    """
    return np.where(table.sum(axis=1) > 0, table.argmax(axis=1), NO_GRADE)


def supermajorities(table: NDArray[np.int32], relevant_grade: int) -> Ints:
    """Return by item the lower median of the grades on the winning side; `NO_GRADE` where it has none.

    An item is relevant if more than two thirds of its grades are: floor(2 J / 3) + 1 of J, which is 2 of 2, 3 of 3 and
    3 of 4. Otherwise the grades that are not relevant win, and there is one at least. Two of three, which Carterette
    and Soboroff (2010) call a supermajority, is the majority.

    >>> supermajorities(np.array([[0, 1, 1], [1, 1, 1], [1, 0, 0], [0, 0, 0]]), 1).tolist()
    [1, 0, 0, -1]
    """
    n = table.sum(axis=1)
    of_relevant = np.arange(table.shape[1]) >= relevant_grade
    is_relevant = table[:, of_relevant].sum(axis=1) >= 2 * n // 3 + 1
    return lower_medians(np.where(is_relevant[:, None] == of_relevant, table, 0))
