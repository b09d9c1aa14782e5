"""Measure a draw at the scale of a year of TREC: 129 runs x 50 topics x 1,000 documents, a pool of 1.7 million pairs.

    python benchmarks/draw_scale.py [--quick] [--json]

1. From the runs as the product stores them (judging/rankings.py) to the items drawn: frame with every run's ranks,
   prior from all runs, ranking design mixed with the average run and a uniform floor, permanent random numbers,
   Poisson draw, and the frame file that records it. Goals: below 10 s and 2 GB.
2. From sizes in memory to the items drawn, for 1, 3 and 10 million pairs whose ids are a polars Series. Goals:
   10 million below 3 s, and a cost per pair that is flat within 20 %.
3. The preview of a design on the pool of part 1 with the corrected number, which a planned audit of 300 gives, beside
   the same without it. Goal: processor seconds from the stored runs at most 1.5 times those without it.

The peers do the same as a textbook has it, in the same run: a dictionary of pairs, ranks and weights as dense
[run, item] arrays, rescaling until no probability exceeds 1, and one call of hashlib's BLAKE2b a pair. Every task has a
process of its own; its peak of resident memory is what the kernel says (VmHWM). Wall-clock and processor seconds are
both given: processor seconds compare better when something else is running. The least of three repetitions counts in
part 2.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

# Run as a program, Python looks for modules beside it first, where judging.py is a benchmark.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SEED, MEASURE, SHARE_DRAWN, OTHERS, FLOOR = 20240607, "DCG@1000", 0.01, 0.15, 0.05
FULL = {"runs": 129, "topics": 50, "depth": 1000, "candidates": 60_000}
QUICK = {"runs": 12, "topics": 10, "depth": 300, "candidates": 3_000}
QUESTIONS, MOST_OF_PREVIEW = ("pair", "ranking"), 1.5
PAIRS, QUICK_PAIRS = (1_000_000, 3_000_000, 10_000_000), (100_000, 300_000)
N_PEER_PAIRS, REPETITIONS, FAMILY = 1_000_000, 3, 5
Seconds = dict[str, dict[str, float]]


@contextmanager
def _timed(seconds: Seconds, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    seconds[name] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _total(seconds: Seconds) -> dict[str, float]:
    return {clock: sum(part[clock] for part in seconds.values()) for clock in ("wall", "cpu")}


# ---- data ----------------------------------------------------------------------------------------


def _rankings_of_topic(topic: int, size: dict[str, int], noise: np.ndarray) -> np.ndarray:
    """Return candidates [run, rank]: quality that all runs see, what a family of five shares, and a run's own noise."""
    rng = np.random.default_rng([SEED, topic])
    n, depth = size["candidates"], size["depth"]
    quality = rng.exponential(1.0, n).astype(np.float32)
    families = rng.standard_normal((-(-size["runs"] // FAMILY), n), dtype=np.float32)
    ranked = np.empty((size["runs"], depth), dtype=np.int64)
    for run in range(size["runs"]):
        score = quality + families[run // FAMILY] + rng.standard_normal(n, dtype=np.float32) * noise[run]
        best = np.argpartition(-score, depth)[:depth]
        ranked[run] = best[np.argsort(-score[best], kind="stable")]
    return ranked


def _make(folder: Path, size: dict[str, int]) -> None:
    """Write the runs in the product's stored form."""
    from judging.rankings import write_rankings

    rng = np.random.default_rng(SEED)
    noise = (rng.uniform(0.87, 3.48, size["runs"])).astype(np.float32)
    n_topics, depth = size["topics"], size["depth"]
    ranked = np.stack([_rankings_of_topic(topic, size, noise) for topic in range(n_topics)])
    numbers = rng.choice(50_000_000, size=(n_topics, size["candidates"]), replace=False)
    topics = np.repeat(sorted(str(301 + topic) for topic in range(n_topics)), depth)
    folder.mkdir()
    for run in range(size["runs"]):
        chosen = np.take_along_axis(numbers, ranked[:, run], axis=1).ravel()
        frame = pl.DataFrame(
            {
                "topic_id": topics,
                "doc_id": _document_ids(chosen),
                "rank": np.tile(np.arange(1, depth + 1), n_topics),
                "score": np.tile(np.arange(depth, 0, -1.0), n_topics),
                "run_tag": pl.repeat(f"system{run:03d}", n_topics * depth, eager=True),
            }
        )
        write_rankings(frame, folder / f"{run:03d}")


def _document_ids(numbers: np.ndarray) -> pl.Series:
    """Return ids shaped like ClueWeb's, 25 bytes each."""
    digits = pl.Series(numbers).cast(pl.String).str.zfill(8)
    parts = pl.DataFrame({"d": digits}).select(
        pl.format(
            "clueweb09-en00{}-{}-0{}",
            *(pl.col("d").str.slice(start, size) for start, size in ((0, 2), (2, 2), (4, 4))),
        )
    )
    return parts.to_series()


# ---- the product ---------------------------------------------------------------------------------


def _frame_and_draw(folder: Path) -> dict[str, Any]:
    """Do what the product does from the stored runs to the items drawn, without its database."""
    from experiments.papers.sizes import binary_spread
    from judging.rankings import read_rankings
    from sampling.contrasts import importance
    from sampling.designs import mixture, normalise, uniform_design
    from sampling.draws import permanent_random_numbers, poisson_draw
    from sampling.measures.design_weights import design_weights
    from sampling.measures.registry import parse_linear
    from sampling.pooling import pool_of_rankings
    from sampling.questions import nested_probabilities, prior_of_runs

    seconds: Seconds = {}
    with _timed(seconds, "frame"):
        runs = [read_rankings(path) for path in sorted(folder.iterdir())]
        pooled = pool_of_rankings(runs, FULL["depth"])
    n_runs, n_items = pooled.returned.shape
    with _timed(seconds, "prior and contrast"):
        topics = pooled.topic_ids.size
        weights = design_weights(parse_linear(MEASURE), pooled.returned, topics)
        says = importance("ranking", weights, range(n_runs))
        prior = prior_of_runs(pooled.returned, FULL["depth"])
    with _timed(seconds, "probabilities"):
        question = normalise(np.sqrt(says.squared_contrast) * binary_spread(prior))
        sizes = mixture(question, [says.average_run, uniform_design(n_items)], [OTHERS, FLOOR])
        pi = nested_probabilities(sizes, np.zeros(n_items), SHARE_DRAWN * n_items)
    with _timed(seconds, "random numbers"):
        topic_ids = pl.Series(list(pooled.topic_ids), dtype=pl.String).gather(pooled.topic_index)
        doc_ids = pl.Series(list(pooled.doc_ids), dtype=pl.String)
        numbers = permanent_random_numbers(topic_ids, doc_ids, SEED)
    with _timed(seconds, "draw"):
        drawn = poisson_draw(pi, numbers)
    with _timed(seconds, "frame file"):
        frame = {"topic_id": topic_ids, "doc_id": doc_ids, "pi": pi, "prior": prior, "number": numbers}
        pl.DataFrame(frame).write_parquet(folder.parent / "frame.parquet", compression="zstd")
    return {
        "pairs": n_items,
        "ranks": int(pooled.returned.value.size),
        "drawn": int(drawn.size),
        "seconds": seconds,
        "total": _total(seconds),
        "checks": _checks(sizes, pi, drawn),
    }


def _checks(sizes: np.ndarray, pi: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    """Return what the peer must find, too, and how far the number drawn is from what was expected."""
    spread = float(np.sqrt((pi * (1 - pi)).sum()))
    return {
        "sizes": sizes[:: max(sizes.size // 1000, 1)].tolist(),
        "standard_deviations_from_expected_count": (drawn.size - float(pi.sum())) / spread,
    }


def _sizes(n_pairs: int) -> np.ndarray:
    """Return sizes as a design has them: few large, many small."""
    return np.random.default_rng(SEED).lognormal(0.0, 1.5, n_pairs)


def _sizes_to_draw(n_pairs: int) -> dict[str, Any]:
    from sampling.designs import inclusion_probabilities
    from sampling.draws import permanent_random_numbers, poisson_draw

    sizes = _sizes(n_pairs)
    doc_ids = _document_ids(np.random.default_rng(SEED).integers(0, 50_000_000, n_pairs))
    topic_ids = pl.Series([f"{301 + topic}" for topic in range(50)]).gather(
        np.arange(n_pairs) * 50 // n_pairs
    )
    repetitions = []
    for _ in range(REPETITIONS):
        seconds: Seconds = {}
        with _timed(seconds, "probabilities"):
            pi = inclusion_probabilities(sizes, SHARE_DRAWN * n_pairs)
        with _timed(seconds, "random numbers"):
            numbers = permanent_random_numbers(topic_ids, doc_ids, SEED)
        with _timed(seconds, "draw"):
            drawn = poisson_draw(pi, numbers)
        repetitions.append(seconds)
    best = min(repetitions, key=lambda seconds: _total(seconds)["cpu"])
    total = _total(best)
    return {
        "pairs": n_pairs,
        "drawn": int(drawn.size),
        "seconds": best,
        "total": total,
        "cpu_nanoseconds_a_pair": total["cpu"] / n_pairs * 1e9,
        "expected_count_off_by": abs(float(pi.sum()) / (SHARE_DRAWN * n_pairs) - 1),
    }


# ---- the peers: as a textbook has it -------------------------------------------------------------


def _rescaled(sizes: np.ndarray, count: float) -> np.ndarray:
    """Return probabilities by rescaling what is not certain until none exceeds 1."""
    pi = count * sizes / sizes.sum()
    while (pi > 1).any():
        certain = pi >= 1
        rest = ~certain
        pi = np.where(certain, 1.0, (count - certain.sum()) * sizes / sizes[rest].sum())
    return pi


def _blake2b_numbers(topic_ids: list[str], doc_ids: list[str]) -> np.ndarray:
    key = SEED.to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(f"{topic_id}\t{doc_id}".encode(), key=key, digest_size=8).digest()
        for topic_id, doc_id in zip(topic_ids, doc_ids, strict=True)
    )
    return (np.frombuffer(digests, dtype="<u8") >> np.uint64(12)) * 2.0**-52


def _peer_frame_and_draw(folder: Path) -> dict[str, Any]:
    from judging.rankings import read_rankings, top

    seconds: Seconds = {}
    with _timed(seconds, "frame"):
        tops = [top(read_rankings(path), FULL["depth"]) for path in sorted(folder.iterdir())]
        pairs = {pair for rows in tops for pair in rows.select("topic_id", "doc_id").iter_rows()}
        frame = sorted(pairs)
        place = {pair: index for index, pair in enumerate(frame)}
        ranks = np.zeros((len(tops), len(frame)), dtype=np.int64)
        for run, rows in enumerate(tops):
            items = [place[pair] for pair in rows.select("topic_id", "doc_id").iter_rows()]
            ranks[run, items] = rows["rank"].to_numpy()
    del tops, pairs, place
    with _timed(seconds, "prior and contrast"):
        depth, n_topics = FULL["depth"], len({topic for topic, _ in frame})
        weights = np.where(ranks > 0, 1 / np.log2(ranks + 1.0, where=ranks > 0, out=np.ones(ranks.shape)), 0)
        weights /= n_topics
        far = 10 * max(depth, int(ranks.max()))
        prior = (16 / (np.where(ranks == 0, far, ranks) + 34)).mean(axis=0)
        contrast = np.sqrt(((weights - weights.mean(axis=0)) ** 2).sum(axis=0))
        average = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    with _timed(seconds, "probabilities"):
        question = contrast * np.sqrt(prior * (1 - prior))
        sizes = (1 - OTHERS - FLOOR) * question / question.sum() + OTHERS * average + FLOOR / len(frame)
        pi = _rescaled(sizes, SHARE_DRAWN * len(frame))
    with _timed(seconds, "random numbers"):
        numbers = _blake2b_numbers([topic for topic, _ in frame], [doc for _, doc in frame])
    with _timed(seconds, "draw"):
        drawn = np.flatnonzero(numbers < pi)
    return {
        "pairs": len(frame),
        "ranks": int(np.count_nonzero(ranks)),
        "drawn": int(drawn.size),
        "seconds": seconds,
        "total": _total(seconds),
        "checks": _checks(sizes, pi, drawn),
    }


def _peer_sizes_to_draw(n_pairs: int) -> dict[str, Any]:
    sizes = _sizes(n_pairs)
    doc_ids = _document_ids(np.random.default_rng(SEED).integers(0, 50_000_000, n_pairs)).to_list()
    topic_ids = [f"{301 + item * 50 // n_pairs}" for item in range(n_pairs)]
    seconds: Seconds = {}
    with _timed(seconds, "probabilities"):
        pi = _rescaled(sizes, SHARE_DRAWN * n_pairs)
    with _timed(seconds, "random numbers"):
        numbers = _blake2b_numbers(topic_ids, doc_ids)
    with _timed(seconds, "draw"):
        drawn = np.flatnonzero(numbers < pi)
    total = _total(seconds)
    return {
        "pairs": n_pairs,
        "drawn": int(drawn.size),
        "seconds": seconds,
        "total": total,
        "cpu_nanoseconds_a_pair": total["cpu"] / n_pairs * 1e9,
    }


def _preview(folder: Path, question: str) -> dict[str, Any]:
    from parts.preview_scale import preview_seconds

    result: dict[str, Any] = preview_seconds(folder, MEASURE, FULL["depth"], question)
    return result


# ---- one process a task --------------------------------------------------------------------------


def _child(task: str, folder: Path, n_pairs: int) -> None:
    tasks: dict[str, Callable[[], dict[str, Any]]] = {
        "frame and draw": lambda: _frame_and_draw(folder),
        "peer: frame and draw": lambda: _peer_frame_and_draw(folder),
        "sizes to draw": lambda: _sizes_to_draw(n_pairs),
        "peer: sizes to draw": lambda: _peer_sizes_to_draw(n_pairs),
        **{f"preview: {name}": partial(_preview, folder, name) for name in QUESTIONS},
    }
    result = tasks[task]()
    # VmHWM and not ru_maxrss: the latter remembers the size of the process that started this one.
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    result["peak_megabytes"] = int(peak[1]) / 1000 if peak else None
    print(json.dumps(result))


def _start(task: str, folder: Path, n_pairs: int = 0) -> dict[str, Any]:
    command = [sys.executable, __file__, "--task", task, "--folder", str(folder), "--pairs", str(n_pairs)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def measure(quick: bool) -> dict[str, Any]:
    """Return all results: `goals` says which are met."""
    size, pairs = (QUICK, QUICK_PAIRS) if quick else (FULL, PAIRS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        _make(folder, size)
        ours, peer = _start("frame and draw", folder), _start("peer: frame and draw", folder)
        previews = [_start(f"preview: {name}", folder) for name in QUESTIONS]
        scaled = [_start("sizes to draw", folder, n_pairs) for n_pairs in pairs]
        scaled_peer = _start("peer: sizes to draw", folder, min(pairs[-1], N_PEER_PAIRS))
    sizes, peer_sizes = (np.array(result["checks"].pop("sizes")) for result in (ours, peer))
    costs = [result["cpu_nanoseconds_a_pair"] for result in scaled]
    return {
        "benchmark": "draw_scale",
        "quick": quick,
        "size": {**size, "seed": SEED, "measure": MEASURE, "share_drawn": SHARE_DRAWN},
        "input": "runs as the product stores them; part 2: tables in memory",
        "frame_and_draw": {"ours": ours, "peer": peer},
        "previews": previews,
        "sizes_to_draw": {"ours": scaled, "peer": scaled_peer},
        "times_faster": {clock: peer["total"][clock] / ours["total"][clock] for clock in ("wall", "cpu")},
        "times_less_memory": peer["peak_megabytes"] / ours["peak_megabytes"],
        "times_faster_from_sizes_a_pair": scaled_peer["cpu_nanoseconds_a_pair"] / costs[0],
        "cost_a_pair_largest_to_smallest": max(costs) / min(costs),
        "largest_relative_difference_of_sizes_from_peer": float(np.max(np.abs(sizes / peer_sizes - 1))),
        "goals": {
            f"{ours['pairs']:,} pairs, frame to draw, below 10 s": ours["total"]["wall"] < 10,
            "and below 2 GB": ours["peak_megabytes"] < 2000,
            f"preview with the corrected number at most {MOST_OF_PREVIEW} times without": all(
                one["ratio"] <= MOST_OF_PREVIEW for one in previews
            ),
            f"{pairs[-1]:,} pairs, sizes to draw, below 3 s": scaled[-1]["total"]["wall"] < 3,
            "cost a pair flat within 20 %": max(costs) / min(costs) <= 1.2,
        },
    }


def _table(report: dict[str, Any]) -> str:
    lines = [f"{'':44}{'pairs':>12}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}"]
    parts = report["frame_and_draw"], report["sizes_to_draw"]
    rows = [("stored runs to draw", parts[0]["ours"]), ("  textbook", parts[0]["peer"])]
    rows += [("sizes to draw", result) for result in parts[1]["ours"]] + [("  textbook", parts[1]["peer"])]
    for name, result in rows:
        total = result["total"]
        lines.append(
            f"{name:44}{result['pairs']:12,}{total['wall']:9.2f}{total['cpu']:9.2f}{result['peak_megabytes']:9.0f}"
        )
        for part, seconds in result["seconds"].items():
            lines.append(f"    {part:40}{'':12}{seconds['wall']:9.2f}{seconds['cpu']:9.2f}")
    for one in report["previews"]:
        name = f"preview, {one['question']}, {one['ratio']:.2f} times without"
        total = one["pool_seconds"] + one["seconds"]
        lines.append(f"{name:44}{one['pairs']:12,}{'':9}{total:9.2f}{one['peak_megabytes']:9.0f}")
    lines += [f"{goal}: {'yes' if met else 'NO'}" for goal, met in report["goals"].items()]
    return "\n".join(lines)


def main() -> None:
    """Make the runs, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size, to see that it works")
    parser.add_argument("--json", action="store_true")
    for hidden, kind in (("--task", str), ("--folder", Path), ("--pairs", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        _child(options.task, options.folder, options.pairs)
        return
    report = measure(options.quick)
    print(json.dumps(report, indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
