"""Samples by bronze grade: how many documents of each label are judged again, topic by topic or overall.

Bailey et al. (2008) had three labels and exact counts. Here any number of grades, expected counts for probabilities
(`sampling.strategies`), and whole counts with nested random samples for those who want the paper's own.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import numbers
from sampling.measures.families import FloatArray

IndexArray = NDArray[np.int64]


def label_shares(n_grades: int) -> FloatArray:
    """Return the share of a sample for each bronze grade: (g + 1)(g + 2)/2, divided by the sum.

    For three grades .1, .3, .6, the paper's 60 : 30 : 10 from the highest down. Triangular numbers are our
    extension to other scales (3 : 1, 10 : 6 : 3 : 1, ...); the paper has three labels only.

    Source: Bailey et al. (2008), section 4.2.

    Examples
    --------
    >>> label_shares(3).tolist()
    [0.1, 0.3, 0.6]
    """
    if n_grades < 1:
        raise ValueError(f"n_grades must be at least 1, got {n_grades}")
    grade = np.arange(n_grades)
    sizes = (grade + 1.0) * (grade + 2.0) / 2.0
    return np.asarray(sizes / sizes.sum(), dtype=np.float64)


def label_counts(available: ArrayLike, count: ArrayLike, shares: ArrayLike) -> FloatArray:
    """Return how many documents of each bronze grade a sample of `count` takes: shares, filled up from the top.

    A grade with too few documents lends the rest to the highest grade that still has some. The counts sum to
    min(count, sum of available) and need not be whole. No count falls when `count` grows.

    Source: Bailey et al. (2008), section 4.2.

    Parameters
    ----------
    available : array, shape (..., n_grades)
        Documents by bronze grade, grade 0 first.
    count : array, shape (...)
    shares : array, shape (n_grades,)
        Not negative, not all 0.

    Raises
    ------
    ValueError
        Negative numbers, or shapes that do not fit.

    Examples
    --------
    >>> label_counts([70, 20, 1], 9, [1, 3, 5]).tolist()
    [1.0, 7.0, 1.0]
    """
    there = np.asarray(available, dtype=np.float64)
    target = np.asarray(count, dtype=np.float64)[..., None]
    part = numbers("shares", shares)
    if there.ndim == 0 or there.shape[-1] != part.size or target.shape[:-1] != there.shape[:-1]:
        raise ValueError(
            f"available must have shape (*count, {part.size}), got {there.shape} for {target.shape[:-1]}"
        )
    if not (np.all(there >= 0.0) and np.all(target >= 0.0) and part.any()):
        raise ValueError("available and count must not be negative, and a share must be positive")
    first = np.minimum(target * part / part.sum(), there)
    lacking = np.minimum(target, there.sum(axis=-1, keepdims=True)) - first.sum(axis=-1, keepdims=True)
    room = (there - first)[..., ::-1]
    above = np.cumsum(room, axis=-1) - room
    return np.asarray(first + np.clip(lacking - above, 0.0, room)[..., ::-1], dtype=np.float64)


def topic_probabilities(topic: IndexArray, grade: IndexArray, n_grades: int, count: float) -> FloatArray:
    """Return each item's probability: of every topic the same share of its items, split by `label_counts`.

    Examples
    --------
    >>> topic_probabilities(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2, 2.0).round(6).tolist()
    [0.25, 0.25, 1.0, 0.5]
    """
    return _of_items(_topic_rates, topic, grade, n_grades, count)


def effort_probabilities(topic: IndexArray, grade: IndexArray, n_grades: int, count: float) -> FloatArray:
    """Return each item's probability: `label_counts` over the pool of all topics, each item of a grade alike."""
    return _of_items(_effort_rates, topic, grade, n_grades, count)


def full_probabilities(topic: IndexArray, grade: IndexArray, n_grades: int, count: float) -> FloatArray:
    """Return each item's probability: the larger of a topic and an effort sample of one size, cell by cell."""
    return _of_items(_full_rates, topic, grade, n_grades, count)


def _of_items(
    rates: Callable[[IndexArray, FloatArray, float], FloatArray],
    topic: IndexArray,
    grade: IndexArray,
    n_grades: int,
    count: float,
) -> FloatArray:
    """Return the rate of every item's cell, a topic and a grade, in a sample of `count` expected items."""
    _, topic = np.unique(topic, return_inverse=True)
    cell = topic * n_grades + grade
    there = np.bincount(cell, minlength=(int(topic.max()) + 1) * n_grades).reshape(-1, n_grades)
    rate = rates(there, label_shares(n_grades), count)
    return np.asarray(np.minimum(rate, 1.0).ravel()[cell], dtype=np.float64)


def _topic_rates(there: IndexArray, shares: FloatArray, count: float) -> FloatArray:
    of_topic = there.sum(axis=1)
    counts = label_counts(there, count * of_topic / of_topic.sum(), shares)
    return np.divide(counts, there, out=np.zeros(there.shape), where=there > 0)


def _effort_rates(there: IndexArray, shares: FloatArray, count: float) -> FloatArray:
    pool = there.sum(axis=0)
    rate = np.divide(label_counts(pool, count, shares), pool, out=np.zeros(pool.size), where=pool > 0)
    return np.broadcast_to(rate, there.shape)


def _full_rates(there: IndexArray, shares: FloatArray, count: float) -> FloatArray:
    """Return the larger rates of a topic and an effort audit of that size for which the union has count items."""

    def union(size: float) -> FloatArray:
        return np.maximum(_topic_rates(there, shares, size), _effort_rates(there, shares, size))

    low, high = 0.0, count  # the union of two samples of this size has at least as many
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if (there * union(middle)).sum() <= count else (low, middle)
    return union(high)
