"""The inverse of the confusion matrix with draws with replacement (`analytics.papers.inverse`)."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimate,
    Floats,
    Refusal,
    estimate,
    few_items_warning,
    too_few,
)
from analytics.estimation.samples import Labels
from analytics.estimation.targets import as_targets
from analytics.papers.inverse import (
    INVERSE_SOURCES,
    Matrices,
    checked_matrices,
    label_scores,
    score_variance,
    score_variances,
    smoothed_matrices,
)
from analytics.papers.separation import SINGULAR


def label_noise(matrix: ArrayLike, gains: ArrayLike) -> Floats:
    """Return nu(label) with ``E[nu(label) | true grade] = Var(c | true grade)``: nu = J^-1 tau^2.

    >>> label_noise([[.9, .1], [.2, .8]], [0, 1]).round(6).tolist()
    [0.163265, 0.367347]
    """
    c = label_scores(matrix, gains)
    return label_scores(matrix, score_variance(matrix, c))


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

    Source: docs/methods/derivations/noise-correction.md, sections 3.1 and 3.3; Goldberg et al. (2017), Eq 18.
    """
    w = finite("weights", weights)
    n = w.size
    sizes = {"n_items": n, "n_assessors": len(np.asarray(matrices)), "n_grades": np.size(gains)}
    labels = Labels(np.arange(n), np.asarray(label_assessor), np.asarray(label_grade), **sizes)
    j, gold, v = checked_matrices(matrices, gold_per_grade, gains, labels)
    used = int(np.count_nonzero(w))
    if used < max(2, fewest):
        return too_few(used, max(2, fewest))
    present, own = labels.of_assessors()
    if (gold[present] <= 0).any():
        return Refusal("an assessor has no gold label of some grade", FEWEST_ITEMS)
    if (np.abs(np.linalg.det(j[present])) < SINGULAR).any():
        return Refusal("a confusion matrix cannot be inverted: its determinant is 0")

    given = Matrices(j[present], gold[present], own)
    c = given.scores(v)
    z = w * c[own.assessor, own.grade]
    tau = score_variances(smoothed_matrices(given.matrices, given.gold, pseudo_count), c)
    cells = given.mixes(as_targets(w / n))[0] ** 2 * tau / given.gold
    sampling, audit = float(z.var(ddof=1)) / n, float(cells.sum())
    spread = sampling**2 / (n - 1) + float((cells**2 / np.maximum(1, given.gold - 1)).sum())
    return estimate(
        float(z.mean()),
        sampling + audit,
        degrees_of_freedom=(sampling + audit) ** 2 / spread if spread > 0 else None,
        n=used,
        sources=INVERSE_SOURCES,
        components=(("drawing", sampling), ("confusion matrices", audit)),
        warning=few_items_warning(used),
    )
