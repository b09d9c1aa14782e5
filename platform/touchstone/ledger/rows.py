"""Rows as the lines of a hash chain: `["table",id,{columns}]`, built by PostgreSQL.

A line is what `json.dumps(..., sort_keys=True, separators=(",", ":"), ensure_ascii=False)` makes of table, id and the
other columns. JSON has fewer types than PostgreSQL, so each type has one spelling, whatever the settings of the
session: whole numbers, truth values, NULL and text are JSON's. A time is a string in UTC with microseconds,
"2026-11-22T14:00:00.000000Z" (outside the years 1 to 9999 the seconds since 1970); a uuid is a string in small letters;
a decimal a string with all its digits ("0.10" is not "0.1"); a float a string of its eight bytes in hexadecimal (IEEE
754, big-endian); bytes a string in hexadecimal; jsonb a string with PostgreSQL's text of it.
"""

from collections.abc import Iterator, Sequence

from django.db import connection

# Every table whose rows are sealed: append-only facts whose ids PostgreSQL gives out. The seals follow them.
TABLES = (
    "judging_judgment",
    "judging_adjudication",
    "judging_machinecall",
    "judging_traininganswer",
    "judging_traininggrant",
    "sampling_drawentry",
    "sampling_auditentry",
    "sampling_judginglook",
    "sampling_topiccheck",
    "sampling_topicfinding",
    "touchstone_event",
    "touchstone_erasure",
)
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
        f"""'"{name}":' || coalesce({SPELLINGS[types[name]].format(f'r."{name}"')}, 'null')"""
        for name in sorted(types)
    ]
    return f"""'["{table}",' || r.id::text || ',{{' || {" || ',' || ".join(parts)} || '}}]'"""


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
