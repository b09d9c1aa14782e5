"""All judgments of a campaign, in the order of topic, document and assessor, streamed into the files of a release."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from numpy.typing import NDArray
from psycopg import sql

from analytics.releases.folder import Folder
from analytics.releases.manifest import LEDGER
from analytics.releases.merkle import MerkleTree
from analytics.releases.tables import JUDGMENTS, is_last_of_assessor, write_json_lines, write_qrels_jg
from judging.models import Campaign, Slot

Ints = NDArray[np.int64]
BYTES_AT_ONCE = 2 << 20
IN_QRELS = [Slot.Purpose.JUDGE.value, Slot.Purpose.AUDIT.value, Slot.Purpose.SILVER.value]
SURPLUS = "surplus"  # kept, but it fills no slot

# Everything of a row but what others say of it; ids hold no white space (a database constraint).
ROWS = """
COPY (
SELECT t.topic_id, d.doc_id, p.name AS assessor, p.tier, p.kind, coalesce(s.purpose, 'surplus') AS purpose,
       j.sequence, j.grade, nullif(j.obstacle, '') AS obstacle,
       round(j.active_milliseconds / 1000.0, 1) AS active_seconds,
       to_char(j.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS date, j.id
  FROM judging_judgment j
  JOIN unnest({keys}::bigint[], {names}::text[], {tiers}::text[], {kinds}::text[]) AS p(id, name, tier, kind)
    ON p.id = j.assessor_id
  JOIN judging_item i ON i.id = j.item_id
  JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
  LEFT JOIN judging_slot s ON s.id = j.slot_id
 WHERE i.campaign_id = {campaign}
 ORDER BY t.topic_id COLLATE "C", d.doc_id COLLATE "C", p.name COLLATE "C", j.sequence
) TO STDOUT (FORMAT csv)
"""
READ: dict[str, Any] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "assessor": pl.String,
    "tier": pl.String,
    "kind": pl.String,
    "purpose": pl.String,
    "sequence": pl.Int16,
    "grade": pl.Int16,
    "obstacle": pl.String,
    "active_seconds": pl.Float64,
    "date": pl.String,
    "id": pl.Int64,
}

GRADES: dict[str, Any] = {"item": pl.Int32, "place": pl.Int32, "grade": pl.Int8, "is_audit": pl.Boolean}


@dataclass(frozen=True)
class Person:
    """An assessor as a release names them."""

    key: int
    name: str
    tier: str
    kind: str


@dataclass(frozen=True)
class Used:
    """What the estimates made of which judgments, by their ids, ascending."""

    labels: Ints
    checks: Ints
    check_grade: Ints  # [check], the grade known beforehand


@dataclass(frozen=True)
class Said:
    """What was streamed, in brief: the items in order, and the grades that count for qrels."""

    items: pl.DataFrame  # topic_id, doc_id
    n_judgments: int
    n_counted: int
    last_id: int
    merkle_root: str
    item: NDArray[np.int32]  # [grade for the qrels], places in items
    assessor: NDArray[np.int32]  # places among the people
    grade: NDArray[np.int8]
    is_audit: NDArray[np.bool_]


def write_judgments(
    campaign: Campaign, people: list[Person], used: Used, folder: Folder, progress: Any = lambda *_: None
) -> Said:
    """Write judgments.jsonl and qrels_jg.txt; memory holds some thousand rows, and a few bytes of every judgment."""
    tree, brief = MerkleTree(), _Brief(people)
    with folder.open(LEDGER) as ledger, folder.open("qrels_jg.txt") as by_assessor:
        for rows in _chunks(campaign, people):
            told = _told(rows, used)
            lines = _json_lines(told.select(list(JUDGMENTS)))
            for line in lines.split(b"\n")[:-1]:
                tree.add(line)
            ledger.write(lines)
            write_qrels_jg(told, by_assessor)
            brief.add(told)
            progress(brief.n)
    return brief.said(tree.root())


class _Brief:
    """What is kept of all judgments."""

    def __init__(self, people: list[Person]) -> None:
        self.n = self.n_counted = self.last_id = self.n_items = 0
        self._place = pl.DataFrame(
            {"assessor": [person.name for person in people], "place": range(len(people))},
            schema={"assessor": pl.String, "place": pl.Int32},
        )
        self._items: list[pl.DataFrame] = [pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String})]
        self._grades: list[pl.DataFrame] = [pl.DataFrame(schema=GRADES)]

    def add(self, told: pl.DataFrame) -> None:
        """Add rows; those of an item come together."""
        pair = told.select("topic_id", "doc_id")
        is_new = pair.select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1)))).to_series()
        rows = told.with_columns(item=(is_new.cum_sum().cast(pl.Int32) + self.n_items - 1))
        graded = rows.filter(pl.col("counted") & (pl.col("purpose") != Slot.Purpose.SILVER.value))
        graded = graded.join(self._place, on="assessor", how="left", maintain_order="left")
        is_audit = (pl.col("purpose") == Slot.Purpose.AUDIT.value).alias("is_audit")
        self._grades.append(graded.select("item", "place", "grade", is_audit).cast(pl.Schema(GRADES)))
        # Copied: a part of a column of texts holds on to all the texts of the column.
        self._items.append(pl.DataFrame(pair.filter(is_new).to_dict(as_series=False), schema=pair.schema))
        self.n, self.n_items = self.n + told.height, self.n_items + self._items[-1].height
        self.n_counted += int(told["counted"].sum())
        self.last_id = max(self.last_id, int(told["id"].max() or 0))  # type: ignore[arg-type]

    def said(self, merkle_root: str) -> Said:
        grades = pl.concat(self._grades)
        columns = [grades[name].to_numpy() for name in GRADES]
        return Said(pl.concat(self._items), self.n, self.n_counted, self.last_id, merkle_root, *columns)


def _told(rows: pl.DataFrame, used: Used) -> pl.DataFrame:
    """Return the rows with what was made of them."""
    ids = rows["id"].to_numpy()
    is_label, _ = _among(ids, used.labels)
    is_check, check = _among(ids, used.checks)
    known = np.zeros(ids.size, dtype=np.int64)
    known[is_check] = used.check_grade[check[is_check]]
    is_newest = (
        is_last_of_assessor(rows, rows["purpose"] != SURPLUS) & rows["purpose"].is_in(IN_QRELS).to_numpy()
    )
    return rows.with_columns(
        counted=pl.Series(is_newest),
        label=pl.Series(is_label),
        check_grade=pl.Series(known, dtype=pl.Int16).set(pl.Series(~is_check), None),
    )


def _among(ids: Ints, known: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Return which ids are among known ones, which ascend, and their places there."""
    if not known.size:
        return np.zeros(ids.size, dtype=bool), np.zeros(ids.size, dtype=np.int64)
    place = np.minimum(np.searchsorted(known, ids), known.size - 1)
    return known[place] == ids, place


def _json_lines(rows: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    write_json_lines(rows, stream)
    return stream.getvalue()


def _chunks(campaign: Campaign, people: list[Person]) -> Iterator[pl.DataFrame]:
    """Yield the rows in parts, never parting those of an item."""
    rest: pl.DataFrame | None = None
    for text in _texts(campaign, people):
        rows = pl.read_csv(text, has_header=False, schema=READ)
        rows = rows if rest is None else pl.concat([rest, rows])
        last = rows.select("topic_id", "doc_id").row(-1)
        own = (rows["topic_id"] == last[0]) & (rows["doc_id"] == last[1])
        rest = rows.filter(own)
        if rest.height < rows.height:
            yield rows.filter(~own)
    if rest is not None:
        yield rest


def _texts(campaign: Campaign, people: list[Person]) -> Iterator[bytes]:
    """Yield the rows as the server sends them, whole rows together."""
    values: Mapping[str, Any] = {
        "campaign": campaign.pk,
        "keys": [person.key for person in people],
        "names": [person.name for person in people],
        "tiers": [person.tier for person in people],
        "kinds": [person.kind for person in people],
    }
    query = sql.SQL(ROWS).format(**{name: sql.Literal(value) for name, value in values.items()})
    connection.ensure_connection()
    with connection.cursor() as cursor:
        parts, size = [], 0
        with cursor.copy(query) as copy:
            for row in copy:  # one message of the protocol a row
                parts.append(bytes(row))
                size += len(row)
                if size >= BYTES_AT_ONCE:
                    yield b"".join(parts)
                    parts, size = [], 0
        if parts:
            yield b"".join(parts)
