"""Goldberg's formulas as they are printed, where that is wrong: to show what they give, never to report it.

Each function names its misprint; the right form stands in `analytics.papers.goldberg`,
`analytics.estimation.comparison` or `analytics.papers.graded`. Source: docs/methods/derivations/goldberg.md, section 2
(errata by number).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Z95
from analytics.papers.goldberg import corrected_variance, separate_audits_difference
from analytics.papers.refusals import rate


def printed_welch_degrees_of_freedom(variance_a: float, n_a: int, variance_b: float, n_b: int) -> float:
    """Return the degrees of freedom below Eq 9 with ``n_b - 1`` in both denominators (erratum 1).

    Right: `analytics.estimation.comparison.welch`, which has n_a - 1 in the first. `variance` is the sample variance.
    """
    if min(n_a, n_b) < 2 or min(variance_a, variance_b) < 0 or variance_a + variance_b <= 0:
        raise ValueError(
            f"n must be >= 2 and variances >= 0, got {n_a}, {n_b} and {variance_a}, {variance_b}"
        )
    a, b = variance_a / n_a, variance_b / n_b
    return (a + b) ** 2 / ((a**2 + b**2) / (n_b - 1))


def printed_appendix_variance(
    j: float,
    j_variance: float,
    sensitivity: float,
    sensitivity_variance: float,
    specificity: float,
    specificity_variance: float,
    *,
    line: str,
) -> float:
    """Return Eq 7 as two lines of the appendix would have it (erratum 11).

    `line` "S": the term with V_N has ``+ 2 (j-1+mN)/D^3`` where Eq 6 has -2; "S1": ``- (j-1+mN)^2`` where it must
    be +. The result of the appendix, Eq 7, is right. May be negative.
    """
    if line not in ("S", "S1"):
        raise ValueError(f"line must be 'S' or 'S1', got {line!r}")
    d, a = (
        rate("sensitivity", sensitivity) + rate("specificity", specificity) - 1,
        rate("j", j) - 1 + specificity,
    )
    if d == 0:
        raise ValueError(f"sensitivity + specificity must differ from 1, got {sensitivity + specificity}")
    s = 1 / d**2 + a**2 / d**4 + 2 * a / d**3 if line == "S" else (d**2 - a**2 - 2 * d * a) / d**4
    return j_variance / d**2 + sensitivity_variance * a**2 / d**4 + specificity_variance * s


def largest_eq10_statistic(
    j: tuple[float, float], relevant: tuple[int, int], not_relevant: tuple[int, int]
) -> float:
    """Return max |t| of Eq 10 as the topics go to infinity (erratum 13: the paper has it grow with their root).

    The audit's terms of Eq 7 do not shrink with n, so t stays below this.
    """
    (x, n_r), (y, n_n) = relevant, not_relevant
    if min(n_r, n_n) < 1:
        raise ValueError(f"both grades must have gold, got {n_r} and {n_n}")
    m_r, m_n = rate("sensitivity", x / n_r), rate("specificity", y / n_n)
    rates = (m_r, m_r * (1 - m_r) / n_r, m_n, m_n * (1 - m_n) / n_n)
    d = m_r + m_n - 1
    values = [(one - 1 + m_n) / d for one in j]
    variances = [corrected_variance(one, 0.0, *rates) for one in j]
    return abs(separate_audits_difference(values[0], variances[0], values[1], variances[1]).z)


def printed_bootstrap_error(topic_values: ArrayLike, *, rng: np.random.Generator, draws: int = 100) -> float:
    """Return the bootstrap error of a mean "without replacement" (below Eq 18, erratum 10): 0.

    All pairs drawn without replacement are the same pairs in another order. Right:
    `analytics.papers.graded.bootstrap_over_topics`.

    >>> printed_bootstrap_error([.1, .7, .3], rng=np.random.default_rng(1))
    0.0
    """
    values = finite("topic_values", topic_values)
    if values.ndim != 1 or values.size < 2 or draws < 2:
        raise ValueError(f"at least 2 flat values and 2 draws are needed, got {values.shape} and {draws}")
    means = [math.fsum(rng.choice(values, values.size, replace=False)) / values.size for _ in range(draws)]
    return float(np.std(np.array(means) - means[0]))


def printed_topics_needed(
    bronze_difference: float, spread: tuple[float, float], separation: tuple[float, float]
) -> float:
    """Return the topics of section 7: ``3 (z/difference)^2 (s_a^2/D_a^2 + s_b^2/D_b^2)``.

    An inference from the printed totals (docs/methods/derivations/goldberg.md, section 1.1): the *naive* difference
    over the *corrected* error, the three terms of Eq 7 made equal, Welch for runs that share topics, power 50 %. Right:
    `experiments.papers.planning.topics_for_test`.
    """
    if bronze_difference == 0 or min(map(abs, separation)) < 1e-12 or min(spread) <= 0:
        raise ValueError(
            f"difference, spread and separation must not be 0, got {bronze_difference}, {spread}, {separation}"
        )
    parts = [(s / d) ** 2 for s, d in zip(spread, separation, strict=True)]
    return 3 * (Z95 / bronze_difference) ** 2 * sum(parts)


def printed_gold_needed(topics: float, sensitivity: float, corrected: float, spread: float) -> float:
    """Return the relevant gold labels of section 7: ``mR(1-mR) m_G^2 n / s^2``, at an m_G of 3.68.

    It makes the term of V_R in Eq 7 as large as that of V_J. A share of 3.68 is impossible: the product refuses.
    """
    if spread <= 0 or topics <= 0:
        raise ValueError(f"topics and spread must be above 0, got {topics} and {spread}")
    return rate("sensitivity", sensitivity) * (1 - sensitivity) * corrected**2 * topics / spread**2
