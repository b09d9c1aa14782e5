"""Measure how often the 95 % confidence intervals hold the truth, by the product's own functions.

    python benchmarks/coverage.py --repetitions 500 --seed 1 [--processes 2] [--part grid ...] [--store FILE]

Parts: the reported number over a grid of campaigns (grid, topics, one_pair); the number from predicted gold beside it
on the same audits, for topics that are alike and unlike, and audits whose second half learned from the first
(prediction; with --clef on CLEF TAR 2017 too); the guard that must come out bad (guard);
the tables of docs/methods/derivations/noise-correction.md (shared_audit section 2.2, assessors 3.3,
stratified_audit 4.3, little_gold 6.3, majority 5); size and power of the assumption test (assumption); intervals that
are watched (watched, boundary), if the plan is moved at every look (moved_plan), and with a plain mean's standard
errors (plain_mean).

JSON on standard output: every part's figures, targets with tolerance, and `not_reached`, the places of all targets
that were missed. Figures do not depend on the load of the machine, nor on the number of processes. With --store a run
that was stopped goes on where it ended.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes share the cores, not threads
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from parts import coverage_assessors as assessors
from parts import coverage_cells as cells
from parts import coverage_grid as grid
from parts import coverage_one_pair as one_pair
from parts import coverage_papers as papers
from parts import coverage_prediction as prediction
from parts import coverage_watched as watched
from parts.coverage_collection import make_collection

Task = tuple[str, str, Callable[..., Any], tuple[Any, ...]]  # part, place, function, arguments


def tasks(repetitions: int, seed: int, clef: Path | None = None) -> Iterator[Task]:
    """Yield everything there is to run, the longest first; `repetitions` are those of a cell of the grid.

    `clef` is the folder of CLEF TAR 2017; None leaves it out.
    """
    r = repetitions
    yield "one_pair", "", one_pair.simulate, (r, seed)
    for design in ("simple", "influence"):
        yield "watched", design, watched.run_watched, (design, 400, 200, max(2, r // 4), seed)
        for size in (100, 300, 1000):
            yield "topics", f"{design}/{size}", grid.run_topics, (design, size, max(2, r // 2), seed)
    for cell in cells.grid():
        yield "grid", cell.name, cells.run_cell, (cell, r, seed)
    for kind in prediction.comparisons(clef):
        yield "prediction", kind.name, prediction.run_comparison, (kind, max(2, r // 5), seed, clef)
    for noise in ("popularity", "shuffled"):
        for votes in (1, 3):
            for size in (100, 300, 1000):
                place = f"{noise}/{votes}/{size}"
                yield "guard", place, grid.run_guard, (noise, votes, size, max(2, r // 4), seed)
    yield "collection", "", described, ()
    yield from tables(r, seed)
    for design in ("simple", "influence"):
        for size in (100, 300, 1000):
            for votes in (1, 3):
                place = f"{design}/{size}/{votes}"
                yield "assumption", place, watched.run_assumption, (design, size, votes, r, seed)
    yield from boundaries(r, seed)


def boundaries(r: int, seed: int) -> Iterator[Task]:
    """Yield what concerns the boundary of a confidence sequence alone: Brownian motion and a plain mean."""
    for growth in ("as n", "as the root of n", "as n squared", "as n/(1 - n/N)"):
        yield "moved_plan", growth, watched.run_moved_plan, (growth, 25 * r, seed)
        for n_items in (None, 2001):
            place = growth if n_items is None else f"{growth}, N given"
            yield "boundary", place, watched.run_boundary, (growth, n_items, 25 * r, seed)
    for first in (20, 50, 100):
        yield "plain_mean", f"from {first} items", watched.run_plain_mean, (first, 25 * r, seed)


def tables(r: int, seed: int) -> Iterator[Task]:
    """Yield the tables of docs/methods/derivations/noise-correction.md."""
    for hypothesis in papers.TABLE_1_1:
        yield "shared_audit", hypothesis, papers.run_shared_audit, (hypothesis, 50 * r, seed)
    for row in assessors.TABLE_3_1:
        yield "assessors", "/".join(map(str, row)), assessors.run_assessors, (row, 3 * r, seed)
    yield "stratified_audit", "limits", papers.unweighted_limit, ()
    for design in papers.TABLE_3_2:
        yield "stratified_audit", design, papers.run_stratified_audit, (design, 4 * r, seed)
    for rates in papers.TABLE_3_3:
        yield "little_gold", "/".join(map(str, rates)), papers.run_little_gold, (rates, 4 * r, seed)
    yield "little_gold", "three grades", papers.run_near_singular, (2 * r, seed)
    yield "majority", "exact", assessors.run_majority_exactly, ()
    yield "majority", "audited", assessors.run_majority_audited, (r, seed)


def described() -> dict[str, Any]:
    """Return what the collection of the grid is like."""
    return make_collection(1).described()


def run(task: Task) -> tuple[str, str, Any, float]:
    """Run one task; return its part, place, result and seconds of processor time."""
    part, place, function, arguments = task
    started = time.process_time()
    return part, place, function(*arguments), time.process_time() - started


def not_reached(results: Any, place: str = "") -> list[str]:
    """Return the places where a target was missed."""
    if not isinstance(results, dict):
        return []
    missed = []
    for name, value in results.items():
        here = f"{place}: {name}" if place else name
        if name == "holds" and value is False:
            missed.append(place)
        elif name == "holds" and isinstance(value, dict):
            missed += [f"{place}: {target}" for target, reached in value.items() if not reached]
        else:
            missed += not_reached(value, here)
    return missed


def over_the_grid(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the range of each figure over all cells, and over those of one audit size."""
    result: dict[str, Any] = {}
    for size in ("", *map(str, cells.AUDIT_SIZES)):
        own = [results for name, results in found.items() if not size or name.split("/")[2] == size]
        result[size or "all"] = {
            key: [min(values), round(float(np.median(values)), 4), max(values)]
            for key in (
                "pairs",
                "pairs_5th_percentile",
                "pairs_5th_percentile_seen",
                "singles",
                "wrong_sign_significant",
                "refused",
                "half_width_ratio",
            )
            if (values := [results[key] for results in own])
        }
    return result


Found = tuple[str, str, Any, float]  # part, place, result, seconds of processor time


def stored(store: Path | None, head: dict[str, int]) -> list[Found]:
    """Return what an earlier run with the same repetitions and seed has stored; an unfinished line is left out."""
    if store is None or not store.exists():
        return []
    lines = [json.loads(line) for line in store.read_text().splitlines() if line.endswith("}")]
    return [tuple(line["found"]) for line in lines if line["head"] == head]


def run_all(chosen: list[Task], processes: int, store: Path | None, head: dict[str, int]) -> Iterator[Found]:
    """Yield what is stored and then what is not, storing it; processes take whatever comes next."""
    earlier = stored(store, head)
    done = {found[:2] for found in earlier}
    yield from (found for found in earlier if found[:2] in {task[:2] for task in chosen})
    with ProcessPoolExecutor(processes) as pool:
        waiting = [pool.submit(run, task) for task in chosen if task[:2] not in done]
        for finished in as_completed(waiting):
            if store is not None:
                with store.open("a") as file:
                    file.write(json.dumps({"head": head, "found": finished.result()}) + "\n")
            yield finished.result()


def measure(chosen: list[Task], processes: int, store: Path | None, head: dict[str, int]) -> dict[str, Any]:
    """Return all results by part and place."""
    results: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for number, found in enumerate(run_all(chosen, processes, store, head), start=1):
        part, place, part_results, used = found
        seconds[part] = seconds.get(part, 0.0) + used
        print(f"{number}/{len(chosen)} {part} {place} {used:.1f} s", file=sys.stderr, flush=True)
        if place:
            results.setdefault(part, {})[place] = part_results
        else:
            results[part] = part_results
    if "grid" in results:
        results["over_the_grid"] = over_the_grid(results["grid"])
    cost = {part: round(used, 1) for part, used in seconds.items()}
    return {"processor_seconds": cost, "not_reached": not_reached(results), **results}


def main() -> None:
    """Print the figures as JSON."""
    parts = list(dict.fromkeys(task[0] for task in tasks(1, 0)))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--repetitions", type=int, default=500, help="of a cell of the grid; others in proportion"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--part", action="append", default=[], choices=parts, help="may be repeated; default: all"
    )
    parser.add_argument(
        "--place",
        action="append",
        default=[],
        help="run only places whose name contains this, such as learned or whole/300; may be repeated: all must",
    )
    parser.add_argument(
        "--store", type=Path, help="file that keeps every finished place: what is in it is not run again"
    )
    parser.add_argument("--clef", type=Path, help="folder of CLEF TAR 2017 (qrels and runs)")
    options = parser.parse_args()
    if min(options.repetitions, options.processes) < 1:
        parser.error("--repetitions and --processes must be at least 1")
    started = time.perf_counter()
    chosen = [
        task
        for task in tasks(options.repetitions, options.seed, options.clef)
        if (not options.part or task[0] in options.part) and all(word in task[1] for word in options.place)
    ]
    head = {"repetitions": options.repetitions, "seed": options.seed}
    results = measure(chosen, options.processes, options.store, head)
    print(json.dumps({**head, "seconds": round(time.perf_counter() - started, 1), **results}, indent=1))


if __name__ == "__main__":
    main()
