"""From noisy (bronze) labels and a random gold audit to corrected numbers by class means: GREG-label.

The reported number predicts gold instead (`analytics.estimation.audit_correction`). This one serves releases of 0.1.0,
forecasts of audits, which play them many times, and benchmarks, as the wide control.

How to call it: `correct(weights, audit, gains, prior=..., prior_total=...)`. Nothing is changed in place.

- `weights[target, item]`: w of a run, or w_a - w_b of a pair of runs, over the **judged** items (drawn, and with at
  least one label); unnormalised, 0 where not returned. Or a `TargetWeights` over the items. Give all targets at once:
  what does not depend on w is computed once. The result has one entry per target.
- `audit`: an `analytics.estimation.samples.AuditSample`, the judged items that an audit could take and what it found.
- `gains[grade]`: the measure's gain of each grade.
- `prior[item]` and `prior_total[target]`, both or none: f, fixed before the draw, and sum f w over the frame.
"""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.estimate import FEWEST_ITEMS, Floats, estimates, few_items_warning
from analytics.estimation.estimators import known_prior
from analytics.estimation.samples import AuditSample
from analytics.estimation.targets import Weights, as_targets
from analytics.estimation.two_phase import GREG_SOURCES, Phases, TwoPhase, two_phase_sums

AUDITED_FOR_NORMAL = 100  # from here z, below t


def class_phases(audit: AuditSample, gains: ArrayLike, prior: Floats) -> Phases:
    """Return the items that were open to the audits, with class means for h and class variances for s2."""
    scale, gain = audit.gains(gains)
    mean, variance = audit.class_moments(gain, float(np.ptp(scale)))
    return Phases(
        draw_probability=audit.draw_probability,
        audited=audit.audited,
        gold=gain,
        audit_probability=audit.audit_probability,
        before=prior[audit.member],
        after=mean,
        spread=variance,
    )


def correct(
    weights: Weights,
    audit: AuditSample,
    gains: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> TwoPhase:
    """Return the corrected measure of every target, for these topics, with its 95 % confidence interval: GREG-label.

    ``U = sum_frame f w + sum_judged (w/pi) (mu_l - f) + sum_audited (w/pi) (v - mu_l) / pi_audit``.
    Assumption: items were drawn, and judged items audited, independently with the recorded probabilities
    (Poisson); the gold grade is right. Nothing is assumed about how assessors err. mu_l, the mean gold gain
    of a bronze class, is estimated from the same audit, which leaves a bias of second order.
    Variance: drawing plus audit, of this the larger of what is seen and what the class variances expect.
    z from 100 audited items with w != 0, below that t with one degree of freedom less than their number; refused
    below 10.
    Two runs: one call with w_a - w_b, never two intervals. Arguments: top of the module.

    Source: docs/methods/derivations/correction.md, sections 2.3, 3.2 and 3.3; Särndal, Swensson and Wretman (1992),
    chapters 6 and 9.
    """
    targets = as_targets(weights)
    if targets.n_items != audit.n_judged:
        raise ValueError(f"weights must be of the {audit.n_judged} judged items, got {targets.n_items}")
    f, known_total = known_prior(prior, prior_total, targets.n_items, (len(targets),))
    items = class_phases(audit, gains, f)
    here = targets if audit.is_whole else targets.over(audit.member)
    sums = two_phase_sums(here, items)
    n = sums.n_audited
    found = estimates(
        known_total + here.totals(items.item_corrections),
        {"drawing": sums.cautious_drawing, "gold": np.maximum(sums.audit, sums.expected_audit)},
        degrees_of_freedom=np.where(n >= AUDITED_FOR_NORMAL, np.inf, np.maximum(1, n - 1)),
        n=n,
        refusals=sums.refusals(FEWEST_ITEMS, "audited items"),
        sources=GREG_SOURCES,
        warning=lambda n: few_items_warning(n, "audited items"),
    )
    return TwoPhase(found, items.item_corrections, sums.n_items)
