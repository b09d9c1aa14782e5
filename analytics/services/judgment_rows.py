"""All judgments of a campaign as tables, in the order of topic, document and assessor; and which of them count.

They come in parts, never parting those of an item, and each reading is one statement, so one snapshot.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from numpy.typing import NDArray
from psycopg import sql

from analytics.releases.pseudonyms import pseudonym
from judging.kinds import ITEM_COLUMNS
from judging.models import Adjudication, Campaign, Slot

ROWS_AT_ONCE = 5000
BYTES_AT_ONCE = 2 << 20
IN_QRELS = [Slot.Purpose.JUDGE.value, Slot.Purpose.AUDIT.value, Slot.Purpose.SILVER.value]
SURPLUS = "surplus"  # kept, but it fills no slot

# Everything of a row but what others say of it; ids hold no white space (a database constraint).
SELECT = """
SELECT t.topic_id, d.doc_id, p.name AS assessor, p.tier, p.kind, coalesce(s.purpose, 'surplus') AS purpose,
       j.sequence, j.grade, nullif(j.obstacle, '') AS obstacle,
       round(j.active_milliseconds / 1000.0, 1)::float8 AS active_seconds,
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
"""
COLUMNS: dict[str, Any] = {
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


@dataclass(frozen=True)
class NamedAssessor:
    """An assessor under the name that a file gives them."""

    key: int
    name: str
    tier: str
    kind: str


def copied_judgments(campaign: Campaign, assessors: Iterable[NamedAssessor]) -> Iterator[pl.DataFrame]:
    """Yield the rows as fast as the server sends them; until the end, the connection serves nothing else."""
    parts = _copied_texts(_query(campaign, assessors))
    return _whole_items(pl.read_csv(text, has_header=False, schema=COLUMNS) for text in parts)


def read_judgments(campaign: Campaign, assessors: Iterable[NamedAssessor]) -> Iterator[pl.DataFrame]:
    """Yield the rows through a cursor on the server, which waits for whoever reads slowly.

    A pooler that lends the connection away between two pieces would lose the cursor; a COPY is one statement.
    """
    if connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        return copied_judgments(campaign, assessors)
    return _whole_items(_fetch(_query(campaign, assessors)))


def countable(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which rows count: an assessor's newest of an item, where it fills a slot and was no gold check."""
    newest = is_last_of_assessor(rows, rows["purpose"] != SURPLUS)
    return np.asarray(newest & rows["purpose"].is_in(IN_QRELS).to_numpy())


def is_last_of_assessor(rows: pl.DataFrame, among: pl.Series) -> NDArray[np.bool_]:
    """Return which rows are an assessor's newest of an item, among some of them; rows of an assessor follow another.

    >>> table = pl.DataFrame({"topic_id": ["t"] * 3, "doc_id": ["d"] * 3, "assessor": ["a", "a", "b"]})
    >>> is_last_of_assessor(table, pl.Series([True, True, False])).tolist()
    [False, True, False]
    """
    chosen = np.flatnonzero(among.to_numpy())
    own = rows.select(*ITEM_COLUMNS, "assessor")[chosen]
    changes = own.select(pl.all().ne_missing(pl.all().shift(-1))).select(pl.any_horizontal(pl.all()))
    last = np.zeros(rows.height, dtype=bool)
    last[chosen[changes.to_series().to_numpy()]] = True
    return last


def starts_of_items(rows: pl.DataFrame) -> pl.Series:
    """Return which rows are the first of their item."""
    changes = rows.select(ITEM_COLUMNS).select(pl.any_horizontal(pl.all().ne_missing(pl.all().shift(1))))
    return changes.to_series()


def adjudicated_grades(campaign: Campaign) -> pl.DataFrame:
    """Return topic_id, doc_id and adjudicated_grade of every item that a manager decided: the newest word counts.

    What a manager lets stand, or has taken back, is as if nobody had decided.
    """
    newest = (
        Adjudication.objects.newest()
        .filter(item__campaign=campaign, verdict=Adjudication.Verdict.DECIDED)
        .values_list("item__topic__topic_id", "item__document__doc_id", "grade")
    )
    columns = {"topic_id": pl.String, "doc_id": pl.String, "adjudicated_grade": pl.Int16}
    return pl.DataFrame(list(newest), schema=columns, orient="row")


def named_assessors(campaign: Campaign, key: str) -> list[NamedAssessor]:
    """Return the campaign's assessors by the pseudonyms that the key gives them, in that order."""
    rows = campaign.assessors.values_list("pk", "tier", "kind")
    assessors = (NamedAssessor(pk, pseudonym(key, pk), tier, kind) for pk, tier, kind in rows)
    return sorted(assessors, key=lambda one: one.name)


# -- reading ----------------------------------------------------------------------------------------------------


def _query(campaign: Campaign, assessors: Iterable[NamedAssessor]) -> sql.Composed:
    rows = list(assessors)
    values = {
        "campaign": campaign.pk,
        "keys": [one.key for one in rows],
        "names": [one.name for one in rows],
        "tiers": [one.tier for one in rows],
        "kinds": [one.kind for one in rows],
    }
    return sql.SQL(SELECT).format(**{name: sql.Literal(value) for name, value in values.items()})


def _copied_texts(query: sql.Composed) -> Iterator[bytes]:
    """Yield whole rows as CSV, some megabytes at a time."""
    connection.ensure_connection()
    with connection.cursor() as cursor:
        parts: list[bytes] = []
        size = 0
        with cursor.copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)) as copy:
            for row in copy:  # one message of the protocol a row
                parts.append(bytes(row))
                size += len(row)
                if size >= BYTES_AT_ONCE:
                    yield b"".join(parts)
                    parts, size = [], 0
        if parts:
            yield b"".join(parts)


def _fetch(query: sql.Composed) -> Iterator[pl.DataFrame]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _whole_items(parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the rows again, cut between items."""
    rest: pl.DataFrame | None = None
    for part in parts:
        rows = part if rest is None else pl.concat([rest, part])
        last = rows.select(ITEM_COLUMNS).row(-1)
        own = (rows["topic_id"] == last[0]) & (rows["doc_id"] == last[1])
        rest = rows.filter(own)
        if rest.height < rows.height:
            yield rows.filter(~own)
    if rest is not None:
        yield rest
