"""The ranking of runs with its uncertainty: the chance of every rank, ranks that hold at once, and Kendall's tau.

Two readings of the same estimates, each for its own question.

- **Which rank may a run have?** `rank_probabilities`: the true values are taken to lie around the estimates as
  these lie around them (a joint normal, or t). For two runs the chance that A is better is 1 minus half the p-value of
  their difference. Such chances are no intervals: of runs that are nearly equal, the one that came first is too sure of
  its place. `rank_intervals` hold for all runs at once in 95 of 100 campaigns, because they follow from tests.
- **How far is this ranking from the true one?** `tau_interval`, which holds for any true values.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Z95, Floats

Bools = NDArray[np.bool_]
BLOCK = 2_000_000  # numbers held at a time
LOWEST, HIGHEST = 0.01, 0.99  # quantiles of the ends of tau: together they miss less than 5 of 100
TIE = 1e-9  # of the largest error: what is nearer than this is equal


@dataclass(frozen=True)
class TauInterval:
    """A 95 % confidence interval of Kendall's tau between the estimated and the true ranking."""

    low: float
    high: float


def covariance_from_pairs(run_variances: ArrayLike | None, pair_variances: ArrayLike) -> Floats:
    """Return a covariance of the runs whose differences have (at least) these variances.

    ``cov_ij = (V_i + V_j - V_ij) / 2``. Without variances of the runs it is that of the values less their mean,
    which says the same of every difference. Variances that were estimated one by one may fit no covariance: negative
    eigenvalues are then set to 0, which makes no contrast of the runs less uncertain.

    >>> covariance_from_pairs([1, 1], [[0, 2], [2, 0]]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> covariance_from_pairs(None, [[0, 2], [2, 0]]).round(12).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    pairs = finite("pair_variances", pair_variances)
    n = pairs.shape[0] if pairs.ndim == 2 else 0
    if n < 1 or pairs.shape != (n, n) or (pairs < 0).any() or not np.allclose(pairs, pairs.T):
        raise ValueError(f"pair_variances must be a symmetric table of numbers >= 0, got shape {pairs.shape}")
    if np.diagonal(pairs).any():
        raise ValueError("pair_variances must be 0 between a run and itself")
    if run_variances is None:
        found = -_centre(_centre(pairs).T) / 2
    else:
        own = finite("run_variances", run_variances, (n,))
        if (own < 0).any():
            raise ValueError(f"run_variances must be >= 0, got {own.min()}")
        found = (own[:, None] + own[None] - pairs) / 2
    size, axes = np.linalg.eigh((found + found.T) / 2)
    return np.asarray((axes * np.maximum(size, 0.0)) @ axes.T)


def rank_probabilities(
    values: ArrayLike, covariance: ArrayLike, df: float | None = None, *, seed: int, draws: int = 10_000
) -> Floats:
    """Return the probabilities [run, rank]; rank 0 is the best. Rows and columns sum to 1.

    From `draws` draws of the values, normal or (`df`) t around the estimates; ties are broken at random.
    """
    v, root = _drawn_around(values, covariance)
    n = v.size
    rng = np.random.default_rng(seed)
    counts = np.zeros((n, n))
    rank = np.arange(n)
    for drawn in _draws(v, root, df, rng, draws):
        order = np.argsort(-drawn, axis=1)
        cell = order * n + rank
        counts += np.bincount(cell.ravel(), minlength=n * n).reshape(n, n)
    return np.asarray(counts / draws)


def rank_intervals(values: ArrayLike, is_apart: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the best and the worst rank (from 1) of every run that the tests leave.

    `is_apart[a, b]`: the two were told apart by a test that is wrong about any pair in at most 5 of 100 cases (Holm).
    Then all ranks lie between these ends at once in 95 of 100, however the errors hang together: a run has as many
    better ones as are surely better, at least. Source: Mogstad, Romano, Shaikh and Wilhelm (2024), with Holm's test.

    >>> low, high = rank_intervals([3, 2, 1], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    >>> low.tolist(), high.tolist()
    ([1, 1, 2], [2, 3, 3])
    """
    v = finite("values", values)
    apart = np.asarray(is_apart, dtype=bool)
    if apart.shape != (v.size, v.size) or (apart != apart.T).any():
        raise ValueError(f"is_apart must be a symmetric table of {v.size} runs, got shape {apart.shape}")
    above = v[None] > v[:, None]
    better = (apart & above).sum(axis=1)
    worse = (apart & above.T).sum(axis=1)
    return 1 + better, v.size - worse


def tau_interval(values: ArrayLike, covariance: ArrayLike, *, seed: int, draws: int = 1000) -> TauInterval:
    """Return a 95 % confidence interval of Kendall's tau between the ranking of these values and the true one.

    Upper end: the 99 % quantile of the tau of orders drawn around these values, and around values as far apart as
    these but even, if that is higher: of runs so far apart even ones are confused least. Lower end: a pair whose 95 %
    interval excludes 0 counts as right and every other as a coin flip, the flips hanging together as the errors do
    (their 1 % quantile), less the pairs that seem apart by chance: one for every 19 that do not. Nothing is assumed of
    the true values, and the interval is the wider the fewer pairs are apart. Pairs of runs that return the same have no
    order and are left out.

    Source: Kendall (1938); coverage in benchmarks/ranking.py.
    """
    v, root = _drawn_around(values, covariance)
    if v.size < 2:
        raise ValueError(f"a ranking needs at least 2 runs, got {v.size}")
    order = np.argsort(-v, kind="stable")
    v, root = v[order], root[order]
    error = np.sqrt(np.maximum(0.0, ((root[:, None] - root[None]) ** 2).sum(axis=2)))
    difference, near = v[:, None] - v[None], TIE * _largest(v, root)
    ordered = np.triu((difference > near) | (error > near), 1)
    apart = ordered & (difference > Z95 * error)
    n_pairs, n_apart = int(ordered.sum()), int(apart.sum())
    if n_pairs == 0:
        return TauInterval(-1.0, 1.0)
    rng = np.random.default_rng(seed)
    even = np.linspace(v[0], v[-1], v.size)
    flips, kept, even_kept = [], [], []
    for size in _sizes(draws, v.size):
        errors = rng.standard_normal((size, v.size)) @ root.T
        flips.append(_in_order(errors, ordered & ~apart))
        kept.append(_in_order(v + errors, ordered))
        even_kept.append(_in_order(even + errors, ordered))
    by_chance = (n_pairs - n_apart) / 19
    low = n_apart - min(by_chance, n_apart) + np.quantile(np.concatenate(flips), LOWEST, method="lower")
    high = max(np.quantile(np.concatenate(part), HIGHEST, method="higher") for part in (kept, even_kept))
    return TauInterval(float(max(-1.0, low / n_pairs)), float(max(low, high) / n_pairs))


def _in_order(drawn: Floats, pairs: Bools) -> Floats:
    """Return by draw how many of the pairs (a, b) have a above b, less how many have it below."""
    found = np.zeros(drawn.shape[0])
    for run in range(drawn.shape[1] - 1):
        wanted = pairs[run, run + 1 :]
        if wanted.any():
            above = drawn[:, run : run + 1] > drawn[:, run + 1 :]
            found += 2 * (above & wanted).sum(axis=1) - int(wanted.sum())
    return found


def _drawn_around(values: ArrayLike, covariance: ArrayLike) -> tuple[Floats, Floats]:
    """Return the values and a root R of their covariance, ``R R' = covariance``; ValueError if it is none."""
    v = finite("values", values)
    if v.ndim != 1 or v.size < 1:
        raise ValueError(f"values must be flat, at least 1, got shape {v.shape}")
    table = finite("covariance", covariance, (v.size, v.size))
    size, axes = np.linalg.eigh((table + table.T) / 2)
    if not np.allclose(table, table.T) or size.min() < -1e-8 * max(1e-300, size.max()):
        raise ValueError(
            f"covariance must be symmetric and positive semidefinite, got an eigenvalue {size.min()}"
        )
    return v, axes * np.sqrt(np.maximum(size, 0.0))


def _draws(
    v: Floats, root: Floats, df: float | None, rng: np.random.Generator, draws: int
) -> Iterator[Floats]:
    """Yield the draws in blocks, [draw, run]; a noise far below every error breaks ties at random."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if df is not None and not df > 0:
        raise ValueError(f"df must be above 0, got {df}")
    largest = _largest(v, root)
    for size in _sizes(draws, v.size):
        errors = rng.standard_normal((size, v.size)) @ root.T
        if df is not None:
            errors *= np.sqrt(df / rng.chisquare(df, (size, 1)))
        yield v + errors + TIE * largest * rng.uniform(-0.5, 0.5, (size, v.size))


def _largest(v: Floats, root: Floats) -> float:
    """Return the largest error, or else the range of the values: the measure of what counts as a tie."""
    return float(np.sqrt((root**2).sum(axis=1).max())) or float(np.ptp(v)) or 1.0


def _sizes(draws: int, n_runs: int) -> Iterator[int]:
    step = max(1, BLOCK // max(1, n_runs))
    for start in range(0, draws, step):
        yield min(step, draws - start)


def _centre(table: Floats) -> Floats:
    """Return the table less the mean of every column."""
    return np.asarray(table - table.mean(axis=0))
