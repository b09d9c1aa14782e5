"""Tests of differences by flipping the signs of topics: approximate beside t, and stepped down over many pairs.

If two runs do not differ on topics of this kind, and the differences are symmetric about 0, each topic's difference is
as likely with the other sign. All 2^n assignments of signs are sampled; the observed one counts among them.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats

FLIPS = 10_000
SEED = 20070611
LEVEL_ROUNDING = 1e-12  # of the observed sum: flips that give it again by rounding
CHUNK_NUMBERS = 1_000_000


@lru_cache(maxsize=4)
def _signs(n_topics: int, flips: int, seed: int) -> Floats:
    """Return [flip, topic] of -1 and 1."""
    drawn = np.random.default_rng(seed).integers(0, 2, (flips, n_topics))
    signs = np.asarray(drawn * 2.0 - 1.0, dtype=np.float64)
    signs.flags.writeable = False  # kept for the next caller
    return signs


def randomisation_p(values: ArrayLike, *, flips: int = FLIPS, seed: int = SEED) -> Floats:
    """Return by pair the two-sided p of a mean of 0, of differences [pair, topic], by random signs of topics.

    ``(1 + flips at least as far from 0) / (1 + flips)``. Assumption: the topics are an independent sample, and their
    differences symmetric about 0 if there is none. The same seed gives the same answer.

    Source: Fisher (1935), The design of experiments, section 21; Smucker, Allan and Carterette (2007) for topics.
    """
    z = _table(values)
    observed = np.abs(z.sum(axis=1))
    least = observed * (1 - LEVEL_ROUNDING)
    beyond = np.zeros(len(z))
    signs = _signs(z.shape[1], flips, seed)
    step = max(1, CHUNK_NUMBERS // flips)
    for start in range(0, len(z), step):
        part = slice(start, start + step)
        beyond[part] = (np.abs(signs @ z[part].T) >= least[part]).sum(axis=0)
    return np.asarray((1 + beyond) / (1 + flips))


def step_down_p(values: ArrayLike, *, flips: int = FLIPS, seed: int = SEED) -> Floats:
    """Return by pair the p adjusted for all pairs by step-down max-t, of differences [pair, topic].

    One assignment of signs holds for all pairs, so that their correlation stays. The largest |t| of the pairs that are
    left, each t with the spread of its own flipped differences, is compared with the observed ones from the largest
    down. Approximate: with skewed differences, from few topics, it finds more false differences than Holm's
    adjustment does. A pair whose differences are all 0 has 1.

    Source: Westfall and Young (1993), algorithm 2.8, with signs in place of permutations.
    """
    z = _table(values)
    n = z.shape[1]
    if n < 2:
        raise ValueError(f"values must have at least 2 topics, got {n}")
    squares = np.square(z).sum(axis=1)
    observed = _statistics(z.sum(axis=1), squares, n)
    order = np.argsort(
        observed, kind="stable"
    )  # the smallest first: the maximum of those not larger accumulates
    ascending, least = z[order], observed[order] * (1 - LEVEL_ROUNDING)
    beyond = np.zeros(len(z))
    signs = _signs(n, flips, seed)
    step = max(1, CHUNK_NUMBERS // max(1, len(z)))
    for start in range(0, flips, step):
        drawn = _statistics(signs[start : start + step] @ ascending.T, squares[order], n)
        beyond += (np.maximum.accumulate(drawn, axis=1) >= least).sum(axis=0)
    p = (1 + beyond) / (1 + flips)
    adjusted = np.empty(len(z))
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return np.asarray(np.where(squares > 0, adjusted, 1.0))


def _statistics(total: Floats, squares: Floats, n: int) -> Floats:
    """Return |t| of sums of n numbers whose squares sum to `squares`; infinite where all are equal."""
    spread = np.maximum(squares - total**2 / n, 0.0) / (n - 1)
    flat = spread <= 1e-12 * squares
    size = np.abs(total) / np.sqrt(n * np.where(flat, 1.0, spread))
    return np.asarray(np.where(flat, np.where(squares > 0, np.inf, 0.0), size))


def _table(values: ArrayLike) -> Floats:
    z = np.atleast_2d(finite("values", values))
    if z.ndim != 2 or z.shape[1] < 1:
        raise ValueError(f"values must be [pair, topic], got shape {np.shape(values)}")
    return z
