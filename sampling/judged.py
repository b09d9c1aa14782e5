"""Judged items as the strategies of audits see them: the influence of an error, and its probability.

A strategy may go by bronze grades, gold checks and what gold of *other folds* predicts, never by a grade that an audit
brought on the item's own fold. Arrays are checked in the constructors of `Judged` and `GoldChecks`; what takes these
trusts them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import MAX_VALUE, FloatArray, IndexArray, distribution, integers, numbers
from sampling.measures.sparse import SparseRuns
from sampling.sizes import distance_from_mean

SMALLEST_PROBABILITY = 1e-90  # below it a quotient would leave the doubles
STEPS = 100


@dataclass(frozen=True, eq=False)
class Judged:
    """Completely judged items with the input of the strategies; arrays have one entry an item, at least one.

    Attributes
    ----------
    influence : array
        Not negative, already divided by the draw's probability: see `question_influence`.
    inclusion_probability : array
        The draw's, within (0, 1]; ones where every item of the frame is judged.
    topic_index, bronze_grade : int arrays
        From 0.
    error_variance : array
        Not negative: see the function of this name.
    n_grades : int
        Grades on the scale, more than the largest bronze grade. Labels of a grade that was not given lend their share
        to the others.
    fold : int array, optional
        From 0, fixed before anything is drawn (`sampling.prediction.folds`).
    gold_spread : array, optional
        Not negative: the variance of the gold gain as earlier audits predict it, in a fold from the gold of the other
        folds. None where there is too little gold to learn from. It needs `fold`.
    topic_size : array, optional
        Above 0, alike in a topic: omega s / sqrt(cost), divided by the draw's probability. None where unknown.

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths.
    """

    influence: FloatArray
    inclusion_probability: FloatArray
    topic_index: IndexArray
    bronze_grade: IndexArray
    error_variance: FloatArray
    n_grades: int
    fold: IndexArray | None = None
    gold_spread: FloatArray | None = None
    topic_size: FloatArray | None = None

    def __post_init__(self) -> None:
        # First what the influence was divided by: a probability of 0 makes it infinite.
        drawn = numbers("inclusion_probability", self.inclusion_probability, most=1.0)
        if not np.all(drawn > 0.0):
            raise ValueError(f"inclusion_probability of a judged item must be above 0, got {drawn.min()}")
        grade = integers("bronze_grade", self.bronze_grade, drawn.size)
        if self.n_grades <= grade.max():
            raise ValueError(f"n_grades must be above every bronze grade, {grade.max()}, got {self.n_grades}")
        arrays = {
            "influence": numbers("influence", self.influence, drawn.size),
            "inclusion_probability": np.maximum(drawn, SMALLEST_PROBABILITY),
            "topic_index": integers("topic_index", self.topic_index, drawn.size),
            "bronze_grade": grade,
            "error_variance": numbers("error_variance", self.error_variance, drawn.size),
        }
        if self.fold is not None:
            arrays["fold"] = integers("fold", self.fold, drawn.size)
        if self.gold_spread is not None:
            if self.fold is None:
                raise ValueError("gold_spread needs the fold of every item, got None")
            arrays["gold_spread"] = numbers("gold_spread", self.gold_spread, drawn.size)
        if self.topic_size is not None:
            size = arrays["topic_size"] = numbers("topic_size", self.topic_size, drawn.size)
            if (size == 0).any():
                raise ValueError(f"topic_size must be above 0, got {size.min()}")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class GoldChecks:
    """Answers on gold checks, of all assessors together, and what grades are worth.

    Attributes
    ----------
    counts : array, shape (n_grades, n_classes)
        By [true grade, given class]; not negative, zeros allowed.
    gains : array, shape (n_grades,)
    prevalence : array, shape (n_grades,), optional
        Of the true grades among the judged items; sums to 1. None: the most likely one given the shares of the bronze
        classes (expectation maximisation, 100 steps from equal shares, with half a pseudo-item a grade).

    Raises
    ------
    ValueError
        Shapes that do not fit, negative counts, a prevalence that does not sum to 1.
    """

    counts: FloatArray
    gains: FloatArray
    prevalence: FloatArray | None = None

    def __post_init__(self) -> None:
        counts = numbers("counts", self.counts, ndim=2)
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "gains", numbers("gains", self.gains, counts.shape[0], least=-MAX_VALUE))
        if self.prevalence is not None:
            share = distribution("prevalence", self.prevalence, counts.shape[0])
            object.__setattr__(self, "prevalence", share)


def judged_items(
    weights: SparseRuns,
    *,
    inclusion_probability: FloatArray,
    topic_index: IndexArray,
    bronze_grade: IndexArray,
    check_counts: FloatArray,
    gains: FloatArray,
    fold: IndexArray | None = None,
    gold_spread: FloatArray | None = None,
) -> Judged:
    """Return the items with their influence on the question of these runs, and the errors that the checks expect.

    `weights` are those of the question's runs at the items; the arrays are those of `Judged` and `GoldChecks`.
    """
    return Judged(
        influence=question_influence(weights, inclusion_probability),
        inclusion_probability=inclusion_probability,
        topic_index=topic_index,
        bronze_grade=bronze_grade,
        error_variance=error_variance(bronze_grade, GoldChecks(check_counts, gains)),
        n_grades=len(gains),
        fold=fold,
        gold_spread=gold_spread,
    )


def question_influence(weights: SparseRuns, inclusion_probability: FloatArray) -> FloatArray:
    """Return the influence of an error in each item's judgment on the question's answer; all 0 where there is none.

    Of one run its weight, of more the spread over runs sqrt(sum (w - mean w)^2), for two proportional to
    abs(w_a - w_b); divided by the draw's probability and by the largest contrast, so only proportions count. All 0
    when the runs weigh every judged item alike. Without runs the question is the share of relevant items, to which all
    items count alike.

    Parameters
    ----------
    weights : SparseRuns, shape (n_runs, n_items)
        w of the question's runs at the judged items, not divided by anything.
    inclusion_probability : array, shape (n_items,)
        The draw's, as in `Judged`, which checks both.

    Examples
    --------
    >>> from sampling.arrays import run_table
    >>> weights = run_table("weights", [[0.5, 0.2, 0.0], [0.1, 0.2, 0.2]])
    >>> question_influence(weights, np.array([1, 1, 0.5])).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    if not weights.n_runs:
        contrast = np.ones(weights.n_items)
    else:
        contrast = weights.item_sums(weights.value) if weights.n_runs == 1 else distance_from_mean(weights)
    return scale(contrast) / np.maximum(inclusion_probability, SMALLEST_PROBABILITY)


def scale(sizes: FloatArray) -> FloatArray:
    """Return the sizes divided by the largest, where that is above 0."""
    largest = sizes.max()
    return sizes / largest if largest > 0.0 else sizes


def error_variance(bronze_class: ArrayLike, checks: GoldChecks) -> FloatArray:
    """Return the variance of the gold gain v(g) given each item's bronze class, from gold checks only.

    var(v | l) = sum_g P(g | l) v_g^2 - (sum_g P(g | l) v_g)^2, P(g | l) proportional to prevalence_g P(l | g), and
    P(l | g) = (x_gl + 1/2)/(x_g + L/2) from the checks. So without any check every class has the same variance. Never
    pass labels of an audit: probabilities of later audits must not depend on them. Any value keeps the estimate
    unbiased; a good one makes it precise.

    Parameters
    ----------
    bronze_class : int array, shape (n_items,)
        Column of the checks' counts.

    Raises
    ------
    ValueError
        A class outside the columns.

    Examples
    --------
    >>> error_variance([0, 1], GoldChecks([[0, 0], [0, 0]], [0, 1])).tolist()
    [0.25, 0.25]
    """
    x, value, share = checks.counts, checks.gains, checks.prevalence
    classes = integers("bronze_class", bronze_class, np.size(bronze_class), most=x.shape[1] - 1)
    given = (x + 0.5) / (x.sum(axis=1, keepdims=True) + 0.5 * x.shape[1])
    if share is None:
        share = _likely_prevalence(np.bincount(classes, minlength=x.shape[1]), given)
    joint = share[:, None] * given
    posterior = joint / joint.sum(axis=0)
    # Deviations from a gain in the middle: a difference of squares of large gains would lose digits.
    centred = value - value.mean()
    spread = np.square(centred) @ posterior - np.square(centred @ posterior)
    return np.asarray(np.maximum(spread, 0.0)[classes], dtype=np.float64)


def relevance_given_grade(
    prior: ArrayLike, bronze_grade: ArrayLike, check_counts: ArrayLike, relevant_grade: int
) -> FloatArray:
    """Return each item's probability of relevance given its bronze grade: Bayes' rule with the rates of gold checks.

    Half a check is added to every cell of [truly relevant, given as relevant]; without any check the prior stays.

    Parameters
    ----------
    prior : array, shape (n_items,)
        Within [0, 1], known before the item was judged.
    bronze_grade : int array, shape (n_items,)
    check_counts : array, shape (n_grades, n_grades)
        By [true grade, given grade].
    relevant_grade : int
        The lowest grade that counts as relevant.

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths.

    Examples
    --------
    >>> relevance_given_grade([0.5, 0.5], [1, 0], [[7, 2], [2, 7]], 1).tolist()
    [0.75, 0.25]
    """
    before = numbers("prior", prior, most=1.0)
    says = integers("bronze_grade", bronze_grade, before.size) >= relevant_grade
    counts = numbers("check_counts", check_counts, ndim=2)
    truly, given = (np.arange(n) >= relevant_grade for n in counts.shape)
    rates = [(counts[rows][:, given].sum() + 0.5) / (counts[rows].sum() + 1.0) for rows in (truly, ~truly)]
    likely, unlikely = (np.where(says, rate, 1.0 - rate) for rate in rates)
    whole = before * likely + (1.0 - before) * unlikely
    return np.asarray(np.divide(before * likely, whole, out=before.copy(), where=whole > 0.0))


def _likely_prevalence(n_class: IndexArray, given: FloatArray) -> FloatArray:
    share = np.full(given.shape[0], 1.0 / given.shape[0])
    for _ in range(STEPS):
        joint = share[:, None] * given
        share = (joint / joint.sum(axis=0)) @ n_class + 0.5
        share = share / share.sum()
    return share
