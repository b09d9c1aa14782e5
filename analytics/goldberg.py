"""Goldberg's correction of one binary number by sensitivity and specificity, and intervals that hold.

j is the mean of the bronze labels (1 = relevant), mR = P(label 1 | relevant) the sensitivity,
mN = P(label 0 | not relevant) the specificity, D = mR + mN - 1. Assumption throughout: the audit behind mR
and mN is independent of j and the assessor errs alike on all documents of a grade. Equation numbers: Goldberg et
al. (2017).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analytics.estimators import Z95, Floats, Refusal, finite


@dataclass(frozen=True)
class Interval:
    """A 95 % interval without a point estimate; `accepted` is the share of usable draws, if it was drawn."""

    low: float
    high: float
    accepted: float = 1.0


@dataclass(frozen=True)
class SharedAuditDifference:
    """Corrected difference of two systems with one audit: Wald, Fieller, and beside them Eq 10."""

    value: float
    standard_error: float
    z: float
    p_value: float
    score_p_value: float
    fieller: Interval | Refusal
    eq10_standard_error: float
    eq10_p_value: float


def _rate(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def _separation(sensitivity: float, specificity: float) -> float:
    d = _rate("sensitivity", sensitivity) + _rate("specificity", specificity) - 1
    if abs(d) < 1e-12:
        raise ValueError(f"sensitivity + specificity must differ from 1, got {sensitivity + specificity}")
    return d


def corrected_value(j: float, sensitivity: float, specificity: float) -> float:
    """Return ``(j - 1 + mN) / D`` (Eq 5). May lie outside [0, 1]: then j does not fit the audit.

    >>> round(corrected_value(.48, .9, .8), 6)
    0.4
    """
    return (_rate("j", j) - 1 + specificity) / _separation(sensitivity, specificity)


def proportion_error(j: float, n: float) -> float:
    """Return ``sqrt(j (1 - j) / n)`` (Eq 2), for labels 0 or 1 of n independent items.

    >>> round(proportion_error(.626, 10278), 6)
    0.004773
    """
    if n <= 0:
        raise ValueError(f"n must be above 0, got {n}")
    return math.sqrt(_rate("j", j) * (1 - j) / n)


def corrected_variance(
    j: float,
    j_variance: float,
    sensitivity: float,
    sensitivity_variance: float,
    specificity: float,
    specificity_variance: float,
) -> float:
    """Return ``[V_J + m^2 V_R + (1 - m)^2 V_N] / D^2`` with m the corrected value (Eq 7, simplified).

    For precision at k, `j_variance` is s^2/n over topics, not j(1-j)/n.
    """
    m, d = corrected_value(j, sensitivity, specificity), _separation(sensitivity, specificity)
    return (j_variance + m**2 * sensitivity_variance + (1 - m) ** 2 * specificity_variance) / d**2


def fieller(
    numerator: float,
    numerator_variance: float,
    denominator: float,
    denominator_variance: float,
    covariance: float,
) -> Interval | Refusal:
    """Return the 95 % interval of a ratio A/B: all r with ``(A - r B)^2 <= z^2 Var(A - r B)``.

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
    j: float, j_variance: float, relevant: tuple[int, int], not_relevant: tuple[int, int]
) -> Interval | Refusal:
    """Return Fieller's interval of the corrected value with one hit and one miss added, within [0, 1].

    `relevant` = (labeled relevant, all) among gold relevant, `not_relevant` = (labeled not relevant, all)
    among gold non-relevant. Never below .941 coverage in simulation. Refused when it is unbounded, misses
    [0, 1], j is outside [1 - mN, mR] by more than 1.96 standard errors, or a grade has no gold.
    Source: methods/noise-correction.md, 3.3.
    """
    for name, (hits, n) in (("relevant", relevant), ("not_relevant", not_relevant)):
        if not 0 <= hits <= n:
            raise ValueError(f"{name} must hold 0 <= hits <= n, got {hits} of {n}")
        if n == 0:
            return Refusal(f"no gold label that is {name.replace('_', ' ')}", 10)
    m_r, m_n = (relevant[0] + 1) / (relevant[1] + 2), (not_relevant[0] + 1) / (not_relevant[1] + 2)
    v_r, v_n = m_r * (1 - m_r) / (relevant[1] + 2), m_n * (1 - m_n) / (not_relevant[1] + 2)
    if (_rate("j", j) - m_r) > 1.96 * math.sqrt(j_variance + v_r):
        return Refusal(f"j = {j:.3f} lies above the sensitivity {m_r:.3f}: not the audit of these labels")
    if (1 - m_n - j) > 1.96 * math.sqrt(j_variance + v_n):
        return Refusal(
            f"j = {j:.3f} lies below 1 - specificity = {1 - m_n:.3f}: not the audit of these labels"
        )
    found = fieller(j - 1 + m_n, j_variance + v_n, m_r + m_n - 1, v_r + v_n, v_n)
    if isinstance(found, Refusal):
        return found
    if m_r + m_n < 1 or found.low > 1 or found.high < 0:
        return Refusal("the interval lies outside [0, 1]: not the audit of these labels")
    return Interval(max(0.0, found.low), min(1.0, found.high))


def shared_audit_difference(
    j: tuple[float, float],
    difference_variance: float,
    sensitivity: float,
    sensitivity_variance: float,
    specificity: float,
    specificity_variance: float,
    separate_variances: tuple[float, float],
) -> SharedAuditDifference:
    """Return ``(ja - jb) / D`` of two systems whose labels are corrected by one and the same audit.

    ``Var = [V(ja - jb) + Delta^2 (V_R + V_N)] / D^2``: the specificity in the two numerators cancels, and so
    does nearly all of the audit's error. The paper's Eq 10 takes the two corrected values as independent; it
    is given for comparison only. `separate_variances` are V_J of a and of b; `difference_variance` is their sum
    for different topics, s_d^2/n for the same. Assumption: same judges, same period, blind to the system.

    Source: methods/noise-correction.md, 1.1.
    """
    d = _separation(sensitivity, specificity)
    delta, audit = (j[0] - j[1]) / d, sensitivity_variance + specificity_variance
    error = math.sqrt((difference_variance + delta**2 * audit) / d**2)
    rates = (sensitivity, sensitivity_variance, specificity, specificity_variance)
    separate = [corrected_variance(x, v, *rates) for x, v in zip(j, separate_variances, strict=True)]
    eq10 = math.sqrt(sum(separate))
    if error <= 0 or eq10 <= 0 or difference_variance <= 0:
        raise ValueError(f"variances must be above 0, got {difference_variance} and {separate_variances}")
    return SharedAuditDifference(
        value=delta,
        standard_error=error,
        z=delta / error,
        p_value=_two_sided(delta / error),
        # Delta = 0 if and only if ja = jb: the exact test does not need the audit
        score_p_value=_two_sided((j[0] - j[1]) / math.sqrt(difference_variance)),
        fieller=fieller(j[0] - j[1], difference_variance, d, audit, 0.0),
        eq10_standard_error=eq10,
        eq10_p_value=_two_sided(delta / eq10),
    )


def _two_sided(z: float) -> float:
    return float(2 * stats.norm.sf(abs(z)))


def dirichlet_interval(
    counts: ArrayLike,
    label_counts: ArrayLike,
    gains: ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 4000,
) -> Interval | Refusal:
    """Return the 95 % interval of ``v . J^-T h`` for any number of grades, by Dirichlet draws.

    Rows of J ~ Dirichlet(count + 1/2), label shares h ~ Dirichlet(label count + 1/2); draws are kept if
    det J > 0 and the implied grade shares are all in [0, 1]; `accepted` is their share. Refused if
    Pr(det J > 0) < .975, if a grade has no gold, or if fewer than 100 draws are kept.

    Source: methods/noise-correction.md, 3.3 (2).
    """
    table, labels, v = finite("counts", counts), finite("label_counts", label_counts), finite("gains", gains)
    if table.shape != (v.size, v.size) or labels.shape != (v.size,) or min(table.min(), labels.min()) < 0:
        raise ValueError(
            f"counts, label_counts and gains must agree and be >= 0, got {table.shape}, {labels.shape}"
        )
    if draws < 1000:
        raise ValueError(f"draws must be at least 1000, got {draws}")
    empty = np.flatnonzero(table.sum(axis=1) == 0)
    if empty.size:
        return Refusal(f"no gold label of true grade {int(empty[0])}", 10)

    j: Floats = np.stack([rng.dirichlet(row + 0.5, draws) for row in table], axis=1)
    h = rng.dirichlet(labels + 0.5, draws)
    positive = np.linalg.det(j) > 0
    if positive.mean() < 0.975:
        return Refusal(f"the labels hardly separate the grades: Pr(det J > 0) = {positive.mean():.3f} < .975")
    mix = np.linalg.solve(np.swapaxes(j[positive], 1, 2), h[positive][:, :, None])[:, :, 0]
    kept = mix[(mix >= 0).all(axis=1)]
    if len(kept) < 100:
        return Refusal(
            f"only {len(kept)} of {draws} draws give possible shares: not the audit of these labels"
        )
    low, high = np.quantile(kept @ v, [0.025, 0.975])
    return Interval(float(low), float(high), len(kept) / draws)
