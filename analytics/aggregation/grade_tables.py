"""One grade an item from the counts of the grades it was given."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
NO_GRADE = -1


def grade_table(item: ArrayLike, grade: ArrayLike, n_items: int, n_grades: int) -> NDArray[np.int32]:
    """Return counts[item, grade] of grades given.

    >>> grade_table([0, 0, 1], [2, 2, 0], 2, 3).tolist()
    [[0, 0, 2], [1, 0, 0]]
    """
    place, given = np.asarray(item, dtype=np.int64), np.asarray(grade, dtype=np.int64)
    if place.shape != given.shape:
        raise ValueError(f"item and grade must be equally long, got {place.size} and {given.size}")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < n_grades:
        raise ValueError(f"grades must be in 0..{n_grades - 1}, got {int(given.min())}..{int(given.max())}")
    counts = np.bincount(place * n_grades + given, minlength=n_items * n_grades)
    return counts.reshape(n_items, n_grades).astype(np.int32)


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
