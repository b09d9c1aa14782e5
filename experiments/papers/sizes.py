"""Contrasts and spreads of one question, written out: a size is a contrast times a spread.

The product asks the same of a design's runs at once (`sampling.questions`). Source: Schnabel et al. (2016).
"""

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import MAX_VALUE, numbers, run_table
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.sizes import IdenticalSystemsError, UnsupportedWeightError, distance_from, distance_from_mean


def require_support(probability: ArrayLike, weights: ArrayLike | SparseRuns) -> None:
    """Return nothing when every item with weight can be drawn; otherwise refuse, naming the share outside.

    A pair's design never draws an item on which the two runs agree. Judgments drawn for the pair therefore
    say nothing about part of any other run, and its estimate would be too low.

    Raises
    ------
    UnsupportedWeightError
        Some run has weight where the probability is 0.

    Examples
    --------
    >>> require_support([0.5, 0.0], [1.0, 0.0])
    """
    array = numbers("probability", probability)
    if isinstance(weights, SparseRuns):
        entries = run_table("weights", weights)
        if entries.n_items != array.size:
            raise ValueError(f"weights must have {array.size} items, got {entries.n_items}")
        size, outside = entries.value, entries.value[array[entries.item] == 0.0].sum()
    else:
        size = np.abs(numbers("weights", weights, array.size, ndim=None, least=-MAX_VALUE))
        outside = size[..., array == 0.0].sum()
    if outside > 0.0:
        share = outside / size.sum()
        raise UnsupportedWeightError(
            f"weight outside the design's support must be 0, got {outside:.6g}, {share:.3%} of all weight"
        )


def pair_contrast(weights_a: ArrayLike, weights_b: ArrayLike) -> FloatArray:
    """Return abs(w_a - w_b) per item; where both runs weigh an item alike it cannot tell them apart and
    gets 0.

    Raises
    ------
    IdenticalSystemsError
        The runs weigh every item alike: their difference is exactly 0 +- 0.
    ValueError
        Weights negative, not finite or of different lengths.
    """
    first = numbers("weights_a", weights_a)
    second = numbers("weights_b", weights_b, first.size)
    return _refuse_identical(np.abs(first - second), "the two runs")


def baseline_contrast(candidates: ArrayLike | SparseRuns, baseline: ArrayLike) -> FloatArray:
    """Return sqrt(sum over candidates j of (w_j - w_0)^2) per item.

    Items that only the baseline returns are included: without them the estimate would have no finite
    variance.

    Parameters
    ----------
    candidates : array, shape (n_runs, n_items), or SparseRuns
    baseline : array, shape (n_items,)

    Raises
    ------
    IdenticalSystemsError, ValueError
        As `pair_contrast`.
    """
    rows = run_table("candidates", candidates)
    reference = numbers("baseline", baseline, rows.n_items)
    return _refuse_identical(distance_from(rows, reference), "baseline and candidates")


def ranking_contrast(weights: ArrayLike | SparseRuns) -> FloatArray:
    """Return sqrt(sum over runs j of (w_j - mean w)^2) per item.

    It serves the sum of the variances of all pairwise differences: that sum is n_runs times this objective.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items), n_runs >= 2, or SparseRuns

    Raises
    ------
    IdenticalSystemsError, ValueError
        As `pair_contrast`; fewer than two runs.
    """
    rows = run_table("weights", weights)
    if rows.n_runs < 2:
        raise ValueError(f"a ranking needs at least 2 runs, got {rows.n_runs}")
    return _refuse_identical(distance_from_mean(rows), "the runs")


def _refuse_identical(contrast: FloatArray, who: str) -> FloatArray:
    if not np.any(contrast > 0.0):
        raise IdenticalSystemsError(
            f"{who} are identical under this measure: every difference is 0, nothing to judge"
        )
    return contrast


def binary_spread(probability: ArrayLike) -> FloatArray:
    """Return sqrt(p (1 - p)), the standard deviation of binary relevance with prior probability p in (0,
    1).

    Raises
    ------
    ValueError
        p not strictly between 0 and 1: such an item would never be drawn, or is called known before it is
        judged.
    """
    prior = numbers("probability", probability)
    refused = prior[(prior <= 0.0) | (prior >= 1.0)]
    if refused.size:
        raise ValueError(f"probability must be within (0, 1), got {refused[0]}")
    return np.asarray(np.sqrt(prior * (1.0 - prior)), dtype=np.float64)


def design_sizes(contrast: ArrayLike, spread: ArrayLike) -> FloatArray:
    """Return contrast * spread: the sizes that give the difference estimator its least variance for a given
    budget.

    Parameters
    ----------
    contrast : array, shape (n_items,)
        A run's weights, `pair_contrast`, `baseline_contrast` or `ranking_contrast`.
    spread : array, shape (n_items,)
        Standard deviation of the utility around its prediction: `binary_spread`, or the root of a second
        moment.

    Raises
    ------
    UnsupportedWeightError
        A spread of 0 where the contrast is not: that item could never be drawn.
    """
    moves = numbers("contrast", contrast)
    unknown = numbers("spread", spread, moves.size)
    require_support(unknown, moves)
    return np.asarray(moves * unknown, dtype=np.float64)


def corrected_second_moments(confusion: ArrayLike, gains: ArrayLike) -> FloatArray:
    """Return E[c^2 | true grade] of labels corrected by c = J^-1 v: sizes use its root, so negative c
    cannot spoil them.

    Assumes that labels err independently with the confusion matrix J = confusion[true_grade, given_grade].

    Raises
    ------
    ValueError
        J not square, rows not summing to 1, gains of another length, or J of condition number 1e8 and above.

    Examples
    --------
    >>> corrected_second_moments([[1, 0], [0, 1]], [0, 3]).tolist()
    [0.0, 9.0]
    """
    matrix = numbers("confusion", confusion, ndim=2)
    if matrix.shape[0] != matrix.shape[1] or np.any(np.abs(matrix.sum(axis=1) - 1.0) > 1e-9):
        raise ValueError(f"confusion must be square with rows that sum to 1, got {matrix.tolist()}")
    gain = numbers("gains", gains, matrix.shape[0])
    condition = float(np.linalg.cond(matrix))
    if not condition < 1e8:
        raise ValueError(f"confusion must have a condition number below 1e8, got {condition:.3g}")
    return np.asarray(matrix @ np.square(np.linalg.solve(matrix, gain)), dtype=np.float64)
