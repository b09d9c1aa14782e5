"""Read documents: JSON lines (BEIR and others), CSV and TSV, TREC ``<DOC>``, Cranfield.

One document is held in memory at a time. Whether a document exists already is the database's question.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from judging.faults import Faults, Noting, NotingAll
from judging.textfiles import (
    MEGABYTE,
    Limits,
    Line,
    Readable,
    Source,
    TrecFormatError,
    check_id,
    head_of,
    open_text,
    read_table,
)
from judging.topics import json_object, json_text

MAX_DOCUMENT = 10 * MEGABYTE  # characters of title and text together
ID_KEYS = ("_id", "doc_id", "id", "docno")
TITLE_KEYS = ("title",)
TEXT_KEYS = ("text", "contents", "body")
TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]*)?>")
TITLE_TAGS = {"title", "headline", "head", "hl", "ti", "h3"}
SGML_MARKUP = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,15}(?: [^<>\n]{0,200})?>|<!--[^<>\n]{0,200}-->")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document as its file gives it: untrusted text, or untrusted HTML if ``is_html``."""

    doc_id: str
    title: str
    text: str
    is_html: bool = False


@dataclass(frozen=True)
class _Reading:
    """What all readers need to know."""

    name: str
    is_html: bool
    max_document: int
    faults: Faults | None = None
    noting: Noting = field(default_factory=lambda: Noting(None))

    def record(self, doc_id: str, title: str, text: str, line: int, column: int = 1) -> DocumentRecord:
        """Return the record; NUL and lone surrogates, which no database stores, become U+FFFD."""
        if len(title) + len(text) > self.max_document:
            self.too_long(line)
        title, text = UNSTORABLE.sub("\ufffd", title), UNSTORABLE.sub("\ufffd", text)
        doc_id = check_id(doc_id, "document id", self.name, line, column)
        return DocumentRecord(doc_id, title.strip(), text, self.is_html)

    def too_long(self, line: int) -> None:
        raise TrecFormatError(self.name, line, 1, f"document longer than {self.max_document} characters")


def _jsonl(lines: Iterator[Line], reading: _Reading) -> Iterator[DocumentRecord]:
    """Return the documents of ``{"_id", "title", "text"}``, or the other names in `ID_KEYS`, `TEXT_KEYS`."""
    for line in lines:
        if not line.text.strip():
            continue
        with reading.noting:
            yield _json_record(line, reading)


def _json_record(line: Line, reading: _Reading) -> DocumentRecord:
    value = json_object(line, reading.name)
    for keys in (ID_KEYS, TEXT_KEYS):
        if not any(value.get(key) is not None for key in keys):
            raise TrecFormatError(reading.name, line.number, 1, f"no field named {' or '.join(keys)}")
    doc_id, title, text = (
        json_text(value, keys, line, reading.name) for keys in (ID_KEYS, TITLE_KEYS, TEXT_KEYS)
    )
    return reading.record(doc_id, title, text, line.number)


def _table(lines: Iterator[Line], reading: _Reading) -> Iterator[DocumentRecord]:
    """Return the documents of a CSV or TSV file with a header line."""
    for row in read_table(lines, reading.name, reading.max_document, reading.faults):
        titles = [
            next((title for title in keys if title in row.cells), None)
            for keys in (ID_KEYS, TITLE_KEYS, TEXT_KEYS)
        ]
        for found, keys in zip((titles[0], titles[2]), (ID_KEYS, TEXT_KEYS), strict=True):
            if found is None:
                raise TrecFormatError(reading.name, 1, 1, f"no column named {' or '.join(keys)}")
        doc_id, title, text = (row.cells[found].strip() if found else "" for found in titles)
        with reading.noting:
            try:
                record = reading.record(doc_id, title, text, row.line)
            except TrecFormatError as error:
                row.fail(titles[0] or "", error.reason)
            yield record


class _TrecDocument:
    """A ``<DOC>`` being read."""

    def __init__(self, line: int) -> None:
        self.line = self.id_line = line
        self.id_column = 1
        self.fields: dict[str, list[str]] = {"id": [], "title": [], "text": [], "rest": []}
        self.has_text = False
        self.size = 0
        self.is_bad = False  # its fault is told: nothing of it is kept

    def add(self, field: str, text: str, reading: _Reading) -> None:
        if self.is_bad:
            return
        self.fields[field].append(text)
        self.size += len(text)
        if self.size > reading.max_document:
            self.is_bad = True
            with reading.noting:
                reading.too_long(self.line)

    def finish(self, reading: _Reading) -> DocumentRecord:
        doc_id = "".join(self.fields["id"]).strip()
        texts = {field: "".join(self.fields[field]).strip("\n") for field in ("title", "text", "rest")}
        text = texts["text"] if self.has_text else texts["rest"]
        if not reading.is_html:
            text, texts["title"] = _without_markup(text), _without_markup(texts["title"])
        title = " ".join(texts["title"].split())
        return reading.record(doc_id, title, text, self.id_line, self.id_column)


def _finished_document(document: _TrecDocument | None, reading: _Reading) -> Iterator[DocumentRecord]:
    """Return the document, if there is one and it is as it should be."""
    if document is not None and not document.is_bad:
        with reading.noting:
            yield document.finish(reading)


def _without_markup(text: str) -> str:
    """Return newswire text without its SGML tags, entities resolved."""
    return html.unescape(SGML_MARKUP.sub("", text))


def _trec(lines: Iterator[Line], reading: _Reading) -> Iterator[DocumentRecord]:
    """Return the documents of ``<DOC> <DOCNO>id</DOCNO> ... <TEXT> ... </TEXT> </DOC>``.

    Without ``<TEXT>`` (web collections), the text is what follows ``</DOCHDR>`` or ``</DOCNO>``.
    """
    document: _TrecDocument | None = None
    field = "rest"
    for number, line in lines:
        place = 0
        text = line + "\n"
        for tag in TAG.finditer(text):
            closing, word = bool(tag[1]), tag[2].lower()
            if document is None:
                if text[place : tag.start()].strip() or closing or word != "doc":
                    break
                document, field, place = _TrecDocument(number), "rest", tag.end()
            elif word == "doc":
                document.add(field, text[place : tag.start()], reading)
                if closing:
                    yield from _finished_document(document, reading)
                    document, place = None, tag.end()
                    continue
                with reading.noting:
                    raise TrecFormatError(reading.name, number, tag.start() + 1, "<DOC> inside <DOC>")
                document, field, place = _TrecDocument(number), "rest", tag.end()
            else:
                field, place = _switch(document, field, tag, text, place, number, reading)
        if document is not None:
            document.add(field, text[place:], reading)
        elif text[place:].strip():
            column = place + len(text[place:]) - len(text[place:].lstrip()) + 1
            with reading.noting:
                raise TrecFormatError(reading.name, number, column, "expected <DOC>")
    if document is not None:
        raise TrecFormatError(reading.name, document.line, 1, "<DOC> is never closed")


def _switch(
    document: _TrecDocument,
    field: str,
    tag: re.Match[str],
    text: str,
    place: int,
    number: int,
    reading: _Reading,
) -> tuple[str, int]:
    """Return the field and place after a tag inside ``<DOC>``; unknown tags are part of the text."""
    closing, word = bool(tag[1]), tag[2].lower()
    wanted = {"docno": "id", "text": "text", "dochdr": "header"}.get(word)
    if wanted is None and word in TITLE_TAGS and field in ("rest", "title"):
        wanted = "title"
    if wanted is None or (closing and field not in (wanted, "rest")):
        return field, place
    if field != "header":
        document.add(field, text[place : tag.start()], reading)
    if wanted == "id" and not closing:
        document.id_line, document.id_column = number, tag.start() + 1
    document.has_text = document.has_text or wanted == "text"
    document.fields.setdefault("header", [])
    return ("rest" if closing else wanted), tag.end()


def _cranfield(lines: Iterator[Line], reading: _Reading) -> Iterator[DocumentRecord]:
    """Return the documents of ``.I id .T title .A author .B source .W text``, without author and source."""
    document: _TrecDocument | None = None
    field: str | None = None
    for number, line in lines:
        if line.startswith(".I"):
            yield from _finished_document(document, reading)
            document, field = _TrecDocument(number), None
            document.id_column, document.has_text = 4, True
            document.add("id", line[2:].strip(), reading)
        elif document is None:
            with reading.noting:
                if line.strip():
                    raise TrecFormatError(reading.name, number, 1, "expected .I at the start of a document")
        elif line.rstrip() in (".T", ".A", ".B", ".W"):
            field = {".T": "title", ".W": "text"}.get(line.rstrip())
        elif field is not None:
            document.add(field, line + "\n", reading)
    yield from _finished_document(document, reading)


FORMATS: dict[str, Callable[[Iterator[Line], _Reading], Iterator[DocumentRecord]]] = {
    "jsonl": _jsonl, "table": _table, "trec": _trec, "cranfield": _cranfield,
}  # fmt: skip


def _sniff(start: str) -> str:
    head = start.lstrip().lower()
    if head.startswith("{"):
        return "jsonl"
    if head.startswith("<doc"):
        return "trec"
    return "cranfield" if head.startswith(".i ") else "table"


def read_documents(
    source: Source | Readable,
    name: str,
    *,
    is_html: bool = False,
    file_format: str | None = None,
    max_document: int = MAX_DOCUMENT,
    faults: Faults | None = None,
) -> Iterator[DocumentRecord]:
    """Return the documents of a file, in its order; the format is sniffed from the first line with text.

    ``file_format`` is one of jsonl, table (CSV or TSV with a header), trec, cranfield. ``is_html`` is the
    collection's own declaration, never guessed. Errors name line and column: an empty id or one with white
    space, a missing field, a document of more than ``max_document`` characters, all that `open_text` refuses. With
    ``faults`` what is wrong is added to them, and the good documents are returned.

    >>> import io
    >>> next(read_documents(io.BytesIO(b'{"_id": "d1", "title": "T", "text": "x"}'), "example"))
    DocumentRecord(doc_id='d1', title='T', text='x', is_html=False)
    """
    if file_format is not None and file_format not in FORMATS:
        raise ValueError(f"file_format must be one of {', '.join(FORMATS)}, not {file_format!r}")
    # A character of JSON may take six bytes as an escape.
    limits = Limits(max_bytes=64 << 30, max_line=6 * max_document + MEGABYTE)
    reading = _Reading(name, is_html, max_document, faults, Noting(faults))
    with NotingAll(faults):
        lines = open_text(source, name, limits, faults)
        head = head_of(lines, name, "documents")
        read = FORMATS[file_format or _sniff(head[-1].text)]
        empty = True
        for record in read(chain(head, lines), reading):
            empty = False
            yield record
        if empty and not faults:
            raise TrecFormatError(name, head[-1].number, 1, "no documents in the file")
