"""Part of benchmarks/forecasts.py: pools with complete judgments, and campaigns that are drawn and judged on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from parts.coverage_collection import N_ASSESSORS, Collection, Floats, Ints, make_collection, wrong_rates
from parts.trec_like import clef_tar, trec_like

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.two_phase import two_phase
from analytics.planning.audit_outlook import AuditedTarget
from analytics.planning.audit_outlook import outlook as next_audit_outlook
from analytics.planning.campaign_plays import STEPS
from analytics.planning.purchases import Purchase, next_purchase
from sampling.audit_plan import middle_grades
from sampling.audit_plays import AuditPlay
from sampling.campaign_plan import CampaignPlan
from sampling.designs import average_run_design, mixture, normalise, uniform_design
from sampling.judged import Judged, question_influence
from sampling.measures.sparse import from_dense
from sampling.outlook import LabelErrors, grade_chances
from sampling.prediction import N_FOLDS, item_evidence
from sampling.questions import prior_of_runs
from sampling.strategies import strategy_probabilities

AUDITED, RELEVANT, SEED = 150, 1, 20
GAINS = {2: np.array([0.0, 1.0]), 4: np.array([0.0, 1.0, 2.0, 3.0])}
HIGH_GRADES = np.array([0.5, 0.3, 0.2])  # of four grades, how relevant documents fall
RIGHT_GRADE = 0.7  # of four, how often a relevant document found is given its own grade


@dataclass(frozen=True, eq=False)
class Pool:
    """A collection with its runs' weights, and what ranks say before any judgment."""

    collection: Collection
    depth: int
    gains: Floats
    prior: Floats

    @property
    def n_items(self) -> int:
        return int(self.collection.grade.size)

    @property
    def weights(self) -> Floats:
        return self.collection.runs

    @property
    def n_grades(self) -> int:
        return int(self.gains.size)


def make_pool(name: str, seed: int, n_grades: int, clef: Path | None) -> Pool:
    """Return one of the pools, with documents of two or four grades."""
    if name in ("alike", "unlike"):
        made, depth = make_collection(seed, name), 10
        discount = 1 / np.log2(np.maximum(made.rank, 1) + 1.0)
        runs = np.where(made.rank > 0, discount if name == "unlike" else 1 / 10, 0.0) / 50
        collection = replace(made, runs=runs)
    else:
        judged = (
            clef_tar(clef) if name == "CLEF" and clef else trec_like(seed, near_duplicates=name != "diverse")
        )
        depth, returned = judged.depth, (judged.ranks > 0).sum(axis=0).astype(np.int64)
        relevant = judged.relevant.astype(np.int64)
        collection = Collection(relevant, returned, judged.topic_index, judged.weights, judged.ranks)
    grade = (collection.grade > 0).astype(np.int64)
    if n_grades == 4:
        high = 1 + np.random.default_rng([seed, 4]).choice(3, grade.size, p=HIGH_GRADES)
        grade = np.where(grade > 0, high, 0)
    return Pool(
        replace(collection, grade=grade), depth, GAINS[n_grades], prior_of_runs(collection.rank, depth)
    )


def give_labels(pool: Pool, noise: str, votes: int, rng: np.random.Generator) -> Labels:
    """Return labels of all items by different assessors, some better and some worse."""
    grade, n, n_grades = pool.collection.grade, pool.n_items, pool.n_grades
    assessor = np.argsort(rng.random((n, N_ASSESSORS)), axis=1)[:, :votes]
    shift = np.linspace(-0.5, 0.5, N_ASSESSORS)[assessor]
    returned = np.broadcast_to(pool.collection.returned_by[:, None], assessor.shape)
    true = np.broadcast_to(grade[:, None], assessor.shape)
    rates = wrong_rates(true.ravel(), returned.ravel(), noise, shift.ravel()).reshape(assessor.shape)
    wrong = rng.random(assessor.shape) < rates
    some = 1 + rng.integers(0, n_grades - 1, assessor.shape)
    found = np.where((true > 0) & (rng.random(assessor.shape) < RIGHT_GRADE), true, some)
    given = np.where(wrong == (true == 0), found, 0)
    item = np.repeat(np.arange(n), votes)
    return Labels(
        item, assessor.ravel(), given.ravel(), n_items=n, n_assessors=N_ASSESSORS, n_grades=n_grades
    )


def true_errors(pool: Pool, noise: str, seed: int) -> LabelErrors:
    """Return the shares of grades given by true grade, from one more label of every item."""
    labels = give_labels(pool, noise, 1, np.random.default_rng([seed, 5]))
    counts = np.full((pool.n_grades, pool.n_grades), 0.5)
    np.add.at(counts, (pool.collection.grade[labels.item], labels.grade), 1)
    return LabelErrors(counts / counts.sum(axis=1, keepdims=True), "measured", False)


def sizes_for(pool: Pool, pair: tuple[int, int]) -> Floats:
    """Return the default sizes for the pair: contrast times doubt, 5 % for other runs and 1 % for all items."""
    contrast = np.abs(pool.weights[pair[0]] - pool.weights[pair[1]])
    own = normalise(contrast * np.sqrt(pool.prior * (1 - pool.prior)))
    others = [average_run_design(pool.weights), uniform_design(own.size)]
    return normalise(mixture(own, others, [0.05, 0.01]))


@dataclass(frozen=True, eq=False)
class Drawing:
    """A draw made for a pair: the chances of all items, and once they are known the items."""

    pool: Pool
    pair: tuple[int, int]
    chance: Floats
    kept: Ints

    @property
    def contrast(self) -> Floats:
        return np.abs(self.pool.weights[self.pair[0]] - self.pool.weights[self.pair[1]])

    def plan(self, errors: LabelErrors, votes: int, w: Floats, *, is_known: bool) -> CampaignPlan:
        """Return the campaign before it is judged, for a number with weights w."""
        pool = self.pool
        judging = AuditPlay(
            self.chance,
            self.contrast,
            pool.collection.topic,
            grade_chances(pool.prior, pool.n_grades, RELEVANT),
            errors.matrix,
            pool.gains,
            votes,
        )
        return CampaignPlan(
            judging=judging,
            places=np.arange(pool.n_items),
            runs=from_dense(w[None]),
            comparisons=((0, None),),
            gains=pool.gains,
            ranks=from_dense(pool.collection.rank),
            depth=pool.depth,
            prior=pool.prior,
            score=None,
            n_assessors=N_ASSESSORS,
            strategy="influence",
            n_items=AUDITED,
            drawn=np.isin(np.arange(pool.n_items), self.kept) if is_known else None,
        )


@dataclass(frozen=True, eq=False)
class Judging:
    """A drawn campaign that is judged: its labels, and the permanent numbers of its audits."""

    drawing: Drawing
    labels: Labels
    number: Floats

    @property
    def here(self) -> Ints:
        return self.drawing.kept

    def audit(self, n_items: float) -> AuditSample:
        """Return an audit of so many items by influence."""
        drawing, nothing = self.drawing, np.zeros(self.here.size, dtype=np.int64)
        runs = drawing.pool.weights[list(drawing.pair)][:, self.here]
        influence = question_influence(from_dense(runs), drawing.chance[self.here])
        judged = Judged(
            influence, drawing.chance[self.here], nothing, nothing, np.zeros(nothing.size), n_grades=1
        )
        chance = strategy_probabilities("influence", judged, expected_count=min(n_items, self.here.size))
        return AuditSample(
            drawing.chance[self.here],
            self.labels.classes(steps=STEPS),
            self.number < chance,
            drawing.pool.collection.grade[self.here],
            chance,
            drawing.pool.n_grades,
        )

    def width(self, audit: AuditSample, w: Floats, seed: int) -> float:
        """Return the half-width of the reported number; no number where it is refused."""
        return self.widths(audit, [w], seed)[0]

    def widths(self, audit: AuditSample, weights: Sequence[Floats], seed: int) -> list[float]:
        """Return the half-width of each reported number."""
        rows = self.estimates(audit, weights, seed)
        return [(row.high - row.low) / 2 if isinstance(row, Estimate) else float("nan") for row in rows]

    def estimates(
        self, audit: AuditSample, weights: Sequence[Floats], seed: int
    ) -> Sequence[Estimate | Refusal]:
        """Return each reported number."""
        pool, drawing = self.drawing.pool, self.drawing
        fold = np.random.default_rng([seed, 3]).integers(0, N_FOLDS, pool.n_items)
        known = Foreknowledge(*item_evidence(pool.collection.rank, pool.depth), fold, pool.prior)
        n_topics = int(pool.collection.topic.max()) + 1
        frame = Frame(n_topics, pool.collection.topic, self.here, drawing.chance[self.here])
        found = predicted_gold(frame, audit, pool.gains, labels=self.labels, known=known)
        return two_phase(
            TargetWeights(from_dense(np.stack([w[self.here] for w in weights])), paired=False),
            draw_probability=drawing.chance[self.here],
            audited=audit.audited,
            gold=pool.gains[audit.gold_grade],
            audit_probability=audit.audit_probability,
            before=found.before[self.here],
            after=found.after,
            spread=found.spread,
            before_total=np.zeros(len(weights)),
        ).estimates

    def advice(
        self, audit: AuditSample, w: Floats, seed: int, *, votes: int, budget: float
    ) -> tuple[float, float, float]:
        """Return what the planner buys for this money, as factors of the items and the gold so far, and its half-width.

        Counted are items that matter to the number, as the product counts them; the prices are its examples.
        """
        found = self.estimates(audit, [w], seed)[0]
        if isinstance(found, Refusal):
            return 1.0, 1.0, float("nan")
        parts, matters = dict(found.components), w[self.here] != 0
        judged, audited = int(matters.sum()), int((matters & audit.audited).sum())
        prices = (0.1, 1.0)
        best: Purchase | None = None
        for frame in (int((w != 0).sum()), judged):  # gold alone is always one of the choices
            bought = next_purchase(
                *(parts["drawing"], parts["gold"], judged, audited, *prices),
                budget=budget, frame_size=frame, judgments_per_item=votes,
            )  # fmt: skip
            if isinstance(bought, Purchase) and (best is None or bought.half_width < best.half_width):
                best = bought
        if best is None:
            return 1.0, 1.0, float("nan")
        return 1 + best.items / judged, 1 + best.gold / audited, best.half_width

    def next_audit(self, first: AuditSample, second: AuditSample, w: Floats, now: float) -> float:
        """Return the forecast after the second audit, as the product makes it, when the first one is complete."""
        pool, chance = self.drawing.pool, self.drawing.chance[self.here]
        target = AuditedTarget(
            weight=w[self.here],
            draw_probability=chance,
            prior=pool.prior[self.here] * pool.gains[RELEVANT:].mean(),
            bronze_class=first.bronze_class,
            bronze_grade=middle_grades(self.labels.item, self.labels.grade, self.here.size),
            audited=first.audited,
            gold_grade=first.gold_grade,
            audit_probability=first.audit_probability,
            gains=pool.gains,
        )
        by_classes = target.half_width()
        checks = np.zeros((pool.n_grades, pool.n_grades))
        found = next_audit_outlook(
            target,
            np.maximum(second.audit_probability, first.audit_probability),
            checks,
            np.random.default_rng(SEED),
        )
        if isinstance(found, Refusal) or isinstance(by_classes, Refusal):
            return float("nan")
        return found.half_width * now / by_classes


def judge(drawing: Drawing, noise: str, votes: int, rng: np.random.Generator) -> Judging:
    """Return the drawn campaign, judged."""
    labels = give_labels(drawing.pool, noise, votes, rng).of_items(drawing.kept)
    return Judging(drawing, labels, rng.uniform(1e-12, 1, drawing.kept.size))
