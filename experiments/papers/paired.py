"""The paired one-sided t-test of Carterette and Allan (2007), section 7.2."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

ROUNDING = 1e-12


def one_sided_paired_p(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return p of a paired t-test that the first values are larger on average; None where no difference varies.

    Pairs count as independent. Random subsets of the same runs are not: more of them make p as small as one likes.

    >>> round(one_sided_paired_p([3, 2, 4], [1, 2, 3]), 6)
    0.112702
    """
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    if difference.ndim != 1 or difference.size < 2:
        raise ValueError(f"pairs must be at least 2, got shape {difference.shape}")
    if np.ptp(difference) <= ROUNDING:
        return None
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    return float(t.sf(difference.mean() / error, difference.size - 1))
