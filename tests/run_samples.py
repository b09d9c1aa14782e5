"""Runs of a few lines, as text and as stored files."""

import io
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from judging.rankings import (
    read_rankings,
    read_run,
    write_rankings,
)
from judging.run_columns import hash_pairs
from sampling.measures.scoring import RankedRun

GOOD = b"1 Q0 A 1 0.5 mine\n"


def _frame(data: bytes) -> pl.DataFrame:
    return read_run(io.BytesIO(data), "run")


def _stored(frame: pl.DataFrame):
    stream = io.BytesIO()
    write_rankings(frame, stream)
    return read_rankings(stream.getvalue())


def _lines(run: dict[str, dict[str, float]], tag: str = "mine") -> bytes:
    rows = [
        f"{topic} Q0 {doc} 0 {score!r} {tag}\n" for topic, docs in run.items() for doc, score in docs.items()
    ]
    return "".join(rows).encode()


def ranked_documents(ranking: Mapping[str, Sequence[str]]) -> RankedRun:
    """Return a run given by topic as its documents, best first."""
    sizes = [len(documents) for documents in ranking.values()]
    topics = [topic for topic, documents in ranking.items() for _ in documents]
    hashes = hash_pairs(topics, [document for documents in ranking.values() for document in documents])
    order = np.argsort(hashes, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return RankedRun(tuple(ranking), offsets, hashes[order], order.astype(np.uint32))
