"""Measure a release of a million judgments: 250,000 items, 500 assessors, 100 runs of which half are published.

    python benchmarks/release.py [--judgments 100000] [--json]

1. From the rows of the database to the packed file, by the product's own service in a fresh process, on one snapshot.
   Goals: below 60 s on two cores, and a peak of resident memory below 300 MB. The campaign's estimates are there
   already, as they are in a running product; how long they would take is in benchmarks/recompute.py.
2. The same again, with another hash seed, locale and time zone: the bytes must be equal.
3. Every file against the manifest, and the Merkle root, from the packed file.

The peer, in the same run, is what is written first: judgments row by row as objects with what they point to, a
dictionary each, one JSON Lines file and the qrels, zipped. It writes a small part of what a release holds, of a tenth
of the judgments; its seconds are scaled by what it left out, its memory is not. Every task has a process of its own;
its peak of resident memory is what the kernel says (VmHWM).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import throwaway

EACH, ASSESSORS, RUNS, SEED = 4, 500, 100, 1
MEASURES = ["P@10", "DCG@10"]
PEER_PART = 10
GOAL_SECONDS, GOAL_MEGABYTES = 60.0, 300.0
ELSEWHERE = {"PYTHONHASHSEED": "4711", "LC_ALL": "C", "TZ": "Asia/Kolkata"}


def _campaign() -> Any:
    from judging.models import Campaign

    return Campaign.objects.select_related("scale", "collection").get(name="large")


# ---- the tasks -----------------------------------------------------------------------------------


def _prepare() -> dict[str, Any]:
    """Compute the estimates, as the product does while judging goes on, and let half of the runs be published."""
    from analytics.services.recomputation import recompute
    from judging.models import Run

    campaign = _campaign()
    runs = Run.objects.filter(collection=campaign.collection).order_by("run_id")
    Run.objects.filter(pk__in=[run.pk for run in runs[::2]]).update(may_publish=True)
    computation = recompute(campaign=campaign, measures=MEASURES)
    return {"estimates": computation.estimates.count()}


def _release() -> dict[str, Any]:
    from django.db import transaction

    from analytics.releases.services.releasing import build, make_release

    release = make_release(campaign=_campaign(), version="1.0", actor=None, by_job=False)
    steps: list[tuple[float, int, str]] = []
    started, cpu = time.perf_counter(), time.process_time()

    def progress(_done: int, _total: int, note: str) -> None:
        words = re.sub(r"[\d,.]+", "N", note)
        if not steps or steps[-1][2] != words:
            steps.append((time.perf_counter() - started, _resident(), words))

    with transaction.atomic():
        build(release=release, progress=progress)
    seconds = time.perf_counter() - started
    ends = [*(at for at, _, _ in steps[1:]), seconds]
    return {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "load_of_the_machine": os.getloadavg()[0],
        "steps": [
            {"step": words, "seconds": end - at, "megabytes_at_its_beginning": megabytes}
            for (at, megabytes, words), end in zip(steps, ends, strict=True)
        ],
        "release": str(release.pk),
        "file": release.file.path,
        "sha256": release.sha256,
        "packed_megabytes": release.n_bytes / 1e6,
        "megabytes_of_files": sum(file["bytes"] for file in release.manifest["files"]) / 1e6,
        "counts": release.manifest["counts"],
    }


def _again(key: str) -> dict[str, Any]:
    from django.db import transaction

    from analytics.models import Release
    from analytics.releases.services.releasing import build_again

    started = time.perf_counter()
    with transaction.atomic():
        rebuilt = build_again(release=Release.objects.get(pk=key))
    return {
        "seconds": time.perf_counter() - started,
        "same_bytes": rebuilt.is_same,
        "files": list(rebuilt.files),
        "facts": list(rebuilt.facts),
    }


def _check(path: str) -> dict[str, Any]:
    """Compare every file with the manifest, as a reader does."""
    import zipfile

    from analytics.releases.manifest import differences

    started = time.perf_counter()
    with zipfile.ZipFile(path) as archive:
        top = archive.namelist()[0].partition("/")[0]
        known = json.loads(archive.read(f"{top}/manifest.json"))

        def read(name: str) -> Any:
            with archive.open(f"{top}/{name}") as stream:
                while block := stream.read(1 << 20):
                    yield block

        faults = differences(read, [name.partition("/")[2] for name in archive.namelist()], known)
    return {"seconds": time.perf_counter() - started, "differences": faults}


def _peer(folder: str) -> dict[str, Any]:
    """Write judgments and qrels as one writes them first: everything as objects, then everything as text."""
    import zipfile
    from collections import defaultdict

    from judging.models import Judgment

    started = time.perf_counter()
    judgments = Judgment.objects.filter(item__campaign=_campaign()).select_related(
        "item__topic", "item__document", "assessor", "slot"
    )
    n_all = judgments.count()
    rows, grades = [], defaultdict(list)
    for judgment in judgments[: n_all // PEER_PART].iterator():
        pair = judgment.item.topic.topic_id, judgment.item.document.doc_id
        rows.append(
            {
                "topic_id": pair[0],
                "doc_id": pair[1],
                "assessor": judgment.assessor_id,
                "purpose": judgment.slot.purpose if judgment.slot else "surplus",
                "grade": judgment.grade,
                "date": judgment.created_at.date().isoformat(),
            }
        )
        if judgment.slot is not None and judgment.slot.purpose == "judge":
            grades[pair].append(judgment.grade)
    rows.sort(key=lambda row: (row["topic_id"], row["doc_id"], row["assessor"]))
    with zipfile.ZipFile(Path(folder) / "peer.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("judgments.jsonl", "\n".join(json.dumps(row) for row in rows))
        lines = (f"{t} 0 {d} {sorted(own)[(len(own) - 1) // 2]}" for (t, d), own in sorted(grades.items()))
        archive.writestr("qrels.txt", "\n".join(lines))
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "judgments": len(rows), "scaled_seconds": seconds * n_all / len(rows)}


# ---- one process a task --------------------------------------------------------------------------


def _status(name: str) -> float:
    match = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) / 1000 if match else float("nan")


def _resident() -> float:
    return _status("VmRSS")


def _child(task: str, argument: str) -> None:
    throwaway.set_up_django(os.environ["DATABASE_URL"], os.environ["REDIS_URL"])
    import analytics.releases.services.releasing  # noqa: F401 (a worker has imported it before)

    tasks: dict[str, Callable[[], dict[str, Any]]] = {
        "prepare": _prepare,
        "release": _release,
        "again": lambda: _again(argument),
        "check": lambda: _check(argument),
        "peer": lambda: _peer(argument),
    }
    before = _resident()
    result = tasks[task]()
    result["megabytes_before"], result["peak_megabytes"] = before, _status("VmHWM")
    print(json.dumps(result))


def _start(servers: Any, task: str, argument: str = "", **environment: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--task", task, "--argument", argument]
    known = {
        **os.environ,
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        **environment,
    }
    child = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=known)
    result: dict[str, Any] = json.loads(child.stdout)
    return result


def measure(n_judgments: int) -> dict[str, Any]:
    """Return all results: `goals` says which are met."""
    with throwaway.folder() as root, throwaway.migrated(root) as servers:
        from django.db import connections
        from parts import large_campaign

        (root / "runs").mkdir()
        large_campaign.make(
            root / "runs",
            n_items=n_judgments // EACH,
            n_each=EACH,
            n_assessors=ASSESSORS,
            n_runs=RUNS,
            seed=SEED,
        )
        connections.close_all()
        prepared = _start(servers, "prepare")
        made = _start(servers, "release")
        again = _start(servers, "again", made["release"], **ELSEWHERE)
        checked = _start(servers, "check", made["file"])
        with tempfile.TemporaryDirectory() as folder:
            peer = _start(servers, "peer", folder)
    return {
        "judgments": made["counts"]["judgments"],
        "prepared": prepared,
        "release": made,
        "again": again,
        "check": checked,
        "peer": peer,
        "goals": {
            f"release below {GOAL_SECONDS:g} s": made["seconds"] < GOAL_SECONDS,
            f"peak below {GOAL_MEGABYTES:g} MB": made["peak_megabytes"] < GOAL_MEGABYTES,
            "same bytes elsewhere": again["same_bytes"],
            "every file as in the manifest": not checked["differences"],
        },
    }


def _table(report: dict[str, Any]) -> str:
    made, again, check, peer = (report[name] for name in ("release", "again", "check", "peer"))
    lines = [
        f"{report['judgments']:,} judgments: {made['megabytes_of_files']:.0f} MB in {made['packed_megabytes']:.0f} MB",
        f"{'':44}{'seconds':>9}{'peak MB':>9}",
        f"{'release':44}{made['seconds']:9.1f}{made['peak_megabytes']:9.0f}",
        f"    of these by this process's processor {made['cpu_seconds']:10.1f}",
    ]
    lines += [
        f"    {step['step'][:38]:40}{step['seconds']:9.1f}{step['megabytes_at_its_beginning']:9.0f}"
        for step in made["steps"]
    ]
    lines.append(f"{'the same elsewhere':44}{again['seconds']:9.1f}{again['peak_megabytes']:9.0f}")
    lines.append(f"{'check of every file':44}{check['seconds']:9.1f}{check['peak_megabytes']:9.0f}")
    lines.append(
        f"{'peer: judgments and qrels, scaled':44}{peer['scaled_seconds']:9.1f}{peer['peak_megabytes']:9.0f}"
    )
    lines += [f"{goal}: {'yes' if met else 'NO'}" for goal, met in report["goals"].items()]
    return "\n".join(lines)


def main() -> None:
    """Make the data, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    for hidden in ("--task", "--argument"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _child(options.task, options.argument)
        return
    report = measure(options.judgments)
    print(json.dumps(report, indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
