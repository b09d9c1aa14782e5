"""Read topics: TREC SGML and XML, TSV, BEIR JSONL, and the queries of Cranfield."""

import json
import math
import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any
from xml.parsers import expat

from judging.faults import Faults, Noting, NotingAll
from judging.textfiles import Limits, Line, Readable, Source, TrecFormatError, check_id, head_of, open_text

LIMITS = Limits(max_bytes=256 << 20)
MAX_TOPIC = 1_000_000  # characters
LARGEST_WEIGHT = 1e100
SGML_TAG = re.compile(r"<(/?)(top|num|title|desc|narr|dom|smry|con|fac|def|nat|time)>", re.IGNORECASE)
LABEL = re.compile(r"^\s*(?:number|topic|description|narrative)\s*:\s*", re.IGNORECASE)
FIELDS = {
    "num": "topic_id", "title": "title", "query": "title",
    "desc": "description", "description": "description", "question": "description",
    "narr": "narrative", "narrative": "narrative",
}  # fmt: skip
JSON_KEYS = (
    ("_id", "topic_id", "query_id", "id"), ("title", "text", "query"), ("description",), ("narrative",),
)  # fmt: skip


@dataclass(frozen=True)
class TopicRecord:
    """An information need as its file gives it; the id is a string even when it looks like a number."""

    topic_id: str
    title: str
    description: str = ""
    narrative: str = ""
    weight: float | None = None  # of the traffic, in any unit


@dataclass
class _Draft:
    """A topic being read: the texts by field, and where it and its fields began."""

    line: int
    column: int
    parts: dict[str, list[str]]
    places: dict[str, tuple[int, int]]
    size: int = 0

    def begin(self, field: str, line: int, column: int) -> None:
        self.places.setdefault(field, (line, column))
        self.parts.setdefault(field, [])

    def add(self, field: str, text: str, name: str, line: int) -> None:
        if self.size > MAX_TOPIC:
            return  # told already
        self.parts[field].append(text)
        self.size += len(text)
        if self.size > MAX_TOPIC:
            raise TrecFormatError(name, line, 1, f"topic longer than {MAX_TOPIC} characters")

    def text(self, field: str) -> str:
        raw = " ".join(" ".join(self.parts.get(field, [])).split())
        return LABEL.sub("", raw, count=1)

    def finish(self, name: str) -> tuple[TopicRecord, int, int]:
        line, column = self.places.get("topic_id", (self.line, self.column))
        topic_id = check_id(self.text("topic_id"), "topic id", name, line, column)
        title = self.text("title")
        if not title:
            place = self.places.get("title", (self.line, self.column))
            raise TrecFormatError(name, *place, f"topic {topic_id} has an empty title")
        return TopicRecord(topic_id, title, self.text("description"), self.text("narrative")), line, column


Placed = tuple[TopicRecord, int, int]


def _draft(line: int, column: int) -> _Draft:
    return _Draft(line, column, {}, {})


def _finished_topic(draft: _Draft | None, name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topic, if there is one and it is as it should be."""
    if draft is not None and draft.size <= MAX_TOPIC:
        with noting:
            yield draft.finish(name)


def _sgml(lines: Iterator[Line], name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topics of ``<top> <num> <title> <desc> <narr>``, whose inner tags need not be closed."""
    draft: _Draft | None = None
    field: str | None = None
    for number, text in lines:
        end = 0
        for tag in SGML_TAG.finditer(text):
            with noting:
                _add_text(draft, field, text[end : tag.start()], name, number, end)
            end, closing, word = tag.end(), bool(tag[1]), tag[2].lower()
            field = None
            if word == "top":
                if draft is not None and not (closing and not draft.parts):
                    yield from _finished_topic(draft, name, noting)
                draft = None if closing else _draft(number, tag.start() + 1)
            elif draft is None:
                with noting:
                    raise TrecFormatError(name, number, tag.start() + 1, f"<{word}> outside <top>")
            elif not closing and word in FIELDS:
                field = FIELDS[word]
                draft.begin(field, number, tag.start() + 1)
        with noting:
            _add_text(draft, field, text[end:], name, number, end)
    if draft is not None:
        raise TrecFormatError(name, draft.line, draft.column, "<top> is never closed")


def _add_text(draft: _Draft | None, field: str | None, text: str, name: str, line: int, before: int) -> None:
    """Add text to the open field; text outside any topic is an error, text outside a field is not ours."""
    if draft is None and text.strip():
        column = before + len(text) - len(text.lstrip()) + 1
        raise TrecFormatError(name, line, column, "text outside <top> and </top>")
    if draft is not None and field is not None:
        draft.add(field, text, name, line)


class _XmlTopics:
    """Collects topics while expat reads; document types, and with them entities, are refused."""

    def __init__(self, name: str, noting: Noting) -> None:
        self.name, self.noting, self.done = name, noting, list[Placed]()
        self.draft: _Draft | None = None
        self.field: str | None = None
        self.parser = expat.ParserCreate(encoding="utf-8")
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters

    def place(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def doctype(self, *_: object) -> None:
        raise TrecFormatError(self.name, *self.place(), "document types and entities are not allowed")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        word = tag.lower()
        if word in ("topic", "top"):
            if self.draft is not None:
                raise TrecFormatError(self.name, *self.place(), "a topic inside a topic")
            self.draft = _draft(*self.place())
            number = attributes.get("number") or attributes.get("id")
            if number is not None:
                self.draft.begin("topic_id", *self.place())
                self.draft.add("topic_id", number, self.name, self.place()[0])
        elif self.draft is not None and word in FIELDS and self.field is None:
            self.field = FIELDS[word]
            self.draft.begin(self.field, *self.place())

    def end(self, tag: str) -> None:
        word = tag.lower()
        if word in ("topic", "top") and self.draft is not None:
            self.done += _finished_topic(self.draft, self.name, self.noting)
            self.draft = self.field = None
        elif FIELDS.get(word) == self.field:
            self.field = None

    def characters(self, text: str) -> None:
        if self.draft is not None and self.field is not None:
            with self.noting:
                self.draft.add(self.field, text, self.name, self.place()[0])


def _xml(lines: Iterator[Line], name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topics of ``<topics><topic number="1"><query>...``, whatever the root is called."""
    reader = _XmlTopics(name, noting)
    try:
        for line in lines:
            reader.parser.Parse((line.text + "\n").encode(), False)
            yield from reader.done
            reader.done.clear()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = f"malformed XML ({expat.ErrorString(error.code)})"
        raise TrecFormatError(name, error.lineno, error.offset + 1, reason) from None


def _tsv(lines: Iterator[Line], name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topics of ``id<TAB>text``, with ``<TAB>weight`` where the file has weights."""
    for line in lines:
        if line.text.strip():
            with noting:
                yield _tsv_topic(line, name)


def _tsv_topic(line: Line, name: str) -> Placed:
    number, text = line
    cells = text.split("\t")
    if len(cells) not in (2, 3):
        column = len("\t".join(cells[:3])) + 1
        reason = f"expected id<TAB>text, or id<TAB>text<TAB>weight, found {len(cells)} columns"
        raise TrecFormatError(name, number, column, reason)
    topic_id = check_id(cells[0], "topic id", name, number, 1)
    if not cells[1].strip():
        raise TrecFormatError(name, number, len(cells[0]) + 2, f"topic {topic_id} has an empty title")
    place = (name, number, len("\t".join(cells[:2])) + 2)
    weight = _weight(cells[2], *place) if len(cells) == 3 else None
    return TopicRecord(topic_id, cells[1].strip(), weight=weight), number, 1


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


def json_object(line: Line, name: str) -> dict[str, Any]:
    """Return the JSON object on one line; malformed, too deep, or no object is an error with its column."""
    try:
        value = json.loads(line.text)
    except json.JSONDecodeError as error:
        raise TrecFormatError(name, line.number, error.colno, f"malformed JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise TrecFormatError(name, line.number, 1, f"JSON refused ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise TrecFormatError(name, line.number, 1, "expected a JSON object")
    return value


def json_text(value: dict[str, Any], keys: tuple[str, ...], line: Line, name: str) -> str:
    """Return the first of the keys that is there, as a string; numbers are allowed (ids), other types not."""
    for key in keys:
        found = value.get(key)
        if found is None:
            continue
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise TrecFormatError(name, line.number, 1, f"{key} must be a string, not {type(found).__name__}")
        return str(found)
    return ""


def _jsonl(lines: Iterator[Line], name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topics of JSON lines: BEIR's {_id, text} and what ir_datasets exports."""
    for line in lines:
        if line.text.strip():
            with noting:
                yield _json_topic(line, name)


def _json_topic(line: Line, name: str) -> Placed:
    value = json_object(line, name)
    found = [json_text(value, keys, line, name) for keys in JSON_KEYS]
    if any("\0" in text or re.search("[\ud800-\udfff]", text) for text in found):
        raise TrecFormatError(name, line.number, 1, "a text holds NUL or a lone surrogate")
    topic_id = check_id(found[0], "topic id (_id, topic_id, query_id or id)", name, line.number, 1)
    if not found[1].strip():
        raise TrecFormatError(name, line.number, 1, f"topic {topic_id} has an empty title")
    given = value.get("weight")
    weight = None if given is None else _weight(given, name, line.number, 1)
    title, description, narrative = (text.strip() for text in found[1:])
    return TopicRecord(topic_id, title, description, narrative, weight), line.number, 1


def _cranfield(lines: Iterator[Line], name: str, noting: Noting) -> Iterator[Placed]:
    """Return the queries of ``.I``/``.W`` numbered 1, 2, ...: its qrels use the ordinal, not ``.I``."""
    draft: _Draft | None = None
    field: str | None = None
    ordinal = 0
    for number, text in lines:
        if text.startswith(".I"):
            yield from _finished_topic(draft, name, noting)
            ordinal, draft, field = ordinal + 1, _draft(number, 1), None
            draft.begin("topic_id", number, 1)
            draft.add("topic_id", str(ordinal), name, number)
        elif draft is None:
            with noting:
                if text.strip():
                    raise TrecFormatError(name, number, 1, "expected .I at the start of a query")
        elif text.strip() == ".W":
            field = "title"
            draft.begin(field, number, 1)
        elif field is not None:
            with noting:
                draft.add(field, text, name, number)
        elif text.strip():
            with noting:
                raise TrecFormatError(name, number, 1, "expected .W before the text of a query")
    yield from _finished_topic(draft, name, noting)


FORMATS: dict[str, Callable[[Iterator[Line], str, Noting], Iterator[Placed]]] = {
    "sgml": _sgml, "xml": _xml, "tsv": _tsv, "jsonl": _jsonl, "cranfield": _cranfield,
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
    return "tsv"


def read_topics(
    source: Source | Readable, name: str, file_format: str | None = None, faults: Faults | None = None
) -> Iterator[TopicRecord]:
    """Return the topics of a file, in its order; the format is sniffed from the first line with text.

    ``file_format`` is one of sgml, xml, tsv, jsonl, cranfield. Cranfield is never guessed, because its
    queries are numbered by their ordinal and not by their ``.I`` id. Duplicate ids and empty
    titles are errors. With ``faults`` what is wrong is added to them, and the good topics are returned.

    >>> import io
    >>> next(read_topics(io.BytesIO(b"1\\tblack bear attacks"), "example"))
    TopicRecord(topic_id='1', title='black bear attacks', description='', narrative='', weight=None)
    """
    if file_format is not None and file_format not in FORMATS:
        raise ValueError(f"file_format must be one of {', '.join(FORMATS)}, not {file_format!r}")
    noting = Noting(faults)
    first: dict[str, int] = {}
    is_unweighted = True
    with NotingAll(faults):
        lines = open_text(source, name, LIMITS, faults)
        head = head_of(lines, name, "topics")
        read = FORMATS[file_format or _sniff(head[-1].text, name, head[-1].number)]
        for topic, number, column in read(chain(head, lines), name, noting):
            with noting:
                if topic.topic_id in first:
                    reason = f"topic {topic.topic_id} occurs twice (first on line {first[topic.topic_id]})"
                    raise TrecFormatError(name, number, column, reason)
                if first and (topic.weight is None) != is_unweighted:
                    raise TrecFormatError(
                        name, number, column, "some topics have a weight and some have none"
                    )
                is_unweighted = topic.weight is None
                first[topic.topic_id] = number
                yield topic
        if not first and not faults:
            raise TrecFormatError(name, head[-1].number, 1, "no topics in the file")
