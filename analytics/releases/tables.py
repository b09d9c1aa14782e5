"""Tables as text and Parquet: JSON Lines, BEIR's qrels, columnar twins. The same rows make the same bytes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

ROWS_A_GROUP = 100_000
ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE = 4 << 20
SECONDS_STEP = 5.0  # exact seconds are a mark by which a judgment is found in another file

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
}  # and prediction_<n>; after an audit gold_before_<n> and so on; with replacement single_<batch> and times_<batch>


def write_json_lines(rows: pl.DataFrame, stream: BinaryIO) -> None:
    """Write a JSON object a row, every key in each of them."""
    for part in rows.iter_slices(ROWS_AT_ONCE):
        part.write_ndjson(stream)


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
