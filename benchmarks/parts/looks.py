"""What a look at documents and runs takes beside their import, in time and in memory, as commands on one database."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = 300  # of a document


def make_documents(path: Path, megabytes: int, seed: int) -> int:
    """Write JSON lines of so many megabytes; return how many documents there are."""
    import numpy as np

    rng = np.random.default_rng(seed)
    vocabulary = np.array(["".join(rng.choice(list("abcdefghijklmnop"), size=7)) for _ in range(5000)])
    number = written = 0
    with path.open("w") as target:
        while written < megabytes * 1_000_000:
            text = " ".join(vocabulary[rng.integers(0, 5000, size=WORDS)])
            line = json.dumps({"_id": f"d{number:08d}", "title": f"Document {number}", "text": text}) + "\n"
            written += target.write(line)
            number += 1
    return number


Watched = Callable[[list[str]], dict[str, Any]]


def time_looks(folder: Path, runs: Path, megabytes: int, watched: Watched) -> dict[str, Any]:
    """Return seconds and peaks of memory of looks and imports, and the share that a look is of the import.

    `watched` runs a command of manage.py and measures it. A look at a tenth of the documents tells whether memory
    grows.
    """
    found: dict[str, Any] = {}
    for name, size in (("a tenth", max(1, megabytes // 10)), ("documents", megabytes)):
        path = folder / f"{name.replace(' ', '-')}.jsonl"
        make_documents(path, size, seed=7)
        found[f"look at {name}"] = watched(_look(path))
    found["import of documents"] = watched(
        ["import_documents", str(path), "--collection", "documents", "--create"]
    )
    found["look at runs"] = watched(_look(runs))
    paths = [str(one) for one in sorted(runs.iterdir())]
    found["import of runs"] = watched(["import_runs", *paths, "--collection", "runs", "--create"])
    shares = {
        what: found[f"look at {what}"]["seconds"] / found[f"import of {what}"]["seconds"]
        for what in ("documents", "runs")
    }
    return {"megabytes": megabytes, **found, "share_of_import": shares}


def _look(path: Path) -> list[str]:
    return ["import_collection", str(path), "--collection", "nothing", "--look"]
