"""May the confusion matrices of many assessors be inverted? `analytics.papers.refusals` asks it of one.

Source: docs/methods/derivations/noise-correction.md, section 6.
"""

import numpy as np
import scipy

from analytics.estimation.estimate import Floats, Refusal
from analytics.papers.refusals import determinant_refusal, separation_refusal

SINGULAR = 1e-9
FIRST_DRAWS = 300  # all positive: were the chance .975, that would happen once in two thousand times
ENOUGH = 0.975
FAR_BELOW = (
    0.93  # of the first draws: were the chance .975, that would happen once in a hundred thousand times
)


def _determinants(counts: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Return [draw, matrix] determinants of matrices whose rows are Dirichlet draws of counts[matrix, true, given]."""
    drawn = rng.standard_gamma(counts, (draws, *counts.shape))
    drawn /= drawn.sum(axis=-1, keepdims=True)
    return np.asarray(np.linalg.det(drawn))


def matrices_refusal(
    matrices: Floats, gold_per_grade: Floats, rng: np.random.Generator | None
) -> Refusal | None:
    """Return why matrices [assessor, true, given] may not be inverted, or None if all of them may."""
    settled = _plain_answers(matrices, gold_per_grade, rng)
    singular = np.abs(np.linalg.det(matrices)) < SINGULAR
    refused: list[Refusal] = []
    for place, (matrix, gold) in enumerate(zip(matrices, gold_per_grade, strict=True)):
        found = settled[place] if place in settled else separation_refusal(matrix * gold[:, None], rng)
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
    sure = np.prod(1 - scipy.special.betainc(own, counts.sum(axis=2) - own, 0.5), axis=1) >= ENOUGH
    settled: dict[int, Refusal | None] = dict.fromkeys(usable[sure].tolist())
    doubtful = usable[~sure]
    determinants = _determinants(counts[~sure], FIRST_DRAWS, rng)
    positive = (determinants > 0).mean(axis=0)
    for place, share, drawn in zip(doubtful.tolist(), positive, determinants.T, strict=True):
        if share == 1:
            settled[place] = None
        elif share < FAR_BELOW:
            settled[place] = determinant_refusal(drawn, float(gold[place].sum()))
    return settled
