"""Draws with replacement, and the mixture of the designs of several batches."""

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import distribution, numbers
from sampling.draws import IndexArray
from sampling.measures.families import FloatArray


def draw_with_replacement(q: ArrayLike, n_draws: int, rng: np.random.Generator) -> IndexArray:
    """Return the items of n_draws independent draws from Q, in the order drawn; the same item may come again.

    Source: Schnabel et al. (2016), section 3.5. A label may be used again for a repeated item only if
    labels are free of noise; otherwise have it judged again or draw without replacement.

    Raises
    ------
    ValueError
        q is not a distribution; n_draws below 1.
    """
    probability = distribution("q", q)
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}")
    drawn = rng.choice(probability.size, size=n_draws, p=probability / probability.sum())
    return np.asarray(drawn, dtype=np.int64)


def mixture_probability(designs: ArrayLike, counts: ArrayLike) -> FloatArray:
    """Return sum over batches b of n_b/n * Q_b(item): the probability to divide by when batches are pooled.

    It needs every batch's Q at every drawn item, not only the Q the item was drawn from. Unbiased as long
    as no batch's design depends on an earlier batch's labels; adaptive batches keep their own Q and are
    averaged with weights n_b/n.

    Source: Schnabel et al. (2016), Eq 5 (the balance heuristic of multiple importance sampling).

    Parameters
    ----------
    designs : array, shape (n_batches, n_items)
        Each row a distribution.
    counts : int array, shape (n_batches,)
        Draws of each batch, at least 1.

    Raises
    ------
    ValueError
        Rows that are no distributions, or not one count of at least 1 per batch.

    Examples
    --------
    >>> mixture_probability([[1.0, 0.0], [0.5, 0.5]], [1, 1]).tolist()
    [0.75, 0.25]
    """
    rows = numbers("designs", designs, ndim=2)
    for row in rows:
        distribution("a batch's design", row)
    drawn = np.asarray(counts)
    if drawn.dtype.kind not in "iu" or drawn.shape != (rows.shape[0],):
        raise ValueError(f"counts must be {rows.shape[0]} integers, one per batch, got {drawn.tolist()}")
    if drawn.min() < 1:
        raise ValueError(f"counts must be at least 1, got {drawn.min()}")
    mixed = np.zeros(rows.shape[1])
    for count, row in zip(drawn.tolist(), rows, strict=True):
        mixed += count / int(drawn.sum()) * row
    return mixed
