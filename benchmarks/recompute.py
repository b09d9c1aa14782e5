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
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import throwaway

MEASURES = ["P@10", "DCG@10"]
EACH, ASSESSORS, RUNS, SEED, FOLDS = 4, 500, 100, 1, 20
TOPICS_OF_PEER = 10  # every tenth
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
    is_same &= np.array_equal(counts.together, assessor_confusion_counts(fresh).together)
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


# ---- the peer: as a textbook has it --------------------------------------------------------------

ROWS_OF_PEER = """
SELECT t.topic_id, d.doc_id, j.assessor_id, j.sequence, j.grade, s.purpose, e.inclusion_probability
  FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id JOIN judging_item i ON i.id = j.item_id
  JOIN judging_topic t ON t.id = i.topic_id JOIN judging_document d ON d.id = i.document_id
  JOIN sampling_drawentry e ON e.item_id = i.id
 WHERE i.campaign_id = %s AND t.id %% %s = 0 ORDER BY j.id
"""
AUDITED_OF_PEER = """
SELECT t.topic_id, d.doc_id, max(e.inclusion_probability) FROM sampling_auditentry e
  JOIN judging_item i ON i.id = e.item_id JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
 WHERE i.campaign_id = %s AND t.id %% %s = 0 GROUP BY 1, 2
"""


def _peer(clock: Clock) -> dict[str, Any]:
    from django.db import connection

    campaign = _campaign()
    clock.start()
    with connection.cursor() as cursor:
        cursor.execute(ROWS_OF_PEER, [campaign.pk, TOPICS_OF_PEER])
        rows = cursor.fetchall()
        cursor.execute(AUDITED_OF_PEER, [campaign.pk, TOPICS_OF_PEER])
        audit_probability = {row[:2]: row[2] for row in cursor.fetchall()}
    newest: dict[tuple, tuple] = {}
    chance: dict[tuple, float] = {}
    for topic, document, assessor, sequence, grade, purpose, probability in rows:
        key = topic, document, assessor
        if key not in newest or sequence > newest[key][0]:
            newest[key] = sequence, grade, purpose
        chance[topic, document] = probability
    grades: dict[tuple, list[int]] = defaultdict(list)
    gold: dict[tuple, int] = {}
    for (topic, document, _), (_, grade, purpose) in newest.items():
        if purpose == "audit":
            gold[topic, document] = grade
        else:
            grades[topic, document].append(grade)
    weights = _dense_weights(campaign, list(grades))
    reading = clock.seconds()
    clock.start()
    values = _textbook(weights, grades, gold, chance, audit_probability)
    estimating = clock.seconds()
    clock.start()
    _save(campaign, values)
    return {
        "judgments": len(rows),
        "items": len(grades),
        "seconds": {"reading": reading, "estimating": estimating, "storing": clock.seconds()},
    }


def _dense_weights(campaign: Any, items: list[tuple]) -> dict[str, np.ndarray]:
    """Return by measure w[run, item] from the run files."""
    from judging.rankings import rankings_frame, read_rankings

    place = {item: index for index, item in enumerate(items)}
    n_topics = campaign.collection.topics.count()
    runs = list(campaign.collection.runs.all())
    weights = {measure: np.zeros((len(runs), len(items))) for measure in MEASURES}
    for row, run in enumerate(runs):
        frame = rankings_frame(read_rankings(Path(run.rankings.path)))
        for topic, document, rank in frame.select("topic_id", "doc_id", "rank").iter_rows():
            index = place.get((topic, document))
            if index is not None and rank <= 10:
                weights["P@10"][row, index] = 0.1 / n_topics
                weights["DCG@10"][row, index] = 1 / np.log2(rank + 1) / n_topics
    return weights


def _textbook(
    weights: dict[str, np.ndarray], grades: dict, gold: dict, chance: dict, audit_probability: dict
) -> list[tuple[str, int, int | None, str, float, float]]:
    """Return measure, run, second run, method, value and standard error of every run and pair."""
    items = list(grades)
    pi = np.array([chance[item] for item in items])
    is_audited = np.array([item in gold for item in items])
    audit_pi = np.array([audit_probability[item] for item in items])
    found = []
    for measure, table in weights.items():
        gain = {grade: float(grade >= 1) if measure == "P@10" else float(grade) for grade in range(4)}
        utility = np.array([np.mean([gain[grade] for grade in grades[item]]) for item in items])
        true = np.array([gain[gold[item]] if item in gold else 0.0 for item in items])
        error = np.where(is_audited, true - utility, 0.0)
        spread = float(error[is_audited].var())
        for run in range(len(table)):
            for run_b in [None, *range(run + 1, len(table))]:
                w = (table[run] if run_b is None else table[run] - table[run_b]) / pi
                naive, drawing = float((w * utility).sum()), float((w**2 * (1 - pi) * utility**2).sum())
                corrected = naive + float((w * error / audit_pi).sum())
                design = float((w**2 * (1 - audit_pi) / audit_pi**2 * error**2).sum())
                pooled = float((w**2 * (1 / audit_pi - 1)).sum()) * spread
                found.append((measure, run, run_b, "naive", naive, drawing**0.5))
                variance = drawing + max(design, pooled)
                found.append((measure, run, run_b, "corrected", corrected, variance**0.5))
    return found


def _save(campaign: Any, values: list[tuple[str, int, int | None, str, float, float]]) -> None:
    from django.db import transaction

    from analytics.models import Computation, Estimate

    runs = list(campaign.collection.runs.all())
    none = dict.fromkeys(
        ("last_judgment_id", "n_judgments", "n_items", "n_audited", "n_gold_checks", "seconds"), 0
    )
    with transaction.atomic():
        computation = Computation.objects.create(campaign=campaign, **none)
        Estimate.objects.bulk_create(
            [
                Estimate(
                    computation=computation,
                    run=runs[run],
                    run_b=None if run_b is None else runs[run_b],
                    measure=measure,
                    method=method,
                    value=value,
                    standard_error=error,
                    low=value - 1.96 * error,
                    high=value + 1.96 * error,
                    n=0,
                )
                for measure, run, run_b, method, value, error in values
            ],
            batch_size=1000,
        )


# ---- one process a task --------------------------------------------------------------------------


def _child(task: str, postmaster: int) -> None:
    throwaway.set_up_django(os.environ["DATABASE_URL"], os.environ["REDIS_URL"])
    import analytics.services.recomputation  # noqa: F401 (a worker has imported it before)

    tasks: dict[str, Callable[[Clock], dict[str, Any]]] = {
        "recompute": _recompute,
        "fold": _fold,
        "peer": _peer,
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
