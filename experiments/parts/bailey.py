"""A synthetic pool with bronze labels for Bailey et al.'s Table 3, whose own judgments and runs are not public."""

from dataclasses import dataclass

import numpy as np

from analytics.agreement.rankings import TopicScores, rank_agreement, scores_by_topic
from analytics.estimation.estimate import Refusal
from experiments.papers.label_samples import nested_sample, whole_counts
from sampling.label_samples import label_counts, label_shares
from sampling.measures.families import FloatArray

TOPICS, RUNS, GRADES = 33, 15, 3
POOLED = 22_500  # documents of all topics' pools: the paper's number
BRONZE = (
    0.711,
    0.134,
    0.155,
)  # not, possibly, highly: at most so much (docs/methods/derivations/bailey.md, section 3, erratum 11)
EFFORT_RATES = (0.03, 0.28, 0.42)  # the paper's rates of the labels' pools
TOPIC_SHARE = (
    0.1  # of a topic's pool: the size of the example in its Table 2; "full" then has about the 91 documents
)


@dataclass(frozen=True)
class Pools:
    """Documents of all pools: topic, bronze grade, and each run's rank (0 = not returned)."""

    topic: np.ndarray
    grade: np.ndarray
    ranks: np.ndarray

    @property
    def cell(self) -> np.ndarray:
        """The stratum: topic and bronze label."""
        return np.asarray(self.topic * GRADES + self.grade)

    @property
    def available(self) -> np.ndarray:
        """Documents by topic and bronze label."""
        return np.bincount(self.cell, minlength=TOPICS * GRADES).reshape(TOPICS, GRADES)


def draw_pools(rng: np.random.Generator) -> Pools:
    """Return pools whose sizes, label shares and number of runs are the paper's; the runs' quality is invented.

    A run orders a topic's pool by quality * grade + how findable the document is for all + its own noise, and
    returns the better half. Topics differ in size and in how much of them is relevant.
    """
    sizes = rng.lognormal(0, 0.3, TOPICS)
    topic = np.repeat(np.arange(TOPICS), whole_counts(sizes / sizes.sum() * POOLED))
    shares = np.array(BRONZE) * rng.gamma(3.0, 1 / 3.0, (TOPICS, GRADES))
    shares[:, 0] = BRONZE[0]
    shares /= shares.sum(axis=1, keepdims=True)
    grade = (rng.random(topic.size)[:, None] > np.cumsum(shares, axis=1)[topic]).sum(axis=1)
    quality = np.linspace(0.2, 1.4, RUNS)[:, None] + rng.normal(0, 0.3, (RUNS, TOPICS))
    score = quality[:, topic] * grade + rng.normal(0, 1, topic.size) + rng.normal(0, 0.8, (RUNS, topic.size))
    ranks = np.zeros((RUNS, topic.size), dtype=np.int64)
    for t in range(TOPICS):
        here = np.flatnonzero(topic == t)
        order = np.argsort(-score[:, here], axis=1)
        place = np.argsort(order, axis=1) + 1
        ranks[:, here] = np.where(place <= here.size // 2, place, 0)
    return Pools(topic, grade, ranks)


def sample_counts(pools: Pools, numbers: FloatArray) -> dict[str, np.ndarray]:
    """Return how many documents of each topic and label the paper's three samples take, one random number a document.

    topic: exact counts by topic. effort: so many of each label, whatever the topic. full: cell by cell the larger;
    with shared numbers that is the union of the two.
    """
    available = pools.available
    sizes = np.rint(TOPIC_SHARE * available.sum(axis=1))
    of_label = np.rint(available.sum(axis=0) * EFFORT_RATES).astype(np.int64)
    topic = whole_counts(label_counts(available, sizes, label_shares(GRADES)))
    chosen = pools.cell[nested_sample(numbers, pools.grade, of_label)]
    effort = np.bincount(chosen, minlength=topic.size).reshape(topic.shape)
    return {"topic": topic, "effort": effort, "full": np.maximum(topic, effort)}


def scores(pools: Pools, measure: str, grade: np.ndarray, form: str) -> TopicScores:
    """Return every run's score of every topic."""
    return scores_by_topic(measure, pools.topic, pools.ranks, grade, pools.grade, TOPICS, form=form)  # type: ignore[arg-type]


def sampled_grades(pools: Pools, counts: np.ndarray, numbers: FloatArray) -> np.ndarray:
    """Return the grades with -1 for documents outside the sample."""
    chosen = nested_sample(numbers, pools.cell, counts.ravel())
    grade = np.full(pools.grade.size, -1)
    grade[chosen] = pools.grade[chosen]
    return grade


@dataclass(frozen=True)
class Agreement:
    """Of one sample's scores with those of the whole pool: Kendall's tau and root mean squared error.

    By topic over all scores of runs and topics, and for the runs' means over topics. `bias` is the mean of their
    difference, `outside` counts scores above 1, `refused` topics without a score.
    """

    tau_by_topic: float
    error_by_topic: float
    tau_of_means: float
    error_of_means: float
    bias: float
    outside: int
    refused: int


def agreement(full: TopicScores, inferred: TopicScores) -> Agreement:
    """Return how the inferred scores agree with those of all judgments, over the topics that have both."""
    _, first, second = np.intersect1d(full.topics, inferred.topics, return_indices=True)
    a, b = full.values[:, first], inferred.values[:, second]
    by_topic, of_means = rank_agreement(a.ravel(), b.ravel()), rank_agreement(a.mean(axis=1), b.mean(axis=1))
    if isinstance(by_topic, Refusal) or isinstance(of_means, Refusal):
        raise ValueError("the synthetic pools must have scores to compare")
    return Agreement(
        tau_by_topic=by_topic.tau,
        error_by_topic=float(np.sqrt(np.square(a - b).mean())),
        tau_of_means=of_means.tau,
        error_of_means=float(np.sqrt(np.square(a.mean(axis=1) - b.mean(axis=1)).mean())),
        bias=float((b - a).mean()),
        outside=int(np.count_nonzero(b > 1)),
        refused=full.topics.size - first.size,
    )


def gold_agreement(
    pools: Pools, gold_given_bronze: FloatArray, measure: str, form: str, seed: list[int]
) -> Agreement:
    """Return how scores from a full sample's gold grades agree with those of gold grades everywhere.

    Gold grades are drawn given the bronze label; which run returns a document plays no part, as in the paper's table.
    """
    rng = np.random.default_rng(seed)
    below = np.cumsum(gold_given_bronze, axis=1)[pools.grade, :-1]
    gold = (rng.random(pools.grade.size)[:, None] > below).sum(axis=1)
    numbers = rng.random(pools.grade.size)
    chosen = sampled_grades(pools, sample_counts(pools, numbers)["full"], numbers) >= 0
    truth = scores(pools, measure, gold, "ht")
    return agreement(truth, scores(pools, measure, np.where(chosen, gold, -1), form))
