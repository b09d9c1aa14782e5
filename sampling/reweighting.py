"""Weights of runs from a few judgments: those that prefer what is relevant gain, the others lose.

Source: Carterette and Allan (2007), section 6, after Arora, Hazan and Kale. One weight a run over all topics: with the
few pairs of one topic no weight of its own could fall as far as theirs did. The weights grow without bound; only the
ranking that comes of them means something.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray
from sampling.experts import Consensus, Preferences, RankedPool, consensus, topic_prior

STEP = 0.1
TIE = 1e-9  # probabilities this near are equal: the first document counts

Judge = Callable[[int, int], bool | None]


@dataclass(frozen=True)
class Reweighting:
    """What came of the rounds.

    Attributes
    ----------
    weights : (n_runs,) array
    consensuses : one a topic, with these weights
    judged : one a topic, whether each judged document is relevant, by its place in the pool
    lacking : topic and place of every document that a round asked for and nobody has judged; () if all rounds were made
    """

    weights: FloatArray
    consensuses: tuple[Consensus, ...]
    judged: tuple[dict[int, bool], ...]
    lacking: tuple[tuple[int, int], ...] = ()


def round_count(n_runs: int) -> int:
    """Return how many documents of each topic are judged: floor(ln runs).

    >>> [round_count(n) for n in (10, 33, 61, 129)]
    [2, 3, 4, 4]
    """
    if n_runs < 1:
        raise ValueError(f"n_runs must be at least 1, got {n_runs}")
    return math.floor(math.log(n_runs))


def preference_factors(relevant_rank: ArrayLike, other_rank: ArrayLike, step: float = STEP) -> FloatArray:
    """Return the factor of each run's weight for one pair: 1 + step if it ranks the relevant document above the other,
    1 - step if below, 1 if it returns neither.

    >>> preference_factors([1, 2, np.inf, np.inf], [2, 1, 1, np.inf]).tolist()
    [1.1, 0.9, 0.9, 1.0]
    """
    if not 0 < step <= 0.5:
        raise ValueError(f"step must be within (0, .5], got {step}")
    relevant, other = np.asarray(relevant_rank, dtype=np.float64), np.asarray(other_rank, dtype=np.float64)
    factors: FloatArray = np.where(relevant < other, 1.0 + step, np.where(relevant > other, 1.0 - step, 1.0))
    return factors


def reweighting(
    pools: Sequence[RankedPool], judge: Judge, *, n_rounds: int | None = None, step: float = STEP
) -> Reweighting:
    """Return the weights after the rounds, and the consensus with them.

    Every round fits the consensus, has the unjudged document of highest probability judged in every topic (of equal
    ones the first), and multiplies the weights by `preference_factors` for every new pair of a relevant document and
    another of one topic. A round of which a document has no judgment is not made, nor are those after it: what they
    would ask for depends on its answers.

    Parameters
    ----------
    judge
        From the topic's place and the document's place in its pool whether it is relevant; None where nobody knows.
    n_rounds
        floor(ln runs) for None.
    """
    if not pools:
        raise ValueError("pools must be of at least 1 topic, got 0")
    rounds = round_count(pools[0].n_runs) if n_rounds is None else n_rounds
    weights = np.ones(pools[0].n_runs)
    judged: tuple[dict[int, bool], ...] = tuple({} for _ in pools)
    lacking: tuple[tuple[int, int], ...] = ()
    for _ in range(rounds):
        chosen = _choices(pools, weights, judged)
        answers = [(topic, document, judge(topic, document)) for topic, document in chosen]
        lacking = tuple((topic, document) for topic, document, answer in answers if answer is None)
        if lacking:
            break
        factors = np.ones(weights.size)
        for topic, document, answer in answers:
            factors *= _factors(pools[topic], judged[topic], document, bool(answer), step)
            judged[topic][document] = bool(answer)
        weights = weights * factors
    fits = tuple(_fit(pool, weights, labels) for pool, labels in zip(pools, judged, strict=True))
    return Reweighting(weights, fits, judged, lacking)


def _choices(
    pools: Sequence[RankedPool], weights: FloatArray, judged: Sequence[dict[int, bool]]
) -> list[tuple[int, int]]:
    """Return topic and place of the unjudged document of highest probability in every topic that has one."""
    likeliest = [
        _likeliest(_fit(pool, weights, labels), labels) for pool, labels in zip(pools, judged, strict=True)
    ]
    return [(topic, document) for topic, document in enumerate(likeliest) if document is not None]


def _factors(
    pool: RankedPool, labels: dict[int, bool], document: int, is_relevant: bool, step: float
) -> FloatArray:
    """Return the factors of all new pairs that one more judgment makes in its topic."""
    factors = np.ones(pool.n_runs)
    for other, label in labels.items():
        if label != is_relevant:
            pair = (document, other) if is_relevant else (other, document)
            factors *= preference_factors(pool.ranks[:, pair[0]], pool.ranks[:, pair[1]], step)
    return factors


def with_judgments(probability: FloatArray, labels: dict[int, bool]) -> FloatArray:
    """Return the probabilities with 1 and 0 of the judged documents."""
    known = probability.copy()
    known[list(labels)] = [float(label) for label in labels.values()]
    return known


def _fit(pool: RankedPool, weights: FloatArray, labels: dict[int, bool]) -> Consensus:
    a, b = topic_prior(sum(labels.values()), len(labels))
    return consensus(Preferences.of(pool, weights, a=a, b=b))


def _likeliest(found: Consensus, labels: dict[int, bool]) -> int | None:
    """Return the place of the unjudged document of highest probability; None where all are judged."""
    p = found.probability
    p[list(labels)] = -1.0
    return int(np.flatnonzero(p >= p.max() - TIE)[0]) if p.max() >= 0 else None
