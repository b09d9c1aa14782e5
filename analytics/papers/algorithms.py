"""Goldberg's Algorithms 1 and 2, with what their listings lack.

Algorithm 1 gives the error of a corrected number by drawing its three parts anew; Algorithm 2 simulates a whole
evaluation whose truth is known. How they are printed: `analytics.papers.printed`.
Source: Goldberg et al. (2017), sections 3.2 and 5; repaired as in methods/noise-correction.md, section 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimators import Floats, Refusal, finite
from analytics.papers.refusals import check_hits, rate

RUNS_AT_ONCE = 500  # bounds the memory of a simulation: 500 runs of 500 labels are 2 MB


@dataclass(frozen=True)
class ParametricBootstrap:
    """What Algorithm 1 gives: `low` and `high` are quantiles and the result; `standard_deviation` is the paper's.

    It has no finite value in the population, because D* can be 0. `no_separation` is the share of draws with
    D* <= 0; draws with D* = 0 are left out.
    """

    mean: float
    standard_deviation: float
    low: float
    high: float
    no_separation: float


@dataclass(frozen=True)
class Simulation:
    """One entry per simulated evaluation; runs whose audit gives mR* + mN* = 1 are left out."""

    naive: Floats
    naive_variance: Floats  # s^2/n over topics
    corrected: Floats
    corrected_variance: Floats  # Eq 7


def parametric_bootstrap(
    j: float,
    *,
    relevant: tuple[int, int],
    not_relevant: tuple[int, int],
    rng: np.random.Generator,
    n: int | None = None,
    j_variance: float | None = None,
    draws: int = 10_000,
) -> ParametricBootstrap | Refusal:
    """Return Algorithm 1: draws of j*, mR*, mN*, each giving ``(j* - 1 + mN*)/(mR* + mN* - 1)``.

    P@1: give `n`, j* is Binom(j, n)/n. P@k: give `j_variance` (s^2/n), j* is normal, because P@k is not binomial.
    `relevant` = (labels "relevant", all) among gold relevant, `not_relevant` = (labels "not relevant", all).
    Assumption: as Eq 7, independent audit. Refused if more than 2.5 % of the draws have D* <= 0.
    """
    rate("j", j)
    for name, pair in (("relevant", relevant), ("not_relevant", not_relevant)):
        check_hits(name, pair)
        if pair[1] < 1:
            raise ValueError(f"{name} must hold at least 1 gold label, got 0")
    if (n is None) == (j_variance is None):
        raise ValueError(f"exactly one of n and j_variance is needed, got {n} and {j_variance}")
    if (n is not None and n < 1) or (j_variance is not None and j_variance < 0) or draws < 100:
        raise ValueError(
            f"n must be >= 1, j_variance >= 0 and draws >= 100, got {n}, {j_variance} and {draws}"
        )

    means = rng.normal(j, math.sqrt(j_variance or 0.0), draws) if n is None else rng.binomial(n, j, draws) / n
    m_r = rng.binomial(relevant[1], relevant[0] / relevant[1], draws) / relevant[1]
    m_n = rng.binomial(not_relevant[1], not_relevant[0] / not_relevant[1], draws) / not_relevant[1]
    a, d = means - 1 + m_n, m_r + m_n - 1
    without = float((d < 1e-12).mean())
    if without > 0.025:
        return Refusal(
            f"Pr(D* <= 0) = {without:.3f} > .025: the labels hardly separate the grades, and the draws have no "
            "spread that means anything; more gold is needed"
        )
    kept = np.abs(d) > 1e-12
    values = a[kept] / d[kept]
    low, high = np.quantile(values, [0.025, 0.975])
    return ParametricBootstrap(
        float(values.mean()), float(values.std(ddof=1)), float(low), float(high), without
    )


def simulate_precision(
    relevant_share: ArrayLike,
    *,
    sensitivity: float,
    specificity: float,
    n_relevant: int,
    n_not_relevant: int,
    n_topics: int,
    runs: int,
    rng: np.random.Generator,
    otherwise_assigned: bool = True,
) -> Simulation:
    """Return `runs` of Algorithm 2: P@k of bronze labels, and corrected by an audit, where the truth is known.

    `relevant_share[rank]` is m_G at each rank; the true P@k is its mean. Gold g is Bernoulli(m_G); a label is g
    with probability mR or mN, else its opposite; both rates are then estimated from binomial audits.
    `otherwise_assigned` False: as printed, where nothing is assigned to a label that is not flipped (taken as 0).
    """
    share = finite("relevant_share", relevant_share)
    if share.ndim != 1 or share.size == 0 or ((share < 0) | (share > 1)).any():
        raise ValueError(f"relevant_share must be a flat array in [0, 1], got {share.tolist()}")
    if rate("sensitivity", sensitivity) + rate("specificity", specificity) <= 1:
        raise ValueError(f"sensitivity + specificity must be above 1, got {sensitivity + specificity}")
    if min(n_relevant, n_not_relevant, runs) < 1 or n_topics < 2:
        raise ValueError(
            "audits and runs must be >= 1 and n_topics >= 2, "
            f"got {n_relevant}, {n_not_relevant}, {runs} and {n_topics}"
        )

    topic_values = np.concatenate(
        [
            _label_means(
                share,
                sensitivity,
                specificity,
                (min(RUNS_AT_ONCE, runs - first), n_topics),
                rng,
                otherwise_assigned,
            )
            for first in range(0, runs, RUNS_AT_ONCE)
        ]
    )
    m_r = rng.binomial(n_relevant, sensitivity, runs) / n_relevant
    m_n = rng.binomial(n_not_relevant, specificity, runs) / n_not_relevant
    kept = np.abs(m_r + m_n - 1) > 1e-12
    m_r, m_n, topic_values = m_r[kept], m_n[kept], topic_values[kept]
    naive, variance = topic_values.mean(axis=1), topic_values.var(axis=1, ddof=1) / n_topics
    d = m_r + m_n - 1
    value = (naive - 1 + m_n) / d
    audit = value**2 * m_r * (1 - m_r) / n_relevant + (1 - value) ** 2 * m_n * (1 - m_n) / n_not_relevant
    return Simulation(naive, variance, value, (variance + audit) / d**2)


def _label_means(
    share: Floats,
    sensitivity: float,
    specificity: float,
    size: tuple[int, int],
    rng: np.random.Generator,
    otherwise_assigned: bool,
) -> Floats:
    """Return P@k of the labels, [run, topic]."""
    gold = rng.random((*size, share.size)) < share
    flipped = rng.random(gold.shape) < np.where(gold, 1 - sensitivity, 1 - specificity)
    label = gold ^ flipped if otherwise_assigned else ~gold & flipped
    return np.asarray(label.mean(axis=2))
