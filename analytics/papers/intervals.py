"""Intervals of a number corrected by gold that hold with little gold, and where the matrix is near-singular.

Two grades: Fieller, with one hit and one miss added; more: Dirichlet draws. `relevant` and `not_relevant` as in
`analytics.papers.refusals`. Source: docs/methods/derivations/noise-correction.md, section 6.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Floats, Refusal
from analytics.papers.refusals import (
    binary_separation,
    check_hits,
    determinant_refusal,
    errors_outside,
    infeasible_refusal,
    missing_gold_refusal,
    rate,
    with_one_more,
)

FEWEST_DRAWS_KEPT = 100


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval without a point estimate; `accepted` is the share of usable draws, if it was drawn.

    `warning` says why there is no point estimate, where the interval was asked for nevertheless.
    """

    low: float
    high: float
    accepted: float = 1.0
    warning: str = ""


# -- Fieller ------------------------------------------------------------------------------------------------


def fieller(
    numerator: float,
    numerator_variance: float,
    denominator: float,
    denominator_variance: float,
    covariance: float,
) -> Interval | Refusal:
    """Return the 95 % confidence interval of a ratio A/B: all r with ``(A - r B)^2 <= z^2 Var(A - r B)``.

    Assumption: A and B are normal with known (co)variances. Refused where the set is not an interval: B is
    then not significantly different from 0. Source: Fieller (1954).

    >>> fieller(.05, .01, .1, .01, .005).reason
    'the denominator is within 1.96 standard errors of 0: the interval is unbounded'
    """
    variances = (numerator_variance, denominator_variance)
    if min(variances) < 0 or not all(map(math.isfinite, (numerator, denominator, covariance, *variances))):
        raise ValueError(f"variances must be >= 0 and everything finite, got {variances}, {covariance}")
    z2 = Z95**2
    a = denominator**2 - z2 * denominator_variance
    b = numerator * denominator - z2 * covariance
    c = numerator**2 - z2 * numerator_variance
    if a <= 0:
        return Refusal("the denominator is within 1.96 standard errors of 0: the interval is unbounded")
    root = math.sqrt(max(0.0, b * b - a * c))
    return Interval((b - root) / a, (b + root) / a)


def corrected_interval(
    j: float,
    j_variance: float,
    relevant: tuple[float, float],
    not_relevant: tuple[float, float],
    *,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return Fieller's interval of the corrected value with one hit and one miss added, within [0, 1].

    Never below .941 coverage in simulation. Refused when a grade has no gold, when it is unbounded (with the
    gold that is missing), misses [0, 1], or j is outside [1 - mN, mR] by more than 1.96 standard errors.
    `refuse` False: then the interval, or all of [0, 1], with the reason as its warning.
    """
    for name, pair in (("relevant", relevant), ("not_relevant", not_relevant)):
        check_hits(name, pair)
        if pair[1] == 0:
            return as_asked(
                Refusal(f"no gold label that is {name.replace('_', ' ')}", FEWEST_ITEMS), None, refuse
            )
    rates = (with_one_more(relevant), with_one_more(not_relevant))
    separation = binary_separation(relevant, not_relevant)
    return fieller_within(rate("j", j), j_variance, rates, separation, refuse)


def fieller_within(
    j: float,
    j_variance: float,
    rates: tuple[tuple[float, float], tuple[float, float]],
    separation: Refusal | None,
    refuse: bool,
) -> Interval | Refusal:
    if j_variance < 0:
        raise ValueError(f"j_variance must be >= 0, got {j_variance}")
    (m_r, v_r), (m_n, v_n) = rates
    found = fieller(j - 1 + m_n, j_variance + v_n, m_r + m_n - 1, v_r + v_n, v_n)
    problem = infeasible_refusal(errors_outside(j, j_variance, *rates), j, m_r, m_n) or separation
    if isinstance(found, Refusal):
        return as_asked(problem or found, None, refuse)
    if problem is None and (m_r + m_n < 1 or found.low > 1 or found.high < 0):
        problem = Refusal("the interval lies outside [0, 1]: not the audit of these labels")
    within = Interval(min(1.0, max(0.0, found.low)), max(0.0, min(1.0, found.high)))
    return as_asked(problem, within, refuse)


def as_asked(problem: Refusal | None, found: Interval | None, refuse: bool) -> Interval | Refusal:
    shown = found if found is not None else Interval(0.0, 1.0)
    if problem is None:
        return shown
    return problem if refuse else Interval(shown.low, shown.high, shown.accepted, problem.reason)


# -- three or more grades -----------------------------------------------------------------------------------


def dirichlet_interval(
    counts: ArrayLike,
    label_counts: ArrayLike,
    gains: ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 4000,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return the 95 % confidence interval of ``v . J^-T h`` for any number of grades, by Dirichlet draws.

    Rows of J ~ Dirichlet(count + 1/2), label shares h ~ Dirichlet(label count + 1/2); draws are kept if
    det J > 0 and the implied grade shares are all in [0, 1]; `accepted` is their share among all draws. Refused if
    Pr(det J > 0) < .975, if a grade has no gold, or if fewer than 100 draws are kept. `refuse` False: then
    the interval, or the range of the gains, with the reason as its warning.
    `label_counts` are of independent labels; for clusters give effective counts.
    """
    table, labels, v = finite("counts", counts), finite("label_counts", label_counts), finite("gains", gains)
    if table.shape != (v.size, v.size) or labels.shape != (v.size,) or min(table.min(), labels.min()) < 0:
        raise ValueError(
            f"counts, label_counts and gains must agree and be >= 0, got {table.shape}, {labels.shape}"
        )
    if draws < 1000:
        raise ValueError(f"draws must be at least 1000, got {draws}")
    everything = Interval(float(v.min()), float(v.max()))
    missing = missing_gold_refusal(table)
    if missing is not None:
        return as_asked(missing, everything, refuse)

    j: Floats = np.stack([rng.dirichlet(row + 0.5, draws) for row in table], axis=1)
    h = rng.dirichlet(labels + 0.5, draws)
    determinants = np.linalg.det(j)
    problem = determinant_refusal(determinants, float(table.sum()))
    if problem is not None and refuse:
        return problem
    usable = determinants > 0
    mix = np.linalg.solve(np.swapaxes(j[usable], 1, 2), h[usable][:, :, None])[:, :, 0]
    kept = mix[(mix >= 0).all(axis=1)]
    if len(kept) < FEWEST_DRAWS_KEPT:
        few = Refusal(
            f"only {len(kept)} of {draws} draws give possible shares: not the audit of these labels"
        )
        return as_asked(few, everything, refuse)
    low, high = np.quantile(kept @ v, [0.025, 0.975])
    return as_asked(problem, Interval(float(low), float(high), len(kept) / draws), refuse)
