"""Measure the run format, Parquet, against the layout of our own that it replaced (parts/mapped_runs.py).

    python benchmarks/run_format.py [--runs 20] [--topics 50] [--depth 1000] [--rounds 5]

Seeded runs with ids shaped like ClueWeb's are written, read whole, read for the first 100 of every topic, and read for
evaluation (topics and hashes). Both formats are given the same columns in memory and must give the same rows back. They
take turns, file by file; of each file the fastest round counts. JSON on standard output: milliseconds and bytes a run,
and Parquet's as multiples of the former's. The goal is less than 2 in each of the first three.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

# Run as a program, Python looks for modules beside it first, where judging.py is a benchmark.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import mapped_runs

from judging.rankings import pack_run, rankings_frame, read_rankings, top
from judging.run_columns import RunColumns, hash_pairs

SEED, FIRST, GOAL = 20240607, 100, 2.0
Tasks = dict[str, Callable[[RunColumns, Path], Any]]

PARQUET: Tasks = {
    "write": lambda run, path: path.write_bytes(pack_run(run)),
    "read whole": lambda _, path: rankings_frame(read_rankings(path)),
    "read the top 100": lambda _, path: top(read_rankings(path), FIRST),
    "read for evaluation": lambda _, path: int(read_rankings(path).hashes.max()),
}
FORMER: Tasks = {
    "write": mapped_runs.write,
    "read whole": lambda _, path: mapped_runs.whole(mapped_runs.read(path)),
    "read the top 100": lambda _, path: mapped_runs.top(mapped_runs.read(path), FIRST),
    "read for evaluation": lambda _, path: int(mapped_runs.read(path).arrays["hashes"].max()),
}
FORMATS = {"former": FORMER, "parquet": PARQUET}


def make_run(number: int, n_topics: int, depth: int) -> RunColumns:
    """Return a run in trec_eval's order."""
    rng = np.random.default_rng([SEED, number])
    numbers = rng.choice(50_000_000, size=n_topics * depth, replace=False)
    frame = pl.DataFrame(
        {
            "topic_id": np.repeat([f"{topic:03d}" for topic in range(1, n_topics + 1)], depth),
            "doc_id": [f"clueweb09-en{n // 1_000_000:04d}-{n // 10_000 % 100:02d}-{n % 10_000:05d}" for n in numbers],
            "score": rng.normal(12, 2, size=n_topics * depth).astype(np.float32).astype(np.float64),
        }
    ).sort("topic_id", "score", "doc_id", descending=[False, True, True])  # fmt: skip
    topics = frame["topic_id"].to_list()
    return RunColumns(
        run_tag=f"system{number:03d}",
        topic_ids=tuple(sorted(set(topics))),
        offsets=np.arange(n_topics + 1) * depth,
        doc_ids=frame["doc_id"],
        scores=frame["score"].to_numpy(),
        pair_hashes=hash_pairs(topics, frame["doc_id"].to_list()),
    )


def measure(n_runs: int, n_topics: int, depth: int, n_rounds: int) -> dict[str, Any]:
    """Return milliseconds and bytes a run by format, and the multiples."""
    times = {name: {task: np.full((n_runs, n_rounds), np.inf) for task in FORMER} for name in FORMATS}
    sizes = dict.fromkeys(FORMATS, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_runs):
            run = make_run(number, n_topics, depth)
            for turn in range(n_rounds):
                for task in FORMER:
                    answers = {}
                    for name, tasks in FORMATS.items():
                        path = Path(folder, f"{number}-{name}")
                        started = time.perf_counter()
                        answers[name] = tasks[task](run, path)
                        times[name][task][number, turn] = 1000 * (time.perf_counter() - started)
                    if task != "write" and not _same(answers["former"], answers["parquet"]):
                        raise RuntimeError(f"{task}: the formats differ")
            for name in FORMATS:
                sizes[name] += Path(folder, f"{number}-{name}").stat().st_size
    means = {
        name: {task: float(values.min(axis=1).mean()) for task, values in tasks.items()}
        for name, tasks in times.items()
    }
    return {
        "milliseconds_a_run": means,
        "bytes_a_run": {name: size / n_runs for name, size in sizes.items()},
        "multiples": {task: means["parquet"][task] / means["former"][task] for task in FORMER},
    }


def _same(a: Any, b: Any) -> bool:
    return a.equals(b) if isinstance(a, pl.DataFrame) else bool(a == b)


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("runs", 20), ("topics", 50), ("depth", 1000), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    report = measure(options.runs, options.topics, options.depth, options.rounds)
    print(json.dumps({"benchmark": "run_format", "goal": GOAL, "options": vars(options), **report}, indent=2))


if __name__ == "__main__":
    main()
