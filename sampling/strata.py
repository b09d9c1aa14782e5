"""Stratified draws: an exact number of judgments in every topic, for absolute values.

A run's score adds over topics, and topics differ far more than documents of a topic do. When every topic has its own
fixed number of judgments, the luck of which topics are drawn often is gone; differences of two runs gain little by it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import integers, numbers, probabilities
from sampling.designs import inclusion_probabilities
from sampling.draws import pareto_draw
from sampling.measures.families import FloatArray

IndexArray = NDArray[np.int64]
LEAST_PER_TOPIC = 2  # with one judgment a topic's variance cannot be estimated


def topic_counts(
    sizes: ArrayLike, topic_index: ArrayLike, count: int, least: int = LEAST_PER_TOPIC
) -> IndexArray:
    """Return whole numbers of judgments a topic, proportional to the topics' summed sizes, that sum to count.

    Proportional to summed sizes is Neyman's allocation when sizes are standard deviations of what an item adds. No
    topic gets fewer than `least` or than all its items with a size, nor more than these; the others share what is left
    in proportion. Fractions are settled by largest remainder, ties in favour of the earlier topic. With a budget of at
    least all items that have a size, every one of them is judged, and the sum is their number.

    Source: Neyman (1934), optimum allocation; Hamilton's method for the fractions.

    Parameters
    ----------
    sizes : array, shape (n_items,)
    topic_index : int array, shape (n_items,)
        Topic of each item, from 0.
    count : int
        Judgments in all.
    least : int
        At least 1.

    Returns
    -------
    int array, shape (largest topic index + 1,)

    Raises
    ------
    ValueError
        Sizes negative, not finite or all 0; topics that do not fit; a count too small for every topic's least.

    Examples
    --------
    >>> topic_counts([3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0], [0, 0, 0, 0, 1, 1, 1, 1], 5).tolist()
    [3, 2]
    """
    size = numbers("sizes", sizes)
    topic = integers("topic_index", topic_index, size.size)
    if count != int(count):
        raise ValueError(f"count must be a whole number, got {count}")
    if least < 1:
        raise ValueError(f"least must be at least 1, got {least}")
    n_topics = int(topic.max()) + 1
    most = np.bincount(topic[size > 0.0], minlength=n_topics)
    if not most.any():
        raise ValueError("at least 1 size must be positive, got 0")
    lower = np.minimum(least, most)
    if count < lower.sum():
        raise ValueError(
            f"count must be at least {lower.sum()}, {least} judgments (or all there are) in each of "
            f"{np.count_nonzero(most)} topics, got {count}"
        )
    if count >= most.sum():
        return most.astype(np.int64)
    total = np.bincount(topic, weights=size / size.max(), minlength=n_topics).astype(np.float64)
    shares = _bounded_shares(total, lower, most, count)
    whole = np.floor(shares).astype(np.int64)
    remainder = np.where(whole < most, shares - whole, -1.0)
    order = np.argsort(-remainder, kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return whole


def _bounded_shares(total: FloatArray, lower: NDArray[Any], upper: NDArray[Any], count: int) -> FloatArray:
    """Return min(upper, max(lower, c * total)) with the c that makes the sum count."""
    known = upper > 0
    # A total that vanishes beside the largest one still has a share: its bounds.
    safe = np.where(known, np.maximum(total, np.finfo(np.float64).tiny * 1e10), 1.0)

    def shares(c: float) -> FloatArray:
        return np.where(known, np.clip(c * safe, lower, upper), 0.0)

    # The sum is linear in c between these points; find the two that hold count between them.
    bends = np.unique(np.concatenate([(lower / safe)[known], (upper / safe)[known]]))
    low, high = 0, bends.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shares(bends[middle]).sum() <= count else (low, middle)
    left, right = shares(bends[low]), shares(bends[high])
    gap = right.sum() - left.sum()
    part = 0.0 if gap == 0.0 else (count - left.sum()) / gap
    return np.asarray(np.clip(left + part * (right - left), lower, upper), dtype=np.float64)


def stratified_probabilities(
    sizes: ArrayLike, topic_index: ArrayLike, count: int, least: int = LEAST_PER_TOPIC
) -> FloatArray:
    """Return inclusion probabilities proportional to sizes within a topic that sum to its `topic_counts`.

    Raises
    ------
    ValueError
        As `topic_counts`.

    Examples
    --------
    >>> stratified_probabilities([3.0, 1.0, 2.0, 2.0], [0, 0, 1, 1], 2, least=1).tolist()
    [0.75, 0.25, 0.5, 0.5]
    """
    counts = topic_counts(sizes, topic_index, count, least)
    size = numbers("sizes", sizes)
    pi = np.zeros(size.size)
    for topic, items in _by_topic(integers("topic_index", topic_index, size.size)):
        if counts[topic]:
            pi[items] = inclusion_probabilities(size[items], int(counts[topic]))
    return pi


def stratified_pareto_draw(
    inclusion_probability: ArrayLike, prn: ArrayLike, topic_index: ArrayLike
) -> IndexArray:
    """Return as many items of every topic as its probabilities sum to, in frame order: `pareto_draw` by topic.

    Raises
    ------
    ValueError
        As `pareto_draw`; probabilities of a topic that do not sum to a whole number (to 1e-6).

    Examples
    --------
    >>> stratified_pareto_draw([0.5, 0.5, 1.0], [0.9, 0.1, 0.5], [0, 0, 1]).tolist()
    [1, 2]
    """
    pi = probabilities("inclusion_probability", inclusion_probability)
    random_number = probabilities("prn", prn, pi.size)
    drawn = [np.zeros(0, dtype=np.int64)]
    for topic, items in _by_topic(integers("topic_index", topic_index, pi.size)):
        total = float(pi[items].sum())
        if abs(total - round(total)) > 1e-6:
            raise ValueError(f"probabilities of topic {topic} must sum to a whole number, got {total}")
        if round(total):
            drawn.append(items[pareto_draw(pi[items], random_number[items], round(total))])
    return np.sort(np.concatenate(drawn))


def _by_topic(topic: IndexArray) -> list[tuple[int, IndexArray]]:
    """Return every topic with its items, in frame order."""
    order = np.argsort(topic, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(topic[order]) != 0)))
    return [(int(topic[items[0]]), items) for items in np.split(order, starts[1:])]
