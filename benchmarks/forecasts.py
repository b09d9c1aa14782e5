"""Measure how well the corrected number's interval is forecast before the first judgment.

    python benchmarks/forecasts.py --campaigns 10 --seed 1 [--json]

A campaign: a collection with complete judgments (3 grades, topics alike or unlike; TREC-like pools of 20 runs, of
unlike runs or near-duplicates), a pair of its runs, the default draw for this pair (1,200 items), 1 to 3 labels an item
with errors that depend on the grade alone or on popularity too, and an audit of 150 by influence. The forecast is made
of the ranks and of how labels err, as the product makes it; then the campaign is drawn, judged, audited and estimated
once, by the product's functions.

Printed for each kind of errors, and for the pair and for its first run: the median of forecast over obtained half-width
and the share within .7 to 1.4, with the errors as they are, with errors assumed (.80, .85), and the control: the
drawing alone, whose median is to be below .3.
"""

import argparse
import json
import sys
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.coverage_collection import N_ASSESSORS, N_GRADES, N_TOPICS, Floats, judge, make_collection
from parts.coverage_collection import Collection as Judged
from parts.coverage_grid import chosen
from parts.coverage_prediction import Campaign, Comparison, World
from parts.trec_like import trec_like

from analytics.estimation.estimate import Estimate
from analytics.estimation.gold_prediction import Foreknowledge
from analytics.estimation.samples import Labels
from analytics.estimation.targets import TargetWeights
from sampling.audit_plays import AuditPlay
from sampling.designs import average_run_design, inclusion_probabilities, mixture, normalise, uniform_design
from sampling.measures.sparse import from_dense
from sampling.outlook import LabelErrors, assumed_errors, grade_chances, label_classes, outlook
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, rank_features
from sampling.questions import prior_of_runs

DRAWN, AUDITED, RELEVANT = 1200, 150, 1
POOLS = ("alike", "unlike", "diverse", "near-duplicates")
GAINS = {"alike": [0.0, 1.0, 1.0], "unlike": [0.0, 1.0, 2.0]}
WITHIN = (0.7, 1.4)


@dataclass(frozen=True, eq=False)
class Pool:
    """A collection, the weights of all its runs, the gains of its grades, and what ranks say before any judgment."""

    collection: Judged
    weights: Floats
    gains: Floats
    prior: Floats
    features: Floats
    fold: Any


def make_pool(name: str, seed: int) -> Pool:
    """Return one of the pools."""
    if name in GAINS:
        collection, depth = make_collection(seed, name), 10
        discount = 1.0 if name == "alike" else 1 / np.log2(np.maximum(collection.rank, 1) + 1.0)
        weights = np.where(collection.rank > 0, discount, 0.0) / N_TOPICS / (10 if name == "alike" else 1)
    else:
        made = trec_like(seed, near_duplicates=name != "diverse")
        depth, weights = made.depth, made.weights
        returned = (made.ranks > 0).sum(axis=0).astype(np.int64)
        collection = Judged(
            made.relevant.astype(np.int64), returned, made.topic_index, made.weights, made.ranks
        )
    gains = np.array(GAINS.get(name, [0.0, 1.0, 1.0]))
    fold = np.random.default_rng([seed, 3]).integers(0, N_FOLDS, collection.grade.size)
    features = rank_features(collection.rank, depth)
    return Pool(collection, weights, gains, prior_of_runs(collection.rank, depth), features, fold)


def true_errors(collection: Judged, noise: str, seed: int) -> LabelErrors:
    """Return the shares of grades given by true grade, from one more label of every item."""
    given = judge(collection, noise, 1, random_assignment=True, rng=np.random.default_rng([seed, 5]))
    counts = np.zeros((N_GRADES, N_GRADES))
    np.add.at(counts, (collection.grade[given.item], given.given), 1)
    if not counts[2].any():  # two grades: a relevant document is of either
        counts[2] = counts[1]
    return LabelErrors(counts / counts.sum(axis=1, keepdims=True), "measured", False)


def draw_design(pool: Pool, pair: tuple[int, int]) -> Floats:
    """Return the default design for the pair: contrast times doubt, 5 % for other runs and 1 % for all items."""
    contrast = np.abs(pool.weights[pair[0]] - pool.weights[pair[1]])
    own = normalise(contrast * np.sqrt(pool.prior * (1 - pool.prior)))
    others = [average_run_design(pool.weights), uniform_design(own.size)]
    return inclusion_probabilities(mixture(own, others, [0.05, 0.01]), DRAWN)


def forecasts(
    pool: Pool, pair: tuple[int, int], pi: Floats, errors: LabelErrors, votes: int
) -> dict[str, tuple[float, float]]:
    """Return for the pair and its first run the half-width of the corrected number, and that of the drawing alone."""
    chances = grade_chances(pool.prior, N_GRADES, RELEVANT)
    contrast = np.abs(pool.weights[pair[0]] - pool.weights[pair[1]])
    play = AuditPlay(pi, contrast, pool.collection.topic, chances, errors.matrix, pool.gains, votes)
    audit = play.audit_probabilities("influence", AUDITED, np.random.default_rng(20))
    found = {}
    for name, w in (("run", pool.weights[pair[0]]), ("pair", contrast)):
        result = outlook(
            w**2,
            pi,
            chances,
            classes=label_classes(errors.matrix, votes),
            gains=pool.gains,
            audit_probability=audit,
        )
        gain, p = pool.gains[RELEVANT:].mean(), pool.prior
        alone = 1.959964 * np.sqrt(((1 - pi) / pi * np.square(w * gain) * p * (1 - p)).sum())
        found[name] = (float(result.half_width or np.nan), float(alone))
    return found


def obtained_widths(
    pool: Pool, pair: tuple[int, int], pi: Floats, noise: str, votes: int, rng: np.random.Generator
) -> dict[str, float]:
    """Draw, judge, audit and estimate once; return the half-width of the pair and of its first run."""
    collection = replace(pool.collection, runs=pool.weights[list(pair)])
    ridges = np.full(pool.features.shape[1], FEATURE_RIDGE)
    known = Foreknowledge(pool.features, ridges, pool.fold, pool.prior)
    world = World(collection, pool.gains, TargetWeights(from_dense(collection.runs)), known)
    given = judge(collection, noise, votes, random_assignment=True, rng=rng)
    labels = Labels(
        given.item,
        given.assessor,
        given.given,
        n_items=pi.size,
        n_assessors=N_ASSESSORS,
        n_grades=N_GRADES,
    )
    kept = np.flatnonzero(chosen(pi, rng))
    once = Campaign(world, kept, pi[kept], labels.of_items(kept), rng.uniform(1e-12, 1, kept.size))
    kind = Comparison("", "", "drawn", AUDITED, votes)
    rows = once.by_prediction(once.audit(once.influence(kind, AUDITED)))
    widths = {}
    for name, place in (("run", 0), ("pair", 2)):  # the two runs, then their difference
        row = rows[place]
        widths[name] = (row.high - row.low) / 2 if isinstance(row, Estimate) else np.nan
    return widths


def one_campaign(number: int, seed: int) -> list[dict[str, Any]]:
    """Return forecast over obtained of a campaign in all four pools, with one kind of errors and number of labels."""
    noise, votes = list(product(("class_conditional", "popularity"), (1, 2, 3)))[number % 6]
    rows = []
    for name in POOLS:
        pool = make_pool(name, seed + number)
        rng = np.random.default_rng([seed, number, POOLS.index(name)])
        first, second = sorted(rng.choice(pool.weights.shape[0], 2, replace=False).tolist())
        pair = (first, second)
        pi = draw_design(pool, pair)
        widths = obtained_widths(pool, pair, pi, noise, votes, rng)
        measured = forecasts(pool, pair, pi, true_errors(pool.collection, noise, seed), votes)
        assumed = forecasts(pool, pair, pi, assumed_errors(N_GRADES, RELEVANT), votes)
        rows += [
            {
                "pool": name,
                "errors": noise,
                "labels": votes,
                "of": of,
                "measured": measured[of][0] / width,
                "assumed": assumed[of][0] / width,
                "drawing_alone": measured[of][1] / width,
            }
            for of, width in widths.items()
        ]
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return medians and shares within the limits, by errors and by what is forecast."""
    found = []
    for noise, of in product(("class_conditional", "popularity"), ("pair", "run")):
        mine = [row for row in rows if (row["errors"], row["of"]) == (noise, of)]
        cell: dict[str, Any] = {"errors": noise, "of": of, "campaigns": len(mine)}
        for name in ("measured", "assumed", "drawing_alone"):
            ratio = np.array([row[name] for row in mine])
            ratio = ratio[np.isfinite(ratio)]
            if ratio.size:
                inside = float(((ratio >= WITHIN[0]) & (ratio <= WITHIN[1])).mean())
                cell[name] = {"median": round(float(np.median(ratio)), 3), "within": round(inside, 3)}
        found.append(cell)
    return found


def main() -> None:
    """Simulate, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=12, help="in each pool")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for number in range(options.campaigns):
        rows += one_campaign(number, options.seed)
    found = summary(rows)
    if options.json:
        print(json.dumps({"summary": found, "campaigns": rows}, indent=2))
        return
    for cell in found:
        parts = [
            f"{name} {cell[name]['median']:.2f} ({cell[name]['within']:.0%} within)"
            for name in ("measured", "assumed", "drawing_alone")
            if name in cell
        ]
        print(f"{cell['errors']:18} {cell['of']:5} {cell['campaigns']:4}  " + "   ".join(parts))


if __name__ == "__main__":
    main()
