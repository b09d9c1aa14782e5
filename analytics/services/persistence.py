"""Estimates into the database by COPY: no object a row, and the table's constraints and triggers on."""

import json
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl
from django.db import connection

from analytics.frames import CampaignArrays, Floats
from analytics.models import Computation, Estimate
from analytics.numbers.columns import EstimateColumns

# An empty text is no NULL; no text of ours is this one.
NULL = "\\N"
NUMBERS = (
    "value", "standard_error", "low", "high", "p_value", "degrees_of_freedom", "topics_standard_error", "topics_low",
    "topics_high", "topics_p_value", "topics_degrees_of_freedom", "always_low", "always_high", "unbounded_value",
    "unbounded_low", "unbounded_high", "range_low", "range_high", "judged_share", "gold_share", "outside_low",
    "outside_high",
)  # fmt: skip


def store_estimates(
    computation: Computation, arrays: CampaignArrays, tables: Iterable[EstimateColumns]
) -> int:
    """Store the rows of the tables; return how many. The database refuses all of them if one is against its rules."""
    keys = np.array([run.pk for run in arrays.runs], dtype=np.int64)
    n = 0
    for table in tables:
        rows = _rows(computation, keys, table)
        names = ", ".join(f'"{name}"' for name in rows.columns)
        sql = f"COPY {Estimate._meta.db_table} ({names}) FROM STDIN (FORMAT csv, NULL '{NULL}')"
        with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(sql) as copy:
            copy.write(rows.write_csv(include_header=False, null_value=NULL))
        n += rows.height
    return n


def _rows(computation: Computation, keys: np.ndarray, table: EstimateColumns) -> pl.DataFrame:
    second = pl.Series(np.where(table.run_b >= 0, keys[table.run_b], -1))
    unknown = np.full(table.run.size, np.nan)
    return pl.DataFrame(
        {
            "computation_id": pl.repeat(computation.pk, table.run.size, eager=True, dtype=pl.Int64),
            "run_id": keys[table.run],
            "run_b_id": second.replace(-1, None),
            "measure": pl.repeat(table.measure, table.run.size, eager=True),
            "method": pl.repeat(str(table.method), table.run.size, eager=True),
            **{name: _nullable(table.numbers.get(name, unknown)) for name in NUMBERS},
            "topics_refusal": pl.Series(table.topics_refusal, dtype=pl.String),
            "topic_values": _arrays(table.topic_values),
            "components": components(table.components, table.run.size),
            "n": table.n,
            "n_positive": _nullable(table.numbers.get("n_positive", unknown)).cast(pl.Int64),
            "sources": _sources(table.sources),
            "refusal": pl.Series(table.refusal, dtype=pl.String),
            "warning": pl.Series(table.warning, dtype=pl.String),
        }
    )


def _nullable(column: Floats) -> pl.Series:
    return pl.Series(np.asarray(column, dtype=np.float64)).fill_nan(None)


def components(parts: Mapping[str, Floats], n_rows: int) -> pl.Series:
    """Return of every row the JSON of its parts by name, without those that it has not.

    >>> components({"drawing": np.array([0.5, np.nan]), "gold": np.array([2.0, np.nan])}, 2).to_list()
    ['{"drawing": 0.5, "gold": 2.0}', '{}']
    """
    if not parts:
        return pl.repeat("{}", n_rows, eager=True)
    texts = pl.DataFrame({name: _nullable(part) for name, part in parts.items()})
    pairs = [pl.lit(f"{json.dumps(name)}: ") + pl.col(name).cast(pl.String) for name in parts]
    joined = texts.select(pl.concat_str(pairs, separator=", ", ignore_nulls=True)).to_series()
    return pl.select(pl.lit("{") + joined + pl.lit("}")).to_series()


def _arrays(rows: list[list[float] | None]) -> pl.Series:
    """Return every row's numbers as PostgreSQL reads an array; NULL stays NULL.

    >>> _arrays([[0.5, 1e-20], None]).to_list()
    ['{0.5,1e-20}', None]
    """
    return pl.Series(
        [None if row is None else f"{{{','.join(map(repr, row))}}}" for row in rows], dtype=pl.String
    )


def _sources(sources: list[tuple[str, ...]]) -> pl.Series:
    """Return the JSON of every row's sources; there are few different ones."""
    known = {names: json.dumps(list(names)) for names in set(sources)}
    return pl.Series([known[names] for names in sources], dtype=pl.String)
