"""Collections in which the model of minimal test collections is true: how often is a sign wrong there?"""

import numpy as np

from sampling.arrays import FloatArray
from sampling.minimal import ModelTopic, StoppingRule
from sampling.minimal_collection import collect, total_difference

N_TOPICS, N_DOCUMENTS, LENGTH = 10, 30, 20
PREVALENCES = (0.2, 0.05)


def collection(seed: int, prevalence: float) -> tuple[list[ModelTopic], list[FloatArray]]:
    """Return the topics of two runs, and a truth in which each document is relevant with its own probability."""
    rng = np.random.default_rng(seed)
    topics, labels = [], []
    for _ in range(N_TOPICS):
        chances = rng.beta(1, 1 / prevalence - 1, N_DOCUMENTS)
        score = np.log(chances) + rng.standard_normal((2, N_DOCUMENTS))
        ranks = (-score).argsort(axis=1).argsort(axis=1) + 1.0
        ranks[ranks > LENGTH] = np.inf
        topics.append(ModelTopic.of(ranks, chances))
        labels.append((rng.random(N_DOCUMENTS) < chances).astype(np.float64))
    return topics, labels


def wrong_share(n_collections: int, prevalence: float, rule: StoppingRule) -> float:
    """Return the share of wrong signs among the collections in which the rule stopped the judging."""
    n_wrong = n_stopped = 0
    for seed in range(n_collections):
        topics, labels = collection(seed, prevalence)
        made = collect(topics, labels, rule)
        truth = [ModelTopic.of(topic.ranks, one) for topic, one in zip(topics, labels, strict=True)]
        product = total_difference(made.topics).expected * total_difference(truth).expected
        n_stopped, n_wrong = n_stopped + made.has_signs, n_wrong + (made.has_signs and product < 0)
    return n_wrong / max(1, n_stopped)
