"""Read the files the field uses: qrels, qrels_jg, prels, run lines, crowd labels; topics too.

Readers take a path or a binary stream and a name for messages, stream their file and raise `TrecFormatError`. With
``faults`` they add what is wrong to them instead, go on past the bad record and return the good ones.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from judging.faults import Faults, Noting, NotingAll
from judging.textfiles import (
    CONTROL,
    CONTROL_REASON,
    Limits,
    Line,
    Row,
    Source,
    TrecFormatError,
    check_id,
    open_text,
    read_table,
)
from judging.topics import TopicRecord, read_topics

__all__ = [
    "JudgmentRecord", "Limits", "PrelRecord", "QrelRecord", "RunRecord", "StratifiedRecord", "TopicRecord",
    "TrecFormatError", "open_text", "read_crowd_labels", "read_prels", "read_qrels", "read_qrels_jg",
    "read_stratified", "read_topics",
]  # fmt: skip

MIN_GRADE, MAX_GRADE = -127, 127
NOT_SAMPLED = -1  # the grade, in a pool in strata, of a document that was not drawn
TOKEN = re.compile(r"[^ \t]+")
INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class QrelRecord:
    """The grade of an item; negative means what the file's makers meant by it."""

    topic_id: str
    doc_id: str
    grade: int


@dataclass(frozen=True, slots=True)
class JudgmentRecord:
    """One assessor's answer to an item: a value of the scale."""

    topic_id: str
    doc_id: str
    assessor: str
    grade: int


@dataclass(frozen=True, slots=True)
class PrelRecord:
    """A grade with the probability by which the pair was sampled, and the code of the sampling method."""

    topic_id: str
    doc_id: str
    grade: int
    method: int
    inclusion_probability: float


@dataclass(frozen=True, slots=True)
class GoldRecord:
    """A gold grade, None where the document was not chosen, and the probability of being chosen where it is known."""

    topic_id: str
    doc_id: str
    grade: int | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class StratifiedRecord:
    """A document of a pool in strata: its stratum, and its grade, or `NOT_SAMPLED`."""

    topic_id: str
    doc_id: str
    stratum: int
    grade: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One line of a run, in the order in which it is to be written."""

    topic_id: str
    doc_id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Fields:
    """The white-space separated fields of one line."""

    name: str
    number: int
    text: str
    values: list[str]

    def fail(self, index: int, reason: str) -> NoReturn:
        """Raise `TrecFormatError` at the start of field ``index``."""
        raise TrecFormatError(self.name, self.number, self.column(index), reason)

    def column(self, index: int) -> int:
        """Return where field ``index`` starts, counted from 1; past the last field, where the line ends."""
        starts = [match.start() for match in TOKEN.finditer(self.text)]
        return (starts[index] if index < len(starts) else len(self.text)) + 1

    def id(self, index: int, what: str) -> str:
        """Return field ``index`` as an id."""
        value = self.values[index]
        if len(value) > 100:  # fields hold no white space; only the length is left to check
            check_id(value, what, self.name, self.number, self.column(index))
        return value

    def grade(self, index: int) -> int:
        """Return field ``index`` as a grade."""
        value = self.values[index]
        if not INTEGER.fullmatch(value) or not MIN_GRADE <= int(value) <= MAX_GRADE:
            self.fail(index, f"grade must be an integer in {MIN_GRADE}..{MAX_GRADE}, not {value[:40]!r}")
        return int(value)

    def number_at(self, index: int, what: str) -> float:
        """Return field ``index`` as a finite number."""
        value = self.values[index]
        if not DECIMAL.fullmatch(value) or not math.isfinite(float(value)):
            self.fail(index, f"{what} must be a finite number, not {value[:40]!r}")
        return float(value)


def read_fields(
    source: Source,
    name: str,
    width: int,
    layout: str,
    limits: Limits | None = None,
    faults: Faults | None = None,
) -> Iterator[Fields]:
    """Return the lines of ``width`` columns separated by blanks or tabs; empty lines only at the end.

    With ``faults`` a line that is wrong is one of them; what ends the file is raised all the same.
    """
    blank: Line | None = None
    noting = Noting(faults)
    for line in open_text(source, name, limits, faults):
        values = TOKEN.findall(line.text)
        if not values:
            blank = blank or line
            continue
        if blank is not None:
            first, blank = blank, None
            with noting:
                raise TrecFormatError(name, first.number, 1, "blank line between lines")
        with noting:
            control = CONTROL.search(line.text)
            if control:
                raise TrecFormatError(name, line.number, control.start() + 1, CONTROL_REASON)
            fields = Fields(name, line.number, line.text, values)
            if len(values) != width:
                fields.fail(width, f"expected {width} columns ({layout}), found {len(values)}")
            yield fields


class _PairIndex:
    """Finds a pair that was there before; where repeats are allowed, it finds none."""

    def __init__(self, *, allows_repeats: bool = False) -> None:
        self.lines: dict[tuple[str, ...], dict[str, int]] = {}
        self.allows_repeats = allows_repeats

    def add(self, group: tuple[str, ...], doc_id: str, line: int) -> int | None:
        """Return the line of an earlier occurrence, or None."""
        if self.allows_repeats:
            return None
        lines = self.lines.setdefault(group, {})
        before = lines.setdefault(doc_id, line)
        return None if before == line else before


def read_qrels(
    source: Source, name: str, *, allows_repeats: bool = False, faults: Faults | None = None
) -> Iterator[QrelRecord]:
    """Return the records of ``topic iteration document grade``; a pair twice is an error, unless repeats are allowed.

    >>> import io
    >>> list(read_qrels(io.BytesIO(b"301 0 FT911-3 1"), "example"))
    [QrelRecord(topic_id='301', doc_id='FT911-3', grade=1)]
    """
    seen = _PairIndex(allows_repeats=allows_repeats)
    noting = Noting(faults)
    with NotingAll(faults):
        for fields in read_fields(source, name, 4, "topic iteration document grade", faults=faults):
            with noting:
                topic_id, doc_id = fields.id(0, "topic id"), fields.id(2, "document id")
                grade = fields.grade(3)
                before = seen.add((topic_id,), doc_id, fields.number)
                _refuse_twice(fields, 2, before, f"document {doc_id} of topic {topic_id}")
                yield QrelRecord(topic_id, doc_id, grade)


def _refuse_twice(fields: Fields, index: int, before: int | None, what: str) -> None:
    if before is not None:
        fields.fail(index, f"{what} occurs twice (first on line {before})")


def read_qrels_jg(
    source: Source, name: str, *, allows_repeats: bool = False, faults: Faults | None = None
) -> Iterator[JudgmentRecord]:
    """Return the records of ``topic assessor document grade``.

    An assessor's pair twice is an error, unless repeats are allowed.
    """
    seen = _PairIndex(allows_repeats=allows_repeats)
    noting = Noting(faults)
    with NotingAll(faults):
        for fields in read_fields(source, name, 4, "topic assessor document grade", faults=faults):
            with noting:
                topic_id, assessor = fields.id(0, "topic id"), fields.id(1, "assessor")
                doc_id, grade = fields.id(2, "document id"), fields.grade(3)
                before = seen.add((topic_id, assessor), doc_id, fields.number)
                pair = f"document {doc_id} of topic {topic_id} and assessor {assessor}"
                _refuse_twice(fields, 2, before, pair)
                yield JudgmentRecord(topic_id, doc_id, assessor, grade)


def read_prels(source: Source, name: str, *, faults: Faults | None = None) -> Iterator[PrelRecord]:
    """Return the records of ``topic document grade method probability``, probability in (0, 1]."""
    seen, noting = _PairIndex(), Noting(faults)
    layout = "topic document grade method probability"
    with NotingAll(faults):
        for fields in read_fields(source, name, 5, layout, faults=faults):
            with noting:
                yield _prel_record(fields, seen)


def _prel_record(fields: Fields, seen: _PairIndex) -> PrelRecord:
    topic_id, doc_id, grade = fields.id(0, "topic id"), fields.id(1, "document id"), fields.grade(2)
    if not INTEGER.fullmatch(fields.values[3]):
        fields.fail(3, f"method must be an integer, not {fields.values[3][:40]!r}")
    probability = fields.number_at(4, "inclusion probability")
    if not 0 < probability <= 1:
        fields.fail(4, f"inclusion probability must be in (0, 1], not {fields.values[4][:40]}")
    before = seen.add((topic_id,), doc_id, fields.number)
    _refuse_twice(fields, 1, before, f"document {doc_id} of topic {topic_id}")
    return PrelRecord(topic_id, doc_id, grade, int(fields.values[3]), probability)


def read_stratified(source: Source, name: str, *, faults: Faults | None = None) -> Iterator[StratifiedRecord]:
    """Return the records of ``topic iteration document stratum grade``: all documents of a pool, -1 where not sampled.

    >>> import io
    >>> list(read_stratified(io.BytesIO(b"301 0 FT911-3 2 -1"), "example"))
    [StratifiedRecord(topic_id='301', doc_id='FT911-3', stratum=2, grade=-1)]
    """
    seen, noting = _PairIndex(), Noting(faults)
    layout = "topic iteration document stratum grade"
    with NotingAll(faults):
        for fields in read_fields(source, name, 5, layout, faults=faults):
            with noting:
                yield _stratified_record(fields, seen)


def _stratified_record(fields: Fields, seen: _PairIndex) -> StratifiedRecord:
    topic_id, doc_id, grade = fields.id(0, "topic id"), fields.id(2, "document id"), fields.grade(4)
    if not INTEGER.fullmatch(fields.values[3]):
        fields.fail(3, f"stratum must be an integer, not {fields.values[3][:40]!r}")
    if grade < NOT_SAMPLED:
        fields.fail(4, f"grade must be at least 0, or {NOT_SAMPLED} where not sampled, not {grade}")
    before = seen.add((topic_id,), doc_id, fields.number)
    _refuse_twice(fields, 2, before, f"document {doc_id} of topic {topic_id}")
    return StratifiedRecord(topic_id, doc_id, int(fields.values[3]), grade)


WORKER_COLUMNS = ("worker", "WorkerId", "assessor")
LABEL_COLUMNS = ("label", "Answer.grade", "grade")
TOPIC_COLUMNS = ("topic_id", "Input.topic_id")
DOCUMENT_COLUMNS = ("doc_id", "Input.doc_id")


def _first(row: Row, candidates: tuple[str, ...]) -> str | None:
    return next((title for title in candidates if title in row.cells), None)


def _required_column(row: Row, candidates: tuple[str, ...]) -> str:
    title = _first(row, candidates)
    if title is None:
        raise TrecFormatError(row.name, 1, 1, f"no column named {' or '.join(candidates)}")
    return title


def _pair(row: Row) -> tuple[str, str, str]:
    """Return topic id, document id, and the column to blame when the pair is wrong."""
    if "task" in row.cells and _first(row, TOPIC_COLUMNS) is None:
        parts = row.cells["task"].split()
        if len(parts) != 2:
            row.fail("task", f"task must be 'topic_id doc_id', not {row.cells['task'][:80]!r}")
        return parts[0], parts[1], "task"
    topic, document = _required_column(row, TOPIC_COLUMNS), _required_column(row, DOCUMENT_COLUMNS)
    for title, what in ((topic, "topic id"), (document, "document id")):
        _id_cell(row, title, what)
    return row.cells[topic].strip(), row.cells[document].strip(), document


def _id_cell(row: Row, title: str, what: str) -> str:
    """Return the cell as an id; the error points at the cell."""
    try:
        return check_id(row.cells[title].strip(), what, row.name, row.line, 1)
    except TrecFormatError as error:
        row.fail(title, error.reason)


def read_crowd_labels(
    source: Source, name: str, *, allows_repeats: bool = False, faults: Faults | None = None
) -> Iterator[JudgmentRecord]:
    """Return crowd judgments from CSV in the style of crowd-kit or of MTurk.

    crowd-kit: task, worker, label. MTurk: Input.topic_id, Input.doc_id, WorkerId, Answer.grade.
    ``task`` is "topic_id doc_id"; columns topic_id and doc_id may stand in its place. The label is the
    grade. A worker's pair twice is an error, unless repeats are allowed.
    """
    seen, noting = _PairIndex(allows_repeats=allows_repeats), Noting(faults)
    with NotingAll(faults):
        for row in _rows(source, name, faults):
            _require_columns(row, WORKER_COLUMNS, LABEL_COLUMNS)
            with noting:
                yield _crowd_label(row, seen)


def _rows(source: Source, name: str, faults: Faults | None) -> Iterator[Row]:
    return read_table(open_text(source, name, faults=faults), name, max_cell=100_000, faults=faults)


def _require_columns(row: Row, *others: tuple[str, ...]) -> None:
    """Refuse a table that names no pair, or lacks one of the other columns: no row of it can be read."""
    if "task" not in row.cells or _first(row, TOPIC_COLUMNS) is not None:
        others = (TOPIC_COLUMNS, DOCUMENT_COLUMNS, *others)
    for candidates in others:
        _required_column(row, candidates)


def _crowd_label(row: Row, seen: _PairIndex) -> JudgmentRecord:
    topic_id, doc_id, blamed = _pair(row)
    worker_column, label_column = (_required_column(row, one) for one in (WORKER_COLUMNS, LABEL_COLUMNS))
    assessor = _id_cell(row, worker_column, "worker")
    label = row.cells[label_column].strip()
    if not INTEGER.fullmatch(label) or not MIN_GRADE <= int(label) <= MAX_GRADE:
        row.fail(label_column, f"grade must be an integer in {MIN_GRADE}..{MAX_GRADE}, not {label[:40]!r}")
    before = seen.add((topic_id, assessor), doc_id, row.line)
    if before is not None:
        what = f"document {doc_id} of topic {topic_id} and worker {assessor}"
        row.fail(blamed, f"{what} occurs twice (first on line {before})")
    return JudgmentRecord(topic_id, doc_id, assessor, int(label))


# Of a document to get a gold grade: below, one such grade would outweigh all that is known.
LEAST_CHANCE = 1e-6


def read_gold(
    source: Source, name: str, *, allows_repeats: bool = False, faults: Faults | None = None
) -> Iterator[GoldRecord]:
    """Return gold grades from CSV: topic_id and doc_id (or task), grade, and a probability from 1e-6 to 1 where known.

    An empty grade is a document that was not chosen. A pair may occur twice: the import compares what is said of it.
    """
    noting = Noting(faults)
    with NotingAll(faults):
        for row in _rows(source, name, faults):
            _require_columns(row, LABEL_COLUMNS)
            with noting:
                yield _gold_record(row)


def _gold_record(row: Row) -> GoldRecord:
    topic_id, doc_id, _ = _pair(row)
    title = _required_column(row, LABEL_COLUMNS)
    label, chance = row.cells[title].strip(), row.cells.get("probability", "").strip()
    if label and (not INTEGER.fullmatch(label) or not MIN_GRADE <= int(label) <= MAX_GRADE):
        row.fail(title, f"grade must be an integer in {MIN_GRADE}..{MAX_GRADE}, not {label[:40]!r}")
    if chance and not (DECIMAL.fullmatch(chance) and LEAST_CHANCE <= float(chance) <= 1):
        row.fail("probability", f"probability must be 0.000001 to 1, not {chance[:40]!r}")
    return GoldRecord(topic_id, doc_id, int(label) if label else None, float(chance) if chance else None)
