"""Part of benchmarks/coverage.py: the estimate from predicted gold beside that from class means, on the same audits."""

from dataclasses import astuple, dataclass
from itertools import product
from typing import Any

import numpy as np
from parts.coverage_collection import (
    CUTOFF,
    N_ASSESSORS,
    N_GRADES,
    N_RUNS,
    N_TOPICS,
    Collection,
    Floats,
    Ints,
    judge,
    make_collection,
)
from parts.coverage_grid import Cell, Tally, audit_design, chosen, draw_probabilities, hash_of

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import two_phase
from sampling.measures.sparse import from_dense
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, rank_features
from sampling.questions import prior_of_runs

GAINS = {"P@10": np.array([0.0, 1.0, 1.0]), "DCG@10": np.array([0.0, 1.0, 2.0])}
AUDIT_SIZES = (50, 100, 300, 1000)
PRIOR = 0.3  # of the class means: what the grid of benchmarks/coverage.py takes for known


@dataclass(frozen=True)
class Comparison:
    """One kind of campaign in which both are compared."""

    topics: str  # alike, unlike
    measure: str
    item_design: str  # whole, drawn
    n_audits: int
    votes: int
    audit_design: str = "influence"  # simple, influence

    @property
    def name(self) -> str:
        """Return what tells it from others: it seeds the repetitions."""
        return "/".join(str(part) for part in astuple(self))


def comparisons() -> list[Comparison]:
    """Return all comparisons."""
    kinds = [("alike", "P@10"), ("unlike", "DCG@10")]
    return [
        Comparison(*kind, *rest)
        for kind, *rest in product(kinds, ("whole", "drawn"), AUDIT_SIZES, (1, 3), ("influence", "simple"))
        if "influence" in rest or 50 in rest
    ]


@dataclass(frozen=True)
class World:
    """A collection in one measure, and what is known of it before anything is judged."""

    collection: Collection
    gains: Floats
    targets: TargetWeights
    known: Foreknowledge

    @property
    def truth(self) -> Floats:
        return self.targets.totals(self.gains[self.collection.grade])


def make_world(kind: Comparison) -> World:
    """Return the collection with the weights of the measure, and the product's features and prior."""
    collection = make_collection(1, kind.topics)
    ranks, n = collection.rank, collection.grade.size
    weights = collection.runs
    if kind.measure == "DCG@10":
        weights = np.where(ranks > 0, 1 / np.log2(np.maximum(ranks, 1) + 1.0), 0.0) / N_TOPICS
    features = rank_features(ranks, CUTOFF)
    fold = np.random.default_rng(3).integers(0, N_FOLDS, n)
    known = Foreknowledge(
        features, np.full(features.shape[1], FEATURE_RIDGE), fold, prior_of_runs(ranks, CUTOFF)
    )
    return World(collection, GAINS[kind.measure], TargetWeights(from_dense(weights)), known)


def estimates_of(
    world: World, kind: Comparison, pi: Floats, rng: np.random.Generator
) -> tuple[Estimates, Estimates]:
    """Judge, draw and audit once; return every system and pair by class means, and by predicted gold."""
    collection, n = world.collection, world.collection.grade.size
    given = judge(collection, "popularity", kind.votes, random_assignment=True, rng=rng)
    kept: Ints = np.flatnonzero(chosen(pi, rng))
    everything = Labels(
        given.item, given.assessor, given.given, n_items=n, n_assessors=N_ASSESSORS, n_grades=N_GRADES
    )
    labels = everything.of_items(kept)
    drawn = pi[kept]
    here = world.targets.over(kept)
    design = Cell(kind.item_design, kind.audit_design, kind.n_audits, "popularity", kind.votes, "random")
    chance = audit_design(design, here.runs.dense(), drawn)
    audit = AuditSample(
        drawn, labels.classes(), chosen(chance, rng), collection.grade[kept], chance, N_GRADES
    )
    flat = np.full(n, PRIOR)
    before = correct(here, audit, world.gains, prior=flat[kept], prior_total=world.targets.totals(flat))
    frame = Frame(N_TOPICS, collection.topic, kept, drawn)
    prediction = predicted_gold(frame, audit, world.gains, labels=labels, known=world.known)
    after = two_phase(
        here,
        draw_probability=drawn,
        audited=audit.audited,
        gold=world.gains[audit.gold_grade],
        audit_probability=chance,
        before=prediction.before[kept],
        after=prediction.after,
        spread=prediction.spread,
        before_total=world.targets.totals(prediction.before),
    )
    return before.estimates, after.estimates


def run_comparison(kind: Comparison, repetitions: int, seed: int) -> dict[str, Any]:
    """Return both tallies, and the ratio of the median half-widths of pairs."""
    world, rng = make_world(kind), np.random.default_rng([seed, hash_of(kind.name)])
    n = world.collection.grade.size
    pi = draw_probabilities(world.collection) if kind.item_design == "drawn" else np.ones(n)
    tallies = {"class_means": Tally(world.truth), "prediction": Tally(world.truth)}
    for _ in range(repetitions):
        for tally, found in zip(tallies.values(), estimates_of(world, kind, pi, rng), strict=True):
            tally.add(found)
    widths = {name: median_half_width(tally) for name, tally in tallies.items()}
    return {
        "half_width_ratio": round(widths["prediction"] / widths["class_means"], 4),
        **{name: tally.summary() for name, tally in tallies.items()},
    }


def median_half_width(tally: Tally) -> float:
    """Return the median over repetitions and pairs, of those that are not refused."""
    rows = np.stack(tally.rows)[:, N_RUNS:]
    return float(np.nanmedian((rows[..., 1] - rows[..., 0]) / 2))
