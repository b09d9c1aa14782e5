"""Minimal test collections: the document whose judgment tells most about two or more runs, and when to stop.

A model: documents are relevant independently, with the probabilities given; judged ones with 1 or 0. The score of a
run is then a random number, and so is the difference of two. Its sign becomes clear by judging the documents on which
the difference depends most. The probability of the sign is the model's, looked at after every judgment: it is no level
of confidence. docs/methods/minimal-test-collections.md measures how often it is wrong.

Source: Carterette, Allan, Sitaraman: Minimal test collections for retrieval evaluation, SIGIR 2006; Carterette and
Allan: Research methodology in studies of assessor effort, 2007. The probabilities and the first look are ours: as
printed, with .5 for every document, the rule stops before anything is judged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import FloatArray, IndexArray, probabilities
from sampling.measures.dcg import discount

Mask = NDArray[np.bool_]
BLOCK_SIZE = 1 << 20  # pairs of documents that are in memory at once


@dataclass(frozen=True)
class ModelTopic:
    """One topic: where the runs rank its pool, and how probably each document is relevant.

    Attributes
    ----------
    ranks : (n_runs, n_documents) array
        From 1; infinite where a run does not return the document.
    order : (n_runs, n_documents) array
        The documents of each run from its first on; those that it does not return come last.
    probability : (n_documents,) array
        Of relevance: 1 or 0 once judged.
    is_judged : (n_documents,) array of bool
    """

    ranks: FloatArray
    order: IndexArray
    probability: FloatArray
    is_judged: Mask

    @classmethod
    def of(cls, ranks: ArrayLike, probability: ArrayLike) -> "ModelTopic":
        """Return the topic before any judgment.

        ValueError for fewer than two runs, ranks below 1 or twice in a run, probabilities out of [0, 1].
        """
        places = np.asarray(ranks, dtype=np.float64)
        if places.ndim != 2 or places.shape[0] < 2:
            raise ValueError(f"ranks must have 2 axes and at least 2 runs, got shape {places.shape}")
        refused = places[~(places >= 1)]
        if refused.size:
            raise ValueError(f"ranks must be at least 1, got {refused[0]}")
        order = np.argsort(places, axis=1, kind="stable")
        ascending = np.take_along_axis(places, order, axis=1)
        is_twice = (ascending[:, 1:] == ascending[:, :-1]) & np.isfinite(ascending[:, 1:])
        if is_twice.any():
            raise ValueError(f"a run must give a rank once, got {ascending[:, 1:][is_twice][0]:g} twice")
        chances = probabilities("probability", probability, places.shape[1])
        return cls(places, order, chances, np.zeros(places.shape[1], dtype=bool))

    def with_judgment(self, document: int, is_relevant: bool) -> "ModelTopic":
        """Return the topic after one more judgment; ValueError for a document out of the pool or judged already."""
        if not 0 <= document < self.is_judged.size:
            raise ValueError(f"document must be below {self.is_judged.size}, got {document}")
        if self.is_judged[document]:
            raise ValueError(f"document must not be judged yet, got {document}")
        probability, is_judged = self.probability.copy(), self.is_judged.copy()
        probability[document], is_judged[document] = float(is_relevant), True
        return replace(self, probability=probability, is_judged=is_judged)

    @property
    def n_relevant(self) -> float:
        """Return R, the expected number of relevant documents, by which the topic is divided: 1 in the place of 0."""
        return float(self.probability.sum()) or 1.0


@dataclass(frozen=True)
class Difference:
    """The first run's score less the second's, as a random number of the model."""

    expected: float
    variance: float

    @property
    def worse_probability(self) -> float:
        """Return the model's probability that the first run is worse: 0, 1 or, of equals, .5 without variance."""
        if self.variance > 0:
            return float(scipy.special.ndtr(-self.expected / np.sqrt(self.variance)))
        return 0.5 - 0.5 * float(np.sign(self.expected))

    @property
    def sign_probability(self) -> float:
        """Return the model's probability that the difference has the sign of its expectation."""
        return max(self.worse_probability, 1.0 - self.worse_probability)


# ---- average precision ----------------------------------------------------------------------------------------


def precision_weights(topic: ModelTopic) -> FloatArray:
    """Return g: by how much AP times R of each run grows, as expected, if a document is relevant and not irrelevant.

    g(i) = (1 + sum of p above i) / rank(i) + sum over j below i of p(j) / rank(j), 0 where the run does not return i.

    Returns
    -------
    (n_runs, n_documents) array
    """
    ranks = np.take_along_axis(topic.ranks, topic.order, axis=1)
    chances = topic.probability[topic.order]
    above = np.cumsum(chances, axis=1) - chances
    rates = chances / ranks
    below = np.cumsum(rates[:, ::-1], axis=1)[:, ::-1] - rates
    weights = np.empty(ranks.shape)
    values = np.where(np.isfinite(ranks), (1.0 + above) / ranks + below, 0.0)
    np.put_along_axis(weights, topic.order, values, axis=1)
    return weights


def expected_sums(topic: ModelTopic) -> FloatArray:
    """Return the expectation of AP times R of every run: sum of p(i) (1 + sum of p above i) / rank(i).

    Returns
    -------
    (n_runs,) array
    """
    ranks = np.take_along_axis(topic.ranks, topic.order, axis=1)
    chances = topic.probability[topic.order]
    above = np.cumsum(chances, axis=1) - chances
    return np.asarray((chances * (1.0 + above) / ranks).sum(axis=1))


def precision_difference(topic: ModelTopic, first: int = 0, second: int = 1) -> Difference:
    """Return AP times R of one run less that of another; exact, from all pairs of documents.

    With c(i, j) = 1 / max of the first run's ranks - 1 / max of the second's, L = g_first - g_second, v = p (1 - p):
    E = sum c(i, i) p(i) + sum over i < j of c(i, j) p(i) p(j); Var = sum L^2 v + sum over i < j of c^2 v(i) v(j).
    Time grows with the square of the number of unjudged documents that either run returns.
    """
    pair = _pair(topic, first, second)
    sums = expected_sums(pair)
    weights = precision_weights(pair)
    spread = pair.probability * (1.0 - pair.probability)
    single = float(((weights[0] - weights[1]) ** 2 * spread).sum())
    is_open = (spread > 0) & np.isfinite(pair.ranks).any(axis=0)
    return Difference(
        float(sums[0] - sums[1]), single + _pair_variance(pair.ranks[:, is_open], spread[is_open])
    )


def _pair(topic: ModelTopic, first: int, second: int) -> ModelTopic:
    rows = np.array([first, second])
    return replace(topic, ranks=topic.ranks[rows], order=topic.order[rows])


def _pair_variance(ranks: FloatArray, spread: FloatArray) -> float:
    """Return the sum over i < j of c(i, j)^2 v(i) v(j), in blocks of rows."""
    total, n = 0.0, spread.size
    height = max(1, BLOCK_SIZE // max(1, n))
    for start in range(0, n, height):
        rows = slice(start, start + height)
        lower = np.maximum(ranks[:, rows, np.newaxis], ranks[:, np.newaxis, :])
        squares = (1.0 / lower[0] - 1.0 / lower[1]) ** 2
        squares[np.arange(squares.shape[0]), np.arange(start, start + squares.shape[0])] = 0.0
        total += float(np.einsum("i,ij,j->", spread[rows], squares, spread))  # no threads for so little
    return total / 2.0


# ---- which document next ---------------------------------------------------------------------------------------


def pair_spread(values: FloatArray) -> FloatArray:
    """Return for every document the sum over pairs of runs of |value_a - value_b|; with two runs, |L|.

    By sorting: sum over k = 0, ..., S - 1 of (2k - S + 1) value_(k).

    Parameters
    ----------
    values : (n_runs, n_documents) array
    """
    n_runs = values.shape[0]
    factors = 2.0 * np.arange(n_runs) - n_runs + 1.0
    spread: FloatArray = factors @ np.sort(values, axis=0)
    return spread


def next_document(spread: Sequence[FloatArray], is_judged: Sequence[Mask]) -> tuple[int, int] | None:
    """Return topic and document of the largest spread among the unjudged, or None if all are judged.

    Of equals the first topic's first document.
    """
    best, place = -np.inf, None
    for topic_index, (values, mask) in enumerate(zip(spread, is_judged, strict=True)):
        if mask.all():
            continue
        left = np.where(mask, -np.inf, values)
        document = int(np.argmax(left))
        if left[document] > best:
            best, place = float(left[document]), (topic_index, document)
    return place


# ---- discounted cumulated gain -----------------------------------------------------------------------------------


def discount_contrast(topic: ModelTopic, first: int = 0, second: int = 1) -> FloatArray:
    """Return c = discount in the first run - discount in the second, of every document; 0 where not returned."""
    return discount(topic.ranks[first]) - discount(topic.ranks[second])


def gain_difference(topic: ModelTopic, first: int = 0, second: int = 1) -> Difference:
    """Return DCG of one run less that of another: E = sum c p, Var = sum c^2 p (1 - p). Topics add up undivided."""
    contrast, chances = discount_contrast(topic, first, second), topic.probability
    return Difference(
        float((contrast * chances).sum()), float((contrast**2 * chances * (1.0 - chances)).sum())
    )


def certain_sign(topics: Iterable[ModelTopic], first: int = 0, second: int = 1) -> int:
    """Return 1 or -1 if the first run's DCG is higher, or lower, whatever the unjudged documents are; otherwise 0.

    No probability is used. All that speaks for the other side is added to what the judged documents give.
    """
    lowest = highest = 0.0
    for topic in topics:
        contrast = discount_contrast(topic, first, second)
        given = float((contrast * topic.probability)[topic.is_judged].sum())
        left = contrast[~topic.is_judged]
        lowest += given + float(left[left < 0].sum())
        highest += given + float(left[left > 0].sum())
    return int(lowest > 0) - int(highest < 0)


# ---- the rule of the product --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoppingRule:
    """When judging may stop: every sign has this probability in the model, and so much is judged.

    Attributes
    ----------
    level : float
        The least probability of every sign.
    n_first : int
        Judgments, of all topics together, before the first look.
    prevalence : float
        The share of relevant documents that is expected in a topic's pool; probabilities are shifted to it.
    """

    level: float = 0.95
    n_first: int = 30
    prevalence: float = 0.05

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise ValueError(f"level must be within (0.5, 1), got {self.level}")
        if self.n_first < 0:
            raise ValueError(f"n_first must be at least 0, got {self.n_first}")
        if not 0 < self.prevalence < 1:
            raise ValueError(f"prevalence must be within (0, 1), got {self.prevalence}")

    def is_reached(self, differences: Iterable[Difference], n_judged: int) -> bool:
        """Return whether judging may stop: enough is judged, and every difference has a sign."""
        return n_judged >= self.n_first and all(one.sign_probability >= self.level for one in differences)


def shift_to_prevalence(probability: ArrayLike, prevalence: float) -> FloatArray:
    """Return probabilities whose mean is the prevalence: a constant is added to the log odds of each.

    The order is kept. Probabilities of 0 and 1 are certain and stay. For the pool of one topic before anything is
    judged: the share relevant among judged documents is no prevalence, because they were chosen as the likely ones.

    Raises ValueError where no shift gives the mean: all are certain, or too many.

    >>> shift_to_prevalence([0.5, 0.5, 0.5], 0.05).round(3).tolist()
    [0.05, 0.05, 0.05]
    """
    chances = probabilities("probability", probability)
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence must be within (0, 1), got {prevalence}")
    is_free = (chances > 0) & (chances < 1)
    n_free = int(is_free.sum())
    wanted = (prevalence * chances.size - float((chances == 1).sum())) / max(1, n_free)
    if not 0 < wanted < 1 or not n_free:
        raise ValueError(f"no shift gives a mean of {prevalence:g}: {chances.size - n_free} are 0 or 1")
    odds = scipy.special.logit(chances[is_free])
    middle = float(scipy.special.logit(wanted))
    # the shift of the largest makes the mean too small, or just right if all are equal; that of the smallest too large
    bounds = (middle - float(odds.max()) - 1.0, middle - float(odds.min()) + 1.0)
    shift = scipy.optimize.brentq(
        lambda step: float(scipy.special.expit(odds + step).mean()) - wanted, *bounds, xtol=1e-13
    )
    result = chances.copy()
    result[is_free] = scipy.special.expit(odds + shift)
    return result
