"""A minimal test collection: judgments one at a time, each where it tells most, until the signs are clear.

sampling/minimal.py has the numbers of one topic; here topics are put together, for average precision and for DCG.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray
from sampling.measures.dcg import discount
from sampling.minimal import (
    Difference,
    ModelTopic,
    StoppingRule,
    certain_sign,
    expected_sums,
    gain_difference,
    next_document,
    pair_spread,
    precision_difference,
    precision_weights,
)


@dataclass(frozen=True)
class Objective:
    """The measure whose differences are to get a sign.

    Attributes
    ----------
    scores
        The expectation for every run, of one topic.
    weights
        (n_runs, n_documents): what one more relevant document adds to the score of each run, as expected.
    difference
        Of two runs, of one topic.
    divisor
        By which a topic counts: scores and differences are divided by it.
    sign
        Of two runs over all topics where nothing unjudged can turn it, otherwise 0.
    """

    key: str
    scores: Callable[[ModelTopic], FloatArray]
    weights: Callable[[ModelTopic], FloatArray]
    difference: Callable[[ModelTopic, int, int], Difference]
    divisor: Callable[[ModelTopic], float]
    sign: Callable[[Iterable[ModelTopic], int, int], int]

    def spread(self, topic: ModelTopic) -> FloatArray:
        """Return what a judgment of each document tells: the sum over pairs of runs of |weight_a - weight_b|."""
        spread: FloatArray = pair_spread(self.weights(topic)) / self.divisor(topic)
        return spread

    def topic_difference(self, topic: ModelTopic, first: int, second: int) -> Difference:
        """Return the difference of two runs as the topic counts: E / R and Var / R^2."""
        one, divisor = self.difference(topic, first, second), self.divisor(topic)
        return Difference(one.expected / divisor, one.variance / divisor**2)


def _discounts(topic: ModelTopic) -> FloatArray:
    return discount(topic.ranks)


def _expected_gains(topic: ModelTopic) -> FloatArray:
    return np.asarray(discount(topic.ranks) @ topic.probability)


AVERAGE_PRECISION = Objective(
    "AP",
    scores=expected_sums,
    weights=precision_weights,
    difference=precision_difference,
    divisor=lambda topic: topic.n_relevant,
    sign=lambda topics, first, second: 0,  # R is known only when everything is judged
)
CUMULATED_GAIN = Objective(
    "DCG",
    scores=_expected_gains,
    weights=_discounts,
    difference=gain_difference,
    divisor=lambda topic: 1.0,
    sign=certain_sign,
)
OBJECTIVES = {one.key: one for one in (AVERAGE_PRECISION, CUMULATED_GAIN)}


def _objective(measure: str) -> Objective:
    if measure not in OBJECTIVES:
        raise ValueError(f"measure must be one of {sorted(OBJECTIVES)}, got {measure!r}")
    return OBJECTIVES[measure]


# ---- several topics -------------------------------------------------------------------------------------------


def total_difference(
    topics: Iterable[ModelTopic], first: int = 0, second: int = 1, measure: str = "AP"
) -> Difference:
    """Return the first run's score less the second's, added over topics, which are independent."""
    objective = _objective(measure)
    return _total(objective.topic_difference(topic, first, second) for topic in topics)


def _total(parts: Iterable[Difference]) -> Difference:
    pairs = [(part.expected, part.variance) for part in parts]
    return Difference(*np.sum(pairs, axis=0).tolist())


def neighbours(scores: FloatArray) -> list[tuple[int, int]]:
    """Return the pairs of runs next to each other by score, the better one first; equals stand in their own order."""
    return list(pairwise(np.argsort(-scores, kind="stable").tolist()))


# ---- judging --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MinimalCollection:
    """What was judged, and what the model then says.

    Attributes
    ----------
    topics
        With the judgments made.
    places
        Topic and document of every judgment, in their order.
    scores : (n_runs,) array
        Expected, the mean over topics.
    pairs, differences
        Runs that are neighbours by score, the better one first.
    has_signs
        Whether the rule stopped the judging. Otherwise nothing more was allowed, or there was nothing left.
    """

    topics: tuple[ModelTopic, ...]
    places: tuple[tuple[int, int], ...]
    scores: FloatArray
    pairs: tuple[tuple[int, int], ...]
    differences: tuple[Difference, ...]
    has_signs: bool


def collect(
    topics: Sequence[ModelTopic],
    labels: Sequence[ArrayLike],
    rule: StoppingRule | None,
    *,
    sequence: Iterable[tuple[int, int]] | None = None,
    limit: int | None = None,
    measure: str = "AP",
) -> MinimalCollection:
    """Judge with known labels until the rule stops it, or everything is judged.

    Parameters
    ----------
    labels
        (n_documents,) of every topic, 0 or 1.
    rule
        None never stops: `limit` judgments of every topic are made.
    sequence
        Topics and documents in the order in which they are judged; without it, next is what tells most.
    limit
        The most judgments of a topic.
    measure
        A key of OBJECTIVES.
    """
    state = _State(list(topics), _truth(topics, labels), _objective(measure), limit)
    places: list[tuple[int, int]] = []
    given = None if sequence is None else iter(sequence)
    while True:
        has_signs = rule is not None and state.has_signs(rule, len(places))
        place = None if has_signs else state.next_place() if given is None else next(given, None)
        if place is None:
            return state.result(places, has_signs)
        state.judge(place)
        places.append(place)


def _truth(topics: Sequence[ModelTopic], labels: Sequence[ArrayLike]) -> list[FloatArray]:
    truth = [np.asarray(one, dtype=np.float64) for one in labels]
    if not topics or len(truth) != len(topics):
        raise ValueError(f"labels must be of {len(topics)} topics, at least 1, got {len(truth)}")
    sizes = {topic.ranks.shape[0] for topic in topics}
    if len(sizes) > 1:
        raise ValueError(f"every topic must have the same runs, got {sorted(sizes)}")
    for topic, one in zip(topics, truth, strict=True):
        if one.shape != topic.probability.shape or not np.isin(one, (0, 1)).all():
            raise ValueError(f"labels must be {topic.probability.size} times 0 or 1, got {one.tolist()[:5]}")
    return truth


@dataclass(frozen=True)
class ModelLook:
    """What the model says of the topics as they are judged now.

    Attributes
    ----------
    n_judged
        Judged documents of all topics together.
    spread
        (n_documents,) of every topic: what a judgment of each document tells; the largest unjudged one comes next.
    scores : (n_runs,) array
        Expected, the mean over topics.
    pairs, differences
        Runs that are neighbours by score, the better one first; none before the rule's first look.
    has_signs
        Whether judging may stop by the rule.
    """

    n_judged: int
    spread: tuple[FloatArray, ...]
    scores: FloatArray
    pairs: tuple[tuple[int, int], ...]
    differences: tuple[Difference, ...]
    has_signs: bool


def look(
    topics: Sequence[ModelTopic],
    rule: StoppingRule,
    *,
    known: Sequence[dict[tuple[int, int], Difference]] = (),
    measure: str = "AP",
) -> ModelLook:
    """Return what the model says now: the scores, what to judge next, and after the first look every neighbour's sign.

    Judging is left to others: `collect` makes the same choices and looks with known labels. `known` holds differences
    of pairs of runs by topic, from an earlier look at the same judgments of the topic; new ones are added to it.
    """
    state = _State(list(topics), [], _objective(measure), None)
    if known:
        state.parts = list(known)
    n_judged = sum(int(topic.is_judged.sum()) for topic in topics)
    scores = state.mean_scores()
    if n_judged < rule.n_first:
        return ModelLook(n_judged, tuple(state.spread), scores, (), (), False)
    pairs = tuple(neighbours(scores))
    differences = tuple(state.difference(*pair) for pair in pairs)
    return ModelLook(
        n_judged, tuple(state.spread), scores, pairs, differences, state.has_signs(rule, n_judged)
    )


class _State:
    """The topics while they are judged. What a judgment of another topic leaves as it was is computed once."""

    def __init__(
        self, topics: list[ModelTopic], truth: list[FloatArray], objective: Objective, limit: int | None
    ) -> None:
        self.topics, self.truth, self.objective, self.limit = topics, truth, objective, limit
        self.spread = [objective.spread(topic) for topic in topics]
        self.parts: list[dict[tuple[int, int], Difference]] = [{} for _ in topics]
        self.scores = [objective.scores(topic) / objective.divisor(topic) for topic in topics]

    def judge(self, place: tuple[int, int]) -> None:
        index, document = place
        topic = self.topics[index].with_judgment(document, bool(self.truth[index][document]))
        self.topics[index], self.parts[index] = topic, {}
        self.spread[index] = self.objective.spread(topic)
        self.scores[index] = self.objective.scores(topic) / self.objective.divisor(topic)

    def next_place(self) -> tuple[int, int] | None:
        is_closed = [
            np.ones_like(topic.is_judged) if self.limit is not None and topic.is_judged.sum() >= self.limit
            else topic.is_judged
            for topic in self.topics
        ]  # fmt: skip
        return next_document(self.spread, is_closed)

    def mean_scores(self) -> FloatArray:
        return np.asarray(np.mean(self.scores, axis=0))

    def difference(self, first: int, second: int) -> Difference:
        for topic, parts in zip(self.topics, self.parts, strict=True):
            if (first, second) not in parts:
                parts[first, second] = self.objective.topic_difference(topic, first, second)
        return _total(parts[first, second] for parts in self.parts)

    def has_signs(self, rule: StoppingRule, n_judged: int) -> bool:
        return all(
            self.objective.sign(self.topics, *pair) != 0
            or (n_judged >= rule.n_first and rule.is_reached([self.difference(*pair)], n_judged))
            for pair in neighbours(self.mean_scores())
        )

    def result(self, places: list[tuple[int, int]], has_signs: bool) -> MinimalCollection:
        scores = self.mean_scores()
        pairs = tuple(neighbours(scores))
        differences = tuple(self.difference(*pair) for pair in pairs)
        return MinimalCollection(tuple(self.topics), tuple(places), scores, pairs, differences, has_signs)
