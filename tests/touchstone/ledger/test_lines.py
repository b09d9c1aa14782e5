"""The line of a row is the one that `json.dumps` makes of its values."""

import json
import struct
from datetime import UTC, datetime

import pytest
from django.db import connection

from touchstone.ledger.rows import TABLES, columns_of, line_sql, lines

TYPES = {
    "a": "bigint", "b": "boolean", "c": "text", "d": "uuid", "e": "timestamptz", "f": "numeric", "g": "float8",
    "h": "jsonb", "i": "bytea", "j": "smallint", "k": "varchar(9)", "l": "integer",
}  # fmt: skip
HARD = "ä\"\\\n\r\t\b\f\x01\x1f\x7f/<&>\u2028\U0001f600'%{}"
PI = 3.141592653589793


def spelled(value):
    """What the documentation says of a value of Python."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, bytes):
        return value.hex()
    return value


ROWS = [
    [1, True, HARD, "00000000-0000-4000-8000-00000000abcd", datetime(2026, 11, 22, 14, 0, 0, 5, UTC), "0.10", PI,
     '{"b": [1, null], "": "\\u00e4\\""}', b"\x00\xff", -3, HARD[:9], 2**31 - 1],
    [-(2**63), False, "", "ffffffff-ffff-4fff-8fff-ffffffffffff", datetime(1, 1, 1, tzinfo=UTC), "-1E+3", "-0", "[]",
     b"",
     0, "", 0],
    [None] * 12,
]  # fmt: skip


@pytest.fixture
def table(db):
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE touchstone_kinds (id bigint PRIMARY KEY, {columns})")
        for key, row in enumerate(ROWS, 1):
            cursor.execute(
                f"INSERT INTO touchstone_kinds VALUES ({', '.join(['%s'] * 13)})",  # noqa: S608
                [key, *row],
            )
        # Settings of a session that change how PostgreSQL writes values.
        cursor.execute("SET LOCAL TimeZone = 'Asia/Kathmandu'")
        cursor.execute("SET LOCAL DateStyle = 'German'")
        cursor.execute("SET LOCAL extra_float_digits = -10")
        cursor.execute("SET LOCAL bytea_output = 'escape'")
    return "touchstone_kinds"


def lines_of(table):
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {line_sql(table, columns_of(table))} FROM "{table}" r ORDER BY id')  # noqa: S608
        return [line for (line,) in cursor.fetchall()]


def test_lines_are_those_of_json_for_every_kind_of_value(table):
    wanted = []
    for key, row in enumerate(ROWS, 1):
        values = {name: spelled(value) for name, value in zip(TYPES, row, strict=True)}
        if key == 1:  # PostgreSQL's text of jsonb: keys by their length, a blank after colon and comma
            values["h"] = '{"": "ä\\"", "b": [1, null]}'
        if key == 2:
            values["f"], values["g"] = (
                "-1000",
                spelled(-0.0),
            )  # PostgreSQL writes the number that it was given
            values["e"] = "0001-01-01T00:00:00.000000Z"
        one = json.dumps([table, key, values], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        wanted.append(one)
    assert lines_of(table) == wanted
    assert list(lines(table, list(TYPES), 0, 10)) == list(enumerate(wanted, 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f = 0.1", "f = 0.10"),
        ("g = 'NaN'", "g = 'Infinity'"),
        ("g = 0.1", "g = 0.1::float8 + 1e-17"),
        ("e = 'infinity'", "e = NULL"),
        ("e = 'infinity'", "e = '-infinity'"),
        ("e = '0044-01-01 BC'", "e = '0044-01-01'"),
        ("c = ''", "c = NULL"),
        ("h = 'null'", "h = NULL"),
        ("h = '1'", "h = '1.0'"),
        ("h = '\"1\"'", "h = '1'"),
    ],
)
def test_values_that_differ_have_lines_that_differ(table, one, other):
    found = []
    for change in (one, other, one):
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE touchstone_kinds SET {change} WHERE id = 1")  # noqa: S608
        found.append(lines_of(table)[0])
    assert found[0] == found[2]
    assert found[0] != found[1]


def test_columns_that_are_not_there_or_have_no_spelling_are_refused(table):
    with pytest.raises(KeyError, match="nowhere"):
        list(lines(table, ["a", "nowhere"], 0, 10))
    with pytest.raises(KeyError):
        list(lines(table, [], 0, 10))
    with pytest.raises(KeyError, match="point"):
        line_sql(table, {"a": "point"})


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_a_sealed_table_has_a_spelling(table):
    assert lines_of(table) == []
