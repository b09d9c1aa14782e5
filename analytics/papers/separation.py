"""May a confusion matrix be inverted? Not if its gold cannot tell it from one whose labels say nothing.

Source: docs/methods/derivations/noise-correction.md, section 6.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Floats, Refusal

SINGULAR = 1e-9
DRAWS = 2000  # of a matrix, to see how often its determinant is positive
FIRST_DRAWS = 300  # all positive: were the chance .975, that would happen once in two thousand times
ENOUGH = 0.975
FAR_BELOW = (
    0.93  # of the first draws: were the chance .975, that would happen once in a hundred thousand times
)


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
    return _drawn_refusal(_determinants((j * n[:, None])[None] + 0.5, DRAWS, rng)[:, 0], n)


def _determinants(counts: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Return [draw, matrix] determinants of matrices whose rows are Dirichlet draws of counts[matrix, true, given]."""
    drawn = rng.standard_gamma(counts, (draws, *counts.shape))
    drawn /= drawn.sum(axis=-1, keepdims=True)
    return np.asarray(np.linalg.det(drawn))


def _drawn_refusal(determinants: Floats, n: Floats) -> Refusal | None:
    """Return why too few of the drawn determinants are positive, or None."""
    positive = float((determinants > 0).mean())
    if positive >= ENOUGH:
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
    settled = _plain_answers(matrices, gold_per_grade, rng)
    singular = np.abs(np.linalg.det(matrices)) < SINGULAR
    refused: list[Refusal] = []
    for place, (matrix, gold) in enumerate(zip(matrices, gold_per_grade, strict=True)):
        found = settled[place] if place in settled else separation_refusal(matrix, gold, rng)
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


def _plain_answers(
    matrices: Floats, gold: Floats, rng: np.random.Generator | None
) -> dict[int, Refusal | None]:
    """Return the answers of `separation_refusal` that are plain at a glance, by assessor, for 3 or more grades.

    Exactly: a matrix whose rows all have more than 1/2 on the diagonal has a positive determinant, and the diagonal of
    a Dirichlet row is a beta variable. Or because the first draws are positive without exception, or far too rarely.
    """
    n_grades = matrices.shape[-1]
    if n_grades == 2 or rng is None:
        return {}
    usable = np.flatnonzero((gold > 0).all(axis=1))
    counts = matrices[usable] * gold[usable][:, :, None] + 0.5
    own = np.diagonal(counts, axis1=1, axis2=2)
    sure = np.prod(1 - betainc(own, counts.sum(axis=2) - own, 0.5), axis=1) >= ENOUGH
    settled: dict[int, Refusal | None] = dict.fromkeys(usable[sure].tolist())
    doubtful = usable[~sure]
    determinants = _determinants(counts[~sure], FIRST_DRAWS, rng)
    positive = (determinants > 0).mean(axis=0)
    for place, share, drawn in zip(doubtful.tolist(), positive, determinants.T, strict=True):
        if share == 1:
            settled[place] = None
        elif share < FAR_BELOW:
            settled[place] = _drawn_refusal(drawn, gold[place])
    return settled
