"""Expected average precision: what AP of a run is, on average over what the unjudged documents may turn out to be.

Every document of the pool is relevant with its own probability, independently; a judged one with 1 or 0.
Source: Carterette and Allan (2007), section 4.1. Their error term, "a negligible O(2^-n)", is wrong: Eq 1 is a ratio of
expectations, too high by about 1 / P, with P the sum of the probabilities.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray, probabilities
from sampling.experts import RankedPool


def expected_ap(pool: RankedPool, probability: ArrayLike) -> FloatArray:
    """Return E[AP] of every run by Eq 1: (1/P) sum p_i (1 + sum of p_j above) / rank_i, P over the whole pool.

    0 where P is 0.

    Parameters
    ----------
    probability : (n_documents,) array
        Of relevance, of every document of the pool.

    Returns
    -------
    (n_runs,) array

    Examples
    --------
    >>> expected_ap(RankedPool.of([[1, 2, 3]]), [0.8, 0.4, 0.6]).round(6).tolist()
    [0.888889]
    """
    p = probabilities("probability", probability, pool.n_documents)
    order, ranks = _order(pool)
    total = p.sum()
    return np.asarray(_pair_sums(ranks, p[order], 1.0) / total if total > 0 else np.zeros(pool.n_runs))


def exact_expected_ap(pool: RankedPool, probability: ArrayLike) -> FloatArray:
    """Return E[AP] of every run exactly: AP is a ratio, and 1/R is the integral of t^(R - 1) over [0, 1].

    E[AP] = integral of G(t) sum_i (1/rank_i) (p_i/q_i) (1 + t sum of p_j/q_j above), q_k = 1 - p_k + p_k t and G the
    product of all q_k: a polynomial of degree n - 1. Gauss-Legendre is exact with ceil(n/2) nodes; as G is as good as
    0 but near t = 1 where many are relevant, ceil(32 + 6 sqrt P) are enough.

    Parameters, returns
    -------------------
    As `expected_ap`.

    Examples
    --------
    >>> exact_expected_ap(RankedPool.of([[1, 2, 3]]), [0.8, 0.4, 0.6]).round(6).tolist()
    [0.82]
    """
    p = probabilities("probability", probability, pool.n_documents)
    order, ranks = _order(pool)
    expected = np.zeros(pool.n_runs)
    n_nodes = min(math.ceil(p.size / 2), math.ceil(32 + 6 * math.sqrt(p.sum())))
    nodes, weights = leggauss(n_nodes)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        q = 1 - p + p * t  # above 0: no node lies on 0
        product = math.exp(np.log(q).sum())
        expected += weight * product * _pair_sums(ranks, (p / q)[order], t)
    return expected


def expected_map(topics: Sequence[FloatArray]) -> FloatArray:
    """Return EMAP of every run: the mean over topics of E[AP]. ValueError without topics."""
    if not topics:
        raise ValueError("topics must be at least 1, got 0")
    mean: FloatArray = np.mean(np.asarray(topics, dtype=np.float64), axis=0)
    return mean


def _order(pool: RankedPool) -> tuple[np.ndarray, FloatArray]:
    """Return of every run the pool's documents from its first on, and their ranks."""
    order = np.argsort(pool.ranks, axis=1, kind="stable")
    return order, np.take_along_axis(pool.ranks, order, axis=1)


def _pair_sums(ranks: FloatArray, chances: FloatArray, pair_factor: float) -> FloatArray:
    """Return sum_i x_i (1 + f sum of x_j above) / rank_i of every run; all [run, place]."""
    above = np.cumsum(chances, axis=1) - chances
    sums: FloatArray = (chances * (1 + pair_factor * above) / ranks).sum(axis=1)
    return sums
