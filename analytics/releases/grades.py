"""One grade an item from the grades it was given, and what changed from one release's grades to the next's."""

from collections.abc import Iterable, Iterator

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


def grade_changes(before: Iterable[bytes], after: Iterable[bytes]) -> dict[str, int]:
    """Return how many grades of two qrels files, by lines in the order of topic and document, came, went and changed.

    >>> grade_changes([b"1 0 a 0", b"1 0 b 1"], [b"1 0 b 2", b"2 0 a 1"])
    {'added': 1, 'changed': 1, 'removed': 1, 'same': 0}
    """
    found = {"added": 0, "changed": 0, "removed": 0, "same": 0}
    old, new = _rows(before), _rows(after)
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            found["removed"] += 1
            left = next(old, None)
        elif left is None or right[0] < left[0]:
            found["added"] += 1
            right = next(new, None)
        else:
            found["same" if left[1] == right[1] else "changed"] += 1
            left, right = next(old, None), next(new, None)
    return found


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[tuple[bytes, bytes], bytes]]:
    """Yield pair and grade of each line. ValueError where the order is not that of the bytes."""
    last: tuple[bytes, bytes] | None = None
    for line in lines:
        topic, _, document, grade = line.split(b" ")
        if last is not None and (topic, document) <= last:
            raise ValueError(f"qrels must be in the order of topic and document, not {line!r} after {last!r}")
        last = (topic, document)
        yield last, grade
