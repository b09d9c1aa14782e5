"""What a look at documents and runs takes beside their import, in time and in memory, as the product's jobs do them.

Run as a program it is one of these processes: `looks.py TASK COLLECTION [FILE ...]`, TASK `look` (a new import of the
files), `keep` (the newest import of the collection that was looked at), or `whole` (the control of the memory: a look
that reads the file at once). It prints the seconds of the job and the process's peak of resident memory (VmHWM).
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
WORDS = 300  # of a document
TITLE_INDEX = "judging_document_words"


def make_documents(path: Path, megabytes: int, seed: int) -> int:
    """Write JSON lines of so many megabytes; return how many documents there are."""
    import numpy as np

    rng = np.random.default_rng(seed)
    vocabulary = np.array(["".join(rng.choice(list("abcdefghijklmnop"), size=7)) for _ in range(5000)])
    number = written = 0
    with path.open("w") as target:
        while written < megabytes * 1_000_000:
            words = vocabulary[rng.integers(0, 5000, size=WORDS)]
            title = " ".join(words[:8])
            line = json.dumps({"_id": f"d{number:08d}", "title": title, "text": " ".join(words)}) + "\n"
            written += target.write(line)
            number += 1
    return number


def time_looks(folder: Path, runs: Path, megabytes: int, environment: dict[str, str]) -> dict[str, Any]:
    """Return seconds and peaks of looks and imports, and the share that a look is of the import.

    A look at a fifth of the documents tells whether memory grows with the file; the control does grow.
    """
    found: dict[str, Any] = {}
    small, large = folder / "fifth.jsonl", folder / "documents.jsonl"
    n_documents = [
        make_documents(small, max(1, megabytes // 5), seed=7),
        make_documents(large, megabytes, seed=7),
    ]
    for name, files in (("a fifth", [small]), ("documents", [large]), ("runs", sorted(runs.iterdir()))):
        found[f"look at {name}"] = _task(environment, "look", name, *map(str, files))
        found[f"import of {name}"] = _task(environment, "keep", name)
    for name, path in (("a fifth", small), ("documents", large)):
        found[f"control: {name} at once"] = _task(environment, "whole", name, str(path))
    shares = {
        what: found[f"look at {what}"]["seconds"] / found[f"import of {what}"]["seconds"]
        for what in ("documents", "runs")
    }
    growth = {
        what: found[f"{what} documents{end}"]["peak_megabytes"]
        - found[f"{what} a fifth{end}"]["peak_megabytes"]
        for what, end in (("look at", ""), ("import of", ""), ("control:", " at once"))
    }
    return {
        "megabytes": megabytes,
        "documents": n_documents,
        **found,
        "share_of_import": shares,
        "growth_of_peak_megabytes": growth,
        "title_index": _time_index(small, environment),
    }


def _time_index(path: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Return how much slower the index of titles makes an import, by imports with and without it, turn by turn."""
    import psycopg

    seconds: dict[str, list[float]] = {"without": [], "with": []}
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
        row = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = %s", [TITLE_INDEX]
        ).fetchone()
        assert row is not None
        for turn in range(3):
            for kind in seconds:
                connection.execute(f"DROP INDEX IF EXISTS {TITLE_INDEX}")
                if kind == "with":
                    connection.execute(row[0])
                name = f"{kind} the index, {turn}"
                _task(environment, "look", name, str(path))
                seconds[kind].append(_task(environment, "keep", name)["seconds"])
    times = [one / other for one, other in zip(seconds["with"], seconds["without"], strict=True)]
    return {**seconds, "times": sorted(times)[len(times) // 2]}


def _task(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run one of this program's tasks in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


# -- in a process of its own ------------------------------------------------------------------------------------


def _look(name: str, paths: list[str]) -> float:
    from django.core.files import File

    from judging.models import Collection
    from judging.services.looking import queue_look

    collection, _ = Collection.objects.get_or_create(name=name)
    files = [File(open(path, "rb"), name=Path(path).name) for path in paths]  # noqa: SIM115 (until the process ends)
    made = queue_look(collection=collection, files=files, user=None)
    return _run_job(made)


def _keep(name: str) -> float:
    from judging.models import Import
    from judging.services.keeping import queue_keep

    made = Import.objects.filter(collection__name=name, state=Import.State.LOOKED_AT).latest("created_at")
    queue_keep(made=made, user=None)
    return _run_job(made)


def _run_job(made: Any) -> float:
    """Do the newest job about the import, as a worker does it; return its seconds."""
    import judging.tasks  # noqa: F401 (registers the kinds of job)
    from judging.services.looking import job_of
    from touchstone import jobs

    job = job_of(made)
    assert job is not None
    started = time.perf_counter()
    jobs.run(job.pk)
    seconds = time.perf_counter() - started
    job.refresh_from_db()
    if job.state != "done":
        raise RuntimeError(job.error)
    return seconds


def _whole(path: str) -> float:
    started = time.perf_counter()
    documents = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert documents
    return time.perf_counter() - started


def main(task: str, name: str, *paths: str) -> None:
    """Do one task and print what it took."""
    sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "platform")]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
    import django

    django.setup()
    seconds = {"look": lambda: _look(name, list(paths)), "keep": lambda: _keep(name)}.get(
        task, lambda: _whole(paths[0])
    )()
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({"seconds": seconds, "peak_megabytes": int(peak[1]) / 1000 if peak else None}))


if __name__ == "__main__":
    main(*sys.argv[1:])
