"""Gains as staircases: a graded label as several labels of 0 and 1.

``u = sum_j step_j 1[u >= level_j]``, one 0/1 label a stair; a binary label is the staircase of one stair. The ideal
ranking of a topic has stair j on as many first ranks as items reach level j, so it is known when these numbers are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats
from analytics.estimation.samples import Labels
from sampling.measures.kinds import topic_sums


@dataclass(frozen=True)
class Stairs:
    """The gain of a grade as a staircase: gain = sum of `steps` where the gain is at least `levels`."""

    levels: Floats
    steps: Floats


def stairs(gains: ArrayLike) -> Stairs:
    """Return the distinct positive gains, ascending, and the step up to each from the one below.

    >>> stairs([0, 0, 1, 3]).steps.tolist()
    [1.0, 2.0]
    """
    scale = finite("gains", gains)
    if scale.ndim != 1 or scale.size < 2 or (scale < 0).any() or not (scale > 0).any():
        raise ValueError(
            f"gains must be at least 2, none negative and one above 0, got {np.asarray(gains).tolist()}"
        )
    levels = np.unique(scale[scale > 0])
    return Stairs(levels, np.diff(levels, prepend=0.0))


def on_stairs(gains: ArrayLike, grades: ArrayLike) -> Floats:
    """Return [stair, label]: 1 where the label's gain reaches the stair, else 0.

    >>> on_stairs([0, 1, 3], [2, 0, 1]).tolist()
    [[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    scale = np.asarray(gains, dtype=np.float64)
    levels = stairs(scale).levels
    grade = integers("grades", grades, 0, scale.size - 1)
    return np.asarray(scale[grade][None, :] >= levels[:, None], dtype=np.float64)


def stair_gains(gains: ArrayLike) -> Floats:
    """Return [stair, grade]: 1 where the grade's gain reaches the stair, else 0.

    >>> stair_gains([0, 1, 3]).tolist()
    [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    return on_stairs(gains, np.arange(np.size(gains)))


def mean_on_stairs(gains: ArrayLike, labels: Labels) -> Floats:
    """Return [stair, item]: the share of the item's labels that reach the stair. Every item needs a label.

    >>> labels = Labels([0, 0, 1], [0, 1, 0], [2, 1, 0], n_items=2, n_assessors=2, n_grades=3)
    >>> mean_on_stairs([0, 1, 3], labels).tolist()
    [[1.0, 0.0], [0.5, 0.0]]
    """
    return topic_sums(labels.item, on_stairs(gains, labels.grade), labels.n_items) / labels.counts
