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
