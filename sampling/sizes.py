"""How far the runs' weights lie apart, item by item: how much an item's utility influences the answer."""

import numpy as np

from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns


class IdenticalSystemsError(ValueError):
    """Every run weighs every item alike: each difference is exactly 0 and there is nothing to judge."""


class UnsupportedWeightError(ValueError):
    """An item that matters has probability 0: an estimate from such a sample would be biased."""


def distance_from(rows: SparseRuns, centre: FloatArray, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - centre)^2) per item, or its square; runs without an entry weigh 0."""
    deviation = np.abs(rows.value - centre[rows.item])
    n_absent = rows.n_runs - rows.counts()
    absent = np.where(n_absent > 0, centre, 0.0)
    # Dividing by the largest deviation first, squares neither overflow nor lose tiny weights.
    largest = np.maximum(rows.item_extremes(np.maximum, deviation), absent)
    scale = np.where(largest > 0.0, largest, 1.0)
    squares = rows.item_sums(np.square(deviation / scale[rows.item])) + n_absent * np.square(absent / scale)
    return np.asarray(
        np.square(largest) * squares if squared else largest * np.sqrt(squares), dtype=np.float64
    )


def distance_from_mean(rows: SparseRuns, *, squared: bool = False) -> FloatArray:
    """Return sqrt(sum over all runs of (w - mean w)^2) per item, or its square; exactly 0 where all runs weigh alike.

    The mean is taken first and the deviations from it after: a difference of two sums of squares would call
    runs different that are alike.
    """
    distance = distance_from(rows, rows.item_sums(rows.value) / rows.n_runs, squared=squared)
    # The mean of equal numbers may differ from them in the last bit; such a difference is not information.
    least, most = (rows.item_extremes(extreme, rows.value) for extreme in (np.minimum, np.maximum))
    distance[(most == 0.0) | ((least == most) & (rows.counts() == rows.n_runs))] = 0.0
    return distance
