"""Two rules on careless work that need one peer or none: a pace at which nobody reads, and agreement as by chance."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray

FEWEST_ANSWERS = 30
FAST_MILLISECONDS = 1000
LONG_TEXT = 200  # characters: nobody reads them within a second
MOST_FAST = 0.5
FEWEST_SHARED = 30
LEAST_KAPPA = 0.2
ONE_SIDED = 1.645  # standard normal deviations: 95 % on one side


def lowest_share(n_of_kind: int, n: int, level: float = 0.95) -> float:
    """Return the exact one-sided lower bound of a share. Source: Clopper and Pearson (1934).

    >>> round(lowest_share(19, 30), 6), round(lowest_share(20, 30), 6), lowest_share(0, 30)
    (0.466914, 0.500561, 0.0)
    """
    if not 0 <= n_of_kind <= n:
        raise ValueError(f"the number must lie between 0 and {n}, got {n_of_kind}")
    return float(scipy.stats.beta.ppf(1 - level, n_of_kind, n - n_of_kind + 1)) if n_of_kind else 0.0


def is_too_fast(n_fast: int, n: int) -> bool:
    """Return whether surely more than half of the answers on long documents came before anybody could read.

    >>> is_too_fast(19, 30), is_too_fast(20, 30), is_too_fast(29, 29)
    (False, True, False)
    """
    return n >= FEWEST_ANSWERS and lowest_share(n_fast, n) > MOST_FAST


@dataclass(frozen=True)
class ChanceAgreement:
    """Agreement with the others on shared items, less what chance gives.

    Attributes
    ----------
    n : int
        Shared items.
    observed : float
        Ao: how often a random other judge of the item gives the same grade.
    expected : float
        Ae: the same for two grades from different items: over grades the assessor's share times the others'.
    kappa : float
        (Ao - Ae) / (1 - Ae); NaN where the grades do not differ at all.
    se : float
        Of the jackknife over items, about its mean; NaN where kappa is unknown with some item left out.
    """

    n: int
    observed: float
    expected: float
    kappa: float
    se: float

    @property
    def is_no_better_than_chance(self) -> bool:
        """Return whether kappa is surely below LEAST_KAPPA; False where it is unknown or few items are shared."""
        return self.n >= FEWEST_SHARED and self.kappa + ONE_SIDED * self.se < LEAST_KAPPA


def chance_agreement(own: ArrayLike, others: ArrayLike) -> ChanceAgreement:
    """Return kappa of an assessor with the others, who need not be the same on every item.

    Parameters
    ----------
    own : array of int, shape (n,)
        The assessor's grades of the shared items, from 0.
    others : array, shape (n, n_grades)
        Of each item the share of the others' grades that are this one; rows sum to 1.

    Source: Cohen (1960) with one peer; Miller (1974) for the jackknife.

    Examples
    --------
    >>> peer = np.eye(2)[[0, 0, 1, 1]]
    >>> found = chance_agreement([0, 1, 1, 1], peer)
    >>> found.observed, found.expected, found.kappa
    (0.75, 0.5, 0.5)
    """
    grade, shares = np.asarray(own, dtype=np.int64), np.asarray(others, dtype=np.float64)
    if grade.ndim != 1 or shares.ndim != 2 or shares.shape[0] != grade.size:
        raise ValueError(f"there must be a row of shares for each of {grade.size} items, got {shares.shape}")
    n = grade.size
    if n < 2:
        return ChanceAgreement(n, math.nan, math.nan, math.nan, math.nan)
    same = shares[np.arange(n), grade]
    given = np.bincount(grade, minlength=shares.shape[1]).astype(np.float64)
    received = shares.sum(axis=0)
    product = float(given @ received)
    # What is left of the sums without each item in turn.
    left_same = same.sum() - same
    left_product = product - received[grade] - shares @ given + same
    left_out = _kappa(left_same / (n - 1), left_product / (n - 1) ** 2)
    observed, expected = float(same.mean()), product / n**2
    kappa = float(_kappa(np.array([observed]), np.array([expected]))[0])
    spread = float(((left_out - left_out.mean()) ** 2).sum())
    return ChanceAgreement(n, observed, expected, kappa, math.sqrt((n - 1) / n * spread))


def _kappa(observed: FloatArray, expected: FloatArray) -> FloatArray:
    is_known = expected < 1 - 1e-12
    room = np.where(is_known, 1 - expected, 1.0)
    return np.where(is_known, (observed - expected) / room, np.nan)
