"""The share of a run's weight that no draw can reach."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats
from analytics.estimation.targets import weight_rows


def unsupported_share(frame_weights: ArrayLike, inclusion_probability: ArrayLike) -> Floats:
    """Return per target the share of ``sum |w|`` on frame items that the design can never select.

    Anything above 0 is a bias no interval shows (docs/methods/derivations/sampling.md, section 1.3): refuse it.

    >>> unsupported_share([[1, -1, 2]], [.5, .5, 0]).tolist()
    [0.5]
    """
    weights = np.abs(weight_rows(frame_weights))
    probability = finite("inclusion_probability", inclusion_probability, (weights.shape[1],))
    total = weights.sum(axis=1)
    outside = weights[:, probability <= 0].sum(axis=1)
    share: Floats = np.divide(outside, total, out=np.zeros_like(total), where=total > 0)
    return share
