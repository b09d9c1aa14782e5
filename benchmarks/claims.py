"""Measure whether what may be claimed holds: topics like these, and families of comparisons.

    python benchmarks/claims.py --campaigns 5000 --seed 1 --clef <folder of clef_tar2017>

Parts, by the product's functions:

- sums: two runs in DCG@10, 25 and 50 topics drawn anew, audits of 30, 100 and 300 gold labels; topics that are alike
  (even), and topics of which few make the difference (skewed). How often the interval for topics like these holds the
  difference of the population (.94 to .98, skewed from .92), and how wide it is beside plain t over the same topics.
- ratios: the same in nDCG@10, in one step and by the bootstrap (`--ratio-campaigns`).
- families: how often anything of many comparisons is significant where all runs are equally good, on values of topics
  as they come (`--family-campaigns`; CLEF TAR 2017 with its folder).

Controls that must fail: the variance S^2/n + V_F, which counts the judging twice (.985 to .997 where the topics differ
less than the judging errs), and the interval for these topics used for topics like these (below .90 where they differ
more). JSON on standard output, progress on the other; `not_reached` has what is outside these limits. The same seed
gives the same figures. 5,000 campaigns a cell take about half an hour of one core.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import claim_families, claim_ratios, claim_sums

N_TOPICS, AUDIT_SIZES = (25, 50), (30, 100, 300)
LEAST, LEAST_SKEWED, MOST = 0.94, 0.92, 0.98
LEAST_WIDTH, MOST_WIDTH = 1.0, 1.12
LEAST_TWICE, MOST_TWICE = 0.985, 0.997
MOST_OF_THESE = 0.90
# Any false difference on CLEF by Holm's test, by topics: skewness breaks t. On normal values at most LEVEL.
EXPECTED_ERRORS, ERROR_TOLERANCE = {25: 0.197, 50: 0.162, 100: 0.054}, 0.025
LEVEL = 0.05

Cells = dict[str, dict[str, Any]]


def sums(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cells of sums over documents."""
    for kind in ("even", "skewed"):
        for n_topics in N_TOPICS:
            for n_audits in AUDIT_SIZES:
                found = claim_sums.run_cell(kind, n_topics, n_audits, options.campaigns, options.seed)
                yield f"{kind}/{n_topics}/{n_audits}", found


def ratios(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cells of nDCG."""
    for cell in claim_ratios.CELLS:
        yield cell.name, claim_ratios.run_cell(cell, options.ratio_campaigns, options.seed)


def families(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the errors of families."""
    for name, values in claim_families.populations(options.clef).items():
        for n_topics in claim_families.N_TOPICS:
            found = claim_families.run_cell(name, values, n_topics, options.family_campaigns, options.seed)
            yield f"{name}/{n_topics}", found


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[tuple[str, dict[str, Any]]]]] = {
    "sums": sums,
    "ratios": ratios,
    "families": families,
}


# -- what must hold -------------------------------------------------------------------------------------------


def missed_coverage(name: str, found: dict[str, Any]) -> Iterator[str]:
    """Yield what a cell of an interval does not reach."""
    if not found["campaigns"]:
        yield f"{name}: no campaign has a number"
        return
    least = LEAST_SKEWED if name.startswith("skewed") else LEAST
    if not least <= found["covered"] <= MOST:
        yield f"{name}: covered {found['covered']}, wanted {least} to {MOST}"
    if not LEAST_WIDTH <= found["width_over_plain_t"] <= MOST_WIDTH:
        yield f"{name}: {found['width_over_plain_t']} times as wide as t, wanted {LEAST_WIDTH} to {MOST_WIDTH}"
    twice, these = found["control_judging_twice"], found["control_these_topics"]
    if found["between"] <= found["within"] and not LEAST_TWICE <= twice <= MOST_TWICE:
        yield f"{name}: control S^2/n + V_F {twice}, wanted {LEAST_TWICE} to {MOST_TWICE}"
    if found["between"] >= found["within"] and these >= MOST_OF_THESE:
        yield f"{name}: control for these topics {these}, wanted below {MOST_OF_THESE}"


def missed_errors(name: str, found: dict[str, Any]) -> Iterator[str]:
    """Yield what a cell of a family does not reach."""
    population, n_topics = name.split("/")
    if population == "CLEF":
        wanted = EXPECTED_ERRORS[int(n_topics)]
        if abs(found["holm"] - wanted) > ERROR_TOLERANCE:
            yield f"{name}: Holm {found['holm']}, wanted {wanted} +- {ERROR_TOLERANCE}"
        if not found["warned"]:
            yield f"{name}: no warning that t is approximate"
    elif population.endswith("normal"):
        most = LEVEL + 2 * (LEVEL * (1 - LEVEL) / found["campaigns"]) ** 0.5
        if found["holm"] > most:
            yield f"{name}: Holm {found['holm']}, wanted at most {most:.4f}"


def not_reached(results: dict[str, Cells]) -> list[str]:
    """Return what is outside the limits, of all parts that were run."""
    return [
        sentence
        for part, cells in results.items()
        for name, found in cells.items()
        for sentence in (missed_errors if part == "families" else missed_coverage)(name, found)
    ]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the parts that are asked for."""
    results: dict[str, Cells] = {}
    for part in options.part or PARTS:
        results[part] = {}
        for name, found in PARTS[part](options):
            print(name, json.dumps(found), file=sys.stderr, flush=True)
            results[part][name] = found
    return {"seed": options.seed, "not_reached": not_reached(results), **results}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, usual in (("campaigns", 5000), ("ratio-campaigns", 300), ("family-campaigns", 2000)):
        parser.add_argument(f"--{name}", type=int, default=usual, help=f"a cell; default {usual}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="may be repeated; default: all")
    parser.add_argument("--clef", type=Path, help="folder of CLEF TAR 2017 (qrels and runs)")
    options = parser.parse_args()
    if min(options.campaigns, options.ratio_campaigns, options.family_campaigns) < 1:
        parser.error("campaigns must be at least 1")
    print(json.dumps(measure(options), indent=1))


if __name__ == "__main__":
    main()
