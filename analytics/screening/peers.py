"""Comparison with peers: an assessor's figure against the median and the spread of everybody else's."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.screening.log import Mask
from sampling.arrays import FloatArray, IndexArray

MAD_TO_SD = 1.4826  # of a normal distribution
FEWEST_PEERS = 4
FEWEST_JUDGMENTS = 30


@dataclass(frozen=True)
class Finding:
    """What one test says of every assessor.

    Attributes
    ----------
    p : (n_assessors,) array
        Probability of a figure at least so extreme under the null hypothesis; NaN where the assessor is not tested.
    effect : (n_assessors,) array
        The size of the deviation, in the unit that the test's `unit` names; NaN where not tested.
    refusals : dict of int to str
        By assessor why there is no test.
    topics : dict of int to tuple of int
        By assessor the topics that show the deviation, if the test knows any.
    """

    p: FloatArray
    effect: FloatArray
    refusals: dict[int, str]
    topics: dict[int, tuple[int, ...]]


def peer_centres(values: FloatArray) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Return of every assessor the median, the scaled MAD and the number of the others' known (not NaN) values."""
    centres, spreads = np.full(values.size, np.nan), np.full(values.size, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    numbers = np.full(values.size, known.size, dtype=np.int64)
    numbers[known] -= 1
    for one in range(values.size):
        others = values[known[known != one]]
        if others.size:
            centres[one] = np.median(others)
            spreads[one] = MAD_TO_SD * np.median(np.abs(others - centres[one]))
    return centres, spreads, numbers


def z_scores(values: FloatArray, *, least_spread: float = 0.0) -> tuple[FloatArray, IndexArray]:
    """Return every value less the peers' median over the peers' MAD, and the number of peers.

    NaN where the value is unknown, where fewer than FEWEST_PEERS others are known, or where they do not differ.
    """
    centres, spreads, n_peers = peer_centres(values)
    scale = np.maximum(spreads, least_spread)
    scale[~(scale > 0) | (n_peers < FEWEST_PEERS)] = np.nan
    return (values - centres) / scale, n_peers


def lower_tail(z: FloatArray, degrees: ArrayLike) -> FloatArray:
    """Return P(T <= z) by Student's t: with few peers their median and MAD are coarse."""
    return np.asarray(scipy.stats.t.cdf(z, np.maximum(degrees, 1)))


def two_sided(z: FloatArray, degrees: ArrayLike) -> FloatArray:
    return np.asarray(2.0 * scipy.stats.t.sf(np.abs(z), np.maximum(degrees, 1)))


def peer_rate(successes: FloatArray, totals: FloatArray) -> FloatArray:
    """Return of every assessor (k + 1) / (n + 2) of the others."""
    rate: FloatArray = (successes.sum() - successes + 1.0) / (totals.sum() - totals + 2.0)
    return rate


def upper_tail(successes: FloatArray, totals: FloatArray, rate: FloatArray) -> FloatArray:
    """Return P(X >= successes) for X binomial."""
    return np.asarray(scipy.stats.binom.sf(successes - 1, totals, rate))


def finding(
    p: FloatArray,
    effect: FloatArray,
    reason: str,
    topics: dict[int, tuple[int, ...]] | None = None,
    refusals: dict[int, str] | None = None,
) -> Finding:
    """Return the finding; assessors without a p get `reason` where `refusals` names no other."""
    named = dict(refusals or {})
    for one in np.flatnonzero(np.isnan(p)).tolist():
        named.setdefault(one, reason)
    for one in named:
        p[one] = effect[one] = np.nan
    return Finding(p, effect, named, topics or {})


def has_peers(known: Mask) -> Mask:
    """Return whether there are enough others with a figure."""
    return np.asarray(known.sum() - known >= FEWEST_PEERS)
