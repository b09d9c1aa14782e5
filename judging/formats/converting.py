"""Convert a file of one format into another; a table of labels beside truth becomes two files."""

import os
from pathlib import Path
from typing import Any

from judging.formats.datasets import is_dataset
from judging.formats.kinds import JUDGMENTS, RUNS, Format
from judging.formats.reading import read_judgment_columns, read_run_columns, recognised_format
from judging.formats.run_names import without_compression
from judging.formats.table import FORMATS, format_of
from judging.formats.writing import write


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    from_format: str | None = None,
    to_format: str | None = None,
    *,
    name: str | None = None,
    requests: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write what the source holds as another format; return the files that were written.

    Parameters
    ----------
    source : path
        A file of runs or judgments, or ``ir_datasets:<id>``.
    target : path
        The new file. A table of labels beside truth becomes two, called like it with ``.labels`` and ``.gold`` before
        the ending; converted to itself it stays one.
    from_format, to_format : str, optional
        Keys of the table; else what the source's beginning and the target's ending tell.
    name : str, optional
        The run's name, as `read_run_columns` takes it.
    requests : path, optional
        What umbrela was asked, as `read_judgment_columns` takes it.

    Raises
    ------
    TrecFormatError, ValueError
        What is wrong with the source, or why it cannot be written so; nothing is written then.
    """
    target = Path(target)
    holds = format_of(from_format).holds if from_format else _holds(source)
    if holds == RUNS and requests is not None:
        raise ValueError(f"{os.fspath(source)} holds runs: requests are for umbrela's judgments")
    if holds == RUNS:
        run_name, columns = read_run_columns(source, format=from_format, name=name)
        write(columns, target, format=_target_format(target, to_format, columns, holds).key, name=run_name)
        return [target]
    if holds != JUDGMENTS:
        raise ValueError(
            f"{os.fspath(source)}:1:1: this holds {holds}: only runs and judgments are converted"
        )
    columns = read_judgment_columns(source, format=from_format, requests=requests)
    form = _target_format(target, to_format, columns, holds)
    if "truth" not in columns or form.key == "pairs":
        write(columns, target, format=form.key)
        return [target]
    parts = {"labels": _labels(columns), "gold": _gold(columns)}
    paths = [_beside(target, part) for part in parts]
    for path, part in zip(paths, parts.values(), strict=True):
        write(part, path, format=form.key)
    return paths


def _holds(source: str | os.PathLike[str]) -> str:
    return JUDGMENTS if is_dataset(source) else recognised_format(source).holds


def _target_format(target: Path, key: str | None, columns: dict[str, Any], holds: str) -> Format:
    """Return the format asked for, or the one whose files end like the target."""
    if key is not None:
        form = format_of(key)
        if form.holds != holds:
            raise ValueError(f"{holds} cannot be written as {key}, which holds {form.holds}")
        return form
    ending = without_compression(target.name)
    found = [
        one
        for one in FORMATS
        if one.holds == holds and one.write is not None and ending.endswith(one.extensions or ("\0",))
    ]
    keys = [one.key for one in found]
    if {"crowd", "gold"} <= set(keys):
        wanted = "crowd" if "assessor" in columns else "gold"
        found = [one for one in found if one.key == wanted]
    if len(found) > 1:  # the longest ending, such as .pairs.csv
        found = sorted(
            found, key=lambda one: -max(len(end) for end in one.extensions if ending.endswith(end))
        )
    if not found:
        known = ", ".join(one.key for one in FORMATS if one.holds == holds and one.write is not None)
        raise ValueError(f"the ending of {target.name} tells no format of {holds}: name one of {known}")
    return found[0]


def _beside(target: Path, part: str) -> Path:
    base = without_compression(target.name)
    stem, dot, ending = base.partition(".")
    return target.with_name(f"{stem}.{part}{dot}{ending}{target.name[len(base) :]}")


def _labels(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the judge's labels of all pairs."""
    return {"topic_id": columns["topic_id"], "doc_id": columns["doc_id"], "grade": columns["judge"]}


def _gold(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the truth of the pairs that somebody looked at, with the probability where the table has it."""
    looked = [index for index, truth in enumerate(columns["truth"]) if truth is not None]
    names = {"topic_id": "topic_id", "doc_id": "doc_id", "grade": "truth"}
    if "probability" in columns:
        names["probability"] = "probability"
    return {name: [columns[column][index] for index in looked] for name, column in names.items()}
