"""Part of benchmarks/coverage.py: the estimate from predicted gold beside that from class means, on the same audits.

And beside both, for `learned`: the first half of the same audit, and as much again where gold of other folds leaves
documents in doubt. Every item has one permanent number, so the first halves are the same items. `learned_at_once` has a
first half of its own, by the strategy that learns while there is nothing to learn from: less of it is spread evenly.
"""

from dataclasses import astuple, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from parts.coverage_collection import (
    CUTOFF,
    N_ASSESSORS,
    N_GRADES,
    N_TOPICS,
    Collection,
    Floats,
    Ints,
    judge,
    make_collection,
)
from parts.coverage_grid import Cell, Tally, audit_design, chosen, draw_probabilities, hash_of
from parts.trec_like import clef_tar, trec_like

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.gold_prediction import Foreknowledge, GoldPrediction, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import two_phase
from sampling.audit_plan import Auditable
from sampling.judged import Judged, question_influence
from sampling.measures.sparse import from_dense
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, rank_features
from sampling.questions import prior_of_runs
from sampling.strategies import strategy_probabilities

GAINS = {
    "P@10": np.array([0.0, 1.0, 1.0]),
    "DCG@10": np.array([0.0, 1.0, 2.0]),
    "DCG@100": np.array([0.0, 1.0, 1.0]),
}
AUDIT_SIZES = (50, 100, 300, 1000)
LEARNED_SIZES = (100, 300, 1000)  # the first half must have 50
# Ratios of half-widths to those of class means that are to be reached, at 300 and 1,000 labels.
MOST_ALONE = {"alike": (0.99, 0.98), "unlike": (0.87, 0.80), "CLEF": (0.96, 0.92)}
MOST_LEARNED = {"alike": (0.89, 0.86), "unlike": (0.79, 0.68), "CLEF": (0.82, 0.76)}
PRIOR = 0.3  # of the class means: what the grid of benchmarks/coverage.py takes for known


@dataclass(frozen=True)
class Comparison:
    """One kind of campaign in which both are compared."""

    topics: str  # alike, unlike; diverse and CLEF are pools of their own
    measure: str
    item_design: str  # whole, drawn
    n_audits: int
    votes: int
    audit_design: str = "influence"  # simple, influence, learned
    noise: str = "popularity"
    assignment: str = "random"  # random, not_random

    @property
    def name(self) -> str:
        """Return what tells comparisons apart: it seeds the repetitions. All have the same errors and assignment."""
        return "/".join(str(part) for part in astuple(self)[:6])


def comparisons(clef: Path | None = None) -> list[Comparison]:
    """Return all comparisons; those of CLEF if its folder is given."""
    kinds = [("alike", "P@10"), ("unlike", "DCG@10")]
    grid = [
        Comparison(*kind, *rest)
        for kind, *rest in product(kinds, ("whole", "drawn"), AUDIT_SIZES, (1, 3), ("influence", "simple"))
        if "influence" in rest or 50 in rest
    ]
    learned = [
        Comparison(*kind, *rest, "learned")
        for kind, *rest in product(kinds, ("whole", "drawn"), LEARNED_SIZES, (1, 3))
    ]
    pools = ("diverse", "CLEF") if clef else ("diverse",)
    others = [
        Comparison(pool, "DCG@100", "whole", size, 1, "learned")
        for pool, size in product(pools, LEARNED_SIZES)
    ]
    return grid + learned + others


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


def make_world(kind: Comparison, clef: Path | None = None) -> World:
    """Return the collection with the weights of the measure, and the product's features and prior."""
    depth = CUTOFF
    if kind.topics in ("alike", "unlike"):
        collection = make_collection(1, kind.topics)
        weights = collection.runs
        if kind.measure == "DCG@10":
            ranks = collection.rank
            weights = np.where(ranks > 0, 1 / np.log2(np.maximum(ranks, 1) + 1.0), 0.0) / N_TOPICS
    else:
        made = clef_tar(clef) if clef and kind.topics == "CLEF" else trec_like(1, near_duplicates=False)
        depth, weights = made.depth, made.weights
        returned = (made.ranks > 0).sum(axis=0).astype(np.int64)
        collection = Collection(
            made.relevant.astype(np.int64), returned, made.topic_index, made.weights, made.ranks
        )
    features = rank_features(collection.rank, depth)
    fold = np.random.default_rng(3).integers(0, N_FOLDS, collection.grade.size)
    known = Foreknowledge(
        features, np.full(features.shape[1], FEATURE_RIDGE), fold, prior_of_runs(collection.rank, depth)
    )
    return World(collection, GAINS[kind.measure], TargetWeights(from_dense(weights)), known)


@dataclass(frozen=True)
class Campaign:
    """What one repetition drew and judged, with the permanent numbers of its audits."""

    world: World
    kept: Ints  # places of the judged items
    drawn: Floats  # their probabilities
    labels: Labels
    number: Floats

    @property
    def here(self) -> TargetWeights:
        return self.world.targets.over(self.kept)

    @property
    def frame(self) -> Frame:
        topic = self.world.collection.topic
        return Frame(int(topic.max()) + 1, topic, self.kept, self.drawn)

    def audit(self, chance: Floats) -> AuditSample:
        """Return the audit with these probabilities."""
        return AuditSample(
            self.drawn,
            self.labels.classes(),
            self.number < chance,
            self.world.collection.grade[self.kept],
            chance,
            N_GRADES,
        )

    def influence(self, kind: Comparison, n_audits: int) -> Floats:
        """Return the probabilities of an audit of this size by the comparison's first design."""
        first = "influence" if kind.audit_design == "learned" else kind.audit_design
        design = Cell(kind.item_design, first, n_audits, kind.noise, kind.votes, kind.assignment)
        return audit_design(design, self.here.runs.dense(), self.drawn)

    def judged(self, gold_spread: Floats | None = None) -> Judged:
        """Return the judged items as strategies see them."""
        nothing = np.zeros(self.kept.size, dtype=np.int64)
        return Judged(
            question_influence(from_dense(self.here.runs.dense()), self.drawn),
            self.drawn,
            nothing,
            nothing,
            np.zeros(self.kept.size),
            n_grades=1,
            fold=self.world.known.fold[self.kept],
            gold_spread=gold_spread,
        )

    def learned(self, first: Floats, n_more: int) -> Floats:
        """Return the probabilities after one more audit that learned from the first one."""
        judged = self.judged(self.predicted(self.audit(first)).spread)
        return Auditable(judged, first).probabilities("learned", n_more)

    def predicted(self, audit: AuditSample, fitted: Any = None) -> GoldPrediction:
        """Return g, h and s2; `fitted`: audited items whose gold they may learn from."""
        world = self.world
        return predicted_gold(
            self.frame, audit, world.gains, labels=self.labels, known=world.known, fitted_gold=fitted
        )

    def class_means(self, audit: AuditSample) -> Estimates:
        flat = np.full(self.world.collection.grade.size, PRIOR)
        return correct(
            self.here,
            audit,
            self.world.gains,
            prior=flat[self.kept],
            prior_total=self.world.targets.totals(flat),
        ).estimates

    def by_prediction(self, audit: AuditSample, fitted: Any = None) -> Estimates:
        prediction = self.predicted(audit, fitted)
        return two_phase(
            self.here,
            draw_probability=self.drawn,
            audited=audit.audited,
            gold=self.world.gains[audit.gold_grade],
            audit_probability=audit.audit_probability,
            before=prediction.before[self.kept],
            after=prediction.after,
            spread=prediction.spread,
            before_total=self.world.targets.totals(prediction.before),
        ).estimates


def campaign_of(world: World, kind: Comparison, pi: Floats, rng: np.random.Generator) -> Campaign:
    """Judge and draw once."""
    collection, n = world.collection, world.collection.grade.size
    at_random = kind.assignment == "random"
    given = judge(collection, kind.noise, kind.votes, random_assignment=at_random, rng=rng)
    kept: Ints = np.flatnonzero(chosen(pi, rng))
    labels = Labels(
        given.item, given.assessor, given.given, n_items=n, n_assessors=N_ASSESSORS, n_grades=N_GRADES
    )
    return Campaign(world, kept, pi[kept], labels.of_items(kept), rng.uniform(1e-12, 1, kept.size))


def estimates_of(
    world: World, kind: Comparison, pi: Floats, rng: np.random.Generator
) -> dict[str, Estimates]:
    """Judge, draw and audit once; return every system and pair by class means, and by predicted gold."""
    once = campaign_of(world, kind, pi, rng)
    audit = once.audit(once.influence(kind, kind.n_audits))
    found = {"class_means": once.class_means(audit), "prediction": once.by_prediction(audit)}
    if kind.audit_design == "learned":
        half = kind.n_audits // 2
        first = once.influence(kind, half)
        learned = once.audit(once.learned(first, kind.n_audits - half))
        found["learned"] = once.by_prediction(learned)
        found["learned_exact"] = once.by_prediction(learned, once.number < first)
        own_first = strategy_probabilities("learned", once.judged(), expected_count=half)
        found["learned_at_once"] = once.by_prediction(
            once.audit(once.learned(own_first, kind.n_audits - half))
        )
    return found


def run_comparison(kind: Comparison, repetitions: int, seed: int, clef: Path | None = None) -> dict[str, Any]:
    """Return all tallies, and the ratio of the median half-widths of pairs."""
    world, rng = make_world(kind, clef), np.random.default_rng([seed, hash_of(kind.name)])
    n = world.collection.grade.size
    pi = draw_probabilities(world.collection) if kind.item_design == "drawn" else np.ones(n)
    tallies: dict[str, Tally] = {}
    for _ in range(repetitions):
        for name, found in estimates_of(world, kind, pi, rng).items():
            tallies.setdefault(name, Tally(world.truth)).add(found)
    n_runs = world.targets.runs.n_runs
    widths = {name: median_half_width(tally, n_runs) for name, tally in tallies.items()}
    ratios = {name: round(width / widths["class_means"], 4) for name, width in widths.items()}
    goals = learned_goals(kind, ratios, tallies, n_runs)
    return {
        "half_width_ratio": ratios["prediction"],
        "half_width_ratios": ratios,
        **{name: tally.summary(n_runs) for name, tally in tallies.items()},
        **({"holds": goals} if goals else {}),
    }


def learned_goals(
    kind: Comparison, ratios: dict[str, float], tallies: dict[str, Tally], n_runs: int
) -> dict[str, bool]:
    """Return which goals a comparison with audits that learn reaches; a pool without a goal for widths has no such."""
    if kind.audit_design != "learned":
        return {}
    covered = tallies["learned"].summary(n_runs)["pairs"]
    goals = {"learned_pairs": 0.945 <= covered <= 0.985}
    if (
        kind.topics in MOST_LEARNED
        and kind.votes == 1
        and kind.item_design == "whole"
        and kind.n_audits > 100
    ):
        place = int(kind.n_audits == 1000)
        goals["prediction_width"] = ratios["prediction"] <= MOST_ALONE[kind.topics][place]
        goals["learned_width"] = ratios["learned"] <= MOST_LEARNED[kind.topics][place]
    return goals


def median_half_width(tally: Tally, n_runs: int) -> float:
    """Return the median over repetitions and pairs, of those that are not refused."""
    rows = np.stack(tally.rows)[:, n_runs:]
    return float(np.nanmedian((rows[..., 1] - rows[..., 0]) / 2))
