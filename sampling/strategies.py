"""Audit strategies: with which probability the gold tier judges an item again, given all bronze grades.

The selection itself is `draws.poisson_draw` with `draws.permanent_random_numbers` of a seed that is *not
the draw's*. Under the draw's seed the numbers of judged items all lie below their inclusion probability: they
are no longer uniform, and the probabilities given here are wrong. Audits that share one seed are together the
audit with the largest of their probabilities, whatever their strategies: a later audit keeps what was judged.

A probability may depend on bronze grades and on gold checks, never on a grade that an audit brought. Every
strategy gives every item a probability above 0, so that one estimator serves them all.
"""

import numpy as np
from numpy.typing import ArrayLike

from sampling.designs import inclusion_probabilities, normalised
from sampling.label_samples import IndexArray, as_indices, label_probabilities
from sampling.measures.families import FloatArray
from sampling.sizes import (
    as_distribution,
    as_finite,
    as_nonnegative,
    as_probabilities,
    as_run_weights,
    distance_from_mean,
    require_same_items,
)
from sampling.sparse import SparseRuns

STRATEGIES = {
    "influence": "where an error would move the comparison most",
    "risk": "where an error would move the comparison and is likely",
    "neyman": "more where the bronze grade tells less about the gold grade",
    "rare": "the least likely drawn first: each stands for many others",
    "simple": "every item alike",
    "topic": "the same share of every topic, mostly of high bronze grades",
    "effort": "high bronze grades first, whatever the topic",
    "full": "topic and effort together",
}
EVEN_SHARE = 0.2
SMALLEST_PROBABILITY = 1e-90  # below it a quotient would leave the doubles
STEPS = 100


def strategy_probabilities(
    strategy: str,
    *,
    expected_count: float,
    influence: ArrayLike,
    inclusion_probability: ArrayLike,
    topic_index: ArrayLike,
    bronze_grade: ArrayLike,
    error_variance: ArrayLike,
    even_share: float = EVEN_SHARE,
    n_grades: int | None = None,
) -> FloatArray:
    """Return each judged item's chance to be audited: above 0, at most 1, sum = min(expected_count, items).

    even_share of the count is spread evenly, the rest as the strategy says:

    influence, risk: proportional to the influence, and to it times the root of the error variance (Neyman's
    allocation for the difference estimator, with equal and with unequal variances). neyman: to the root of the
    error variance alone, so n_l is proportional to N_l S_l. rare: to 1/inclusion probability. simple: evenly.
    topic: of every topic the same share, split over bronze grades as `label_samples.label_shares` says. effort:
    the same split, over the pool of all topics. full: the union of a topic and an effort audit of one size, the
    larger probability cell by cell. Where a strategy has nothing to go by (no influence, no variance) it is `simple`.

    Source: Bailey et al. (2008), section 4.2, for topic, effort and full, there with exact counts; Neyman (1934).

    Parameters
    ----------
    strategy : str
        A key of STRATEGIES.
    expected_count : float
        Audited items wanted, above 0; need not be a whole number.
    influence : array, shape (n_items,)
        Not negative, already divided by the draw's probability: see `question_influence`.
    inclusion_probability : array, shape (n_items,)
        The draw's, within (0, 1]; ones where every item of the frame is judged.
    topic_index, bronze_grade : int arrays, shape (n_items,)
        From 0.
    error_variance : array, shape (n_items,)
        Not negative: see the function of this name.
    even_share : float
        Within (0, 1].
    n_grades : int
        Grades on the scale; by default the largest bronze grade and one. Labels of a grade nobody gave lend their
        share to the others.

    Raises
    ------
    ValueError
        An unknown strategy; input out of bounds or of different lengths.

    Examples
    --------
    >>> known = dict(inclusion_probability=[1, 1, 1, 1], topic_index=[0, 0, 0, 1], bronze_grade=[2, 1, 0, 0])
    >>> more = dict(expected_count=1, influence=[4, 2, 1, 1], error_variance=[0, 1, 0, 0], even_share=0.5)
    >>> strategy_probabilities("influence", **known, **more).round(6).tolist()
    [0.375, 0.25, 0.1875, 0.1875]
    >>> strategy_probabilities("risk", **known, **more).round(6).tolist()
    [0.125, 0.625, 0.125, 0.125]
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {sorted(STRATEGIES)}, got {strategy!r}")
    moved = as_nonnegative("influence", influence, 1)
    variance = as_nonnegative("error_variance", error_variance, 1)
    require_same_items("error_variance", variance, moved.size)
    drawn = _drawn_probabilities(inclusion_probability, moved.size)
    topic = as_indices("topic_index", topic_index, moved.size)
    grade = as_indices("bronze_grade", bronze_grade, moved.size)
    n_labels = _n_grades(grade, n_grades)
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    if not 0.0 < even_share <= 1.0:
        raise ValueError(f"even_share must be within (0, 1], got {even_share}")

    count, even = min(float(expected_count), float(moved.size)), np.ones(moved.size)
    sizes = {
        "influence": moved,
        "risk": _scaled(moved) * np.sqrt(_scaled(variance)),
        "neyman": np.sqrt(variance),
        "rare": 1.0 / drawn,
        "simple": even,
    }.get(strategy)
    if sizes is None:
        sizes = label_probabilities(strategy, topic, grade, n_labels, (1.0 - even_share) * count)
    # What certain items cannot use goes to the others, in proportion: no item falls below its even part.
    part = normalised(sizes) if np.any(sizes > 0.0) else normalised(even)
    return inclusion_probabilities(even_share * normalised(even) + (1.0 - even_share) * part, count)


def _scaled(sizes: FloatArray) -> FloatArray:
    largest = sizes.max()
    return sizes / largest if largest > 0.0 else sizes


def question_influence(weights: ArrayLike | SparseRuns, inclusion_probability: ArrayLike) -> FloatArray:
    """Return how far an error in an item's judgment moves the question's answer; all 0 when it moves nothing.

    Of one run its weight, of more the spread over runs sqrt(sum (w - mean w)^2), for two proportional to
    abs(w_a - w_b); divided by the draw's probability and by the largest contrast, so only proportions count. All 0
    when the runs weigh every judged item alike.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items), or SparseRuns
        w of the question's runs at the judged items, not divided by anything.
    inclusion_probability : array, shape (n_items,)
        The draw's, within (0, 1].

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths.

    Examples
    --------
    >>> question_influence([[0.5, 0.2, 0.0], [0.1, 0.2, 0.2]], [1, 1, 0.5]).round(6).tolist()
    [1.0, 0.0, 1.0]
    """
    rows = as_run_weights("weights", weights)
    drawn = _drawn_probabilities(inclusion_probability, rows.n_items)
    contrast = rows.item_sums(rows.value) if rows.n_runs == 1 else distance_from_mean(rows)
    return np.asarray(_scaled(contrast) / drawn, dtype=np.float64)


def error_variance(
    bronze_class: ArrayLike, counts: ArrayLike, gains: ArrayLike, prevalence: ArrayLike | None = None
) -> FloatArray:
    """Return the variance of the gold gain v(g) given each item's bronze class, from gold checks only.

    var(v | l) = sum_g P(g | l) v_g^2 - (sum_g P(g | l) v_g)^2, P(g | l) proportional to prevalence_g P(l | g), and
    P(l | g) = (x_gl + 1/2)/(x_g + L/2) from the checks. So without any check every class has the same variance. Never
    pass labels of an audit: probabilities of later audits must not depend on them. Any value keeps the estimate
    unbiased; a good one makes it precise.

    Parameters
    ----------
    bronze_class : int array, shape (n_items,)
        Column of counts.
    counts : array, shape (n_grades, n_classes)
        Gold checks by [true grade, given class]; not negative, zeros allowed.
    gains : array, shape (n_grades,)
    prevalence : array, shape (n_grades,)
        Sums to 1. None: the most likely one given the shares of the bronze classes (expectation maximisation,
        100 steps from equal shares, with half a pseudo-item a grade).

    Raises
    ------
    ValueError
        Shapes that do not fit, negative counts, a class outside the columns, a prevalence that does not sum to 1.

    Examples
    --------
    >>> error_variance([0, 1], [[0, 0], [0, 0]], [0, 1]).tolist()
    [0.25, 0.25]
    """
    x = as_nonnegative("counts", counts, 2)
    value = as_finite("gains", gains, x.shape[0])
    classes = as_indices("bronze_class", bronze_class, np.asarray(bronze_class).size)
    if classes.max() >= x.shape[1]:
        raise ValueError(f"bronze_class must be at most {x.shape[1] - 1}, got {classes.max()}")
    share = None if prevalence is None else as_distribution("prevalence", prevalence)
    if share is not None:
        require_same_items("prevalence", share, x.shape[0])

    given = (x + 0.5) / (x.sum(axis=1, keepdims=True) + 0.5 * x.shape[1])
    if share is None:
        share = _likely_prevalence(np.bincount(classes, minlength=x.shape[1]), given)
    joint = share[:, None] * given
    posterior = joint / joint.sum(axis=0)
    # Deviations from a gain in the middle: a difference of squares of large gains would lose digits.
    centred = value - value.mean()
    spread = np.square(centred) @ posterior - np.square(centred @ posterior)
    return np.asarray(np.maximum(spread, 0.0)[classes], dtype=np.float64)


def _likely_prevalence(n_class: IndexArray, given: FloatArray) -> FloatArray:
    share = np.full(given.shape[0], 1.0 / given.shape[0])
    for _ in range(STEPS):
        joint = share[:, None] * given
        share = (joint / joint.sum(axis=0)) @ n_class + 0.5
        share = share / share.sum()
    return share


# ---- checks ----------------------------------------------------------------------------------------------


def _drawn_probabilities(inclusion_probability: ArrayLike, n_items: int) -> FloatArray:
    drawn = as_probabilities("inclusion_probability", inclusion_probability)
    require_same_items("inclusion_probability", drawn, n_items)
    if not np.all(drawn > 0.0):
        raise ValueError(f"inclusion_probability of a judged item must be above 0, got {drawn.min()}")
    return np.maximum(drawn, SMALLEST_PROBABILITY)


def _n_grades(grade: IndexArray, n_grades: int | None) -> int:
    largest = int(grade.max())
    if n_grades is None:
        return largest + 1
    if n_grades <= largest:
        raise ValueError(f"n_grades must be above every bronze grade, {largest}, got {n_grades}")
    return n_grades
