"""Audit strategies: with which probability the gold tier judges an item again, given all bronze grades.

The selection itself is `draws.poisson_draw` with `draws.permanent_random_numbers` of a seed that is *not
the draw's*. Under the draw's seed the numbers of judged items all lie below their inclusion probability: they
are no longer uniform, and the probabilities given here are wrong. Audits that share one seed are together the
audit with the largest of their probabilities, whatever their strategies: a later audit keeps what was judged.

A probability may depend on bronze grades, on gold checks and on what audits brought in *other folds*, never on a grade
that an audit brought on the item's own fold. Every strategy gives every item a probability above 0, so that one
estimator serves them all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sampling.arrays import FloatArray
from sampling.batches import rescaled_by_fold
from sampling.designs import inclusion_probabilities, normalise
from sampling.judged import Judged, scale
from sampling.label_samples import effort_probabilities, full_probabilities, topic_probabilities

EVEN_SHARE = 0.2
LEARNED_EVEN_SHARE = 0.05
FEWEST_GOLD = 50  # gold labels that earlier audits were to bring: below, there is too little to learn from
SIMPLE, CENSUS = "simple", "census"

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
    even_share : float
        Of the count, spread evenly.
    learns : bool
        Whether sizes follow from gold of other folds. Until there is enough of it the strategy is the default one, and
        every fold gets as many items as that would give it.
    takes_topics : bool
        Whether a topic's documents are taken together, by one number a topic: for draws of whole topics alone.
    takes_all : bool
        Whether everything with influence is taken, for a run or a pair that is named: such an audit has no size, and no
        schedule draws it (`sampling.audit_plan.Auditable.census`).
    needs_checks : bool
        Whether sizes say nothing without gold checks, which tell how often a grade is wrong.
    """

    key: str
    label: str
    help: str
    sizes: Sizes
    even_share: float = EVEN_SHARE
    learns: bool = False
    takes_topics: bool = False
    takes_all: bool = False
    needs_checks: bool = False


def _influence(judged: Judged, count: float) -> FloatArray:
    return judged.influence


def _risk(judged: Judged, count: float) -> FloatArray:
    """Neyman's allocation for the difference estimator with unequal variances; `_influence` is it with equal ones."""
    return scale(judged.influence) * np.sqrt(scale(judged.error_variance))


def _doubt(judged: Judged, count: float) -> FloatArray:
    """Neyman's allocation once more, with the variance that gold of other folds predicts; sums of folds are kept."""
    if judged.fold is None or judged.gold_spread is None or not judged.influence.any():
        return judged.influence
    doubt = scale(judged.influence) * np.sqrt(judged.gold_spread)
    return rescaled_by_fold(doubt, judged.fold, judged.influence)


def _whole_topics(judged: Judged, count: float) -> FloatArray:
    """Sizes alike in a topic: ``omega s / sqrt(cost)`` where they are known, else only the cost differs.

    Source: Cochran (1977), section 5.5.
    """
    if judged.topic_size is not None:
        return judged.topic_size
    return np.asarray(1.0 / np.sqrt(np.bincount(judged.topic_index)[judged.topic_index]))


def _neyman(judged: Judged, count: float) -> FloatArray:
    """The root of the error variance alone, so n_l is proportional to N_l S_l. Source: Neyman (1934)."""
    return np.sqrt(judged.error_variance)


def _rare(judged: Judged, count: float) -> FloatArray:
    return 1.0 / judged.inclusion_probability


def _simple(judged: Judged, count: float) -> FloatArray:
    return np.ones(judged.influence.size)


def _topic(judged: Judged, count: float) -> FloatArray:
    return topic_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


def _census(judged: Judged, count: float) -> FloatArray:
    """Alike wherever there is influence: of an audit too small for all of it, what a census of a part would be."""
    return np.asarray(judged.influence > 0.0, dtype=np.float64)


def _effort(judged: Judged, count: float) -> FloatArray:
    return effort_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


def _full(judged: Judged, count: float) -> FloatArray:
    return full_probabilities(judged.topic_index, judged.bronze_grade, judged.n_grades, count)


# The first is the default. Source of the last three: Bailey et al. (2008), section 4.2, there with exact counts.
STRATEGIES = (
    Strategy(
        "influence",
        "Influence",
        "Documents that influence the answer to the campaign's question most. The usual choice.",
        _influence,
    ),
    Strategy(
        "risk",
        "Influence times error",
        "The same, and more documents with grades that gold checks show to be often wrong.",
        _risk,
        needs_checks=True,
    ),
    Strategy(
        "neyman",
        "Neyman",
        "More documents with grades that say little about the true grade: good for all runs.",
        _neyman,
        needs_checks=True,
    ),
    Strategy(
        "rare",
        "Lowest inclusion probability",
        "Documents that were unlikely to be drawn: each represents many others.",
        _rare,
    ),
    Strategy(
        SIMPLE,
        "Simple",
        "All judged documents with equal probability: good for confusion matrices and later questions.",
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
        "High grades first, whatever the topic: good for finding documents wrongly judged relevant.",
        _effort,
    ),
    Strategy("full", "Full", "The larger of the probabilities by topic and by effort.", _full),
    Strategy(
        "learned",
        "Learned",
        "Influence, and more documents whose gold grade earlier audits leave in doubt. For every later audit.",
        _doubt,
        LEARNED_EVEN_SHARE,
        learns=True,
    ),
    Strategy(
        "whole-topics",
        "Whole topics",
        "All judged documents of some topics, so that any measure can be corrected. Where whole topics were drawn.",
        _whole_topics,
        0.0,  # every topic has a size: `sampling.topic_runs.with_floor`
        takes_topics=True,
    ),
    Strategy(
        CENSUS,
        "Census",
        "All judged documents that count for one run or pair, so that gold makes its number exact. Without a size.",
        _census,
        takes_all=True,
    ),
)
DEFAULT_STRATEGY = STRATEGIES[0].key


def strategy_keys() -> list[str]:
    return [strategy.key for strategy in STRATEGIES]


def strategies_for(*, has_whole_topics: bool) -> tuple[Strategy, ...]:
    """Return the strategies that fit the draw and have a size: those that a schedule can follow.

    >>> [strategy.key for strategy in strategies_for(has_whole_topics=True)]
    ['whole-topics']
    """
    return tuple(one for one in schedulable_strategies() if one.takes_topics == has_whole_topics)


def schedulable_strategies() -> tuple[Strategy, ...]:
    """Return the strategies of audits that have a size; a census is asked for by hand, for a run or a pair.

    >>> "census" in [strategy.key for strategy in schedulable_strategies()]
    False
    """
    return tuple(strategy for strategy in STRATEGIES if not strategy.takes_all)


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


def strategy_at_work(key: str, judged: Judged) -> Strategy:
    """Return the strategy of a key; the default one in place of one that learns while there is too little gold."""
    strategy = strategy_of(key)
    return strategy_of(DEFAULT_STRATEGY) if strategy.learns and judged.gold_spread is None else strategy


def strategy_shares(
    key: str, judged: Judged, *, expected_count: float, even_share: float | None = None
) -> FloatArray:
    """Return how the strategy spreads an audit over the items, before any is certain: above 0, sum 1.

    even_share of the count is spread evenly, the rest in proportion to the strategy's sizes; evenly too where these
    are all 0 (no influence, no variance). A strategy that learns keeps its own even share while there is too little
    gold: what a first audit spreads evenly, no later one takes back. Arguments and errors: `strategy_probabilities`.
    """
    strategy = strategy_at_work(key, judged)
    evenly = strategy_of(key).even_share if even_share is None else even_share
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    if even_share is not None and not 0.0 < evenly <= 1.0:
        raise ValueError(f"even_share must be within (0, 1], got {evenly}")

    n_items = judged.influence.size
    count, even = min(float(expected_count), float(n_items)), np.full(n_items, 1.0 / n_items)
    sizes = strategy.sizes(judged, (1.0 - evenly) * count)
    part = normalise(sizes) if np.any(sizes > 0.0) else even
    return evenly * even + (1.0 - evenly) * part


def strategy_probabilities(
    key: str, judged: Judged, *, expected_count: float, even_share: float | None = None
) -> FloatArray:
    """Return each judged item's probability of an audit: above 0, at most 1, sum = min(expected_count, items).

    One constant scales the shares of all items. So a strategy that learns, and all that come after it, need
    `sampling.audit_plan.Auditable`, which scales fold by fold: a common constant would carry what one fold's audit
    brought to all others.

    Parameters
    ----------
    key : str
        Of a strategy in STRATEGIES.
    expected_count : float
        Audited items wanted, above 0; need not be a whole number.
    even_share : float, optional
        Within (0, 1]; default, the strategy's own.

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
    # What certain items cannot use goes to the others, in proportion: no item falls below its even part.
    shares = strategy_shares(key, judged, expected_count=expected_count, even_share=even_share)
    return inclusion_probabilities(shares, min(float(expected_count), float(shares.size)))
