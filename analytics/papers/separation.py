"""May a confusion matrix be inverted? Not if its gold cannot tell it from one whose labels say nothing.

Source: methods/noise-correction.md, section 3.3.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from analytics.estimators import FEWEST_ITEMS, Z95, Floats, Refusal, finite

SINGULAR = 1e-9
DRAWS = 2000  # of a matrix, to see how often its determinant is positive
FIRST_DRAWS = 300  # all positive: were the chance .975, that would happen once in two thousand times
ENOUGH = 0.975


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


def matrices_refusal(
    matrices: Floats, gold_per_grade: Floats, rng: np.random.Generator | None
) -> Refusal | None:
    """Return why matrices [assessor, true, given] may not be inverted, or None if all of them may."""
    sure = _surely_separated(matrices, gold_per_grade, rng)
    singular = np.abs(np.linalg.det(matrices)) < SINGULAR
    refused: list[Refusal] = []
    for place in np.flatnonzero(~sure | singular):
        found = None if sure[place] else separation_refusal(matrices[place], gold_per_grade[place], rng)
        if found is None and singular[place]:
            found = Refusal("the confusion matrix cannot be inverted: its determinant is 0")
        if found is not None:
            refused.append(found)
    if not refused:
        return None
    needed = [r.needed for r in refused]
    total = None if None in needed else sum(number for number in needed if number is not None)
    first = refused[0].reason
    return Refusal(
        f"{len(refused)} of {len(matrices)} assessors' matrices cannot be used; first: {first}", total
    )


def _surely_separated(matrices: Floats, gold: Floats, rng: np.random.Generator | None) -> NDArray[np.bool_]:
    """Return by assessor whether `separation_refusal` need not be asked, for 3 or more grades.

    Either exactly: a matrix whose rows all have more than 1/2 on the diagonal has a positive determinant, and the
    diagonal of a Dirichlet row is a beta variable. Or because the first draws are positive without exception.
    """
    sure = np.zeros(len(matrices), dtype=bool)
    usable = np.flatnonzero((gold > 0).all(axis=1))
    n_grades = matrices.shape[-1]
    if n_grades == 2 or rng is None:
        return sure
    counts = matrices[usable] * gold[usable][:, :, None] + 0.5
    own = np.diagonal(counts, axis1=1, axis2=2)
    sure[usable] = np.prod(1 - betainc(own, counts.sum(axis=2) - own, 0.5), axis=1) >= ENOUGH
    doubtful = np.flatnonzero(~sure[usable])
    # the sign of a determinant does not change with the scale of its rows
    drawn = rng.standard_gamma(counts[doubtful], (FIRST_DRAWS, doubtful.size, n_grades, n_grades))
    sure[usable[doubtful]] = (np.linalg.det(drawn) > 0).all(axis=0)
    return sure
