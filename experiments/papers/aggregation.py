"""How good an aggregated label is: its confusion matrix against gold."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.aggregation.fits import Aggregation
from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats


def aggregate_confusion(
    aggregation: Aggregation,
    gold_item: ArrayLike,
    gold_grade: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    soft: bool = False,
) -> Floats:
    """Return counts[true, given] of the aggregated label against gold, for `analytics.estimation.confusion`.

    Hard (the default): each item counts for its most probable grade, a tied one in equal parts for those that tie.
    Soft: by its posterior. `weight` is 1/pi for gold drawn with unequal probabilities. Items that were clamped to
    their gold while fitting compare gold with itself: leave them out.
    """
    n_items, n_grades = aggregation.posterior.shape
    item = integers("gold_item", gold_item, 0, n_items - 1)
    grade = integers("gold_grade", gold_grade, 0, n_grades - 1)
    if item.size != grade.size:
        raise ValueError(f"gold_item and gold_grade must be equally long, got {item.size} and {grade.size}")
    each = np.ones(item.size) if weight is None else finite("weight", weight, item.shape)
    if (each < 0).any():
        raise ValueError(f"weight must be >= 0, got {each.min()}")

    given = aggregation.posterior[item] if soft else aggregation.decisions(item)
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, grade, given * each[:, None])
    return counts
