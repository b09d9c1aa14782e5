"""Design-based estimates of a linear measure from the items that a draw selected.

Every function takes one row of weights per target (a run, or the difference of two runs, `w_a - w_b`) and
returns one result per row: an `Estimate`, or a `Refusal` that says why there is no number. A target is
``sum_i w_i u_i`` over the frame, `w` unnormalised. Arrays hold the *drawn* items unless a name says "frame".

Here are the estimators of a Poisson draw, and what all share. A draw of fixed size: `analytics.fixed_size`.
With replacement: `analytics.importance`. Topics as a sample of many: `analytics.topics`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

Floats = NDArray[np.float64]

FEWEST_ITEMS = 10  # below: coverage .86-.98 in simulation (methods/sampling.md, section 5), so no interval
FEW_ITEMS = 50  # below: coverage still .89-.95
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; `sources` names the errors the interval contains.

    `degrees_of_freedom` is None where the normal quantile was used. `n` counts the items (or topics) the
    standard error rests on. `components` splits the variance: (("drawing", .01), ("gold", .02)).
    """

    value: float
    standard_error: float
    low: float
    high: float
    degrees_of_freedom: float | None
    n: int
    sources: tuple[str, ...]
    components: tuple[tuple[str, float], ...] = ()
    warning: str = ""


@dataclass(frozen=True)
class Refusal:
    """The reason why there is no number, and about how many more labels (or topics) would give one."""

    reason: str
    needed: int | None = None


def quantile95(degrees_of_freedom: float | None) -> float:
    """Return the 97.5 % quantile of t, or of the normal distribution for None.

    >>> round(quantile95(9), 6), round(quantile95(None), 6)
    (2.262157, 1.959964)
    """
    return Z95 if degrees_of_freedom is None else float(stdtrit(degrees_of_freedom, 0.975))


def estimate(
    value: float,
    variance: float,
    *,
    degrees_of_freedom: float | None,
    n: int,
    sources: Sequence[str],
    components: Sequence[tuple[str, float]] = (),
    warning: str = "",
) -> Estimate:
    """Return the estimate with a symmetric 95 % interval, assuming value/SE is t (or normal) distributed."""
    if not (math.isfinite(value) and math.isfinite(variance) and variance >= 0):
        raise ValueError(f"value must be finite and variance finite and >= 0, got {value} and {variance}")
    error = math.sqrt(variance)
    half = quantile95(degrees_of_freedom) * error
    df = None if degrees_of_freedom is None else float(degrees_of_freedom)
    parts = tuple((name, float(part)) for name, part in components)
    low, high = float(value - half), float(value + half)
    return Estimate(float(value), error, low, high, df, int(n), tuple(sources), parts, warning)


def few_items_warning(n: int, noun: str = "judged items") -> str:
    """Return a warning below 50 items, else an empty string."""
    return f"only {n} {noun}: coverage of the interval may be as low as .86" if n < FEW_ITEMS else ""


def too_few(n: int, least: int = FEWEST_ITEMS, noun: str = "judged items") -> Refusal:
    """Return the refusal for `n` items with non-zero weight where `least` are needed."""
    return Refusal(f"{n} {noun} with non-zero weight; at least {least} are needed", least - n)


def no_spread(n: int) -> Refusal:
    """Return the refusal for `n` items whose errors are all alike: an interval of no width would be false.

    The usual case: nothing that was judged is relevant, and there is no prior (methods/sampling.md, 4).
    """
    return Refusal(
        f"the {n} judged items with non-zero weight are all alike, so the error cannot be estimated; "
        "judge more, or use the difference from a prior guess"
    )


# -- validation ---------------------------------------------------------------------------------------------


def finite(name: str, values: ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    """Return `values` as a float array. Raise ValueError for NaN, infinity or another shape."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def probabilities(name: str, values: ArrayLike, n_items: int) -> Floats:
    """Return `values` as an array of `n_items` probabilities in (0, 1]. Raise ValueError otherwise."""
    array = finite(name, values, (n_items,))
    outside = (array <= 0) | (array > 1)
    if outside.any():
        raise ValueError(f"{name} must be in (0, 1], got {array[outside][0]}")
    return array


def weight_rows(weights: ArrayLike) -> Floats:
    """Return weights as [target, item]; one row given flat becomes one target."""
    array = finite("weights", weights)
    if array.ndim not in (1, 2):
        raise ValueError(f"weights must have 1 or 2 axes, got {array.ndim}")
    return np.atleast_2d(array)


def prior_rows(
    prior: ArrayLike | None, prior_total: ArrayLike | None, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the prediction f of each drawn item and the known frame totals sum f w of each target."""
    if (prior is None) != (prior_total is None):
        raise ValueError("prior and prior_total belong together, got only one of them")
    if prior is None or prior_total is None:
        return np.zeros(shape[1]), np.zeros(shape[0])
    totals = np.atleast_1d(finite("prior_total", prior_total))
    return finite("prior", prior, (shape[1],)), finite("prior_total", totals, (shape[0],))


def label_variances(label_variance: ArrayLike | None, n_items: int) -> tuple[Floats, tuple[str, ...]]:
    """Return nu per item (zeros for None) and the sources of error that the estimate then names."""
    if label_variance is None:
        return np.zeros(n_items), ("drawing",)
    return finite("label_variance", label_variance, (n_items,)), ("drawing", "label noise")


# -- support ------------------------------------------------------------------------------------------------


def unsupported_share(frame_weights: ArrayLike, inclusion_probability: ArrayLike) -> Floats:
    """Return per target the share of ``sum |w|`` on frame items that the design can never select.

    Anything above 0 is a bias no interval shows (methods/sampling.md, section 4): refuse it.

    >>> unsupported_share([[1, -1, 2]], [.5, .5, 0]).tolist()
    [0.5]
    """
    weights = np.abs(weight_rows(frame_weights))
    probability = finite("inclusion_probability", inclusion_probability, (weights.shape[1],))
    total = weights.sum(axis=1)
    outside = weights[:, probability <= 0].sum(axis=1)
    share: Floats = np.divide(outside, total, out=np.zeros_like(total), where=total > 0)
    return share


# -- Poisson draws ------------------------------------------------------------------------------------------


def poisson_terms(error: Floats, probability: Floats) -> Floats:
    """Return ``(1 - pi) (e/pi)^2`` per drawn item; their sum estimates the Poisson variance without bias."""
    terms: Floats = (1 - probability) * (error / probability) ** 2
    return terms


def poisson_degrees_of_freedom(terms: Floats, probability: Floats) -> float | None:
    """Return ``2 V^2 / sum (1 - pi) v^2`` for the variance terms v, at least 1; None for the normal.

    The denominator estimates the variance of V itself under Poisson sampling (Satterthwaite's rule).

    >>> poisson_degrees_of_freedom(np.ones(5), np.full(5, .5))
    20.0
    """
    spread = float(((1 - probability) * terms**2).sum())
    total = float(terms.sum()) ** 2
    return max(1.0, 2 * total / spread) if spread > 0 and total > 0 else None


def _poisson_estimate(
    value: float, w: Floats, error: Floats, nu: Floats, pi: Floats, sources: tuple[str, ...], fewest: int
) -> Estimate | Refusal:
    """Return the interval of `value`, whose sampled part is sum e/pi with the label noise nu w^2/pi."""
    used = int(np.count_nonzero(w))
    drawing, noise = poisson_terms(error, pi), nu * w**2 / pi
    if fewest and not drawing.any() and (pi[w != 0] < 1).any():
        return no_spread(used)
    # nu is unbiased but may be negative for single labels; a variance may not
    parts = [("drawing", float(drawing.sum())), ("label noise", max(0.0, float(noise.sum())))]
    return estimate(
        value,
        sum(part for _, part in parts),
        degrees_of_freedom=poisson_degrees_of_freedom(drawing + noise, pi),
        n=used,
        sources=sources,
        components=parts[: len(sources)],
        warning=few_items_warning(used),
    )


def difference_estimator(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> list[Estimate | Refusal]:
    """Return ``sum_frame f w + sum_drawn (u - f) w / pi``, one result per row of weights.

    Assumption: Poisson draw with the recorded pi; the prior f was fixed without the item's own inclusion:
    before the draw, or cross-fitted (f of an item learned from the labels of other folds only, the folds
    fixed before the draw). Cross-fitted, the value stays exactly unbiased; the variance leaves out how the
    folds' parts move together, which is of second order. Without a prior: Horvitz and Thompson (1952).
    `label_variance` is nu, an unbiased estimate of the variance of each utility given the truth (corrected
    noisy labels): it adds ``sum nu w^2/pi``. t with ``2 V^2 / sum (1-pi) v^2`` degrees of freedom. Refused
    below `fewest` items with weight and where all errors are 0; `fewest=0` gives the formula whatever comes.

    Source: methods/sampling.md, sections 1 and 5; Cassel, Särndal and Wretman (1976) for the difference form.
    """
    rows = weight_rows(weights)
    n_items = rows.shape[1]
    u = finite("utility", utility, (n_items,))
    pi = probabilities("inclusion_probability", inclusion_probability, n_items)
    f, totals = prior_rows(prior, prior_total, (rows.shape[0], n_items))
    nu, sources = label_variances(label_variance, n_items)

    results: list[Estimate | Refusal] = []
    for w, total in zip(rows, totals, strict=True):
        if np.count_nonzero(w) < fewest:
            results.append(too_few(int(np.count_nonzero(w)), fewest))
            continue
        error = w * (u - f)
        value = float(total + (error / pi).sum())
        results.append(_poisson_estimate(value, w, error, nu, pi, sources, fewest))
    return results


def horvitz_thompson(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> list[Estimate | Refusal]:
    """Return ``sum_drawn u w / pi`` under a Poisson draw, one result per row of weights.

    For a run's own value this has 1.2 to 1.4 times the variance it need have, because the number drawn is
    random: give `difference_estimator` a prior, use `hajek_ratio`, or draw a fixed size.

    >>> horvitz_thompson([1, 2], [1, 1], [.5, 1], fewest=1)[0].value
    4.0

    Source: Horvitz and Thompson (1952); methods/sampling.md, sections 1 and 4.
    """
    return difference_estimator(
        weights, utility, inclusion_probability, label_variance=label_variance, fewest=fewest
    )


def hajek_ratio(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    weight_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> list[Estimate | Refusal]:
    """Return ``r = (sum_drawn w u / pi) / (sum_drawn w / pi)``, times the known ``sum_frame w`` if given.

    Without `weight_total` (one number per target) this estimates the *mean* utility of the frame's items,
    each counted by its weight: ``sum w u / sum w``, the size of the population itself being estimated. With it
    it estimates the measure ``sum w u``, and is then better than Horvitz and Thompson whenever utilities are
    nearer to their mean than to 0. Assumption: Poisson draw. The bias is of order 1/n; the variance is that of
    the linear part, ``n/(n-1) sum (1-pi) (w (u-r)/pi)^2``, scaled; n/(n-1) because r was fitted. Rows with
    weights of both signs are refused: the denominator of a difference may be anywhere near 0.

    >>> hajek_ratio([2, 2], [1, 3], [.5, .5], weight_total=[10], fewest=2)[0].value
    20.0

    Source: Hájek (1971); Särndal, Swensson and Wretman (1992), section 5.7.
    """
    rows = weight_rows(weights)
    n_items = rows.shape[1]
    u = finite("utility", utility, (n_items,))
    pi = probabilities("inclusion_probability", inclusion_probability, n_items)
    known = None if weight_total is None else finite("weight_total", weight_total, (rows.shape[0],))
    if known is not None and (known <= 0).any():
        raise ValueError(f"weight_total must be above 0, got {known.min()}")
    nu, sources = label_variances(label_variance, n_items)

    results: list[Estimate | Refusal] = []
    for target, w in enumerate(rows):
        used = int(np.count_nonzero(w))
        if used < max(2, fewest):
            results.append(too_few(used, max(2, fewest)))
            continue
        if w.min() < 0:
            results.append(Refusal("a ratio needs weights of one sign; use the difference estimator"))
            continue
        size = float((w / pi).sum())
        scale = (1.0 if known is None else float(known[target])) / size
        mean = float((w * u / pi).sum()) / size
        error = scale * w * (u - mean) * math.sqrt(used / (used - 1))
        results.append(_poisson_estimate(scale * size * mean, scale * w, error, nu, pi, sources, fewest))
    return results
