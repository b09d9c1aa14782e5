"""Read documents: JSON lines and arrays (BEIR and others), tables, TREC ``<DOC>``, Cranfield, single pages.

One document is held in memory at a time. Whether a document exists already is the database's question.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from judging.faults import Faults, Noting, NotingAll
from judging.file_options import PLAIN, Changes, FileOptions, Ids
from judging.json_files import joined_text, json_object, json_text, open_objects
from judging.pages import page_title
from judging.sheets import is_sheet
from judging.tables import Row, read_table, sheet_rows
from judging.textfiles import (
    MEGABYTE,
    Limits,
    Line,
    Readable,
    ReplayedStream,
    Source,
    TrecFormatError,
    binary,
    head_of,
    open_text,
)

MAX_DOCUMENT = 10 * MEGABYTE  # characters of title and text together
# The usual names of fields in JSON, and of columns in tables; what stands between texts that are joined.
KEYS = {"id": ("_id", "doc_id", "id", "docno"), "title": ("title",), "text": ("text", "contents", "body")}
BETWEEN = {"id": "", "title": " ", "text": "\n\n"}
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


class Reading:
    """What the readers of one file need to know."""

    def __init__(
        self,
        name: str,
        *,
        is_html: bool = False,
        max_document: int = MAX_DOCUMENT,
        faults: Faults | None = None,
        options: FileOptions = PLAIN,
        changes: Changes | None = None,
    ) -> None:
        self.name, self.is_html, self.max_document = name, is_html or options.is_html, max_document
        self.faults, self.noting, self.options = faults, Noting(faults), options
        self.ids = Ids("document id", name, options, changes)
        self.place: tuple[int, int, str] = (1, 1, "")  # of the last record

    def number(self) -> str | None:
        """Return the number of the next record, if records have no id."""
        return self.ids.number() if self.options.numbers_rows else None

    def record(
        self, doc_id: str, title: str, text: str, line: int, column: int = 1, sheet: str = ""
    ) -> DocumentRecord:
        """Return the record; NUL and lone surrogates, which no database stores, become U+FFFD."""
        self.place = line, column, sheet
        if len(title) + len(text) > self.max_document:
            self.too_long(line)
        title, text = UNSTORABLE.sub("\ufffd", title), UNSTORABLE.sub("\ufffd", text)
        return DocumentRecord(self.ids.id(doc_id, line, column), title.strip(), text, self.is_html)

    def too_long(self, line: int) -> None:
        raise TrecFormatError(self.name, line, 1, f"document longer than {self.max_document} characters")


def _json(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
    """Return the documents of ``{"_id", "title", "text"}``, or the other names in `KEYS`."""
    for line in lines:
        if not line.text.strip():
            continue
        number = reading.number()
        with reading.noting:
            yield _json_record(line, number, reading)


def _json_record(line: Line, number: str | None, reading: Reading) -> DocumentRecord:
    value = json_object(line, reading.name)
    mapping = reading.options.mapping
    for field in ("text",) if number else ("id", "text"):
        keys = mapping.get(field, KEYS[field])
        if not any(value.get(key) is not None for key in keys):
            raise TrecFormatError(reading.name, line.number, 1, f"no field named {' or '.join(keys)}")
    doc_id, title, text = (
        joined_text(value, mapping[field], line, reading.name, BETWEEN[field])
        if field in mapping
        else json_text(value, keys, line, reading.name)
        for field, keys in KEYS.items()
    )
    return reading.record(number or doc_id, title, text, line.number)


def _table(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
    """Return the documents of a table with a header."""
    rows = read_table(lines, reading.name, reading.max_document, reading.faults, reading.options.delimiter)
    return _rows(rows, reading)


def _rows(rows: Iterator[Row], reading: Reading) -> Iterator[DocumentRecord]:
    columns: dict[str, tuple[str, ...]] = {}
    for row in rows:
        number = reading.number()
        if not columns:
            columns = _columns(row, reading.options)
        doc_id = number or row.cells[columns["id"][0]].strip()
        title, text = (row.text(columns[field], BETWEEN[field]) for field in ("title", "text"))
        with reading.noting:
            try:
                record = reading.record(doc_id, title, text, row.line, 1, row.sheet)
            except TrecFormatError as error:
                row.fail((columns["id"] or columns["text"])[0], error.reason)
            yield record


def _columns(row: Row, options: FileOptions) -> dict[str, tuple[str, ...]]:
    """Return the columns of the fields; there must be one of texts, and one of ids if records are not numbered."""
    found = {field: row.columns_of(field, keys, options) for field, keys in KEYS.items()}
    for field in ("text",) if options.numbers_rows else ("id", "text"):
        row.required_columns(field, KEYS[field], options)
    return found


def _tsv(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
    """Return the documents of ``id<TAB>text`` or ``id<TAB>title<TAB>text``; numbered, without the id."""
    for line in lines:
        if not line.text.strip():
            continue
        number = reading.number()
        cells = line.text.split("\t")
        with reading.noting:
            if number is not None:
                cells.insert(0, number)
            if len(cells) not in (2, 3):
                column = len("\t".join(cells[:3])) + 1
                reason = f"expected id<TAB>text, or id<TAB>title<TAB>text, found {len(cells)} columns"
                raise TrecFormatError(reading.name, line.number, column, reason)
            yield reading.record(cells[0], cells[1] if len(cells) == 3 else "", cells[-1], line.number)


class _TrecDocument:
    """A ``<DOC>`` being read."""

    def __init__(self, line: int) -> None:
        self.line = self.id_line = line
        self.id_column = 1
        self.fields: dict[str, list[str]] = {"id": [], "title": [], "text": [], "rest": []}
        self.has_text = False
        self.size = 0
        self.is_bad = False  # its fault is told: nothing of it is kept

    def add(self, field: str, text: str, reading: Reading) -> None:
        if self.is_bad:
            return
        self.fields[field].append(text)
        self.size += len(text)
        if self.size > reading.max_document:
            self.is_bad = True
            with reading.noting:
                reading.too_long(self.line)

    def finish(self, reading: Reading) -> DocumentRecord:
        doc_id = "".join(self.fields["id"]).strip()
        texts = {field: "".join(self.fields[field]).strip("\n") for field in ("title", "text", "rest")}
        text = texts["text"] if self.has_text else texts["rest"]
        if not reading.is_html:
            text, texts["title"] = _without_markup(text), _without_markup(texts["title"])
        title = " ".join(texts["title"].split())
        return reading.record(doc_id, title, text, self.id_line, self.id_column)


def _finished_document(document: _TrecDocument | None, reading: Reading) -> Iterator[DocumentRecord]:
    """Return the document, if there is one and it is as it should be."""
    if document is not None and not document.is_bad:
        with reading.noting:
            yield document.finish(reading)


def _without_markup(text: str) -> str:
    """Return newswire text without its SGML tags, entities resolved."""
    return html.unescape(SGML_MARKUP.sub("", text))


def _trec(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
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
    reading: Reading,
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


def _cranfield(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
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


def _page(lines: Iterator[Line], reading: Reading) -> Iterator[DocumentRecord]:
    """Return the file as one document: its name is the id, and of HTML its ``<title>`` the title."""
    parts, size = [], 0
    for line in lines:
        parts.append(line.text)
        size += len(line.text) + 1
        if size > reading.max_document:
            reading.too_long(1)
    text = "\n".join(parts)
    with reading.noting:
        yield reading.record(reading.name, page_title(text) if reading.is_html else "", text, 1)


FORMATS: dict[str, Callable[[Iterator[Line], Reading], Iterator[DocumentRecord]]] = {
    "jsonl": _json, "json": _json, "table": _table, "tsv": _tsv, "trec": _trec, "cranfield": _cranfield, "page": _page,
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
    options: FileOptions = PLAIN,
    changes: Changes | None = None,
) -> Iterator[DocumentRecord]:
    """Return the documents of a file, in its order; the format is sniffed from the first line with text.

    ``file_format`` is one of jsonl, json (an array), table (with a header, or a spreadsheet), tsv (without a header),
    trec, cranfield, page (the file is one document, its name the id). ``is_html`` is the collection's own declaration,
    never guessed. Errors name line and column: an empty id or one with white space, a missing field, a document of
    more than ``max_document`` characters, all that `open_text` refuses. With ``faults`` what is wrong is added to them,
    and the good documents are returned. The `changes` are told what became of ids.

    >>> import io
    >>> next(read_documents(io.BytesIO(b'{"_id": "d1", "title": "T", "text": "x"}'), "example"))
    DocumentRecord(doc_id='d1', title='T', text='x', is_html=False)
    """
    if file_format is not None and file_format not in FORMATS:
        raise ValueError(f"file_format must be one of {', '.join(FORMATS)}, not {file_format!r}")
    reading = Reading(
        name, is_html=is_html, max_document=max_document, faults=faults, options=options, changes=changes
    )
    with NotingAll(faults):
        empty = True
        for record in placed_documents(source, file_format, reading):
            empty = False
            yield record
        if empty and not faults:
            raise TrecFormatError(name, 1, 1, "no documents in the file")


def placed_documents(
    source: Source | Readable, file_format: str | None, reading: Reading
) -> Iterator[DocumentRecord]:
    """Return the documents; `reading` knows the place of the last one."""
    name = reading.name
    # A character of JSON may take six bytes as an escape.
    limits = Limits(max_bytes=64 << 30, max_line=6 * reading.max_document + MEGABYTE)
    with binary(source) as stream:
        replayed = ReplayedStream(stream, 4)
        if is_sheet(replayed.head) and file_format in (None, "table"):
            yield from _rows(sheet_rows(replayed, name, reading.faults), reading)
            return
        opened = open_objects if file_format in (None, "json", "jsonl") else open_text
        lines = opened(replayed, name, limits, reading.faults, reading.options.encoding)
        head = head_of(lines, name, "documents", reading.faults)
        if not head:
            return
        read = FORMATS[file_format or _sniff(head[-1].text)]
        yield from read(chain(head, lines), reading)
