"""Shares of items: the weights of all items, and of those of every topic, as targets of the estimators."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.targets import TargetWeights
from sampling.measures.sparse import SparseRuns


def share_weights(topic_index: ArrayLike, n_topics: int) -> TargetWeights:
    """Return 1/N of every item as the first target, then by topic 1 over the number of its items: a share's weights.

    A topic without items is a target without weights.

    Raises
    ------
    ValueError
        No items; a topic outside [0, n_topics).

    Examples
    --------
    >>> share_weights([0, 0, 1, 0], 2).at([0, 2]).round(3).tolist()
    [[0.25, 0.25], [0.333, 0.0], [0.0, 1.0]]
    """
    topic = np.asarray(topic_index, dtype=np.int64)
    if not topic.size or topic.min() < 0 or topic.max() >= n_topics:
        raise ValueError(f"topic_index must hold places of {n_topics} topics, got {topic.size} items")
    n_items, size = topic.size, np.bincount(topic, minlength=n_topics)
    # By item an entry of all items, then one of its topic's.
    target = np.stack([np.zeros(n_items, dtype=np.int64), 1 + topic], axis=1).ravel().astype(np.int32)
    value = np.stack([np.full(n_items, 1 / n_items), 1 / size[topic]], axis=1).ravel()
    item = np.repeat(np.arange(n_items, dtype=np.int32), 2)
    return TargetWeights(SparseRuns(n_topics + 1, n_items, target, item, value), paired=False)
