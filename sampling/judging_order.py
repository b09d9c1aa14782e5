"""The order of judging by what it tells: which open slots of a topic come first."""

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray, IndexArray

N_FIRST = 50  # of a topic, kept in order: as many as one assessor may hold


def leading(worth: ArrayLike, position: ArrayLike, n_first: int = N_FIRST) -> IndexArray:
    """Return which slots of a topic exchange their places, in the order that they are to have; none if they have it.

    The `n_first` slots that tell most, and those that lie where these belong.

    Parameters
    ----------
    worth : (n_slots,) array
        What a judgment tells; -inf for what comes last. Of equals the first comes first.
    position : (n_slots,) array
        Their places now.

    Examples
    --------
    >>> leading([0.1, 0.5, 0.2], [10, 20, 30], 1).tolist()
    [1, 0]
    >>> leading([0.1, 0.5, 0.2], [20, 10, 30], 1).tolist()
    []
    """
    told: FloatArray = np.asarray(worth, dtype=np.float64)
    places = np.asarray(position)
    if told.shape != places.shape or told.ndim != 1:
        raise ValueError(f"position must be of {told.size} slots, got shape {places.shape}")
    best = np.argsort(-told, kind="stable")
    by_place = np.argsort(places, kind="stable")
    if np.array_equal(best[:n_first], by_place[:n_first]):
        return np.zeros(0, dtype=np.int64)
    takes_part = np.zeros(told.size, dtype=bool)
    takes_part[best[:n_first]] = takes_part[by_place[:n_first]] = True
    return np.asarray(best[takes_part[best]])
