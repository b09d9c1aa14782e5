"""The p-value of a difference under drift of the judges (`analytics.papers.sensitivity`)."""

import math

from scipy import stats

from analytics.papers.sensitivity import check_difference, drift_variance


def p_value_with_drift(
    difference: float, difference_variance: float, relevant_share: float, drift_sd: float
) -> float:
    """Return the two-sided p of ja - jb if the judges' rates drift with SD `drift_sd` between the rounds.

    >>> a, b = .414**2 / 10278, .402**2 / 20604
    >>> [round(p_value_with_drift(-.0125, a + b, .816570, s), 3) for s in (0, .005, .01)]
    [0.012, 0.105, 0.33]
    """
    check_difference(difference, difference_variance)
    error = math.sqrt(difference_variance + drift_variance(relevant_share, drift_sd))
    return float(2 * stats.norm.sf(abs(difference) / error))
