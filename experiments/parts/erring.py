"""What erring assessors do to a ranking of systems: the simulations behind `carterette_2010.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from experiments.papers.track_collection import TrackTopic, make_collection
from judging.erring_assessors import ErringAssessor, erring_assessor
from sampling.arrays import FloatArray, IndexArray
from sampling.rejudging import (
    Mask,
    label_influence,
    prevalence_by_prior,
    ranking_influence,
    wrong_probability,
)

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
FIXED = ("pattern", "disgruntled", "lazy")  # these behaviours draw nothing
RARE = 0.01  # an inclusion probability below which a relevant document stands for more than a hundred


@dataclass(frozen=True)
class ScoringTables:
    """What `sampled_average_precision` needs of every topic beside the labels, padded to the longest sample.

    Attributes
    ----------
    is_judged : (n_topics, n_documents) array of bool
        False where the sample is shorter.
    single_weight : (n_topics, n_documents) array
        1 / pi, 0 where the sample is shorter.
    order : (n_topics, n_systems, n_documents) array of int
        The documents by rank.
    inverse_rank : (n_topics, n_systems, n_documents) array
        In that order; 0 where the system does not return the document.
    """

    is_judged: Mask
    single_weight: FloatArray
    order: IndexArray
    inverse_rank: FloatArray

    @classmethod
    def of(cls, topics: Sequence[TrackTopic]) -> "ScoringTables":
        longest = max(topic.labels.size for topic in topics)
        n_systems = topics[0].sample.ranks.shape[0]
        ranks = np.full((len(topics), n_systems, longest), np.inf)
        single = np.zeros((len(topics), longest))
        for place, topic in enumerate(topics):
            size = topic.labels.size
            ranks[place, :, :size] = topic.sample.ranks
            single[place, :size] = 1.0 / topic.sample.inclusion_probability
        order = np.argsort(ranks, axis=2, kind="stable")
        return cls(single > 0, single, order, 1.0 / np.take_along_axis(ranks, order, axis=2))

    def scores(self, labels: Labels) -> FloatArray:
        """Return statMAP of every system by these labels: what `mean_scores` returns, ten times as fast."""
        weights = np.zeros(self.is_judged.shape)
        weights[self.is_judged] = np.concatenate(labels)
        weights *= self.single_weight
        ordered = np.take_along_axis(weights[:, np.newaxis, :], self.order, axis=2)
        above = np.cumsum(ordered, axis=2)
        above -= ordered
        numerators = np.einsum("tsd,tsd,tsd->ts", ordered, self.inverse_rank, above + 1.0)
        relevant = weights.sum(axis=1)
        scores: FloatArray = (numerators / np.where(relevant > 0, relevant, 1.0)[:, np.newaxis]).mean(axis=0)
        return scores


@dataclass(frozen=True)
class Track:
    """A collection with its scores by the true labels, which are the reference of every tau."""

    topics: list[TrackTopic]
    tables: ScoringTables
    truth: Labels
    true_scores: FloatArray

    @classmethod
    def of(cls, n_topics: int, seed: int) -> "Track":
        topics = make_collection(n_topics, seed)
        tables, truth = ScoringTables.of(topics), [topic.labels for topic in topics]
        return cls(topics, tables, truth, tables.scores(truth))

    def scores(self, labels: Labels) -> FloatArray:
        """Return statMAP of every system by these labels."""
        return self.tables.scores(labels)

    def tau(self, labels: Labels) -> float:
        """Return Kendall's tau between the ranking by these labels and that by the true ones."""
        return self.tau_of(self.scores(labels))

    def tau_of(self, scores: FloatArray) -> float:
        """Return Kendall's tau between the ranking by these scores and that by the true labels."""
        return float(kendalltau(self.true_scores, scores).statistic)

    def labels(self, assessor: ErringAssessor, rng: np.random.Generator) -> Labels:
        """Return what one assessor would give in every topic."""
        return [assessor.labels(truth, rng.random(truth.size)) for truth in self.truth]

    def chances(self) -> FloatArray:
        """Return the inclusion probabilities of all judged documents."""
        return np.concatenate([topic.sample.inclusion_probability for topic in self.topics])


@dataclass(frozen=True)
class Outcome:
    """What one behaviour does to a ranking, over trials.

    Attributes
    ----------
    taus : (n_trials,) array
    scores : (n_trials, n_systems) array
        statMAP.
    share_relevant : float
        Of the labels given.
    mean_chance : float
        Mean inclusion probability of the documents judged relevant; 0 if there are none.
    """

    taus: FloatArray
    scores: FloatArray
    share_relevant: float
    mean_chance: float


def outcome(track: Track, model: str, seed: int, n_trials: int) -> Outcome:
    """Return what an assessor spelled so does; one trial is enough for a behaviour without randomness."""
    assessor, rng = erring_assessor(model), np.random.default_rng(seed)
    n_trials = 1 if assessor.behaviour.key in FIXED else n_trials
    chances, scores, shares, means = track.chances(), [], [], []
    for _ in range(n_trials):
        labels = track.labels(assessor, rng)
        given = np.concatenate(labels) == 1
        scores.append(track.scores(labels))
        shares.append(given.mean())
        means.append(chances[given].mean() if given.any() else 0.0)
    taus = np.array([track.tau_of(one) for one in scores])
    return Outcome(taus, np.array(scores), float(np.mean(shares)), float(np.mean(means)))


def flipped(track: Track, truth: int, probability: float, rng: np.random.Generator) -> Labels:
    """Return the true labels with those of one kind reversed with a probability."""
    return [
        np.where((labels == truth) & (rng.random(labels.size) < probability), 1 - labels, labels)
        for labels in track.truth
    ]


def tau_grid(track: Track, behaviour: str, powers: Sequence[int]) -> FloatArray:
    """Return tau of optimists or pessimists by a and b, with the same uniform numbers in each cell (Figure 4).

    Returns
    -------
    (n_powers, n_powers) array
        [a, b]
    """
    return np.array(
        [
            [
                track.tau(track.labels(erring_assessor(f"{behaviour}:{a}:{b}"), np.random.default_rng(4)))
                for b in powers
            ]
            for a in powers
        ]
    )


def bad_topic_curves(
    track: Track, shares: Sequence[float], models: Sequence[str], rng: np.random.Generator, n_trials: int
) -> FloatArray:
    """Return tau with growing random sets of topics judged by an erring double (Figure 5).

    The double of each topic is drawn evenly from the models. The paper does not say how it mixed them.

    Returns
    -------
    (n_trials, n_shares) array
    """
    assessors = [erring_assessor(model) for model in models]
    curves = np.empty((n_trials, len(shares)))
    for trial in range(n_trials):
        order = rng.permutation(len(track.topics))
        doubles = [
            assessors[rng.integers(len(models))].labels(truth, rng.random(truth.size))
            for truth in track.truth
        ]
        for place, share in enumerate(shares):
            bad = set(order[: round(share * order.size)].tolist())
            labels = [doubles[one] if one in bad else truth for one, truth in enumerate(track.truth)]
            curves[trial, place] = track.tau(labels)
    return curves


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
