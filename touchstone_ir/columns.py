"""Tables from whatever holds them: Polars, pandas, Arrow, dicts of columns, dicts of dicts, records of other tools.

Other tools call the same column by other names; here each has one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

# The names under which other tools have a column; the first is ours.
NAMES: dict[str, tuple[str, ...]] = {
    "topic": ("topic", "topic_id", "qid", "query_id", "query-id", "q_id"),
    "doc": ("doc", "doc_id", "docno", "docid", "pid", "corpus-id", "corpus_id", "document"),
    "grade": ("grade", "label", "relevance", "rel"),
    "run": ("run", "run_id", "system", "tag"),
    "rank": ("rank",),
    "score": ("score",),
    "assessor": ("assessor", "assessor_id", "worker", "worker_id"),
    "probability": ("probability", "inclusion_probability", "pi"),
    "batch": ("batch",),
    "stratum": ("stratum",),
    "judge": ("judge",),
    "truth": ("truth",),
    "title": ("title", "query", "text"),
    "description": ("description", "desc"),
    "narrative": ("narrative", "narr"),
}
TYPES: dict[str, Any] = {
    "topic": pl.String,
    "doc": pl.String,
    "run": pl.String,
    "assessor": pl.String,
    "grade": pl.Int64,
    "judge": pl.Int64,
    "truth": pl.Int64,
    "rank": pl.Int64,
    "batch": pl.Int64,
    "score": pl.Float64,
    "probability": pl.Float64,
}


class InputRefused(ValueError):
    """What was given cannot be used, for a reason that names what is wrong with it; `about`: the pair, if it is one."""

    about: Any = None  # touchstone_ir.fault_places.Misfit


def table_of(source: Any, *, value: str) -> pl.DataFrame:
    """Return what any source but a file holds, its columns by our names.

    Parameters
    ----------
    source : polars or pandas DataFrame, anything with ``__arrow_c_stream__``, dict, or records
        A dict has columns by name, or, as pytrec_eval has them, topics, each with a dict of documents. Records have
        named fields, as the judgments and scored documents of ir_measures.
    value : str
        What the numbers of a dict of dicts are: "grade" or "score".

    Raises
    ------
    InputRefused
        A column that comes twice under two names, a value of the wrong type, or a source that holds no table.

    Examples
    --------
    >>> table_of({"q1": {"d1": 2}}, value="grade").to_dicts()
    [{'topic': 'q1', 'doc': 'd1', 'grade': 2}]
    >>> table_of({"qid": ["1"], "docno": ["a"], "label": [1]}, value="grade").columns
    ['topic', 'doc', 'grade']
    """
    if isinstance(source, pl.LazyFrame):
        return with_our_names(source.collect())
    if isinstance(source, pl.DataFrame):
        return with_our_names(source)
    if type(source).__module__.partition(".")[0] == "pandas":
        # Neither way of Polars reads pandas' text columns without pyarrow.
        return with_our_names(pl.DataFrame({str(name): source[name].to_list() for name in source.columns}))
    if hasattr(source, "__arrow_c_stream__"):
        return with_our_names(pl.DataFrame(source))
    if isinstance(source, Mapping):
        return _of_mapping(source, value)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes):
        return _of_records(list(source))
    raise InputRefused(
        f"{type(source).__name__} holds no table: give a path, a data frame, a dict or records"
    )


def _of_mapping(source: Mapping[Any, Any], value: str) -> pl.DataFrame:
    first = next(iter(source.values()), None)
    if not isinstance(first, Mapping):
        return with_our_names(pl.DataFrame({str(name): list(column) for name, column in source.items()}))
    topics = [str(topic) for topic, documents in source.items() for _ in documents]
    docs = [str(doc) for documents in source.values() for doc in documents]
    numbers = [number for documents in source.values() for number in documents.values()]
    return with_our_names(pl.DataFrame({"topic": topics, "doc": docs, value: numbers}, strict=False))


def _of_records(records: Sequence[Any]) -> pl.DataFrame:
    if not records:
        raise InputRefused("there are no records: nothing was given")
    fields = getattr(records[0], "_fields", None)
    if fields is not None:
        columns = {name: [getattr(one, name) for one in records] for name in fields}
    elif isinstance(records[0], Mapping):
        columns = {str(name): [one.get(name) for one in records] for name in records[0]}
    else:
        raise InputRefused(f"a record of type {type(records[0]).__name__} has no named fields")
    return with_our_names(pl.DataFrame(columns))


def with_our_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that we know, by our names and with our types; others are left out.

    Raises
    ------
    InputRefused
        Two columns that mean the same, or a value that is no number where one belongs.
    """
    found: dict[str, str] = {}
    for name in frame.columns:
        ours = _our_name(name)
        if ours is None:
            continue
        if ours in found:
            raise InputRefused(f"the columns {found[ours]} and {name} both mean {ours}: leave one out")
        found[ours] = name
    kept = []
    for ours, name in found.items():
        column = frame[name].alias(ours)
        wanted = TYPES.get(ours)
        if wanted is not None and column.dtype != wanted:
            column = _cast(column, wanted, name)
        kept.append(column)
    return pl.DataFrame(kept)


def _our_name(name: str) -> str | None:
    plain = name.strip().lower()
    return next((ours for ours, names in NAMES.items() if plain in names), None)


def _cast(column: pl.Series, wanted: Any, name: str) -> pl.Series:
    """Return the column with the wanted type; InputRefused names the first value that has none."""
    if wanted == pl.String:
        return column.cast(pl.String)
    numbers = column.cast(pl.Float64, strict=False)
    if column.dtype == pl.String:
        empty = column.str.strip_chars() == ""
        wrong = column.filter(numbers.is_null() & column.is_not_null() & ~empty.fill_null(value=True))
    else:
        wrong = column.filter(numbers.is_null() & column.is_not_null())
    if wrong.len():
        raise InputRefused(f"{name} must be numbers, got {wrong[0]!r}")
    if wanted == pl.Int64:
        numbers = numbers.fill_nan(None)  # as pandas has a missing whole number
        parts = numbers.filter(numbers.is_not_null() & (numbers != numbers.round()))
        if parts.len():
            raise InputRefused(f"{name} must be whole numbers, got {parts[0]}")
    return numbers.cast(wanted)


def require(frame: pl.DataFrame, names: Sequence[str], what: str) -> pl.DataFrame:
    """Return the frame; InputRefused where a column is missing, or a value of topic or document."""
    for name in names:
        if name not in frame.columns:
            others = ", ".join(NAMES[name][1:])
            known = f" (or {others})" if others else ""
            raise InputRefused(f"{what}: there is no column {name}{known}")
    for name in ("topic", "doc"):
        if name in names and (frame[name].null_count() or (frame[name] == "").any()):
            raise InputRefused(f"{what}: a row has no {name}")
    return frame
