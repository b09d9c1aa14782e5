"""Count the judgments that each design needs to compare two systems as surely as the paper's design does.

    python benchmarks/judgments_needed.py --seed 1

For adjacent pairs of systems (mean DCG, natural logarithm) on pools with complete judgments: the paper's Q* gets some
interval width from 100, 400, 800 and 3,200 distinct judgments; how many does the naive design need for that width, how
many the product's? Four kinds of pools: synthetic ones like TREC's, of 20 systems that differ (diverse) or come in
families of near-duplicates (two pools each, seven pairs a pool), or of 129 systems in families (one pool, ten pairs),
and CLEF TAR 2017 where `--clef` finds it (all pairs).

With replacement the variances are exact. Without replacement a variance is that of the difference estimator with the
predictions of a realised draw, exact over the frame, and averaged over draws. A simulation then compares estimates with
the truth: their squared error with that variance, and how often the 95 % confidence interval (t) holds the truth.

Expected: without mixture the default needs about .61 of Q*'s judgments at 400 and .56 at 3,200 on diverse pools, .33
and .34 with a machine judge; intervals hold the truth in .93 to .99 of the cases from 50 judgments on. Takes
about 13 minutes of processor time without the 129 systems, which take longer than all others together, shared by
`--processes`; `--quick` a third of that. `--at 400` takes only the product's designs with the default mixture, at one
number of judgments of Q*, prints how many components their predictions chose, and takes some ten minutes.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.budgets import MIXED_SIMULATED, PLANS, KnownPool, Pair, Plan, known, realised
from parts.judgments_at import judgments_at, plans_for, rows_at
from parts.trec_like import Floats, clef_tar, many_families, trec_like
from parts.variance_curves import needed_on_curve

STARTS = (100, 400, 800, 3200)
MOST_OF_SUPPORT = 0.8  # a count above this share of a pair's items is no sample any more
SIMULATED = (
    "default, no mixture",
    "default, 5 % other runs, 1 % uniform",
    "two batches, no mixture",
    "components, 5 % other runs, 1 % uniform",
    "components, two batches, refitted, no mixture",
    "machine judge, no mixture",
    "poor machine judge believed good, no mixture",
)
SIZES = (50, 100, 400, 3200)
SHARES = (
    (0, 0),
    (0, 0.01),
    (0.05, 0.01),
    (0.1, 0.01),
    (0.15, 0.01),
    (0.2, 0.01),
    (0, 0.05),
    (0.1, 0.05),
    (0.15, 0.05),
    (0.2, 0.05),
)
FRACTIONS = (0.005, 0.05, 0.2, 0.5)
CLEF = "CLEF TAR 2017"
MANY = "many families"


def pools_of(kind: str, seed: int, clef: Path) -> list[KnownPool]:
    """Return the pools of a kind: two synthetic ones, or the real one."""
    if kind == CLEF:
        return known([clef_tar(clef)], seed)
    if kind == MANY:
        return known([many_families(seed)], seed)
    made = [trec_like(2 * seed + step, near_duplicates=kind == "near-duplicates") for step in range(2)]
    return known(made, seed)


def pairs_of(pools: list[KnownPool], quick: bool) -> list[Pair]:
    """Return adjacent pairs of runs that differ, spread over the ranking."""
    pairs = []
    for one in pools:
        n_runs = one.pool.ranks.shape[0]
        step = {20: 3, 129: 14}.get(n_runs, 1) * (3 if quick else 1)
        pairs += [Pair(one, first, first + 1) for first in range(0, n_runs - 1, step)]
    return [pair for pair in pairs if pair.support]


# ---- judgments for an equal width ------------------------------------------------------------------


def needed_by_naive(pair: Pair, target: float) -> float:
    """Return the distinct judgments that give the naive design the target variance; nan where all are too few."""
    most = 0.999 * pair.support

    def excess(log_count: float) -> float:
        return float(np.log(pair.with_replacement(True, float(np.exp(log_count))) / target))

    return (
        float(np.exp(brentq(excess, np.log(5.0), np.log(most))))
        if excess(np.log(most)) <= 0
        else float("nan")
    )


def curves(pair: Pair, counts: Floats, draws: int, seed: list[int]) -> dict[str, Floats]:
    """Return the mean variance at each count, by method."""
    variances = {
        "Q*'s sizes, without replacement": np.array([pair.horvitz_thompson(count) for count in counts]),
        "difference from the pair's prior": np.array([pair.raw_difference(count) for count in counts]),
    }
    for place, (name, plan) in enumerate(PLANS.items()):
        rng = np.random.default_rng([*seed, place])
        variances[name] = np.array(
            [np.mean([realised(plan, pair, n, rng).variance(pair) for _ in range(draws)]) for n in counts]
        )
    return variances


def needed(pairs: list[Pair], draws: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return by start and method the mean judgments needed, their ratio to Q*'s, and the pairs that count."""
    rows: dict[int, dict[str, list[float]]] = {start: {} for start in STARTS}
    for number, pair in enumerate(pairs):
        counts = np.geomspace(15.0, min(3600.0, 0.95 * pair.support), 13)
        by_method = curves(pair, counts, draws, [seed, number])
        for start in STARTS:
            if start > MOST_OF_SUPPORT * pair.support:
                continue
            target = pair.with_replacement(False, start)
            row = {"naive": needed_by_naive(pair, target), "paper's Q*": float(start)}
            row |= {name: needed_on_curve(counts, values, target) for name, values in by_method.items()}
            for name, value in row.items():
                rows[start].setdefault(name, []).append(value)
    return {
        str(start): {
            name: {
                "judgments": round(float(np.nanmean(values)), 1),
                "ratio": round(float(np.nanmean(values)) / start, 3),
                "pairs": int(np.count_nonzero(~np.isnan(values))),
            }
            for name, values in by_name.items()
        }
        for start, by_name in rows.items()
        if by_name
    }


def likeness(pairs: list[Pair]) -> dict[str, list[float]]:
    """Return the mean variance over Q*'s of the methods without learning, at four fractions of a pair's items."""
    rows: dict[str, list[Floats]] = {"naive": [], "Horvitz-Thompson": [], "difference": []}
    for pair in pairs:
        counts = [share * int((pair.own_ranks > 0).any(axis=0).sum()) for share in FRACTIONS]
        if counts[-1] >= pair.support:
            continue
        paper = np.array([pair.with_replacement(False, count) for count in counts])
        rows["naive"].append(np.array([pair.with_replacement(True, count) for count in counts]) / paper)
        rows["Horvitz-Thompson"].append(np.array([pair.horvitz_thompson(count) for count in counts]) / paper)
        rows["difference"].append(np.array([pair.raw_difference(count) for count in counts]) / paper)
    return {name: np.round(np.mean(values, axis=0), 3).tolist() for name, values in rows.items()}


# ---- simulation, and the mixture -------------------------------------------------------------------


def simulated(
    pairs: list[Pair],
    repetitions: int,
    seed: int,
    names: tuple[str, ...] = SIMULATED,
    sizes: tuple[int, ...] = SIZES,
) -> dict[str, dict[str, dict[str, float]]]:
    """Return by plan and count: coverage, bias in standard deviations, squared error over variance."""
    by_method: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    for (place, name), count in product(enumerate(names), sizes):
        rng = np.random.default_rng([seed, 99, place, count])
        inside, scaled = [], []
        for pair in pairs:
            for _ in range(repetitions if count <= MOST_OF_SUPPORT * pair.support else 0):
                draw = realised(PLANS[name], pair, count, rng)
                result = draw.estimate(pair)
                inside.append(result.low <= pair.truth <= result.high)
                scaled.append((result.value - pair.truth) / np.sqrt(draw.variance(pair)))
        coverage, errors = float(np.mean(inside)), np.array(scaled)
        by_method[name][str(count)] = {
            "coverage": round(coverage, 4),
            "coverage_se": round(float(np.sqrt(coverage * (1 - coverage) / errors.size)), 4),
            "bias_in_sd": round(float(errors.mean()), 3),
            "squared_error_over_variance": round(float((errors**2).mean()), 3),
            "n": int(errors.size),
        }
    return by_method


def shares(pairs: list[Pair], draws: int, seed: int, count: float = 400.0) -> dict[str, dict[str, float]]:
    """Return per mixture what the own pair pays, and what its judgments are worth for others.

    All are variances over that of a design of its own without mixture and with as many judgments: the mean over pairs
    ("own pair"), the median over two other runs' DCG a pair and over two other pairs.
    """
    rng = np.random.default_rng([seed, 55])
    base = PLANS["default, no mixture"]
    own_design: dict[tuple[int, int, int | None], float] = {}

    def relative(variance: float, pair: Pair) -> float:
        key = (id(pair.known), pair.first, pair.second)
        if key not in own_design:
            each = [realised(base, pair, count, rng).variance(pair) for _ in range(2 * draws)]
            own_design[key] = float(np.mean(each))
        return variance / own_design[key]

    table = {}
    for other_runs, uniform in SHARES:
        ratios: dict[str, list[float]] = {"own pair": [], "other runs": [], "other pairs": []}
        plan = Plan(base.prior, other_runs, uniform)
        for pair, _ in product(pairs, range(draws)):
            draw = realised(plan, pair, count, rng)
            ratios["own pair"].append(relative(draw.variance(pair), pair))
            n_runs = pair.known.pool.ranks.shape[0]
            for run in ((pair.first + n_runs // 2) % (n_runs - 1), (pair.first + n_runs // 4) % (n_runs - 1)):
                run_alone, other_pair = Pair(pair.known, run, None), Pair(pair.known, run, run + 1)
                if uniform > 0:
                    ratios["other runs"].append(relative(draw.variance(run_alone), run_alone))
                    if other_pair.support:
                        ratios["other pairs"].append(relative(draw.variance(other_pair), other_pair))
        row = {"own pair": round(float(np.mean(ratios["own pair"])), 3)}
        row |= {
            name: round(float(np.median(ratios[name])), 1)
            for name in ("other runs", "other pairs")
            if ratios[name]
        }
        table[f"{other_runs:.0%} other runs, {uniform:.0%} uniform"] = row
    return table


# ---- report ----------------------------------------------------------------------------------------


def measured(task: tuple[str, str, argparse.Namespace]) -> dict[str, Any]:
    """Return one part of what is measured about one kind of pool."""
    kind, part, options = task
    pools = pools_of(kind, options.seed, options.clef)
    pairs = pairs_of(pools, options.quick)
    if part == "at":
        sizes = (50, 100, options.at)
        return {
            "pools": [one.pool.description() for one in pools],
            "pairs": len(pairs),
            "at": judgments_at(plans_for(pairs), pairs, options.at, options.draws, options.seed),
            "simulated": simulated(pairs, options.repetitions, options.seed, MIXED_SIMULATED, sizes),
        }
    if part == "needed":
        return {
            "pools": [one.pool.description() for one in pools],
            "pairs": len(pairs),
            "variance_over_q_star": likeness(pairs),
            "needed": needed(pairs, options.draws, options.seed),
        }
    if part == "simulated":
        return {"simulated": simulated(pairs, options.repetitions, options.seed)}
    return {"shares": shares(pairs, options.draws, options.seed)}


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    """Print lines of cells, the first left and the others right aligned."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        print("  " + "  ".join(cells))


def printed(kind: str, results: dict[str, Any]) -> None:
    """Print one kind's results."""
    print(f"\n== {kind}, {results['pairs']} pairs: {results['pools']}", flush=True)
    if "at" in results:
        table(
            "judgments for the width of Q*, with the default mixture",
            rows_at(results["at"], results["simulated"]),
        )
        return
    lines: list[tuple[str, Iterable[object]]] = list(results["variance_over_q_star"].items())
    head = ("", *(f"{share:.1%}" for share in FRACTIONS))
    table(
        "variance over Q*'s, at fractions of a pair's items", [head, *((n, *map(str, v)) for n, v in lines)]
    )
    need = results["needed"]
    rows = [("", *need)]
    for name in need["100"]:
        cells = (need[start][name] for start in need)
        rows.append((name, *(f"{cell['judgments']:.0f} ({cell['ratio']:.2f})" for cell in cells)))
    table("judgments for the width that Q* gets from ... distinct judgments (over Q*'s)", rows)
    counted = {start: min(row["pairs"] for row in by_name.values()) for start, by_name in need.items()}
    print(f"  pairs that count: {counted}")
    rows = [("", *map(str, SIZES))]
    form = "{coverage:.3f} {squared_error_over_variance:.2f} {bias_in_sd:+.2f}"
    for name, by_count in results["simulated"].items():
        rows.append((name, *(form.format(**cell) for cell in by_count.values())))
    n_draws = by_count["50"]["n"]
    table(f"coverage, squared error over variance, bias in sd; {n_draws} draws a cell at 50", rows)
    columns = ("own pair", "other runs", "other pairs")
    rows = [("", *columns)]
    rows += [(name, *(str(row.get(what, "")) for what in columns)) for name, row in results["shares"].items()]
    table("variance over that of an own design without mixture, 400 judgments", rows)


def main() -> None:
    """Measure every kind of pool and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--draws", type=int, default=2, help="draws whose variances are averaged, per pair and count"
    )
    parser.add_argument("--repetitions", type=int, default=30, help="simulated draws per pair and count")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--clef",
        type=Path,
        default=Path(__file__).resolve().parents[2] / "shared" / "data" / "clef_tar2017",
        help="folder of CLEF TAR 2017 (qrels and runs)",
    )
    parser.add_argument("--quick", action="store_true", help="a third of the pairs")
    parser.add_argument("--only", nargs="+", help="kinds of pools; default, all")
    parser.add_argument("--at", type=int, help="only the default mixture, at so many judgments of Q*")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.draws, options.repetitions, options.processes) < 1:
        parser.error("--draws, --repetitions and --processes must be at least 1")
    kinds = ["diverse", "near-duplicates", MANY, CLEF]
    if not (options.clef / "test.abs.qrels.gz").exists():
        kinds.remove(CLEF)
        print(f"{CLEF} is left out: {options.clef} does not hold it", file=sys.stderr)
    kinds = [kind for kind in kinds if kind in (options.only or kinds)]
    started = time.perf_counter()
    parts = ("simulated", "needed", "shares") if options.at is None else ("at",)
    tasks = [(kind, part, options) for part, kind in product(parts, kinds)]
    results: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    with ProcessPoolExecutor(options.processes) as executor:
        for (kind, _, _), of_kind in zip(tasks, executor.map(measured, tasks), strict=True):
            results[kind] |= of_kind
    seconds = round(time.perf_counter() - started, 1)
    if options.json:
        print(json.dumps({"seed": options.seed, "seconds": seconds, **results}, indent=1))
        return
    for kind, of_kind in results.items():
        printed(kind, of_kind)
    print(f"\nseed {options.seed}, {seconds} s")


if __name__ == "__main__":
    main()
