"""Sizes: how much an item deserves a judgment, before any budget is known.

A size is a contrast (how far the item's utility moves the wanted answer) times a spread (how little is
known about it).
"""

import numpy as np
from numpy.typing import ArrayLike

from sampling.measures import FloatArray
from sampling.sparse import SparseRuns, from_dense

MAX_VALUE = 1e100  # squares and sums of anything below stay finite


class IdenticalSystemsError(ValueError):
    """Every run weighs every item alike: each difference is exactly 0 and there is nothing to judge."""


class UnsupportedWeightError(ValueError):
    """An item that matters has probability 0: an estimate from such a sample would be biased."""


# ---- checks --------------------------------------------------------------------------------------


def as_nonnegative(name: str, values: ArrayLike, ndim: int) -> FloatArray:
    """Return the values as floats; ValueError unless finite, within [0, 1e100], of `ndim` axes and not
    empty.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{name} must have {ndim} axes and at least 1 item, got shape {array.shape}")
    refused = array[~((array >= 0.0) & (array <= MAX_VALUE))]
    if refused.size:
        raise ValueError(f"{name} must be within [0, {MAX_VALUE:g}], got {refused[0]}")
    return array


def as_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless each lies within [0, 1]."""
    array = as_nonnegative(name, values, 1)
    if array.max() > 1.0:
        raise ValueError(f"{name} must be within [0, 1], got {array.max()}")
    return array


def as_distribution(name: str, values: ArrayLike) -> FloatArray:
    """Return the values as floats; ValueError unless they are probabilities that sum to 1 (to 1e-9)."""
    array = as_probabilities(name, values)
    if abs(array.sum() - 1.0) > 1e-9:
        raise ValueError(f"{name} must sum to 1, got {array.sum()}")
    return array


def as_finite(name: str, values: ArrayLike, n_items: int) -> FloatArray:
    """Return the values as floats; ValueError unless finite and ending in an axis of n_items."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim < 1 or array.shape[-1] != n_items:
        raise ValueError(f"{name} must end in an axis of {n_items} items, got shape {array.shape}")
    refused = array[~(np.abs(array) <= MAX_VALUE)]
    if refused.size:
        raise ValueError(f"{name} must be finite, within +-{MAX_VALUE:g}, got {refused[0]}")
    return array


def as_run_weights(name: str, weights: ArrayLike | SparseRuns) -> SparseRuns:
    """Return weights[run, item] as entries; ValueError unless finite, within [0, 1e100] and not an empty table."""
    if not isinstance(weights, SparseRuns):
        return from_dense(as_nonnegative(name, weights, 2))
    if weights.n_runs * weights.n_items == 0:
        raise ValueError(f"{name} must have 2 axes and at least 1 item, got shape {weights.shape}")
    if weights.value.size:
        return weights.with_values(as_nonnegative(name, weights.value, 1))
    return weights


def require_same_items(name: str, array: FloatArray, n_items: int) -> None:
    """Return nothing when the array is about n_items items."""
    if array.shape[-1] != n_items:
        raise ValueError(f"{name} must have {n_items} items, got {array.shape[-1]}")


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
    array = as_nonnegative("probability", probability, 1)
    if isinstance(weights, SparseRuns):
        entries = as_run_weights("weights", weights)
        if entries.n_items != array.size:
            raise ValueError(f"weights must have {array.size} items, got {entries.n_items}")
        size, outside = entries.value, entries.value[array[entries.item] == 0.0].sum()
    else:
        size = np.abs(as_finite("weights", weights, array.size))
        outside = size[..., array == 0.0].sum()
    if outside > 0.0:
        share = outside / size.sum()
        raise UnsupportedWeightError(
            f"weight outside the design's support must be 0, got {outside:.6g}, {share:.3%} of all weight"
        )


# ---- contrasts: how much an item's utility moves the answer --------------------------------------


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
    first = as_nonnegative("weights_a", weights_a, 1)
    second = as_nonnegative("weights_b", weights_b, 1)
    require_same_items("weights_b", second, first.size)
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
    rows = as_run_weights("candidates", candidates)
    reference = as_nonnegative("baseline", baseline, 1)
    require_same_items("baseline", reference, rows.n_items)
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
    rows = as_run_weights("weights", weights)
    if rows.n_runs < 2:
        raise ValueError(f"a ranking needs at least 2 runs, got {rows.n_runs}")
    return _refuse_identical(distance_from_mean(rows), "the runs")


def distance_from(rows: SparseRuns, centre: FloatArray, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - centre)^2) per item, or its square; runs without an entry weigh 0."""
    deviation = np.abs(rows.value - centre[rows.item])
    n_absent = rows.n_runs - rows.counts()
    absent = np.where(n_absent > 0, centre, 0.0)
    # Dividing by the largest deviation first, squares neither overflow nor lose tiny weights.
    largest = np.maximum(rows.item_extremes(np.maximum, deviation), absent)
    scale = np.where(largest > 0.0, largest, 1.0)
    squares = rows.item_sums(np.square(deviation / scale[rows.item])) + n_absent * np.square(absent / scale)
    return np.asarray(
        np.square(largest) * squares if squared else largest * np.sqrt(squares), dtype=np.float64
    )


def distance_from_mean(rows: SparseRuns, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - mean w)^2) per item, or its square; exactly 0 where all runs weigh alike.

    The mean is taken first and the deviations from it after: a difference of two sums of squares would call
    runs different that are alike.
    """
    distance = distance_from(rows, rows.item_sums(rows.value) / rows.n_runs, squared=squared)
    # The mean of equal numbers may differ from them in the last bit; such a difference is not information.
    least, most = (rows.item_extremes(extreme, rows.value) for extreme in (np.minimum, np.maximum))
    distance[(most == 0.0) | ((least == most) & (rows.counts() == rows.n_runs))] = 0.0
    return distance


def _refuse_identical(contrast: FloatArray, who: str) -> FloatArray:
    if not np.any(contrast > 0.0):
        raise IdenticalSystemsError(
            f"{who} are identical under this measure: every difference is 0, nothing to judge"
        )
    return contrast


# ---- spreads and sizes ---------------------------------------------------------------------------


def binary_spread(probability: ArrayLike) -> FloatArray:
    """Return sqrt(p (1 - p)), the standard deviation of binary relevance guessed with probability p in (0,
    1).

    Raises
    ------
    ValueError
        p not strictly between 0 and 1: such an item would never be drawn, or is called known before it is
        judged.
    """
    guess = as_nonnegative("probability", probability, 1)
    refused = guess[(guess <= 0.0) | (guess >= 1.0)]
    if refused.size:
        raise ValueError(f"probability must be within (0, 1), got {refused[0]}")
    return np.asarray(np.sqrt(guess * (1.0 - guess)), dtype=np.float64)


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
    moves = as_nonnegative("contrast", contrast, 1)
    unknown = as_nonnegative("spread", spread, 1)
    require_same_items("spread", unknown, moves.size)
    require_support(unknown, moves)
    return np.asarray(moves * unknown, dtype=np.float64)


def pair_sizes(weights_a: ArrayLike, weights_b: ArrayLike, prior: ArrayLike) -> FloatArray:
    """Return abs(w_a - w_b) * sqrt(p (1 - p)), sizes for the difference of two runs; p = prior of
    relevance.
    """
    return design_sizes(pair_contrast(weights_a, weights_b), binary_spread(prior))


def baseline_sizes(candidates: ArrayLike | SparseRuns, baseline: ArrayLike, prior: ArrayLike) -> FloatArray:
    """Return sqrt(sum (w_j - w_0)^2) * sqrt(p (1 - p)), sizes for candidates against a baseline."""
    return design_sizes(baseline_contrast(candidates, baseline), binary_spread(prior))


def ranking_sizes(weights: ArrayLike | SparseRuns, prior: ArrayLike) -> FloatArray:
    """Return sqrt(sum (w_j - mean w)^2) * sqrt(p (1 - p)), sizes for ranking several runs."""
    return design_sizes(ranking_contrast(weights), binary_spread(prior))


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
    matrix = as_nonnegative("confusion", confusion, 2)
    if matrix.shape[0] != matrix.shape[1] or np.any(np.abs(matrix.sum(axis=1) - 1.0) > 1e-9):
        raise ValueError(f"confusion must be square with rows that sum to 1, got {matrix.tolist()}")
    gain = as_nonnegative("gains", gains, 1)
    require_same_items("gains", gain, matrix.shape[0])
    condition = float(np.linalg.cond(matrix))
    if not condition < 1e8:
        raise ValueError(f"confusion must have a condition number below 1e8, got {condition:.3g}")
    return np.asarray(matrix @ np.square(np.linalg.solve(matrix, gain)), dtype=np.float64)


def expected_second_moment(grade_probability: ArrayLike, moments: ArrayLike) -> FloatArray:
    """Return sum over grades t of P(t) E[c^2 | t], by item.

    Its root is the spread under which Horvitz-Thompson has its least variance; of c - f it is
    `corrected_spread`, the difference estimator's.

    Parameters
    ----------
    grade_probability : array, shape (n_items, n_grades)
        What is guessed of each item's true grade; rows sum to 1.
    moments : array, shape (n_grades,)
        `corrected_second_moments`, or squared gains where labels are free of noise.

    Raises
    ------
    ValueError
        Probabilities that are negative or do not sum to 1, or moments of another number of grades.

    Examples
    --------
    >>> expected_second_moment([[0.75, 0.25]], [0.0, 4.0]).tolist()
    [1.0]
    """
    guess = as_nonnegative("grade_probability", grade_probability, 2)
    moment = as_nonnegative("moments", moments, 1)
    require_same_items("moments", moment, guess.shape[1])
    if np.any(np.abs(guess.sum(axis=1) - 1.0) > 1e-9):
        wrong = guess.sum(axis=1)[np.abs(guess.sum(axis=1) - 1.0) > 1e-9][0]
        raise ValueError(f"grade_probability must sum to 1 for every item, got {wrong}")
    return np.asarray((guess * moment).sum(axis=1), dtype=np.float64)


def corrected_spread(
    grade_probability: ArrayLike, confusion: ArrayLike, gains: ArrayLike, prediction: ArrayLike
) -> FloatArray:
    """Return sqrt(E[(c - f)^2]) by item for labels corrected by c = J^-1 v: the noise-aware spread.

    E[(c - f)^2] = sum over grades t of P(t) (E[c^2 | t] - 2 f gain(t) + f^2), because E[c | t] = gain(t). With
    f = the mean gain under P it is the standard deviation of c, at least that of the gain itself. Never 0
    where labels err, so that no item is called known before it is judged.

    Source: Schnabel et al. (2016), section 3.7, with the second moment where they plug in the mean.

    Parameters
    ----------
    grade_probability : array, shape (n_items, n_grades)
    confusion : array, shape (n_grades, n_grades)
        confusion[true_grade, given_grade].
    gains : array, shape (n_grades,)
    prediction : float or array, shape (n_items,)
        f; 0 for Horvitz-Thompson.

    Raises
    ------
    ValueError
        As `corrected_second_moments` and `expected_second_moment`; a prediction that is not finite.
    """
    second = expected_second_moment(grade_probability, corrected_second_moments(confusion, gains))
    mean = expected_second_moment(grade_probability, gains)
    guess = as_finite("prediction", np.broadcast_to(prediction, mean.shape), mean.size)
    return np.asarray(
        np.sqrt(np.maximum(second - 2.0 * guess * mean + np.square(guess), 0.0)), dtype=np.float64
    )
