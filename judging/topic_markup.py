"""Topics in the markup of TREC (SGML, XML) and of Cranfield."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.parsers import expat

from judging.faults import Noting
from judging.textfiles import Line, TrecFormatError, check_id
from judging.topic_records import MAX_TOPIC, Placed, Reading, TopicRecord

SGML_TAG = re.compile(r"<(/?)(top|num|title|desc|narr|dom|smry|con|fac|def|nat|time)>", re.IGNORECASE)
LABEL = re.compile(r"^\s*(?:number|topic|description|narrative)\s*:\s*", re.IGNORECASE)
FIELDS = {
    "num": "topic_id", "title": "title", "query": "title",
    "desc": "description", "description": "description", "question": "description",
    "narr": "narrative", "narrative": "narrative",
}  # fmt: skip


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


def _draft(line: int, column: int) -> _Draft:
    return _Draft(line, column, {}, {})


def _finished_topic(draft: _Draft | None, name: str, noting: Noting) -> Iterator[Placed]:
    """Return the topic, if there is one and it is as it should be."""
    if draft is not None and draft.size <= MAX_TOPIC:
        with noting:
            yield draft.finish(name)


def read_sgml(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the topics of ``<top> <num> <title> <desc> <narr>``, whose inner tags need not be closed."""
    name, noting = reading.name, reading.noting
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


def read_xml(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the topics of ``<topics><topic number="1"><query>...``, whatever the root is called."""
    name = reading.name
    reader = _XmlTopics(name, reading.noting)
    try:
        for line in lines:
            reader.parser.Parse((line.text + "\n").encode(), False)
            yield from reader.done
            reader.done.clear()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = f"malformed XML ({expat.ErrorString(error.code)})"
        raise TrecFormatError(name, error.lineno, error.offset + 1, reason) from None


def read_cranfield(lines: Iterator[Line], reading: Reading) -> Iterator[Placed]:
    """Return the queries of ``.I``/``.W`` numbered 1, 2, ...: its qrels use the ordinal, not ``.I``."""
    name, noting = reading.name, reading.noting
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
