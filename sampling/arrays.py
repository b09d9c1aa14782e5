"""Checks of arrays where they come in: in the constructors of what functions take, and where a table becomes sparse.

Whatever takes such an object trusts it. Every check names the array, its bound and the value given.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.measures.sparse import SparseRuns, from_dense

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
MAX_VALUE = 1e100  # squares and sums of anything below stay finite


def numbers(
    name: str,
    values: ArrayLike,
    n_items: int | None = None,
    *,
    ndim: int | None = 1,
    least: float = 0.0,
    most: float = MAX_VALUE,
) -> FloatArray:
    """Return the values as floats; ValueError unless finite, within bounds, of these axes and not empty.

    `n_items` is the length of the last axis; `ndim` None allows any number of axes.
    """
    array = np.asarray(values, dtype=np.float64)
    if ndim is not None and (array.ndim != ndim or array.size == 0):
        raise ValueError(f"{name} must have {ndim} axes and at least 1 item, got shape {array.shape}")
    if n_items is not None and array.shape[-1:] != (n_items,):
        raise ValueError(f"{name} must have {n_items} items, got {array.shape[-1] if array.ndim else 'none'}")
    refused = array[~((array >= least) & (array <= most))]
    if refused.size:
        raise ValueError(f"{name} must be within [{least:g}, {most:g}], got {refused[0]}")
    return array


def probabilities(name: str, values: ArrayLike, n_items: int | None = None) -> FloatArray:
    """Return the values as floats; ValueError unless each lies within [0, 1]."""
    return numbers(name, values, n_items, most=1.0)


def distribution(name: str, values: ArrayLike, n_items: int | None = None) -> FloatArray:
    """Return the values as floats; ValueError unless they are probabilities that sum to 1 (to 1e-9)."""
    array = numbers(name, values, n_items, most=1.0)
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, got {array.sum()}")
    return array


def integers(name: str, values: ArrayLike, n_items: int, most: int | None = None) -> IndexArray:
    """Return the values as integers from 0; ValueError unless they are n_items such, at least one."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.shape != (n_items,) or n_items == 0:
        raise ValueError(f"{name} must be {n_items} integers, got {array.dtype} of shape {array.shape}")
    if int(array.min()) < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}")
    if most is not None and int(array.max()) > most:
        raise ValueError(f"{name} must be at most {most}, got {array.max()}")
    return array.astype(np.int64)


def run_table(name: str, weights: ArrayLike | SparseRuns) -> SparseRuns:
    """Return weights[run, item] as entries; ValueError unless finite, within [0, 1e100] and not an empty table.

    Entries were checked where they were made.
    """
    return weights if isinstance(weights, SparseRuns) else from_dense(numbers(name, weights, ndim=2))
