"""Part of benchmarks/ratios.py: nDCG, AP and R in one step from few gold labels, where the truth is known."""

from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from parts.coverage_collection import (
    N_ASSESSORS,
    N_GRADES,
    N_TOPICS,
    Collection,
    Floats,
    Ints,
    collection_of,
    judge,
    make_ranks,
)
from parts.coverage_grid import (
    Cell,
    Tally,
    audit_design,
    chosen,
    draw_probabilities,
    hash_of,
    true_quantile,
)
from parts.trec_like import clef_tar, trec_like

from analytics.estimation.estimate import Z95, Estimates, quantiles95
from analytics.estimation.gold_prediction import Foreknowledge, predicted_gold
from analytics.estimation.graded_labels import on_stairs, stair_gains, stairs
from analytics.estimation.one_step import OneStep, StairPhases, one_step, stair_phases
from analytics.estimation.pseudolabels import PseudoLabels, corrected_pseudo_labels
from analytics.estimation.ratio_parts import error_replicates
from analytics.estimation.samples import AuditSample, Frame, Labels
from sampling.contrasts import contrast_among
from sampling.measures.design_weights import PriorGrades, design_weights
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio
from sampling.measures.ratio_derivative import derivative
from sampling.measures.registry import parse_ratio
from sampling.measures.sparse import SparseRuns, from_dense
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, rank_features
from sampling.questions import prior_of_runs

SCALES = {"binary": np.array([0.0, 1.0, 1.0]), "graded": np.array([0.0, 1.0, 3.0])}
REPLICATES = 200
UPPER_SHARE = 0.3  # of the relevant documents of diverse and CLEF, in the upper grade
AUDIT_SIZES = (100, 200, 300, 700, 1000)
BOOTSTRAP_FROM = 700  # gold labels; from a fifth of the pool it is given


@dataclass(frozen=True)
class Campaign:
    """One kind of campaign: pool (alike, unlike, diverse, CLEF), how items are drawn, and the expected gold labels."""

    pool: str
    item_design: str  # whole, drawn
    n_audits: int
    scale: str = "binary"  # graded: gains 0, 1, 3, of nDCG alone
    n_topics: int = N_TOPICS  # of alike and unlike
    audit_for: str = "sum"  # by influence on DCG; ratio: on the first of the measures

    @property
    def name(self) -> str:
        usual = ("binary", N_TOPICS, "sum")
        more = [str(part) for part, one in zip(astuple(self)[3:], usual, strict=True) if part != one]
        return "/".join([self.pool, self.item_design, str(self.n_audits), *more])


def campaigns(clef: Path | None) -> list[Campaign]:
    """Return all kinds; CLEF if its folder is given."""
    grids = [Campaign(*one) for one in product(("alike", "unlike"), ("whole", "drawn"), AUDIT_SIZES)]
    pools = ("diverse", "CLEF") if clef else ("diverse",)
    grids += [
        Campaign(*one, audit_for="ratio") for one in product(("alike", "unlike"), ("whole",), (100, 200))
    ]
    return grids + [Campaign(pool, "whole", n) for pool, n in product(pools, AUDIT_SIZES)]


@dataclass(frozen=True)
class Setting:
    """A pool with its measures, and what is known of it before anything is judged."""

    collection: Collection
    n_topics: int
    gains: Floats  # [grade]
    known: Foreknowledge
    ranks: SparseRuns
    questions: tuple[
        tuple[Floats, tuple[Measure[Ratio], ...]], ...
    ]  # weights that audits are for, and measures

    @property
    def measures(self) -> list[Measure[Ratio]]:
        return [measure for _, measures in self.questions for measure in measures]

    @property
    def n_runs(self) -> int:
        return self.ranks.n_runs

    def contrast(self, measure: Measure[Ratio]) -> Floats:
        """Return the contrast of every item among all runs, as the weights of one run."""
        prior = PriorGrades(self.collection.topic, self.known.prior, self.gains[self.gains > 0])
        return contrast_among(design_weights(measure, self.ranks, self.n_topics, prior))[None]

    def truth(self, measure: Measure[Ratio]) -> Floats:
        """Return the measure of every run, then of every pair."""
        reached, steps = on_stairs(self.gains, self.collection.grade), stairs(self.gains).steps
        at = derivative(measure, self.ranks, self.collection.topic, self.n_topics, reached, steps)
        value = at.value.mean(axis=1)
        return np.concatenate([value, value[self.pairs[0]] - value[self.pairs[1]]])

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        first, second = np.triu_indices(self.n_runs, 1)
        return first, second


@cache
def make_setting(kind: Campaign, seed: int, clef: Path | None = None) -> Setting:
    """Return the pool: 24 runs of depth 10 with topics alike or unlike, or one of depth 100."""
    if kind.pool in ("alike", "unlike"):
        rng, n_topics = np.random.default_rng(seed), max(N_TOPICS, kind.n_topics)
        collection = collection_of(*make_ranks(rng, n_topics, kind.pool), np.arange(kind.n_topics))
        depth = 10
    else:
        made = clef_tar(clef) if clef and kind.pool == "CLEF" else trec_like(seed, near_duplicates=False)
        depth = made.depth
        upper = np.random.default_rng(seed).random(made.relevant.size) < UPPER_SHARE
        collection = Collection(
            (made.relevant * (1 + upper)).astype(np.int64),
            (made.ranks > 0).sum(axis=0).astype(np.int64),
            made.topic_index,
            made.weights,
            made.ranks,
        )
    n = collection.grade.size
    features = rank_features(collection.rank, depth)
    fold = np.random.default_rng(3).integers(0, N_FOLDS, n)
    known = Foreknowledge(
        features, np.full(features.shape[1], FEATURE_RIDGE), fold, prior_of_runs(collection.rank, depth)
    )
    deep = () if kind.scale == "graded" else (parse_ratio(f"AP@{depth}"), parse_ratio(f"R@{depth}"))
    short = parse_ratio("nDCG@10")
    questions = (
        ((collection.runs, (short, *deep)),)
        if depth == 10
        else ((collection.runs * (collection.rank <= 10), (short,)), (collection.runs, deep))
    )
    n_topics = int(collection.topic.max()) + 1
    return Setting(collection, n_topics, SCALES[kind.scale], known, from_dense(collection.rank), questions)


@dataclass(frozen=True)
class Sample:
    """What one repetition drew, judged and audited, with its predictions."""

    frame: Frame
    audit: AuditSample
    items: StairPhases


def sample_of(
    setting: Setting, kind: Campaign, weights: Floats, pi: Floats, rng: np.random.Generator
) -> Sample:
    """Draw, judge and audit once, by the influence of these weights [run, item]; fit the predictions."""
    collection, n = setting.collection, setting.collection.grade.size
    given = judge(collection, "popularity", 1, random_assignment=True, rng=rng)
    kept: Ints = np.flatnonzero(chosen(pi, rng))
    everything = Labels(
        given.item, given.assessor, given.given, n_items=n, n_assessors=N_ASSESSORS, n_grades=N_GRADES
    )
    labels, drawn = everything.of_items(kept), pi[kept]
    design = Cell(kind.item_design, "influence", kind.n_audits, "popularity", 1, "random")
    chance = audit_design(design, weights[:, kept], drawn)
    audit = AuditSample(
        drawn, labels.classes(), chosen(chance, rng), collection.grade[kept], chance, N_GRADES
    )
    frame = Frame(setting.n_topics, collection.topic, kept, drawn)
    made = [
        predicted_gold(frame, audit, reached, labels=labels, known=setting.known)
        for reached in stair_gains(setting.gains)
    ]
    return Sample(frame, audit, stair_phases(frame, audit, setting.gains, made))


def labels_by_prediction(items: StairPhases, audit: AuditSample, gains: Floats) -> PseudoLabels:
    """Return the pseudo-labels that the product makes of an audit for the bootstrap."""
    return corrected_pseudo_labels(
        items.frame, audit, gains, prediction=items.steps @ items.prediction, after=items.after
    )


def bootstraps_of(setting: Setting, measure: Measure[Ratio], sample: Sample, seed: int) -> dict[str, Floats]:
    """Return [target, (low, high, value, error)] of the bootstrap: with predicted gold, and with class means."""
    items = sample.items
    kinds = {
        "bootstrap": labels_by_prediction(items, sample.audit, setting.gains),
        "bootstrap_class_means": corrected_pseudo_labels(
            sample.frame, sample.audit, setting.gains, prediction=items.steps @ items.prediction
        ),
    }
    rows = {}
    for name, labels in kinds.items():
        made = error_replicates(measure, labels, setting.collection.rank, REPLICATES, seed)
        plain, drawn, wide = (
            np.concatenate([one, one[setting.pairs[0]] - one[setting.pairs[1]]])
            for one in (made.seen.macro, made.seen.macro_replicates, made.cautious.macro_replicates)
        )
        value = 2 * plain - drawn.mean(axis=1)
        error = np.maximum(drawn.std(axis=1, ddof=1), wide.std(axis=1, ddof=1))
        rows[name] = np.stack([value - Z95 * error, value + Z95 * error, value, error], axis=1)
    return rows


def other_rules(found: OneStep) -> dict[str, Estimates]:
    """Return the same intervals without refusals for bending, and then with V alone for the variance."""
    one = found.estimates
    kept = {place: why for place, why in one.refusals.items() if "bends" not in why.reason}
    every = replace(one, refusals=kept)
    error = np.sqrt(one.components["drawing"] + one.components["gold"])
    half = quantiles95(one.degrees_of_freedom) * error
    alone = replace(every, standard_error=error, low=one.value - half, high=one.value + half)
    return {"none_refused": every, "V_alone": alone}


def run_campaign(kind: Campaign, repetitions: int, seed: int, clef: Path | None = None) -> dict[str, Any]:
    """Return by measure the coverage of pairs and of single runs, and half-widths of pairs beside the bootstrap's."""
    bootstraps = repetitions if kind.n_audits >= BOOTSTRAP_FROM else min(8, repetitions)
    setting = make_setting(kind, seed, clef)
    rng = np.random.default_rng([seed, hash_of(kind.name)])
    n = setting.collection.grade.size
    pi = draw_probabilities(setting.collection) if kind.item_design == "drawn" else np.ones(n)
    rules = ("given", "none_refused", "V_alone", "bootstrap", "bootstrap_class_means")
    tallies = {
        measure.name: {rule: Tally(setting.truth(measure)) for rule in rules} for measure in setting.measures
    }
    asked = [
        (setting.contrast(measures[0]) if kind.audit_for == "ratio" else weights, measures)
        for weights, measures in setting.questions
        if measures
    ]
    for repetition, (weights, measures) in product(range(repetitions), asked):
        sample = sample_of(setting, kind, weights, pi, rng)
        for measure in measures:
            found = one_step(measure, sample.items, setting.ranks)
            for rule, estimates in {"given": found.estimates, **other_rules(found)}.items():
                tallies[measure.name][rule].add(estimates)
            if repetition < bootstraps:
                for name, row in bootstraps_of(setting, measure, sample, repetition).items():
                    tallies[measure.name][name].rows.append(row)
    return {
        name: {rule: summary(tally, setting.n_runs) for rule, tally in of_measure.items() if tally.rows}
        for name, of_measure in tallies.items()
    }


def summary(tally: Tally, n_runs: int) -> dict[str, Any]:
    """Return coverage of what was given, bias in standard errors, refused shares, and the median half-width of pairs.

    The 5th percentile is over the pairs that were given at least ten times.
    """
    low, high, value, error = np.moveaxis(np.stack(tally.rows), 2, 0)
    given = np.isfinite(low)
    inside = (low <= tally.truth) & (tally.truth <= high) & given
    pairs, singles = slice(n_runs, None), slice(None, n_runs)
    count = given[:, pairs].sum(axis=0)
    often = count >= min(10, len(low))
    covered = inside[:, pairs].sum(axis=0)[often] / count[often]
    shares = [
        inside[:, part].sum(axis=1) / np.maximum(1, given[:, part].sum(axis=1)) for part in (pairs, singles)
    ]
    z = ((value - tally.truth) / np.where(error > 0, error, np.nan))[:, pairs]
    return {
        "repetitions": len(low),
        "pairs": _share(inside[:, pairs].sum(), count.sum()),
        "pairs_se": round(float(shares[0].std(ddof=1) / np.sqrt(len(low))), 4),
        "pairs_5th_percentile": round(true_quantile(covered, count[often]), 4) if often.any() else None,
        "singles": _share(inside[:, singles].sum(), given[:, singles].sum()),
        "singles_se": round(float(shares[1].std(ddof=1) / np.sqrt(len(low))), 4),
        "pairs_mean_error_in_se": round(float(np.nanmean(z)), 3),
        "pairs_refused": round(float(1 - given[:, pairs].mean()), 4),
        "singles_refused": round(float(1 - given[:, singles].mean()), 4),
        "median_half_width": round(float(np.nanmedian((high - low)[:, pairs] / 2)), 4),
    }


def _share(part: Any, whole: Any) -> float | None:
    return round(float(part / whole), 4) if whole else None
