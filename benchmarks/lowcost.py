"""Measure the consensus of runs: seconds of a fit, and its agreement with another solver.

    python benchmarks/lowcost.py [--repetitions 5] [--seed 1]

Synthetic pools of 800 and of 2,335 documents, 129 runs that return 100 each. The other solver is SciPy's L-BFGS on the
same objective; on the smaller pool alone, as it is slow. Ends with status 1 where a fit takes longer, or the solvers
differ more, than promised.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sampling.experts import Preferences, RankedPool, consensus

N_RUNS, RETURNED = 129, 100
MOST_SECONDS = {800: 0.3, 2335: 3.0}
MOST_DIFFERENCE = 1e-4

Floats = NDArray[np.float64]


def synthetic_pool(n_documents: int, seed: int) -> RankedPool:
    """Return runs that agree on a document's quality but for noise."""
    rng = np.random.default_rng([seed, n_documents])
    quality = rng.normal(size=n_documents)
    ranks = np.full((N_RUNS, n_documents), np.inf)
    for run in range(N_RUNS):
        order = np.argsort(-(quality + rng.normal(size=n_documents)))[:RETURNED]
        ranks[run, order] = np.arange(1.0, RETURNED + 1)
    return RankedPool.of(ranks)


def seconds(pool: RankedPool, repetitions: int) -> list[float]:
    """Return the seconds of each fit, counting included, after one that is not counted."""
    spent = []
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        consensus(Preferences.of(pool))
        spent.append(time.perf_counter() - start)
    return spent[1:]


def largest_difference(pool: RankedPool) -> float:
    """Return by how much a probability differs between our solver and L-BFGS."""
    preferences = Preferences.of(pool)

    def downhill(theta: Floats) -> tuple[float, Floats]:
        of_pairs = preferences.pairs * expit(np.subtract.outer(theta, theta))
        slope = preferences.wins - of_pairs.sum(axis=1) + preferences.a * expit(-theta)
        return -preferences.objective(theta), preferences.b * expit(theta) - slope

    options: Any = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-6}
    other = minimize(downhill, np.zeros(pool.n_documents), jac=True, method="L-BFGS-B", options=options)
    return float(np.abs(expit(other.x) - consensus(preferences).probability).max())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    fits, is_slow = [], False
    for n_documents, limit in MOST_SECONDS.items():
        pool = synthetic_pool(n_documents, given.seed)
        spent = seconds(pool, given.repetitions)
        median = float(np.median(spent))
        is_slow |= median > limit
        n_preferences = int(pool.n_preferences.sum())
        facts = {"documents": n_documents, "runs": N_RUNS, "preferences": n_preferences}
        fits.append({**facts, "seconds": [round(one, 3) for one in spent], "median": round(median, 3)})
    difference = largest_difference(synthetic_pool(min(MOST_SECONDS), given.seed))
    print(json.dumps({"fits": fits, "largest_difference": difference}, indent=1))
    return 1 if is_slow or difference > MOST_DIFFERENCE else 0


if __name__ == "__main__":
    sys.exit(main())
