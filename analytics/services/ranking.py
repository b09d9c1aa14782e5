"""The ranking that a computation gives, with its uncertainty: what the page shows, and the API says."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from analytics.estimation.claims import LIKE_THESE, THESE, Claim
from analytics.estimation.comparison import holm
from analytics.estimation.estimate import FEWEST_POSITIVE, Z95, Floats, quantile95
from analytics.estimation.ranking import (
    Bools,
    TauInterval,
    covariance_from_pairs,
    rank_intervals,
    rank_probabilities,
    tau_interval,
)
from analytics.estimation.simultaneous import PairTest, paired_p_values, pairs_apart_by_holm
from analytics.estimation.wording import LEVEL
from analytics.methods import REPORTED, method_of, ranked_methods
from analytics.models import Computation, Estimate, before_cutting
from analytics.services.claim_intervals import OLDER
from analytics.services.comparisons import is_older

SEED = 20161109  # the same estimates give the same chances
DRAWS = 5_000
KEPT = 16  # rankings: a computation never changes
_kept: OrderedDict[tuple[Any, ...], "Ranking"] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class RankedRun:
    """A run with its value, its rank by that (1 is the best), and the ranks that it may have.

    `rank_low` to `rank_high` hold for all runs at once in 95 of 100 campaigns, `rank_alone_low` to `rank_alone_high`
    for whoever asked beforehand about this run only; `probabilities[r]` is the chance of rank r + 1.
    """

    estimate: Estimate
    rank: int
    rank_low: int
    rank_high: int
    rank_alone_low: int
    rank_alone_high: int
    probabilities: tuple[float, ...]

    @property
    def run_id(self) -> str:
        return self.estimate.run.run_id


@dataclass(frozen=True)
class Ranking:
    """The runs, the best first; `refusal` says why there is no ranking, `left_out` why some runs are not in it.

    `tau`: between this ranking and the true one. Of `n_pairs` pairs `n_apart` are significant by Holm's test and
    `n_apart_max_t` by the test of the ranks: step-down max-t for these topics, and for topics like these Holm's, since
    max-t is wrong more often there (benchmarks/claims.py). `n_unknown` pairs have no estimate; their runs' errors are
    taken as independent. Fewer than 10 items with a gain above 0 carry `n_few` pairs.
    """

    measure: str
    method: str
    claim: Claim = THESE
    runs: tuple[RankedRun, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # run, reason
    tau: TauInterval | None = None
    n_pairs: int = 0
    n_apart: int = 0
    n_apart_max_t: int = 0
    n_unknown: int = 0
    n_few: int = 0
    refusal: str = ""
    seed: int = SEED
    draws: int = DRAWS


@dataclass(frozen=True)
class _Pairs:
    """Tables [run, run]: the variance of every difference and its p-value, NaN where it was not tested."""

    variance: Floats
    p_value: Floats
    n_unknown: int

    @property
    def n_apart(self) -> int:
        """Return how many pairs are significant after Holm's adjustment of all that are tested."""
        p = self.p_value[np.triu_indices(len(self.p_value), 1)]
        tested = p[np.isfinite(p)]
        return int(np.count_nonzero(holm(tested) < LEVEL)) if tested.size else 0


def ranking_of(
    *,
    computation: Computation | None,
    measure: str,
    method: str = REPORTED.key,
    claim: Claim = THESE,
    among: frozenset[str] | None = None,
) -> Ranking:
    """Return the ranking of the runs that have an estimate by the method, with the claim's uncertainty.

    `among` names the runs that are ranked, as of a family; without it all are.

    A difference's error is taken from its 95 % confidence interval (half of it over 1.96), so that every pair is
    as uncertain as its interval says, also where that is t's.
    """
    ranked = {one.key: one.short for one in ranked_methods()}
    if method not in ranked:
        return Ranking(measure, method, refusal=f"only {' and '.join(ranked.values())} values are ranked")
    if computation is None:
        return Ranking(measure, method, refusal="no numbers are computed yet")
    if claim is LIKE_THESE and is_older(computation):
        return Ranking(measure, method, claim, refusal=OLDER)
    key = (computation.pk, computation.created_at, measure, str(method), claim.key, among)
    with _lock:
        known = _kept.get(key)
    if known is None:
        known = _ranking(computation, measure, method, claim, among)
        with _lock:
            _kept[key] = known
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return known


def _ranking(
    computation: Computation, measure: str, method: str, claim: Claim, among: frozenset[str] | None
) -> Ranking:
    found = computation.estimates.filter(measure=measure, method=method, run_b=None).select_related("run")
    if among is not None:
        found = found.filter(run__run_id__in=among)
    in_order = sorted(found, key=lambda e: (-(e.whole("value") or 0.0), e.run.run_id))
    is_like, wide = claim is LIKE_THESE, {e.pk: _half_like(e) for e in in_order}
    is_refused = {e.pk: e.value is None or (is_like and wide[e.pk] is None) for e in in_order}
    left_out = tuple(
        (e.run.run_id, e.refusal or e.topics_refusal or e.warning) for e in in_order if is_refused[e.pk]
    )
    rows = [e for e in in_order if not is_refused[e.pk]]
    if any(e.low is None for e in rows):
        return Ranking(
            measure,
            method,
            claim,
            refusal=f"{measure} has no interval: no order of runs is more sure than another",
        )
    if len(rows) < 2:
        return Ranking(measure, method, claim, left_out=left_out, refusal=_too_few(len(rows), left_out))
    # Order and errors are those of the numbers before they were cut off at the measure's range.
    whole = [[e.whole(name) for name in ("value", "low", "high")] for e in rows]
    values, lows, highs = np.array(whole, dtype=np.float64).T
    half = np.array([wide[e.pk] for e in rows], dtype=np.float64) if is_like else (highs - lows) / 2
    pairs = _pairs(computation, measure, method, claim, [e.run_id for e in rows], (half / Z95) ** 2)
    covariance = covariance_from_pairs(None, pairs.variance)
    chance = rank_probabilities(values, covariance, seed=SEED, draws=DRAWS)
    if is_like:
        pairs_apart = partial(pairs_apart_by_holm, pairs.p_value, level=LEVEL)
    else:
        pairs_apart = partial(PairTest(pairs.p_value, covariance, seed=SEED).pairs_apart, level=LEVEL)
    apart = pairs_apart()
    best, worst = rank_intervals(values, apart)
    n = values.size
    alone = [_rank_alone(values, pairs_apart([run]), run) for run in range(n)]
    return Ranking(
        measure=measure,
        method=method,
        claim=claim,
        runs=tuple(
            RankedRun(
                estimate=e,
                rank=place + 1,
                rank_low=int(best[place]),
                rank_high=int(worst[place]),
                rank_alone_low=alone[place][0],
                rank_alone_high=alone[place][1],
                probabilities=tuple(chance[place].tolist()),
            )
            for place, e in enumerate(rows)
        ),
        left_out=left_out,
        tau=tau_interval(values, covariance, seed=SEED),
        n_pairs=n * (n - 1) // 2,
        n_apart=pairs.n_apart,
        n_apart_max_t=int(apart.sum()) // 2,
        n_unknown=pairs.n_unknown,
        n_few=_n_few(computation, measure, method, [e.run_id for e in in_order]),
    )


def _n_few(computation: Computation, measure: str, method: str, runs: list[int]) -> int:
    """Return how many differences are carried by few items whose gain is above 0, and are not exact."""
    few = computation.estimates.filter(measure=measure, method=method, run__in=runs, run_b__in=runs)
    return few.filter(n_positive__lt=FEWEST_POSITIVE, standard_error__gt=0).count()


def _rank_alone(values: Floats, apart: Bools, run: int) -> tuple[int, int]:
    """Return the ranks that tests of the run's own pairs leave it."""
    low, high = rank_intervals(values, apart)
    return int(low[run]), int(high[run])


def _pairs(
    computation: Computation, measure: str, method: str, claim: Claim, runs: list[int], run_variances: Floats
) -> _Pairs:
    """Read the variances and p-values of all pairs."""
    place = {run: number for number, run in enumerate(runs)}
    found = computation.estimates.filter(
        measure=measure, method=method, run_b__isnull=False, value__isnull=False
    )
    rows = _of_like(found) if claim is LIKE_THESE else _of_these(found)
    kept = [row for row in rows if row[0] in place and row[1] in place]
    variance = run_variances[:, None] + run_variances[None]
    p_value = np.full(variance.shape, np.nan)
    n = len(runs)
    if kept:
        first, second = (np.array([place[row[side]] for row in kept]) for side in (0, 1))
        value, half = np.array([row[2:4] for row in kept], dtype=np.float64).T
        variance[first, second] = variance[second, first] = (half / Z95) ** 2
        p = np.array([np.nan if row[4] is None else row[4] for row in kept], dtype=np.float64)
        if not method_of(method).is_tested:  # there are no p-values in the database
            p = _normal_p(value, half / Z95)
        p_value = paired_p_values(n, (first, second), p)
    np.fill_diagonal(variance, 0.0)
    return _Pairs(variance, p_value, n * (n - 1) // 2 - len(kept))


def _of_these(pairs: Any) -> list[tuple[Any, ...]]:
    """Return of every pair its runs, its value and half-width for these topics as they were before cutting, and p."""
    numbers = map(before_cutting, ("value", "low", "high"))
    rows = pairs.values_list("run", "run_b", *numbers, "p_value")
    return [(a, b, value, (high - low) / 2, p) for a, b, value, low, high, p in rows if low is not None]


def _of_like(pairs: Any) -> list[tuple[Any, ...]]:
    """Return the same for topics like these; two runs that are the same have half-width 0."""
    names = ("topics_standard_error", "topics_degrees_of_freedom", "topics_p_value", "n")
    rows = pairs.values_list("run", "run_b", before_cutting("value"), *names)
    return [
        (a, b, value, quantile95(df) * error if error is not None else 0.0, p)
        for a, b, value, error, df, p, n in rows
        if error is not None or (n == 0 and p == 1)
    ]


def _half_like(estimate: Estimate) -> float | None:
    """Return the half-width for topics like these, None where there is none."""
    error = estimate.topics_standard_error
    return None if error is None else quantile95(estimate.topics_degrees_of_freedom) * error


def _normal_p(value: Floats, error: Floats) -> Floats:
    size = np.divide(np.abs(value), error, out=np.zeros(value.size), where=error > 0)
    return np.asarray(np.where(error > 0, 2 * scipy.special.ndtr(-size), np.where(value == 0, 1.0, 0.0)))


def _too_few(n: int, left_out: tuple[tuple[str, str], ...]) -> str:
    if left_out:
        return f"{n} runs have a number; at least 2 are needed. {left_out[0][0]}: {left_out[0][1]}"
    return f"{n} runs have a number; at least 2 are needed"
