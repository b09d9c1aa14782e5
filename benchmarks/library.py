"""What `touchstone_ir` costs: to import, to install, and in memory.

    python benchmarks/library.py [--rounds 5] [--runs 129] [--topics 50] [--lines 1000] [--installs]

Imports are those of fresh processes, in turn with `import scipy.stats`; the least of the rounds counts. --installs
installs the wheel and `numpy scipy polars` into fresh environments by uv, from its cache: the first of each only fills
it. Memory is the largest that a process reaches which compares all runs, read from files, by labels of what they
return within 10 and 500 gold labels.

JSON on standard output. Goals: the import at most .3 of that of scipy.stats, with `compare` used at most 1.0; none of
HEAVY loaded; the install at most 1.2 times that of the three packages, and below 10 s; memory below 1 GB.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
HEAVY = ("scipy.stats", "pandas", "altair", "httpx", "django", "lxml", "nh3")
IMPORTS = {
    "scipy.stats": "import scipy.stats",
    "touchstone_ir": "import touchstone_ir",
    "touchstone_ir.compare": "import touchstone_ir; touchstone_ir.compare",
}
PACKAGES = ("numpy>=2.2", "scipy>=1.15", "polars>=2.0")
DEPTH, N_GOLD = 10, 500


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=129)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--installs", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(compared(options.runs, options.topics, options.lines)))
        return
    told: dict[str, Any] = {"benchmark": "library", "imports": imports(options.rounds), "loaded": loaded()}
    if options.installs:
        told["installs"] = installs()
    size = [f"--{name}={getattr(options, name)}" for name in ("runs", "topics", "lines")]
    child = subprocess.run(
        [sys.executable, __file__, "--child", *size], check=True, capture_output=True, text=True
    )
    told["memory"] = json.loads(child.stdout)
    print(json.dumps(told, indent=2))


def imports(rounds: int) -> dict[str, float]:
    """Return the seconds of each import, and their ratios to that of scipy.stats."""
    seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for number in range(rounds):
        for name, code in sorted(IMPORTS.items(), reverse=bool(number % 2)):
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE)
            seconds[name].append(time.perf_counter() - started)
    least = {name: min(found) for name, found in seconds.items()}
    ratios = {f"{name} ratio": round(least[name] / least["scipy.stats"], 3) for name in least}
    return {name: round(value, 3) for name, value in least.items()} | ratios


def loaded() -> list[str]:
    """Return which of HEAVY a process holds that has made a comparison."""
    code = (
        "import sys, json, touchstone_ir as ts\n"
        "runs = [ts.read_run({'1': {'a': 1, 'b': 2}, '2': {'a': 2, 'b': 1}}, name=n) for n in 'xy']\n"
        "import polars as pl\n"
        "ts.compare(pl.concat(runs), 'P@1', labels={'1': {'a': 1, 'b': 0}, '2': {'a': 0, 'b': 1}})\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE, capture_output=True, text=True)
    found: list[str] = json.loads(told.stdout)
    return found


def installs() -> dict[str, float]:
    """Return the seconds of the wheel's install and of its packages', from uv's cache."""
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("--installs needs uv")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
            check=True,
            cwd=HERE / "wheel",
            stdout=sys.stderr,
        )
        (wheel,) = Path(folder).glob("*.whl")
        wanted = {"touchstone_ir": [str(wheel)], "packages": list(PACKAGES)}
        seconds: dict[str, list[float]] = {name: [] for name in wanted}
        for number in range(4):
            for name, packages in wanted.items():
                place = Path(folder) / f"{name}{number}"
                subprocess.run([uv, "venv", "-q", str(place)], check=True)
                started = time.perf_counter()
                install = [uv, "pip", "install", "-q", "--python", str(place / "bin" / "python"), *packages]
                subprocess.run(install, check=True)
                seconds[name].append(time.perf_counter() - started)
    least = {name: round(min(found[1:]), 3) for name, found in seconds.items()}
    return least | {"ratio": round(least["touchstone_ir"] / least["packages"], 3)}


def compared(n_runs: int, n_topics: int, n_lines: int) -> dict[str, float]:
    """Return seconds and the largest memory, in MB, of comparing so many runs."""
    import numpy as np
    import polars as pl

    import touchstone_ir as ts

    rng = np.random.default_rng(1)
    topics = pl.Series([f"t{topic}" for topic in range(n_topics)])
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for run in range(n_runs):
            docs = np.concatenate([_documents(rng, n_lines) for _ in range(n_topics)])
            rows = {
                "topic": topics.gather(np.repeat(np.arange(n_topics), n_lines)),
                "q0": pl.Series(["Q0"]).new_from_index(0, docs.size),
                "doc": pl.Series(docs).cast(pl.String),
                "rank": np.tile(np.arange(1, n_lines + 1), n_topics),
                "score": np.tile(np.arange(n_lines, 0, -1), n_topics),
                "tag": pl.Series([f"run{run}"]).new_from_index(0, docs.size),
            }
            paths.append(Path(folder) / f"run{run}")
            pl.DataFrame(rows).write_csv(paths[-1], include_header=False, separator=" ")
        started = time.perf_counter()
        runs = ts.read_run(*paths)
    pool = runs.filter(pl.col("rank") <= DEPTH).select("topic", "doc").unique(maintain_order=True)
    labels = pool.with_columns(grade=pl.Series(rng.integers(0, 2, pool.height)))
    chosen = ts.audit(runs, f"P@{DEPTH}", labels=labels, n=N_GOLD, seed=1)
    gold = chosen.join(labels, on=["topic", "doc"], how="left")
    found = ts.compare(runs, f"P@{DEPTH}", labels=labels, gold=gold)
    seconds = time.perf_counter() - started
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "lines": runs.height,
        "labelled": pool.height,
        "pairs_of_runs": len(found),
        "seconds": round(seconds, 1),
        "largest_mb": round(largest),
    }


def _documents(rng: Any, n_lines: int) -> Any:
    """Return documents of one topic, the first ones more alike among runs than the last."""
    import numpy as np

    order = np.argsort(np.arange(4 * n_lines) + rng.normal(0, n_lines, 4 * n_lines), kind="stable")
    return order[:n_lines]


if __name__ == "__main__":
    main()
