"""Measure what grows with a campaign: its numbers computed by one job and by several, its release, claim and submit.

    python benchmarks/scale.py [--judgments 10000000] [--beside 100000] [--former FOLDER] [--json]

The campaign is that of benchmarks/recompute.py: four judgments an item, 500 assessors, 100 runs, written by COPY into
servers of its own; 10^7 judgments take some 40 GB of disk. Every task has a process of its own, whose peak of resident
memory is what the kernel says (VmHWM).

1. Everything computed by one job, as below 500,000 judgments; with `--former` by the checkout in that folder.
2. The same by parts: one worker, two, four; segments of the usual size, one segment, 64. A digest of all that is
   stored, floats by their bits, says whether the numbers are the same.
3. A release of the newest numbers.
4. Claim and submit, the median of 200, here and in a campaign of the size `--beside`.
"""

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The product of another checkout, if one is named, goes before this folder, in which judging.py is another program.
sys.path.insert(
    0, str(Path(os.environ.get("SCALE_CHECKOUT") or Path(__file__).resolve().parents[1]) / "platform")
)
sys.path.insert(0, os.environ.get("SCALE_CHECKOUT") or str(Path(__file__).resolve().parents[1]))

from parts import throwaway

HERE = Path(__file__).resolve()
EACH, ASSESSORS, RUNS, SEED, ROUNDS = 4, 500, 100, 1, 200
MEASURES = ["P@10", "DCG@10", "P@5", "DCG@20"]
NOT_COMPARED = {"id", "computation_id", "created_at", "seconds", "activity", "estimate_id"}
GOAL_MEGABYTES, GOAL_SPEEDUP, GOAL_SLOWER, GOAL_CLAIM = 4000.0, 1.6, 1.1, 1.2


def _campaign() -> Any:
    from judging.models import Campaign

    return Campaign.objects.select_related("scale", "collection").get(name="large")


# ---- tasks of a process -----------------------------------------------------------------------------------


def _alone(_: argparse.Namespace) -> dict[str, Any]:
    from analytics.services.recomputation import recompute

    started = time.perf_counter()
    computation = recompute(campaign=_campaign(), measures=MEASURES)
    return {"wall": time.perf_counter() - started, "computation": computation.pk}


def _worker(options: argparse.Namespace) -> dict[str, Any]:
    """Do jobs as a worker does, until the numbers that were asked for are stored."""
    import analytics.tasks  # noqa: F401 (the kinds of job are registered)
    from analytics.services import parts
    from touchstone import jobs
    from touchstone.models import Job

    parts.LARGE, parts.JUDGMENTS_A_SEGMENT = 0, options.segment
    parts.measures_of = lambda campaign: MEASURES
    jobs.poke = lambda lane: True
    done: list[str] = []
    while True:
        waiting = Job.objects.filter(kind__startswith="estimate", state__in=Job.ACTIVE)
        if not waiting.exists():
            break
        if waiting.filter(state="queued").exists():
            jobs.work("numbers")
        else:
            time.sleep(0.05)
    mine = Job.objects.filter(kind__startswith="estimate", worker=jobs.worker_name()).order_by("finished_at")
    done = [job.kind for job in mine]
    failed = list(
        Job.objects.filter(kind__startswith="estimate", state="failed").values_list("error", flat=True)
    )
    return {"jobs": done, "failed": failed}


def _release(_: argparse.Namespace) -> dict[str, Any]:
    from analytics.models import Release
    from analytics.releases.services.releasing import build, make_release
    from judging.models import Run

    campaign = _campaign()
    Run.objects.filter(collection=campaign.collection).update(may_publish=True)
    started = time.perf_counter()
    made = make_release(campaign=campaign, version=str(time.time_ns()), actor=None)
    build(release=made)
    ready = Release.objects.get(pk=made.pk)
    return {"wall": time.perf_counter() - started, "megabytes": ready.file.size / 1e6, "sha256": ready.sha256}


def _judge(_: argparse.Namespace) -> dict[str, Any]:
    from judging.models import Assessor
    from judging.services.assign import claim, submit

    campaign = _campaign()
    assessors = list(
        Assessor.objects.filter(campaign=campaign, tier="bronze").select_related("campaign__scale")
    )
    claims, submits = [], []
    for number in range(10 * ROUNDS):
        assessor = assessors[number % len(assessors)]
        started = time.perf_counter()
        held = claim(assessor=assessor)
        between = time.perf_counter()
        if held.item is None:
            continue
        submit(assessor=assessor, token=held.item.token, client_token=uuid.uuid4(), grade=1)
        claims.append(1000 * (between - started))
        submits.append(1000 * (time.perf_counter() - between))
        if len(claims) == ROUNDS:
            break
    return {
        "rounds": len(claims),
        "claim": statistics.median(claims) if claims else None,
        "submit": statistics.median(submits) if submits else None,
    }


TASKS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "alone": _alone,
    "worker": _worker,
    "release": _release,
    "judge": _judge,
}


def _child(options: argparse.Namespace) -> None:
    throwaway.set_up_django(os.environ["DATABASE_URL"], os.environ["REDIS_URL"])
    result = TASKS[options.task](options)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    result["cpu"] = time.process_time()
    result["peak_megabytes"] = int(peak[1]) / 1000 if peak else None
    Path(options.out).write_text(json.dumps(result))


# ---- what is measured -------------------------------------------------------------------------------------


def _start(task: str, urls: dict[str, str], *, checkout: str = "", segment: int = 0) -> Any:
    """Start a task in a process of its own; return what waits for its result."""
    handle, out = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    environment = {**os.environ, **urls, "TOUCHSTONE_ROLE": "worker"} | (
        {"SCALE_CHECKOUT": checkout} if checkout else {}
    )
    command = [sys.executable, str(HERE), "--task", task, "--out", out, "--segment", str(segment)]
    process = subprocess.Popen(command, env=environment, cwd=checkout or None)

    def wait() -> dict[str, Any]:
        if process.wait():
            raise RuntimeError(f"the task {task} ended with {process.returncode}")
        result: dict[str, Any] = json.loads(Path(out).read_text())
        Path(out).unlink()
        return result

    return wait


def _in_parts(urls: dict[str, str], n_workers: int, segment: int) -> dict[str, Any]:
    """Compute the campaign by so many workers; wall-clock time begins when they run, imports included."""
    from analytics.models import Computation
    from analytics.services.recomputation import queue_recomputation
    from touchstone import jobs
    from touchstone.models import Job

    jobs.poke = lambda lane: True
    for left in Job.objects.filter(kind="screening", state=Job.State.QUEUED):
        jobs.cancel(left)  # of the numbers before: a worker would do it within this measurement
    queue_recomputation(campaign=_campaign())
    started = time.perf_counter()
    found = [wait() for wait in [_start("worker", urls, segment=segment) for _ in range(n_workers)]]
    wall = time.perf_counter() - started
    newest = Computation.objects.latest("pk")
    return {
        "workers": n_workers,
        "judgments_a_segment": segment,
        "wall": wall,
        "seconds_stored": newest.seconds,
        "cpu": [one["cpu"] for one in found],
        "peak_megabytes": [one["peak_megabytes"] for one in found],
        "jobs": [one["jobs"] for one in found],
        "failed": found[0]["failed"],
        "digest": _digest(newest.pk),
    }


def _digest(key: int) -> str:
    """Return a hash of all rows of a computation, without keys and times."""
    from analytics.models import Computation

    computation, digest = Computation.objects.get(pk=key), hashlib.sha256()
    for relation in computation._meta.related_objects:
        name = relation.get_accessor_name()
        if name is None or relation.one_to_one:
            continue
        for row in getattr(computation, name).order_by("pk").values().iterator():
            kept = {k: v.hex() if isinstance(v, float) else repr(v) for k, v in row.items()}
            digest.update(json.dumps({k: v for k, v in kept.items() if k not in NOT_COMPARED}).encode())
    return digest.hexdigest()


def _load() -> float:
    return round(os.getloadavg()[0], 1)


def _measure_here(options: argparse.Namespace, urls: dict[str, str], n: int) -> dict[str, Any]:
    usual = 500_000
    alone = _start("alone", urls, checkout=options.former)()
    report: dict[str, Any] = {
        "load_at_start": _load(),
        "alone": alone | {"digest": _digest(alone["computation"])},
    }
    wanted = [(1, usual), (2, usual), (4, usual), (1, n), (2, max(1, n // 64))]
    report["parts"] = [_in_parts(urls, *one) for one in wanted[: options.most]]
    report["release"] = None if options.no_release else _start("release", urls)()
    report["judge"] = _start("judge", urls)()
    report["load_at_end"] = _load()
    return report


def _judge_only(options: argparse.Namespace, urls: dict[str, str], n: int) -> dict[str, Any]:
    return {"judge": _start("judge", urls)()}


def measure_world(n: int, work: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    """Make a campaign of so many judgments on servers of its own, and measure it."""
    with throwaway.folder() as root, throwaway.migrated(root) as servers:
        from parts import large_campaign

        (root / "runs").mkdir()
        started = time.perf_counter()
        sizes = {"n_items": n // EACH, "n_each": EACH, "n_assessors": ASSESSORS, "n_runs": RUNS}
        large_campaign.make(root / "runs", **sizes, seed=SEED)
        made_in = time.perf_counter() - started
        urls = {"DATABASE_URL": servers.database_url, "REDIS_URL": servers.redis_url}
        return {"judgments": n, "made_in_seconds": made_in, **work(urls)}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all results; `goals` says which are met."""
    large = measure_world(options.judgments, lambda urls: _measure_here(options, urls, options.judgments))
    command = [sys.executable, str(HERE), "--judge-only", "--judgments", str(options.beside), "--json"]
    small = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return report_of(large, small)


def report_of(large: dict[str, Any], small: dict[str, Any]) -> dict[str, Any]:
    parts, alone = large["parts"], large["alone"]
    by_workers = {one["workers"]: one["wall"] for one in parts[:3]}
    peaks = [peak for one in parts for peak in one["peak_megabytes"]]
    if large["release"]:
        peaks.append(large["release"]["peak_megabytes"])
    goals = {
        f"every worker below {GOAL_MEGABYTES:g} MB": max(peaks) < GOAL_MEGABYTES,
        "the same bytes, however many workers and segments": {one["digest"] for one in parts}
        == {alone["digest"]},
        f"by parts at most {GOAL_SLOWER:g} of the time of one job": by_workers[1]
        <= GOAL_SLOWER * alone["wall"],
        f"claim and submit at most {GOAL_CLAIM:g} of the smaller campaign": all(
            large["judge"][name] <= GOAL_CLAIM * small["judge"][name] for name in ("claim", "submit")
        ),
    }
    if 2 in by_workers:
        goals[f"two workers {GOAL_SPEEDUP:g} times as fast"] = by_workers[1] / by_workers[2] >= GOAL_SPEEDUP
    return {"benchmark": "scale", "part": "judgments", "large": large, "small": small, "goals": goals}


def _table(report: dict[str, Any]) -> str:
    large = report["large"]
    lines = [f"{large['judgments']:,} judgments, made in {large['made_in_seconds']:.0f} s"]
    lines.append(f"{'one job':34}{large['alone']['wall']:9.1f} s{large['alone']['peak_megabytes']:9.0f} MB")
    for one in large["parts"]:
        name = f"{one['workers']} workers, {one['judgments_a_segment']:,} a segment"
        lines.append(f"{name:34}{one['wall']:9.1f} s{max(one['peak_megabytes']):9.0f} MB")
    if large["release"]:
        release = large["release"]
        lines.append(f"{'release':34}{release['wall']:9.1f} s{release['peak_megabytes']:9.0f} MB")
    for of in (large, report["small"]):
        judged = of["judge"]
        name = f"of {of['judgments']:,}"
        lines.append(f"{name:34}claim {judged['claim']:.2f} ms, submit {judged['submit']:.2f} ms")
    return "\n".join(
        [*lines, *(f"{goal}: {'yes' if met else 'NO'}" for goal, met in report["goals"].items())]
    )


def main() -> None:
    """Make the data, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--beside", type=int, default=100_000)
    parser.add_argument("--former", default="", help="a checkout whose one job is the first measurement")
    parser.add_argument("--most", type=int, default=5, help="so many of the runs by parts")
    parser.add_argument("--no-release", action="store_true")
    parser.add_argument("--judge-only", action="store_true")
    parser.add_argument("--json", action="store_true")
    for hidden, kind in (("--task", str), ("--out", str), ("--segment", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _child(options)
        return
    if options.judge_only:
        report = measure_world(options.judgments, lambda urls: _judge_only(options, urls, options.judgments))
        print(json.dumps(report))
        return
    report = measure(options)
    print(json.dumps(report, indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
