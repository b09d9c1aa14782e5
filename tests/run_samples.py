"""Runs of a few lines, as text and as stored files."""

import io

import polars as pl

from judging.rankings import (
    read_rankings,
    read_run,
    write_rankings,
)

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
