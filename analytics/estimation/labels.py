"""Bronze classes of items, and what is said where labels are taken as they are."""

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Ints

AUDITED_FOR_A_CLASS = 10  # bronze classes with less are merged with their neighbours
JUDGE_BIAS = "no error bar for the judges: their bias is unknown"


def compress(values: Ints) -> tuple[Ints, Ints]:
    """Return the different values, ascending, and each one's place among them; numbers near each other are not sorted.

    >>> [array.tolist() for array in compress(np.array([7, 4, 7]))]
    [[4, 7], [1, 0, 1]]
    """
    least = int(values.min(initial=0))
    if int(values.max(initial=0)) - least > 4 * values.size:
        different, place = np.unique(values, return_inverse=True)
        return different, place
    present = np.bincount(values - least) > 0
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[values - least]


def merged_classes(bronze_class: Ints, audited: NDArray[np.bool_]) -> Ints:
    """Return classes 0, 1, ... such that each holds at least 10 audited items, if there are so many.

    While a class has fewer, the one with the fewest is joined to the poorer of its ordered neighbours.

    >>> merged_classes(np.array([0, 5, 9]), np.array([True, True, False])).tolist()
    [0, 0, 0]
    """
    _, index = compress(bronze_class)
    count = np.bincount(index, weights=audited).astype(np.int64).tolist()
    groups = [[position] for position in range(len(count))]
    while len(count) > 1 and min(count) < AUDITED_FOR_A_CLASS:
        poorest = count.index(min(count))
        near = [p for p in (poorest - 1, poorest + 1) if 0 <= p < len(count)]
        left, right = sorted((poorest, min(near, key=lambda p: count[p])))
        groups[left : right + 1] = [groups[left] + groups[right]]
        count[left : right + 1] = [count[left] + count[right]]
    merged = np.empty(len(index) and index.max() + 1, dtype=np.int64)
    for new, members in enumerate(groups):
        merged[members] = new
    return merged[index]
