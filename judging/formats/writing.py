"""Write columns as files of any format of the table that goes out."""

import errno
import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from judging.formats.kinds import RUNS, Format
from judging.formats.table import format_of
from judging.kinds import ITEM_COLUMNS

# What a file of a format must be told beside topic and document, where that is not grade or score.
NEEDED = {
    "run": ("score", "rank"),
    "msmarco": ("rank",),
    "json_run": ("score",),
    "pyterrier": ("score", "rank"),
    "qrels_jg": ("grade", "assessor"),
    "crowd": ("grade", "assessor"),
    "umbrela": ("grade", "assessor"),
    "prels": ("grade", "probability"),
    "stratified": ("grade", "stratum"),
}
NAMES = {"probability": "inclusion_probability"}  # of columns, as the writers of tables call them


def write(
    columns: Mapping[str, Any] | pl.DataFrame,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    format: str,  # noqa: A002 (the word of those who call it)
    name: str = "run",
) -> None:
    """Write columns, as the readers give them, to a file or a stream; a file appears whole or not at all.

    Parameters
    ----------
    columns : mapping or frame
        topic_id, doc_id and what the format needs: grade, assessor, probability, stratum, judge, truth; score, rank.
    target : path or binary stream
        A path that ends with .gz is compressed.
    format : str
        A key of the table.
    name : str
        The run's name, where the format has one.

    Raises
    ------
    ValueError
        A column is missing, or holds what a reader of the format could not read back; nothing is written.
    FileNotFoundError
        The folder of the target is not there.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> write({"topic_id": ["301"], "doc_id": ["a"], "grade": [1]}, stream, format="qrels")
    >>> stream.getvalue()
    b'301 0 a 1\\n'
    """
    form = format_of(format)
    if form.write is None:
        raise ValueError(f"the format {format} only comes in: it is not written")
    frame = _frame(columns, form, name)
    if not isinstance(target, str | os.PathLike):
        form.write(frame, target)
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(draft, "wb") as stream:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
                    form.write(frame, packed)  # type: ignore[arg-type]  # it takes bytes as any stream does
            else:
                form.write(frame, stream)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _frame(columns: Mapping[str, Any] | pl.DataFrame, form: Format, name: str) -> pl.DataFrame:
    """Return the columns as the writers of tables take them; a ValueError names what is missing."""
    needed = NEEDED.get(form.key, ("score",) if form.holds == RUNS else ("grade",))
    if form.key == "pairs" and "judge" in columns:
        needed = ("judge", "truth")
    for column in (*ITEM_COLUMNS, *needed):
        if column not in columns:
            raise ValueError(f"{form.label} needs the column {column}, which is missing")
    names = columns.columns if isinstance(columns, pl.DataFrame) else list(columns)
    frame = pl.DataFrame({NAMES.get(column, column): columns[column] for column in names})
    frame = frame.with_columns(pl.col(ITEM_COLUMNS).cast(pl.String))
    return frame.with_columns(run_tag=pl.lit(name)) if form.holds == RUNS else frame
