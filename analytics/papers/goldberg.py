"""Goldberg's correction of one binary number by sensitivity and specificity, and of differences.

j is the mean of the bronze labels (1 = relevant), mR = P(label 1 | relevant) the sensitivity,
mN = P(label 0 | not relevant) the specificity, D = mR + mN - 1. Assumption throughout: the assessor errs alike
on all documents of a grade, and, unless said otherwise, the audit behind mR and mN is independent of j.
Equation numbers: Goldberg et al. (2017). What is printed and wrong is in `experiments.papers.printed`; more
grades, DCG and partly shared audits in `analytics.papers.graded`; the algorithms in `analytics.papers.algorithms`.
"""

import math
from dataclasses import dataclass

import scipy

from analytics.estimation.estimate import Refusal
from analytics.papers.intervals import Interval, fieller
from analytics.papers.refusals import rate

EQ10_REASON = (
    "Eq 10 takes the two corrected values as independent. Here both are corrected by the same audit, so they err "
    "together and their difference is known far better than Eq 10 says."
)


@dataclass(frozen=True)
class SharedAuditDifference:
    """Corrected difference of two systems with one audit: Wald, Fieller, and beside them Eq 10.

    `covariance` and `correlation` are those of the two corrected values, which Eq 10 leaves out.
    """

    value: float
    standard_error: float
    z: float
    p_value: float
    score_p_value: float
    fieller: Interval | Refusal
    eq10_standard_error: float
    eq10_p_value: float
    covariance: float
    correlation: float
    eq10_reason: str = EQ10_REASON


@dataclass(frozen=True)
class SeparateAuditsDifference:
    """Corrected difference of two systems with an audit each (Eq 10, 11)."""

    value: float
    standard_error: float
    z: float
    p_value: float


def separation(sensitivity: float, specificity: float) -> float:
    d = rate("sensitivity", sensitivity) + rate("specificity", specificity) - 1
    if d < 1e-12:
        raise ValueError(
            f"sensitivity + specificity must be above 1, or labels are no better than chance; got "
            f"{sensitivity + specificity}"
        )
    return d


# -- one system ---------------------------------------------------------------------------------------------


def corrected_value(j: float, sensitivity: float, specificity: float) -> float:
    """Return ``(j - 1 + mN) / D`` (Eq 4, 5; 14 for P@k). May lie outside [0, 1]: then j does not fit the audit.

    >>> round(corrected_value(.48, .9, .8), 6)
    0.4
    """
    return (rate("j", j) - 1 + specificity) / separation(sensitivity, specificity)


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
    m, d = corrected_value(j, sensitivity, specificity), separation(sensitivity, specificity)
    return (j_variance + m**2 * sensitivity_variance + (1 - m) ** 2 * specificity_variance) / d**2


# -- two systems --------------------------------------------------------------------------------------------


def separate_audits_difference(
    value_a: float, variance_a: float, value_b: float, variance_b: float
) -> SeparateAuditsDifference:
    """Return Eq 10 and 11 for two corrected values: valid for SEPARATE AUDITS ONLY.

    Assumption: each system has an audit of its own, and they are measured on different topics. With one audit for
    both, the p-value is far too large (eBay: .854 instead of .017): `shared_audit_difference`.
    """
    if min(variance_a, variance_b) < 0 or variance_a + variance_b <= 0:
        raise ValueError(f"variances must be >= 0 and their sum above 0, got {variance_a} and {variance_b}")
    error = math.sqrt(variance_a + variance_b)
    z = (value_a - value_b) / error
    return SeparateAuditsDifference(value_a - value_b, error, z, _two_sided(z))


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
    for different topics, s_d^2/n for the same. Assumption: same judges, same period, blind to the system. Ask
    `analytics.papers.refusals.audit_refusal` first: where it refuses, only the score test may be shown.

    Source: docs/methods/derivations/noise-correction.md, sections 2.1 and 2.2.
    """
    d = separation(sensitivity, specificity)
    delta, audit = (j[0] - j[1]) / d, sensitivity_variance + specificity_variance
    error = math.sqrt((difference_variance + delta**2 * audit) / d**2)
    rates = (sensitivity, sensitivity_variance, specificity, specificity_variance)
    separate = [corrected_variance(x, v, *rates) for x, v in zip(j, separate_variances, strict=True)]
    if error <= 0 or min(separate) <= 0 or difference_variance <= 0:
        raise ValueError(f"variances must be above 0, got {difference_variance} and {separate_variances}")
    g = [corrected_value(x, sensitivity, specificity) for x in j]
    eq10 = separate_audits_difference(g[0], separate[0], g[1], separate[1])
    labels = (sum(separate_variances) - difference_variance) / 2  # Cov(ja, jb); 0 for different topics
    together = g[0] * g[1] * sensitivity_variance + (1 - g[0]) * (1 - g[1]) * specificity_variance
    covariance = (labels + together) / d**2
    return SharedAuditDifference(
        value=delta,
        standard_error=error,
        z=delta / error,
        p_value=_two_sided(delta / error),
        # Delta = 0 if and only if ja = jb: the exact test does not need the audit
        score_p_value=_two_sided((j[0] - j[1]) / math.sqrt(difference_variance)),
        fieller=fieller(j[0] - j[1], difference_variance, d, audit, 0.0),
        eq10_standard_error=eq10.standard_error,
        eq10_p_value=eq10.p_value,
        covariance=covariance,
        correlation=covariance / math.sqrt(separate[0] * separate[1]),
    )


def _two_sided(z: float) -> float:
    return float(2 * scipy.stats.norm.sf(abs(z)))
