"""Do intervals from whole topics hold, and how long does a query log of 100,000 topics take? Seeded; JSON.

    python benchmarks/whole_topics.py [--quick] [--part coverage|audit|log] > whole_topics.json

`coverage`: populations of 300 topics with 20 documents and 8 runs. Topics differ in how easy they are and in their
shares of the traffic; frequent ones are easier. Of each, topics are drawn again and again with the product's chances,
for about 30, 60 and 120 topics; every run and pair of runs is estimated in RR, ERR and nDCG, and `covered` is how often
the interval has the true value. `weakest` is the least of the populations' shares. The control must fail: the topics
that were drawn are taken as if all had been equally likely, so that their mean by traffic is the value, with 1.96
standard errors and no t.

`audit`: the same populations, all judged by a machine whose errors differ from topic to topic and follow how many runs
return a document. Audits take about 30 and 60 topics with the product's chances; every run and pair is corrected in RR,
ERR, nDCG and P, and `covered_runs` is of runs alone. So are two controls, which must fail: `labels` as given, with an
interval as wide as the corrected one, and for P `items`, a correction that takes the gold documents of a topic as
audited one by one.

`log`: 100,000 queries, 20 pooled documents each, 8 runs, stored as the product stores them. Frame, design, draw and the
frame file are timed for whole topics (ERR@10) and, on the same log, for documents of all topics (DCG@10) as
draw_scale.py has it; `nanoseconds_a_pair` is processor time.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from scipy.special import expit

from analytics.estimation.audited_topics import TopicAudit, audited_topics, topic_prediction
from analytics.estimation.estimate import Z95, Floats
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topic_samples import every_target
from analytics.estimation.two_phase import two_phase
from analytics.estimation.whole_topics import TakenTopics, predicted_values, whole_topics
from sampling.contrasts import importance
from sampling.judged import relevance_given_grade
from sampling.measures.design_weights import design_weights
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import parse_linear, parse_measure
from sampling.measures.sparse import from_dense
from sampling.questions import nested_probabilities, prior_of_runs
from sampling.topic_runs import TopicRuns, topic_outlook, with_floor
from sampling.whole_topics import topic_numbers, topic_probabilities

SEED, N_RUNS, N_DOCUMENTS, DEPTH = 20261123, 8, 20, 10
N_TOPICS, EXPECTED = 300, (30, 60, 120)
QUERIES, QUICK_QUERIES = 100_000, 2_000


# The measure, and the gain of a relevant document.
MEASURES = {
    "RR@10": (parse_measure("RR@10"), 1.0),
    "ERR@10": (parse_measure("ERR@10"), 0.5),
    "nDCG@10": (parse_measure("nDCG@10"), 1.0),
}

AUDITED = {**MEASURES, "P@10": (parse_measure("P@10"), 1.0)}
AUDITED_TOPICS = (30, 60)


# -- coverage -------------------------------------------------------------------------------------------------


class Population:
    """Topics with documents, runs and true labels; the runs' scores follow the labels with noise of their own."""

    def __init__(self, rng: np.random.Generator) -> None:
        n = N_TOPICS
        ease = rng.normal(0.0, 1.0, n)
        quality = rng.normal(0.0, 1.5, (n, N_DOCUMENTS))
        self.label = (rng.random((n, N_DOCUMENTS)) < expit(quality + 1.5 * ease[:, None] - 1)).astype(float)
        noise = rng.uniform(0.8, 2.5, N_RUNS)
        ranks = np.zeros((N_RUNS, n, N_DOCUMENTS), dtype=np.int64)
        for run in range(N_RUNS):
            seen = quality + rng.normal(0.0, noise[run], quality.shape)
            place = np.argsort(np.argsort(-seen, axis=1), axis=1) + 1
            ranks[run] = np.where(place <= DEPTH, place, 0)
        table = ranks.reshape(N_RUNS, -1)
        pooled = table.any(axis=0)
        self.topic = np.repeat(np.arange(n), N_DOCUMENTS)[pooled]
        self.ranks, self.labels = from_dense(table[:, pooled]), self.label.ravel()[pooled]
        self.runs = TopicRuns.of(self.ranks, self.topic, n)
        self.prior = prior_of_runs(self.ranks, DEPTH)
        share = np.exp(0.6 * ease + rng.normal(0.0, 0.8, n))
        self.share = share / share.sum()
        self.cost = np.bincount(self.topic, minlength=n)
        self.fold = rng.integers(0, 10, n)


def coverage_of(
    population: Population, name: str, expected: int, n_draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return how often the intervals of all runs and pairs have the truth, and their median half-width."""
    measure, gain = MEASURES[name]
    outlook = topic_outlook(population.runs, measure, population.prior, gain)
    spread = with_floor(outlook.spread("ranking", range(N_RUNS)))
    needed = population.runs.is_needed(measure, range(N_RUNS))
    cost = np.bincount(population.topic[needed], minlength=N_TOPICS)
    rho = topic_probabilities(population.share, spread, cost, expected * cost.mean())
    theta = population.runs.values(measure, population.labels * gain)
    targets = every_target(N_RUNS)
    truth = targets.of_targets(theta @ population.share)
    agreement = population.runs.agreement()
    hits, controls, widths, n_taken = [], [], [], []
    for _ in range(n_draws):
        taken = rng.random(N_TOPICS) < rho
        f = predicted_values(outlook.expected, agreement, theta, taken, population.fold)
        topics = TakenTopics(population.share, rho, taken | (rho == 1))
        found = whole_topics(topics, theta, f, targets=targets)
        if found.refusals:
            continue
        hits.append(np.mean((found.low <= truth) & (truth <= found.high)))
        of_taken, weight = targets.of_targets(theta[:, taken]), population.share[taken]
        mean = (of_taken @ weight / weight.sum())[:, None]
        squares = ((weight * (of_taken - mean)) ** 2).sum(axis=1)
        error = np.sqrt((1 - rho.mean()) * squares) / weight.sum()
        controls.append(np.mean(np.abs(mean[:, 0] - truth) <= Z95 * error))
        widths.append(np.median((found.high - found.low)[N_RUNS:]) / 2)
        n_taken.append(int(taken.sum()))
    return {
        "covered": float(np.mean(hits)),
        "control": float(np.mean(controls)),
        "half_width_of_pairs": float(np.median(widths)),
        "topics": float(np.mean(n_taken)),
        "refused": n_draws - len(hits),
    }


def summary_of(found: list[dict[str, Any]]) -> dict[str, float]:
    means = {key: round(float(np.mean([one[key] for one in found])), 4) for key in found[0]}
    return {**means, "weakest": round(min(one["covered"] for one in found), 4)}


# -- audits ---------------------------------------------------------------------------------------------------


def machine_labels(population: Population, rng: np.random.Generator) -> Floats:
    """Return labels that err: more or less in every topic, and towards relevance where many runs return a document."""
    popular = np.bincount(population.ranks.item, minlength=population.topic.size) / N_RUNS - 0.5
    leniency = rng.normal(1.5, 1.5, N_TOPICS)[population.topic] + 3.0 * popular
    chance = expit(np.where(population.labels > 0, 1.4, -1.8) + leniency)
    return (rng.random(chance.size) < chance).astype(float)


def audits_of(
    population: Population, name: str, expected: int, n_audits: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return how often the corrected intervals of all runs and pairs have the truth, and those of the controls."""
    measure, gain = AUDITED[name]
    labels = machine_labels(population, rng)
    checks = np.array([[9.0, 1.0], [2.0, 8.0]])
    relevance = relevance_given_grade(population.prior, labels.astype(np.int64), checks, 1)
    outlook = topic_outlook(population.runs, measure, relevance, gain)
    spread = with_floor(outlook.spread("ranking", range(N_RUNS)))
    rho = topic_probabilities(
        population.share, spread, population.cost, expected * float(population.cost.mean())
    )
    theta, labelled = (population.runs.values(measure, one * gain) for one in (population.labels, labels))
    targets, everything = every_target(N_RUNS), np.ones(N_TOPICS, dtype=bool)
    truth, as_given = (targets.of_targets(values @ population.share) for values in (theta, labelled))
    topics, agreement = (
        TakenTopics(population.share, np.ones(N_TOPICS), everything),
        population.runs.agreement(),
    )
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(n_audits):
        taken = (rng.random(N_TOPICS) < rho) | (rho == 1)
        predicted = topic_prediction(labelled, agreement, labelled, theta, topics, taken, population.fold)
        made = audited_topics(topics, TopicAudit(rho, taken), theta, predicted, targets=targets)
        if made.refusals:
            continue
        half = (made.high - made.low) / 2
        found["covered"].append(float(np.mean(np.abs(made.value - truth) <= half)))
        for key, values in {"covered_runs": made.value, "labels": as_given}.items():
            found[key].append(float(np.mean((np.abs(values - truth) <= half)[:N_RUNS])))
        found["half_width"].append(float(np.median(half[N_RUNS:])))
        found["topics"].append(float(taken.sum()))
        if measure.kind.is_sum:
            found["items"].append(covered_by_items(population, measure, labels, rho, taken, truth))
    means = {key: float(np.mean(values)) for key, values in found.items()}
    return {**means, "refused": float(n_audits - len(found["covered"]))}


def covered_by_items(
    population: Population, measure: Any, labels: Floats, rho: Floats, taken: np.ndarray, truth: Floats
) -> float:
    """Return how often the item-level correction has the truth: documents count as audited one by one."""
    seen, a = taken[population.topic], rho[population.topic]
    after, spread = np.zeros((2, labels.size))
    for grade in (0.0, 1.0):
        own = labels == grade
        known = own & seen
        weight = 1 / a[known]
        mean = float(weight @ population.labels[known] / weight.sum()) if known.any() else grade
        after[own], spread[own] = mean, mean * (1 - mean)
    own_share = N_TOPICS * population.share[population.topic]
    runs = weights_of_runs(measure, population.ranks, N_TOPICS)
    weights = TargetWeights(runs.with_values(runs.value * own_share[runs.item]))
    made = two_phase(
        weights,
        draw_probability=np.ones(labels.size),
        audited=seen,
        gold=population.labels,
        audit_probability=a,
        before=after,
        after=after,
        spread=spread,
        before_total=weights.totals(after),
        fewest=0,
    ).estimates
    return float(np.mean(((made.low <= truth) & (truth <= made.high))[:N_RUNS]))


def audits(n_populations: int, n_audits: int) -> list[dict[str, Any]]:
    rows = []
    for name in AUDITED:
        for expected in AUDITED_TOPICS:
            found = []
            for number in range(n_populations):
                population = Population(np.random.default_rng([SEED, number]))
                rng = np.random.default_rng([SEED, number, expected, 1])
                found.append(audits_of(population, name, expected, n_audits, rng))
            rows.append({"measure": name, "expected_topics": expected, **summary_of(found)})
    return rows


def coverage(n_populations: int, n_draws: int) -> list[dict[str, Any]]:
    rows = []
    for name in MEASURES:
        for expected in EXPECTED:
            found = []
            for number in range(n_populations):
                population = Population(np.random.default_rng([SEED, number]))
                rng = np.random.default_rng([SEED, number, expected])
                found.append(coverage_of(population, name, expected, n_draws, rng))
            rows.append({"measure": name, "expected_topics": expected, **summary_of(found)})
    return rows


# -- a query log ----------------------------------------------------------------------------------------------

Seconds = dict[str, dict[str, float]]


@contextmanager
def timed(seconds: Seconds, name: str) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    seconds[name] = {
        "wall": round(time.perf_counter() - wall, 3),
        "cpu": round(time.process_time() - cpu, 3),
    }


def write_log(folder: Path, n_queries: int) -> None:
    """Write the runs as the product stores them: each ranks the same 20 documents of a query in its own order."""
    from judging.rankings import write_rankings

    rng = np.random.default_rng(SEED)
    topics = pl.Series(sorted(f"q{number:06d}" for number in range(n_queries)))
    first = rng.random((n_queries, N_DOCUMENTS), dtype=np.float32)
    folder.mkdir()
    for run in range(N_RUNS):
        score = first + rng.random(first.shape, dtype=np.float32)
        best = np.argsort(-score, axis=1)
        numbers = (np.arange(n_queries)[:, None] * N_DOCUMENTS + best).ravel()
        frame = pl.DataFrame(
            {
                "topic_id": topics.gather(np.repeat(np.arange(n_queries), N_DOCUMENTS)),
                "doc_id": pl.select(pl.format("doc{}", pl.Series(numbers))).to_series(),
                "rank": np.tile(np.arange(1, N_DOCUMENTS + 1), n_queries),
                "score": np.tile(np.arange(N_DOCUMENTS, 0, -1.0), n_queries),
                "run_tag": pl.repeat(f"run{run}", n_queries * N_DOCUMENTS, eager=True),
            }
        )
        write_rankings(frame, folder / f"{run}")


def whole_topics_drawn(folder: Path) -> dict[str, Any]:
    """Do what the product does from the stored runs to the topics drawn, without its database."""
    from judging.rankings import read_rankings
    from sampling.draws import poisson_draw
    from sampling.pooling import pool_of_rankings

    seconds: Seconds = {}
    with timed(seconds, "frame"):
        pooled = pool_of_rankings([read_rankings(path) for path in sorted(folder.iterdir())], N_DOCUMENTS)
    measure, gain = MEASURES["ERR@10"]
    with timed(seconds, "prior and spread"):
        prior = prior_of_runs(pooled.returned, N_DOCUMENTS)
        runs = TopicRuns.of(pooled.returned, pooled.topic_index, pooled.topic_ids.size)
        spread = with_floor(topic_outlook(runs, measure, prior, gain).spread("ranking", range(N_RUNS)))
    with timed(seconds, "probabilities"):
        needed = runs.is_needed(measure, range(N_RUNS))
        cost = np.bincount(pooled.topic_index[needed], minlength=spread.size)
        rho = topic_probabilities(np.ones(spread.size), spread, cost, 0.01 * cost.sum())
        pi = np.where(needed, rho[pooled.topic_index], 0.0)
    with timed(seconds, "random numbers"):
        numbers = topic_numbers(pooled.topic_ids, SEED)[pooled.topic_index]
    with timed(seconds, "draw"):
        drawn = poisson_draw(pi, numbers)
    file_of(folder, seconds, pooled, pi, prior, numbers)
    return summary(seconds, pi.size, drawn.size)


def documents_drawn(folder: Path) -> dict[str, Any]:
    """Do the same for documents of all topics."""
    from judging.rankings import read_rankings
    from sampling.designs import mixture, normalise, uniform_design
    from sampling.draws import permanent_random_numbers, poisson_draw
    from sampling.pooling import pool_of_rankings

    seconds: Seconds = {}
    with timed(seconds, "frame"):
        pooled = pool_of_rankings([read_rankings(path) for path in sorted(folder.iterdir())], N_DOCUMENTS)
    with timed(seconds, "prior and contrast"):
        prior = prior_of_runs(pooled.returned, N_DOCUMENTS)
        weights = design_weights(parse_linear("DCG@10"), pooled.returned, pooled.topic_ids.size)
        says = importance("ranking", weights, range(N_RUNS))
    n_items = prior.size
    with timed(seconds, "probabilities"):
        question = normalise(np.sqrt(says.squared_contrast * prior * (1 - prior)))
        sizes = mixture(question, [says.average_run, uniform_design(n_items)], [0.05, 0.01])
        pi = nested_probabilities(sizes, np.zeros(n_items), 0.01 * n_items)
    with timed(seconds, "random numbers"):
        topic_ids = pl.Series(list(pooled.topic_ids), dtype=pl.String).gather(pooled.topic_index)
        numbers = permanent_random_numbers(topic_ids, pl.Series(list(pooled.doc_ids), dtype=pl.String), SEED)
    with timed(seconds, "draw"):
        drawn = poisson_draw(pi, numbers)
    file_of(folder, seconds, pooled, pi, prior, numbers)
    return summary(seconds, pi.size, drawn.size)


def file_of(folder: Path, seconds: Seconds, pooled: Any, pi: Floats, prior: Floats, number: Floats) -> None:
    with timed(seconds, "frame file"):
        columns = {
            "topic_id": pl.Series(list(pooled.topic_ids), dtype=pl.String).gather(pooled.topic_index),
            "doc_id": pl.Series(list(pooled.doc_ids), dtype=pl.String),
            "pi": pi,
            "prior": prior,
            "number": number,
        }
        pl.DataFrame(columns).write_parquet(folder.parent / "frame.parquet", compression="zstd")


def summary(seconds: Seconds, n_pairs: int, n_drawn: int) -> dict[str, Any]:
    total = {clock: round(sum(part[clock] for part in seconds.values()), 3) for clock in ("wall", "cpu")}
    return {
        "pairs": n_pairs,
        "drawn": n_drawn,
        "seconds": seconds,
        "total": total,
        "nanoseconds_a_pair": round(total["cpu"] / n_pairs * 1e9),
    }


def log(n_queries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        write_log(folder, n_queries)
        found = {"whole topics": whole_topics_drawn(folder), "documents": documents_drawn(folder)}
    whole, documents = (one["nanoseconds_a_pair"] for one in found.values())
    return {"queries": n_queries, **found, "whole_topics_to_documents": round(whole / documents, 3)}


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shown)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size, to see that it works")
    parser.add_argument("--part", choices=["coverage", "audit", "log"])
    parser.add_argument("--populations", type=int, default=10)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    report: dict[str, Any] = {"benchmark": "whole_topics", "seed": SEED, "quick": options.quick}
    size = (2, 20) if options.quick else (options.populations, options.draws)
    report |= {"populations": size[0], "draws": size[1]}
    if options.part in (None, "coverage"):
        report["coverage"] = coverage(*size)
    if options.part in (None, "audit"):
        report["audit"] = audits(*size)
    if options.part in (None, "log"):
        report["log"] = log(QUICK_QUERIES if options.quick else QUERIES)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
