"""Read tables of judgments: crowd labels in the styles of crowd-kit and MTurk, gold grades, labels beside truth."""

from collections.abc import Iterator

from judging.faults import Faults, Noting, NotingAll
from judging.file_options import PLAIN, FileOptions, Ids
from judging.tables import Row, open_rows
from judging.textfiles import Source, TrecFormatError
from judging.trec import (
    DECIMAL,
    INTEGER,
    MAX_GRADE,
    MIN_GRADE,
    GoldRecord,
    JudgmentRecord,
    PairIndex,
    PairRecord,
)

# The usual names of the fields' columns.
USUAL_COLUMNS = {
    "topic": ("topic_id", "Input.topic_id", "topic", "qid", "query_id"),
    "document": ("doc_id", "Input.doc_id", "doc", "docno", "docid"),
    "assessor": ("worker", "WorkerId", "assessor"),
    "grade": ("label", "Answer.grade", "grade"),
    "probability": ("probability",),
    "judge": ("judge",),
    "truth": ("truth",),
}
TASK = "task"  # a column that names topic and document
# Of a document to get a gold grade: below, one such grade would outweigh all that is known.
LEAST_CHANCE = 1e-6


class _Reading:
    """What the rows of one file are read by."""

    def __init__(self, name: str, options: FileOptions) -> None:
        self.options = options
        self.ids = {field: Ids(what, name, options) for field, what in WORDS.items()}
        self._columns: dict[str, tuple[str, ...]] = {}  # of the file: its rows have the same ones

    def columns(self, row: Row, field: str) -> tuple[str, ...]:
        """Return the column of a field, if the table has it."""
        if field not in self._columns:
            if not self.options.mapping.get(field):
                row.only_column(USUAL_COLUMNS[field])
            self._columns[field] = row.columns_of(field, USUAL_COLUMNS[field], self.options)
        return self._columns[field]

    def has_task(self, row: Row) -> bool:
        """Return whether one column names topic and document."""
        return TASK in row.cells and not self.columns(row, "topic")

    def require_columns(self, row: Row, *fields: str) -> None:
        """Refuse a table that names no pair, or lacks another of the fields: no row of it can be read."""
        for field in fields if self.has_task(row) else ("topic", "document", *fields):
            if not self.columns(row, field):
                row.lacks(USUAL_COLUMNS[field])

    def id(self, row: Row, field: str) -> str:
        """Return the cell as an id; the error points at the cell."""
        (title,) = self.columns(row, field)
        try:
            return self.ids[field].id(row.cells[title].strip(), row.line, 1)
        except TrecFormatError as error:
            row.fail(title, error.reason)

    def pair(self, row: Row) -> tuple[str, str, str]:
        """Return topic id, document id, and the column to blame when the pair is wrong."""
        if self.has_task(row):
            parts = row.cells[TASK].split()
            if len(parts) != 2:
                row.fail(TASK, f"task must be 'topic_id doc_id', not {row.cells[TASK][:80]!r}")
            return parts[0], parts[1], TASK
        return self.id(row, "topic"), self.id(row, "document"), self.columns(row, "document")[0]

    def grade(self, row: Row, field: str = "grade") -> int:
        (title,) = self.columns(row, field)
        label = row.cells[title].strip()
        if not INTEGER.fullmatch(label) or not MIN_GRADE <= int(label) <= MAX_GRADE:
            row.fail(title, f"{field} must be an integer in {MIN_GRADE}..{MAX_GRADE}, not {label[:40]!r}")
        return int(label)

    def probability(self, row: Row) -> float | None:
        columns = self.columns(row, "probability")
        chance = row.text(columns, "")
        if chance and not (DECIMAL.fullmatch(chance) and LEAST_CHANCE <= float(chance) <= 1):
            row.fail(columns[0], f"probability must be 0.000001 to 1, not {chance[:40]!r}")
        return float(chance) if chance else None


WORDS = {"topic": "topic id", "document": "document id", "assessor": "worker"}


def _rows(source: Source, name: str, faults: Faults | None, options: FileOptions) -> Iterator[Row]:
    return open_rows(source, name, options, max_cell=100_000, faults=faults)


def read_crowd_labels(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[JudgmentRecord]:
    """Return crowd judgments from a table in the style of crowd-kit or of MTurk, or of chosen columns.

    crowd-kit: task, worker, label. MTurk: Input.topic_id, Input.doc_id, WorkerId, Answer.grade.
    ``task`` is "topic_id doc_id"; columns topic_id and doc_id may stand in its place. The label is the
    grade. A worker's pair twice is an error, unless repeats are allowed.
    """
    seen, noting, reading = PairIndex(allows_repeats=allows_repeats), Noting(faults), _Reading(name, options)
    with NotingAll(faults):
        for row in _rows(source, name, faults, options):
            reading.require_columns(row, "assessor", "grade")
            with noting:
                yield _crowd_label(row, seen, reading)


def _crowd_label(row: Row, seen: PairIndex, reading: _Reading) -> JudgmentRecord:
    topic_id, doc_id, blamed = reading.pair(row)
    assessor, grade = reading.id(row, "assessor"), reading.grade(row)
    before = seen.add((topic_id, assessor), doc_id, row.line)
    if before is not None:
        what = f"document {doc_id} of topic {topic_id} and worker {assessor}"
        row.fail(blamed, f"{what} occurs twice (first on line {before})")
    return JudgmentRecord(topic_id, doc_id, assessor, grade)


def read_gold(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[GoldRecord]:
    """Return gold grades: topic_id and doc_id (or task), grade, and a probability from 1e-6 to 1 where known.

    An empty grade is a document that was not chosen. A pair may occur twice: the import compares what is said of it.
    """
    noting, reading = Noting(faults), _Reading(name, options)
    with NotingAll(faults):
        for row in _rows(source, name, faults, options):
            reading.require_columns(row, "grade")
            with noting:
                yield _gold_record(row, reading)


def _gold_record(row: Row, reading: _Reading) -> GoldRecord:
    topic_id, doc_id, _ = reading.pair(row)
    is_graded = bool(row.text(reading.columns(row, "grade"), ""))
    grade = reading.grade(row) if is_graded else None
    return GoldRecord(topic_id, doc_id, grade, reading.probability(row))


def read_pairs(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[PairRecord]:
    """Return the rows of ``topic,doc,judge,truth``: a judge's label of every pair, the truth where somebody looked.

    The truth is empty elsewhere; a column probability may say with which chance a pair was looked at. A pair twice is
    an error, unless repeats are allowed.

    >>> import io
    >>> list(read_pairs(io.BytesIO(b"topic,doc,judge,truth\\n1,a,1,\\n"), "example"))
    [PairRecord(topic_id='1', doc_id='a', judge=1, truth=None, probability=None)]
    """
    seen, noting, reading = PairIndex(allows_repeats=allows_repeats), Noting(faults), _Reading(name, options)
    with NotingAll(faults):
        for row in _rows(source, name, faults, options):
            reading.require_columns(row, "judge", "truth")
            with noting:
                yield _pair_record(row, seen, reading)


def _pair_record(row: Row, seen: PairIndex, reading: _Reading) -> PairRecord:
    topic_id, doc_id, blamed = reading.pair(row)
    judge = reading.grade(row, "judge")
    truth = reading.grade(row, "truth") if row.text(reading.columns(row, "truth"), "") else None
    before = seen.add((topic_id,), doc_id, row.line)
    if before is not None:
        what = f"document {doc_id} of topic {topic_id}"
        row.fail(blamed, f"{what} occurs twice (first on line {before})")
    return PairRecord(topic_id, doc_id, judge, truth, reading.probability(row))


def cell_place(
    source: Source, name: str, index: int, what: str, options: FileOptions
) -> tuple[int, int, str]:
    """Return line, column and sheet of a field in the row of that index."""
    for number, row in enumerate(open_rows(source, name, options)):
        if number == index:
            columns = row.columns_of(what, (*USUAL_COLUMNS[what], TASK), options)
            return row.line, row.column(columns[0]), row.sheet
    raise ValueError(f"{name} has no row {index}")
