"""Pools with complete judgments: a synthetic one that looks like TREC, and CLEF TAR 2017.

The synthetic pool: 50 topics, 20 systems, depth 100, mean DCG with the natural logarithm, some 29,000 pooled items of
which 8 % are relevant (diverse), or some 22,000 and 9 % (five families of four near-duplicates). All of it is invented:

- a topic has 1,300 candidate documents with a quality z ~ N(0, 1); a document is relevant with probability
  expit((z - t)/0.4), where the topic's threshold t ~ N(2.3, 0.4);
- a system scores a document skill * z + 0.4 * surface + noise: surface ~ N(0, 1) is what all systems take for
  relevance; skill runs from 0.6 to 1.45 and varies by 0.3 from topic to topic; noise ~ N(0, 1) is the system's own
  (diverse), or 0.93 of the family's and 0.37 of its own (near-duplicates).

A third pool has 129 runs in 26 families, some 58,000 items of which 8 % are relevant: a family takes six surfaces for
relevance, each by |N(0, 0.7)| of its own; half of the other noise is the family's. Topics have 3,000 candidates.

The numbers were chosen so that the pool's size, its share of relevant items and the range of DCG are those of TREC's
pools; never by what the product's design gives.
"""

import gzip
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_TOPICS, N_SYSTEMS, DEPTH, N_CANDIDATES = 50, 20, 100, 1300
FAMILY_SIZE, OWN_NOISE = 4, 0.37
N_MANY, MANY_FAMILY, N_MANY_CANDIDATES = 129, 5, 3_000
N_SURFACES, SURFACE_TASTE = 6, 0.7


@dataclass(frozen=True)
class JudgedPool:
    """A pool with complete judgments, its runs in the order of their true mean DCG, best first.

    Attributes
    ----------
    name : str
    ranks : int array, shape (n_runs, n_items)
        0 = not among the run's first `depth`.
    topic_index : int array, shape (n_items,)
    relevant : float array, shape (n_items,)
        0 or 1.
    depth : int
    """

    name: str
    ranks: Ints
    topic_index: Ints
    relevant: Floats
    depth: int

    @cached_property
    def weights(self) -> Floats:
        """w[run, item] of mean DCG, 1/ln(rank + 1) over the number of topics."""
        return dcg_weights(self.ranks, int(self.topic_index.max()) + 1)

    def description(self) -> dict[str, float]:
        """Return the figures by which the pool can be compared with others."""
        score = (self.weights * self.relevant).sum(axis=1)
        return {
            "topics": int(self.topic_index.max()) + 1,
            "runs": self.ranks.shape[0],
            "items": self.relevant.size,
            "relevant_share": round(float(self.relevant.mean()), 4),
            "lowest_dcg": round(float(score.min()), 2),
            "highest_dcg": round(float(score.max()), 2),
        }


def dcg_weights(ranks: Ints, n_topics: int) -> Floats:
    """Return 1/ln(rank + 1)/n_topics, 0 where the rank is 0."""
    returned = ranks > 0
    weights = np.zeros(ranks.shape)
    weights[returned] = 1.0 / np.log(ranks[returned] + 1.0) / n_topics
    return weights


def ordered(name: str, ranks: Ints, topic_index: Ints, relevant: Floats, depth: int) -> JudgedPool:
    """Return the pool with its runs from best to worst."""
    pool = JudgedPool(name, ranks, topic_index, relevant, depth)
    order = np.argsort(-(pool.weights * relevant).sum(axis=1), kind="stable")
    return JudgedPool(name, ranks[order], topic_index, relevant, depth)


def trec_like(seed: int, *, near_duplicates: bool) -> JudgedPool:
    """Return one synthetic pool."""
    rng = np.random.default_rng(seed)
    skill = np.linspace(0.6, 1.45, N_SYSTEMS)
    ranks, relevant, topics = [], [], []
    for topic in range(N_TOPICS):
        quality, surface = rng.normal(size=(2, N_CANDIDATES))
        threshold = 2.3 + 0.4 * rng.normal()
        truth = rng.random(N_CANDIDATES) < 1.0 / (1.0 + np.exp(-(quality - threshold) / 0.4))
        family = rng.normal(size=(N_SYSTEMS // FAMILY_SIZE, N_CANDIDATES))
        own = rng.normal(size=(N_SYSTEMS, N_CANDIDATES))
        shared = np.repeat(family, FAMILY_SIZE, axis=0)
        noise = np.sqrt(1.0 - OWN_NOISE**2) * shared + OWN_NOISE * own if near_duplicates else own
        skills = skill + 0.3 * rng.normal(size=N_SYSTEMS)
        score = skills[:, None] * quality + 0.4 * surface + noise
        rank = np.zeros(score.shape, dtype=np.int64)
        best = np.argsort(-score, axis=1)[:, :DEPTH]
        np.put_along_axis(rank, best, np.arange(1, DEPTH + 1)[None, :], axis=1)
        pooled = (rank > 0).any(axis=0)
        ranks.append(rank[:, pooled])
        relevant.append(truth[pooled].astype(np.float64))
        topics.append(np.full(int(pooled.sum()), topic))
    name = "near-duplicates" if near_duplicates else "diverse"
    joined = np.concatenate(ranks, axis=1)
    return ordered(name, joined, np.concatenate(topics), np.concatenate(relevant), DEPTH)


def many_families(seed: int) -> JudgedPool:
    """Return a pool of 129 runs in families of five that mistake different things for relevance."""
    rng = np.random.default_rng([seed, N_MANY])
    n_families = -(-N_MANY // MANY_FAMILY)
    family_of = np.repeat(np.arange(n_families), MANY_FAMILY)[:N_MANY]
    skill = np.linspace(0.6, 1.45, n_families)
    taste = SURFACE_TASTE * np.abs(rng.normal(size=(n_families, N_SURFACES)))
    ranks, relevant, topics = [], [], []
    for topic in range(N_TOPICS):
        quality = rng.normal(size=N_MANY_CANDIDATES)
        surfaces = rng.normal(size=(N_SURFACES, N_MANY_CANDIDATES))
        threshold = 2.3 + 0.4 * rng.normal()
        truth = rng.random(N_MANY_CANDIDATES) < 1.0 / (1.0 + np.exp(-(quality - threshold) / 0.4))
        shared = rng.normal(size=(n_families, N_MANY_CANDIDATES))
        skills = skill + 0.3 * rng.normal(size=n_families)
        of_family = skills[:, None] * quality + taste @ surfaces + 0.5 * shared
        score = of_family[family_of] + 0.8 * rng.normal(size=(N_MANY, N_MANY_CANDIDATES))
        rank = np.zeros(score.shape, dtype=np.int16)
        best = np.argsort(-score, axis=1)[:, :DEPTH]
        np.put_along_axis(rank, best, np.arange(1, DEPTH + 1, dtype=np.int16)[None, :], axis=1)
        pooled = (rank > 0).any(axis=0)
        ranks.append(rank[:, pooled])
        relevant.append(truth[pooled].astype(np.float64))
        topics.append(np.full(int(pooled.sum()), topic))
    joined = np.concatenate(ranks, axis=1)
    return ordered("many families", joined, np.concatenate(topics), np.concatenate(relevant), DEPTH)


def clef_tar(folder: Path, depth: int = DEPTH) -> JudgedPool:
    """Return the pool of CLEF TAR 2017: 30 topics, 13 runs, every document judged (abstract level).

    Runs are taken in the order of their rank column: several runs give the same score to all documents. Of a
    document that comes twice the first place counts.
    """
    answers = {}
    with gzip.open(folder / "test.abs.qrels.gz", "rt") as lines:
        for topic, _, document, grade in map(str.split, lines):
            answers[topic, document] = int(grade) > 0
    tops: list[dict[str, list[str]]] = []
    for path in sorted((folder / "runs").iterdir()):
        rows: dict[str, list[tuple[int, str]]] = {}
        with gzip.open(path, "rt") as lines:
            for fields in map(str.split, lines):
                rows.setdefault(fields[0], []).append((int(fields[3]), fields[2]))
        # Sorting by rank alone keeps the order of the lines where ranks are equal.
        tops.append(
            {
                topic: list(
                    dict.fromkeys(document for _, document in sorted(documents, key=lambda row: row[0]))
                )[:depth]
                for topic, documents in rows.items()
            }
        )
    items = sorted(
        {(topic, document) for top in tops for topic, documents in top.items() for document in documents}
    )
    place = {item: index for index, item in enumerate(items)}
    ranks = np.zeros((len(tops), len(items)), dtype=np.int64)
    for run, top in enumerate(tops):
        for topic, documents in top.items():
            for rank, document in enumerate(documents, start=1):
                ranks[run, place[topic, document]] = rank
    _, topic_index = np.unique([topic for topic, _ in items], return_inverse=True)
    relevant = np.array([float(answers.get(item, False)) for item in items])
    return ordered("CLEF TAR 2017", ranks, topic_index.astype(np.int64), relevant, depth)
