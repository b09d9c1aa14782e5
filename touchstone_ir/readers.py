"""Runs, judgments and topics from files of any format of the registry, or from tables in memory."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from touchstone_ir.columns import InputRefused, require, table_of
from touchstone_ir.fault_places import place_of

RUN = ("run", "topic", "doc", "rank", "score")


def read_run(
    *sources: Any,
    format: str | None = None,  # noqa: A002 (the field's word)
    name: str | None = None,
) -> pl.DataFrame:
    """Return runs as a table: run, topic, doc, rank, score.

    Ranks follow from the scores as trec_eval has it: descending as 32-bit numbers, ties by document id descending. A
    source without scores has its own ranks.

    Parameters
    ----------
    sources : paths, data frames, dicts
        Any number of them; what `touchstone_ir.columns.table_of` takes, or a path.
    format : str, optional
        Key of a format of files; by default it is recognised.
    name : str, optional
        Of the run, for one source that holds a single run.

    Raises
    ------
    InputRefused, ValueError
        ``file:line:column: reason`` of a file; a column that is missing or comes twice, a score that is no number, a
        document that comes twice in a topic, a run without a name, two runs of one name.

    Examples
    --------
    >>> read_run({"q1": {"d1": 0.5, "d2": 0.75}}, name="bm25")["doc"].to_list()
    ['d2', 'd1']
    """
    if not sources:
        raise InputRefused("name at least one run")
    if name is not None and len(sources) > 1:
        raise InputRefused(f"name={name!r} is for a single source, got {len(sources)}")
    parts = [_run(source, format, name) for source in sources]
    names = [run for part in parts for run in part["run"].unique(maintain_order=True).to_list()]
    twice = next((run for run in names if names.count(run) > 1), None)
    if twice is not None:
        raise InputRefused(f"two sources hold a run of the name {twice}: read one of them with name=")
    return pl.concat(parts)


def _run(source: Any, file_format: str | None, name: str | None) -> pl.DataFrame:
    if isinstance(source, str | os.PathLike):
        from judging import formats

        found, columns = formats.read_run_columns(source, format=file_format, name=name)
        frame = table_of(dict(columns), value="score").with_columns(run=pl.lit(name or found))
        return _ranked_rows(frame, str(source))
    frame = table_of(source, value="score")
    if name is not None:
        frame = frame.with_columns(run=pl.lit(name))
    if "run" not in frame.columns:
        raise InputRefused("a run has no name: give name=, or a column run")
    return _ranked_rows(frame, "a run")


def _ranked_rows(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Return the rows in the order of their ranks, run by run: so only one run is held twice."""
    require(frame, ("run", "topic", "doc"), what)
    if "score" not in frame.columns and "rank" not in frame.columns:
        raise InputRefused(f"{what}: there is no column score, and none of ranks")
    parts = frame.partition_by("run", maintain_order=True)
    del frame
    if not parts:
        raise InputRefused(f"{what}: there are no rows")
    for place, part in enumerate(parts):
        parts[place] = _one_ranked_run(part, what)
    return pl.concat(parts, rechunk=False)


def _one_ranked_run(frame: pl.DataFrame, what: str) -> pl.DataFrame:
    """Return a run in the order of its ranks, which follow from the scores where there are any."""
    if "score" in frame.columns:
        wrong = frame.filter(pl.col("score").is_null() | ~pl.col("score").is_finite())
        if wrong.height:
            row = wrong.row(0, named=True)
            raise InputRefused(
                f"{what}: the score of document {row['doc']} in topic {row['topic']} is no finite number"
            )
        with np.errstate(over="ignore"):
            single = frame["score"].to_numpy().astype(np.float32)
        frame = frame.with_columns(_single=single)
        frame = frame.sort(["topic", "_single", "doc"], descending=[False, True, True], maintain_order=True)
    else:
        frame = frame.sort(["topic", "rank"], maintain_order=True)
        frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64))
    rank = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("topic")
    frame = frame.with_columns(rank=rank).select(RUN)
    twice = frame.select("topic", "doc").is_duplicated()
    if twice.any():
        row = frame.filter(twice).row(0, named=True)
        raise InputRefused(
            f"{what}: document {row['doc']} comes twice in topic {row['topic']} of run {row['run']}"
        )
    return frame


def read_qrels(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    grades: Mapping[int, int | None] | None = None,
    requests: str | os.PathLike[str] | None = None,
) -> pl.DataFrame:
    """Return judgments as a table: topic, doc, grade; assessor, probability, judge and truth where the source has them.

    Parameters
    ----------
    source : path, data frame, dict or records
    format : str, optional
        Key of a format of files; by default it is recognised.
    grades : dict, optional
        A grade for each that is to be another one, None to leave its lines out: ``{-2: 0, -1: None}``.
    requests : path, optional
        The file of requests that umbrela judged: its own judgments name texts, and no topic and document.

    Raises
    ------
    InputRefused, ValueError
        As `read_run`; a negative grade that `grades` does not name, a pair that one assessor has judged twice, a
        probability outside (0, 1].

    Examples
    --------
    >>> read_qrels({"q1": {"d1": 1, "d2": -2}}, grades={-2: None}).height
    1
    """
    if isinstance(source, str | os.PathLike):
        from judging import formats

        reading: dict[str, Any] = {"format": format, "requests": requests}
        columns = formats.read_judgment_columns(source, grades=grades, **reading)
        frame = table_of(dict(columns), value="grade")
        origin = _Origin(str(source), source, reading, None not in (grades or {}).values())
    elif requests is not None:
        raise InputRefused("requests= is for a file of umbrela's judgments")
    else:
        origin, frame = _Origin("judgments"), table_of(source, value="grade")
        if grades and "grade" in frame.columns:
            frame = _map_grades(frame, grades)
    if "grade" not in frame.columns and "truth" in frame.columns:
        frame = frame.with_columns(grade=pl.col("judge"))
    return _checked_judgments(frame, origin)


def read_pairs(source: Any) -> pl.DataFrame:
    """Return pairs that were drawn, their grades filled in or not: topic, doc, probability; batch where given.

    Raises
    ------
    InputRefused, ValueError
        As `read_qrels`, but that grades may be missing.
    """
    if not isinstance(source, str | os.PathLike):
        return _checked_pairs(table_of(source, value="probability"), _Origin("pairs"))
    frame = read_qrels(source)  # faults have their lines
    with open(source, "rb") as stream:
        names = stream.readline().decode("utf-8", "replace").strip().split(",")
    if "batch" not in names:  # which formats of judgments do not keep
        return frame
    batch = table_of(pl.read_csv(os.fspath(source), columns=["batch"], infer_schema=False), value="batch")
    return frame.with_columns(batch["batch"])


def _map_grades(frame: pl.DataFrame, grades: Mapping[int, int | None]) -> pl.DataFrame:
    gone = [grade for grade, other in grades.items() if other is None]
    kept = frame.filter(~pl.col("grade").is_in(gone) | pl.col("grade").is_null())
    others = {grade: other for grade, other in grades.items() if other is not None}
    return kept.with_columns(pl.col("grade").replace(others)) if others else kept


@dataclass(frozen=True)
class _Origin:
    """Where a table comes from: what a message calls it, and of a file how it was read."""

    what: str
    path: str | os.PathLike[str] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    has_every_line: bool = True

    def place(self, frame: pl.DataFrame, index: int) -> str:
        """Return how a message names the place of a row: a file's with its line."""
        if self.path is None or not self.has_every_line:
            return self.what
        pair = frame.select("topic", "doc").row(index)
        upto = frame.head(index + 1)
        nth = upto.filter((pl.col("topic") == pair[0]) & (pl.col("doc") == pair[1])).height
        return place_of(self.path, pair, nth, **self.reading)


def _checked_judgments(frame: pl.DataFrame, origin: _Origin) -> pl.DataFrame:
    require(frame, ("topic", "doc", "grade"), origin.what)
    _checked_pairs(frame, origin)
    is_negative = (frame["grade"] < 0).fill_null(False)
    if is_negative.any():
        counts = frame.filter(is_negative)["grade"].value_counts().sort("grade")
        said = ", ".join(
            f"{n} {'line has' if n == 1 else 'lines have'} the grade {grade}"
            for grade, n in counts.iter_rows()
        )
        place = origin.place(frame, int(is_negative.arg_true()[0]))
        raise InputRefused(
            f"{place}: {said}: say with grades= (in a shell: --grades) what it means, 0 for not relevant or None to "
            "leave the lines out"
        )
    return frame


def _checked_pairs(frame: pl.DataFrame, origin: _Origin) -> pl.DataFrame:
    """Return the frame; InputRefused where an assessor has a pair twice, or where a probability is none."""
    require(frame, ("topic", "doc"), origin.what)
    by = [name for name in ("topic", "doc", "assessor") if name in frame.columns]
    again = ~frame.select(pl.struct(by).is_first_distinct()).to_series()
    if again.any():
        index = int(again.arg_true()[0])
        topic, doc = frame.select("topic", "doc").row(index)
        raise InputRefused(f"{origin.place(frame, index)}: document {doc} is judged twice in topic {topic}")
    if "probability" in frame.columns:
        wrong = frame.filter((pl.col("probability") <= 0) | (pl.col("probability") > 1))
        if wrong.height:
            row = wrong.row(0, named=True)
            raise InputRefused(
                f"{origin.what}: the probability of document {row['doc']} in topic {row['topic']} must be within "
                f"(0, 1], got {row['probability']}"
            )
    return frame


def read_topics(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
) -> pl.DataFrame:
    """Return topics as a table: topic, title, description, narrative.

    Raises
    ------
    InputRefused, ValueError
        As `read_run`.

    Examples
    --------
    >>> read_topics({"qid": ["1"], "query": ["black bear attacks"]})["title"].to_list()
    ['black bear attacks']
    """
    if isinstance(source, str | os.PathLike):
        from judging import formats

        frame = table_of(dict(formats.read_topic_columns(source, format=format)), value="title")
    else:
        frame = table_of(source, value="title")
    require(frame, ("topic",), "topics")
    missing = [
        pl.lit("").alias(one) for one in ("title", "description", "narrative") if one not in frame.columns
    ]
    return frame.with_columns(missing).select("topic", "title", "description", "narrative")
