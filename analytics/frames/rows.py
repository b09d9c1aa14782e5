"""Rows of the database as arrays, without Python work for each row: one value of packed bytes for all rows together.

COPY sends a message a row, each of which passes through Python: a second for a million. Aggregated by the server
(`string_agg` of what the binary protocol sends) they are one value, which NumPy reads as it is. A value of PostgreSQL
has at most a gigabyte: 24 million judgments of one campaign.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from numpy.typing import NDArray
from psycopg import ClientCursor, Cursor

# kind of a column: the function that makes its bytes, and the fields that NumPy finds in them
KINDS = {
    "flag": ("boolsend({})", (("", "?"),)),
    "i2": ("int2send(({})::int2)", (("", ">i2"),)),
    "i8": ("int8send(({})::int8)", (("", ">i8"),)),
    "f8": ("float8send({})", (("", ">f8"),)),
    "time": ("timestamptz_send({})", (("", ">i8"),)),  # microseconds since 2000
    "uuid": ("uuid_send({})", (("_high", ">u8"), ("_low", ">u8"))),
}
SECONDS_TO_2000 = 946_684_800.0


def fetch_rows(columns: Mapping[str, tuple[str, str]], source: str, keys: Mapping[str, Any]) -> NDArray[Any]:
    """Return the rows of one statement, hence of one snapshot, as a structured array, in no particular order.

    `columns` maps a name to its kind and its SQL; `source` is what follows FROM, WHERE included. A uuid gives two
    fields, name_high and name_low.
    """
    fields = [
        (name + suffix, kind) for name, (known, _) in columns.items() for suffix, kind in KINDS[known][1]
    ]
    row = " || ".join(KINDS[kind][0].format(sql) for kind, sql in columns.values())
    sql = f"SELECT string_agg({row}, ''::bytea) FROM {source}"  # noqa: S608 (all of it is written in this package)
    value = fetch_row(sql, keys)[0]
    return np.frombuffer(value or b"", dtype=np.dtype(fields))


def lines(uuid: str, text: str, source: str, keys: Mapping[str, Any]) -> tuple[NDArray[Any], bytes]:
    """Return the uuids of rows, ascending, as fields high and low, and a line of text of each, in the same order."""
    sql = f"""SELECT string_agg(uuid_send({uuid}), ''::bytea ORDER BY {uuid}),
                     string_agg({text}, E'\\n' ORDER BY {uuid}) FROM {source}"""  # noqa: S608 (as above)
    row = fetch_row(sql, keys)
    uuids = np.frombuffer(row[0] or b"", dtype=np.dtype([("high", ">u8"), ("low", ">u8")]))
    return uuids, (row[1] or "").encode()


def text_table(text: bytes, schema: Mapping[str, Any]) -> pl.DataFrame:
    """Return lines of fields, separated by tabs, as a table. Ids hold no white space (a database constraint)."""
    if not text:
        return pl.DataFrame(schema=dict(schema))
    return pl.read_csv(text, has_header=False, separator="\t", quote_char=None, schema=dict(schema))


def fetch_row(sql: str, keys: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the one row of a statement.

    The keys are written into it: prepared, it would be planned once for any of them, large or small.
    """
    connection.ensure_connection()
    with ClientCursor(connection.connection) as binding, Cursor(connection.connection) as cursor:
        cursor.execute(binding.mogrify(sql, keys).encode(), binary=True, prepare=False)
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise ValueError("the statement has no row")
    return row


def seconds(microseconds: NDArray[Any]) -> NDArray[np.float64]:
    """Return seconds since 1970 of times as they are packed."""
    return np.asarray(microseconds.astype(np.float64) / 1e6 + SECONDS_TO_2000)
