"""Is run A better than run B, and how surely: differences, tests, and Holm's adjustment for many of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Estimate, Floats, Refusal, estimate


@dataclass(frozen=True)
class Comparison:
    """A difference with its two-sided p-value. `statistic` is None for runs that are the same."""

    difference: Estimate
    statistic: float | None
    p_value: float


def compare(difference: Estimate | Refusal) -> Comparison | Refusal:
    """Return the difference with its two-sided p from t, or from the normal without degrees of freedom.

    Assumption: `difference` was estimated as one number with w_a - w_b; its p then agrees with its interval.
    A standard error of 0 is refused (two runs that are the same need no test): no source of error was measured.
    """
    if isinstance(difference, Refusal):
        return difference
    if difference.standard_error == 0:
        return Refusal("the standard error is 0, so there is no test: no source of error was measured")
    statistic = difference.value / difference.standard_error
    df = difference.degrees_of_freedom
    p = scipy.special.ndtr(-abs(statistic)) if df is None else scipy.special.stdtr(df, -abs(statistic))
    return Comparison(difference, statistic, float(2 * p))


def welch(
    mean_a: float, variance_a: float, n_a: int, mean_b: float, variance_b: float, n_b: int
) -> Comparison | Refusal:
    """Return Welch's t for two systems measured on different topics.

    `variance` is the sample variance of the values (not of the mean). Assumption: the two samples are
    independent; for the same topics use `analytics.estimation.topics.over_topics`. Degrees of freedom as Welch has
    them: the second denominator is n_b - 1, the first n_a - 1 (the paper prints n_b - 1 twice).

    Source: Goldberg et al. (2017), Eq 9, corrected; Welch (1947).
    """
    if min(variance_a, variance_b) < 0:
        raise ValueError(f"variances must be >= 0, got {variance_a} and {variance_b}")
    if min(n_a, n_b) < 2:
        return Refusal(f"{min(n_a, n_b)} topics in one sample; at least 2 are needed", 2 - min(n_a, n_b))
    a, b = variance_a / n_a, variance_b / n_b
    if a + b == 0:
        return Refusal("both samples are constant, so their spread cannot be estimated")
    df = (a + b) ** 2 / (a**2 / (n_a - 1) + b**2 / (n_b - 1))
    n = min(n_a, n_b)
    result = estimate(mean_a - mean_b, a + b, degrees_of_freedom=df, n=n, sources=("topics",))
    return compare(result)


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Return Holm's adjusted p-values, in the order given: reject where they are below the level.

    Controls the chance of any false rejection, whatever the dependence. Source: Holm (1979).

    >>> holm([.01, .04, .03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    p = finite("p_values", p_values)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise ValueError(f"p_values must be a flat array in [0, 1], got {np.asarray(p_values).tolist()}")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted
