"""From noisy (bronze) labels and a random gold audit to corrected numbers: GREG-label, the reported one.

How to call it. All inputs are plain arrays, and nothing is changed in place.

Item-indexed, one entry per **judged** item (drawn, and with at least one label), in any fixed order:

- `weights[target, item]`: w of a run, or w_a - w_b of a pair of runs; unnormalised, 0 where not returned. Or a
  `TargetWeights` over the items. Give all targets at once: what does not depend on w is computed once. The result has
  one entry per target.
- `draw_probability[item]`: the recorded chance that the (Poisson) draw selected the item; 1 for a whole pool.
- `bronze_class[item]`: any integers, ordered: the label, or `vote_classes(...)`, or a binned machine score.
- `audited[item]`: bool. `gold_grade[item]`: read only where audited.
- `audit_probability[item]`: the chance of being audited **given** that it was judged, for every judged item,
  audited or not; 0 = it had none. Of several independent audits, the chance that any of them takes it.
- `prior[item]` and `prior_total[target]`, both or none: f, fixed before the draw, and sum f w over the frame.

Label-indexed, one entry per label: `label_item`, `label_assessor`, `label_grade`.
`gains[grade]` is the measure's gain of each grade. The papers' correction, `matrix_inverse` of
`analytics.papers.inverse`, takes the same.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Ints,
    Refusal,
    estimates,
    few_items_warning,
    refused_where,
    too_few_of,
)
from analytics.estimation.estimators import known_prior
from analytics.estimation.labels import merged_classes
from analytics.estimation.targets import Weights, as_targets, not_zero

AUDITED_FOR_NORMAL = 100  # from here z, below t
GREG_SOURCES = ("drawing", "label noise", "gold")


@dataclass(frozen=True)
class CorrectedEstimates:
    """What `correct` returns: GREG-label of every target, and what its interval over topics and advice need.

    `item_corrections` is ``[(mu_l - f) + (v - mu_l)/pi_audit] / pi`` per judged item, the same for all targets: a
    target's value is ``sum_frame f w + sum_judged w`` times this, so that its parts by topic are sums of it.
    `n_items` counts the judged items with weight.
    """

    estimates: Estimates
    item_corrections: Floats
    n_items: Ints


@dataclass(frozen=True)
class _GregInput:
    """The validated input of GREG-label. `audit_probability` is 1 where an item had no chance to be audited."""

    rows: Weights  # w / pi of the draw, [target, item]
    draw_probability: Floats
    audited: NDArray[np.bool_]
    gain: Floats  # gold gain where audited, 0 elsewhere
    audit_probability: Floats
    unauditable: NDArray[np.bool_]  # items without an audit probability
    prior: Floats
    prior_total: Floats
    mean: Floats  # mu of the item's class
    variance: Floats  # s2 of the item's class


# -- GREG-label ---------------------------------------------------------------------------------------------


def class_moments(classes: Ints, audited: NDArray[np.bool_], gain: Floats, pi: Floats, span: float) -> Floats:
    """Return (mu, s2) per item: weighted mean and variance of the audited gains of its bronze class.

    Ten equal audited gains do not prove that a class has no errors. So s2 counts one more observation, drawn
    from the gains of the whole audit (two grades: this is nearly Jeffreys' half a hit and half a miss), and is
    at least what half an unseen observation at the far end of the gain scale would make it.
    """
    value, weight, member = gain[audited], 1 / pi[audited], classes[audited]
    n, n_classes = value.size, int(classes.max()) + 1
    floor = span**2 * 0.5 * (n + 0.5) / (n + 1) ** 2
    centre, overall = (float(value.mean()), float(value.var())) if n else (0.0, 0.0)

    def weighted_means(values: Floats) -> Floats:
        return np.asarray(np.bincount(member, weight * values, n_classes) / np.where(count > 0, whole, 1.0))

    count, whole = np.bincount(member, minlength=n_classes), np.bincount(member, weight, n_classes)
    mean = weighted_means(value)
    spread = weighted_means((value - mean[member]) ** 2) * count / np.maximum(1, count - 1)
    with_one = (count * spread + overall) / (count + 1) + count * (mean - centre) ** 2 / (count + 1) ** 2
    return np.stack([mean, np.maximum(floor, with_one)])[:, classes]


def _greg_input(
    weights: Weights,
    *,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> _GregInput:
    targets = as_targets(weights)
    n_items = targets.n_items
    scale = finite("gains", gains)
    if scale.ndim != 1 or scale.size < 2:
        raise ValueError(f"gains must be flat with at least 2 grades, got shape {scale.shape}")
    drawn = probabilities("draw_probability", draw_probability, n_items)
    seen = np.asarray(audited)
    if seen.dtype != np.bool_ or seen.shape != (n_items,):
        raise ValueError(f"audited must be {n_items} booleans, got {seen.dtype} of shape {seen.shape}")
    grade = integers("gold_grade", np.where(seen, gold_grade, 0), 0, scale.size - 1)
    classes = integers("bronze_class", bronze_class)
    if classes.size != n_items:
        raise ValueError(f"bronze_class must have length {n_items}, got {classes.size}")
    pi = finite("audit_probability", audit_probability, (n_items,))
    if ((pi < 0) | (pi > 1)).any():
        raise ValueError(f"audit_probability must be in [0, 1], got {pi[(pi < 0) | (pi > 1)][0]}")
    if (pi[seen] == 0).any():
        raise ValueError("audit_probability of an audited item must be above 0, got 0")
    f, totals = known_prior(prior, prior_total, n_items, (len(targets),))

    gain = np.where(seen, scale[grade], 0.0)
    # targets with weight there are refused; elsewhere the value is multiplied by w = 0
    usable = np.where(pi == 0, 1.0, pi)
    mean, variance = np.zeros((2, 0))
    if n_items:
        merged = merged_classes(classes, seen)
        mean, variance = class_moments(merged, seen, gain, usable, float(np.ptp(scale)))
    rows = targets.times(1 / drawn)
    return _GregInput(rows, drawn, seen, gain, usable, pi == 0, f, totals, mean, variance)


def _values(judged: _GregInput) -> Floats:
    """Return U per target: known frame total, class means over the judged items, audited residuals."""
    return judged.prior_total + as_targets(judged.rows).totals(_corrections(judged))


def _corrections(judged: _GregInput) -> Floats:
    """Return ``(mu_l - f) + (v - mu_l)/pi_audit`` per item: what a target adds to its known total, times w / pi."""
    residual = np.where(judged.audited, (judged.gain - judged.mean) / judged.audit_probability, 0.0)
    return np.asarray(judged.mean - judged.prior + residual)


def _variances_and_counts(judged: _GregInput) -> tuple[Floats, Floats, Ints]:
    """Return per target the variance of the drawing, that of the audit, and counts[kind, target].

    Drawing: the estimated Poisson variance of ``sum w (v - f) / pi``. (v - f)^2 is known for audited items only, so it
    is itself estimated by the difference form: predicted from the bronze class for all, corrected by the audited ones
    (unbiased for a fixed prediction); never below half the prediction, because the correction is noisy and could make a
    small audit's variance vanish. Audit: max(V_design, V_pooled). Source: docs/methods/derivations/correction.md,
    sections 3.2 to 3.4. Counted are
    items with weight: judged, audited, not to be audited.
    """
    pi, undrawn = judged.audit_probability, 1 - judged.draw_probability
    predicted = (judged.mean - judged.prior) ** 2 + judged.variance
    observed = (judged.gain - judged.prior) ** 2
    columns = (
        undrawn * predicted,
        undrawn * np.where(judged.audited, (observed - predicted) / pi, 0.0),
        (1 - pi) * np.where(judged.audited, (judged.gain - judged.mean) / pi, 0.0) ** 2,
        (1 / pi - 1) * judged.variance,
    )
    masks = (np.ones(pi.size), judged.audited, judged.unauditable)
    squares, counted = as_targets(judged.rows).sums(
        (np.square, np.stack(columns, axis=1)), (not_zero, np.stack(masks, axis=1))
    )
    model, correction, design, pooled = squares.T
    drawing = np.maximum(model + correction, model / 2)
    return drawing, np.maximum(design, pooled), np.rint(counted.T).astype(np.int64)


def _refusals(n_audited: Ints, n_unauditable: Ints) -> dict[int, Refusal]:
    def no_probability(target: int) -> Refusal:
        count = int(n_unauditable[target])
        return Refusal(f"{count} judged items with non-zero weight have no audit probability", count)

    few = too_few_of(n_audited, FEWEST_ITEMS, "audited items")
    return few | refused_where(n_unauditable > 0, no_probability)


def correct(
    weights: Weights,
    *,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> CorrectedEstimates:
    """Return the corrected measure of every target, for these topics, with its 95 % confidence interval: GREG-label.

    ``U = sum_frame f w + sum_judged (w/pi) (mu_l - f) + sum_audited (w/pi) (v - mu_l) / pi_audit``.
    Assumption: items were drawn, and judged items audited, independently with the recorded probabilities
    (Poisson); the gold grade is right. Nothing is assumed about how assessors err. mu_l, the mean gold gain
    of a bronze class, is estimated from the same audit, which leaves a bias of second order.
    Variance: drawing plus audit, see `_variances_and_counts`. z from 100 audited items
    with w != 0, below that t with one degree of freedom less than their number; refused below 10.
    Two runs: one call with w_a - w_b, never two intervals. Arguments: top of the module.

    Source: docs/methods/derivations/correction.md, sections 2 and 3; Särndal, Swensson and Wretman (1992),
    chapters 6 and 9.
    """
    judged = _greg_input(
        weights,
        draw_probability=draw_probability,
        bronze_class=bronze_class,
        audited=audited,
        gold_grade=gold_grade,
        audit_probability=audit_probability,
        gains=gains,
        prior=prior,
        prior_total=prior_total,
    )
    drawing, audit, (n_items, n_audited, n_unauditable) = _variances_and_counts(judged)
    found = estimates(
        _values(judged),
        {"drawing": drawing, "gold": audit},
        degrees_of_freedom=np.where(n_audited >= AUDITED_FOR_NORMAL, np.inf, np.maximum(1, n_audited - 1)),
        n=n_audited,
        refusals=_refusals(n_audited, n_unauditable),
        sources=GREG_SOURCES,
        warning=lambda n: few_items_warning(n, "audited items"),
    )
    return CorrectedEstimates(found, _corrections(judged) / judged.draw_probability, n_items)


def greg_label(
    weights: Weights,
    *,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> Estimates:
    """Return the estimates of `correct` alone."""
    return correct(
        weights,
        draw_probability=draw_probability,
        bronze_class=bronze_class,
        audited=audited,
        gold_grade=gold_grade,
        audit_probability=audit_probability,
        gains=gains,
        prior=prior,
        prior_total=prior_total,
    ).estimates
