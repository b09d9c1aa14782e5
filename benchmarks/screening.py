"""Whom does the log show to be careless, and how often does it accuse the honest? How long does it take? JSON.

    python benchmarks/screening.py                    # about ten minutes
    python benchmarks/screening.py --quick            # a quarter of the assessors, and 100,000 judgments at most
    python benchmarks/screening.py --part scale       # one part: honest, power or scale

1. honest: 400 honest assessors with 100 and 300 judgments, 50 a topic, in random order and in order of the prior.
   An assessor is accused falsely if some test's p, times the number of their tests, is at most .05. Goal: at most .08
   of them. Beside it the flags of the product (Benjamini-Hochberg over assessors, .10), and controls, which must fail:
   the paper's test of two proportions, transitions of all topics together; and in order of the prior a runs test
   without blocks, and a test of drift against none.
2. power: a tenth of the assessors behaves in one way, at 300 judgments with 20 % known answers, with the log alone, and
   at 100 judgments; then a tenth and a fifth behave in all ten ways. An assessor is found by the same rule as in 1.
   Goals for the first: constant and alternating .98, disgruntled .95, random and sticky(.5) .90.
3. scale: seconds and peak memory of `screen` at 100,000 and 1,000,000 judgments of 500 assessors, each in a process of
   its own. Goal: at most 12 times the seconds.

Collections, behaviours and times: benchmarks/parts/screening_sessions.py. Errors of an honest assessor: false alarms
.03, misses .08, stickiness .04. With fixed seeds the shares do not depend on the machine.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from parts.screening_sessions import HONEST, PER_TOPIC, session_log

from analytics.screening.log import ScreeningLog
from analytics.screening.screens import Screening, screen
from experiments.papers.carterette import pooled_serial, unbroken_runs, zero_drift
from experiments.papers.track_collection import Shape, TrackTopic, make_collection

FAMILY_WISE = 0.05
MOST_FALSE = 0.08
N_TOPICS = 300
SIZES = (100, 300)
GOALS = {
    "pattern:0": 0.98,
    "pattern:01": 0.98,
    "disgruntled:1:16": 0.95,
    "random:1:8": 0.90,
    "sticky:.5": 0.90,
    "optimist:1:16": None,
    "pessimist:16:1": None,
    "lazy:1:16": None,
    "fatigued:.01:.03": None,
    "compensating:1:16": None,
}
CONTROLS = {  # name: p of every assessor, orders in which it must fail
    "two proportions, topics together": (pooled_serial, ("random", "priority")),
    "runs without blocks": (unbroken_runs, ("priority",)),
    "drift against none": (zero_drift, ("priority",)),
}
SCALES = (100_000, 1_000_000)
N_ASSESSORS = 500
MOST_TIMES = 12.0
Result = dict[str, Any]


def is_found(result: Screening) -> np.ndarray:
    """Return whether an assessor's smallest p is significant for all of their tests together."""
    p = np.array([finding.p for finding in result.findings.values()])
    n_tests = (~np.isnan(p)).sum(axis=0)
    smallest = np.where(n_tests > 0, np.nanmin(np.where(np.isnan(p), np.inf, p), axis=0), 1.0)
    return np.asarray((smallest * n_tests <= FAMILY_WISE) & (n_tests > 0))


def by_test(result: Screening, chosen: np.ndarray) -> dict[str, float]:
    """Return for each test the share of the chosen assessors whom it alone shows, where that is any."""
    p = {key: finding.p for key, finding in result.findings.items()}
    n_tests = sum((~np.isnan(values)).astype(int) for values in p.values())
    shares = {key: float(np.mean((values * n_tests <= FAMILY_WISE)[chosen])) for key, values in p.items()}
    return {key: round(share, 3) for key, share in shares.items() if share > 0}


def flagged(result: Screening, n_assessors: int) -> np.ndarray:
    """Return whom the product flags."""
    mask = np.zeros(n_assessors, dtype=bool)
    mask[[one for one, _ in result.flags()]] = True
    return mask


# ---- 1: the honest --------------------------------------------------------------------------------------------


def honest(topics: list[TrackTopic], n_assessors: int, seed: int) -> list[Result]:
    rows = []
    for n_judgments in SIZES:
        for order in ("random", "priority"):
            for share_known in (0.2, 0.0):
                log = session_log(
                    [HONEST] * n_assessors,
                    topics,
                    n_judgments,
                    [seed, n_judgments],
                    by_priority=order == "priority",
                    share_known=share_known,
                )
                result = screen(log)
                everybody = np.ones(n_assessors, dtype=bool)
                rows.append(
                    {
                        "judgments": n_judgments,
                        "order": order,
                        "known": share_known,
                        "accused": float(is_found(result).mean()),
                        "flagged": float(flagged(result, n_assessors).mean()),
                        "by_test": by_test(result, everybody),
                        "auc_of_prior": round(float(np.nanmean(result.findings["no-relation"].effect)), 3),
                        "controls": controls(log, order) if share_known else {},
                    }
                )
    return rows


def controls(log: ScreeningLog, order: str) -> dict[str, float]:
    """Return the share of honest assessors that each control rejects at 5 %."""
    return {
        name: float(np.nanmean(test(log) <= FAMILY_WISE))
        for name, (test, orders) in CONTROLS.items()
        if order in orders
    }


# ---- 2: power -------------------------------------------------------------------------------------------------


def power(topics: list[TrackTopic], n_careless: int, seed: int) -> list[Result]:
    """Return the share of each behaviour that is found: alone among honest ones, and mixed with all others."""
    rows: list[Result] = []
    for number, (behaviour, goal) in enumerate(GOALS.items()):
        row: Result = {"behaviour": behaviour, "goal": goal, "careless": n_careless}
        for name, share_known, n_judgments in (
            ("found", 0.2, 300),
            ("found_log_alone", 0.0, 300),
            ("found_100", 0.2, 100),
        ):
            behaviours = [HONEST] * (9 * n_careless) + [behaviour] * n_careless
            key = [seed, 2, number]
            result = screen(session_log(behaviours, topics, n_judgments, key, share_known=share_known))
            found, careless = is_found(result), np.array(behaviours) == behaviour
            row[name] = float(found[careless].mean())
            if name == "found":
                row["honest_accused"] = float(found[~careless].mean())
                row["flagged"] = float(flagged(result, careless.size)[careless].mean())
                row["by_test"] = by_test(result, careless)
        rows.append(row)
    for name, n_honest in (("found_in_mixture", 360), ("found_in_mixture_of_a_fifth", 160)):
        for row, share in zip(rows, mixed(topics, n_honest, max(1, n_careless // 8), seed), strict=True):
            row[name] = share
    return rows


def mixed(topics: list[TrackTopic], n_honest: int, n_logs: int, seed: int) -> list[float]:
    """Return the share of each behaviour that is found where four of each are among the honest."""
    behaviours = np.array([HONEST] * n_honest + [one for one in GOALS for _ in range(4)])
    results = [
        is_found(screen(session_log(behaviours.tolist(), topics, 300, [seed, 4, number])))
        for number in range(n_logs)
    ]
    found = np.mean(results, axis=0)
    return [float(found[behaviours == one].mean()) for one in GOALS]


# ---- 3: scale -------------------------------------------------------------------------------------------------


def timed(n_judgments: int) -> Result:
    """Return seconds and memory of this process: making the log, then screening it."""
    topics = make_collection(60, 1, Shape(n_candidates=700, depth=160))
    pieces = n_judgments // (N_ASSESSORS * PER_TOPIC)
    log = session_log([HONEST] * N_ASSESSORS, topics, pieces * PER_TOPIC, [1, 3])
    before = peak_megabytes()
    times = []
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        screen(log)
        times.append((time.process_time() - processor, time.perf_counter() - wall))
    processor, wall = min(times)
    return {
        "judgments": int(log.assessor.size),
        "seconds": round(wall, 3),
        "processor_seconds": round(processor, 3),
        "log_megabytes": before,
        "peak_megabytes": peak_megabytes(),
    }


def peak_megabytes() -> float | None:
    # VmHWM and not ru_maxrss: the latter remembers the size of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(peak[1]) / 1000 if peak else None


def scale(sizes: tuple[int, ...]) -> list[Result]:
    rows = []
    for n_judgments in sizes:
        command = [sys.executable, __file__, "--timed", str(n_judgments)]
        rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return rows


# ---- all ------------------------------------------------------------------------------------------------------


def missed(results: dict[str, list[Result]]) -> list[str]:
    """Return a sentence for every goal that is missed, and for every control that did not fail."""
    sentences = []
    for row in results.get("honest", []):
        where = f"{row['judgments']} judgments in {row['order']} order, {row['known']:.0%} known"
        if row["accused"] > MOST_FALSE:
            sentences.append(f"{where}: {row['accused']:.3f} of the honest accused, goal {MOST_FALSE}")
        sentences += [
            f"{where}: the control {name} rejects only {share:.3f}"
            for name, share in row["controls"].items()
            if share <= MOST_FALSE
        ]
    for row in results.get("power", []):
        if row["goal"] is not None and row["found"] < row["goal"]:
            sentences.append(f"{row['behaviour']}: {row['found']:.3f} found, goal {row['goal']}")
    times = results.get("scale", [])
    if len(times) > 1:
        ratio = times[-1]["processor_seconds"] / times[0]["processor_seconds"]
        if ratio > MOST_TIMES:
            sentences.append(f"ten times the judgments take {ratio:.1f} times as long, goal {MOST_TIMES}")
    return sentences


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("honest", "power", "scale"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timed", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.timed:
        print(json.dumps(timed(given.timed)))
        return 0
    parts = (given.part,) if given.part else ("honest", "power", "scale")
    results: dict[str, list[Result]] = {}
    topics = make_collection(N_TOPICS, given.seed) if parts != ("scale",) else []
    if "honest" in parts:
        results["honest"] = honest(topics, 100 if given.quick else 400, given.seed)
    if "power" in parts:
        results["power"] = power(topics, 20 if given.quick else 80, given.seed)
    if "scale" in parts:
        results["scale"] = scale(SCALES[:1] if given.quick else SCALES)
    goals = missed(results)
    print(json.dumps({"seed": given.seed, **results, "not_reached": goals}, indent=1))
    return 1 if goals else 0


if __name__ == "__main__":
    sys.exit(main())
