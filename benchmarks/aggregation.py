"""Measure Dawid-Skene on 1,000,000 labels: against crowd-kit, and accelerated against plain EM.

    python benchmarks/aggregation.py [--labels 1000000] [--seed 1] [--skip-plain]

250,000 items with four labels each, 2,000 assessors, four grades; an assessor's accuracy for each grade is uniform
within `--accuracy`, the errors fall as a Dirichlet(1) draw says. Three questions, all in this process and run:

- seconds of 50 EM iterations, ours and crowd-kit's, and the largest difference of the two posteriors (no prior: the
  models are then the same);
- seconds until a plain EM step changes no posterior by 1e-5, plain EM against accelerated, for each prior;
- the peak of resident memory of a process that only makes the labels and fits the accelerated model (the kernel's
  VmHWM), and of one that only makes them.

crowd-kit is no dependency of Touchstone. To compare, run this with the Python of a throw-away environment:

    python3.11 -m venv /tmp/peer && /tmp/peer/bin/pip install crowd-kit scipy numpy
    /tmp/peer/bin/python benchmarks/aggregation.py

Without it the comparison is left out, and the JSON says so. Seconds are of the wall and, beside them, of the processor.
"""

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.aggregation.dawid_skene import Aggregation, dawid_skene
from analytics.aggregation.fits import TOLERANCE
from analytics.estimation import samples

LABELS_PER_ITEM, LABELS_PER_ASSESSOR, N_GRADES, ITERATIONS = 4, 500, 4, 50
PREVALENCE = (0.55, 0.2, 0.15, 0.1)
PRIORS = (0.0, 0.01, 0.1)
HOW = "python3.11 -m venv /tmp/peer && /tmp/peer/bin/pip install crowd-kit; then run this with /tmp/peer/bin/python"


@dataclass(frozen=True)
class Labels:
    """Synthetic labels, and the truth behind them."""

    item: NDArray[np.int64]
    assessor: NDArray[np.int64]
    grade: NDArray[np.int64]
    true_grade: NDArray[np.int64]
    n_assessors: int

    def fit(self, **options: Any) -> Aggregation:
        labels = samples.Labels(
            self.item,
            self.assessor,
            self.grade,
            n_items=self.true_grade.size,
            n_assessors=self.n_assessors,
            n_grades=N_GRADES,
        )
        aggregation = dawid_skene(labels, **options)
        assert isinstance(aggregation, Aggregation)
        return aggregation


def synthetic(n_labels: int, accuracy: tuple[float, float], seed: int) -> Labels:
    rng = np.random.default_rng(seed)
    n_items, n_assessors = n_labels // LABELS_PER_ITEM, max(8, n_labels // LABELS_PER_ASSESSOR)
    true_grade = rng.choice(N_GRADES, p=PREVALENCE, size=n_items)
    right = rng.uniform(*accuracy, size=(n_assessors, N_GRADES))[..., None]
    errors = rng.dirichlet(np.ones(N_GRADES), size=(n_assessors, N_GRADES))
    reached = (right * np.eye(N_GRADES) + (1 - right) * errors).cumsum(axis=-1)
    item = np.repeat(np.arange(n_items), LABELS_PER_ITEM)
    assessor = rng.integers(0, n_assessors, item.size)
    grade = (rng.random(item.size)[:, None] > reached[assessor, true_grade[item]]).sum(axis=1)
    return Labels(item, assessor, np.minimum(grade, N_GRADES - 1), true_grade, n_assessors)


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}
    return result, {name: round(value, 4) for name, value in seconds.items()}


# -- against crowd-kit --------------------------------------------------------------------------------------


def of_iterations(work: Callable[[int], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result of 50 iterations, their seconds, and those of one more, the start taken off."""
    _, first = timed(partial(work, 1))
    result, seconds = timed(partial(work, ITERATIONS))
    each = {
        f"{name}_an_iteration": round((seconds[name] - first[name]) / (ITERATIONS - 1), 5) for name in seconds
    }
    return result, seconds | each


def against_crowd_kit(labels: Labels) -> dict[str, Any]:
    def ours(n: int) -> Aggregation:
        return labels.fit(prior=0, tolerance=0.0, most_iterations=n, accelerate=False)

    aggregation, our_time = of_iterations(ours)
    report: dict[str, Any] = {"iterations": ITERATIONS, "ours": our_time}
    if importlib.util.find_spec("crowdkit") is None:
        return report | {"crowd_kit": "not installed", "how": HOW}
    pandas, peer = importlib.import_module("pandas"), importlib.import_module("crowdkit.aggregation")
    frame = pandas.DataFrame({"task": labels.item, "worker": labels.assessor, "label": labels.grade})

    def theirs(n: int) -> Any:
        return peer.DawidSkene(n_iter=n, tol=-np.inf).fit(frame)

    fitted, their_time = of_iterations(theirs)
    posterior = fitted.probas_.sort_index()[list(range(N_GRADES))].to_numpy()
    ratios = {f"times_fewer_{name}": round(their_time[name] / our_time[name], 1) for name in our_time}
    return report | {
        "crowd_kit": their_time | {"iterations": len(fitted.loss_history_)},
        **ratios,
        "largest_difference_of_posteriors": float(np.abs(posterior - aggregation.posterior).max()),
    }


# -- accelerated against plain ------------------------------------------------------------------------------


def accelerated(labels: Labels, prior: float, skip_plain: bool) -> dict[str, Any]:
    report: dict[str, Any] = {"prior": prior, "tolerance": TOLERANCE}
    fits = {}
    for name in ("accelerated",) if skip_plain else ("plain", "accelerated"):
        aggregation, seconds = timed(partial(labels.fit, prior=prior, accelerate=name == "accelerated"))
        fits[name] = aggregation
        report[name] = seconds | {
            "passes": aggregation.iterations,
            "converged": aggregation.converged,
            "log_likelihood": aggregation.log_likelihood,
            "accuracy": float((aggregation.grade == labels.true_grade).mean()),
        }
    if not skip_plain:
        report["times_fewer_seconds"] = round(
            report["plain"]["seconds"] / report["accelerated"]["seconds"], 2
        )
        report["times_fewer_cpu_seconds"] = round(
            report["plain"]["cpu_seconds"] / report["accelerated"]["cpu_seconds"], 2
        )
        difference = np.abs(fits["plain"].posterior - fits["accelerated"].posterior).max()
        report["largest_difference_of_posteriors"] = float(difference)
    return report


# -- memory -------------------------------------------------------------------------------------------------


def peak_megabytes(arguments: argparse.Namespace, what: str) -> float:
    """Return the peak of a fresh process that does only this."""
    low, high = arguments.accuracy
    command = [sys.executable, __file__, "--only", what, "--labels", str(arguments.labels)]
    command += ["--seed", str(arguments.seed), "--accuracy", str(low), str(high)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def own_peak() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--accuracy", type=float, nargs=2, default=(0.25, 0.85), metavar=("FROM", "TO"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip-plain", action="store_true", help="leave out the slow plain EM")
    parser.add_argument("--only", choices=("labels", "fit"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    labels = synthetic(given.labels, tuple(given.accuracy), given.seed)
    if given.only:
        if given.only == "fit":
            labels.fit(prior=0)
        print(own_peak())
        return
    report = {
        "labels": labels.item.size,
        "items": labels.true_grade.size,
        "assessors": labels.n_assessors,
        "grades": N_GRADES,
        "accuracy": list(given.accuracy),
        "seed": given.seed,
        "against_crowd_kit": against_crowd_kit(labels),
        "to_convergence": [accelerated(labels, prior, given.skip_plain) for prior in PRIORS],
        "peak_megabytes": {what: round(peak_megabytes(given, what)) for what in ("labels", "fit")},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
