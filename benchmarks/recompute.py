"""Measure a recomputation of a million judgments, and of one more: 250,000 items, 500 assessors, 100 runs.

    python benchmarks/recompute.py [--judgments 100000] [--json]

1. From the rows of the database to the estimates stored in it, in a fresh process: P@10 and DCG@10 of every run and
   every pair of runs by every method, with all variances and intervals, and the confusion matrices. Goals: below 5 s on
   two cores, and below 1 GB. Wall-clock time, this process's processor time, and that of the database's processes.
   The forecasts of the next audit, which come then, are given beside.
2. One more judgment, stored by the product's own claim and submit, with a process that has read the campaign before:
   from the row in the database to new arrays and confusion counts. Goal: below 100 ms (the median of twenty). What
   estimating and storing everything costs then is given beside, and whether the arrays equal freshly read ones.

The peer does the same as a textbook has it, in the same run, on the items of a tenth of the topics: fetchall(),
dictionaries by item, a dense weight for every item of the frame, run by run and pair by pair, rows saved as
objects. It gives the naive and the corrected number only. Reading and estimating are scaled by what it left out,
storing is not. Every task has a process of its own; its peak of resident memory is what the kernel says (VmHWM).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # as the product's settings have it, which come too late here
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import psutil
from parts import textbook_recompute as textbook
from parts import throwaway

MEASURES = ["P@10", "DCG@10"]
EACH, ASSESSORS, RUNS, SEED, FOLDS = 4, 500, 100, 1, 20
AFTER_STORING = "forecasting the next audit"  # the step that begins when the estimates are stored
GOAL_SECONDS, GOAL_MEGABYTES, GOAL_FOLD_MILLISECONDS = 5.0, 1000.0, 100.0


class Clock:
    """Wall-clock and processor seconds of what this process and the database's do."""

    def __init__(self, postmaster: int) -> None:
        self._server = psutil.Process(postmaster)
        self.start()

    def start(self) -> None:
        self._wall, self._cpu, self._database = time.perf_counter(), time.process_time(), self._of_database()

    def _of_database(self) -> float:
        """Return the seconds of all processes below the server, those that have ended included."""
        total = 0.0
        for process in [self._server, *self._server.children(recursive=True)]:
            try:
                spent = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += spent.user + spent.system
            if process == self._server:
                total += spent.children_user + spent.children_system
        return total

    def seconds(self) -> dict[str, float]:
        return {
            "wall": time.perf_counter() - self._wall,
            "cpu": time.process_time() - self._cpu,
            "database_cpu": self._of_database() - self._database,
        }


def _campaign() -> Any:
    from judging.models import Campaign

    return Campaign.objects.select_related("scale", "collection").get(name="large")


# ---- the product ---------------------------------------------------------------------------------


def _recompute(clock: Clock) -> dict[str, Any]:
    """Recompute in this fresh process."""
    from analytics.models import Estimate
    from analytics.services.recomputation import recompute

    campaign = _campaign()
    steps: list[tuple[str, dict[str, float]]] = []
    clock.start()
    computation = recompute(
        campaign=campaign,
        measures=MEASURES,
        progress=lambda _done, _total, note: steps.append((note, clock.seconds())),
    )
    stored = dict(steps)[AFTER_STORING]
    rows = Estimate.objects.filter(computation=computation)
    return {
        "seconds": stored,
        "steps": {note: after["wall"] - at["wall"] for (note, at), (_, after) in pairwise(steps)},
        "judgments": computation.n_judgments,
        "items": computation.n_items,
        "audited": computation.n_audited,
        "gold_checks": computation.n_gold_checks,
        "estimates": rows.count(),
        "refused": rows.exclude(refusal="").count(),
        "matrices": computation.confusions.count(),
    }


def _fold(clock: Clock) -> dict[str, Any]:
    """Complete what this process has read by one judgment at a time."""
    from analytics.frames import campaign_arrays, current_arrays
    from analytics.services.confusions import assessor_confusion_counts
    from analytics.services.recomputation import recompute

    campaign = _campaign()
    arrays = current_arrays(campaign)
    before = arrays.n_judgments
    folds = []
    for number in range(FOLDS):
        _judge_one(campaign, number)
        clock.start()
        arrays = current_arrays(campaign)
        counts = assessor_confusion_counts(arrays)
        folds.append(clock.seconds())
    fresh = campaign_arrays(campaign)
    names = (
        "judged",
        "label_item",
        "label_assessor",
        "label_grade",
        "label_judgment",
        "audited",
        "check_given",
    )
    is_same = all(np.array_equal(getattr(arrays, name), getattr(fresh, name)) for name in names)
    is_same &= np.array_equal(counts.total, assessor_confusion_counts(fresh).total)
    _judge_one(campaign, FOLDS)
    clock.start()
    recompute(campaign=campaign, measures=MEASURES)
    return {
        "folds": FOLDS,
        "added": arrays.n_judgments - before,
        "milliseconds": {kind: 1000 * statistics.median(fold[kind] for fold in folds) for kind in folds[0]},
        "worst_milliseconds": 1000 * max(fold["wall"] for fold in folds),
        "equals_a_fresh_reading": bool(is_same),
        "everything_after_a_fold": clock.seconds(),
    }


def _judge_one(campaign: Any, number: int) -> None:
    """Claim an item as an assessor, and judge it."""
    import uuid

    from judging.models import Assessor
    from judging.services.assign import claim, submit

    assessors = Assessor.objects.filter(campaign=campaign, tier="bronze").select_related("campaign__scale")
    for assessor in assessors.order_by("pk")[number:]:
        held = claim(assessor=assessor)
        if held.item is not None:
            submit(assessor=assessor, token=held.item.token, client_token=uuid.uuid4(), grade=1)
            return
    raise RuntimeError("no item is left to judge")


# ---- one process a task --------------------------------------------------------------------------


def _child(task: str, postmaster: int) -> None:
    throwaway.set_up_django(os.environ["DATABASE_URL"], os.environ["REDIS_URL"])
    import analytics.services.recomputation  # noqa: F401 (a worker has imported it before)

    tasks: dict[str, Callable[[Clock], dict[str, Any]]] = {
        "recompute": _recompute,
        "fold": _fold,
        "peer": lambda clock: textbook.recompute(_campaign(), clock),
    }
    result = tasks[task](Clock(postmaster))
    # VmHWM and not ru_maxrss: the latter remembers the size of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    result["peak_megabytes"] = int(peak[1]) / 1000 if peak else None
    print(json.dumps(result))


def _start(task: str, servers: Any, postmaster: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--task", task, "--postmaster", str(postmaster)]
    environment = {**os.environ, "DATABASE_URL": servers.database_url, "REDIS_URL": servers.redis_url}
    child = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    result: dict[str, Any] = json.loads(child.stdout)
    return result


def measure(n_judgments: int) -> dict[str, Any]:
    """Return all results: `goals` says which are met."""
    with throwaway.folder() as root, throwaway.migrated(root) as servers:
        from django.db import connection, connections
        from parts import large_campaign

        started = time.perf_counter()
        (root / "runs").mkdir()
        large_campaign.make(
            root / "runs",
            n_items=n_judgments // EACH,
            n_each=EACH,
            n_assessors=ASSESSORS,
            n_runs=RUNS,
            seed=SEED,
        )
        made_in = time.perf_counter() - started
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            postmaster = psutil.Process(cursor.fetchone()[0]).ppid()
        connections.close_all()
        full, fold, peer = (_start(task, servers, postmaster) for task in ("recompute", "fold", "peer"))
    return _report(n_judgments, made_in, full, fold, peer)


def _report(
    n_judgments: int, made_in: float, full: dict[str, Any], fold: dict[str, Any], peer: dict[str, Any]
) -> dict[str, Any]:
    factor = full["judgments"] / peer["judgments"]
    parts = peer["seconds"]
    scaled = {
        clock: factor * (parts["reading"][clock] + parts["estimating"][clock]) + parts["storing"][clock]
        for clock in ("wall", "cpu")
    }
    return {
        "benchmark": "recompute",
        "size": {"judgments": n_judgments, "runs": RUNS, "assessors": ASSESSORS, "seed": SEED},
        "data_made_in_seconds": made_in,
        "recompute": full,
        "fold": fold,
        "peer": {**peer, "scaled_by": factor, "scaled_seconds": scaled},
        "times_faster_than_peer": {clock: scaled[clock] / full["seconds"][clock] for clock in scaled},
        "goals": {
            f"below {GOAL_SECONDS:g} s from rows to stored estimates": full["seconds"]["wall"] < GOAL_SECONDS,
            f"below {GOAL_MEGABYTES:g} MB": full["peak_megabytes"] < GOAL_MEGABYTES,
            f"one judgment below {GOAL_FOLD_MILLISECONDS:g} ms": fold["milliseconds"]["wall"]
            < GOAL_FOLD_MILLISECONDS,
            "and equal to a fresh reading": fold["equals_a_fresh_reading"],
        },
    }


def _table(report: dict[str, Any]) -> str:
    full, fold, peer = report["recompute"], report["fold"], report["peer"]
    head = (
        f"{full['judgments']:,} judgments of {full['items']:,} items, {full['estimates']:,} estimates "
        f"({full['refused']:,} refused), {full['matrices']:,} matrices"
    )
    lines = [head, f"{'':44}{'wall':>9}{'CPU':>9}{'database':>10}{'peak MB':>9}"]

    def line(name: str, seconds: dict[str, float], unit: str, peak: float | None = None) -> str:
        numbers = (
            f"{seconds['wall']:9.2f}{seconds['cpu']:9.2f}{seconds.get('database_cpu', float('nan')):10.2f}"
        )
        return f"{name + ', ' + unit:44}{numbers}" + (f"{peak:9.0f}" if peak else "")

    lines.append(line("rows to stored estimates", full["seconds"], "s", full["peak_megabytes"]))
    lines += [f"    {step:40}{seconds:9.2f}" for step, seconds in full["steps"].items()]
    lines.append(line("one judgment more (median)", fold["milliseconds"], "ms", fold["peak_megabytes"]))
    lines.append(f"    worst of {fold['folds']:<31}{fold['worst_milliseconds']:9.2f}")
    lines.append(line("everything after it", fold["everything_after_a_fold"], "s"))
    lines.append(line("textbook, scaled", peer["scaled_seconds"], "s", peer["peak_megabytes"]))
    lines += [f"{goal}: {'yes' if met else 'NO'}" for goal, met in report["goals"].items()]
    return "\n".join(lines)


def main() -> None:
    """Make the data, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    for hidden, kind in (("--task", str), ("--postmaster", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _child(options.task, options.postmaster)
        return
    report = measure(options.judgments)
    print(json.dumps(report, indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
