"""Goldberg's formulas that the product does not need: what is observed, Eq 3, and Eq 6 beside Eq 7.

The words and the assumptions are those of `analytics.papers.goldberg`. Source: Goldberg et al. (2017).
"""

import math

from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Refusal
from analytics.papers.goldberg import separation
from analytics.papers.refusals import rate


def mean_and_variance(topic_values: ArrayLike) -> tuple[float, float] | Refusal:
    """Return j and V_J = s^2/n from the bronze value of every topic (Eq 1 and 12; for P@1 the labels).

    s is the standard deviation over topics (ddof 1), so that it serves P@k too, whose values are not binomial;
    section 3.5 of the paper leaves out the division by n. Refused below 2 topics.

    >>> mean_and_variance([0.5, 1.0, 0.0, 0.5])
    (0.5, 0.041666666666666664)
    """
    values = finite("topic_values", topic_values)
    if values.ndim != 1:
        raise ValueError(f"topic_values must be flat, got {values.ndim} axes")
    if values.size < 2:
        return Refusal(f"{values.size} topics; at least 2 are needed", 2 - values.size)
    return float(values.mean()), float(values.var(ddof=1)) / values.size


def proportion_error(j: float, n: float) -> float:
    """Return ``sqrt(j (1 - j) / n)`` (Eq 2), for labels 0 or 1 of n independent items.

    >>> round(proportion_error(.626, 10278), 6)
    0.004773
    """
    if n <= 0:
        raise ValueError(f"n must be above 0, got {n}")
    return math.sqrt(rate("j", j) * (1 - j) / n)


def accuracy(hits: int, n: int) -> tuple[float, float]:
    """Return the rate hits/n and its variance ``m(1-m)/n`` (Eq 8). 0 or n hits: a variance of 0, which is false.

    Use `corrected_interval` there, which adds one hit and one miss.
    """
    if n <= 0 or not 0 <= hits <= n:
        raise ValueError(f"hits must be in [0, n] with n above 0, got {hits} of {n}")
    return hits / n, hits / n * (1 - hits / n) / n


def expected_mean(relevant_share: float, sensitivity: float, specificity: float) -> float:
    """Return ``m_G mR + (1 - m_G)(1 - mN)`` (Eq 3): the bronze mean that a share of relevant documents gives.

    >>> round(expected_mean(.4, .9, .8), 6)
    0.48
    """
    m = rate("relevant_share", relevant_share)
    return m * rate("sensitivity", sensitivity) + (1 - m) * (1 - rate("specificity", specificity))


def corrected_variance_as_quotient(
    j: float,
    j_variance: float,
    sensitivity: float,
    sensitivity_variance: float,
    specificity: float,
    specificity_variance: float,
) -> float:
    """Return Eq 6, the variance of the quotient A/D with A = j - 1 + mN: the same number as Eq 7."""
    d, a = separation(sensitivity, specificity), rate("j", j) - 1 + specificity
    return (
        (j_variance + specificity_variance) / d**2
        + (sensitivity_variance + specificity_variance) * a**2 / d**4
        - 2 * a * specificity_variance / d**3
    )
