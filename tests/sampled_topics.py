"""Judged topics whose runs differ in quality: for simulations of a ranking."""

import numpy as np

from sampling.rejudging import SampledTopic

N_RUNS, N_DOCUMENTS = 8, 40


def make_topics(n=40, seed=5):
    """Return topics in which the first run ranks best and the last worst, all documents judged."""
    rng = np.random.default_rng(seed)
    topics = []
    for _ in range(n):
        labels = (rng.random(N_DOCUMENTS) < 0.3).astype(int)
        noise = np.linspace(0.5, 2.0, N_RUNS)[:, None] * rng.standard_normal((N_RUNS, N_DOCUMENTS))
        ranks = 1 + np.argsort(np.argsort(-(labels + noise), axis=1), axis=1)
        topics.append(SampledTopic.of(ranks, labels, np.ones(N_DOCUMENTS)))
    return topics
