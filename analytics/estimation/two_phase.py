"""One estimator for a draw and an audit of what was drawn: the sum of weighted gains, from three kinds of knowledge.

    U = sum_frame w g + sum_judged (w/pi) (h - g) + sum_audited (w/(pi a)) (v - h)

g predicts the gain of every item of the frame before it is judged, h of every judged item with its labels, v is the
gold gain of an audited one; pi is the chance of being drawn and judged, a that of an audit, given that. Where the whole
pool is judged, pi = 1 and g cancels. Where experts judge the draw, every judged item is audited: a = 1 and h = v. "As
judged" is that too, with the mean gain of an item's labels for v.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, probabilities
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Ints,
    Refusal,
    estimates,
    few_items_warning,
    no_spread,
    refused_where,
    too_few_of,
)
from analytics.estimation.estimators import poisson_degrees_of_freedom
from analytics.estimation.targets import TargetWeights, Weights, as_targets, fourth_powers, not_zero

GREG_SOURCES = ("drawing", "label noise", "gold")
LEAST_DRAWING = 0.5  # of the drawing variance that q predicts: what the audits make of it is noisy


@dataclass(frozen=True)
class TwoPhase:
    """What `two_phase` returns: an estimate of every target, and what its interval over topics and advice need.

    `item_corrections` is ``[(h - g) + (v - h)/a] / pi`` per judged item, the same for all targets: a target's value is
    ``sum_frame w g + sum_judged w`` times this, so that its parts by topic are sums of it. `n_items` counts the judged
    items with weight.
    """

    estimates: Estimates
    item_corrections: Floats
    n_items: Ints


@dataclass(frozen=True, eq=False)
class Phases:
    """The judged items that were open to an audit, an entry an item, in any order.

    Attributes
    ----------
    draw_probability : array
        pi, within (0, 1].
    audited : bool array
    gold : array
        v, read where audited; elsewhere it becomes 0.
    audit_probability : array
        a, within [0, 1]: the chance of an audit, given that the item was judged; 0 = it had none.
    before, after, spread : arrays
        g, h, and s2, the predicted variance of v given h: not negative.

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths; an audited item without a chance of being audited.
    """

    draw_probability: Floats
    audited: NDArray[np.bool_]
    gold: Floats
    audit_probability: Floats
    before: Floats
    after: Floats
    spread: Floats

    def __post_init__(self) -> None:
        seen = np.asarray(self.audited)
        if seen.dtype != np.bool_ or seen.ndim != 1:
            raise ValueError(f"audited must be flat and boolean, got {seen.dtype} with {seen.ndim} axes")
        shape = seen.shape
        gold = np.where(seen, self.gold, 0.0) if np.shape(self.gold) == shape else self.gold
        chance = finite("audit_probability", self.audit_probability, shape)
        if ((chance < 0) | (chance > 1)).any():
            raise ValueError(
                f"audit_probability must be in [0, 1], got {chance[(chance < 0) | (chance > 1)][0]}"
            )
        if (chance[seen] == 0).any():
            raise ValueError("audit_probability of an audited item must be above 0, got 0")
        spread = finite("spread", self.spread, shape)
        if (spread < 0).any():
            raise ValueError(f"spread must be at least 0, got {spread.min()}")
        arrays = {
            "draw_probability": probabilities("draw_probability", self.draw_probability, seen.size),
            "audited": seen,
            "gold": finite("gold", gold, shape),
            "audit_probability": chance,
            "before": finite("before", self.before, shape),
            "after": finite("after", self.after, shape),
            "spread": spread,
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @property
    def unauditable(self) -> NDArray[np.bool_]:
        """Return which items had no chance of an audit: targets with weight there are refused."""
        return np.asarray(self.audit_probability == 0)

    @property
    def divisor(self) -> Floats:
        """Return a, and 1 where there was no chance: there, values are multiplied by a weight of 0."""
        return np.where(self.unauditable, 1.0, self.audit_probability)

    @property
    def item_corrections(self) -> Floats:
        """Return ``[(h - g) + (v - h)/a] / pi`` by item."""
        surprise = audit_surprises(self.gold, self.after, self.audited, self.divisor)
        return np.asarray((self.after - self.before + surprise) / self.draw_probability)


def audit_surprises(
    gold: Floats, after: Floats, audited: NDArray[np.bool_], audit_probability: Floats
) -> Floats:
    """Return ``(v - h)/a`` of audited items, else 0: with h it is unbiased for v over the audits, whatever h is.

    The last axis is that of the items; `audit_probability` is above 0.

    >>> audit_surprises(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([True, False]), np.full(2, 0.5)).tolist()
    [1.0, 0.0]
    """
    return np.where(audited, (gold - after) / audit_probability, 0.0)


# -- variance -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoPhaseSums:
    """What the variance of U is made of, by target.

    Attributes
    ----------
    predicted : array
        ``sum_judged kappa``, the variance of the drawing as g, h and s2 predict it.
    drawing : array
        The same corrected by the audits: unbiased for fixed g, h and s2, and below 0 at times.
    audit : array
        The unbiased estimate of the variance of the audit.
    expected_audit : array
        ``sum_judged (w/pi)^2 (1/a - 1) s2``, which the audit's variance is expected to be about.
    spread : array
        ``sum_judged (1 - pi) kappa^2 + sum_audited (1 - a) tau^2``: see `poisson_degrees_of_freedom`.
    n_items, n_audited, n_unauditable, n_uncertain : int arrays
        Judged items with weight; of these audited, without a chance of an audit, not certain to be drawn or audited.
    """

    predicted: Floats
    drawing: Floats
    audit: Floats
    expected_audit: Floats
    spread: Floats
    n_items: Ints
    n_audited: Ints
    n_unauditable: Ints
    n_uncertain: Ints

    @property
    def cautious_drawing(self) -> Floats:
        """Return the variance of the drawing, at least half of what is predicted: the audits' correction is noisy."""
        return np.maximum(self.drawing, LEAST_DRAWING * self.predicted)

    def refusals(self, fewest: int, noun: str) -> dict[int, Refusal]:
        """Return by place the targets without enough audited items, or with items that no audit could take."""

        def no_probability(target: int) -> Refusal:
            count = int(self.n_unauditable[target])
            return Refusal(f"{count} judged items with non-zero weight have no audit probability", count)

        few = too_few_of(self.n_audited, fewest, noun)
        return few | refused_where(self.n_unauditable > 0, no_probability)


def variance_terms(
    pi: Floats,
    a: Floats,
    audited: NDArray[np.bool_],
    before: Floats,
    after: Floats,
    gold: Floats,
    spread: Floats,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return, for a weight of 1, kappa, both parts of tau, the audit's expected part, and what the df need of an item.

    The last axis is that of the items, before it may be targets; a is above 0, and gold is read where audited.
    """
    expected = (after - before) ** 2 + spread
    found = (gold - before) ** 2
    predicted = (1 - pi) / pi**2 * expected
    correction = np.where(audited, (1 - pi) / pi**2 * (found - expected) / a, 0.0)
    audit = np.where(audited, (1 - a) * ((gold - after) / (a * pi)) ** 2, 0.0)
    pooled = (1 / a - 1) * spread / pi**2
    return predicted, correction, audit, pooled, (1 - pi) * predicted**2 + (1 - a) * (correction + audit) ** 2


def two_phase_sums(targets: TargetWeights, items: Phases) -> TwoPhaseSums:
    """Return the sums over the items, in one pass over the weights.

    kappa = w^2 (1 - pi)/pi^2 q of a judged item, q = (h - g)^2 + s2 the square of v - g that is expected; of an
    audited one tau = w^2/pi^2 [(1 - pi) ((v - g)^2 - q)/a + (1 - a)/a^2 (v - h)^2].
    """
    pi, a, seen = items.draw_probability, items.divisor, items.audited
    predicted, correction, audit, pooled, fourth = variance_terms(
        pi, a, seen, items.before, items.after, items.gold, items.spread
    )
    masks = (np.ones(pi.size), seen, items.unauditable, (pi < 1) | (a < 1))
    squares, spread, counted = targets.sums(
        (np.square, np.stack([predicted, correction, audit, pooled], axis=1)),
        (fourth_powers, fourth),
        (not_zero, np.stack(masks, axis=1)),
    )
    counts = np.rint(counted.T).astype(np.int64)
    return TwoPhaseSums(
        squares[:, 0], squares[:, 0] + squares[:, 1], squares[:, 2], squares[:, 3], spread, *counts
    )


def two_phase(
    weights: Weights,
    *,
    draw_probability: ArrayLike,
    audited: ArrayLike,
    gold: ArrayLike,
    audit_probability: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    spread: ArrayLike,
    before_total: ArrayLike,
    fewest: int = FEWEST_ITEMS,
) -> TwoPhase:
    """Return the sum of weighted gains of every target, for these topics, with its 95 % confidence interval.

    Assumption: items were drawn, and judged items audited, independently with the recorded probabilities (Poisson); the
    gold gain is right. Nothing is assumed about how assessors err. g, h and s2 are fixed without the item's own draw,
    labels and audit (cross-fitted: g and h of an item come from other folds): then U is exactly unbiased, whatever they
    are. The variance leaves out how the folds' parts move together, which is of second order.

    V is the unbiased estimate for fixed predictions, but that the drawing counts at least half of what is predicted.
    t with
    ``2 V^2 / (sum_judged (1 - pi) kappa^2 + sum_audited (1 - a) tau^2)`` degrees of freedom, at least 1: Satterthwaite.
    Refused below `fewest` audited items with weight, where a judged item with weight had no chance of an audit, and
    where all errors are 0; `fewest=0` gives the formula whatever comes. Two runs: one call with w_a - w_b.

    Parameters
    ----------
    weights : array [target, judged] or TargetWeights
        w, of a run or of a pair w_a - w_b; unnormalised, 0 where not returned.
    draw_probability, audited, gold, audit_probability, before, after, spread : arrays [judged]
        See `Phases`. Where a = 1 nothing is left to predict: there h counts as v, and s2 as 0.
    before_total : array [target]
        ``sum_frame w g``.

    Raises
    ------
    ValueError
        As `Phases`; weights or totals that do not fit.

    Source: docs/methods/derivations/correction.md, sections 2.1, 2.2, 3.1 and 3.5; Särndal, Swensson and Wretman
    (1992), chapters 6 and 9; Satterthwaite (1946).
    """
    targets = as_targets(weights)
    given = (draw_probability, audited, gold, audit_probability, before, after, spread)
    items = Phases(*(np.asarray(values) for values in given))
    certain = items.audited & (items.audit_probability == 1)
    items = replace(
        items,
        after=np.where(certain, items.gold, items.after),
        spread=np.where(certain, 0.0, items.spread),
    )
    if targets.n_items != items.audited.size:
        raise ValueError(f"weights must be of the {items.audited.size} judged items, got {targets.n_items}")
    total = finite("before_total", np.atleast_1d(before_total), (len(targets),))
    sums = two_phase_sums(targets, items)
    is_census = bool((items.audit_probability == 1).all())
    value = total + targets.totals(items.item_corrections)
    found = two_phase_estimates(value, sums, is_census=is_census, fewest=fewest)
    return TwoPhase(found, items.item_corrections, sums.n_items)


def two_phase_estimates(
    value: Floats,
    sums: TwoPhaseSums,
    *,
    is_census: bool,
    fewest: int,
    more: Mapping[str, Floats] | None = None,
) -> Estimates:
    """Return the values with the intervals of `two_phase`; `more` adds to V, by name, and leaves the df as they are."""
    drawing = sums.cautious_drawing
    # What s2 expects of the audit is no floor: with a quarter of it the coverage of pairs at 50 gold labels, whose 5th
    # percentiles are .929 to .983 (benchmarks/coverage.py --part prediction), is at most .002 higher.
    variance = drawing + sums.audit
    noun = "judged items" if is_census else "audited items"
    alike = (fewest > 0) & (variance == 0) & (sums.n_uncertain > 0)
    return estimates(
        value,
        {"drawing": drawing, "gold": sums.audit, **(more or {})},
        degrees_of_freedom=poisson_degrees_of_freedom(variance, sums.spread),
        n=sums.n_audited,
        refusals=refused_where(alike, lambda target: no_spread(int(sums.n_audited[target])))
        | sums.refusals(fewest, noun),
        sources=(*(GREG_SOURCES[:1] if is_census else GREG_SOURCES), *(more or {})),
        warning=lambda n: few_items_warning(n, noun),
    )
