"""The log of judgments as a file for people and programs: streamed, its fields a table, whatever filters chose."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.text import slugify

from analytics.releases.pseudonyms import pseudonym
from judging.models import Adjudication, Campaign, Judgment, Lease
from judging.spreadsheets import sheet_lines
from sampling.frames import item_probabilities
from sampling.models import DrawEntry

AT_ONCE = 2000
PARQUET = "parquet"
LOG_FORMATS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    PARQUET: "application/vnd.apache.parquet",
}
PIECE = 2**16  # bytes of a file that is sent
# The fields of a row: where each is read (None: counted apart), and its type in a table of numbers and texts.
_FIELDS: tuple[tuple[str, str | None, Any], ...] = (
    ("id", "id", pl.Int64),
    ("item", "item_id", pl.String),
    ("topic_id", "item__topic__topic_id", pl.String),
    ("doc_id", "item__document__doc_id", pl.String),
    ("assessor", "assessor__user__username", pl.String),
    ("tier", "assessor__tier", pl.String),
    ("kind", "assessor__kind", pl.String),
    ("purpose", "slot__purpose", pl.String),
    ("sequence", "sequence", pl.Int64),
    ("grade", "grade", pl.Int64),
    ("obstacle", "obstacle", pl.String),
    ("comment", "comment", pl.String),
    ("active_milliseconds", "active_milliseconds", pl.Int64),
    ("document_version", "document_version", pl.Int64),
    ("topic_version", "topic_version", pl.Int64),
    ("created_at", "created_at", pl.String),
    ("is_latest", "is_latest", pl.Boolean),
    ("leased_at", "leased_at", pl.String),
    ("batch", "batch", pl.Int64),
    ("inclusion_probability", None, pl.Float64),
    ("decision", "decision", pl.Int64),
)
FIELDS = {name: path for name, path, _ in _FIELDS}
LOG_SCHEMA = {name: kind for name, _, kind in _FIELDS}


def log_rows(
    campaign: Campaign, found: QuerySet[Judgment], pseudonym_key: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the judgments as rows of FIELDS, in the order of arrival.

    With the key of pseudonyms, as researchers see them: without names and comments.
    """
    later = Judgment.objects.filter(
        item=OuterRef("item"), assessor=OuterRef("assessor"), sequence__gt=OuterRef("sequence")
    )
    drawn = DrawEntry.objects.filter(item=OuterRef("item"), times__gte=1).order_by("draw__batch")
    decided = Adjudication.objects.filter(item=OuterRef("item")).order_by("-id")
    rows = found.annotate(
        is_latest=~Exists(later),
        leased_at=Subquery(Lease.objects.filter(token=OuterRef("lease_token")).values("leased_at")[:1]),
        batch=Subquery(drawn.values("draw__batch")[:1]),
        decision=Subquery(decided.values("grade")[:1]),
    )
    probabilities = item_probabilities(campaign)
    paths = {name: path for name, path in FIELDS.items() if path is not None}
    every = rows.order_by("id").values_list(*paths.values(), "assessor")
    for *values, assessor in every.iterator(chunk_size=AT_ONCE):
        row = dict(zip(paths, values, strict=True))
        if pseudonym_key is not None:
            row |= {"assessor": pseudonym(pseudonym_key, assessor), "comment": ""}
        row["inclusion_probability"] = probabilities.get(row["item"])
        yield {name: _plain(row[name]) for name in FIELDS}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def log_lines(
    campaign: Campaign, found: QuerySet[Judgment], file_format: str, pseudonym_key: str | None = None
) -> Iterator[str]:
    """Yield the lines of a file of lines."""
    return _WRITERS[file_format](log_rows(campaign, found, pseudonym_key))


def log_bytes(
    campaign: Campaign, found: QuerySet[Judgment], file_format: str, pseudonym_key: str | None = None
) -> Iterator[bytes]:
    """Yield the file, to be sent; one of columns is written whole before, since its end says where each begins."""
    if file_format != PARQUET:
        yield from (line.encode() for line in log_lines(campaign, found, file_format, pseudonym_key))
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        write_parquet(campaign, found, Path(file.name), pseudonym_key)
        while piece := file.read(PIECE):
            yield piece


def file_name(campaign: Campaign, file_format: str) -> str:
    """Return what the file is called where somebody keeps it."""
    return f"judgments-{slugify(campaign.name)[:60] or 'campaign'}.{file_format}"


def write_parquet(
    campaign: Campaign, found: QuerySet[Judgment], target: Path, pseudonym_key: str | None = None
) -> None:
    """Write the file of columns, by way of a file of lines: no more than a part of it is in memory."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jsonl") as lines:
        lines.writelines(log_lines(campaign, found, "jsonl", pseudonym_key))
        lines.flush()
        pl.scan_ndjson(lines.name, schema=LOG_SCHEMA).sink_parquet(target)


def _csv_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    return sheet_lines(chain([FIELDS], (row.values() for row in rows)))


def _jsonl_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    dump = partial(json.dumps, ensure_ascii=False)
    for row in rows:
        yield dump(row) + "\n"


_WRITERS: dict[str, Callable[[Iterable[dict[str, Any]]], Iterator[str]]] = {
    "csv": _csv_lines,
    "jsonl": _jsonl_lines,
}
