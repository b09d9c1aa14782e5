"""Tables as text and Parquet: JSON Lines, the TREC lines, columnar twins. The same rows make the same bytes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

ROWS_A_GROUP = 100_000
ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 4 << 20

JUDGMENTS: dict[str, Any] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "assessor": pl.String,
    "tier": pl.String,
    "kind": pl.String,
    "purpose": pl.String,
    "sequence": pl.Int16,
    "grade": pl.Int16,
    "obstacle": pl.String,
    "counted": pl.Boolean,
    "label": pl.Boolean,
    "check_grade": pl.Int16,
    "active_seconds": pl.Float64,
    "date": pl.String,
}
ITEMS: dict[str, Any] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "in_frame": pl.Boolean,
    "drawn_in": pl.Int16,
    "inclusion_probability": pl.Float64,
    "grade": pl.Int16,
    "joint_grade": pl.Int16,
    "adjudicated_grade": pl.Int16,
    "judged": pl.Boolean,
    "chance_judged": pl.Float64,
    "bronze_class": pl.Int64,
    "audit_probability": pl.Float64,
    "chance_open": pl.Float64,
    "audited": pl.Boolean,
    "audit_grade": pl.Int16,
}  # and prediction_<n>; with replacement single_<batch> and times_<batch>
DRAWN_METHOD = 1  # the prels code of a pair drawn with the probability on its line


def write_json_lines(rows: pl.DataFrame, stream: BinaryIO) -> None:
    """Write a JSON object a row, every key in each of them."""
    for part in rows.iter_slices(ROWS_AT_ONCE):
        part.write_ndjson(stream)


def write_words(rows: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the columns of each row parted by spaces, as TREC files are; nothing is quoted, ids hold no space."""
    rows.write_csv(stream, include_header=False, separator=" ", quote_style="never")


def write_qrels(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic 0 document grade`` of the items that have a grade."""
    graded = items.filter(pl.col("grade").is_not_null())
    write_words(graded.select("topic_id", pl.lit(0), "doc_id", "grade"), stream)


def write_qrels_jg(judgments: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic assessor document grade`` of the judgments that count."""
    counted = judgments.filter("counted")
    write_words(counted.select("topic_id", "assessor", "doc_id", "grade"), stream)


def write_prels(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic document grade method probability`` of the items that have a grade and were drawn."""
    drawn = items.filter(pl.col("grade").is_not_null() & (pl.col("drawn_in") > 0))
    columns = ("topic_id", "doc_id", "grade", pl.lit(DRAWN_METHOD), "inclusion_probability")
    write_words(drawn.select(*columns), stream)


def write_beir_qrels(items: pl.DataFrame, stream: BinaryIO) -> None:
    """Write the table ``query-id corpus-id score`` with its head, parted by tabs."""
    graded = items.filter(pl.col("grade").is_not_null())
    stream.write(b"query-id\tcorpus-id\tscore\n")
    rows = graded.select("topic_id", "doc_id", "grade")
    rows.write_csv(stream, include_header=False, separator="\t", quote_style="never")


def write_run(ranking: pl.DataFrame, stream: BinaryIO) -> None:
    """Write ``topic Q0 document rank score tag``; the score reads back exactly."""
    columns = ("topic_id", pl.lit("Q0"), "doc_id", "rank", "score", "run_tag")
    write_words(ranking.select(*columns), stream)


def to_parquet(lines: Path, target: Path, schema: Mapping[str, Any]) -> None:
    """Write the columnar twin of a file of JSON Lines, in groups of rows, without holding more than some of them."""
    if lines.stat().st_size == 0:
        pl.DataFrame(schema=dict(schema)).write_parquet(target, compression="zstd")
        return
    read = {name: pl.Int64 if kind.is_integer() else kind for name, kind in schema.items()}

    def parts(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        for text in _texts(lines):
            rows = pl.read_ndjson(text, schema=read).cast(pl.Schema(schema))
            yield rows if columns is None else rows.select(columns)

    # Polars' own reader of JSON Lines takes a third of a gigabyte for a million rows, whatever its batches.
    rows = register_io_source(parts, schema=dict(schema))
    rows.sink_parquet(target, compression="zstd", row_group_size=ROWS_A_GROUP, maintain_order=True)


def _texts(lines: Path) -> Iterator[bytes]:
    """Yield a file in parts of whole lines."""
    with lines.open("rb") as stream:
        while text := stream.read(BYTES_AT_ONCE):
            yield text + stream.readline()


def is_last_of_assessor(rows: pl.DataFrame, among: pl.Series) -> np.ndarray:
    """Return which rows are an assessor's newest of an item, among some of them; rows of an assessor follow another.

    >>> table = pl.DataFrame({"topic_id": ["t"] * 3, "doc_id": ["d"] * 3, "assessor": ["a", "a", "b"]})
    >>> is_last_of_assessor(table, pl.Series([True, True, False])).tolist()
    [False, True, False]
    """
    chosen = np.flatnonzero(among.to_numpy())
    own = rows.select("topic_id", "doc_id", "assessor")[chosen]
    changes = own.select(pl.all().ne_missing(pl.all().shift(-1))).select(pl.any_horizontal(pl.all()))
    last = np.zeros(rows.height, dtype=bool)
    last[chosen[changes.to_series().to_numpy()]] = True
    return last
