"""From noisy (bronze) labels and a random gold audit to corrected numbers: GREG-label, the reported one.

How to call it. All inputs are plain arrays, and nothing is changed in place.

Item-indexed, one entry per **judged** item (drawn, and with at least one label), in any fixed order:

- `weights[target, item]`: w of a run, or w_a - w_b of a pair of runs; unnormalised, 0 where not returned.
  Give all targets at once: what does not depend on w is computed once. The result has one entry per target.
- `draw_probability[item]`: the recorded chance that the (Poisson) draw selected the item; 1 for a whole pool.
- `bronze_class[item]`: any integers, ordered: the label, or `vote_classes(...)`, or a binned machine score.
- `audited[item]`: bool. `gold_grade[item]`: read only where audited.
- `audit_probability[item]`: the chance of being audited **given** that it was judged, for every judged item,
  audited or not; 0 = it had none. Several independent audits: `combined_audit_probability`.
- `prior[item]` and `prior_total[target]`, both or none: f, fixed before the draw, and sum f w over the frame.
- `topic_index[item]` in 0..n_topics-1, only for `greg_label_by_topic`.

Label-indexed, one entry per label: `label_item`, `label_assessor`, `label_grade`.
`gains[grade]` is the measure's gain of each grade. `naive` and `matrix_inverse` (the papers' correction), which
live in `analytics.labels` and `analytics.inverse`, take these and can be imported from here.

Memory: about 4 floats per target and item at the peak. Hand all pairs of 100 runs over in slices of some
hundred rows; class means do not depend on the rows, so slices give the same numbers.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimators import (
    FEWEST_ITEMS,
    Z95,
    Estimate,
    Floats,
    Refusal,
    estimate,
    few_items_warning,
    finite,
    prior_rows,
    probabilities,
    too_few,
    weight_rows,
)
from analytics.inverse import matrix_inverse as matrix_inverse
from analytics.labels import Ints, integers, merged_classes
from analytics.labels import naive as naive
from analytics.topics import over_topics

AUDITED_FOR_NORMAL = 100  # from here z, below t
GREG_SOURCES = ("drawing", "label noise", "gold")


@dataclass(frozen=True)
class _Judged:
    """The validated input of GREG-label. `audit_probability` is 1 where an item has weight in no target."""

    rows: Floats  # w / pi of the draw, [target, item]
    draw_probability: Floats
    audited: NDArray[np.bool_]
    gain: Floats  # gold gain where audited, 0 elsewhere
    audit_probability: Floats
    unauditable: Ints  # per target: judged items with weight and without an audit probability
    prior: Floats
    prior_total: Floats
    mean: Floats  # mu of the item's class
    variance: Floats  # s2 of the item's class


# -- preparing inputs ---------------------------------------------------------------------------------------


def combined_audit_probability(batch_probability: ArrayLike) -> Floats:
    """Return ``1 - prod(1 - pi_b)``: the chance that any of several independent audits takes the item.

    >>> combined_audit_probability([[.5, .1], [.5, 0]]).round(6).tolist()
    [0.75, 0.1]
    """
    batches = np.atleast_2d(finite("batch_probability", batch_probability))
    if ((batches < 0) | (batches > 1)).any():
        raise ValueError(f"batch_probability must be in [0, 1], got {batches.min()}..{batches.max()}")
    return np.asarray(1 - np.prod(1 - batches, axis=0))


# -- GREG-label ---------------------------------------------------------------------------------------------


def class_moments(classes: Ints, audited: NDArray[np.bool_], gain: Floats, pi: Floats, span: float) -> Floats:
    """Return (mu, s2) per item: weighted mean and variance of the audited gains of its bronze class.

    Ten equal audited gains do not prove that a class has no errors. So s2 counts one more observation, drawn
    from the gains of the whole audit (two grades: this is nearly Jeffreys' half a hit and half a miss), and is
    at least what half an unseen observation at the far end of the gain scale would make it.
    """
    value, weight = gain[audited], 1 / pi[audited]
    n = value.size
    floor = span**2 * 0.5 * (n + 0.5) / (n + 1) ** 2
    centre, overall = (float(value.mean()), float(value.var())) if n else (0.0, 0.0)
    moments = np.zeros((2, int(classes.max()) + 1))
    for k in range(moments.shape[1]):
        member = classes[audited] == k
        count = int(member.sum())
        if count == 0:
            moments[:, k] = 0.0, max(floor, overall)
            continue
        mean = float(np.average(value[member], weights=weight[member]))
        spread = float(np.average((value[member] - mean) ** 2, weights=weight[member]))
        spread *= count / max(1, count - 1)
        with_one = (count * spread + overall) / (count + 1) + count * (mean - centre) ** 2 / (count + 1) ** 2
        moments[:, k] = mean, max(floor, with_one)
    return np.asarray(moments[:, classes])


def _judged(
    weights: ArrayLike,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None,
    prior_total: ArrayLike | None,
) -> _Judged:
    w = weight_rows(weights)
    n_items = w.shape[1]
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
    f, totals = prior_rows(prior, prior_total, w.shape)

    gain = np.where(seen, scale[grade], 0.0)
    unauditable = np.count_nonzero((w != 0) & (pi == 0), axis=1)
    # targets with weight there are refused; elsewhere the value is multiplied by w = 0
    usable = np.where(pi == 0, 1.0, pi)
    if n_items == 0:
        moments = np.zeros((2, 0))
    else:
        merged = merged_classes(classes, seen)
        moments = class_moments(merged, seen, gain, usable, float(np.ptp(scale)))
    return _Judged(w / drawn, drawn, seen, gain, usable, unauditable, f, totals, moments[0], moments[1])


def _refusal(judged: _Judged, target: int) -> Refusal | None:
    if judged.unauditable[target]:
        count = int(judged.unauditable[target])
        return Refusal(f"{count} judged items with non-zero weight have no audit probability", count)
    used = int(np.count_nonzero(judged.rows[target, judged.audited]))
    return too_few(used, noun="audited items") if used < FEWEST_ITEMS else None


def _values(judged: _Judged) -> Floats:
    """Return U per target: known frame total, class means over the judged items, audited residuals."""
    total: Floats = judged.prior_total + judged.rows @ _corrections(judged)
    return total


def _corrections(judged: _Judged) -> Floats:
    """Return ``(mu_l - f) + (v - mu_l)/pi_audit`` per item: what a target adds to its known total, times w / pi."""
    residual = np.where(judged.audited, (judged.gain - judged.mean) / judged.audit_probability, 0.0)
    return np.asarray(judged.mean - judged.prior + residual)


def item_corrections(
    *,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike,
) -> Floats:
    """Return ``[(mu_l - f) + (v - mu_l)/pi_audit] / pi`` per judged item, the same for all targets.

    A target's value is ``sum_frame f w + sum_judged w`` times this, so that its parts by topic are sums of it.
    Assumptions and arguments: `greg_label`.
    """
    nothing = np.zeros((1, np.asarray(draw_probability).size))
    given = (draw_probability, bronze_class, audited, gold_grade, audit_probability, gains, prior, [0.0])
    judged = _judged(nothing, *given)
    return np.asarray(_corrections(judged) / judged.draw_probability)


def _audit_variances(judged: _Judged) -> Floats:
    """Return max(V_design, V_pooled) per target, as in methods/real-judges.md, section 2."""
    pi, squares = judged.audit_probability, judged.rows**2
    residual = np.where(judged.audited, (judged.gain - judged.mean) / pi, 0.0)
    design = squares @ ((1 - pi) * residual**2)
    pooled = squares @ ((1 / pi - 1) * judged.variance)
    larger: Floats = np.maximum(design, pooled)
    return larger


def _drawing_variances(judged: _Judged) -> Floats:
    """Return the estimated Poisson variance of ``sum w (v - f) / pi`` per target.

    (v - f)^2 is known for audited items only, so it is itself estimated by the difference form: predicted
    from the bronze class for all, corrected by the audited ones (unbiased for a fixed prediction); never
    below half the prediction, because the correction is noisy and could make a small audit's variance vanish.
    """
    predicted = (judged.mean - judged.prior) ** 2 + judged.variance
    observed = (judged.gain - judged.prior) ** 2
    correction = np.where(judged.audited, (observed - predicted) / judged.audit_probability, 0.0)
    squares = judged.rows**2 * (1 - judged.draw_probability)
    model = squares @ predicted
    guarded: Floats = np.maximum(model + squares @ correction, model / 2)
    return guarded


def greg_label(
    weights: ArrayLike,
    *,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
) -> list[Estimate | Refusal]:
    """Return the corrected measure of every target, for these topics, with its 95 % interval.

    ``U = sum_frame f w + sum_judged (w/pi) (mu_l - f) + sum_audited (w/pi) (v - mu_l) / pi_audit``.
    Assumption: items were drawn, and judged items audited, independently with the recorded probabilities
    (Poisson); the gold grade is right. Nothing is assumed about how assessors err. mu_l, the mean gold gain
    of a bronze class, is estimated from the same audit, which leaves a bias of second order.
    Variance: drawing plus audit, see `_drawing_variances` and `_audit_variances`. z from 100 audited items
    with w != 0, below that t with one degree of freedom less than their number; refused below 10.
    Two runs: one call with w_a - w_b, never two intervals. Arguments: top of the module.

    Source: methods/real-judges.md, section 2; Särndal, Swensson and Wretman (1992), chapters 6 and 9.
    """
    judged = _judged(
        weights,
        draw_probability,
        bronze_class,
        audited,
        gold_grade,
        audit_probability,
        gains,
        prior,
        prior_total,
    )
    values, drawing, audit = _values(judged), _drawing_variances(judged), _audit_variances(judged)
    results: list[Estimate | Refusal] = []
    for target, value in enumerate(values):
        refused = _refusal(judged, target)
        if refused is not None:
            results.append(refused)
            continue
        used = int(np.count_nonzero(judged.rows[target, judged.audited]))
        results.append(
            estimate(
                float(value),
                float(drawing[target] + audit[target]),
                degrees_of_freedom=None if used >= AUDITED_FOR_NORMAL else used - 1,
                n=used,
                sources=GREG_SOURCES,
                components=(("drawing", float(drawing[target])), ("gold", float(audit[target]))),
                warning=few_items_warning(used, "audited items"),
            )
        )
    return results


def greg_label_by_topic(
    weights: ArrayLike,
    *,
    topic_index: ArrayLike,
    n_topics: int,
    draw_probability: ArrayLike,
    bronze_class: ArrayLike,
    audited: ArrayLike,
    gold_grade: ArrayLike,
    audit_probability: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total_by_topic: ArrayLike | None = None,
) -> list[Estimate | Refusal]:
    """Return the corrected measure with the topics as a sample of many: a t interval over topics.

    ``Z_t`` is the topic's part of U (weights contain 1/n_topics), so the values n_topics Z_t have mean U and
    their spread holds every source of error. Assumption: topics were drawn independently, and everything in
    `greg_label`. For a pair (w = w_a - w_b) this is the paired t. `prior_total_by_topic[target, topic]`.
    """
    if n_topics < 1:
        raise ValueError(f"n_topics must be at least 1, got {n_topics}")
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    flat = (
        None
        if prior_total_by_topic is None
        else np.atleast_2d(finite("prior_total_by_topic", prior_total_by_topic))
    )
    judged = _judged(
        weights,
        draw_probability,
        bronze_class,
        audited,
        gold_grade,
        audit_probability,
        gains,
        prior,
        None if flat is None else flat.sum(axis=1),
    )
    n_targets, n_items = judged.rows.shape
    if topic.size != n_items:
        raise ValueError(f"topic_index must have length {n_items}, got {topic.size}")
    known = (
        np.zeros((n_targets, n_topics))
        if flat is None
        else finite("prior_total_by_topic", flat, (n_targets, n_topics))
    )

    contribution = judged.rows * _corrections(judged)
    results: list[Estimate | Refusal] = []
    for target in range(n_targets):
        refused = _refusal(judged, target)
        if refused is not None:
            results.append(refused)
            continue
        z = known[target] + np.bincount(topic, weights=contribution[target], minlength=n_topics)
        results.append(over_topics(z, (*GREG_SOURCES, "topics")))
    return results


# -- how much more gold -------------------------------------------------------------------------------------


def gold_labels_for(half_width: float, n_items: int, residual_variance: float) -> int:
    """Return the random gold labels that give the half-width: ``N^2 S^2 q / (1 + N S^2 q)``, q = (1.96/h)^2.

    N judged items, S^2 the variance of w r over them. Source: methods/real-judges.md, section 2.

    >>> gold_labels_for(0.1, 1000, 1e-6)
    278
    """
    if not half_width > 0:
        raise ValueError(f"half_width must be above 0, got {half_width}")
    if n_items < 1 or residual_variance < 0:
        raise ValueError(
            f"n_items must be >= 1 and residual_variance >= 0, got {n_items}, {residual_variance}"
        )
    q = (Z95 / half_width) ** 2
    needed = n_items**2 * residual_variance * q / (1 + n_items * residual_variance * q)
    return min(n_items, math.ceil(needed))


def labels_needed(difference: Estimate, n_items: int) -> Refusal | None:
    """Return None if the interval excludes 0, else "not resolved by m gold labels; about m' needed".

    m' is what makes the half-width as small as the difference itself, with the same kind of audit, the
    drawing variance staying as it is; if the drawing alone is wider, more items must be judged instead.
    `n_items` is the number of judged items with non-zero weight; `difference` comes from `greg_label`.
    """
    parts = dict(difference.components)
    if "gold" not in parts or difference.n > n_items:
        raise ValueError(
            f"a GREG-label estimate of at most {n_items} audited items is needed, got {difference}"
        )
    if difference.low > 0 or difference.high < 0:
        return None
    words = f"not resolved by {difference.n} gold labels"
    room = difference.value**2 - Z95**2 * parts.get("drawing", 0.0)
    if room <= 0 or difference.n == n_items:
        return Refusal(f"{words}; the drawing error alone is larger than the difference: judge more items")
    m = difference.n
    # the audit variance of a simple random audit is N^2 S^2 (1/m - 1/N)
    spread = parts["gold"] / (n_items**2 * (1 / m - 1 / n_items))
    needed = min(n_items, max(gold_labels_for(math.sqrt(room), n_items, spread), m + 1))
    return Refusal(f"{words}; about {needed} needed", max(0, needed - m))
