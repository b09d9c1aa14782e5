"""CLEF TAR 2017 as two judges would have it: labels and an audit, made of hashes, so that any program makes the same.

The data is read where it is: in the folder CLEF_TAR, by default shared/data/clef_tar2017 beside the repository.
"""

import gzip
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from pure_modules import REPOSITORY

from sampling.judged import Judged
from sampling.strategies import strategy_probabilities

FOLDER = Path(os.environ.get("CLEF_TAR", REPOSITORY.parent / "shared" / "data" / "clef_tar2017"))
A, B = "QUT__result_bool_es_test", "Waterloo__A-rank-normal"
DEPTH, N_TOPICS = 20, 30
Pair = tuple[str, str]


def uniform(salt: str, pair: Pair) -> float:
    """Return the number of a pair: the first 8 bytes of a hash, big-endian, over 2^64."""
    digest = hashlib.sha256(f"{salt} {pair[0]} {pair[1]}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def run_path(name: str) -> Path:
    return FOLDER / "runs" / f"{name}.txt.gz"


def _first_ranks(name: str) -> dict[Pair, int]:
    """Return the first documents of every topic by score, as trec_eval orders them, without the product's reader."""
    topics: dict[str, list[tuple[float, bytes, str]]] = {}
    with gzip.open(run_path(name), "rt") as lines:
        for line in lines:
            topic, _, doc, _, score, _ = line.split()
            topics.setdefault(topic, []).append((float(np.float32(score)), doc.encode(), doc))
    found: dict[Pair, int] = {}
    for topic, rows in topics.items():
        rows.sort(reverse=True)
        found |= {(topic, doc): rank for rank, (_, _, doc) in enumerate(rows[:DEPTH], 1)}
    return found


@dataclass(frozen=True)
class ClefFixture:
    """What the fixture is made of; arrays are [pair], in the order of the pairs."""

    pairs: list[Pair]
    weight: np.ndarray  # of A minus B, in P@20 over 30 topics
    truth: np.ndarray
    label: np.ndarray
    chance: np.ndarray
    audited: np.ndarray

    def table(self, grade: np.ndarray, chosen: np.ndarray | None = None) -> pl.DataFrame:
        """Return pairs with grades as a table."""
        keep = np.ones(len(self.pairs), dtype=bool) if chosen is None else chosen
        topics, docs = (np.array([pair[part] for pair in self.pairs])[keep] for part in (0, 1))
        return pl.DataFrame({"topic": topics, "doc": docs, "grade": grade[keep]})

    @property
    def labels(self) -> pl.DataFrame:
        return self.table(self.label)

    @property
    def gold(self) -> pl.DataFrame:
        return self.table(self.truth, self.audited).with_columns(probability=self.chance[self.audited])


@cache
def clef_fixture() -> ClefFixture:
    first, second = _first_ranks(A), _first_ranks(B)
    pairs = sorted({*first, *second})
    relevant = set()
    with gzip.open(FOLDER / "test.abs.qrels.gz", "rt") as lines:
        for line in lines:
            topic, _, doc, grade = line.split()
            if int(grade) > 0:
                relevant.add((topic, doc))
    weight = np.array([(pair in first) - (pair in second) for pair in pairs]) / DEPTH / N_TOPICS
    truth = np.array([pair in relevant for pair in pairs]).astype(np.int64)
    label = [
        (uniform("judge", pair) >= 0.20)
        if pair in relevant
        else uniform("judge", pair) < (0.16 if pair in first and pair in second else 0.06)
        for pair in pairs
    ]
    nothing = np.zeros(len(pairs), dtype=np.int64)
    judged = Judged(np.abs(weight), np.ones(len(pairs)), nothing, nothing, nothing.astype(float), 2)
    chance = strategy_probabilities("influence", judged, expected_count=200)
    audited = np.array([uniform("gold", pair) < pi for pair, pi in zip(pairs, chance, strict=True)])
    return ClefFixture(pairs, weight, truth, np.array(label).astype(np.int64), chance, audited)
