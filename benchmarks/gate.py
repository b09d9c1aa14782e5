"""How often is a gate wrong, and how many judgments does it take? Simulated paths on a made collection; JSON.

    python benchmarks/gate.py > gate.json        (--paths 1000 --reported 40)

Pairs of systems of parts/coverage_collection.py, labels with errors by popularity, and a gate of P@10 with tolerance
.02, cap 400, plan 120, batches of 10. Rows by true difference; `wrong` counts verdicts that are false: better where B
is not, not worse where it is by more than the tolerance, worse where it is not. `median_labels` is of decided paths.

`class_means` corrects by class means, `reported` as the product does; its paths are fewer, since every look fits a
model of gold anew. Both see the same judges' labels and the same items.

Controls, pairs whose roles in the items are shuffled: `equal` has a difference of exactly 0 though nearly all items
differ, `at the tolerance` one of exactly -tolerance, where not worse is wrong. `plain` are intervals of 1.96 standard
errors at the same looks, up to the cap: as a rule to stop by they must fail.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from parts.coverage_collection import (
    CUTOFF,
    GAINS,
    N_RUNS,
    N_TOPICS,
    Collection,
    Floats,
    Ints,
    judge,
    make_collection,
)

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.samples import AuditSample, Labels
from analytics.planning.gating import BETTER, NOT_WORSE, UNDECIDED, WORSE, GateBatch, Question
from sampling.measures.registry import parse_linear
from touchstone_ir.gate_difference import corrected_difference, labelled_arrays

ASKED = Question(tolerance=0.02, cap=400, plan=120, batch=10)
STRICT = Question(tolerance=0.0, cap=400, plan=120, batch=10)  # as with --require better
WIDE = Question(tolerance=0.05, cap=400, plan=120, batch=10)
UNIT = 1 / (CUTOFF * N_TOPICS)  # what one document more or less changes
ROWS = ((0.10, 0.25), (0.05, 0.10), (0.02, 0.05), (0.0, 0.02))
PLAIN = 1.96
# Of an earlier prototype by class means on 720 paths: shares decided and wrong, median of labels.
PROTOTYPE = {
    ".10 to .25": {"decided": 1.0, "wrong": 0.0, "median_labels": 133},
    ".05 to .10": {"decided": 0.735, "median_labels": 298},
    ".02 to .05": {"decided": 0.556},
    "below .02": {"decided": 0.394, "wrong": 0.008},
    "equal": {"better": 0.009, "worse": 0.005, "plain_fires": 0.32},
}


@dataclass(frozen=True, eq=False)
class World:
    """The items of a pair of systems: topic, ranks and weights [system, item], a judge's labels, and the truth."""

    topic: Ints
    ranks: Ints
    weights: Floats
    label: Ints
    gold: Ints

    @property
    def weight(self) -> Floats:
        """Return w_b - w_a."""
        return np.asarray(self.weights[1] - self.weights[0])

    @property
    def truth(self) -> float:
        return float(self.weight @ GAINS[self.gold])


def world_of(collection: Collection, first: int, second: int, label: Ints) -> World:
    """Return the items of a pair, with a judge's labels [item of the collection]."""
    place = np.flatnonzero(collection.runs[first] != collection.runs[second])
    runs = [first, second]
    ranks, weights = collection.rank[runs][:, place], collection.runs[runs][:, place]
    return World(collection.topic[place], ranks, weights, label[place], collection.grade[place])


def with_difference(world: World, n_documents: int, rng: np.random.Generator) -> World:
    """Return the items with shuffled roles of both systems: B has so many more relevant documents than A.

    Among relevant and among other items as many are B's as A's, but for these; an item too many is left out.
    """
    chosen, swapped = [], []
    relevant = GAINS[world.gold] > 0
    for group, more in ((np.flatnonzero(relevant), n_documents), (np.flatnonzero(~relevant), 0)):
        mixed = rng.permutation(group)
        mixed = mixed[: mixed.size - (mixed.size - more) % 2]
        n_of_b = (mixed.size + more) // 2
        chosen.append(mixed)
        swapped.append((world.weight[mixed] > 0) != (np.arange(mixed.size) < n_of_b))
    place = np.concatenate(chosen)
    order = np.argsort(place)
    place, swap = place[order], np.concatenate(swapped)[order]
    ranks, weights = (
        np.where(swap, table[::-1, place], table[:, place]) for table in (world.ranks, world.weights)
    )
    return World(world.topic[place], ranks, weights, world.label[place], world.gold[place])


# -- estimates at a look ------------------------------------------------------------------------------------

Estimator = Callable[[GateBatch], Estimate | Refusal]


def by_class_means(world: World) -> Estimator:
    n_items, weight = world.gold.size, world.weight
    everything, nobody = np.arange(n_items), np.zeros(n_items, dtype=np.int64)
    labels = Labels(everything, nobody, world.label, n_items=n_items, n_assessors=1, n_grades=GAINS.size)
    classes, ones = labels.classes(), np.ones(n_items)

    def estimate(batch: GateBatch) -> Estimate | Refusal:
        audit = AuditSample(ones, classes, asked_mask(batch), world.gold, batch.probability, GAINS.size)
        return correct(weight, audit, GAINS).estimates[0]

    return estimate


def distinct_ranks(world: World) -> tuple[Ints, int]:
    """Return ranks that a system has once in a topic, and a cutoff within which they all are.

    Shuffled roles leave some of them twice, which no run has: then documents are counted in the order of their ranks.
    """
    ranks = np.array(world.ranks)
    for system in range(2):
        own = np.flatnonzero(world.weights[system])
        if np.unique(np.stack([world.topic[own], ranks[system, own]]), axis=1).shape[1] == own.size:
            continue
        order = own[np.lexsort((own, ranks[system, own], world.topic[own]))]
        _, first, counts = np.unique(world.topic[order], return_index=True, return_counts=True)
        ranks[system, order] = np.arange(order.size) - np.repeat(first, counts) + 1
    if np.array_equal(ranks, world.ranks):
        return ranks, CUTOFF
    return np.where(world.weights == 0, 0, ranks), 2 * CUTOFF


def as_reported(world: World) -> Estimator:
    ranks, cutoff = distinct_ranks(world)
    measure, scale = parse_linear(f"P@{cutoff}"), cutoff / CUTOFF
    columns = {
        "topic": [f"t{topic:02}" for topic in world.topic],
        "doc": [f"d{place:04}" for place in range(world.gold.size)],
        "rank_a": ranks[0],
        "rank_b": ranks[1],
        "label": world.label,
    }
    arrays = labelled_arrays(pl.DataFrame(columns), measure)

    def estimate(batch: GateBatch) -> Estimate | Refusal:
        found = corrected_difference(
            arrays, measure, is_asked=asked_mask(batch), gold=world.gold, probability=batch.probability
        )
        if isinstance(found, Refusal):
            return found
        return replace(found, value=scale * found.value, standard_error=scale * found.standard_error)

    return estimate


def asked_mask(batch: GateBatch) -> Any:
    mask = np.zeros(batch.probability.size, dtype=bool)
    mask[batch.asked] = True
    return mask


# -- paths --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ending:
    """How a gate ended, also with other tolerances, and whether a plain interval fired, as far as looks were taken."""

    verdict: str
    n_labels: int
    truth: float
    strict: str = UNDECIDED
    wide: str = UNDECIDED
    plain_fired: bool = False

    @property
    def is_wrong(self) -> bool:
        return is_false(self.verdict, self.truth, ASKED.tolerance)


def is_false(verdict: str, truth: float, tolerance: float) -> bool:
    """Return whether the verdict says what is not so; on the border both sides are false."""
    exact = 1e-12
    return (
        (verdict == BETTER and truth <= exact)
        or (verdict == NOT_WORSE and truth <= exact - tolerance)
        or (verdict == WORSE and truth >= -exact)
    )


def play(world: World, estimate: Estimator, rng: np.random.Generator, *, takes_all_looks: bool) -> Ending:
    """Ask for batch after batch until there is a verdict, or up to the cap."""
    number = rng.uniform(1e-12, 1, world.gold.size)
    ending: tuple[str, int] | None = None
    strict, wide, fired, n_labels = UNDECIDED, UNDECIDED, False, 0
    for batch in ASKED.batches(world.weight, number):
        found, n_labels = estimate(batch), batch.asked.size
        if isinstance(found, Refusal):
            continue
        bounds = ASKED.bounds(found.value, found.standard_error, found.n, world.gold.size)
        if bounds is None:
            continue
        verdict = ASKED.verdict(*bounds)
        if verdict is not None and ending is None:
            ending = verdict, n_labels
        if strict == UNDECIDED:
            strict = STRICT.verdict(*bounds) or UNDECIDED
        if strict != UNDECIDED and not takes_all_looks:
            break
        fired |= abs(found.value) > PLAIN * found.standard_error
        if wide == UNDECIDED:
            wide = WIDE.verdict(*bounds) or UNDECIDED
    verdict, n_labels = ending or (UNDECIDED, n_labels)
    return Ending(verdict, n_labels, world.truth, strict, wide, fired)


def summary(endings: list[Ending]) -> dict[str, Any]:
    n = len(endings)

    def share(count: int) -> float:
        return round(count / n, 4)

    decided = [one.n_labels for one in endings if one.verdict != UNDECIDED]
    wrong = sum(one.is_wrong for one in endings)
    verdicts = {key: sum(one.verdict == key for one in endings) for key in (BETTER, NOT_WORSE, WORSE)}
    return {
        "paths": n,
        "decided": share(len(decided)),
        "decided_se": round((len(decided) / n * (1 - len(decided) / n) / n) ** 0.5, 4),
        "median_labels": float(np.median(decided)) if decided else None,
        "median_labels_of_all": float(np.median([one.n_labels for one in endings])),
        "most_labels": max(one.n_labels for one in endings),
        **{key.replace(" ", "_"): share(count) for key, count in verdicts.items()},
        "wrong": share(wrong),
        "decided_without_tolerance": share(sum(one.strict != UNDECIDED for one in endings)),
        "wrong_without_tolerance": share(sum(is_false(one.strict, one.truth, 0.0) for one in endings)),
    }


def control_summary(endings: list[Ending]) -> dict[str, Any]:
    n = len(endings)
    wide = sum(one.wide in (BETTER, NOT_WORSE) for one in endings)
    wide_wrong = sum(is_false(one.wide, one.truth, WIDE.tolerance) for one in endings)
    return summary(endings) | {
        "plain_fires": round(sum(one.plain_fired for one in endings) / n, 4),
        "not_worse_with_tolerance_.05": round(wide / n, 4),
        "wrong_with_tolerance_.05": round(wide_wrong / n, 4),
    }


class Paths:
    """Paths of the gates of one collection."""

    def __init__(self, seed: int) -> None:
        self.seed, self.collection = seed, make_collection(1)
        first, second = self.collection.targets.pairs
        self.pairs = np.stack([first, second], axis=1)
        value = self.collection.truth[:N_RUNS]
        self.better_last = np.where((value[first] > value[second])[:, None], self.pairs[:, ::-1], self.pairs)
        self.difference = np.abs(self.collection.truth[N_RUNS:])
        runs = self.collection.runs
        self.n_items = np.array([np.count_nonzero(runs[a] != runs[b]) for a, b in self.pairs])

    def world(self, chosen: Ints, rng: np.random.Generator, *, b_is_better: bool = False) -> World:
        """Return one of the chosen pairs, labelled anew: in either order, or with the better system as B."""
        place = rng.choice(chosen)
        pair = self.pairs[place] if rng.random() < 0.5 else self.pairs[place, ::-1]
        first, second = self.better_last[place] if b_is_better else pair
        given = judge(self.collection, "popularity", 1, random_assignment=True, rng=rng).given
        return world_of(self.collection, int(first), int(second), given)

    def of_row(
        self, row: int, paths: int, estimator: Callable[[World], Estimator], *, b_is_better: bool = False
    ) -> dict[str, Any]:
        low, high = ROWS[row]
        chosen = np.flatnonzero((self.difference >= low) & (self.difference < high))
        rng = np.random.default_rng([self.seed, row])
        endings = []
        for _ in range(paths):
            world = self.world(chosen, rng, b_is_better=b_is_better)
            endings.append(play(world, estimator(world), rng, takes_all_looks=False))
        median = float(np.median(self.n_items[chosen]))
        found = summary(endings)
        return (
            {"pairs": int(chosen.size), "median_items": median}
            | found
            | {"holds": {"wrong": found["wrong"] <= 0.05}}
        )

    def of_control(
        self, n_documents: int, paths: int, estimator: Callable[[World], Estimator]
    ) -> dict[str, Any]:
        chosen = np.flatnonzero(self.n_items >= 650)
        rng = np.random.default_rng([self.seed, 10 - n_documents])
        endings = []
        for _ in range(paths):
            world = with_difference(self.world(chosen, rng), n_documents, rng)
            endings.append(play(world, estimator(world), rng, takes_all_looks=True))
        found = control_summary(endings)
        return (
            {
                "difference": round(n_documents * UNIT, 4),
                "median_items": float(np.median(self.n_items[chosen])),
            }
            | found
            | {"holds": self.control_goals(n_documents, found)}
        )

    @staticmethod
    def control_goals(n_documents: int, found: dict[str, Any]) -> dict[str, bool]:
        """Return what has to hold: errors at most 5 %, and at a difference of 0 plain intervals that err more often."""
        if n_documents:
            return {
                "wrong": found["wrong"] <= 0.05,
                "wrong_with_tolerance_.05": found["wrong_with_tolerance_.05"] <= 0.05,
            }
        return {"wrong": found["wrong"] <= 0.05, "plain_fails": found["plain_fires"] > 0.05}


ESTIMATORS: dict[str, Callable[[World], Estimator]] = {
    "class_means": by_class_means,
    "reported": as_reported,
}
NAMES = (".10 to .25", ".05 to .10", ".02 to .05", "below .02")
CONTROLS = {
    "equal": 0,
    "at the tolerance": -round(ASKED.tolerance / UNIT),
    "at the tolerance .05": -round(WIDE.tolerance / UNIT),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--paths", type=int, default=1000, help="of every row, by class means")
    parser.add_argument("--reported", type=int, default=40, help="of every row, by the reported method")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found: dict[str, Any] = {"prototype": PROTOTYPE}
    paths = Paths(options.seed)
    for name, count in (("class_means", options.paths), ("reported", options.reported)):
        if count < 1:
            continue
        began = time.monotonic()
        rows = {NAMES[row]: paths.of_row(row, count, ESTIMATORS[name]) for row in range(len(ROWS))}
        rows[f"{NAMES[-1]}, B better"] = paths.of_row(
            len(ROWS) - 1, count, ESTIMATORS[name], b_is_better=True
        )
        rows |= {key: paths.of_control(more, count, ESTIMATORS[name]) for key, more in CONTROLS.items()}
        found[name] = rows | {"seconds": round(time.monotonic() - began)}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
