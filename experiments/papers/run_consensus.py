"""The probability of relevance by the runs alone: every run prefers what it ranks higher (Carterette and Allan 2007).

Newton's method with dense matrices: enough for pools of a thousand documents.
"""

import numpy as np
from scipy.special import expit

from sampling.arrays import FloatArray

LARGEST_STEP = 4.0
N_STEPS = 100


def run_consensus(ranks: FloatArray) -> FloatArray:
    """Return p of each document: theta maximises sum n_ij ln s(th_i - th_j) + sum ln s(th_i) + ln s(-th_i).

    n_ij counts the runs that prefer i to j; what a run returns it prefers to the rest of the pool. The sum of p is
    half the number of documents.

    Parameters
    ----------
    ranks : (n_runs, n_documents) array
        From 1, without gaps; infinite where not returned.

    >>> none = np.inf
    >>> run_consensus(np.array([[1, 2, none, none], [1, none, 2, none], [2, 1, none, none]])).round(6).tolist()
    [0.786233, 0.618335, 0.41599, 0.179443]
    """
    is_returned = np.isfinite(ranks)
    n = ranks.shape[1]
    wins = np.where(is_returned, n - ranks, 0.0).sum(axis=0)
    n_runs = is_returned.sum(axis=0).astype(np.float64)
    pairs = n_runs[:, np.newaxis] + n_runs - is_returned.T.astype(np.float64) @ is_returned
    np.fill_diagonal(pairs, 0.0)
    theta = np.zeros(n)
    for _ in range(N_STEPS):
        chance = expit(theta[:, np.newaxis] - theta)
        own = expit(theta)
        gradient = wins - (pairs * chance).sum(axis=1) + 1.0 - 2.0 * own
        curvature = pairs * chance * chance.T
        hessian = np.diag(curvature.sum(axis=1) + 2.0 * own * (1.0 - own)) - curvature
        step = np.linalg.solve(hessian, gradient)
        size = float(np.abs(step).max())
        theta += step * min(1.0, LARGEST_STEP / max(size, 1e-300))
        if size < 1e-9:
            return np.asarray(expit(theta))
    raise ValueError(f"no solution in {N_STEPS} steps of Newton's method, the last of size {size:.2g}")
