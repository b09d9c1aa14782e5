"""Many differences at once, with the correlation of their errors: the step-down max-t test.

Holm's test allows for any dependence of the errors. Differences of runs share the runs, the documents and the judges,
so that their errors hang together, and the largest of many correlated statistics is smaller than that of independent
ones. Here the errors of all runs are drawn together; a pair is told apart whose statistic is above what the largest of
all statistics reaches in 5 of 100 draws, and again among the pairs that are left, until no more are.

It takes any set of pairs: the fewer are asked about, the more of them are told apart.

Source: Westfall and Young (1993), algorithm 2.8; Romano and Wolf (2005), exact and approximate stepdown methods;
Mogstad, Romano, Shaikh and Wilhelm (2024) for ranks.
"""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Floats

Bools = NDArray[np.bool_]
DRAWS = 5_000
FEWEST_DRAWS = 100
LEAST = 1e-300  # a p-value of which there still is a normal quantile
_NO_VARIANCE = 1e-12  # of the largest variance of a difference: what is left of equal errors is rounding


class PairTest:
    """The step-down max-t test of differences of runs.

    Controls the chance of any false rejection, as far as the covariance of the errors is right and the statistics, each
    brought to the normal scale by its own p-value, are jointly normal. A pair whose errors are equal by the covariance,
    though it has a p-value, is drawn as independent of all others. The same seed gives the same answers.

    Parameters
    ----------
    p_values : array [run, run]
        Two-sided, of t or normal, symmetric; NaN for a pair that is not tested. The diagonal is not read. 0 is a
        certain difference and always told apart.
    covariance : array [run, run]
        Of the runs' estimates, or of their deviations from the mean: only differences count.
        `analytics.estimation.ranking.covariance_from_pairs` makes one.
    seed, draws : int

    Raises
    ------
    ValueError
        p-values outside [0, 1] or not symmetric; a table that is no covariance; fewer than 100 draws.
    """

    def __init__(self, p_values: ArrayLike, covariance: ArrayLike, *, seed: int, draws: int = DRAWS) -> None:
        table = finite("covariance", covariance)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not np.allclose(table, table.T):
            raise ValueError(f"covariance must be square and symmetric, got shape {table.shape}")
        n = len(table)
        size, axes = np.linalg.eigh((table + table.T) / 2)
        if size.min() < -1e-8 * max(1e-300, size.max()):
            raise ValueError(f"covariance must be positive semidefinite, got an eigenvalue {size.min()}")
        p = np.array(p_values, dtype=np.float64)
        if p.shape != (n, n) or not np.array_equal(p, p.T, equal_nan=True):
            raise ValueError(f"p_values must be a symmetric table of {n} runs, got shape {p.shape}")
        np.fill_diagonal(p, np.nan)
        if (p < 0).any() or (p > 1).any():
            raise ValueError(f"p_values must be within [0, 1], got {p[(p < 0) | (p > 1)][0]}")
        if draws < FEWEST_DRAWS:
            raise ValueError(f"draws must be at least {FEWEST_DRAWS}, got {draws}")
        self.is_tested = np.isfinite(p)
        self._statistic = np.where(p == 0, np.inf, -scipy.special.ndtri(np.maximum(p, LEAST) / 2))
        variance = np.diagonal(table)[:, None] + np.diagonal(table) - 2 * table
        self._is_alone = variance <= _NO_VARIANCE * variance.max()
        self._scale = (1 / np.sqrt(np.where(self._is_alone, 1.0, variance))).astype(np.float32)
        self._rng = np.random.default_rng(seed)
        noise = self._rng.standard_normal((n, draws))
        # single precision: a drawn error needs no more, and takes half the time
        self._errors = ((axes * np.sqrt(np.maximum(size, 0.0))) @ noise).astype(np.float32)  # [run, draw]

    def pairs_apart(self, runs: Sequence[int] | None = None, *, level: float = 0.05) -> Bools:
        """Return the table [run, run] of the pairs told apart, of all pairs or of those of some runs with any other.

        Raises
        ------
        ValueError
            A level outside (0, 1).
        """
        asked = left = _pairs_in_question(self.is_tested, runs, level)
        while left.any():
            beyond = left & (self._statistic > self._largest(left, level))
            left = left & ~beyond
            if not beyond.any():
                break
        apart = asked & ~left
        return np.asarray(apart | apart.T)

    def _largest(self, pairs: Bools, level: float) -> float:
        """Return what the largest statistic of the pairs, [i, j] with i < j, exceeds in a share `level` of the draws.

        At least what a single pair needs, however the draws have fallen.
        """
        largest = np.zeros(self._errors.shape[1], dtype=np.float32)
        for run in np.flatnonzero(pairs.any(axis=1)).tolist():
            others = np.flatnonzero(pairs[run] & ~self._is_alone[run])
            if others.size:
                drawn = np.abs(self._errors[others] - self._errors[run])
                drawn *= self._scale[run, others, None]
                np.maximum(largest, drawn.max(axis=0), out=largest)
        for _ in range(int(np.count_nonzero(pairs & self._is_alone))):
            alone = np.abs(self._rng.standard_normal(largest.size, dtype=np.float32))
            np.maximum(largest, alone, out=largest)
        place = min(int(np.ceil((1 - level) * (largest.size + 1))), largest.size)
        return max(float(np.partition(largest, place - 1)[place - 1]), -float(scipy.special.ndtri(level / 2)))


def pairs_apart_by_holm(p_values: Floats, runs: Sequence[int] | None = None, *, level: float = 0.05) -> Bools:
    """Return what `PairTest.pairs_apart` does, by Holm's test: it asks nothing of the errors but their p-values.

    For topics like these: with the covariance of few topics' values, skewed as they are, more is told apart wrongly
    (benchmarks/claims.py).

    >>> pairs_apart_by_holm(np.array([[np.nan, 0.03], [0.03, np.nan]])).tolist()
    [[False, True], [True, False]]
    """
    asked = _pairs_in_question(np.isfinite(p_values), runs, level)
    apart = np.zeros(asked.shape, dtype=bool)
    apart[asked] = holm(p_values[asked]) < level
    return np.asarray(apart | apart.T)


def _pairs_in_question(is_tested: Bools, runs: Sequence[int] | None, level: float) -> Bools:
    """Return the pairs [i, j] with i < j that are tested, all or those of some runs; ValueError for a wrong level."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    asked = np.triu(is_tested, 1)
    if runs is not None:
        of_runs = np.isin(np.arange(len(asked)), list(runs))
        asked &= of_runs[:, None] | of_runs
    return asked


def paired_p_values(n_runs: int, pairs: tuple[ArrayLike, ArrayLike], p_values: Floats) -> Floats:
    """Return p-values of pairs as the table [run, run] that `PairTest` takes, NaN elsewhere.

    >>> paired_p_values(2, ([0], [1]), np.array([0.5])).tolist()
    [[nan, 0.5], [0.5, nan]]
    """
    table = np.full((n_runs, n_runs), np.nan)
    first, second = (np.asarray(side, dtype=np.int64) for side in pairs)
    table[first, second] = table[second, first] = p_values
    return table
