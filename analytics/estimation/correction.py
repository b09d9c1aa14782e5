"""From noisy (bronze) labels and a random gold audit to corrected numbers: GREG-label, the reported one.

How to call it: `correct(weights, audit, gains, prior=..., prior_total=...)`. Nothing is changed in place.

- `weights[target, item]`: w of a run, or w_a - w_b of a pair of runs, over the **judged** items (drawn, and with at
  least one label); unnormalised, 0 where not returned. Or a `TargetWeights` over the items. Give all targets at once:
  what does not depend on w is computed once. The result has one entry per target.
- `audit`: an `analytics.estimation.samples.AuditSample`, the judged items that an audit could take and what it found.
- `gains[grade]`: the measure's gain of each grade.
- `prior[item]` and `prior_total[target]`, both or none: f, fixed before the draw, and sum f w over the frame.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from analytics.estimation.samples import AuditSample
from analytics.estimation.targets import TargetWeights, Weights, as_targets, not_zero

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
    """What GREG-label adds up. `audit_probability` is 1 where an item had no chance to be audited."""

    rows: TargetWeights  # w / pi of the draw, [target, item]
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


def _greg_input(
    targets: TargetWeights,
    audit: AuditSample,
    gains: ArrayLike,
    prior: ArrayLike | None,
    prior_total: ArrayLike | None,
) -> _GregInput:
    """Return what the sums need, over the items that were open to the audits."""
    if targets.n_items != audit.n_judged:
        raise ValueError(f"weights must be of the {audit.n_judged} judged items, got {targets.n_items}")
    f, totals = known_prior(prior, prior_total, targets.n_items, (len(targets),))
    scale, gain = audit.gains(gains)
    mean, variance = audit.class_moments(gain, float(np.ptp(scale)))
    rows = targets if audit.is_whole else targets.over(audit.member)
    return _GregInput(
        rows=rows.times(1 / audit.draw_probability),
        draw_probability=audit.draw_probability,
        audited=audit.audited,
        gain=gain,
        audit_probability=audit.divisor,
        unauditable=audit.unauditable,
        prior=f[audit.member],
        prior_total=totals,
        mean=mean,
        variance=variance,
    )


def _values(judged: _GregInput) -> Floats:
    """Return U per target: known frame total, class means over the judged items, audited residuals."""
    return judged.prior_total + judged.rows.totals(_corrections(judged))


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
    squares, counted = judged.rows.sums(
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
    audit: AuditSample,
    gains: ArrayLike,
    *,
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
    judged = _greg_input(as_targets(weights), audit, gains, prior, prior_total)
    drawing, gold, (n_items, n_audited, n_unauditable) = _variances_and_counts(judged)
    found = estimates(
        _values(judged),
        {"drawing": drawing, "gold": gold},
        degrees_of_freedom=np.where(n_audited >= AUDITED_FOR_NORMAL, np.inf, np.maximum(1, n_audited - 1)),
        n=n_audited,
        refusals=_refusals(n_audited, n_unauditable),
        sources=GREG_SOURCES,
        warning=lambda n: few_items_warning(n, "audited items"),
    )
    return CorrectedEstimates(found, _corrections(judged) / judged.draw_probability, n_items)
