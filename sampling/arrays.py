"""Checks of arrays where they come in: in the constructors of what functions take, and where a table becomes sparse.

Whatever takes such an object trusts it. Every check names the array, its bound and the value given.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.sparse import SparseRuns, from_dense

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
MAX_VALUE = 1e100  # squares and sums of anything below stay finite


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


def as_indices(name: str, values: ArrayLike, n_items: int) -> IndexArray:
    """Return the values as integers from 0; ValueError unless they are n_items such."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.shape != (n_items,) or n_items == 0:
        raise ValueError(f"{name} must be {n_items} integers, got {array.dtype} of shape {array.shape}")
    if int(array.min()) < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}")
    return array.astype(np.int64)
