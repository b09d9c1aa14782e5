"""Audit strategies: with which probability the gold tier judges an item again, given all bronze grades.

The selection itself is `draws.poisson_draw` with `draws.permanent_random_numbers` of a seed that is *not
the draw's*. Under the draw's seed the numbers of judged items all lie below their inclusion probability: they
are no longer uniform, and the probabilities given here are wrong. Audits that share one seed are together the
audit with the largest of their probabilities, whatever their strategies: a later audit keeps what was judged.

A probability may depend on bronze grades and on gold checks, never on a grade that an audit brought. Every
strategy gives every item a probability above 0, so that one estimator serves them all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.designs import inclusion_probabilities, normalised
from sampling.label_samples import (
    IndexArray,
    as_indices,
    effort_probabilities,
    full_probabilities,
    topic_probabilities,
)
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

EVEN_SHARE = 0.2
SMALLEST_PROBABILITY = 1e-90  # below it a quotient would leave the doubles
STEPS = 100


@dataclass(frozen=True)
class Judged:
    """Completely judged items with all that a strategy goes by; arrays have one entry an item, at least one.

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
        Grades on the scale, more than the largest bronze grade. Labels of a grade nobody gave lend their share to the
        others.

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

    def __post_init__(self) -> None:
        influence = as_nonnegative("influence", self.influence, 1)
        variance = as_nonnegative("error_variance", self.error_variance, 1)
        require_same_items("error_variance", variance, influence.size)
        grade = as_indices("bronze_grade", self.bronze_grade, influence.size)
        if self.n_grades <= grade.max():
            raise ValueError(f"n_grades must be above every bronze grade, {grade.max()}, got {self.n_grades}")
        arrays = {
            "influence": influence,
            "inclusion_probability": _drawn_probabilities(self.inclusion_probability, influence.size),
            "topic_index": as_indices("topic_index", self.topic_index, influence.size),
            "bronze_grade": grade,
            "error_variance": variance,
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)


Sizes = Callable[[Judged, float], FloatArray]


@dataclass(frozen=True)
class Strategy:
    """One way to spread an audit over the judged items.

    Attributes
    ----------
    key : str
        As stored, and as the API and the commands spell it; at most 40 characters.
    label, help : str
        Its name on the screen, and a sentence on what it is good for.
    sizes : callable
        From the judged items and the expected number of items that the even share leaves: sizes of the items, not
        negative. Only their proportions count; where all are 0 the audit is even.
    """

    key: str
    label: str
    help: str
    sizes: Sizes


def _influence(judged: Judged, count: float) -> FloatArray:
    return judged.influence


def _risk(judged: Judged, count: float) -> FloatArray:
    """Neyman's allocation for the difference estimator with unequal variances; `_influence` is it with equal ones."""
    return _scaled(judged.influence) * np.sqrt(_scaled(judged.error_variance))


def _neyman(judged: Judged, count: float) -> FloatArray:
    """The root of the error variance alone, so n_l is proportional to N_l S_l. Source: Neyman (1934)."""
    return np.sqrt(judged.error_variance)


def _rare(judged: Judged, count: float) -> FloatArray:
    return 1.0 / judged.inclusion_probability


def _simple(judged: Judged, count: float) -> FloatArray:
    return np.ones(judged.influence.size)


def _topic(judged: Judged, count: float) -> FloatArray:
    return topic_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


def _effort(judged: Judged, count: float) -> FloatArray:
    return effort_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


def _full(judged: Judged, count: float) -> FloatArray:
    return full_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


# The first is the default. Source of the last three: Bailey et al. (2008), section 4.2, there with exact counts.
STRATEGIES = (
    Strategy(
        "influence",
        "Influence",
        "What moves the answer to the campaign's question most. Take it unless you need another.",
        _influence,
    ),
    Strategy(
        "risk",
        "Influence times error",
        "The same, and more where gold checks show that the grade given is often wrong.",
        _risk,
    ),
    Strategy(
        "neyman",
        "Neyman",
        "More of the grades that tell little about the true one: good for every run alike.",
        _neyman,
    ),
    Strategy(
        "rare",
        "Lowest inclusion probability",
        "Documents that few draws would have taken: each stands for many others.",
        _rare,
    ),
    Strategy(
        "simple",
        "Simple",
        "Every judged document alike: good for confusion matrices and questions not asked yet.",
        _simple,
    ),
    Strategy(
        "topic",
        "By topic",
        "The same share of every topic, mostly high grades: good for scores topic by topic.",
        _topic,
    ),
    Strategy(
        "effort",
        "By effort",
        "High grades first, whatever the topic: good for finding what is wrongly taken for relevant.",
        _effort,
    ),
    Strategy("full", "Full", "By topic and by effort together, whichever gives more.", _full),
)
DEFAULT_STRATEGY = STRATEGIES[0].key


def strategy_keys() -> list[str]:
    return [strategy.key for strategy in STRATEGIES]


def strategy_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(strategy.key, strategy.label) for strategy in STRATEGIES]


def strategy_of(key: str) -> Strategy:
    """Return the strategy of a key; ValueError where there is none.

    >>> strategy_of("rare").label
    'Lowest inclusion probability'
    """
    for strategy in STRATEGIES:
        if strategy.key == key:
            return strategy
    raise ValueError(f"strategy must be one of {sorted(strategy_keys())}, got {key!r}")


def strategy_probabilities(
    key: str, judged: Judged, *, expected_count: float, even_share: float = EVEN_SHARE
) -> FloatArray:
    """Return each judged item's chance to be audited: above 0, at most 1, sum = min(expected_count, items).

    even_share of the count is spread evenly, the rest in proportion to the strategy's sizes; evenly too where these
    are all 0 (no influence, no variance).

    Parameters
    ----------
    key : str
        Of a strategy in STRATEGIES.
    expected_count : float
        Audited items wanted, above 0; need not be a whole number.
    even_share : float
        Within (0, 1].

    Raises
    ------
    ValueError
        An unknown strategy; a count or share out of bounds.

    Examples
    --------
    >>> arrays = [np.array([4, 2, 1, 1]), np.ones(4), np.array([0, 0, 0, 1]), np.array([2, 1, 0, 0])]
    >>> judged = Judged(*arrays, error_variance=np.array([0, 1, 0, 0]), n_grades=3)
    >>> strategy_probabilities("influence", judged, expected_count=1, even_share=0.5).round(6).tolist()
    [0.375, 0.25, 0.1875, 0.1875]
    >>> strategy_probabilities("risk", judged, expected_count=1, even_share=0.5).round(6).tolist()
    [0.125, 0.625, 0.125, 0.125]
    """
    strategy = strategy_of(key)
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    if not 0.0 < even_share <= 1.0:
        raise ValueError(f"even_share must be within (0, 1], got {even_share}")

    n_items = judged.influence.size
    count, even = min(float(expected_count), float(n_items)), np.ones(n_items)
    sizes = strategy.sizes(judged, (1.0 - even_share) * count)
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
