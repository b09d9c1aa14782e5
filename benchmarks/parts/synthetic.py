"""The synthetic collection of benchmarks/chain.py: runs, true grades, and the true values of every run and pair."""

import json
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_TOPICS, N_CANDIDATES, N_RUNS, RUN_DEPTH, POOL_DEPTH = 40, 120, 6, 25, 20
GAINS = np.array([0.0, 1.0, 2.0, 3.0])


@dataclass(frozen=True)
class Population:
    """Every (topic, document) pair that some run returns, and what the benchmark alone knows about it."""

    topic_ids: list[str]  # [item]
    doc_ids: list[str]  # [item]
    grade: Ints  # [item]
    share: Floats  # [item], of the runs that return it within the pool's depth
    rank: Ints  # [run, item], from 1; 0: not returned

    @property
    def run_ids(self) -> list[str]:
        return [f"run{number}" for number in range(self.rank.shape[0])]

    def pairs(self) -> list[tuple[str, str]]:
        return list(combinations(self.run_ids, 2))

    def truth(self) -> dict[tuple[str, str, str], float]:
        """Return the true value by (measure, run, "") and the true difference by (measure, run_a, run_b)."""
        rank = np.maximum(self.rank, 1)
        relevant = (self.grade >= 1).astype(float)
        per_item = {
            "P@10": relevant * 0.1 * (rank <= 10),
            "DCG@10": GAINS[self.grade] / np.log2(rank + 1) * (rank <= 10),
            "RBP(p=0.8)@20": relevant * 0.2 * 0.8 ** (rank - 1) * (rank <= 20),
        }
        values: dict[tuple[str, str, str], float] = {}
        for measure, gain in per_item.items():
            mean = (gain * (self.rank > 0)).sum(axis=1) / N_TOPICS
            values |= {(measure, run, ""): float(mean[place]) for place, run in enumerate(self.run_ids)}
            for (a, run_a), (b, run_b) in combinations(enumerate(self.run_ids), 2):
                values[measure, run_a, run_b] = float(mean[a] - mean[b])
        return values


def make_population(rng: np.random.Generator) -> Population:
    """Return pairs in which popular documents are relevant more often: .12, .27, .50 by third of popularity.

    Real pools are like that. Runs differ in how much they see of what other runs see, and of a surface that is not
    relevance.
    """
    shape = (N_TOPICS, N_CANDIDATES)
    merit = rng.normal(size=shape)
    difficulty = rng.normal(scale=0.4, size=(N_TOPICS, 1))
    latent = merit - 1.5 - difficulty + rng.normal(scale=0.6, size=shape)
    grade = (latent > 0).astype(np.int64) + (latent > 0.5) + (latent > 1.0)
    surface = rng.normal(size=shape)
    skill, taste, noise = np.linspace(0.9, 1.1, N_RUNS), np.linspace(0.4, 1.2, N_RUNS), (1.6, 0.9, 0.3)
    rank = np.zeros((N_RUNS, *shape), dtype=np.int64)
    for run in range(N_RUNS):
        own = rng.normal(scale=noise[run // 2], size=shape)
        order = np.argsort(-(skill[run] * merit + taste[run] * surface + own), axis=1)[:, :RUN_DEPTH]
        np.put_along_axis(rank[run], order, np.arange(1, RUN_DEPTH + 1)[None, :], axis=1)
    topic, document = np.nonzero((rank > 0).any(axis=0))
    pooled = (rank > 0) & (rank <= POOL_DEPTH)
    return Population(
        topic_ids=[f"t{number:02d}" for number in topic],
        doc_ids=[f"t{number:02d}d{place:03d}" for number, place in zip(topic, document, strict=True)],
        grade=grade[topic, document],
        share=pooled.mean(axis=0)[topic, document],
        rank=rank[:, topic, document],
    )


def write_files(population: Population, folder: Path) -> None:
    """Write topics, documents, runs and gold answers as the files that a user would bring."""
    topics = sorted(set(population.topic_ids))
    pairs = list(zip(population.topic_ids, population.doc_ids, strict=True))
    (folder / "topics.tsv").write_text("".join(f"{topic}\tNeed number {topic}\n" for topic in topics))
    documents = [{"_id": doc_id, "title": doc_id, "text": f"Text of {doc_id}."} for _, doc_id in pairs]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    gold = [f"{topic} 0 {doc} {grade}\n" for (topic, doc), grade in zip(pairs, population.grade, strict=True)]
    (folder / "gold.qrels").write_text("".join(gold))
    for run_id, ranks in zip(population.run_ids, population.rank, strict=True):
        lines = [
            f"{topic} Q0 {doc} {rank} {RUN_DEPTH + 1 - rank} {run_id}\n"
            for (topic, doc), rank in zip(pairs, ranks, strict=True)
            if rank > 0
        ]
        (folder / f"{run_id}.run").write_text("".join(lines))
