"""Runs that come after the draw: how far documents that could not be judged move their numbers, and what is said of it.

    python benchmarks/reuse.py --clef <folder of clef_tar2017> --json

Each run, and each group of runs, is left out of a pool with complete judgments, and scored on what the others pooled.

- `table`: with everything judged. How many runs return documents outside the pool, how many of these would lose less
  than 1 % of their value by that; and, summed over the runs, the worst case, what is expected from documents that a
  single remaining run (or group) brought in alone, and what is truly lost.
- `sampled`: 300 judgments drawn from the remaining pool. How often the interval that is widened by the worst case holds
  the truth, and the control: the interval of what could be judged. And the answers: yes, wider, not yet; how many of
  the runs that lose less than 1 % get no number, today and before (any document outside).

CLEF TAR 2017 has 13 runs in 5 groups (the name before `__`); runs are ordered by score, ties by document, descending.
The synthetic pool (diverse, 20 runs) is there without `--clef` too; its groups are every fifth run. Expected: widened
intervals hold the truth in .95 or more of the cases of every cell; the control is below .95 in every cell. Takes about
two minutes.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.trec_like import Floats, Ints, trec_like

from analytics.estimation.estimate import Refusal
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.outside import Standing, likely_gain, outside_gain, unique_weights
from sampling.designs import inclusion_probabilities, mixture, uniform_design
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense
from sampling.questions import prior_of_runs

BUDGET, DRAWS, UNIFORM = 300, 200, 0.01
NO_PAIRS = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Pool:
    """Ranks [run, item] of everything that any run returns, and whether it is relevant; whose the runs are."""

    name: str
    ranks: Ints
    topic_index: Ints
    relevant: Floats
    groups: list[str]

    @property
    def n_topics(self) -> int:
        return int(self.topic_index.max()) + 1


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A run that was left out, alone or with its group: its weights, and what the others pooled."""

    run: int
    weights: Floats  # [item], of the run
    inside: np.ndarray  # [item], whether the others pooled it
    others: Ints  # places of the remaining runs
    names: list[str]  # whose they are: of runs left out alone, each its own

    def outside(self) -> float:
        return float(self.weights[~self.inside].sum())


def clef(folder: Path) -> Pool:
    """Return CLEF TAR 2017, abstract level, to depth 100."""
    relevant = {}
    with gzip.open(folder / "test.abs.qrels.gz", "rt") as lines:
        for topic, _, document, grade in map(str.split, lines):
            relevant[topic, document] = float(int(grade) > 0)
    tops: list[dict[tuple[str, str], int]] = []
    paths = sorted((folder / "runs").iterdir())
    for path in paths:
        scored: dict[str, dict[str, float]] = {}
        with gzip.open(path, "rt") as lines:
            for topic, _, document, _, score, *_ in map(str.split, lines):
                scored.setdefault(topic, {}).setdefault(document, float(score))
        top: dict[tuple[str, str], int] = {}
        for topic, documents in scored.items():
            order = sorted(((score, document) for document, score in documents.items()), reverse=True)[:100]
            top |= {(topic, document): rank for rank, (_, document) in enumerate(order, start=1)}
        tops.append(top)
    items = sorted(set().union(*tops))
    ranks = np.array([[top.get(item, 0) for item in items] for top in tops])
    topics = np.unique([topic for topic, _ in items], return_inverse=True)[1]
    found = np.array([relevant.get(item, 0.0) for item in items])
    return Pool("CLEF", ranks, topics, found, [path.name.split("__")[0] for path in paths])


def diverse(seed: int) -> Pool:
    """Return the synthetic pool of unlike runs."""
    made = trec_like(seed, near_duplicates=False)
    groups = [f"group {run % 5}" for run in range(made.ranks.shape[0])]
    return Pool("diverse", made.ranks, made.topic_index, made.relevant, groups)


def left_out(pool: Pool, measure: str, depth: int, what: str) -> Iterator[LeftOut]:
    """Yield every run with what the runs of other names pooled."""
    n_runs = pool.ranks.shape[0]
    names = pool.groups if what == "group" else [str(run) for run in range(n_runs)]
    weights = weights_of_runs(parse_linear(measure), from_dense(pool.ranks), pool.n_topics).dense()
    pooled = (pool.ranks > 0) & (pool.ranks <= depth)
    for run in range(n_runs):
        others = np.array([other for other in range(n_runs) if names[other] != names[run]])
        yield LeftOut(run, weights[run], pooled[others].any(axis=0), others, [names[o] for o in others])


# -- everything judged ----------------------------------------------------------------------------------------


def table_row(pool: Pool, measure: str, depth: int, what: str) -> dict[str, Any]:
    """Return the row of one pool, measure and what is left out."""
    parsed = parse_linear(measure)
    sums = {"worst": 0.0, "expected": 0.0, "true": 0.0}
    counted = {"outside": 0, "of_these_lose_less_than_1_percent": 0, "true_at_most_cautious": 0}
    for one in left_out(pool, measure, depth, what):
        weight = one.outside()
        if weight == 0:
            continue
        ranks = from_dense(np.where(one.inside, pool.ranks[one.others], 0))
        targets = unique_weights(weights_of_runs(parsed, ranks, pool.n_topics), ranks, one.names, depth)
        likely = likely_gain(weight, targets.totals(pool.relevant), targets.totals(np.ones(one.inside.size)))
        if likely is None:
            raise RuntimeError(f"no run of {pool.name} brought in anything alone")
        lost = float(one.weights[~one.inside] @ pool.relevant[~one.inside])
        sums["worst"] += float(outside_gain([weight], 1.0, NO_PAIRS).up[0])
        sums["expected"] += likely.expected
        sums["true"] += lost
        counted["outside"] += 1
        counted["of_these_lose_less_than_1_percent"] += lost < 0.01 * float(one.weights @ pool.relevant)
        counted["true_at_most_cautious"] += lost <= likely.cautious + 1e-12
    return {**counted, **{name: round(value, 3) for name, value in sums.items()}}


# -- drawn in part --------------------------------------------------------------------------------------------


def probabilities(pool: Pool, measure: str, depth: int, one: LeftOut) -> tuple[Floats, Floats]:
    """Return the chance of every item in a draw for all remaining runs, and the prior of relevance."""
    ranks = np.where(one.inside, pool.ranks[one.others], 0)[:, one.inside]
    prior = prior_of_runs(ranks, depth)
    weights = weights_of_runs(parse_linear(measure), from_dense(ranks), pool.n_topics).dense()
    sizes = np.sqrt((weights**2).mean(axis=0) * prior * (1 - prior))
    design = mixture(sizes / sizes.sum(), [uniform_design(sizes.size)], [UNIFORM])
    pi, f = np.zeros((2, one.inside.size))
    pi[one.inside], f[one.inside] = inclusion_probabilities(design, BUDGET), prior
    return pi, f


def sampled_row(pool: Pool, measure: str, depth: int, what: str, draws: int, seed: int) -> dict[str, Any]:
    """Return coverage with and without the worst case, and the answers, over all left-out runs and draws."""
    held, held_inside, made = 0, 0, 0
    standing = {one.name.lower(): 0 for one in Standing}
    small, small_refused = 0, 0
    rng = np.random.default_rng(seed)
    for one in left_out(pool, measure, depth, what):
        if one.outside() == 0:
            continue
        truth = float(one.weights @ pool.relevant)
        lost = float(one.weights[~one.inside] @ pool.relevant[~one.inside])
        pi, f = probabilities(pool, measure, depth, one)
        bound = outside_gain([one.outside()], 1.0, NO_PAIRS)
        inside = np.where(one.inside, one.weights, 0.0)
        for _ in range(draws):
            drawn = np.flatnonzero(rng.random(pi.size) < pi)
            (found,) = difference_estimator(
                inside[None, drawn],
                pool.relevant[drawn],
                pi[drawn],
                prior=f[drawn],
                prior_total=[float(inside @ f)],
            )
            if isinstance(found, Refusal):
                continue
            made += 1
            held_inside += found.low <= truth <= found.high
            held += found.low <= truth <= found.high + bound.up[0]
            said = Standing(int(bound.standings([found.high - found.value])[0]))
            standing[said.name.lower()] += 1
            if lost < 0.01 * truth:
                small += 1
                small_refused += said == Standing.NOT_YET
    if not made:
        return {"n": 0}
    return {
        "n": made,
        "coverage_widened": round(held / made, 4),
        "coverage_not_widened": round(held_inside / made, 4),
        "answers": {name: round(count / made, 3) for name, count in standing.items()},
        "lose_less_than_1_percent": {
            "n": small,
            "refused": round(small_refused / small, 3) if small else None,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clef", type=Path, help="folder of CLEF TAR 2017 (qrels and runs)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of every left-out run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="write JSON alone")
    given = parser.parse_args()
    pools = ([clef(given.clef)] if given.clef else []) + [diverse(given.seed)]
    cells = [
        (pool, measure, depth, what)
        for pool in pools
        for measure, depth in (("P@10", 10), ("DCG@100", 100))
        for what in ("run", "group")
    ]
    report: dict[str, dict[str, Any]] = {}
    for pool, measure, depth, what in cells:
        name = f"{pool.name}, depth {depth}, {measure}, {what}"
        report[name] = {
            "table": table_row(pool, measure, depth, what),
            "sampled": sampled_row(pool, measure, depth, what, given.draws, given.seed),
        }
        if not given.json:
            print(name, json.dumps(report[name]), flush=True)
    if given.json:
        print(
            json.dumps(
                {"seed": given.seed, "draws": given.draws, "budget": BUDGET, "cells": report}, indent=2
            )
        )


if __name__ == "__main__":
    main()
