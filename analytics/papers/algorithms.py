"""Goldberg's Algorithm 1, with what its listing lacks: the error of a corrected number, its three parts drawn anew.

How it is printed: `experiments.papers.printed`; Algorithm 2: `experiments.papers.algorithms`.
Source: Goldberg et al. (2017), section 3.2; repaired as in docs/methods/derivations/goldberg.md,
section 2, erratum 12.
"""

import math
from dataclasses import dataclass

import numpy as np

from analytics.estimation.estimate import Refusal
from analytics.papers.refusals import check_hits, rate


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
