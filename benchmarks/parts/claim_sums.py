"""Part of benchmarks/claims.py: two runs in DCG@10 on topics drawn anew, with labels, an audit, and both claims.

A population of 2,000 topics is made once. "even": topics that are alike. "skewed": in 12 of 100 topics much is
relevant, in the others little, so that few topics make the difference. A campaign draws topics with replacement, pools
what two runs return, has every document judged once by one of six assessors (errors by popularity), audits it by
influence, and estimates as the product does.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from parts.coverage_collection import (
    CUTOFF,
    N_ASSESSORS,
    N_DOCUMENTS,
    N_GRADES,
    Collection,
    Floats,
    Ints,
    collection_of,
    judge,
)
from parts.coverage_grid import Cell, audit_design, chosen, hash_of

from analytics.estimation.estimate import FEWEST_POSITIVE, Estimates, quantile95
from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import LikeThese, never_narrower, over_topics_of, skewness
from analytics.estimation.two_phase import two_phase
from sampling.measures.sparse import from_dense
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, rank_features
from sampling.questions import prior_of_runs

N_POPULATION = 2000
GAINS = np.array([0.0, 1.0, 1.0])  # relevant or not: two gains take half the fits of three
NOISES = (0.53, 1.24)  # of the two runs: how far they rank from what they know
SHARE_EASY, EASY, HARD = 0.12, -0.5, 2.25  # of skewed topics
SOURCES = ("drawing", "label noise", "gold", "topics")
PAIR = 2  # the targets are run A, run B, and A less B


@dataclass(frozen=True, eq=False)
class Population:
    """Topics with all their documents, and what the two runs return; `difference` is each topic's in DCG@10."""

    grade: Ints  # [topic, document]
    rank: Ints  # [run, topic, document], -1: not returned
    difference: Floats  # [topic]


def population_of(grade: Ints, rank: Ints) -> Population:
    weights = dcg_weights(rank + 1)
    return Population(grade, rank, ((weights[0] - weights[1]) * GAINS[grade]).sum(axis=1))


def dcg_weights(ranks: Ints) -> Floats:
    """Return 1/log2(rank + 1), 0 where the rank is 0."""
    return np.asarray(np.where(ranks > 0, 1 / np.log2(np.maximum(ranks, 1) + 1.0), 0.0))


@cache
def make_population(kind: str) -> Population:
    """Return the "even" or the "skewed" topics."""
    rng = np.random.default_rng([7, hash_of(kind)])
    shape = (N_POPULATION, N_DOCUMENTS)
    merit, surface = rng.normal(size=shape), rng.normal(size=shape)
    if kind == "skewed":
        hard = np.where(rng.random((N_POPULATION, 1)) < SHARE_EASY, EASY, HARD)
    else:
        hard = rng.normal(scale=0.5, size=(N_POPULATION, 1))
    latent = merit - 1.3 - hard + rng.normal(scale=0.7, size=shape)
    rank = np.full((len(NOISES), *shape), -1, dtype=np.int64)
    for run, noise in enumerate(NOISES):
        order = np.argsort(-(merit + surface + rng.normal(scale=noise, size=shape)), axis=1)[:, :CUTOFF]
        np.put_along_axis(rank[run], order, np.arange(CUTOFF)[None], axis=1)
    return population_of((latent > 0).astype(np.int64) + (latent > 0.9), rank)


# -- one campaign ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judged:
    """Topics of a campaign with the labels of all pooled documents, and the audit."""

    collection: Collection
    frame: Frame
    labels: Labels
    audit: AuditSample
    known: Foreknowledge


def judged_and_audited(
    collection: Collection, n_topics: int, n_audits: int, rng: np.random.Generator
) -> Judged:
    """Judge every document once, and audit by the influence of the runs' weights."""
    n = collection.grade.size
    given = judge(collection, "popularity", 1, random_assignment=True, rng=rng)
    labels = Labels(
        given.item, given.assessor, given.given, n_items=n, n_assessors=N_ASSESSORS, n_grades=N_GRADES
    )
    design = Cell("whole", "influence", n_audits, "popularity", 1, "random")
    chance = audit_design(design, dcg_weights(collection.rank) / n_topics, np.ones(n))
    audit = AuditSample(np.ones(n), labels.classes(), chosen(chance, rng), collection.grade, chance, N_GRADES)
    features, fold = rank_features(collection.rank, CUTOFF), rng.integers(0, N_FOLDS, n)
    known = Foreknowledge(
        features, np.full(features.shape[1], FEATURE_RIDGE), fold, prior_of_runs(collection.rank, CUTOFF)
    )
    frame = Frame(n_topics, collection.topic, np.arange(n), np.ones(n))
    return Judged(collection, frame, labels, audit, known)


@dataclass(frozen=True, eq=False)
class BothClaims:
    """The targets for these topics, and with the topics as a sample."""

    these: Estimates
    over: Estimates
    n_positive: int  # items with weight of which gold says that they are relevant

    @property
    def is_given(self) -> bool:
        return PAIR not in self.these.refusals and PAIR not in self.over.refusals

    @property
    def like_these(self) -> LikeThese:
        df = self.these.degrees_of_freedom
        return never_narrower(
            self.over,
            self.these.standard_error,
            self.these.low,
            self.these.high,
            np.where(np.isnan(df), np.inf, df),
        )


def estimates_of(one: Judged) -> BothClaims:
    """Return what the product computes of a campaign whose whole pool was judged."""
    n_topics, audit = one.frame.n_topics, one.audit
    targets = TargetWeights(from_dense(dcg_weights(one.collection.rank) / n_topics))
    gold = predicted_gold(one.frame, audit, GAINS, labels=one.labels, known=one.known)
    found = two_phase(
        targets,
        draw_probability=audit.draw_probability,
        audited=audit.audited,
        gold=GAINS[audit.gold_grade],
        audit_probability=audit.audit_probability,
        before=gold.before,
        after=gold.after,
        spread=gold.spread,
        before_total=targets.totals(gold.before),
    )
    parts = targets.run_totals(gold.before + found.item_corrections, one.frame.topic_index, n_topics)
    positive = targets.counts(audit.audited & (GAINS[audit.gold_grade] > 0))
    return BothClaims(found.estimates, over_topics_of(targets, parts, SOURCES), int(positive[PAIR]))


# -- many -----------------------------------------------------------------------------------------------------


class Tally:
    """What the campaigns of a cell said of the pair's difference; `truth` is that of the population."""

    def __init__(self, truth: float, between: float, n_topics: int) -> None:
        self.truth, self.between, self.quantile = truth, between / n_topics, quantile95(n_topics - 1)
        self.rows: list[list[float]] = []
        self.refused = 0

    def add(self, found: BothClaims) -> None:
        """Keep whether the intervals hold the truth, and how wide they are."""
        if not found.is_given:
            self.refused += 1
            return
        these, over, like = found.these, found.over, found.like_these
        value, of_topics = float(over.value[PAIR]), float(over.standard_error[PAIR])
        judging = float(these.standard_error[PAIR])
        plain, twice = self.quantile * of_topics, self.quantile * float(np.hypot(of_topics, judging))
        off = abs(value - self.truth)
        self.rows.append(
            [
                like.low[PAIR] <= self.truth <= like.high[PAIR],
                off <= plain,
                off <= twice,
                these.low[PAIR] <= self.truth <= these.high[PAIR],
                (like.high[PAIR] - like.low[PAIR]) / 2,
                plain,
                judging**2,
                not like.is_of_topics[PAIR],
                found.n_positive < FEWEST_POSITIVE,
            ]
        )

    def summary(self) -> dict[str, Any]:
        """Return shares and means; `between` and `within` are the variances of the topics' mean and of its judging."""
        if not self.rows:
            return {"campaigns": 0, "refused": self.refused}
        covered, plain, twice, these, width, of_plain, within, limited, few = np.array(
            self.rows, dtype=np.float64
        ).mean(axis=0)
        return {
            "campaigns": len(self.rows),
            "refused": self.refused,
            "covered": round(covered, 4),
            "covered_by_plain_t": round(plain, 4),
            "width_over_plain_t": round(width / of_plain, 3),
            "limited_by_judging": round(limited, 3),
            "warned_of_few_relevant": round(few, 3),
            "control_judging_twice": round(twice, 4),
            "control_these_topics": round(these, 4),
            "between": round(self.between, 5),
            "within": round(within, 5),
        }


def run_cell(kind: str, n_topics: int, n_audits: int, campaigns: int, seed: int) -> dict[str, Any]:
    """Return the summary of a cell's campaigns, with the skewness of the population's differences."""
    population = make_population(kind)
    rng = np.random.default_rng([seed, hash_of(f"{kind}/{n_topics}/{n_audits}")])
    tally = Tally(float(population.difference.mean()), float(population.difference.var()), n_topics)
    for _ in range(campaigns):
        topics = rng.integers(N_POPULATION, size=n_topics)
        collection = collection_of(population.grade, population.rank, topics)
        tally.add(estimates_of(judged_and_audited(collection, n_topics, n_audits, rng)))
    return {**tally.summary(), "skewness": round(skewness(population.difference), 2)}
