"""The order of runs, and the ranks that each may have."""

import numpy as np
import polars as pl

from analytics.estimation.claims import LIKE_THESE, Claim
from analytics.estimation.estimate import Z95, quantiles95
from analytics.estimation.ranking import (
    covariance_from_pairs,
    rank_intervals,
    rank_probabilities,
    tau_interval,
)
from analytics.estimation.simultaneous import paired_p_values, pairs_apart_by_holm
from analytics.estimation.wording import LEVEL
from analytics.numbers.arrays import Floats
from touchstone_ir.columns import InputRefused
from touchstone_ir.results import Result, result_of
from touchstone_ir.rows import ResultRows
from touchstone_ir.samples import SEED


def ranked_result(runs: ResultRows, pairs: ResultRows, claim: Claim) -> Result:
    """Return the runs with a number, the best first, with the ranks that they may have, all at once.

    Pairs are told apart by Holm's test over all of them; the chances of ranks and the interval of Kendall's tau follow
    from the errors of the differences.

    Parameters
    ----------
    runs, pairs : ResultRows
        All runs and all pairs of one measure, as the method has them: none turned round.

    Raises
    ------
    InputRefused
        Fewer than two runs with a number and an error.
    """
    found = result_of("rank", [runs], claim)
    own = runs.claim(claim)
    usable = np.flatnonzero(np.isfinite(own.low))
    if usable.size < 2:
        reason = next((one for one in own.refusal if one), "no run has an interval")
        raise InputRefused(f"a ranking needs at least two runs with an interval: {reason}")
    order = usable[np.argsort(-runs.value[usable], kind="stable")]
    place = {int(run): rank for rank, run in enumerate(order.tolist())}
    half = _half(own.standard_error, own.degrees_of_freedom)
    values = runs.value[order]
    variance, p = _pair_tables(pairs, claim, place, (half[order] / Z95) ** 2)
    covariance = covariance_from_pairs(None, variance)
    chances = rank_probabilities(values, covariance, seed=SEED, draws=5_000)
    best, worst = rank_intervals(values, pairs_apart_by_holm(p, level=LEVEL))
    tau = tau_interval(values, covariance, seed=SEED)
    names = [runs.runs[run] for run in order.tolist()]
    ranks = pl.DataFrame(
        {
            "run": names,
            "rank": np.arange(1, order.size + 1),
            "rank_low": best,
            "rank_high": worst,
            "rank_probabilities": chances.tolist(),
        }
    )
    frame = found.frame.drop("against", "p", "p_adjusted", "verdict", "p_other", "is_same")
    frame = frame.join(ranks, on="run", how="left").sort("rank", nulls_last=True)
    words = (
        f"{found.caption} With 95 % confidence the true ranks of all runs lie within those given, all at once; "
        f"Kendall's tau between this ranking and the true one lies between {tau.low:.3f} and {tau.high:.3f}."
    )
    return Result("rank", frame, claim.key, words, found.n_topics)


def _half(error: Floats, degrees_of_freedom: Floats) -> Floats:
    """Return half of the 95 % confidence interval."""
    df = np.where(np.isfinite(degrees_of_freedom), degrees_of_freedom, np.inf)
    return np.asarray(quantiles95(df) * error)


def _pair_tables(
    pairs: ResultRows, claim: Claim, place: dict[int, int], run_variances: Floats
) -> tuple[Floats, Floats]:
    """Return [run, run] the variance of every difference, and its p, by the places of ranked runs."""
    said = pairs.claim(claim)
    first, second = (side[pairs.places] for side in pairs.numbers.pairs)
    kept = [
        row
        for row in range(pairs.places.size)
        if int(first[row]) in place and int(second[row]) in place and np.isfinite(said.low[row])
    ]
    variance = run_variances[:, None] + run_variances[None]
    a = np.array([place[int(first[row])] for row in kept], dtype=np.int64)
    b = np.array([place[int(second[row])] for row in kept], dtype=np.int64)
    half = _half(said.standard_error[kept], said.degrees_of_freedom[kept])
    variance[a, b] = variance[b, a] = (half / Z95) ** 2
    np.fill_diagonal(variance, 0.0)
    is_like = claim is LIKE_THESE
    p = said.p[kept] if is_like or not pairs.numbers.has_labels_alone else np.full(len(kept), np.nan)
    return variance, paired_p_values(run_variances.size, (a, b), p)
