"""Measure bias and coverage of nDCG, AP and R estimated from samples, on pools that are judged completely.

    python benchmarks/ratios.py --draws 10 --seed 1
    python benchmarks/ratios.py --clef <folder of clef_tar2017> --json
    python benchmarks/ratios.py --one-step --draws 100 [--clef <folder>] --json

Every draw selects items for all runs (sizes sqrt(sum w^2 u(1-u)), 20 % uniform; Poisson), predicts the others
(cross-fitted) or not, and estimates every run and ten pairs of neighbours, as macro and as micro. Estimators:

- HT: no prediction; DR: f cross-fitted; corrected: noisy labels (three votes of sensitivity .85 and specificity .9)
  of which an audit knows the truth of the given share, with the predicted gold of every document; class means: the
  same with the mean gold of its bronze class instead; counts are those of audited items.

Per row: bias of the plain ratio and of the published value (corrected by the bootstrap), in units of the measure;
coverage of the 95 % confidence interval around either, with the noise that the drawing shows, and of the published
interval (the cautious noise where it is larger); the published value's standard deviation over draws and its mean
standard error; and whether the product would refuse this row. A graded scale (0, 1, 3) has three of ten relevant
documents, chosen at random, in its upper grade. Runs of one draw share their errors, so that a coverage over d draws
of r runs is surer than one over d and less sure than one over d*r intervals.

With --one-step instead: nDCG, AP and R in one step from 100 to 1,000 gold labels, by parts/ratios_one_step.py, as
JSON: what is given, the same without refusals for bending (none_refused), and that with V alone (V_alone); and the
bootstrap of the same samples, with predicted gold and with class means (bootstrap, bootstrap_class_means).
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.ratios_one_step import campaigns, labels_by_prediction, run_campaign
from parts.trec_like import JudgedPool, clef_tar, trec_like

from analytics.estimation.estimate import Z95
from analytics.estimation.gold_prediction import Foreknowledge, GoldFits
from analytics.estimation.graded_labels import on_stairs, stair_gains, stairs
from analytics.estimation.one_step import stair_phases
from analytics.estimation.pseudolabels import PseudoLabels, census, corrected_pseudo_labels, pseudo_labels
from analytics.estimation.ratio_parts import ErrorReplicates, error_replicates
from analytics.estimation.ratios import (
    missing_for_macro,
    missing_for_micro,
)
from analytics.estimation.samples import AuditSample, Frame, Labels
from sampling.designs import inclusion_probabilities
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio
from sampling.measures.registry import parse_ratio
from sampling.pooling import prior_utility
from sampling.prediction import FEATURE_RIDGE, N_FOLDS, cross_fitted, rank_features

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRADED = (0.0, 1.0, 3.0)
SENSITIVITY, SPECIFICITY, VOTES = 0.85, 0.9, 3
UNIFORM = 0.2
# share of the pool judged; of the corrected rows: share judged, share of those audited
FRACTIONS = (0.014, 0.05, 0.2, 0.5)
AUDITS = ((0.2, 0.1), (0.5, 0.1), (0.5, 0.4), (1.0, 0.2))


@dataclass(frozen=True)
class Task:
    """A measure on a scale, with the true values of all runs, then of pairs of neighbours."""

    title: str
    measure: Measure[Ratio]
    gains: Floats
    grade: Ints
    truth: dict[str, Floats]


@dataclass(frozen=True)
class Setting:
    """What does not change from draw to draw."""

    pool: JudgedPool
    features: Floats
    prior: Floats
    fold: Ints
    known: Foreknowledge
    sizes: Floats
    pairs: list[tuple[int, int]]

    @property
    def n_topics(self) -> int:
        return int(self.pool.topic_index.max()) + 1


def make_setting(pool: JudgedPool, rng: np.random.Generator) -> Setting:
    prior = np.clip(prior_utility(pool.ranks, pool.depth), 1e-3, 1 - 1e-3)
    sizes = np.sqrt((pool.weights**2).sum(axis=0) * prior * (1 - prior))
    n_items = prior.size
    features, fold = rank_features(pool.ranks, pool.depth), rng.integers(N_FOLDS, size=n_items)
    return Setting(
        pool=pool,
        features=features,
        prior=prior,
        fold=fold,
        known=Foreknowledge(features, np.full(features.shape[1], FEATURE_RIDGE), fold, prior),
        sizes=(1 - UNIFORM) * sizes / sizes.sum() + UNIFORM / n_items,
        pairs=[(run, run + 1) for run in range(0, pool.ranks.shape[0] - 1, 2)],
    )


def make_tasks(setting: Setting, cutoff: int, rng: np.random.Generator) -> list[Task]:
    """Return AP, R and nDCG of the pool's binary scale and nDCG of a graded one."""
    pool = setting.pool
    binary = pool.relevant.astype(np.int64)
    graded = binary * (1 + (rng.random(binary.size) < 0.3))
    choices = [(title, (0.0, 1.0), binary) for title in ("AP", "R", "nDCG")]
    choices.append(("graded nDCG", GRADED, graded))
    tasks = []
    for title, gains, grade in choices:
        measure = parse_ratio(f"{title.split()[-1]}@{cutoff}")
        known = census(topic_index=pool.topic_index, n_topics=setting.n_topics, grades=grade, gains=gains)
        made = replicated(measure, known, setting, 1, 0)
        truth = {
            average: with_pairs(getattr(made.seen, average), setting.pairs) for average in ("macro", "micro")
        }
        tasks.append(Task(f"{title}@{cutoff}", measure, np.array(gains), grade, truth))
    return tasks


def with_pairs(values: Floats, pairs: list[tuple[int, int]]) -> Floats:
    """Return the values of the runs, then the differences of the pairs."""
    return np.concatenate([values, np.stack([values[a] - values[b] for a, b in pairs])])


def replicated(
    measure: Measure[Ratio], labels: PseudoLabels, setting: Setting, replicates: int, seed: int
) -> ErrorReplicates:
    ranks = setting.pool.ranks
    return error_replicates(measure, labels, ranks, replicates, seed)


def predicted(setting: Setting, task: Task, places: Ints, grade: Ints) -> Floats:
    top = float(task.gains.max())
    return top * cross_fitted(
        features=setting.features,
        topic_index=setting.pool.topic_index,
        fold=setting.fold,
        prior=setting.prior,
        labelled=places,
        label=task.gains[grade] / top,
    )


def sampled_labels(setting: Setting, task: Task, estimator: str, drawn: Ints, pi: Floats) -> PseudoLabels:
    grade = task.grade[drawn]
    f = np.zeros(setting.prior.size) if estimator == "HT" else predicted(setting, task, drawn, grade)
    frame = Frame(setting.n_topics, setting.pool.topic_index, drawn, pi[drawn])
    return pseudo_labels(
        frame, prediction=f, label=on_stairs(task.gains, grade), steps=stairs(task.gains).steps
    )


@dataclass(frozen=True)
class Audit:
    """Votes on the drawn items and an audit of some of them."""

    given: Ints  # [vote, item], 0 or 1
    audited: NDArray[np.bool_]
    probability: Floats


def make_audit(setting: Setting, drawn: Ints, pi: Floats, share: float, rng: np.random.Generator) -> Audit:
    relevant = setting.pool.relevant[drawn] > 0
    rate = np.where(relevant, SENSITIVITY, 1 - SPECIFICITY)
    given = (rng.random((VOTES, drawn.size)) < rate).astype(np.int64)
    sizes = np.sqrt((setting.pool.weights[:, drawn] ** 2).sum(axis=0)) / pi[drawn]
    probability = inclusion_probabilities(0.9 * sizes / sizes.sum() + 0.1 / drawn.size, share * drawn.size)
    return Audit(given, rng.random(drawn.size) < probability, probability)


def audited_labels(
    setting: Setting, task: Task, estimator: str, drawn: Ints, pi: Floats, audit: Audit
) -> PseudoLabels:
    grade = task.grade[drawn]
    sample = AuditSample(
        draw_probability=pi[drawn],
        bronze_class=audit.given.sum(axis=0),
        audited=audit.audited,
        gold_grade=grade,
        audit_probability=audit.probability,
        n_grades=len(task.gains),
    )
    frame = Frame(setting.n_topics, setting.pool.topic_index, drawn, pi[drawn])
    if estimator == "class means":
        prediction = predicted(setting, task, drawn[audit.audited], grade[audit.audited])
        return corrected_pseudo_labels(frame, sample, task.gains, prediction=prediction)
    labels = Labels(
        np.tile(np.arange(drawn.size), VOTES),
        np.repeat(np.arange(VOTES), drawn.size),
        audit.given.ravel(),
        n_items=drawn.size,
        n_assessors=VOTES,
        n_grades=len(task.gains),
    )
    fits = GoldFits(frame, sample, labels=labels, known=setting.known)
    return labels_by_prediction(
        stair_phases(frame, sample, task.gains, [fits.predict(row) for row in stair_gains(task.gains)]),
        sample,
        task.gains,
    )


def is_refused(labels: PseudoLabels, average: str) -> bool:
    if average == "micro":
        return missing_for_micro(labels) > 0
    return missing_for_macro(labels) > 0 or not labels.predicted


Found = dict[tuple[str, str], list[dict]]


def measure_draw(
    setting: Setting, task: Task, labels: PseudoLabels, replicates: int, seed: int, records: Found
):
    """Add one draw's estimates of runs and pairs to `records`, by average."""
    made = replicated(task.measure, labels, setting, replicates, seed)
    for average in ("macro", "micro"):
        value = with_pairs(getattr(made.seen, average), setting.pairs)
        drawn, cautious = (
            with_pairs(getattr(one, f"{average}_replicates"), setting.pairs)
            for one in (made.seen, made.cautious)
        )
        seen_error = drawn.std(axis=1, ddof=1)
        records[task.title, average].append(
            {
                "plain": value,
                "published": 2 * value - drawn.mean(axis=1),
                "seen_error": seen_error,
                "error": np.maximum(seen_error, cautious.std(axis=1, ddof=1)),
                "known": int(labels.counted.sum()),
                "refused": is_refused(labels, average),
            }
        )


def rows_of(setting: Setting, task: Task, average: str, draws: list[dict], **about) -> list[dict]:
    """Return one row for the runs and one for the pairs."""
    n_runs = setting.pool.ranks.shape[0]
    rows = []
    for target, part in (("runs", slice(0, n_runs)), ("pairs", slice(n_runs, None))):
        truth = task.truth[average][part]
        plain, published, seen_error, error = (
            np.stack([one[name][part] for one in draws])
            for name in ("plain", "published", "seen_error", "error")
        )
        known = float(np.mean([one["known"] for one in draws]))
        rows.append(
            {
                **about,
                "measure": task.title,
                "average": average,
                "target": target,
                "known_per_topic": round(known / setting.n_topics, 1),
                "known_share": round(known / setting.prior.size, 4),
                "bias_plain": round(float((plain - truth).mean()), 4),
                "bias": round(float((published - truth).mean()), 4),
                "coverage_plain": round(float((np.abs(plain - truth) <= Z95 * seen_error).mean()), 3),
                "coverage_corrected": round(float((np.abs(published - truth) <= Z95 * seen_error).mean()), 3),
                "coverage": round(float((np.abs(published - truth) <= Z95 * error).mean()), 3),
                "deviation": round(float(np.sqrt(((published - published.mean(axis=0)) ** 2).mean())), 4),
                "standard_error": round(float(error.mean()), 4),
                "intervals": int(error.size),
                "refused": round(float(np.mean([one["refused"] for one in draws])), 2),
            }
        )
    return rows


def measure_pool(pool: JudgedPool, cutoff: int, draws: int, replicates: int, seed: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    setting = make_setting(pool, rng)
    tasks = make_tasks(setting, cutoff, rng)
    rows = []
    plans: list[tuple[str, float, float]] = [
        *((estimator, fraction, 0.0) for fraction in FRACTIONS for estimator in ("HT", "DR")),
        *((estimator, *of_audit) for estimator in ("class means", "corrected") for of_audit in AUDITS),
    ]
    for estimator, fraction, share in plans:
        count = fraction * setting.prior.size
        pi = np.ones(setting.prior.size) if fraction == 1 else inclusion_probabilities(setting.sizes, count)
        records: Found = defaultdict(list)
        for draw in range(draws):
            drawn = np.flatnonzero(rng.random(pi.size) < pi)
            audit = make_audit(setting, drawn, pi, share, rng) if share else None
            for task in tasks:
                labels = (
                    audited_labels(setting, task, estimator, drawn, pi, audit)
                    if audit
                    else sampled_labels(setting, task, estimator, drawn, pi)
                )
                measure_draw(setting, task, labels, replicates, draw, records)
        for task in tasks:
            for average in ("macro", "micro"):
                about = {
                    "pool": pool.name,
                    "estimator": estimator,
                    "judged_share": fraction,
                    "audited_share": share,
                }
                rows += rows_of(setting, task, average, records[task.title, average], **about)
    return rows


def table(rows: list[dict]) -> str:
    names = list(rows[0])
    width = {name: max(len(name), *(len(str(row[name])) for row in rows)) for name in names}
    lines = ["  ".join(name.ljust(width[name]) for name in names)]
    lines += ["  ".join(str(row[name]).ljust(width[name]) for name in names) for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--cutoff", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--near-duplicates", action="store_true", help="the synthetic pool of near-duplicate runs"
    )
    parser.add_argument("--clef", type=Path, help="folder of CLEF TAR 2017; instead of the synthetic pool")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one-step", action="store_true", help="few gold labels on a whole pool or a draw")
    given = parser.parse_args()
    started = time.process_time()
    if given.one_step:
        found = {
            one.name: run_campaign(one, given.draws, given.seed, given.clef) for one in campaigns(given.clef)
        }
        seconds = round(time.process_time() - started, 1)
        print(json.dumps({"cpu_seconds": seconds, "campaigns": found}, indent=1))
        return
    pool = (
        clef_tar(given.clef) if given.clef else trec_like(given.seed, near_duplicates=given.near_duplicates)
    )
    rows = measure_pool(pool, given.cutoff, given.draws, given.replicates, given.seed)
    seconds = round(time.process_time() - started, 1)
    if given.json:
        print(json.dumps({"pool": pool.description(), "cpu_seconds": seconds, "rows": rows}, indent=1))
    else:
        print(pool.description(), f"{seconds} s of processor time", table(rows), sep="\n")


if __name__ == "__main__":
    main()
