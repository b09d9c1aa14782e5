"""Is run A better than run B, and how surely: differences, tests, and Holm's adjustment for many of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, stdtr

from analytics.estimators import Estimate, Floats, Refusal, estimate, few_items_warning, finite, weight_rows


@dataclass(frozen=True)
class Comparison:
    """A difference with its two-sided p-value. `statistic` is None for runs that are the same."""

    difference: Estimate
    statistic: float | None
    p_value: float


def difference_weights(weights_a: ArrayLike, weights_b: ArrayLike) -> Floats:
    """Return ``w_a - w_b``: a difference is estimated with these, never from two separate intervals."""
    a = finite("weights_a", weights_a)
    return np.asarray(a - finite("weights_b", weights_b, a.shape))


def pairs_of_runs(weights: ArrayLike) -> tuple[list[tuple[int, int]], Floats]:
    """Return all pairs (a, b), a < b, and the rows w_a - w_b in the same order.

    >>> pairs_of_runs([[1, 0], [0, 1]])[1].tolist()
    [[1.0, -1.0]]
    """
    rows = weight_rows(weights)
    first, second = np.triu_indices(rows.shape[0], 1)
    pairs = [(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    return pairs, rows[first] - rows[second]


def identical_runs(frame_weights_a: ArrayLike, frame_weights_b: ArrayLike) -> Comparison | None:
    """Return a difference of exactly 0 if the weights agree on the whole frame, else None.

    Ask this first: a design for two equal runs has no sizes, and no label can change the answer.
    """
    if np.any(difference_weights(frame_weights_a, frame_weights_b)):
        return None
    nothing = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    return Comparison(nothing, None, 1.0)


def compare(difference: Estimate | Refusal) -> Comparison | Refusal:
    """Return the difference with its two-sided p from t, or from the normal without degrees of freedom.

    Assumption: `difference` was estimated as one number with w_a - w_b; its p then agrees with its interval.
    A standard error of 0 is refused (a known 0 is `identical_runs`): no source of error was measured.
    """
    if isinstance(difference, Refusal):
        return difference
    if difference.standard_error == 0:
        return Refusal("the standard error is 0, so there is no test: no source of error was measured")
    statistic = difference.value / difference.standard_error
    df = difference.degrees_of_freedom
    p = ndtr(-abs(statistic)) if df is None else stdtr(df, -abs(statistic))
    return Comparison(difference, statistic, float(2 * p))


def paired_t(values_a: ArrayLike, values_b: ArrayLike) -> Comparison | Refusal:
    """Return the paired t over topics: the topics are a sample, the values of a topic belong together.

    Assumption: independent topics. The interval holds drawing and label errors as well where the per-topic
    values contain them. Refused for fewer than 2 topics or differences that are all equal.
    """
    a = finite("values_a", values_a)
    if a.ndim != 1:
        raise ValueError(f"values_a must be flat, got {a.ndim} axes")
    d = a - finite("values_b", values_b, a.shape)
    if d.size < 2:
        return Refusal(f"{d.size} topics; at least 2 are needed", 2 - d.size)
    variance = float(d.var(ddof=1)) / d.size
    # rounding leaves a spread of 1e-17 in differences that are equal
    if variance <= (1e-12 * float(np.abs(d).max())) ** 2:
        return Refusal("all topics have the same difference, so its spread cannot be estimated")
    warning = few_items_warning(d.size, "topics") if d.size < 10 else ""
    result = estimate(
        float(d.mean()),
        variance,
        degrees_of_freedom=d.size - 1,
        n=d.size,
        sources=("topics",),
        components=(("topics", variance),),
        warning=warning,
    )
    return compare(result)


def welch(
    mean_a: float, variance_a: float, n_a: int, mean_b: float, variance_b: float, n_b: int
) -> Comparison | Refusal:
    """Return Welch's t for two systems measured on different topics.

    `variance` is the sample variance of the values (not of the mean). Assumption: the two samples are
    independent; for the same topics use `paired_t`. Degrees of freedom as Welch has them: the second
    denominator is n_b - 1, the first n_a - 1 (the paper prints n_b - 1 twice).

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


def resolved(comparison: Comparison, level: float = 0.05) -> bool:
    """Return whether the two-sided p-value is below `level`."""
    if not (0 < level < 1 and math.isfinite(level)):
        raise ValueError(f"level must be in (0, 1), got {level}")
    return comparison.p_value < level
