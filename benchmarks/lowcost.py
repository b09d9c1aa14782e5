"""Measure what evaluation with few judgments costs: the consensus of runs, statAP, and minimal test collections.

    python benchmarks/lowcost.py [--repetitions 5] [--seed 1]
    python benchmarks/lowcost.py --folder FOLDER --qrels NAME --without rank-cost TMAL30Q

- fits: seconds of the consensus on synthetic pools of 800 and of 2,335 documents, 129 runs that return 100 each, and
  its agreement with another solver, SciPy's L-BFGS on the same objective; on the smaller pool alone, as it is slow.
- statAP: seconds of 129 runs and 50 topics.
- order: judgments until a minimal test collection stops, where it tells most and in random order, on pairs of runs of a
  synthetic pool with one prior, p = .05. The control compares two random orders.
- signs: with a folder of runs (`runs/`) in which all is judged, how many signs of pairs of runs are wrong when the
  product's rule stops, and as the control when the printed one with p = .5 does. `--without` leaves runs out of the
  pairs, by a part of their names.

Intervals beside statAP: benchmarks/lowcost_coverage.py. Ends with status 1 where something takes longer, differs more,
or is wrong oftener than promised, or where a control does not fail.
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

from lowcost_coverage import seconds_of_statap
from parts.minimal_judgments import saving, synthetic_pairs, wrong_signs
from parts.trec_like import trec_like

from sampling.experts import Preferences, RankedPool, consensus

N_RUNS, RETURNED = 129, 100
MOST_SECONDS = {800: 0.3, 2335: 3.0}
MOST_DIFFERENCE = 1e-4
MOST_STATAP_SECONDS = 1.0

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


def fit_rows(repetitions: int, seed: int) -> list[dict[str, Any]]:
    """Return for each pool the seconds of the fits, and whether the median is as short as promised."""
    rows = []
    for n_documents, limit in MOST_SECONDS.items():
        pool = synthetic_pool(n_documents, seed)
        spent = seconds(pool, repetitions)
        median = float(np.median(spent))
        n_preferences = int(pool.n_preferences.sum())
        facts = {"documents": n_documents, "runs": N_RUNS, "preferences": n_preferences}
        times = {
            "seconds": [round(one, 3) for one in spent],
            "median": round(median, 3),
            "holds": median <= limit,
        }
        rows.append({**facts, **times})
    return rows


def broken_promises(report: dict[str, Any]) -> list[str]:
    """Return what does not hold, and the controls that do not fail."""
    rows = {f"fit of {row['documents']} documents": row["holds"] for row in report["fits"]}
    rows["solvers"] = report["largest_difference"] <= MOST_DIFFERENCE
    rows["statAP"] = report["statap_seconds"] <= MOST_STATAP_SECONDS
    rows["order"] = report["order"]["holds"]
    rows["control of order"] = not report["order"]["control"]["holds"]
    if "signs" in report:
        rows["signs"] = report["signs"]["product"]["holds"]
        rows["control of signs"] = not report["signs"]["control"]["holds"]
    return [name for name, holds in rows.items() if not holds]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="has the runs in FOLDER/runs")
    parser.add_argument("--qrels", default="qrels.txt", metavar="NAME", help="a file of the folder")
    parser.add_argument("--without", nargs="+", default=[], metavar="WORD", help="no pairs with these runs")
    given = parser.parse_args()
    report: dict[str, Any] = {
        "fits": fit_rows(given.repetitions, given.seed),
        "largest_difference": largest_difference(synthetic_pool(min(MOST_SECONDS), given.seed)),
        "statap_seconds": seconds_of_statap(),
        "order": saving(synthetic_pairs(trec_like(given.seed, near_duplicates=False)), given.seed),
    }
    if given.folder:
        report["signs"] = wrong_signs(given.folder, given.qrels, given.without)
    report["broken"] = broken_promises(report)
    print(json.dumps(report, indent=1))
    return 1 if report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
