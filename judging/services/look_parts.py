"""What a look finds in one part of an upload: rows, records, ids, grades, faults. Nothing is changed."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import polars as pl

from judging.faults import Faults, TrecFormatError
from judging.file_options import Changes, FileOptions
from judging.formats.kinds import RunFormat
from judging.formats.run_names import format_in, read_named_beginning
from judging.records import DocumentRecord, read_documents
from judging.run_columns import RunColumns
from judging.run_tables import RunFile
from judging.sanitise import sanitise_documents
from judging.scores import read_scores
from judging.services.judgment_formats import DEFAULT_FORMAT, judgment_format
from judging.services.look_ids import DOCUMENTS, TOPICS, Ids
from judging.services.sources import EVERY, Progress, one_line
from judging.services.upload_parts import Part
from judging.topics import read_topics
from judging.zipped import open_zip, read_pages

N_RECORDS, N_DOCUMENTS = 5, 3
LONGEST_CELL = 300  # characters of a record's cell
LONGEST_PREVIEW = 100_000  # characters of a document
DEPTH = 100  # ranks of a topic in which a run's documents are looked for
MOST_LENGTHS = 20_000  # of which the median is taken
Record = TypeVar("Record")


@dataclass
class Finding:
    """What was found in a part."""

    n_rows: int = 0
    heads: tuple[str, ...] = ()
    records: list[tuple[str, ...]] = field(default_factory=list)
    documents: list[DocumentRecord] = field(default_factory=list)
    grades: Counter[int] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    tag: str = ""
    needs_assessors: bool = False
    faults: Faults = field(default_factory=Faults)
    changes: Changes = field(default_factory=Changes)

    def show(self, *cells: Any) -> None:
        """Keep the first records as they are read."""
        if len(self.records) < N_RECORDS:
            self.records.append(tuple(str(cell)[:LONGEST_CELL] for cell in cells))

    def measure(self, text: str) -> None:
        if len(self.lengths) < MOST_LENGTHS:
            self.lengths.append(len(text))

    def median_length(self) -> float:
        return float(statistics.median(self.lengths)) if self.lengths else 0.0

    def previews(self) -> list[dict[str, str]]:
        """Return the first documents as assessors will see them: made safe, as at an import."""
        raw = [pair for one in self.documents for pair in ((one.title, one.is_html), (one.text, one.is_html))]
        safe = sanitise_documents(raw)
        return [
            {
                "doc_id": one.doc_id,
                "title": one_line(title.text),
                "text": text.text[:LONGEST_PREVIEW],
                "html": text.html if len(text.html) <= LONGEST_PREVIEW else "",
            }
            for one, title, text in zip(self.documents, safe, safe, strict=False)
        ]


@dataclass(frozen=True)
class Looking:
    """A part that is looked at as a kind of file."""

    part: Part
    number: int
    file_format: str | None
    options: FileOptions
    chosen: Mapping[str, Any]
    ids: Ids
    progress: Progress | None = None

    def count_records(self, records: Iterable[Record], finding: Finding, what: str) -> Iterator[Record]:
        """Yield the records, count them, and say how far the look is."""
        for index, record in enumerate(records):
            if self.progress and index % EVERY == 0:
                self.progress(0, 0, f"{self.part.name}: {index:,} {what}")
            finding.n_rows = index + 1
            yield record


def _topics(look: Looking) -> Finding:
    finding = Finding(heads=("id", "title", "description", "narrative"))
    read = read_topics(
        look.part.path, look.part.name, look.file_format, finding.faults, look.options, finding.changes
    )
    for index, topic in enumerate(look.count_records(read, finding, "topics")):
        finding.show(topic.topic_id, topic.title, topic.description, topic.narrative)
        finding.measure(topic.title)
        look.ids.brings(look.number, TOPICS, [topic.topic_id], index)
    return finding


def _documents(look: Looking) -> Finding:
    finding = Finding(heads=("id", "title", "text"))
    for index, document in enumerate(
        look.count_records(_document_records(look, finding), finding, "documents")
    ):
        finding.show(document.doc_id, document.title, document.text)
        if len(finding.documents) < N_DOCUMENTS:
            finding.documents.append(document)
        finding.measure(document.text)
        look.ids.brings(look.number, DOCUMENTS, [document.doc_id], index)
    return finding


def _document_records(look: Looking, finding: Finding) -> Iterator[DocumentRecord]:
    part = look.part
    if part.members:
        with open_zip(part.path, part.upload.name) as archive:
            yield from read_pages(
                archive, part.members, faults=finding.faults, options=look.options, changes=finding.changes
            )
        return
    yield from read_documents(
        part.path,
        part.name,
        is_html=look.options.is_html,
        file_format=look.file_format,
        faults=finding.faults,
        options=look.options,
        changes=finding.changes,
    )


@dataclass(frozen=True)
class RunBeginning:
    """The first ranks of a run, and how many rows all of it has."""

    columns: RunColumns
    n_rows: int


@dataclass(frozen=True)
class RunReading:
    """How the run of a part is read."""

    part: Part
    form: RunFormat
    encoding: str = ""
    run_name: str = ""

    def read_beginning(self) -> RunBeginning | None:
        """Return the beginning of the run, all of which is checked; None where something is wrong in it."""
        self.part.sha256()  # here, where another run may be read meanwhile; it is remembered
        try:
            return RunBeginning(*read_named_beginning(self.form, self._file(None), DEPTH, self.run_name))
        except TrecFormatError:
            return None  # looked at once more, for all that is wrong

    def find_faults(self, faults: Faults) -> None:
        self.form.find_faults(self._file(faults), self.run_name)

    def _file(self, faults: Faults | None) -> RunFile:
        return RunFile(self.part.path, self.part.name, encoding=self.encoding, faults=faults)


def look_at_run(reading: RunReading, run: RunBeginning | None) -> Finding:
    """Return what is in a run that was read, or what is wrong in one that could not be."""
    finding = Finding(heads=("topic", "document", "rank", "score"))
    if run is None:
        reading.find_faults(finding.faults)
        return finding
    columns = run.columns
    finding.n_rows, finding.tag = run.n_rows, columns.run_tag
    for row in range(min(N_RECORDS, columns.offsets[1] if len(columns.offsets) > 1 else 0)):
        finding.show(columns.topic_ids[0], columns.doc_ids[row], row + 1, f"{columns.scores[row]:g}")
    return finding


def needs_of_run(columns: RunColumns, part: int, ids: Ids) -> None:
    """Tell the ids which topics a run names, and which documents in the first ranks of each."""
    ids.needs_all(part, TOPICS, list(columns.topic_ids))
    ranks = np.arange(len(columns.scores)) - np.repeat(columns.offsets[:-1], np.diff(columns.offsets))
    first = columns.doc_ids.filter(pl.Series(ranks < DEPTH))
    ids.needs_all(part, DOCUMENTS, first.unique().to_list())


def _runs(look: Looking) -> Finding:
    form = format_in(None, look.file_format)
    reading = RunReading(look.part, form, look.options.encoding, str(look.chosen.get("run_name") or ""))
    run = reading.read_beginning()
    if run is not None:
        needs_of_run(run.columns, look.number, look.ids)
    return look_at_run(reading, run)


def _scores(look: Looking) -> Finding:
    finding = Finding(heads=("topic", "document", "score"))
    frame = read_scores(look.part.path, look.part.name, faults=finding.faults, encoding=look.options.encoding)
    finding.n_rows = frame.height
    for topic_id, doc_id, score in frame.head(N_RECORDS).rows():
        finding.show(topic_id, doc_id, f"{score:g}")
    look.ids.needs(look.number, TOPICS, frame["topic_id"].unique())
    return finding


def _judgments(look: Looking) -> Finding:
    form = judgment_format(look.file_format or DEFAULT_FORMAT)
    finding = Finding(heads=("topic", "document", "grade", "assessor"))
    finding.needs_assessors = form.sample is not None
    repeats = look.chosen.get("repeats", "reject") != "reject"
    read: Iterator[Any] = form.read(
        look.part.path,
        look.part.name,
        allows_repeats=repeats,
        faults=finding.faults,
        options=look.options,
    )
    topics: set[str] = set()
    for one in look.count_records(read, finding, "judgments"):
        finding.show(one.topic_id, one.doc_id, _grade_text(one.grade), getattr(one, "assessor", ""))
        if one.grade is not None:
            finding.grades[one.grade] += 1
        topics.add(one.topic_id)
        look.ids.needs(look.number, DOCUMENTS, [one.doc_id])
    look.ids.needs(look.number, TOPICS, topics)
    return finding


def _grade_text(grade: int | None) -> str:
    return "" if grade is None else str(grade)


def _images(look: Looking) -> Finding:
    finding = Finding(heads=("image",), n_rows=look.part.n_files)
    for member in look.part.members or ():
        finding.show(member.name)
    if not look.part.members:
        finding.show(look.part.name)
    return finding


LOOKS: dict[str, Callable[[Looking], Finding]] = {
    "topics": _topics,
    "documents": _documents,
    "runs": _runs,
    "scores": _scores,
    "judgments": _judgments,
    "images": _images,
}


def raw_lines(part: Part) -> list[tuple[str, ...]]:
    """Return the first lines of what nobody has said a kind of, as they are."""
    text = part.head[:20_000].decode("utf-8", "replace")
    return [(line[:LONGEST_CELL],) for line in text.splitlines()[:N_RECORDS]]
