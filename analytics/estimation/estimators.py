"""Design-based estimates of a linear measure from the items that a draw selected.

Every function takes the weights of its targets, a run or the difference of two runs `w_a - w_b`: a table
[target, item], one row [item], or `analytics.estimation.targets.TargetWeights`, which knows all pairs of runs
without writing them out. It returns one result per target: an `Estimate`, or a `Refusal` that says why there is no
number. A target is ``sum_i w_i u_i`` over the frame, `w` unnormalised. Arrays hold the *drawn* items unless a name
says "frame".

Here are the estimators of a Poisson draw, and what all share. A draw of fixed size: `analytics.estimation.fixed_size`.
With replacement: `analytics.estimation.importance`. Topics as a sample of many: `analytics.estimation.topics`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, probabilities
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimate,
    Estimates,
    Floats,
    Ints,
    Refusal,
    estimates,
    few_or_alike,
    too_few,
)
from analytics.estimation.targets import (
    TargetWeights,
    Weights,
    as_targets,
    fourth_powers,
    not_zero,
    weight_rows,
)

# -- what all estimators of a draw share -----------------------------------------------------------------


def known_prior(
    prior: ArrayLike | None, prior_total: ArrayLike | None, n_items: int, shape: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """Return the prediction f of each item, and what is known of the targets: sum f w over the frame, or its parts."""
    if (prior is None) != (prior_total is None):
        raise ValueError("prior and what is known of it belong together, got only one of them")
    if prior is None or prior_total is None:
        return np.zeros(n_items), np.zeros(shape)
    totals = finite("prior_total", prior_total)
    totals = totals.reshape(shape) if totals.ndim < len(shape) and totals.size == math.prod(shape) else totals
    return finite("prior", prior, (n_items,)), finite("prior_total", totals, shape)


@dataclass(frozen=True)
class Sample:
    """What every estimator of a draw starts from, validated. Item-indexed, but `prior_total` [target]."""

    targets: TargetWeights
    utility: Floats
    probability: Floats
    prior: Floats
    prior_total: Floats
    label_variance: Floats
    sources: tuple[str, ...]

    @property
    def surprise(self) -> Floats:
        """Return (u - f)/pi: what an item adds to every target, times its weight."""
        return (self.utility - self.prior) / self.probability

    @property
    def noise(self) -> Floats:
        """Return nu/pi: what an item's label noise adds to the variance, times its squared weight."""
        return self.label_variance / self.probability

    @property
    def uncertain(self) -> NDArray[np.bool_]:
        return self.probability < 1

    def values(self) -> Floats:
        """Return ``sum_frame f w + sum_drawn (u - f) w / pi`` by target."""
        return self.prior_total + self.targets.totals(self.surprise)


def sample(
    weights: Weights,
    utility: ArrayLike,
    probability: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    named: str = "inclusion_probability",
) -> Sample:
    """Return the arguments that all estimators of a draw share. ValueError where they do not fit together."""
    targets = as_targets(weights)
    n_items = targets.n_items
    u = finite("utility", utility, (n_items,))
    pi = probabilities(named, probability, n_items)
    f, totals = known_prior(prior, prior_total, n_items, (len(targets),))
    nu, sources = label_variances(label_variance, n_items)
    return Sample(targets, u, pi, f, totals, nu, sources)


def label_variances(label_variance: ArrayLike | None, n_items: int) -> tuple[Floats, tuple[str, ...]]:
    """Return nu per item (zeros for None) and the sources of error that the estimate then names."""
    if label_variance is None:
        return np.zeros(n_items), ("drawing",)
    return finite("label_variance", label_variance, (n_items,)), ("drawing", "label noise")


# -- Poisson draws ------------------------------------------------------------------------------------------


def poisson_degrees_of_freedom(variance: ArrayLike, spread: ArrayLike) -> Floats:
    """Return ``2 V^2 / spread``, at least 1, for a Poisson variance V; infinity, the normal, where that is 0/0.

    ``spread = sum (1 - pi) v^2`` for the terms v of V estimates half the variance of V (Satterthwaite's rule).

    >>> terms, pi = np.ones(5), np.full(5, .5)
    >>> float(poisson_degrees_of_freedom(terms.sum(), ((1 - pi) * terms**2).sum()))
    20.0
    """
    top, spread = 2 * np.asarray(variance, dtype=np.float64) ** 2, np.asarray(spread, dtype=np.float64)
    known = (spread > 0) & (top > 0)
    return np.asarray(
        np.where(known, np.maximum(1.0, np.divide(top, spread, out=np.ones_like(top), where=known)), np.inf)
    )


@dataclass(frozen=True)
class PoissonSums:
    """What the variance of a Poisson draw needs, by target; `spread` is that of `poisson_degrees_of_freedom`."""

    drawing: Floats  # sum w^2 (1 - pi) surprise^2
    noise: Floats  # sum w^2 noise: unbiased, but may be negative for single labels
    spread: Floats
    n: Ints  # items with weight
    n_uncertain: Ints  # of these, with pi < 1


def poisson_sums(targets: TargetWeights, surprise: Floats, noise: Floats, pi: Floats) -> PoissonSums:
    """Return the sums over items with ``surprise = (u - f)/pi`` and ``noise = nu/pi``, one pass over the weights."""
    drawing = (1 - pi) * surprise**2
    squares, spread, counts = targets.sums(
        (np.square, np.stack([drawing, noise], axis=1)),
        (fourth_powers, (1 - pi) * (drawing + noise) ** 2),
        (not_zero, np.stack([np.ones(pi.size), pi < 1], axis=1)),
    )
    n, n_uncertain = np.rint(counts).astype(np.int64).T
    return PoissonSums(squares[:, 0], squares[:, 1], spread, n, n_uncertain)


def _poisson_estimates(value: Floats, sums: PoissonSums, sources: tuple[str, ...], fewest: int) -> Estimates:
    """Return the intervals of the values, whose sampled part is sum w * surprise with the label noise."""
    alike = (fewest > 0) & (sums.drawing == 0) & (sums.n_uncertain > 0)
    # a variance may not be negative
    parts = {"drawing": sums.drawing, "label noise": np.maximum(0.0, sums.noise)}
    return estimates(
        value,
        {name: parts[name] for name in sources},
        degrees_of_freedom=poisson_degrees_of_freedom(sums.drawing + sums.noise, sums.spread),
        n=sums.n,
        refusals=few_or_alike(sums.n, alike, fewest),
    )


def difference_estimator(
    weights: Weights,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return ``sum_frame f w + sum_drawn (u - f) w / pi``, one result per target.

    Assumption: Poisson draw with the recorded pi; the prior f was fixed without the item's own inclusion:
    before the draw, or cross-fitted (f of an item learned from the labels of other folds only, the folds
    fixed before the draw). Cross-fitted, the value stays exactly unbiased; the variance leaves out how the
    folds' parts move together, which is of second order. Without a prior: Horvitz and Thompson (1952).
    `label_variance` is nu, an unbiased estimate of the variance of each utility given the truth (corrected
    noisy labels): it adds ``sum nu w^2/pi``. t with ``2 V^2 / sum (1-pi) v^2`` degrees of freedom. Refused
    below `fewest` items with weight and where all errors are 0; `fewest=0` gives the formula whatever comes.

    Source: docs/methods/derivations/sampling.md, section 3.2; Cassel, Särndal and Wretman (1976).
    """
    drawn = sample(
        weights,
        utility,
        inclusion_probability,
        prior=prior,
        prior_total=prior_total,
        label_variance=label_variance,
    )
    sums = poisson_sums(drawn.targets, drawn.surprise, drawn.noise, drawn.probability)
    return _poisson_estimates(drawn.values(), sums, drawn.sources, fewest)


def hajek_ratio(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    weight_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Sequence[Estimate | Refusal]:
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
    drawn = sample(weights, utility, inclusion_probability, label_variance=label_variance)
    rows, u, pi = weight_rows(weights), drawn.utility, drawn.probability
    known = None if weight_total is None else finite("weight_total", weight_total, (rows.shape[0],))
    if known is not None and (known <= 0).any():
        raise ValueError(f"weight_total must be above 0, got {known.min()}")

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
        surprise = (u - mean) / pi * math.sqrt(used / (used - 1))
        sums = poisson_sums(as_targets(scale * w), surprise, drawn.noise, pi)
        value = np.array([scale * size * mean])
        results += _poisson_estimates(value, sums, drawn.sources, fewest)
    return results
