"""Rows as the lines of a hash chain: `["table",id,{columns}]`, built by PostgreSQL.

A line is what `json.dumps(..., sort_keys=True, separators=(",", ":"), ensure_ascii=False)` makes of table, id and the
other columns. JSON has fewer types than PostgreSQL, so each type has one spelling, whatever the settings of the
session: whole numbers, truth values, NULL and text are JSON's. A time is a string in UTC with microseconds,
"2026-11-22T14:00:00.000000Z" (outside the years 1 to 9999 the seconds since 1970); a uuid is a string in small letters;
a decimal a string with all its digits ("0.10" is not "0.1"); a float a string of its eight bytes in hexadecimal (IEEE
754, big-endian); bytes a string in hexadecimal; jsonb a string with PostgreSQL's text of it. The text of a document
stands in its line as its SHA-256 in hexadecimal: it may be long.

Documents, topics and gold answers are rows that follow their versions. Their lines say what they said at first, so that
a correction, which is a row and a line of its own, leaves them as they were.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection

# Every table whose rows are sealed: append-only facts whose ids PostgreSQL gives out. The seals follow them.
TABLES = (
    "judging_judgment",
    "judging_adjudication",
    "judging_machinecall",
    "judging_traininganswer",
    "judging_traininggrant",
    "judging_document",
    "judging_documentversion",
    "judging_topic",
    "judging_topicversion",
    "judging_goldanswer",
    "judging_goldversion",
    "sampling_drawentry",
    "sampling_auditentry",
    "sampling_judginglook",
    "sampling_topiccheck",
    "sampling_topicfinding",
    "touchstone_event",
    "touchstone_erasure",
)


@dataclass(frozen=True)
class VersionsOfTable:
    """A table whose rows follow their versions: where these are, what names a row there, and what a version says."""

    versions: str
    key: str
    content: tuple[str, ...]


VERSIONED = {
    "judging_document": VersionsOfTable("judging_documentversion", "document_id", ("title", "text", "html")),
    "judging_topic": VersionsOfTable(
        "judging_topicversion", "topic_id", ("title", "description", "narrative")
    ),
    "judging_goldanswer": VersionsOfTable("judging_goldversion", "answer_id", ("grade",)),
}
LONG_TEXTS = {
    (table, column)
    for table in ("judging_document", "judging_documentversion")
    for column in ("text", "html")
}
LONG_TEXT = "to_json(encode(sha256(convert_to({0}, 'UTF8')), 'hex'))::text"
AT_ONCE = 10_000  # rows held in memory
TIME = """CASE WHEN {0} >= '0001-01-01 00:00:00+00' AND {0} < '10000-01-01 00:00:00+00'
 THEN to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') ELSE extract(epoch FROM {0})::text END"""
SPELLINGS = {
    "bool": "{0}::text",
    "int2": "{0}::text",
    "int4": "{0}::text",
    "int8": "{0}::text",
    "text": "to_json({0}::text)::text",
    "varchar": "to_json({0}::text)::text",
    "jsonb": "to_json({0}::text)::text",
    "uuid": "to_json({0}::text)::text",
    "numeric": "to_json({0}::text)::text",
    "float8": "to_json(encode(float8send({0}), 'hex'))::text",
    "bytea": "to_json(encode({0}, 'hex'))::text",
    "timestamptz": f"to_json({TIME})::text",
}
COLUMNS = """
SELECT a.attname::text, t.typname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'id'
"""


def columns_of(table: str) -> dict[str, str]:
    """Return the columns of a table but its id, in the order of their names, with their types; {} without a table."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [table])
        return dict(sorted(cursor.fetchall()))


def line_sql(table: str, types: dict[str, str]) -> str:
    """Return the expression that makes the line of a row `r`.

    Raises
    ------
    KeyError
        If a column is of a type that has no spelling.
    """
    parts = [
        f"""'"{name}":' || coalesce({_spelling(table, name, types[name])}, 'null')"""
        for name in sorted(types)
    ]
    return f"""'["{table}",' || r.id::text || ',{{' || {" || ',' || ".join(parts)} || '}}]'"""


def _spelling(table: str, name: str, kind: str) -> str:
    form = LONG_TEXT if (table, name) in LONG_TEXTS else SPELLINGS[kind]
    return form.format(_at_first(table, name))


def _at_first(table: str, name: str) -> str:
    """Return the expression of what the column said before any correction."""
    own, known = f'r."{name}"', VERSIONED.get(table)
    if known is None or name not in (*known.content, "version"):
        return own
    if name == "version":
        return "1"
    first = f'SELECT v."{name}" FROM {known.versions} v WHERE v.{known.key} = r.id AND v.number = 1'  # noqa: S608
    return f"CASE WHEN r.version = 1 THEN {own} ELSE ({first}) END"


def lines(table: str, columns: Sequence[str], after: int, until: int) -> Iterator[tuple[int, str]]:
    """Yield id and line of each row, in the order of their ids, some thousand at a time.

    Raises
    ------
    KeyError
        If the table lacks one of the columns, or none is named.
    """
    if not columns:
        raise KeyError("none")
    known = columns_of(table)
    line = line_sql(table, {name: known[name] for name in columns})
    sql = f'SELECT r.id, {line} FROM "{table}" r WHERE r.id > %s AND r.id <= %s ORDER BY r.id LIMIT {AT_ONCE}'  # noqa: S608
    with connection.cursor() as cursor:
        while True:
            cursor.execute(sql, [after, until])
            found = cursor.fetchall()
            yield from found
            if len(found) < AT_ONCE:
                return
            after = found[-1][0]
