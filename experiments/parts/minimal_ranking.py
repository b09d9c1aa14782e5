"""All runs of a folder together: how near their ranking by expected AP is to the true one, by judgments of a topic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from experiments.parts.minimal_pairs import Folder, pool, priors, rank_table
from sampling.arrays import FloatArray
from sampling.minimal import ModelTopic, expected_sums, shift_to_prevalence
from sampling.minimal_collection import collect

ORDERS = (
    "what tells most",
    "most probable first",
    "random order",
    "what tells most, p = .05",
    "random order, p = .05",
)


@dataclass(frozen=True)
class RankingTopic:
    """The pool of all runs before any judgment, and its truth."""

    model: ModelTopic
    labels: FloatArray


def ranking_topics(folder: Folder, prevalence: float) -> list[RankingTopic]:
    """Return the topics of the qrels that have a pool of the runs in pairs, with the product's prior."""
    consensus = priors([*folder.runs.values(), *folder.others.values()], folder.relevant)
    topics = []
    for topic, relevant in folder.relevant.items():
        lists = [run.get(topic, []) for run in folder.runs.values()]
        documents = pool(lists)
        if documents:
            chances = [consensus[topic][document] for document in documents]
            model = ModelTopic.of(rank_table(lists, documents), shift_to_prevalence(chances, prevalence))
            topics.append(
                RankingTopic(model, np.array([float(document in relevant) for document in documents]))
            )
    return topics


def with_equal(topics: Sequence[RankingTopic], probability: float) -> list[RankingTopic]:
    """Return the topics with one probability for all documents."""
    sizes = [topic.labels.size for topic in topics]
    models = [
        ModelTopic.of(one.model.ranks, np.full(n, probability)) for one, n in zip(topics, sizes, strict=True)
    ]
    return [RankingTopic(model, one.labels) for model, one in zip(models, topics, strict=True)]


def tau_table(
    topics: Sequence[RankingTopic], depths: Sequence[int], seed: int, n_orders: int = 10
) -> dict[str, list[float]]:
    """Return for each order Kendall's tau with the true ranking, after so many judgments of each topic.

    Of random order it is the mean of `n_orders`.
    """
    truth = scores([ModelTopic.of(topic.model.ranks, topic.labels) for topic in topics])
    equal = with_equal(topics, 0.05)
    probable = [np.argsort(-topic.model.probability, kind="stable") for topic in topics]
    taus: dict[str, list[float]] = {order: [] for order in ORDERS}
    for depth in depths:
        rng = np.random.default_rng(seed)
        random = [[rng.permutation(topic.labels.size) for topic in topics] for _ in range(n_orders)]
        values = (
            tau(telling_scores(topics, depth), truth),
            tau(scores(judged(topics, probable, depth)), truth),
            float(np.mean([tau(scores(judged(topics, one, depth)), truth) for one in random])),
            tau(telling_scores(equal, depth), truth),
            float(np.mean([tau(scores(judged(equal, one, depth)), truth) for one in random])),
        )
        for order, value in zip(ORDERS, values, strict=True):
            taus[order].append(value)
    return taus


def telling_scores(topics: Sequence[RankingTopic], depth: int) -> FloatArray:
    """Return the expected MAP of every run after `depth` judgments of each topic, each of what tells most."""
    return collect(
        [topic.model for topic in topics], [topic.labels for topic in topics], None, limit=depth
    ).scores


def judged(topics: Sequence[RankingTopic], orders: Sequence[np.ndarray], depth: int) -> list[ModelTopic]:
    """Return the topics with the first documents of each order judged."""
    models = []
    for topic, order in zip(topics, orders, strict=True):
        model = topic.model
        for document in order[:depth].tolist():
            model = model.with_judgment(document, bool(topic.labels[document]))
        models.append(model)
    return models


def scores(models: Sequence[ModelTopic]) -> FloatArray:
    """Return the expected MAP of every run."""
    return np.asarray(np.mean([expected_sums(model) / model.n_relevant for model in models], axis=0))


def tau(first: FloatArray, second: FloatArray) -> float:
    """Return Kendall's tau-b; 0 where all scores are equal, which orders nothing."""
    value = float(kendalltau(first, second).statistic)
    return 0.0 if np.isnan(value) else value
