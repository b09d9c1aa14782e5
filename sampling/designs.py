"""Designs: the rule that gives every item of a frame its probability. Nothing here is random.

Draws are made without replacement: inclusion probabilities pi, sum pi = the expected number of judgments. They come
from sizes, which may be mixed with other distributions over the items. The designs with replacement of Schnabel et
al. (2016), each for one question, are in experiments/papers/designs.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import distribution, numbers, run_table
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks

# ---- distributions over the items ------------------------------------------------------------------


def normalise(sizes: ArrayLike) -> FloatArray:
    """Return sizes/sum(sizes), a distribution; ValueError when no size is positive.

    Examples
    --------
    >>> normalise([1, 3]).tolist()
    [0.25, 0.75]
    """
    array = numbers("sizes", sizes)
    if not np.any(array > 0.0):
        raise ValueError(
            "at least 1 size must be positive, got 0: the rankings are empty or the utilities all 0"
        )
    scaled = array / array.max()
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def uniform_design(n_items: int) -> FloatArray:
    """Return 1/n_items for every item of the frame; ValueError when the frame is empty."""
    if n_items < 1:
        raise ValueError(f"n_items must be at least 1, got {n_items}")
    return np.full(n_items, 1.0 / n_items)


def average_run_design(weights: ArrayLike | SparseRuns) -> FloatArray:
    """Return the mean over runs of w_j/sum(w_j): mixed in at 10 to 20 % it keeps judgments useful for the
    other known runs.

    A run that returns nothing has no distribution and is left out of the mean.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items), or SparseRuns

    Raises
    ------
    ValueError
        Every run is empty.
    """
    rows = run_table("weights", weights)
    if not rows.value.size:
        raise ValueError("at least 1 run must return an item of the frame, got 0")
    largest = np.zeros(rows.n_runs)
    np.maximum.at(largest, rows.run, rows.value)
    scaled = rows.value / largest[rows.run]
    total = np.bincount(rows.run, weights=scaled, minlength=rows.n_runs)
    n_returning = np.count_nonzero(largest)
    return np.asarray(rows.item_sums(scaled / total[rows.run]) / n_returning, dtype=np.float64)


def mixture(design: ArrayLike, others: Sequence[ArrayLike], shares: Sequence[float]) -> FloatArray:
    """Return (1 - sum of shares) * design + sum of share_j * other_j, each a distribution over the same
    items.

    A share of `uniform_design` puts a floor under every item of the pool; a share of `average_run_design`
    serves reuse. Shares are parts of all draws, so their meaning does not depend on the size of the pool.

    Raises
    ------
    ValueError
        Not one share per other design, a share outside [0, 1), shares that sum to 1 or more, or a part that
        is not a distribution over the same items.

    Examples
    --------
    >>> mixture([1.0, 0.0], [uniform_design(2)], [0.5]).tolist()
    [0.75, 0.25]
    """
    base = distribution("design", design)
    if len(others) != len(shares):
        raise ValueError(
            f"mixture needs 1 share per other design, got {len(others)} designs and {len(shares)} shares"
        )
    if not all(0.0 <= share < 1.0 for share in shares):
        raise ValueError(f"shares must be within [0, 1), got {list(shares)}")
    if sum(shares) >= 1.0:
        raise ValueError(f"shares must sum to less than 1, got {sum(shares)}")
    mixed = (1.0 - sum(shares)) * base
    for other, share in zip(others, shares, strict=True):
        mixed = mixed + share * distribution("other design", other, base.size)
    return np.asarray(mixed, dtype=np.float64)


# ---- without replacement: inclusion probabilities ------------------------------------------------


def inclusion_probabilities(sizes: ArrayLike, expected_count: float) -> FloatArray:
    """Return pi = min(1, c * size) with sum pi = expected_count: the probability that each item is judged.

    Items that would exceed 1 become certain and the rest share what is left. Size 0 keeps pi = 0; every
    other item has pi > 0. With a budget of at least as many items as have a size, all of these are certain.

    Parameters
    ----------
    sizes : array, shape (n_items,)
        Finite, not negative, at least one positive.
    expected_count : float
        Judgments wanted, above 0; need not be a whole number.

    Raises
    ------
    ValueError
        Sizes negative, not finite or all 0; expected_count not positive and finite.

    Examples
    --------
    >>> inclusion_probabilities([8.0, 1.0, 1.0, 0.0], 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    scaled = normalise(sizes)
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    size = np.asarray(sizes, dtype=np.float64)
    positive = size > 0.0
    n_positive = int(np.count_nonzero(positive))
    if expected_count >= n_positive:
        return positive.astype(np.float64)
    # No more items than the budget can be certain: only so many of the largest need an order.
    n_largest = min(int(expected_count) + 1, n_positive)
    split = np.partition(scaled, scaled.size - n_largest)
    largest = np.sort(split[scaled.size - n_largest :])[::-1]
    # Sum from the smallest size up, so that a large ratio between sizes does not wipe the small ones out.
    rest = split[: scaled.size - n_largest].sum()
    tail = np.cumsum(np.append(rest, largest[::-1]))[:0:-1]
    # The certain items are the largest; the first k that leaves no item above 1 is the right number of them.
    k = int(np.argmax((expected_count - np.arange(n_largest)) * largest <= tail))
    pi = np.zeros(scaled.size)
    if tail[k] == 0.0:  # the rest are below the smallest double beside the largest size: share evenly
        pi[positive] = min((expected_count - k) / (n_positive - k), 1.0)
    else:
        pi[positive] = np.clip(
            (expected_count - k) * (scaled[positive] / tail[k]), np.finfo(np.float64).tiny, 1.0
        )
    pi[scaled > largest[k]] = 1.0
    return pi


# ---- the depth pool, for comparison --------------------------------------------------------------


@dataclass(frozen=True)
class DepthPool:
    """Return of `depth_pool`.

    Attributes
    ----------
    depth : int
        Every document that some run ranks within it is judged.
    inclusion_probability : array, shape (n_items,)
        1 inside the depth, 0 outside.
    n_items : int
        Judgments it costs.
    left_out : array, shape (n_runs,)
        Share of each run's weight on documents that are never judged; 0 for a run without weight.
    """

    depth: int
    inclusion_probability: FloatArray
    n_items: int
    left_out: FloatArray


def depth_pool(
    ranks: ArrayLike | SparseRuns,
    weights: ArrayLike | SparseRuns,
    *,
    budget: float | None = None,
    depth: int | None = None,
) -> DepthPool:
    """Return the traditional design: judge all that some run ranks within a depth, and nothing else.

    No estimate of a run is unbiased under it unless that run's `left_out` is 0: documents outside count as not
    relevant, whatever they are. No sample, no standard error.

    Parameters
    ----------
    ranks : int array, shape (n_runs, n_items), or SparseRuns
        0 = not returned.
    weights : array, shape (n_runs, n_items), or SparseRuns
        Of the measure.
    budget : float
        Judgments that can be afforded: the largest depth that costs no more is taken.
    depth : int
        The depth itself. Exactly one of the two is given.

    Raises
    ------
    ValueError
        Both or neither of budget and depth; a depth below 1; a budget that does not pay for depth 1; ranks or weights
        out of bounds.

    Examples
    --------
    >>> depth_pool([[1, 2, 0], [1, 0, 2]], [[0.5, 0.25, 0], [0.5, 0, 0.25]], budget=2).depth
    1
    """
    entries = as_ranks(ranks)
    rows = run_table("weights", weights)
    if rows.shape != entries.shape:
        raise ValueError(f"weights must have the shape of ranks, {entries.shape}, got {rows.shape}")
    if (budget is None) == (depth is None):
        raise ValueError(f"give either a budget or a depth, got {budget} and {depth}")
    best = entries.item_extremes(np.minimum, entries.value.astype(np.float64))  # 0: no run returns it
    if depth is None:
        depth = _affordable_depth(best[best > 0.0], float(budget))  # type: ignore[arg-type]
    if depth < 1:
        raise ValueError(f"depth must be at least 1, got {depth}")
    inside = (best > 0.0) & (best <= depth)
    total, outside = (
        np.bincount(rows.run, weights=values, minlength=rows.n_runs)
        for values in (rows.value, np.where(inside[rows.item], 0.0, rows.value))
    )
    return DepthPool(
        depth=depth,
        inclusion_probability=inside.astype(np.float64),
        n_items=int(np.count_nonzero(inside)),
        left_out=np.divide(outside, total, out=np.zeros(rows.n_runs), where=total > 0.0),
    )


def _affordable_depth(best: FloatArray, budget: float) -> int:
    """Return the largest depth, among those at which some document comes in, that costs at most the budget."""
    depths, new = np.unique(best, return_counts=True)
    cost = np.cumsum(new)
    if cost.size == 0 or not budget >= cost[0]:
        least = int(cost[0]) if cost.size else 0
        raise ValueError(f"budget must be at least {least}, the cost of depth 1, got {budget}")
    return int(depths[np.searchsorted(cost, budget, side="right") - 1])
