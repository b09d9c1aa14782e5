"""Read the files the field uses, line by line: qrels, qrels_jg, BEIR's qrels, prels, run lines; topics too.

Readers take a path or a binary stream and a name for messages, stream their file and raise `TrecFormatError`. With
``faults`` they add what is wrong to them instead, go on past the bad record and return the good ones.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from judging.faults import Faults, Noting, NotingAll
from judging.file_options import PLAIN, FileOptions
from judging.textfiles import (
    CONTROL,
    CONTROL_REASON,
    Limits,
    Line,
    Source,
    TrecFormatError,
    check_id,
    open_text,
)
from judging.topics import TopicRecord, read_topics

__all__ = [
    "JudgmentRecord", "Limits", "PrelRecord", "QrelRecord", "RunRecord", "StratifiedRecord", "TopicRecord",
    "TrecFormatError", "open_text", "read_beir", "read_prels", "read_qrels", "read_qrels_jg", "read_stratified",
    "read_topics",
]  # fmt: skip

MIN_GRADE, MAX_GRADE = -127, 127
NOT_SAMPLED = -1  # the grade, in a pool in strata, of a document that was not drawn
TOKEN = re.compile(r"[^ \t]+")
INTEGER = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


def is_finite_number(word: str) -> bool:
    """Return whether a word is a number in decimals, and finite."""
    return bool(DECIMAL.fullmatch(word)) and math.isfinite(float(word))


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
class PairRecord:
    """What a judge says of a pair and, where somebody looked, what is true of it."""

    topic_id: str
    doc_id: str
    judge: int
    truth: int | None
    probability: float | None = None  # of being looked at

    @property
    def grade(self) -> int:
        """Return the label, which all pairs have."""
        return self.judge


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
        if not is_finite_number(value):
            self.fail(index, f"{what} must be a finite number, not {value[:40]!r}")
        return float(value)


def read_fields(
    source: Source,
    name: str,
    width: int,
    layout: str,
    limits: Limits | None = None,
    faults: Faults | None = None,
    encoding: str = "",
) -> Iterator[Fields]:
    """Return the lines of ``width`` columns separated by blanks or tabs; empty lines only at the end.

    With ``faults`` a line that is wrong is one of them; what ends the file is raised all the same.
    """
    blank: Line | None = None
    noting = Noting(faults)
    for line in open_text(source, name, limits, faults, encoding):
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


class PairIndex:
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
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[QrelRecord]:
    """Return the records of ``topic iteration document grade``; a pair twice is an error, unless repeats are allowed.

    >>> import io
    >>> list(read_qrels(io.BytesIO(b"301 0 FT911-3 1"), "example"))
    [QrelRecord(topic_id='301', doc_id='FT911-3', grade=1)]
    """
    seen = PairIndex(allows_repeats=allows_repeats)
    noting = Noting(faults)
    with NotingAll(faults):
        layout = "topic iteration document grade"
        for fields in read_fields(source, name, 4, layout, faults=faults, encoding=options.encoding):
            with noting:
                topic_id, doc_id = fields.id(0, "topic id"), fields.id(2, "document id")
                grade = fields.grade(3)
                before = seen.add((topic_id,), doc_id, fields.number)
                _refuse_twice(fields, 2, before, f"document {doc_id} of topic {topic_id}")
                yield QrelRecord(topic_id, doc_id, grade)


BEIR_HEADER = ["query-id", "corpus-id", "score"]


def read_beir(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[QrelRecord]:
    """Return the records below BEIR's header ``query-id corpus-id score``; a pair twice is an error, as in qrels.

    >>> import io
    >>> list(read_beir(io.BytesIO(b"query-id\\tcorpus-id\\tscore\\nq1\\td1\\t2"), "example"))
    [QrelRecord(topic_id='q1', doc_id='d1', grade=2)]
    """
    seen, noting, layout = PairIndex(allows_repeats=allows_repeats), Noting(faults), " ".join(BEIR_HEADER)
    with NotingAll(faults):
        lines = read_fields(source, name, 3, layout, faults=faults, encoding=options.encoding)
        header = next(lines, None)
        if header is None or header.values != BEIR_HEADER:
            raise TrecFormatError(name, 1, 1, f"expected the header {layout}")
        for fields in lines:
            with noting:
                topic_id, doc_id = fields.id(0, "topic id"), fields.id(1, "document id")
                grade = fields.grade(2)
                before = seen.add((topic_id,), doc_id, fields.number)
                _refuse_twice(fields, 1, before, f"document {doc_id} of topic {topic_id}")
                yield QrelRecord(topic_id, doc_id, grade)


def _refuse_twice(fields: Fields, index: int, before: int | None, what: str) -> None:
    if before is not None:
        fields.fail(index, f"{what} occurs twice (first on line {before})")


def read_qrels_jg(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[JudgmentRecord]:
    """Return the records of ``topic assessor document grade``.

    An assessor's pair twice is an error, unless repeats are allowed.
    """
    seen = PairIndex(allows_repeats=allows_repeats)
    noting = Noting(faults)
    with NotingAll(faults):
        layout = "topic assessor document grade"
        for fields in read_fields(source, name, 4, layout, faults=faults, encoding=options.encoding):
            with noting:
                topic_id, assessor = fields.id(0, "topic id"), fields.id(1, "assessor")
                doc_id, grade = fields.id(2, "document id"), fields.grade(3)
                before = seen.add((topic_id, assessor), doc_id, fields.number)
                pair = f"document {doc_id} of topic {topic_id} and assessor {assessor}"
                _refuse_twice(fields, 2, before, pair)
                yield JudgmentRecord(topic_id, doc_id, assessor, grade)


def read_prels(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[PrelRecord]:
    """Return the records of ``topic document grade method probability``, probability in (0, 1]."""
    seen, noting = PairIndex(allows_repeats=allows_repeats), Noting(faults)
    layout = "topic document grade method probability"
    with NotingAll(faults):
        for fields in read_fields(source, name, 5, layout, faults=faults, encoding=options.encoding):
            with noting:
                yield _prel_record(fields, seen)


def _prel_record(fields: Fields, seen: PairIndex) -> PrelRecord:
    topic_id, doc_id, grade = fields.id(0, "topic id"), fields.id(1, "document id"), fields.grade(2)
    if not INTEGER.fullmatch(fields.values[3]):
        fields.fail(3, f"method must be an integer, not {fields.values[3][:40]!r}")
    probability = fields.number_at(4, "inclusion probability")
    if not 0 < probability <= 1:
        fields.fail(4, f"inclusion probability must be in (0, 1], not {fields.values[4][:40]}")
    before = seen.add((topic_id,), doc_id, fields.number)
    _refuse_twice(fields, 1, before, f"document {doc_id} of topic {topic_id}")
    return PrelRecord(topic_id, doc_id, grade, int(fields.values[3]), probability)


def read_stratified(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[StratifiedRecord]:
    """Return the records of ``topic iteration document stratum grade``: all documents of a pool, -1 where not sampled.

    >>> import io
    >>> list(read_stratified(io.BytesIO(b"301 0 FT911-3 2 -1"), "example"))
    [StratifiedRecord(topic_id='301', doc_id='FT911-3', stratum=2, grade=-1)]
    """
    seen, noting = PairIndex(allows_repeats=allows_repeats), Noting(faults)
    layout = "topic iteration document stratum grade"
    with NotingAll(faults):
        for fields in read_fields(source, name, 5, layout, faults=faults, encoding=options.encoding):
            with noting:
                yield _stratified_record(fields, seen)


def _stratified_record(fields: Fields, seen: PairIndex) -> StratifiedRecord:
    topic_id, doc_id, grade = fields.id(0, "topic id"), fields.id(2, "document id"), fields.grade(4)
    if not INTEGER.fullmatch(fields.values[3]):
        fields.fail(3, f"stratum must be an integer, not {fields.values[3][:40]!r}")
    if grade < NOT_SAMPLED:
        fields.fail(4, f"grade must be at least 0, or {NOT_SAMPLED} where not sampled, not {grade}")
    before = seen.add((topic_id,), doc_id, fields.number)
    _refuse_twice(fields, 2, before, f"document {doc_id} of topic {topic_id}")
    return StratifiedRecord(topic_id, doc_id, int(fields.values[3]), grade)
