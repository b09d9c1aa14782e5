"""Read topics: TREC SGML and XML, tables, TSV without a header, JSON lines and arrays, the queries of Cranfield."""

import math
import re
from collections.abc import Callable, Iterator, Set
from itertools import chain

from judging.faults import Faults, NotingAll
from judging.file_options import PLAIN, Changes, FileOptions
from judging.json_files import joined_text, json_object, json_text, open_objects
from judging.sheets import is_sheet
from judging.tables import Row, header_delimiter, read_table, sheet_rows
from judging.textfiles import (
    Limits,
    Line,
    Readable,
    ReplayedStream,
    Source,
    TrecFormatError,
    binary,
    check_id,
    head_of,
    open_text,
)
from judging.topic_markup import read_cranfield, read_sgml, read_xml
from judging.topic_records import MAX_TOPIC, Placed
from judging.topic_records import Reading as Reading
from judging.topic_records import TopicRecord as TopicRecord

LIMITS = Limits(max_bytes=256 << 20)
LARGEST_WEIGHT = 1e100
# The usual names of fields in JSON, and of columns in tables.
KEYS = {
    "id": ("_id", "topic_id", "query_id", "id"), "title": ("title", "text", "query"),
    "description": ("description",), "narrative": ("narrative",), "weight": ("weight",),
}  # fmt: skip
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def _tsv(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the topics of ``id<TAB>text``, with ``<TAB>weight`` where the file has weights; numbered, without id."""
    for line in lines:
        if line.text.strip():
            number = reading.ids.number() if reading.options.numbers_rows else None
            with reading.noting:
                yield _tsv_topic(line, number, reading)


def _tsv_topic(line: Line, row_number: str | None, reading: Reading) -> Placed:
    name, (number, text) = reading.name, line
    cells = text.split("\t")
    if row_number is not None:
        cells, text = [row_number, *cells], f"{row_number}\t{text}"
    if len(cells) not in (2, 3):
        column = len("\t".join(cells[:3])) + 1
        reason = f"expected id<TAB>text, or id<TAB>text<TAB>weight, found {len(cells)} columns"
        raise TrecFormatError(name, number, column, reason)
    topic_id = reading.ids.id(cells[0], number, 1)
    if not cells[1].strip():
        raise TrecFormatError(name, number, len(cells[0]) + 2, f"topic {topic_id} has an empty title")
    place = (name, number, len("\t".join(cells[:2])) + 2)
    weight = _weight(cells[2], *place) if len(cells) == 3 else None
    return TopicRecord(topic_id, cells[1].strip(), weight=weight), number, 1


def _table(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the topics of a table with a header."""
    return _rows(
        read_table(lines, reading.name, MAX_TOPIC, reading.faults, reading.options.delimiter), reading
    )


def _rows(rows: Iterator[Row], reading: Reading) -> Iterator[Placed]:
    options = reading.options
    for row in rows:
        number = reading.ids.number() if options.numbers_rows else None
        ids = () if number else row.required_columns("id", KEYS["id"], options)
        titles = row.required_columns("title", KEYS["title"], options)
        reading.sheet = row.sheet
        with reading.noting:
            yield _row_topic(row, number, ids, titles, reading)


def _row_topic(
    row: Row, number: str | None, ids: tuple[str, ...], titles: tuple[str, ...], reading: Reading
) -> Placed:
    name, options = reading.name, reading.options
    blamed = (ids or titles)[0]
    if number is None:
        try:
            number = reading.ids.id(row.cells[ids[0]].strip(), row.line, 1)
        except TrecFormatError as error:
            row.fail(ids[0], error.reason)
    title = row.text(titles, " ")
    if not title:
        row.fail(titles[0], f"topic {number} has an empty title")
    description, narrative = (
        row.text(row.columns_of(field, KEYS[field], options), "\n\n")
        for field in ("description", "narrative")
    )
    if len(title) + len(description) + len(narrative) > MAX_TOPIC:
        raise TrecFormatError(name, row.line, 1, f"topic longer than {MAX_TOPIC} characters", row.sheet)
    weights = row.columns_of("weight", KEYS["weight"], options)
    given = row.text(weights, "")
    try:
        weight = _weight(given, name, row.line, 1) if given else None
    except TrecFormatError as error:
        row.fail(weights[0], error.reason)
    return TopicRecord(number, title, description, narrative, weight), row.line, row.column(blamed)


def weight_fault(topic: TopicRecord, has_weight: Set[bool]) -> str:
    """Return why the topic cannot stand beside others, of which is said whether they have weights; empty if it can.

    >>> weight_fault(TopicRecord("1", "bears"), {True})
    "the topic has no weight, and the collection's topics have one: give all or none"
    >>> weight_fault(TopicRecord("1", "bears", weight=1.0), set())
    ''
    """
    if has_weight == {True} and topic.weight is None:
        return "the topic has no weight, and the collection's topics have one: give all or none"
    if has_weight == {False} and topic.weight is not None:
        return "the topic has a weight, and the collection's topics have none: give all or none"
    return ""


def _weight(value: object, name: str, line: int, column: int) -> float:
    """Return the topic's weight; it must be a finite number above 0."""
    try:
        weight = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        weight = math.nan
    if isinstance(value, bool) or not 0 < weight <= LARGEST_WEIGHT:
        shown = str(value).strip()[:40]
        raise TrecFormatError(name, line, column, f"weight must be a number above 0, got {shown!r}")
    return weight


def _json(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the topics of JSON objects: BEIR's {_id, text} and what ir_datasets exports."""
    for line in lines:
        if line.text.strip():
            number = reading.ids.number() if reading.options.numbers_rows else None
            with reading.noting:
                yield _json_topic(line, number, reading)


def _json_topic(line: Line, number: str | None, reading: Reading) -> Placed:
    name, mapping = reading.name, reading.options.mapping
    value = json_object(line, name)
    found = {
        field: joined_text(value, mapping[field], line, name, " " if field == "title" else "\n\n")
        if field in mapping
        else json_text(value, KEYS[field], line, name)
        for field in ("id", "title", "description", "narrative")
    }
    if any(UNSTORABLE.search(text) for text in found.values()):
        raise TrecFormatError(name, line.number, 1, "a text holds NUL or a lone surrogate")
    topic_id = number or _json_id(found["id"], line, reading)
    if not found["title"].strip():
        raise TrecFormatError(name, line.number, 1, f"topic {topic_id} has an empty title")
    given = value.get(*mapping.get("weight", KEYS["weight"]))
    weight = None if given is None else _weight(given, name, line.number, 1)
    title, description, narrative = (found[field].strip() for field in ("title", "description", "narrative"))
    return TopicRecord(topic_id, title, description, narrative, weight), line.number, 1


def _json_id(value: str, line: Line, reading: Reading) -> str:
    """Return the id; one that is missing is told by the names that it may have."""
    if value:
        return reading.ids.id(value, line.number, 1)
    names = ", ".join(KEYS["id"][:-1]) + f" or {KEYS['id'][-1]}"
    return check_id(value, f"topic id ({names})", reading.name, line.number, 1)


FORMATS: dict[str, Callable[[Iterator[Line], Reading], Iterator[Placed]]] = {
    "sgml": read_sgml, "xml": read_xml, "tsv": _tsv, "table": _table, "jsonl": _json, "json": _json,
    "cranfield": read_cranfield,
}  # fmt: skip


def _sniff(start: str, name: str, line: int) -> str:
    """Return the format that the first line with text belongs to."""
    head = start.lstrip().lower()
    if head.startswith("{"):
        return "jsonl"
    if head.startswith("<top>"):
        return "sgml"
    if head.startswith("<"):
        return "xml"
    if head.startswith(".i "):
        reason = "looks like Cranfield, whose queries are numbered by ordinal; name the format 'cranfield'"
        raise TrecFormatError(name, line, 1, reason)
    return "table" if _is_header(start) else "tsv"


def _is_header(line: str) -> bool:
    """Return whether the line names a column of ids and one of titles, by their usual names."""
    titles = {title.strip().strip('"') for title in line.split(header_delimiter(line))}
    return all(titles.intersection(KEYS[field]) for field in ("id", "title"))


def read_topics(
    source: Source | Readable,
    name: str,
    file_format: str | None = None,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
    changes: Changes | None = None,
) -> Iterator[TopicRecord]:
    """Return the topics of a file, in its order; the format is sniffed from the first line with text.

    ``file_format`` is one of sgml, xml, tsv (without a header), table (with one, or a spreadsheet), jsonl, json (an
    array), cranfield. Cranfield is never guessed, because its queries are numbered by their ordinal and not by their
    ``.I`` id. Duplicate ids and empty titles are errors. With ``faults`` what is wrong is added to them, and the good
    topics are returned. The `changes` are told what became of ids.

    >>> import io
    >>> next(read_topics(io.BytesIO(b"1\\tblack bear attacks"), "example"))
    TopicRecord(topic_id='1', title='black bear attacks', description='', narrative='', weight=None)
    """
    if file_format is not None and file_format not in FORMATS:
        raise ValueError(f"file_format must be one of {', '.join(FORMATS)}, not {file_format!r}")
    reading = Reading(name, faults, options, changes)
    first: dict[str, int] = {}
    is_unweighted = True
    with NotingAll(faults):
        for topic, number, column in placed_topics(source, file_format, reading):
            with reading.noting:
                if topic.topic_id in first:
                    reason = f"topic {topic.topic_id} occurs twice (first on line {first[topic.topic_id]})"
                    raise TrecFormatError(name, number, column, reason, reading.sheet)
                if first and (topic.weight is None) != is_unweighted:
                    reason = "some topics have a weight and some have none"
                    raise TrecFormatError(name, number, column, reason, reading.sheet)
                is_unweighted = topic.weight is None
                first[topic.topic_id] = number
                yield topic
        if not first and not faults:
            raise TrecFormatError(name, 1, 1, "no topics in the file")


def placed_topics(source: Source | Readable, file_format: str | None, reading: Reading) -> Iterator[Placed]:
    """Return the topics with line and column, not compared with each other."""
    name, encoding = reading.name, reading.options.encoding
    with binary(source) as stream:
        replayed = ReplayedStream(stream, 4)
        if is_sheet(replayed.head) and file_format in (None, "table"):
            yield from _rows(sheet_rows(replayed, name, reading.faults), reading)
            return
        opened = open_objects if file_format in (None, "json", "jsonl") else open_text
        lines = opened(replayed, name, LIMITS, reading.faults, encoding)
        head = head_of(lines, name, "topics", reading.faults)
        if not head:
            return
        read = FORMATS[file_format or _sniff(head[-1].text, name, head[-1].number)]
        yield from read(chain(head, lines), reading)
