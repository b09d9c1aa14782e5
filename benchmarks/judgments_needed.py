"""Count the judgments that each design needs to compare two systems as surely as the paper's design does.

    python benchmarks/judgments_needed.py --seed 1

For adjacent pairs of systems (mean DCG, natural logarithm) on pools with complete judgments: the paper's Q* gets some
interval width from 100, 400, 800 and 3,200 distinct judgments; how many does the naive design need for that width, how
many the product's? Three kinds of pools: synthetic ones like TREC's, of 20 systems that differ (diverse) or come in
families of near-duplicates, and CLEF TAR 2017 where `--clef` finds it.

With replacement the variances are exact. Without replacement a variance is that of the difference estimator with the
predictions of a realised draw, exact over the frame, and averaged over draws. A simulation then compares estimates with
the truth: their mean squared error against that variance, and how often the 95 % interval (t) holds the truth.

Expected: the default needs at most .64 of Q*'s judgments at 400 and .55 at 3,200 on diverse pools, .38 with a machine
judge; intervals hold the truth in .93 to .97 of the cases from 50 judgments on. JSON with `--json`, else tables.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.budgets import PLANS, KnownPool, Pair, Plan, known, realised
from parts.trec_like import Floats, clef_tar, trec_like

STARTS = (100, 400, 800, 3200)
MOST_OF_SUPPORT = 0.8  # a start above this share of a pair's items is no sample any more
SIMULATED = ("default, without mixture", "default", "machine judge", "machine judge, much worse than assumed")
SIZES = (50, 100, 200, 400, 800, 3200)
SHARES = (
    (0.0, 0.0),
    (0.0, 0.05),
    (0.05, 0.05),
    (0.1, 0.05),
    (0.15, 0.05),
    (0.2, 0.05),
    (0.15, 0.01),
    (0.15, 0.1),
)
DEFAULT_CLEF = Path(__file__).resolve().parents[2] / "shared" / "data" / "clef_tar2017"
# methods/sampling.md, section 5: variance against Q* at .5, 5, 20 and 50 % of a pair's items, by methods without learning
KNOWN = {
    "diverse": {
        "naive": (1.35, 1.33, 1.29, 1.24),
        "Horvitz-Thompson": (0.996, 0.960, 0.811, 0.542),
        "difference": (0.798, 0.776, 0.675, 0.463),
    },
    "near-duplicates": {
        "naive": (1.92, 1.92, 1.89, 1.86),
        "Horvitz-Thompson": (0.998, 0.959, 0.796, 0.495),
        "difference": (0.824, 0.798, 0.682, 0.428),
    },
}
FRACTIONS = (0.005, 0.05, 0.2, 0.5)


def pools_of(kind: str, seed: int, clef: Path) -> list[KnownPool]:
    """Return the pools of a kind: two synthetic ones, or the real one."""
    rng = np.random.default_rng([seed, 7])
    if kind == "CLEF TAR 2017":
        return [known(clef_tar(clef), rng)]
    made = [trec_like(seed + step, near_duplicates=kind == "near-duplicates") for step in range(2)]
    return [known(pool, rng) for pool in made]


def pairs_of(pools: list[KnownPool], quick: bool) -> list[Pair]:
    """Return seven adjacent pairs of each synthetic pool, spread over the ranking, and all of the real one that differ."""
    pairs = []
    for one in pools:
        n_runs = one.pool.ranks.shape[0]
        step = 3 if n_runs == 20 else 1
        pairs += [Pair(one, first, first + 1) for first in range(0, n_runs - 1, step * (3 if quick else 1))]
    return [pair for pair in pairs if pair.support]


# ---- judgments for an equal width ------------------------------------------------------------------


def needed_with_replacement(pair: Pair, target: float) -> float:
    """Return the distinct judgments that give the naive design the target variance; nan if all are not enough."""
    most = 0.999 * pair.support

    def excess(log_count: float) -> float:
        return float(np.log(pair.with_replacement(True, np.exp(log_count)) / target))

    if excess(np.log(most)) > 0:
        return float("nan")
    return float(np.exp(brentq(excess, np.log(5.0), np.log(most), xtol=1e-6)))


def needed_on_curve(counts: Floats, variances: Floats, target: float) -> float:
    """Return the count at which a curve of variances, straight between its points in logarithms, meets the target."""
    falling = np.minimum.accumulate(variances)
    if not falling[-1] <= target <= falling[0]:
        return float("nan")
    return float(np.exp(np.interp(-np.log(target), -np.log(falling), np.log(counts))))


def curve(pair: Pair, plan: Plan, counts: Floats, draws: int, seed: list[int]) -> Floats:
    """Return the mean variance of a plan at each count."""
    rng = np.random.default_rng(seed)
    return np.array(
        [np.mean([realised(plan, pair, count, rng).variance(pair) for _ in range(draws)]) for count in counts]
    )


def needed(pairs: list[Pair], draws: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return by start and method the mean judgments needed, and their ratio to Q*'s."""
    found: dict[int, dict[str, list[float]]] = {start: {} for start in STARTS}
    for number, pair in enumerate(pairs):
        top = min(3600.0, 0.95 * pair.support)
        counts = np.geomspace(15.0, top, 17)
        curves = {
            name: curve(pair, plan, counts, draws, [seed, number, place])
            for place, (name, plan) in enumerate(PLANS.items())
        }
        raw = np.array([pair.raw_difference(pair.own_guess, count) for count in counts])
        plain = np.array([pair.horvitz_thompson(count) for count in counts])
        for start in STARTS:
            if start > MOST_OF_SUPPORT * pair.support:
                continue
            target = pair.with_replacement(False, start)
            row = {"naive": needed_with_replacement(pair, target), "paper's Q*": float(start)}
            row["Q*'s sizes, without replacement"] = needed_on_curve(counts, plain, target)
            row["difference from the pair's guess"] = needed_on_curve(counts, raw, target)
            row |= {name: needed_on_curve(counts, values, target) for name, values in curves.items()}
            for name, value in row.items():
                found[start].setdefault(name, []).append(value)
    return {
        str(start): {
            name: {
                "judgments": round(float(np.nanmean(values)), 1),
                "ratio": round(float(np.nanmean(values)) / start, 3),
                "pairs": int(np.count_nonzero(~np.isnan(values))),
            }
            for name, values in rows.items()
        }
        for start, rows in found.items()
        if rows
    }


# ---- what the pools are like -----------------------------------------------------------------------


def likeness(pairs: list[Pair]) -> dict[str, list[float]]:
    """Return the variance against Q* of methods without learning, at four shares of a pair's items."""
    rows: dict[str, list[list[float]]] = {"naive": [], "Horvitz-Thompson": [], "difference": []}
    for pair in pairs:
        pooled = int((pair.own_ranks > 0).any(axis=0).sum())
        counts = [share * pooled for share in FRACTIONS]
        if max(counts) >= pair.support:
            continue
        paper = np.array([pair.with_replacement(False, count) for count in counts])
        rows["naive"].append([pair.with_replacement(True, count) for count in counts] / paper)
        rows["Horvitz-Thompson"].append([pair.horvitz_thompson(count) for count in counts] / paper)
        rows["difference"].append([pair.raw_difference(pair.own_guess, count) for count in counts] / paper)
    return {name: [round(float(x), 3) for x in np.mean(values, axis=0)] for name, values in rows.items()}


# ---- simulation ------------------------------------------------------------------------------------


def simulated(pairs: list[Pair], repetitions: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return by plan and count: coverage, bias in standard deviations, squared error over variance."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for place, name in enumerate(SIMULATED):
        table[name] = {}
        for count in SIZES:
            rng = np.random.default_rng([seed, 99, place, count])
            inside, errors, variances = [], [], []
            for pair in pairs:
                if count > MOST_OF_SUPPORT * pair.support:
                    continue
                for _ in range(repetitions):
                    draw = realised(PLANS[name], pair, count, rng)
                    found = draw.estimate(pair)
                    inside.append(found.low <= pair.truth <= found.high)
                    errors.append(found.value - pair.truth)
                    variances.append(draw.variance(pair))
            if inside:
                table[name][str(count)] = _summary(np.array(inside), np.array(errors), np.array(variances))
    return table


def _summary(inside: Floats, errors: Floats, variances: Floats) -> dict[str, float]:
    scaled = errors / np.sqrt(variances)
    return {
        "coverage": round(float(inside.mean()), 4),
        "coverage_se": round(float(np.sqrt(inside.mean() * (1 - inside.mean()) / inside.size)), 4),
        "bias_in_sd": round(float(scaled.mean()), 3),
        "squared_error_over_variance": round(float((scaled**2).mean()), 3),
        "n": int(inside.size),
    }


# ---- shares of the mixture -------------------------------------------------------------------------


def shares(pairs: list[Pair], draws: int, seed: int, count: float = 400.0) -> dict[str, dict[str, float]]:
    """Return per mixture what the own pair pays, and what the same judgments are worth for others.

    "other runs": variance of another run's DCG over that of a design of its own with as many judgments, the median over
    runs; "other pairs" the same for differences of two other runs.
    """
    own_best: dict[tuple[int, int, int | None], float] = {}
    rng = np.random.default_rng([seed, 55])
    base = PLANS["default, without mixture"]

    def best(pair: Pair) -> float:
        key = (id(pair.known), pair.first, pair.second)
        if key not in own_best:
            own_best[key] = float(
                np.mean([realised(base, pair, count, rng).variance(pair) for _ in range(draws)])
            )
        return own_best[key]

    table = {}
    for other, uniform in SHARES:
        plan = Plan(base.guess, other_runs=other, uniform=uniform)
        own, runs, rival = [], [], []
        for pair in pairs:
            if count > MOST_OF_SUPPORT * pair.support:
                continue
            n_runs = pair.known.pool.ranks.shape[0]
            far = [(pair.first + n_runs // 2) % (n_runs - 1), (pair.first + n_runs // 4) % (n_runs - 1)]
            for _ in range(draws):
                draw = realised(plan, pair, count, rng)
                own.append(draw.variance(pair) / best(pair))
                if uniform == 0.0:
                    continue
                for run in far:
                    one, two = Pair(pair.known, run, None), Pair(pair.known, run, run + 1)
                    runs.append(draw.variance(one) / best(one))
                    if two.support:
                        rival.append(draw.variance(two) / best(two))
        table[f"{other:.0%} other runs, {uniform:.0%} uniform"] = {
            "own pair": round(float(np.mean(own)), 3),
            **(
                {
                    "other runs": round(float(np.median(runs)), 2),
                    "other pairs": round(float(np.median(rival)), 2),
                }
                if runs
                else {}
            ),
        }
    return table


# ---- report ------------------------------------------------------------------------------------------


def measured(
    kind: str, *, seed: int, draws: int, repetitions: int, quick: bool, clef: Path
) -> dict[str, object]:
    """Return everything about one kind of pool."""
    pools = pools_of(kind, seed, clef)
    pairs = pairs_of(pools, quick)
    return {
        "pools": [one.pool.description() for one in pools],
        "pairs": len(pairs),
        "variance_over_q_star": likeness(pairs),
        **({"known_from_methods": KNOWN[kind]} if kind in KNOWN else {}),
        "needed": needed(pairs, draws, seed),
        "simulated": simulated(pairs, repetitions, seed),
        "shares": shares(pairs, draws, seed),
    }


def table(title: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Print lines of cells, the first left and the others right aligned."""
    cells = [tuple(map(str, row)) for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    print(f"\n{title}")
    for row in cells:
        print(
            "  "
            + row[0].ljust(widths[0])
            + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        )


def printed(kind: str, found: dict[str, object]) -> None:
    """Print one kind's results."""
    print(f"\n== {kind}: {found['pools']}, {found['pairs']} pairs")
    like: dict[str, list[float]] = found["variance_over_q_star"]  # type: ignore[assignment]
    known_figures: dict[str, Iterable[float]] = found.get("known_from_methods", {})  # type: ignore[assignment]
    rows = [("", *(f"{share:.1%}" for share in FRACTIONS))]
    for name, values in like.items():
        rows.append((name, *map(str, values)))
        if name in known_figures:
            rows.append((f"{name}, methods/sampling.md", *map(str, known_figures[name])))
    table("variance over the paper's Q* at shares of a pair's items", rows)
    need: dict[str, dict[str, dict[str, float]]] = found["needed"]  # type: ignore[assignment]
    starts = list(need)
    rows = [("", *starts)]
    for name in need[starts[0]]:
        rows.append(
            (
                name,
                *(
                    f"{need[start][name]['judgments']:.0f} ({need[start][name]['ratio']:.2f})"
                    for start in starts
                ),
            )
        )
    table("judgments for the width that Q* gets from ... distinct judgments (ratio)", rows)
    print("  pairs counted: " + ", ".join(f"{start}: {need[start]['default']['pairs']}" for start in starts))
    simulation: dict[str, dict[str, dict[str, float]]] = found["simulated"]  # type: ignore[assignment]
    rows = [("coverage, squared error/variance, bias in sd", *map(str, SIZES))]
    for name, by_count in simulation.items():
        cells = [by_count.get(str(count)) for count in SIZES]
        rows.append(
            (
                name,
                *(
                    "-"
                    if c is None
                    else f"{c['coverage']:.3f} {c['squared_error_over_variance']:.2f} {c['bias_in_sd']:+.2f}"
                    for c in cells
                ),
            )
        )
    table(f"simulation, {next(iter(simulation['default'].values()))['n']} draws a cell", rows)
    mixed: dict[str, dict[str, float]] = found["shares"]  # type: ignore[assignment]
    rows = [
        ("variance relative to a design of its own, 400 judgments", "own pair", "other runs", "other pairs")
    ]
    rows += [
        (name, *(str(row.get(what, "-")) for what in ("own pair", "other runs", "other pairs")))
        for name, row in mixed.items()
    ]
    table("mixture", rows)


def main() -> None:
    """Measure every kind of pool and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--draws", type=int, default=3, help="draws whose variances are averaged, per pair and count"
    )
    parser.add_argument("--repetitions", type=int, default=60, help="simulated draws per pair and count")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--clef", type=Path, default=DEFAULT_CLEF, help="folder of CLEF TAR 2017")
    parser.add_argument("--quick", action="store_true", help="a third of the pairs, 1 draw, 20 repetitions")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kinds = ["diverse", "near-duplicates"]
    if (options.clef / "test.abs.qrels.gz").exists():
        kinds.append("CLEF TAR 2017")
    else:
        print(f"CLEF TAR 2017 is left out: {options.clef} does not hold it", file=sys.stderr)
    started = time.perf_counter()
    measure = partial(
        measured,
        seed=options.seed,
        draws=1 if options.quick else options.draws,
        repetitions=20 if options.quick else options.repetitions,
        quick=options.quick,
        clef=options.clef,
    )
    with ProcessPoolExecutor(options.processes) as executor:
        results = dict(zip(kinds, executor.map(measure, kinds), strict=True))
    seconds = round(time.perf_counter() - started, 1)
    if options.json:
        print(json.dumps({"seed": options.seed, "seconds": seconds, **results}, indent=1))
        return
    for kind, found in results.items():
        printed(kind, found)
    print(f"\nseed {options.seed}, {seconds} s")


if __name__ == "__main__":
    main()
