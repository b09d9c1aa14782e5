"""Samples of a pool by its bronze grades, as Bailey et al. (2008) drew them."""

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import integers, probabilities
from sampling.label_samples import IndexArray


def whole_counts(counts: ArrayLike) -> IndexArray:
    """Return whole numbers that sum to the rounded sum along the last axis: largest remainder, ties to the higher
    grade.

    Examples
    --------
    >>> whole_counts([0.5, 1.5, 3.0]).tolist()
    [0, 2, 3]
    """
    real = np.asarray(counts, dtype=np.float64)
    if real.ndim == 0 or not np.all((real >= 0.0) & (real <= 2.0**52)):
        raise ValueError(f"counts must be an array of numbers within [0, 2^52], got {real.tolist()}")
    whole = np.floor(real + 1e-9)
    missing = np.rint(real.sum(axis=-1, keepdims=True)) - whole.sum(axis=-1, keepdims=True)
    remainder = np.round(real - whole, 9)[..., ::-1]
    place = np.argsort(np.argsort(-remainder, axis=-1, kind="stable"), axis=-1)[..., ::-1]
    return np.asarray(whole + (place < missing), dtype=np.int64)


def nested_sample(random_number: ArrayLike, stratum: ArrayLike, counts: ArrayLike) -> IndexArray:
    """Return exactly counts[s] items of every stratum s, in frame order: those of the smallest random numbers.

    With the same numbers, larger counts give a superset: the cellwise larger of two counts is the union of their
    samples. The paper's "full" sample needs this; two separate draws would together be larger.

    Parameters
    ----------
    random_number : array, shape (n_items,)
        One number an item, drawn once: `draws.permanent_random_numbers`.
    stratum : int array, shape (n_items,)
        From 0: a cell of topic and bronze grade.
    counts : int array, shape (n_strata,)

    Raises
    ------
    ValueError
        More wanted than a stratum holds; a stratum without a count; lengths that differ.

    Examples
    --------
    >>> nested_sample([0.3, 0.1, 0.2, 0.9], [0, 0, 1, 0], [2, 1]).tolist()
    [0, 1, 2]
    """
    number = probabilities("random_number", random_number)
    cell = integers("stratum", stratum, number.size)
    sizes = integers("counts", counts, np.asarray(counts).size)
    there = np.bincount(cell, minlength=sizes.size)
    if there.size > sizes.size:
        raise ValueError(f"counts must have one number a stratum, {there.size}, got {sizes.size}")
    if np.any(sizes > there):
        short = int(np.argmax(sizes > there))
        raise ValueError(f"counts must be at most {there[short]} in stratum {short}, got {sizes[short]}")
    order = np.lexsort((number, cell))
    place = np.arange(number.size) - np.repeat(np.cumsum(there) - there, there)
    chosen: IndexArray = np.sort(order[place < sizes[cell[order]]])
    return chosen
