"""What a file is, told by its beginning: never guessed from its name alone, and a question where it is not sure."""

import re
from collections.abc import Container
from dataclasses import dataclass, replace
from itertools import islice

from judging.containers import (
    OFFICE_ADVICE,
    ZIP_STARTS,
    foreign_kind,
    gunzip_head,
    image_format,
    zip_kind,
)
from judging.encodings import (
    CONTROLS,
    decoded_text,
    encoding_key,
    is_text,
    is_utf8,
    marked_encoding,
    two_byte_encoding,
)
from judging.likely_encodings import encoding_candidates
from judging.pages import declared_charset
from judging.recognised import KnownIds, Recognition, Shape, doubts
from judging.shapes import shape_of, table_shape
from judging.sheets import open_sheet
from judging.textfiles import GZIP_MAGIC, Readable, Source, TrecFormatError, binary

__all__ = ["HEAD_BYTES", "Recognition", "doubts", "recognise", "recognise_file"]

HEAD_BYTES = 1 << 18
SHEET_ROWS = 200
XML_ENCODING = re.compile(rb"<\?xml[^<>]{0,100}?encoding\s*=\s*[\"']([A-Za-z0-9_.-]{1,40})[\"']")
MANY_CONTROLS = 0.01  # of the characters


def _refusal(container: str, why: str) -> Recognition:
    return Recognition(container, "", "", "", "", (), {}, is_sure=True, why=why, is_refused=True)


def recognise(
    name: str, head: bytes, *, topic_ids: Container[str] = (), doc_ids: Container[str] = ()
) -> Recognition:
    """Return what a file is, from its name and its first `HEAD_BYTES` bytes, or all if it has fewer.

    Ids decide: what `topic_ids` (of runs and gold of the upload, or of the collection) names is topics. Of a zip or a
    spreadsheet only that is told; `recognise_file` reads a spreadsheet's first rows.

    >>> recognise("queries.tsv", b"query_id\\tquery\\n7\\tblack bear attacks\\n").kind
    'topics'
    """
    known = KnownIds(topic_ids, doc_ids)
    if not head.strip():
        return _refusal("empty", "The file is empty.")
    if head.startswith(GZIP_MAGIC):
        unpacked = gunzip_head(head)
        if unpacked is None:
            return _refusal("gzip", "The file is damaged gzip.")
        data, is_whole = unpacked
        if not data.strip() and is_whole:
            return _refusal("empty", "The file is empty, in gzip.")
        inner = _by_content(name, data, known, is_whole=is_whole, is_gzip=True)
        return inner if inner.is_refused else replace(inner, container="gzip")
    return _by_content(name, head, known, is_whole=len(head) < HEAD_BYTES, is_gzip=False)


def _by_content(name: str, data: bytes, known: KnownIds, *, is_whole: bool, is_gzip: bool) -> Recognition:
    within = " in gzip" if is_gzip else ""
    foreign = foreign_kind(data)
    if foreign is not None:
        return _refusal(foreign.key, f"This is {foreign.name}{within}: {foreign.advice}.")
    if data.startswith(ZIP_STARTS):
        return _zip(name, data, is_gzip=is_gzip)
    if is_gzip and data.startswith(GZIP_MAGIC):
        return _refusal("gzip", "This is gzip in gzip: unpack it once.")
    image = image_format(data)
    if image:
        if is_gzip:
            return _refusal(
                image, f"This is an image ({image.upper()}) in gzip: put it into one zip with the pages."
            )
        why = f"An image ({image.upper()}): it is shown in documents if it comes in one zip with their pages."
        return Recognition("plain", "", "", "images", image, (), {}, is_sure=True, why=why)
    return _text(name, data, known, is_whole=is_whole)


def _zip(name: str, data: bytes, *, is_gzip: bool) -> Recognition:
    kind = zip_kind(name, data)
    if is_gzip:
        return _refusal("zip", "This is a zip in gzip: send the zip.")
    if kind in OFFICE_ADVICE:
        what, advice = OFFICE_ADVICE[kind]
        return _refusal(kind, f"This is {what}: {advice}.")
    why = "A zip: the files in it are looked at one by one."
    if kind == "xlsx":
        why = "A spreadsheet: its first rows tell what it is."
    return Recognition(kind, "", "", "", "", (), {}, is_sure=False, why=why)


@dataclass(frozen=True)
class _EncodingGuess:
    """The encoding of a text, and whether its beginning leaves no other."""

    encoding: str
    is_sure: bool


def _encoding(data: bytes) -> _EncodingGuess | None:
    """Return the encoding of a text; None if it is none."""
    marked = marked_encoding(data)
    if marked and (marked != "utf-8" or is_utf8(data)):
        return _EncodingGuess(marked, True)
    wide = two_byte_encoding(data)
    if wide:
        return _EncodingGuess(wide, True)
    if is_utf8(data):
        text = data.decode("utf-8", "ignore")
        n_controls = len(CONTROLS.findall(text))
        is_binary = "\0" in text or n_controls > MANY_CONTROLS * len(text)
        return None if is_binary else _EncodingGuess("utf-8", True)
    found = XML_ENCODING.match(data.lstrip())
    declared = found[1].decode() if found else declared_charset(data)
    if declared:
        meant = _of_web(declared)
        if meant and is_text(decoded_text(data, meant)):
            return _EncodingGuess(meant, True)
    candidates = encoding_candidates(data)
    return _EncodingGuess(candidates[0], False) if candidates else None


def _of_web(declared: str) -> str:
    """Return the encoding that pages mean: what says Latin 1 is written in Windows-1252; ``""`` if it is not read."""
    try:
        key = encoding_key(declared)
    except ValueError:
        return ""
    return "cp1252" if key == "iso8859-1" else key


def _text(name: str, data: bytes, known: KnownIds, *, is_whole: bool) -> Recognition:
    encoded = _encoding(data)
    if encoded is None:
        return _refusal("binary", "This is not text, and none of the files that can be read.")
    text = data.decode(encoded.encoding, "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    if not is_whole and "\n" in text:
        text = text[: text.rfind("\n") + 1]  # the last line is cut off
    if not text.strip():
        return _refusal("empty", "The file has no text.")
    shape = shape_of(name, text, known, is_whole=is_whole)
    return _recognition(shape, "plain", encoded)


def _recognition(shape: Shape, container: str, encoded: _EncodingGuess) -> Recognition:
    why = shape.why
    if not encoded.is_sure:
        why = f"{why} It is not UTF-8: choose its encoding."
    return Recognition(
        container=container,
        encoding=encoded.encoding,
        delimiter=shape.delimiter,
        kind=shape.kind,
        file_format=shape.file_format,
        columns=shape.columns,
        mapping=shape.mapping,
        is_sure=shape.is_sure and encoded.is_sure,
        why=why,
        is_html=shape.is_html,
        is_refused=shape.is_refused,
        is_encoding_sure=encoded.is_sure,
        rivals=shape.rivals,
    )


def recognise_file(
    source: Source, name: str, *, topic_ids: Container[str] = (), doc_ids: Container[str] = ()
) -> Recognition:
    """Return what a file is, as `recognise`; of a spreadsheet its first rows are read.

    A stream must be able to seek, and stands where it stood.
    """
    with binary(source) as stream:
        start = stream.tell()
        head = stream.read(HEAD_BYTES)
        found = recognise(name, head, topic_ids=topic_ids, doc_ids=doc_ids)
        if found.container == "xlsx" and not found.is_refused:
            stream.seek(start)
            try:
                found = _sheet(stream, name, KnownIds(topic_ids, doc_ids))
            except TrecFormatError as error:
                found = _refusal("xlsx", f"{error.reason[:1].upper()}{error.reason[1:]}.")
        stream.seek(start)
    return found


def _sheet(stream: Readable, name: str, known: KnownIds) -> Recognition:
    """Return what the sheet that is read holds, and which that is where there are several."""
    names, read = open_sheet(stream, name)
    rows = list(islice(read, SHEET_ROWS))
    read.close()  # the child ends
    shape = table_shape(name, [cells for _, _, cells in rows], known, is_sheet=True)
    found = _recognition(shape, "xlsx", _EncodingGuess("", True))
    if len(names) > 1 and rows:
        found = replace(found, why=f"{found.why} Of its {len(names)} sheets only {rows[0][0]} is read.")
    return found
