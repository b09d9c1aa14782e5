"""Labels by rank, and their table, for Goldberg's correction with more grades (`analytics.papers.graded`)."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats
from analytics.papers.graded import SystemLabels, system_labels


def ranked_labels(grade: ArrayLike, discounts: ArrayLike) -> SystemLabels:
    """Return the labels of ``grade[topic, rank]``, one label each, weighted by rank (Eq 18: 1/log2(rank + 1)).

    P@k has the discounts 1/k. One matrix serves all (assessor 0).
    """
    table = np.asarray(grade)
    d = finite("discounts", discounts)
    if table.ndim != 2 or d.shape != (table.shape[1],):
        raise ValueError(
            f"grade must be [topic, rank] with one discount a rank, got {table.shape} and {d.shape}"
        )
    topic, rank = np.indices(table.shape)
    flat = table.ravel()
    return system_labels(
        topic.ravel(), np.zeros(flat.size, dtype=np.int64), flat, d[rank.ravel()], table.shape[0]
    )


def label_table(labels: SystemLabels, n_assessors: int, n_labels: int) -> Floats:
    """Return the weights summed to ``[topic, assessor, label]``; subtract two systems' tables for a difference."""
    table = np.zeros((labels.n_topics, n_assessors, n_labels))
    np.add.at(table, (labels.topic, labels.assessor, labels.grade), labels.weight)
    return table
