"""Where a curve of variances against judgments meets a target."""

import numpy as np
from parts.trec_like import Floats


def needed_on_curve(counts: Floats, variances: Floats, target: float) -> float:
    """Return the count at which a curve, straight between its points in logarithms, meets the target."""
    falling = np.minimum.accumulate(variances)
    if not falling[-1] <= target <= falling[0]:
        return float("nan")
    return float(np.exp(np.interp(-np.log(target), -np.log(falling), np.log(counts))))
