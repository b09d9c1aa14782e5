"""Random runs and samples for tests of nDCG and AP."""

import numpy as np
from audits import plain_labels

from sampling.measures.registry import parse_ratio

AP, NDCG = parse_ratio("AP"), parse_ratio("nDCG")

GAINS = [0, 1, 3]


def sampled(rng, n_topics, n_items, pi, n_runs=2, f=None, relevant=0.4):
    """Return (ranks, labels, label, weight of the judged items) of a Poisson sample of random binary topics."""
    topic = np.repeat(np.arange(n_topics), n_items)
    grade = (rng.random(topic.size) < relevant).astype(np.int64)
    ranks = np.stack(
        [np.concatenate([rng.permutation(n_items) + 1 for _ in range(n_topics)]) for _ in range(n_runs)]
    )
    judged = np.flatnonzero(rng.random(topic.size) < pi)
    labels = plain_labels(
        prediction=np.full(topic.size, relevant) if f is None else f,
        topic_index=topic,
        n_topics=n_topics,
        judged=judged,
        draw_probability=np.full(judged.size, pi),
        label=grade[judged],
    )
    return ranks, labels, grade
