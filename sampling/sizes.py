"""Checks of the arrays that designs are made of, and how far the runs' weights lie apart, item by item."""

import numpy as np
from numpy.typing import ArrayLike

from sampling.measures.families import FloatArray
from sampling.sparse import SparseRuns, from_dense

MAX_VALUE = 1e100  # squares and sums of anything below stay finite


class IdenticalSystemsError(ValueError):
    """Every run weighs every item alike: each difference is exactly 0 and there is nothing to judge."""


class UnsupportedWeightError(ValueError):
    """An item that matters has probability 0: an estimate from such a sample would be biased."""


# ---- checks --------------------------------------------------------------------------------------


def as_nonnegative(name: str, values: ArrayLike, ndim: int) -> FloatArray:
    """Return the values as floats; ValueError unless finite, within [0, 1e100], of `ndim` axes and not
    empty.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must have {ndim} axes and at least 1 item, got shape {array.shape}")
    refused = array[~((array >= 0.0) & (array <= MAX_VALUE))]
    if refused.size:
        raise ValueError(f"{name} must be within [0, {MAX_VALUE:g}], got {refused[0]}")
    return array


def as_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless each lies within [0, 1]."""
    array = as_nonnegative(name, values, 1)
    if array.max() > 1.0:
        raise ValueError(f"{name} must be within [0, 1], got {array.max()}")
    return array


def as_distribution(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless they are probabilities that sum to 1 (to 1e-9)."""
    array = as_probabilities(name, values)
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, got {array.sum()}")
    return array


def as_finite(name: str, values: ArrayLike, n_items: int) -> FloatArray:
    """Return the values as floats; ValueError unless finite and ending in an axis of n_items."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] != n_items:
        raise ValueError(f"{name} must end in an axis of {n_items} items, got shape {array.shape}")
    refused = array[~(np.abs(array) <= MAX_VALUE)]
    if refused.size:
        raise ValueError(f"{name} must be finite, within +-{MAX_VALUE:g}, got {refused[0]}")
    return array


def as_run_weights(name: str, weights: ArrayLike | SparseRuns) -> SparseRuns:
    """Return weights[run, item] as entries; ValueError unless finite, within [0, 1e100] and not an empty table."""
    if not isinstance(weights, SparseRuns):
        return from_dense(as_nonnegative(name, weights, 2))
    if weights.n_runs * weights.n_items == 0:
        raise ValueError(f"{name} must have 2 axes and at least 1 item, got shape {weights.shape}")
    if weights.value.size:
        return weights.with_values(as_nonnegative(name, weights.value, 1))
    return weights


def require_same_items(name: str, array: FloatArray, n_items: int) -> None:
    """Return nothing when the array is about n_items items."""
    if array.shape[-1] != n_items:
        raise ValueError(f"{name} must have {n_items} items, got {array.shape[-1]}")


# ---- distances: how much an item's utility moves the answer ----------------------------------------


def distance_from(rows: SparseRuns, centre: FloatArray, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - centre)^2) per item, or its square; runs without an entry weigh 0."""
    deviation = np.abs(rows.value - centre[rows.item])
    n_absent = rows.n_runs - rows.counts()
    absent = np.where(n_absent > 0, centre, 0.0)
    # Dividing by the largest deviation first, squares neither overflow nor lose tiny weights.
    largest = np.maximum(rows.item_extremes(np.maximum, deviation), absent)
    scale = np.where(largest > 0.0, largest, 1.0)
    squares = rows.item_sums(np.square(deviation / scale[rows.item])) + n_absent * np.square(absent / scale)
    return np.asarray(
        np.square(largest) * squares if squared else largest * np.sqrt(squares), dtype=np.float64
    )


def distance_from_mean(rows: SparseRuns, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - mean w)^2) per item, or its square; exactly 0 where all runs weigh alike.

    The mean is taken first and the deviations from it after: a difference of two sums of squares would call
    runs different that are alike.
    """
    distance = distance_from(rows, rows.item_sums(rows.value) / rows.n_runs, squared=squared)
    # The mean of equal numbers may differ from them in the last bit; such a difference is not information.
    least, most = (rows.item_extremes(extreme, rows.value) for extreme in (np.minimum, np.maximum))
    distance[(most == 0.0) | ((least == most) & (rows.counts() == rows.n_runs))] = 0.0
    return distance
