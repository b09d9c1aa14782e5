"""Measure whether an interval beside statAP would hold, on pools that are judged completely; and how long statAP takes.

    python benchmarks/lowcost_coverage.py --draws 100 --seed 1
    python benchmarks/lowcost_coverage.py --sizes 25 50 --pools diverse

Every draw takes so many documents of every topic in buckets (`sampling.buckets`), by the prior of all runs, and
estimates the mean over topics of statAP of every run. The 95 % confidence intervals:

- linearised: the value with the linearised variance, from the exact joint probabilities. The control, too short;
- bootstrap: twice the value less the bootstrap's mean, with the bootstrap's standard deviation. The weights of a
  topic's documents are disturbed by multipliers with the covariance of the draw, 1 - pi_d pi_e / pi_de (its symmetric
  root, times exponential multipliers); AP is computed anew. A denominator below 1 counts as 1;
- independent: the same as if documents had been drawn independently, all that a file of prels lets one assume.

Per row: bias of the value and of the corrected one, in units of AP; standard deviation over draws, mean standard error,
coverage. Runs of one draw share their errors, so that a coverage over d draws of r runs is surer than one over d and
less sure than one over d r intervals.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.trec_like import JudgedPool, trec_like

from analytics.estimation.estimate import Z95
from analytics.lowcost.statap import linearised_variance, statap
from sampling.buckets import Buckets, cut_buckets, run_prior
from sampling.rejudging import SampledTopic

Floats = NDArray[np.float64]
SIZES = (50, 100, 200)
TARGET = (0.92, 0.97)
REPLICATES = 200


@dataclass(frozen=True)
class PoolTopic:
    """A topic of the pool: ranks [run, document], infinite where not returned; labels; the prior of its documents."""

    ranks: Floats
    labels: Floats
    prior: Floats

    @property
    def average_precision(self) -> Floats:
        return statap(SampledTopic.of(self.ranks, self.labels, np.ones(self.labels.size)))


def pool_topics(pool: JudgedPool) -> list[PoolTopic]:
    topics = []
    for topic in range(int(pool.topic_index.max()) + 1):
        own = np.flatnonzero(pool.topic_index == topic)
        rank = pool.ranks[:, own]
        runs = [np.argsort(np.where(row > 0, row, 10**6))[: np.count_nonzero(row)].tolist() for row in rank]
        topics.append(
            PoolTopic(np.where(rank > 0, rank, np.inf), pool.relevant[own], run_prior(runs, own.size))
        )
    return topics


def replicates(topic: SampledTopic, joint: Floats | None, rng: np.random.Generator) -> Floats:
    """Return statAP [run, replicate] with the weights of the relevant documents disturbed as the draw disturbs them."""
    relevant = np.flatnonzero(topic.is_relevant)
    if not relevant.size:
        return np.zeros((len(topic.ranks), REPLICATES))
    chance, ranks = topic.inclusion_probability[relevant], topic.ranks[:, relevant]
    if joint is None:
        root = np.diag(np.sqrt(1 - chance))
    else:
        spread, vectors = np.linalg.eigh(1 - np.outer(chance, chance) / joint[np.ix_(relevant, relevant)])
        root = (vectors * np.sqrt(np.maximum(spread, 0.0))) @ vectors.T
    noise = root @ (rng.standard_exponential((relevant.size, REPLICATES)) - 1)
    weights = (1 + noise) / chance[:, None]
    total = np.maximum(weights.sum(axis=0), 1.0)
    values = np.zeros((len(ranks), REPLICATES))
    for run, rank in enumerate(ranks):
        order = np.argsort(rank)[: np.count_nonzero(np.isfinite(rank))]
        own = weights[order]
        above = np.cumsum(own, axis=0) - own
        values[run] = (own * (1 + above) / rank[order, None]).sum(axis=0) / total
    return values


@dataclass(frozen=True)
class DrawValues:
    """Of one draw by run the centre of each interval, and its standard error."""

    centre: dict[str, Floats]
    error: dict[str, Floats]


def one_draw(topics: Sequence[PoolTopic], buckets: Sequence[Buckets], rng: np.random.Generator) -> DrawValues:
    n_runs, n_topics = len(topics[0].ranks), len(topics)
    value, variance = np.zeros(n_runs), np.zeros(n_runs)
    bootstrap, independent = np.zeros((2, n_runs, REPLICATES))
    for topic, cut in zip(topics, buckets, strict=True):
        documents = cut.sample(rng)
        sampled = SampledTopic.of(
            topic.ranks[:, documents], topic.labels[documents], cut.inclusion_probability[documents]
        )
        joint = cut.joint_probability()[np.ix_(documents, documents)]
        value += statap(sampled) / n_topics
        variance += linearised_variance(sampled, joint) / n_topics**2
        bootstrap += replicates(sampled, joint, rng) / n_topics
        independent += replicates(sampled, None, rng) / n_topics
    drawn = {"bootstrap": bootstrap, "independent": independent}
    return DrawValues(
        {"linearised": value} | {name: 2 * value - one.mean(axis=1) for name, one in drawn.items()},
        {"linearised": np.sqrt(variance)} | {name: one.std(axis=1, ddof=1) for name, one in drawn.items()},
    )


def coverage_rows(pool: JudgedPool, size: int, draws: int, seed: int) -> list[dict[str, object]]:
    """Return a row of figures for each interval."""
    topics = pool_topics(pool)
    buckets = [cut_buckets(topic.prior, size) for topic in topics]
    truth = np.mean([topic.average_precision for topic in topics], axis=0)
    rng = np.random.default_rng([seed, size])
    made = [one_draw(topics, buckets, rng) for _ in range(draws)]
    rows: list[dict[str, object]] = []
    for name in made[0].centre:
        values, error = (np.array([getattr(one, part)[name] for one in made]) for part in ("centre", "error"))
        covered = float(np.mean(np.abs(values - truth) <= Z95 * error))
        rows.append(
            {
                "pool": pool.name,
                "judgments_a_topic": size,
                "interval": name,
                "bias": round(float((values - truth).mean()), 5),
                "standard_deviation": round(float(values.std(axis=0, ddof=1).mean()), 5),
                "standard_error": round(float(error.mean()), 5),
                "coverage": round(covered, 4),
                "holds": TARGET[0] <= covered <= TARGET[1],
            }
        )
    return rows


def seconds_of_statap(n_runs: int = 129, n_topics: int = 50, n_documents: int = 200) -> float:
    """Return how long statAP of so many runs and topics takes."""
    rng = np.random.default_rng(1)
    ranks = np.argsort(rng.random((n_topics, n_runs, n_documents)), axis=2) + 1.0
    labels = rng.random((n_topics, n_documents)) < 0.2
    chance = rng.uniform(0.05, 1, (n_topics, n_documents))
    start = time.perf_counter()
    for topic in range(n_topics):
        statap(SampledTopic.of(ranks[topic], labels[topic], chance[topic]))
    return round(time.perf_counter() - start, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    names = ("diverse", "near-duplicates")
    parser.add_argument("--pools", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    rows = [
        row
        for name in options.pools
        for size in options.sizes
        for row in coverage_rows(
            trec_like(options.seed, near_duplicates=name == names[1]), size, options.draws, options.seed
        )
    ]
    print(json.dumps({"rows": rows, "seconds_of_129_runs_x_50_topics": seconds_of_statap()}, indent=2))


if __name__ == "__main__":
    main()
