"""Read files of any format of the table into columns: of runs, of judgments, of topics."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from judging.faults import TrecFormatError
from judging.file_options import PLAIN, FileOptions
from judging.formats.datasets import dataset_judgments, dataset_topics, is_dataset
from judging.formats.kinds import JUDGMENTS, RUNS, TOPICS, Format, JudgmentFormat, RunFormat, TopicFormat
from judging.formats.run_names import formats_by_name, read_named_run, without_compression
from judging.formats.table import FORMATS, format_of
from judging.recognise import Recognition, recognise_file
from judging.run_tables import RunFile
from judging.samples import STRATA, UnsampledStratum, stratum_probabilities
from judging.textfiles import Source
from judging.topics import read_topics
from judging.trec import NOT_SAMPLED

Columns = dict[str, Any]
READERS = {RUNS: "read_run", JUDGMENTS: "read_qrels", TOPICS: "read_topics"}  # as the library calls them


def read_run_columns(
    path: Source,
    *,
    format: str | None = None,  # noqa: A002 (the word of those who call it)
    name: str | None = None,
) -> tuple[str, Columns]:
    """Return the name of a run and its columns topic_id, doc_id, score and rank, in trec_eval's order.

    Parameters
    ----------
    path : path or binary stream
        The file, plain or gzip. A stream must be able to seek.
    format : str, optional
        A key of the table; else the file's beginning tells it.
    name : str, optional
        The run's name; else the one in the file, or that of the file. A file with several names needs it.

    Raises
    ------
    TrecFormatError
        With file, line and column: what is wrong, or what else the file is.
    """
    wanted = _request(path, format, RunFormat)
    form = wanted.format
    try:
        run = read_named_run(form, RunFile(path, wanted.name), name or "")
    except TrecFormatError as error:
        raise _with_advice(error) from None
    counts = np.diff(run.offsets)
    topics = np.repeat(np.arange(len(counts)), counts).tolist()
    rank = np.arange(len(run.scores)) - np.repeat(run.offsets[:-1], counts) + 1
    return run.run_tag, {
        "topic_id": [run.topic_ids[topic] for topic in topics],
        "doc_id": run.doc_ids.to_list(),
        "score": run.scores,
        "rank": rank.astype(np.int64),
    }


def read_judgment_columns(
    path: Source,
    *,
    format: str | None = None,  # noqa: A002
    grades: Mapping[int, int | None] | None = None,
    requests: Source | None = None,
) -> Columns:
    """Return the columns of judgments: topic_id, doc_id and grade, and those of the others that the file has.

    `assessor`; `probability`, of a sample that somebody drew; `stratum`; `judge` and `truth` of the table that has
    both, where the grade is the judge's. A grade is an int64; where pairs have none (not sampled, or nobody looked) the
    column is a list with None in their places, as the columns truth and probability are.

    Parameters
    ----------
    path : path or binary stream
        The file, or ``ir_datasets:<id>`` for the judgments of a data set of ir_datasets.
    format : str, optional
        A key of the table; else the file's beginning tells it.
    grades : mapping, optional
        What grades become; None leaves the line out. Grades that it does not name stay.
    requests : path or binary stream, optional
        What umbrela was given, whose judgments name no ids.

    Raises
    ------
    TrecFormatError
        With file, line and column: what is wrong, or what else the file is.
    """
    if is_dataset(path):
        return _map_grades(judgment_columns(dataset_judgments(path)), grades or {})
    wanted = _request(path, format, JudgmentFormat)
    form = wanted.format
    if requests is not None and form.key != "umbrela":
        raise ValueError(f"requests are for umbrela's judgments, not for {form.key}")
    given = {} if requests is None else {"requests": requests}
    start = None if isinstance(path, str | os.PathLike) else path.tell()
    try:
        records = list(form.read(path, wanted.name, options=wanted.options, **given))
    except TrecFormatError as error:
        raise _with_advice(error) from None
    if not records:
        raise TrecFormatError(wanted.name, 1, 1, "no judgments in the file")
    columns = judgment_columns(records)
    if form.sample is STRATA:
        try:
            columns["probability"] = np.array(stratum_probabilities(records))
        except UnsampledStratum as error:
            if start is not None:
                path.seek(start)  # type: ignore[union-attr]  # a stream is read once more for the place
            line, column, *_ = form.place(path, wanted.name, error.index, "stratum", PLAIN)
            raise TrecFormatError(wanted.name, line, column, str(error)) from None
    return _map_grades(columns, grades or {})


def line_of_pair(
    path: str | os.PathLike[str],
    topic_id: str,
    doc_id: str,
    *,
    nth: int = 1,
    format: str | None = None,  # noqa: A002
    requests: str | os.PathLike[str] | None = None,
) -> int | None:
    """Return the line in which a file of judgments names a pair for the nth time; None where it does not."""
    if is_dataset(path):
        return None
    wanted = _request(path, format, JudgmentFormat)
    given = {} if requests is None else {"requests": requests}
    records = wanted.format.read(path, wanted.name, options=wanted.options, **given)
    places = (index for index, one in enumerate(records) if (one.topic_id, one.doc_id) == (topic_id, doc_id))
    index = next(islice(places, nth - 1, None), None)
    if index is None:
        return None
    return wanted.format.place(path, wanted.name, index, "document", wanted.options)[0]


def read_topic_columns(
    path: Source,
    *,
    format: str | None = None,  # noqa: A002
) -> Columns:
    """Return the columns of topics: topic_id, title, description, narrative, all str.

    Parameters
    ----------
    path : path or binary stream
        The file, or ``ir_datasets:<id>`` for the queries of a data set of ir_datasets.
    format : str, optional
        A key of the table; else the file's beginning tells it. Cranfield's queries must be named: they are numbered.

    Raises
    ------
    TrecFormatError
        With file, line and column: what is wrong, or what else the file is.
    """
    if is_dataset(path):
        topics = list(dataset_topics(path))
    else:
        wanted = _request(path, format, TopicFormat)
        form = wanted.format
        try:
            topics = list(read_topics(path, wanted.name, form.reader, options=wanted.options))
        except TrecFormatError as error:
            raise _with_advice(error) from None
    names = ("topic_id", "title", "description", "narrative")
    return {name: [getattr(topic, name) for topic in topics] for name in names}


# -- records to columns ---------------------------------------------------------------------------------------

# The fields of records that are columns besides topic, document and grade, and what they are called there.
FIELDS = {
    "assessor": "assessor",
    "probability": "probability",
    "inclusion_probability": "probability",
    "method": "method",
    "stratum": "stratum",
    "judge": "judge",
    "truth": "truth",
}


def judgment_columns(records: Sequence[Any]) -> Columns:
    """Return the columns of records of one kind; what no record has is no column."""
    first = records[0]
    columns: Columns = {name: [getattr(one, name) for one in records] for name in ("topic_id", "doc_id")}
    grades = [one.grade for one in records]
    if hasattr(first, "stratum"):
        grades = [None if grade == NOT_SAMPLED else grade for grade in grades]
    columns["grade"] = _numbers(grades)
    for field, name in FIELDS.items():
        if hasattr(first, field):
            values = [getattr(one, field) for one in records]
            if field == "assessor":
                columns[name] = values
            elif field != "probability" or any(value is not None for value in values):
                columns[name] = _numbers(values)
    return columns


def _numbers(values: list[Any]) -> Any:
    """Return whole numbers as int64 and others as float64; a list where some are None."""
    return values if any(value is None for value in values) else np.array(values)


def _map_grades(columns: Columns, grades: Mapping[int, int | None]) -> Columns:
    """Return the columns with grades as the map has them, without the lines that it leaves out."""
    if not grades:
        return columns
    found = {
        name: [grades.get(value, value) for value in columns[name]]
        for name in ("grade", "judge", "truth")
        if name in columns
    }
    left_out = {
        index
        for index, value in enumerate(columns["grade"])
        if value is not None and found["grade"][index] is None
    }
    kept = [index for index in range(len(columns["grade"])) if index not in left_out]
    return {
        name: [values[index] for index in kept]
        if name in ("topic_id", "doc_id", "assessor")
        else _numbers([values[index] for index in kept])
        for name, values in (columns | found).items()
    }


# -- which format ---------------------------------------------------------------------------------------------


Form = TypeVar("Form", bound=Format)


@dataclass(frozen=True)
class _Request(Generic[Form]):
    """The file that is to be read: its name in messages, its format, and how its text is written."""

    name: str
    format: Form
    options: FileOptions = PLAIN


def _request(path: Source, key: str | None, kind: type[Form]) -> _Request[Form]:
    """Return what is to be read, by its format or told by its beginning; an error if that is of another kind."""
    name = _name(path)
    if key is not None:
        form = format_of(key)
        if not isinstance(form, kind):
            raise ValueError(f"the format {key} holds {form.holds}: {READERS[form.holds]} reads it")
        return _Request(name, form)
    found = recognise_file(path, name)
    form = _choose(found, name, kind.holds)
    if not isinstance(form, kind):
        reason = f"this holds {form.holds} ({form.label}): {READERS[form.holds]} reads it"
        raise TrecFormatError(name, 1, 1, reason)
    return _Request(name, form, found.options)


def recognised_format(path: Source) -> Format:
    """Return the format of a file, told by its beginning, and by its name where the content leaves several.

    Raises
    ------
    TrecFormatError
        If it is none of the table, or several could be meant.
    """
    name = _name(path)
    return _choose(recognise_file(path, name), name, "")


def _choose(found: Recognition, name: str, holds: str) -> Format:
    """Return the format that a file has, or the one that its name tells among those that its form allows."""
    candidates = _candidates(found)
    if found.is_sure and len(candidates) == 1:
        return candidates[0]
    wanted = [one for one in candidates if not holds or one.holds == holds] or candidates
    ends = [one for one in wanted if without_compression(name).endswith(one.extensions or ("\0",))]
    likely = ends if len(ends) == 1 else wanted
    if not likely and holds and not found.is_refused:
        likely = formats_by_name(name, holds)  # its reader says in which line it is none
    if len(likely) == 1 and not found.is_refused:
        return likely[0]
    keys = ", ".join(one.key for one in FORMATS if not holds or one.holds == holds)
    which = (
        f"name one of the formats {', '.join(one.key for one in likely)}" if likely else f"formats are {keys}"
    )
    raise TrecFormatError(name, 1, 1, f"{found.why} {which[:1].upper()}{which[1:]}.")


def _candidates(found: Recognition) -> list[Format]:
    """Return the formats that the form of a file allows."""
    if found.is_refused:
        return []
    keys = [found.file_format, *found.rivals]
    if found.kind == TOPICS:
        return [one for one in FORMATS if isinstance(one, TopicFormat) and one.reader in keys]
    if not found.is_encoding_sure:
        return []
    return [one for one in FORMATS if one.holds in (RUNS, JUDGMENTS) and one.key in keys]


def _with_advice(error: TrecFormatError) -> TrecFormatError:
    """Return the error of a reader with what somebody can do about it."""
    reason = error.reason
    if reason.startswith(("one run tag a file", "one run a file")):
        reason = f"{reason}; give the run a name (name=)"
    return TrecFormatError(error.file, error.line, error.column, reason, error.sheet)


def _name(path: Source) -> str:
    """Return how messages call a file."""
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    return str(getattr(path, "name", "") or "stream")
