"""What erring assessors do to a ranking of systems: the simulations behind `carterette_2010.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from experiments.papers.track_collection import TrackTopic, make_collection, mean_scores
from judging.erring_assessors import ErringAssessor, erring_assessor
from sampling.arrays import FloatArray, IndexArray
from sampling.rejudging import label_influence, prevalence_by_prior, ranking_influence, wrong_probability

Labels = list[IndexArray]
# The eight behaviours with the paper's parameters; fatigue with slower rates, as the printed ones read no document.
MODELS = (
    "random:1:8",
    "pattern:01",
    "optimist:1:16",
    "pessimist:16:1",
    "disgruntled:1:16",
    "lazy:1:16",
    "fatigued:.005:.015",
    "compensating:1:16",
)
UNINFORMED = ("random:1:8", "pattern:01")
RARE = 0.01  # an inclusion probability below which a relevant document stands for more than a hundred


@dataclass(frozen=True)
class Track:
    """A collection with its scores by the true labels, which are the reference of every tau."""

    topics: list[TrackTopic]
    scores: FloatArray

    @classmethod
    def of(cls, n_topics: int, seed: int) -> "Track":
        topics = make_collection(n_topics, seed)
        return cls(topics, mean_scores([topic.sample for topic in topics]))

    @property
    def truth(self) -> Labels:
        return [topic.labels for topic in self.topics]

    def tau(self, labels: Labels) -> float:
        """Return Kendall's tau between the ranking by these labels and that by the true ones."""
        samples = [topic.with_labels(given) for topic, given in zip(self.topics, labels, strict=True)]
        return float(kendalltau(self.scores, mean_scores(samples)).statistic)

    def labels(self, assessor: ErringAssessor, rng: np.random.Generator) -> Labels:
        """Return what one assessor would give in every topic."""
        return [assessor.labels(truth, rng.random(truth.size)) for truth in self.truth]

    def chances(self) -> FloatArray:
        """Return the inclusion probabilities of all judged documents."""
        return np.concatenate([topic.sample.inclusion_probability for topic in self.topics])


def mean_tau(track: Track, model: str, seed: int, trials: int) -> tuple[float, float, float]:
    """Return means over trials: tau, the share judged relevant, and the mean inclusion probability of these."""
    assessor, rng = erring_assessor(model), np.random.default_rng(seed)
    results = []
    for _ in range(trials):
        labels = track.labels(assessor, rng)
        given = np.concatenate(labels) == 1
        results.append(
            (track.tau(labels), given.mean(), track.chances()[given].mean() if given.any() else 0.0)
        )
    tau, share, chance = np.mean(results, axis=0)
    return float(tau), float(share), float(chance)


def flipped(track: Track, truth: int, probability: float, rng: np.random.Generator) -> Labels:
    """Return the true labels with those of one kind reversed with a probability."""
    return [
        np.where((labels == truth) & (rng.random(labels.size) < probability), 1 - labels, labels)
        for labels in track.truth
    ]


def bad_topics(
    track: Track, shares: Sequence[float], models: Sequence[str], rng: np.random.Generator
) -> list[float]:
    """Return tau with growing random sets of topics judged by an assessor drawn evenly from the models (Figure 5)."""
    order = rng.permutation(len(track.topics))
    doubles = [
        erring_assessor(models[rng.integers(len(models))]).labels(truth, rng.random(truth.size))
        for truth in track.truth
    ]
    taus = []
    for share in shares:
        bad = set(order[: round(share * order.size)].tolist())
        taus.append(
            track.tau([doubles[one] if one in bad else truth for one, truth in enumerate(track.truth)])
        )
    return taus


def linear_fit(x: Sequence[float], y: Sequence[float]) -> float:
    """Return R^2 of a straight line."""
    return float(np.corrcoef(x, y)[0, 1] ** 2)


# -- judging again ---------------------------------------------------------------------------------------------


def confirmed(track: Track, labels: Labels, assessor: ErringAssessor, rng: np.random.Generator) -> Labels:
    """Return the labels after a second vote of the same kind on rare relevant ones: relevant only if both say so.

    Source: Carterette and Soboroff (2010), section 4.1, inclusion probability below .01.
    """
    again = track.labels(assessor, rng)
    return [
        np.where(topic.sample.inclusion_probability < RARE, first * second, first)
        for topic, first, second in zip(track.topics, labels, again, strict=True)
    ]


Priority = Callable[[Track, Labels, np.random.Generator], FloatArray]


def random_relevant(track: Track, labels: Labels, rng: np.random.Generator) -> FloatArray:
    """Return random priorities of the documents judged relevant."""
    return np.concatenate([given * rng.uniform(0.5, 1.0, given.size) for given in labels])


def lowest_chance(track: Track, labels: Labels, rng: np.random.Generator) -> FloatArray:
    """Return priorities that rise as the inclusion probability of a document judged relevant falls."""
    return np.concatenate(labels) / track.chances()


def influence_times_error(track: Track, labels: Labels, rng: np.random.Generator) -> FloatArray:
    """Return the influence of each label on the ranking times the probability that it is wrong.

    The error rates are those of the labels here: the simulation of a campaign whose audit is large.
    """
    given, truth = np.concatenate(labels), np.concatenate(track.truth)
    false_alarm = float(given[truth == 0].mean())
    miss = float(1 - given[truth == 1].mean())
    prior = np.concatenate([topic.prior for topic in track.topics])
    prevalence = prevalence_by_prior(given, prior, false_alarm, miss)
    wrong = wrong_probability(given, false_alarm, miss, prevalence)
    influence = np.concatenate(
        [
            ranking_influence(label_influence(topic.with_labels(one)))
            for topic, one in zip(track.topics, labels, strict=True)
        ]
    )
    return influence * wrong


POLICIES: dict[str, Priority] = {
    "relevant ones at random": random_relevant,
    "relevant ones of the lowest inclusion probability": lowest_chance,
    "influence times error probability": influence_times_error,
}


def judged_again(track: Track, labels: Labels, priority: FloatArray, share: float) -> Labels:
    """Return the labels after the share of highest priority has been judged again, rightly."""
    truth = np.concatenate(track.truth)
    given = np.concatenate(labels).copy()
    chosen = np.argsort(-priority, kind="stable")[: round(share * given.size)]
    given[chosen] = truth[chosen]
    return np.split(given, np.cumsum([one.size for one in labels])[:-1])
