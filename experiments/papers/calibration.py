"""Correction by an audit of the very items: the calibration estimator, and the matrix from a weighted audit.

`audit_counts[true_grade, label]` counts the audited items, `label_totals[label]` all items with that bronze label.
Within a label, the audited items must be a simple random sample (its size may have been chosen by label).
P(gold | bronze) then needs no weights, P(bronze | gold) does: its rows are weighted by N_l/n_l (Hajek).

On real judges the calibration estimator holds for one population's own mean; used for another system's items it
shrinks differences (docs/methods/derivations/real-judges.md, section 1.5). The number that the product reports is
`analytics.estimation.correction`; what a plan asks of a label is in `analytics.papers.calibration`.
Source: docs/methods/derivations/noise-correction.md, sections 1.4, 1.5 and 4; Tenenbein (1970) for calibration.
"""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Estimate, Floats, Ints, Refusal, estimate
from analytics.papers.calibration import LabelAudit, label_audit, label_informativeness, unaudited_refusal
from analytics.papers.combining import SINGULAR
from analytics.papers.inverse import score_variance
from analytics.papers.refusals import count_table, missing_gold_refusal, rate, separation_refusal

FEW_AUDITED = 30  # audited items of one label below which the variance is doubtful


SOURCES = ("drawing", "gold")


def _few_warning(audit: LabelAudit) -> str:
    few = np.flatnonzero((audit.totals > 0) & (audit.sizes < np.minimum(FEW_AUDITED, audit.totals)))
    if few.size == 0:
        return ""
    listed = ", ".join(f"{int(audit.sizes[label])} of label {int(label)}" for label in few)
    return f"fewer than {FEW_AUDITED} audited items ({listed}): the interval may be too short"


def hajek_matrix(audit_counts: ArrayLike, label_totals: ArrayLike) -> Floats | Refusal:
    """Return ``J[g,l] = N_l p_{g|l} / sum_k N_k p_{g|k}``: rows of an audit that was stratified on the label.

    Unweighted rows of such an audit converge to something else. Refused if a grade has no gold or a label that
    occurs was not audited.

    >>> hajek_matrix([[40, 4, 1], [12, 20, 6], [8, 6, 13]], [600, 300, 2000]).round(6)[2].tolist()
    [0.055556, 0.041667, 0.902778]
    """
    audit = label_audit(audit_counts, label_totals)
    refused = unaudited_refusal(audit, 1) or _grade_refusal(audit)
    if refused is not None:
        return refused
    joint = audit.totals * audit.given_label
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _grade_refusal(audit: LabelAudit) -> Refusal | None:
    missing = np.flatnonzero(audit.counts.sum(axis=1) == 0)
    if missing.size == 0:
        return None
    return Refusal(f"no gold label of true grade {int(missing[0])}", FEWEST_ITEMS * int(missing.size))


def calibration(
    audit_counts: ArrayLike,
    label_totals: ArrayLike,
    gains: ArrayLike,
    *,
    items_are_sample: bool = True,
    smoothed: bool = True,
) -> Estimate | Refusal:
    """Return ``sum_l h_l sum_g P(g | label l) v_g``: the mean gain, each label replaced by its audited mean.

    ``Var = s_v^2/n + sum_l h_l^2 (1/n_l - 1/N_l) s_l^2``; for two grades and a random audit of N_A that is
    ``pq/n + pq(1-K)(1/N_A - 1/n)``. `items_are_sample` False: the mean of these items, without the first term.
    `smoothed`: s_l^2 from cells with 1/2 added, or a label whose audited items agree would have no error.
    Nothing is assumed about errors, but it is the mean of all these items and of no subset.

    >>> round(calibration([[67, 17], [16, 43]], [3740, 6260], [0, 1]).value, 6)
    0.52073
    """
    audit = label_audit(audit_counts, label_totals, gains)
    refused = unaudited_refusal(audit, 2)
    if refused is not None:
        return refused
    value, parts, drawing = _calibrated(audit, smoothed)
    drawing = drawing if items_are_sample else 0.0
    spread = float((parts**2 / np.maximum(1, audit.sizes - 1)).sum()) + drawing**2 / max(
        1.0, audit.totals.sum() - 1
    )
    variance = float(parts.sum()) + drawing
    if variance <= 0 and items_are_sample:
        return Refusal("all audited items have one grade, so the error cannot be estimated", FEWEST_ITEMS)
    return estimate(
        value,
        variance,
        degrees_of_freedom=variance**2 / spread if spread > 0 else None,
        n=int(audit.sizes.sum()),
        sources=SOURCES if items_are_sample else ("gold",),
        components=(("drawing", drawing), ("gold", float(parts.sum()))),
        warning=_few_warning(audit),
    )


def _calibrated(audit: LabelAudit, smoothed: bool) -> tuple[float, Floats, float]:
    """Return the value, the gold variance by label, and the drawing variance."""
    h, v = audit.shares, audit.gains
    means = v @ audit.given_label
    cells = audit.smoothed_probabilities() if smoothed else audit.given_label
    within = v**2 @ cells - (v @ cells) ** 2
    value = float(h @ means)
    n, size, total = float(audit.totals.sum()), np.maximum(2, audit.sizes), np.maximum(1, audit.totals)
    parts = np.where(
        audit.totals > 0, h**2 * (1 / size - 1 / total) * np.maximum(0, within) * size / (size - 1), 0.0
    )
    everything = float(h @ np.maximum(0, within)) + float(h @ (means - value) ** 2)
    return value, np.maximum(0, parts), everything / n


def hajek_inverse(
    audit_counts: ArrayLike,
    label_totals: ArrayLike,
    gains: ArrayLike,
    *,
    label_shares: ArrayLike | None = None,
    sampling_variance: float = 0.0,
    smoothed: bool = True,
    rng: np.random.Generator | None = None,
) -> Estimate | Refusal:
    """Return ``h . J_H^-1 v`` with the weighted matrix and its two-phase variance, for other labels' shares h.

    `label_shares[label]` are a target's weighted labels (w_a - w_b for a difference) outside the audited pool,
    `sampling_variance` their own part, s^2(w c)/n. None: the audited pool itself, where the number is exactly
    `calibration` (F12). `smoothed`: cells with 1/2 added in the variance, never in the estimate (coverage .946
    instead of .879 at 60:30:10 of 600). Assumption: an assessor has equal error rates on all documents of a grade.
    """
    if label_shares is None:
        return calibration(audit_counts, label_totals, gains, smoothed=smoothed)
    audit = label_audit(audit_counts, label_totals, gains)
    if audit.counts.shape[0] != audit.counts.shape[1]:
        raise ValueError(f"audit_counts must be square, got shape {audit.counts.shape}")
    h = finite("label_shares", label_shares, audit.totals.shape)
    if sampling_variance < 0:
        raise ValueError(f"sampling_variance must be >= 0, got {sampling_variance}")
    refused = unaudited_refusal(audit, 2) or _hajek_refusal(audit, rng)
    if refused is not None:
        return refused

    joint = audit.totals * audit.given_label
    j = joint / joint.sum(axis=1, keepdims=True)
    c, mix = np.linalg.solve(j, audit.gains), np.linalg.solve(j.T, h)
    parts = _two_phase(audit, c, mix, smoothed)
    gold = float(parts.sum())
    spread = float((parts[:-1] ** 2 / np.maximum(1, audit.sizes - 1)).sum())
    variance = gold + sampling_variance
    return estimate(
        float(h @ c),
        variance,
        degrees_of_freedom=variance**2 / spread if spread > 0 else None,
        n=int(audit.sizes.sum()),
        sources=("drawing", "label noise", "confusion matrices"),
        components=(("drawing", sampling_variance), ("confusion matrices", gold)),
        warning=_few_warning(audit),
    )


def _hajek_refusal(audit: LabelAudit, rng: np.random.Generator | None) -> Refusal | None:
    missing = missing_gold_refusal(count_table(audit.counts))
    if missing is not None:
        return missing
    weight = np.divide(audit.totals, audit.sizes, out=np.zeros_like(audit.totals), where=audit.sizes > 0)
    joint = audit.counts * weight
    # Kish's effective number of gold labels of a row
    worth = joint.sum(axis=1) / (audit.counts * weight**2).sum(axis=1)
    if abs(np.linalg.det(joint / joint.sum(axis=1, keepdims=True))) < SINGULAR:
        return Refusal("the confusion matrix cannot be inverted: its determinant is 0")
    return separation_refusal(joint * worth[:, None], rng)


def _two_phase(audit: LabelAudit, c: Floats, mix: Floats, smoothed: bool) -> Floats:
    """Return V_J by label, and as the last entry the part of the pool's being finite."""
    p = audit.smoothed_probabilities() if smoothed else audit.given_label
    p = np.where(audit.totals > 0, p, 0.0)
    of_grade = (audit.totals * p).sum(axis=1)
    size, total = np.maximum(2, audit.sizes), np.maximum(1, audit.totals)
    bracket = _bracket(p, of_grade, audit.gains, c, mix)
    by_label = audit.totals**2 * np.maximum(0, 1 / size - 1 / total) * size / (size - 1) * bracket
    tau = score_variance(audit.totals * p / of_grade[:, None], c)
    return np.append(by_label, float((mix**2 * tau / of_grade).sum()))


def _bracket(p: Floats, of_grade: Floats, gains: Floats, c: Floats, mix: Floats) -> Floats:
    """Return per label ``sum_g p b^2 - (sum_g p b)^2``, ``b_gl = (pi_g/N_g)(c_l - v_g)``."""
    b = (mix / of_grade)[:, None] * (c[None, :] - gains[:, None])
    return np.asarray(np.maximum(0, (p * b**2).sum(axis=0) - (p * b).sum(axis=0) ** 2))


def neyman_shares(joint: ArrayLike, gains: ArrayLike, *, label_shares: ArrayLike | None = None) -> Floats:
    """Return the share of the audit that each label should have: proportional to ``N_l sqrt([...]_l)`` of V_J.

    `joint[true, label]` is the expected number of items (prevalence times J times N, or an earlier audit's
    ``N_l p_{g|l}``). `label_shares` None: the pool's own mean (then N_l times the gain's spread within l).

    >>> neyman_shares([[40, 10], [10, 40]], [0, 1]).round(6).tolist()
    [0.5, 0.5]
    """
    table = finite("joint", joint)
    if table.ndim != 2 or min(table.shape) < 2 or (table < 0).any() or (table.sum(axis=1) <= 0).any():
        raise ValueError(
            f"joint must be [true, label], >= 0 and without empty grades, got shape {table.shape}"
        )
    v = finite("gains", gains, (table.shape[0],))
    totals, of_grade = table.sum(axis=0), table.sum(axis=1)
    p = np.divide(table, totals, out=np.zeros_like(table), where=totals > 0)
    if label_shares is None:
        spread = np.sqrt(np.maximum(0, v**2 @ p - (v @ p) ** 2))
    else:
        if table.shape[0] != table.shape[1]:
            raise ValueError(f"joint must be square, got shape {table.shape}")
        j = table / of_grade[:, None]
        c = np.linalg.solve(j, v)
        mix = np.linalg.solve(j.T, finite("label_shares", label_shares, totals.shape))
        spread = np.sqrt(_bracket(p, of_grade, v, c, mix))
    sizes = totals * spread
    return np.asarray(sizes / sizes.sum() if sizes.sum() > 0 else totals / totals.sum())


def neyman_allocation(
    shares: ArrayLike, label_totals: ArrayLike, n: int, *, least: int = FEW_AUDITED
) -> Ints:
    """Return n audited items by label, proportional to `shares` between `least` (or all) and N_l of each.

    >>> neyman_allocation([.9, .1], [1000, 20], 100).tolist()
    [80, 20]
    """
    totals = finite("label_totals", label_totals)
    sizes = finite("shares", shares, totals.shape)
    if (sizes < 0).any() or sizes.sum() <= 0 or (totals < 0).any():
        raise ValueError(f"shares and label_totals must be >= 0, got {sizes.tolist()} and {totals.tolist()}")
    floor = np.minimum(totals, least).astype(np.int64)
    if not floor.sum() <= n <= totals.sum():
        raise ValueError(f"n must be in {int(floor.sum())}..{int(totals.sum())}, got {n}")
    sizes = np.maximum(sizes, 1e-9 * sizes.sum())  # a label of share 0 takes what no other can
    low, high = 0.0, float(totals.sum()) / float(sizes.min())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * sizes, floor, totals).sum() < n else (low, middle)
    exact = np.clip(high * sizes, floor, totals)
    given = np.floor(exact + 1e-9).astype(np.int64)
    missing = n - int(given.sum())
    if missing > 0:
        remainder = np.where(given < totals, exact - given, -1.0)
        given[np.argsort(-remainder, kind="stable")[:missing]] += 1
    return np.asarray(given)


def calibration_variance(
    prevalence: float, sensitivity: float, specificity: float, n_items: float, n_audited: float
) -> float:
    """Return ``pq/n + pq(1-K)(1/N_A - 1/n)``, a random audit of N_A of the n items.

    >>> round(calibration_variance(.8, .73, .80, 4000, 400) * 1e6, 1)
    331.0
    """
    k = label_informativeness(prevalence, sensitivity, specificity)
    _sizes(n_items, n_audited)
    pq = prevalence * (1 - prevalence)
    return pq / n_items + pq * (1 - k) * (1 / n_audited - 1 / n_items)


def inside_audit_variance(
    prevalence: float, sensitivity: float, specificity: float, n_items: float, n_audited: float
) -> float:
    """Return the variance of Eq 5 if the audit is N_A of the n items: ``pq/n + (W/D^2)(1/N_A - 1/n)``.

    Eq 7 takes the audit for independent of j and is larger. ``W = m_G mR(1-mR) + (1-m_G) mN(1-mN)``. P@1.

    >>> round(inside_audit_variance(.8, .73, .80, 4000, 400) * 1e6)
    1559
    """
    _sizes(n_items, n_audited)
    p, d = (
        rate("prevalence", prevalence),
        rate("sensitivity", sensitivity) + rate("specificity", specificity) - 1,
    )
    if abs(d) < 1e-12:
        raise ValueError(f"sensitivity + specificity must differ from 1, got {sensitivity + specificity}")
    w = p * sensitivity * (1 - sensitivity) + (1 - p) * specificity * (1 - specificity)
    return p * (1 - p) / n_items + w / d**2 * (1 / n_audited - 1 / n_items)


def _sizes(n_items: float, n_audited: float) -> None:
    if not 0 < n_audited <= n_items:
        raise ValueError(f"n_audited must be in (0, {n_items}], got {n_audited}")
