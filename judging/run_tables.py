"""Read runs that are no lines of six columns: MS MARCO's three columns, tables with a header, JSON objects.

What a run is afterwards is the same: `judging.run_columns.RunColumns`, in trec_eval's order. Most of these files name
no run, so a name is given with them.
"""

import os
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from judging.faults import Faults, Noting, NotingAll, TrecFormatError, place_name
from judging.file_options import FileOptions
from judging.run_columns import RunColumns, hash_pairs
from judging.run_order import Layout, rank_order
from judging.runs import RUN_LIMITS, read_fast
from judging.tables import Row, open_rows
from judging.textfiles import Limits, Source, check_id
from judging.trec import INTEGER, Fields, is_finite_number, read_fields

MSMARCO_LAYOUT = "topic document rank"
MSMARCO = Layout(width=3, topic=0, document=1, score=2, is_by_rank=True)
# The usual names of a run's columns, of which a table has one each.
USUAL_COLUMNS = {
    "topic": ("qid", "query_id", "topic_id", "topic"),
    "document": ("docno", "doc_id", "pid", "document"),
    "score": ("score",),
    "rank": ("rank",),
    "name": ("name", "run", "run_tag", "system", "tag"),
}


class PlacedRow(NamedTuple):
    """A document that a run returns, with its place in the file; `run_tag` where its line names the run."""

    topic_id: str
    doc_id: str
    score: float
    line: int
    column: int
    run_tag: str = ""
    sheet: str = ""


@dataclass(frozen=True)
class RunFile:
    """A file of a run as its rows are read: what it is called in messages, and what is said of it."""

    source: Source
    name: str
    limits: Limits = RUN_LIMITS
    encoding: str = ""
    faults: Faults | None = None


Rows = Callable[[RunFile], Iterator[PlacedRow]]


def read_ranked(rows: Rows, file: RunFile, run_tag: str = "") -> RunColumns:
    """Return the run whose rows the file has: by that tag, or by the one that its lines name.

    A pair twice is an error, which a second pass over the file finds; so are several names, unless a tag is given. A
    stream must be seekable.
    """
    start = None if isinstance(file.source, str | os.PathLike) else file.source.tell()
    topics, documents, scores = list[str](), list[str](), array("d")
    known: dict[str, str] = {}  # one string a topic, not one a row
    tags: set[str] = set()
    for row in rows(file):
        topics.append(known.setdefault(row.topic_id, row.topic_id))
        documents.append(row.doc_id)
        scores.append(row.score)
        tags.add(row.run_tag)
    pair_hashes = hash_pairs(topics, documents)
    is_one = len(tags) == 1 or bool(run_tag and tags)
    if not is_one or len(np.unique(pair_hashes)) != len(pair_hashes):
        if start is not None:
            file.source.seek(start)  # type: ignore[union-attr]  # a path has no start
        find_row_faults(rows, file, run_tag)
        raise TrecFormatError(file.name, 1, 1, "two pairs have the same 64-bit hash; rename one document")
    values = np.frombuffer(scores, dtype=np.float64)
    ids = pl.Series("doc_id", documents, dtype=pl.String)
    order, topic_ids, offsets = rank_order(topics, np.arange(len(topics)), ids, values)
    return RunColumns(
        run_tag or tags.pop(), topic_ids, offsets, ids.gather(order), values[order], pair_hashes[order]
    )


def find_row_faults(rows: Rows, file: RunFile, run_tag: str = "") -> None:
    """Add to the file's faults all that is wrong in it: a pair twice and a second name too, or no rows at all.

    Where the file has no faults to add to, the first is raised.
    """
    places: dict[tuple[str, str], str] = {}
    tag, noting, n_before = run_tag, Noting(file.faults), len(file.faults or ())
    with NotingAll(file.faults):
        for row in rows(file):
            with noting:
                pair = row.topic_id, row.doc_id
                if pair in places:
                    reason = f"document {pair[1]} of topic {pair[0]} occurs twice (first at {places[pair]})"
                    raise TrecFormatError(file.name, row.line, row.column, reason, row.sheet)
                places[pair] = place_name(row.line, row.column, row.sheet)
                tag = tag or row.run_tag
                if not run_tag and row.run_tag != tag:
                    reason = f"one run a file: {row.run_tag[:80]!r} after {tag[:80]!r}"
                    raise TrecFormatError(file.name, row.line, row.column, reason, row.sheet)
        if not places and len(file.faults or ()) == n_before:
            raise TrecFormatError(file.name, 1, 1, "no lines in the run")


def read_msmarco(file: RunFile, run_tag: str = "") -> RunColumns:
    """Return the run of ``topic document rank``, by numpy where all is right, or else row by row."""
    start = None if isinstance(file.source, str | os.PathLike) else file.source.tell()
    run = read_fast(file.source, file.limits, file.encoding, run_tag, MSMARCO)
    if run is not None and not np.delete(np.diff(run.scores) == 0, run.offsets[1:-1] - 1).any():
        return run  # no rank is there twice in a topic
    if start is not None:
        file.source.seek(start)  # type: ignore[union-attr]  # a path has no start
    return read_ranked(msmarco_rows, file, run_tag)


def msmarco_rows(file: RunFile) -> Iterator[PlacedRow]:
    """Return the rows of ``topic document rank``, ranks from 0 or 1; the score is the negative rank.

    A rank twice in a topic is an error.

    >>> import io
    >>> file = RunFile(io.BytesIO(b"7 a 1\\n7 b 2\\n"), "example")
    >>> read_ranked(msmarco_rows, file, "mine").doc_ids.to_list()
    ['a', 'b']
    """
    ranks: dict[str, dict[int, int]] = {}
    noting = Noting(file.faults)
    lines = read_fields(file.source, file.name, 3, MSMARCO_LAYOUT, file.limits, file.faults, file.encoding)
    for fields in lines:
        with noting:
            topic_id, doc_id = fields.id(0, "topic id"), fields.id(1, "document id")
            rank = _rank(fields)
            before = ranks.setdefault(topic_id, {}).setdefault(rank, fields.number)
            if before != fields.number:
                fields.fail(2, f"rank {rank} of topic {topic_id} occurs twice (first on line {before})")
            yield PlacedRow(topic_id, doc_id, -float(rank), fields.number, fields.column(1))


def _rank(fields: Fields) -> int:
    value = fields.values[2]
    if not INTEGER.fullmatch(value) or int(value) < 0:
        fields.fail(2, f"rank must be a whole number from 0, not {value[:40]!r}")
    return int(value)


def table_rows(file: RunFile) -> Iterator[PlacedRow]:
    """Return the rows of a table with a header such as PyTerrier's ``qid,docno,rank,score``, and ``name``.

    Its score counts, or where it has none its rank. Other columns are passed over; two of one meaning are an error.
    """
    options, noting = FileOptions(encoding=file.encoding), Noting(file.faults)
    titles: dict[str, str] | None = None
    rows = open_rows(
        file.source, file.name, options, limits=file.limits, max_cell=100_000, faults=file.faults
    )
    for row in rows:
        if titles is None:
            titles = _titles(row)
        with noting:
            yield _table_row(row, titles)


def _titles(row: Row) -> dict[str, str]:
    """Return the column of each field."""
    titles = {
        field: title
        for field, usual in USUAL_COLUMNS.items()
        if (title := row.only_column(usual)) is not None
    }
    for field in ("topic", "document"):
        if field not in titles:
            row.lacks(USUAL_COLUMNS[field])
    if "score" not in titles and "rank" not in titles:
        row.lacks(("score", "rank"))
    return titles


def _table_row(row: Row, titles: dict[str, str]) -> PlacedRow:
    ids = [_cell_id(row, titles[field], f"{field} id") for field in ("topic", "document")]
    title = titles.get("score") or titles["rank"]
    value = row.cells[title].strip()
    if not is_finite_number(value):
        row.fail(title, f"{title} must be a finite number, not {value[:40]!r}")
    score = float(value) if "score" in titles else -float(value)
    tag = _cell_id(row, titles["name"], "name of the run") if "name" in titles else ""
    return PlacedRow(ids[0], ids[1], score, row.line, row.column(titles["document"]), tag, row.sheet)


def _cell_id(row: Row, title: str, what: str) -> str:
    try:
        return check_id(row.cells[title].strip(), what, row.name, row.line, 1)
    except TrecFormatError as error:
        row.fail(title, error.reason)
