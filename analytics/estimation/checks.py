"""Checks of arrays, for constructors of what functions take: each names the array, its bound and the value given."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimate import Floats, Ints


def finite(name: str, values: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    """Return `values` as a float array. Raise ValueError for NaN, infinity or another shape."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def probabilities(name: str, values: ArrayLike, n_items: int) -> Floats:
    """Return `values` as an array of `n_items` probabilities in (0, 1]. Raise ValueError otherwise."""
    array = finite(name, values, (n_items,))
    outside = (array <= 0) | (array > 1)
    if outside.any():
        raise ValueError(f"{name} must be in (0, 1], got {array[outside][0]}")
    return array


def integers(name: str, values: ArrayLike, least: int | None = None, most: int | None = None) -> Ints:
    """Return a flat array of int64: the given one, if it is such. Raise ValueError for another type or range."""
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a flat array of integers, got {array.dtype} with {array.ndim} axes")
    if least is not None and array.min() < least:
        raise ValueError(f"{name} must be at least {least}, got {array.min()}")
    if most is not None and array.max() > most:
        raise ValueError(f"{name} must be at most {most}, got {array.max()}")
    return array.astype(np.int64, copy=False)
