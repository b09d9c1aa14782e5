"""Measure the import and the evaluation of a year of TREC runs: 129 runs x 50 topics x 1,000 documents.

    python benchmarks/import.py [--runs 129] [--peer-runs 129] [--megabytes 1000] [--looks]

Seeded runs with overlapping documents are made in a temporary folder, plain and gzipped. Our import (validation
and writing of the stored form included), our evaluation from the stored form, and the peers (the readers of
ir_measures and pytrec_eval, the evaluation of pytrec_eval) each run in a process of their own, one after the
other; its peak of resident memory is what the kernel says (VmHWM). `manage.py import_runs` does the same into a
throw-away PostgreSQL. Then looks at documents of so many megabytes, at a fifth of them, and at the runs, each beside
its import (parts/looks.py): a look may take .6 of it, and its memory must not grow with the file. The same import with
and without the index of titles. One JSON object goes to standard output.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil
from parts.looks import time_looks

REPOSITORY = Path(__file__).resolve().parents[1]
# Run as a program, Python looks for modules beside it first, where judging.py is a benchmark.
sys.path.insert(0, str(REPOSITORY))
MEASURES = {"P@10": "P_10", "nDCG@10": "ndcg_cut_10", "AP": "map"}
N_TOPICS, DEPTH, N_CANDIDATES, N_JUDGED, SEED = 50, 1000, 3000, 1500, 20240607


def _documents(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return candidate ids [topic, candidate], shaped like ClueWeb's, and their grades; most are 0."""
    numbers = rng.choice(50_000_000, size=(N_TOPICS, N_CANDIDATES), replace=False)
    names = [
        f"clueweb09-en{n // 1_000_000:04d}-{n // 10_000 % 100:02d}-{n % 10_000:05d}" for n in numbers.ravel()
    ]
    grades = rng.choice(4, p=[0.96, 0.025, 0.01, 0.005], size=numbers.shape)
    return np.array(names).reshape(numbers.shape), grades


def _run(number: int, documents: np.ndarray, grades: np.ndarray) -> bytes:
    """Return one system's run; systems differ in how much of their score is signal."""
    rng = np.random.default_rng([SEED, number])
    scores = rng.uniform(0.2, 1.2) * grades + rng.normal(size=grades.shape) + 12
    order = np.argsort(-scores, axis=1)[:, :DEPTH]
    topics = np.repeat(np.arange(1, N_TOPICS + 1), DEPTH)
    lines = pl.DataFrame(
        {
            "topic": topics,
            "iteration": pl.repeat("Q0", len(topics), eager=True),
            "document": np.take_along_axis(documents, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, DEPTH + 1), N_TOPICS),
            "score": np.take_along_axis(scores, order, axis=1).ravel(),
            "tag": pl.repeat(f"system{number:03d}", len(topics), eager=True),
        }
    )
    return lines.write_csv(include_header=False, separator=" ", float_precision=4).encode()


def _make(folder: Path, n_runs: int) -> None:
    """Write qrels and runs."""
    rng = np.random.default_rng(SEED)
    documents, grades = _documents(rng)
    with (folder / "qrels").open("w") as stream:
        for topic in range(N_TOPICS):
            judged = np.union1d(np.flatnonzero(grades[topic]), np.arange(N_JUDGED))
            rows = zip(documents[topic, judged], grades[topic, judged], strict=True)
            stream.writelines(f"{topic + 1} 0 {name} {grade}\n" for name, grade in rows)
    for kind in ("plain", "gzip"):
        (folder / kind).mkdir()

    def one(number: int) -> None:
        data = _run(number, documents, grades)
        (folder / "plain" / f"run{number:03d}").write_bytes(data)
        (folder / "gzip" / f"run{number:03d}.gz").write_bytes(gzip.compress(data, 4))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(n_runs)))


def _import(folder: Path, kind: str) -> dict[str, Any]:
    from judging.rankings import convert_runs

    target = folder / f"stored-{kind}"
    target.mkdir()
    paths = sorted((folder / kind).iterdir())
    started = time.perf_counter()
    summaries = convert_runs(paths, lambda index, _, payload: (target / f"{index:03d}").write_bytes(payload))
    seconds = time.perf_counter() - started
    rows = sum(summary.n_rows for summary in summaries)
    stored = sum(path.stat().st_size for path in target.iterdir())
    return {
        "seconds": seconds,
        "rows": rows,
        "rows_per_second": rows / seconds,
        "stored_megabytes": stored / 1e6,
    }


def _evaluate(folder: Path) -> dict[str, Any]:
    from judging.rankings import read_rankings
    from judging.trec import read_qrels
    from sampling.measures.scoring import evaluate_topics, index_qrels, measure_on_scale

    started = time.perf_counter()
    records = list(read_qrels(folder / "qrels", "qrels"))
    read = time.perf_counter()
    judged = index_qrels(records)
    indexed = time.perf_counter()
    measures = [measure_on_scale(name, range(5), 1) for name in MEASURES]
    scored = [
        evaluate_topics(read_rankings(path), judged, measures)
        for path in sorted((folder / "stored-plain").iterdir())
    ]
    values = [
        dict(zip(one.measures, one.values[:, one.returned].mean(axis=1).tolist(), strict=True))
        for one in scored
    ]
    return {
        "seconds": time.perf_counter() - indexed,
        "index_qrels_seconds": indexed - read,
        "read_qrels_seconds": read - started,
        "n_qrels": len(records),
        "values": values,
    }


def _peer_ir_measures(folder: Path, n_runs: int) -> dict[str, Any]:
    import ir_measures

    started = time.perf_counter()
    rows = sum(1 for path in _first(folder, n_runs) for _ in ir_measures.read_trec_run(str(path)))
    return {"seconds": time.perf_counter() - started, "rows": rows}


def _peer_pytrec_eval(folder: Path, n_runs: int) -> dict[str, Any]:
    import pytrec_eval

    with (folder / "qrels").open() as stream:
        evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(stream), set(MEASURES.values()))
    reading = evaluating = 0.0
    values = []
    for path in _first(folder, n_runs):
        started = time.perf_counter()
        with path.open() as stream:
            run = pytrec_eval.parse_run(stream)
        parsed = time.perf_counter()
        result = evaluator.evaluate(run)
        reading, evaluating = reading + parsed - started, evaluating + time.perf_counter() - parsed
        values.append(
            {ours: float(np.mean([row[name] for row in result.values()])) for ours, name in MEASURES.items()}
        )
    return {"seconds": evaluating, "reading_seconds": reading, "values": values}


def _first(folder: Path, n_runs: int) -> list[Path]:
    return sorted((folder / "plain").iterdir())[:n_runs]


def _child(folder: Path, task: str, n_runs: int) -> None:
    """Do one task in this process and print its result with the peak memory."""
    tasks: dict[str, Callable[[], dict[str, Any]]] = {
        "import plain": lambda: _import(folder, "plain"),
        "import gzip": lambda: _import(folder, "gzip"),
        "evaluate": lambda: _evaluate(folder),
        "ir_measures reader": lambda: _peer_ir_measures(folder, n_runs),
        "pytrec_eval": lambda: _peer_pytrec_eval(folder, n_runs),
    }
    result = tasks[task]()
    # VmHWM and not ru_maxrss: the latter remembers the size of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    result["peak_megabytes"] = int(peak[1]) / 1000 if peak else None
    print(json.dumps(result))


def _start(folder: Path, task: str, n_runs: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(folder), "--task", task, "--peer-runs", str(n_runs)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def _into_database(folder: Path, megabytes: int, *, looks_alone: bool = False) -> dict[str, Any]:
    """Return what `manage.py import_runs` takes, plain and gzipped, and looks at files beside their imports."""
    from touchstone.embedded import Servers

    servers = Servers(folder / "servers")
    environment = {
        **os.environ,
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": "of-the-benchmark",
        "HTTPS": "0",
        "TOUCHSTONE_VAR": str(folder / "var"),
    }
    servers.start()
    try:
        _watched(["migrate", "--verbosity", "0"], environment)
        kinds = () if looks_alone else ("plain", "gzip")
        imports = {
            f"manage.py import_runs, {kind}": _command(folder / kind, kind, environment) for kind in kinds
        }
        return imports | {"looks": time_looks(folder, folder / "plain", megabytes, environment)}
    finally:
        servers.stop()


def _command(runs: Path, collection: str, environment: dict[str, str]) -> dict[str, Any]:
    paths = [str(path) for path in sorted(runs.iterdir())]
    before = _database_megabytes(environment["DATABASE_URL"])
    result = _watched(["import_runs", *paths, "--collection", collection, "--create"], environment)
    result["database_growth_megabytes"] = _database_megabytes(environment["DATABASE_URL"]) - before
    return result


def _database_megabytes(url: str) -> float:
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return float(row[0]) / 1e6 if row else 0.0


def _watched(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run manage.py; return its seconds and the peak of its resident memory, children included."""
    started, peak, ended = time.perf_counter(), 0, threading.Event()
    child = subprocess.Popen(
        [sys.executable, str(REPOSITORY / "manage.py"), *command], env=environment, stdout=subprocess.DEVNULL
    )

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            peak = max(peak, _resident(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = child.wait()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if code:
        raise RuntimeError(f"manage.py {command[0]} ended with {code}")
    return {"seconds": seconds, "peak_megabytes": peak / 1e6}


def _resident(pid: int) -> int:
    try:
        leader = psutil.Process(pid)
        return sum(process.memory_info().rss for process in (leader, *leader.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0


def _ratio(peer: float, n_peer: int, ours: float, n_ours: int) -> float:
    """Return how many times faster we are a run."""
    return (peer / n_peer) / (ours / n_ours)


def main() -> None:
    """Make the files, measure, print JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=129)
    parser.add_argument("--peer-runs", type=int, default=129)
    parser.add_argument("--megabytes", type=int, default=1000, help="of the documents that are looked at")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--looks", action="store_true", help="measure looks and their imports alone")
    options = parser.parse_args()
    if options.task:
        _child(options.folder, options.task, options.peer_runs)
        return
    n_runs, n_peer = options.runs, min(options.runs, options.peer_runs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make(folder, n_runs)
        if options.looks:
            print(json.dumps(_into_database(folder, options.megabytes, looks_alone=True), indent=2))
            return
        sizes = {
            f"{kind}_megabytes": sum(p.stat().st_size for p in (folder / kind).iterdir()) / 1e6
            for kind in ("plain", "gzip")
        }
        names = ("import plain", "import gzip", "evaluate", "ir_measures reader", "pytrec_eval")
        results = {task: _start(folder, task, n_peer) for task in names}
        results |= _into_database(folder, options.megabytes)
    ours, theirs = results["evaluate"].pop("values"), results["pytrec_eval"].pop("values")
    differences = [abs(a[m] - b[m]) for a, b in zip(ours, theirs, strict=False) for m in MEASURES]
    plain, evaluated = results["import plain"]["seconds"], results["evaluate"]["seconds"]
    report = {
        "benchmark": "import",
        "size": {
            "runs": n_runs,
            "peer_runs": n_peer,
            "topics": N_TOPICS,
            "depth": DEPTH,
            "seed": SEED,
            **sizes,
        },
        "results": results,
        "times_faster": {
            "import against ir_measures' reader": _ratio(
                results["ir_measures reader"]["seconds"], n_peer, plain, n_runs
            ),
            "import against pytrec_eval's reader": _ratio(
                results["pytrec_eval"]["reading_seconds"], n_peer, plain, n_runs
            ),
            "evaluation against pytrec_eval": _ratio(
                results["pytrec_eval"]["seconds"], n_peer, evaluated, n_runs
            ),
        },
        "max_absolute_difference_from_pytrec_eval": max(differences),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
