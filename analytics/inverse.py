"""The papers' correction of a measure: labels replaced by scores from inverted confusion matrices.

It is right only if an assessor errs alike on all documents of one grade. Real judges do not
(methods/real-judges.md, section 1), so these numbers are shown by name and never reported as the result;
`analytics.assumption` tests it.
`matrices[assessor, true, given]`, rows sum to 1; the other arrays are described in `analytics.correction`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimators import (
    FEWEST_ITEMS,
    Z95,
    Estimate,
    Floats,
    Refusal,
    estimate,
    few_items_warning,
    finite,
    poisson_degrees_of_freedom,
    poisson_terms,
    prior_rows,
    probabilities,
    too_few,
    weight_rows,
)
from analytics.labels import Ints, integers

INVERSE_SOURCES = ("drawing", "label noise", "confusion matrices")
SINGULAR = 1e-9


@dataclass(frozen=True)
class _Labels:
    """Validated labels of an inverse correction."""

    item: Ints
    assessor: Ints
    grade: Ints
    share: Floats  # 1 / labels of the label's item


# -- one matrix ---------------------------------------------------------------------------------------------


def label_scores(matrix: ArrayLike, gains: ArrayLike) -> Floats:
    """Return ``c = J^-1 v``: scores of the labels with ``E[c(label) | true grade] = v(true grade)``.

    Assumption: J is known and the same for all items of a grade. Raise ValueError if J is singular.
    Source: Goldberg et al. (2017), Eq 18.

    >>> label_scores([[.9, .1], [.2, .8]], [0, 1]).round(6).tolist()
    [-0.142857, 1.285714]
    """
    j, v = _matrix(matrix), finite("gains", gains)
    if v.shape != (j.shape[0],):
        raise ValueError(f"gains must have length {j.shape[0]}, got shape {v.shape}")
    return np.asarray(np.linalg.solve(j, v))


def score_variance(matrix: ArrayLike, scores: ArrayLike) -> Floats:
    """Return ``tau^2(g) = Var(c(label) | true grade g)``, never negative."""
    j, c = finite("matrix", matrix), finite("scores", scores)
    centred = c[None, :] - (j @ c)[:, None]
    return np.asarray((j * centred**2).sum(axis=1))


def label_noise(matrix: ArrayLike, gains: ArrayLike) -> Floats:
    """Return nu(label) with ``E[nu(label) | true grade] = Var(c | true grade)``: nu = J^-1 tau^2.

    >>> label_noise([[.9, .1], [.2, .8]], [0, 1]).round(6).tolist()
    [0.163265, 0.367347]
    """
    c = label_scores(matrix, gains)
    return label_scores(matrix, score_variance(matrix, c))


def matrix_variance(mix: ArrayLike, tau_squared: ArrayLike, gold_per_grade: ArrayLike) -> float:
    """Return ``V_J = sum pi(g)^2 tau^2(g) / n_g``, the variance from estimating J (noise-correction 3.1).

    Assumption: the audit's rows are independent multinomials of size n_g; mix is ``pi = J^-T h``.
    """
    n = finite("gold_per_grade", gold_per_grade)
    if (n <= 0).any():
        raise ValueError(f"gold_per_grade must be above 0, got {n.min()}")
    return float((finite("mix", mix) ** 2 * finite("tau_squared", tau_squared) / n).sum())


def _matrix(matrix: ArrayLike) -> Floats:
    j = finite("matrix", matrix)
    if j.ndim != 2 or j.shape[0] != j.shape[1] or j.shape[0] < 2:
        raise ValueError(f"matrix must be square with at least 2 grades, got shape {j.shape}")
    if (j < 0).any() or not np.allclose(j.sum(axis=1), 1, atol=1e-6):
        raise ValueError(f"matrix rows must be >= 0 and sum to 1, got sums {j.sum(axis=1).tolist()}")
    if abs(np.linalg.det(j)) < SINGULAR:
        raise ValueError(f"matrix must be invertible, got determinant {np.linalg.det(j):.3g}")
    return j


def _smoothed(matrix: Floats, n: Floats) -> Floats:
    """Return rows with half an observation added to every cell: a row without errors is not free of them."""
    grades = matrix.shape[-1]
    rows: Floats = (matrix * n[..., None] + 0.5) / (n[..., None] + grades / 2)
    return rows


# -- refusals (noise-correction 3.3) ------------------------------------------------------------------------


def separation_refusal(
    matrix: ArrayLike, gold_per_grade: ArrayLike, rng: np.random.Generator | None
) -> Refusal | None:
    """Return why one matrix may not be inverted, or None.

    No gold in a grade; two grades: ``D / SE(D) < 1.96`` with one hit and one miss added to each row; more
    grades: ``Pr(det J > 0) < .975`` over 2,000 Dirichlet(count + 1/2) draws of the rows (needs `rng`).
    """
    j, n = finite("matrix", matrix), finite("gold_per_grade", gold_per_grade)
    missing = np.flatnonzero(n <= 0)
    if missing.size:
        return Refusal(f"no gold label of true grade {int(missing[0])}", FEWEST_ITEMS)
    if j.shape[0] == 2:
        return _binary_separation(j, n)
    if rng is None:
        raise ValueError("rng must be given for 3 or more grades, got None")
    draws = np.stack([rng.dirichlet(row * size + 0.5, 2000) for row, size in zip(j, n, strict=True)], axis=1)
    determinants = np.linalg.det(draws)
    positive = float((determinants > 0).mean())
    if positive >= 0.975:
        return None
    ratio = float(determinants.mean() / determinants.std())
    needed = math.ceil(float(n.sum()) * (Z95 / ratio) ** 2 - float(n.sum())) if ratio > 0.2 else None
    return Refusal(f"the labels hardly separate the grades: Pr(det J > 0) = {positive:.3f} < .975", needed)


def _binary_separation(j: Floats, n: Floats) -> Refusal | None:
    rates = (j.diagonal() * n + 1) / (n + 2)
    spread = rates * (1 - rates)
    d, error = float(rates.sum() - 1), math.sqrt(float((spread / (n + 2)).sum()))
    if d / error >= 1.96:
        return None
    if d <= 0:
        return Refusal(f"labels are no better than chance: sensitivity + specificity - 1 = {d:.3f}")
    per_grade = Z95**2 * float(spread.sum()) / d**2
    needed = max(1, math.ceil(float(np.maximum(0, per_grade - n).sum())))
    return Refusal(
        f"sensitivity + specificity - 1 = {d:.3f} is less than 1.96 standard errors ({error:.3f}) from 0; "
        f"about {math.ceil(per_grade)} gold labels of each grade are needed just to bound the interval",
        needed,
    )


def _matrices_refusal(
    matrices: Floats, gold: Floats, present: Ints, rng: np.random.Generator | None
) -> Refusal | None:
    refused: list[Refusal] = []
    for a in present:
        found = separation_refusal(matrices[a], gold[a], rng)
        if found is None and abs(np.linalg.det(matrices[a])) < SINGULAR:
            found = Refusal("the confusion matrix cannot be inverted: its determinant is 0")
        if found is not None:
            refused.append(found)
    if not refused:
        return None
    needed = [r.needed for r in refused]
    total = None if None in needed else sum(number for number in needed if number is not None)
    first = refused[0].reason
    return Refusal(
        f"{len(refused)} of {present.size} assessors' matrices cannot be used; first: {first}", total
    )


# -- the estimator ------------------------------------------------------------------------------------------


def _label_arrays(
    label_item: ArrayLike, label_assessor: ArrayLike, label_grade: ArrayLike, sizes: tuple[int, int, int]
) -> _Labels:
    n_items, n_assessors, n_grades = sizes
    item = integers("label_item", label_item, 0, n_items - 1)
    assessor = integers("label_assessor", label_assessor, 0, n_assessors - 1)
    grade = integers("label_grade", label_grade, 0, n_grades - 1)
    if not item.size == assessor.size == grade.size:
        raise ValueError(f"label arrays must be equally long, got {item.size}, {assessor.size}, {grade.size}")
    count = np.bincount(item, minlength=n_items)
    if (count == 0).any():
        raise ValueError(f"every item must have at least 1 label, got 0 for item {int(np.argmin(count))}")
    return _Labels(item, assessor, grade, 1 / count[item])


def _stack(matrices: ArrayLike, gold_per_grade: ArrayLike, gains: ArrayLike) -> tuple[Floats, Floats, Floats]:
    j, v = finite("matrices", matrices), finite("gains", gains)
    if v.ndim != 1 or v.size < 2:
        raise ValueError(f"gains must be flat with at least 2 grades, got shape {v.shape}")
    if j.ndim != 3 or j.shape[1:] != (v.size, v.size):
        raise ValueError(f"matrices must have shape (assessors, {v.size}, {v.size}), got {j.shape}")
    gold = finite("gold_per_grade", gold_per_grade, j.shape[:2])
    used = gold > 0  # rows without gold are refused later, whatever stands in them
    if (j[used] < 0).any() or not np.allclose(j[used].sum(axis=-1), 1, atol=1e-6):
        raise ValueError("matrix rows must be >= 0 and sum to 1")
    return j, gold, v


def _item_sum(labels: _Labels, table: Floats, share: Floats, n_items: int) -> Floats:
    """Return per item the sum over its labels of share * table[assessor, grade]."""
    value = share * table[labels.assessor, labels.grade]
    total: Floats = np.bincount(labels.item, weights=value, minlength=n_items).astype(np.float64)
    return total


def _mixes(labels: _Labels, row: Floats, matrices: Floats, present: Ints) -> Floats:
    """Return pi_a = J_a^-T h_a: the weighted true-grade mix of what each present assessor labelled."""
    shape = matrices.shape[:2]
    cell = labels.assessor * shape[1] + labels.grade
    h = np.bincount(cell, weights=row[labels.item] * labels.share, minlength=shape[0] * shape[1]).reshape(
        shape
    )
    solved = np.linalg.solve(np.swapaxes(matrices[present], 1, 2), h[present][:, :, None])
    return np.asarray(solved[:, :, 0])


def matrix_inverse(
    weights: ArrayLike,
    *,
    draw_probability: ArrayLike,
    label_item: ArrayLike,
    label_assessor: ArrayLike,
    label_grade: ArrayLike,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> list[Estimate | Refusal]:
    """Return the measure with every label replaced by its score ``J_a^-1 v``, one result per target.

    Assumption: given the true grade, an assessor's label depends on nothing else (not on the document, nor on
    who returned it), and the labels of one item are independent. False for real judges: the interval then
    misses the truth most of the time, and no amount of gold helps. Poisson draw.
    `gold_per_grade[assessor, grade]` is what each row rests on (n + k for shrunk rows). One pooled matrix:
    all `label_assessor` 0. Variance: drawing + label noise + V_J (cells + 1/2); t by Satterthwaite.
    Refused where a matrix cannot be inverted safely, and, for targets without negative weights, where the
    implied share of a grade is negative by more than 1.96 standard errors. `rng`: only for 3 or more grades.

    Source: Goldberg et al. (2017), Eq 17-18; methods/noise-correction.md, 3.1 and 3.3.
    """
    rows = weight_rows(weights)
    n_targets, n_items = rows.shape
    pi = probabilities("draw_probability", draw_probability, n_items)
    j, gold, v = _stack(matrices, gold_per_grade, gains)
    labels = _label_arrays(label_item, label_assessor, label_grade, (n_items, j.shape[0], v.size))
    f, totals = prior_rows(prior, prior_total, (n_targets, n_items))

    present = np.unique(labels.assessor)
    refused = _matrices_refusal(j, gold, present, rng)
    if refused is not None:
        return [refused] * n_targets
    infeasible = _infeasible(rows, pi, j, gold, labels, present)
    results: list[Estimate | Refusal] = []
    for target, w in enumerate(rows):
        used = int(np.count_nonzero(w))
        problem = too_few(used) if used < FEWEST_ITEMS else infeasible[target]
        if problem is not None:
            results.append(problem)
            continue
        value, parts, df = _inverse(w, pi, j, gold, labels, present, v, f)
        named = tuple(zip(INVERSE_SOURCES, parts, strict=True))
        results.append(
            estimate(
                float(totals[target]) + value,
                sum(parts),
                degrees_of_freedom=df,
                n=used,
                sources=INVERSE_SOURCES,
                components=named,
                warning=few_items_warning(used),
            )
        )
    return results


def _inverse(
    w: Floats,
    pi: Floats,
    matrices: Floats,
    gold: Floats,
    labels: _Labels,
    present: Ints,
    gains: Floats,
    prior: Floats,
) -> tuple[float, tuple[float, float, float], float | None]:
    """Return value (without the frame total), the three variances, and degrees of freedom."""
    c, nu = np.zeros(matrices.shape[:2]), np.zeros(matrices.shape[:2])
    c[present] = np.linalg.solve(
        matrices[present], np.broadcast_to(gains[:, None], (present.size, gains.size, 1))
    )[..., 0]
    tau = np.array([score_variance(matrices[a], c[a]) for a in present])
    nu[present] = np.linalg.solve(matrices[present], tau[:, :, None])[..., 0]

    error = w * (_item_sum(labels, c, labels.share, w.size) - prior)
    drawing = poisson_terms(error, pi)
    noise = _item_sum(labels, nu, labels.share**2, w.size) * w**2 / pi
    smoothed = _smoothed(matrices[present], gold[present])
    tau = np.array([score_variance(m, c[a]) for m, a in zip(smoothed, present, strict=True)])
    cells = _mixes(labels, w / pi, matrices, present) ** 2 * tau / gold[present]

    parts = (float(drawing.sum()), max(0.0, float(noise.sum())), float(cells.sum()))
    sampled = poisson_degrees_of_freedom(drawing + np.maximum(noise, 0), pi)
    spread = float((cells**2 / np.maximum(1, gold[present] - 1)).sum())
    if sampled is not None:
        spread += (parts[0] + parts[1]) ** 2 / sampled
    df = max(1.0, sum(parts) ** 2 / spread) if spread > 0 else None
    return float((error / pi).sum()), parts, df


def _infeasible(
    rows: Floats, pi: Floats, matrices: Floats, gold: Floats, labels: _Labels, present: Ints
) -> list[Refusal | None]:
    """Return a refusal per target that J^-1 gives a negative share (binary: j outside [1-mN, mR])."""
    results: list[Refusal | None] = []
    nothing = np.zeros(rows.shape[1])
    for w in rows:
        found: Refusal | None = None
        total = float((w / pi).sum())
        for grade in range(matrices.shape[1] if (w >= 0).all() and total > 0 else 0):
            one = np.zeros(matrices.shape[1])
            one[grade] = 1
            value, parts, _ = _inverse(w, pi, matrices, gold, labels, present, one, nothing)
            if value < -1.96 * math.sqrt(sum(parts)):
                found = Refusal(
                    f"the matrices imply a share of {value / total:.3f} for grade {grade}: the labels of "
                    "this target cannot come from these matrices; gold labels of these very items are needed"
                )
        results.append(found)
    return results


def matrix_inverse_with_replacement(
    weights: ArrayLike,
    *,
    label_assessor: ArrayLike,
    label_grade: ArrayLike,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    pseudo_count: float = 0.5,
    fewest: int = FEWEST_ITEMS,
) -> Estimate | Refusal:
    """Return ``(1/n) sum w c_a(l)`` over n draws with replacement; `weights` are the draws' w/Q.

    Assumption as in `matrix_inverse`, one fresh label per draw. Variance ``s^2(w c)/n + V_J``; the sample
    variance already holds the label noise. `pseudo_count` 0 gives the printed formula.

    Source: methods/noise-correction.md, 3.1; Goldberg et al. (2017), Eq 18.
    """
    j, gold, v = _stack(matrices, gold_per_grade, gains)
    w = finite("weights", weights)
    n = w.size
    labels = _label_arrays(np.arange(n), label_assessor, label_grade, (n, j.shape[0], v.size))
    used = int(np.count_nonzero(w))
    if used < max(2, fewest):
        return too_few(used, max(2, fewest))
    present = np.unique(labels.assessor)
    if (gold[present] <= 0).any():
        return Refusal("an assessor has no gold label of some grade", FEWEST_ITEMS)
    if (np.abs(np.linalg.det(j[present])) < SINGULAR).any():
        return Refusal("a confusion matrix cannot be inverted: its determinant is 0")

    c = np.zeros(j.shape[:2])
    for a in present:
        c[a] = label_scores(j[a], v)
    z = w * c[labels.assessor, labels.grade]
    size = gold + pseudo_count * v.size
    smoothed = (j * gold[:, :, None] + pseudo_count) / np.where(size > 0, size, 1)[:, :, None]
    tau = np.array([score_variance(smoothed[a], c[a]) for a in present])
    cells = _mixes(labels, w / n, j, present) ** 2 * tau / gold[present]
    sampling, audit = float(z.var(ddof=1)) / n, float(cells.sum())
    spread = sampling**2 / (n - 1) + float((cells**2 / np.maximum(1, gold[present] - 1)).sum())
    return estimate(
        float(z.mean()),
        sampling + audit,
        degrees_of_freedom=(sampling + audit) ** 2 / spread if spread > 0 else None,
        n=used,
        sources=INVERSE_SOURCES,
        components=(("drawing", sampling), ("confusion matrices", audit)),
        warning=few_items_warning(used),
    )
