"""Open untrusted text files: gzip by content, declared limits, and errors that name file, line and column.

Everything here streams. Nothing is decompressed before its size has been limited.
"""

import codecs
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

from judging.encodings import in_utf8
from judging.faults import Faults, Noting
from judging.faults import TrecFormatError as TrecFormatError


class Readable(Protocol):
    """What gives bytes, once, from where it stands."""

    def read(self, size: int = ..., /) -> bytes: ...


Source = str | os.PathLike[str] | BinaryIO
Stream = TypeVar("Stream", bound=Readable)

MEGABYTE = 1_000_000
MAX_ID_BYTES = 512  # longest topic, document, assessor id or run tag; database indexes need a bound
MAX_EMPTY_LINES = 10_000  # in a row; whoever sends more does not send text
READ_SIZE = 1 << 16  # small, because zlib copies what it has not used yet
BLOCK_SIZE = 1 << 20
BOM = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"
FOREIGN_STARTS = (
    (b"PK\x03\x04", "a zip archive, not text; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file, not text; unpack it first"),
    (b"\xfd7zXZ\x00", "an xz file, not text; unpack it first"),
)
UTF_16_STARTS = (
    (b"\xff\xfe", "UTF-16 text; save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text; save it as UTF-8"),
)
# What C strings, isspace() or str.split() of one tool or another would trip over inside an id.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
CONTROL_REASON = "control character, or white space other than blank and tab"


class BrokenFileError(ValueError):
    """The bytes cannot be had: truncated, a bomb, an archive. Its position is known only to the caller."""


@dataclass(frozen=True)
class Limits:
    """What a file may cost. ``max_ratio`` counts only after ``ratio_from`` uncompressed bytes."""

    max_bytes: int = 8 << 30
    max_ratio: int = 200
    ratio_from: int = 8 << 20
    max_line: int = MEGABYTE


class Line(NamedTuple):
    """One line without its end; ``number`` counts from 1."""

    number: int
    text: str


@contextmanager
def binary(source: str | os.PathLike[str] | Stream) -> Iterator[BinaryIO | Stream]:
    """Return the source as a binary stream; only a stream opened here is closed here."""
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as stream:
            yield stream
    else:
        yield source


def _raw(stream: Readable) -> Iterator[bytes]:
    while piece := stream.read(READ_SIZE):
        yield piece


def _gunzip(pieces: Iterator[bytes], limits: Limits) -> Iterator[bytes]:
    """Return the uncompressed bytes of all gzip members, in blocks of at most ``BLOCK_SIZE``."""
    engine = zlib.decompressobj(wbits=31)
    consumed = produced = 0
    between = False  # after one member and before the next
    for piece in pieces:
        consumed += len(piece)
        data, full = piece, False
        while data or full:
            if engine.eof:
                engine, between = zlib.decompressobj(wbits=31), True
            try:
                block = engine.decompress(data, BLOCK_SIZE)
            except zlib.error as error:
                if between and not data.startswith(GZIP_MAGIC):
                    raise BrokenFileError("trailing garbage after the gzip data") from None
                raise BrokenFileError(f"damaged gzip data ({error})") from None
            between = False
            data = engine.unused_data if engine.eof else engine.unconsumed_tail
            full = len(block) == BLOCK_SIZE and not engine.eof
            produced += len(block)
            if block:
                yield block
            if produced > limits.ratio_from and produced > limits.max_ratio * consumed:
                raise BrokenFileError(
                    f"a gzip bomb: it expands to more than {limits.max_ratio} times its size"
                )
    if not engine.eof:
        raise BrokenFileError("truncated gzip file: its end is missing")


def _plain_start(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Return the same blocks without a byte order mark; refuse what starts like an archive, or in UTF-16 unasked."""
    start, broken = b"", None
    try:
        for block in blocks:
            start += block
            if len(start) >= 512:  # a tar header; members of a gzip file may be shorter
                break
    except BrokenFileError as error:
        broken = error
    for magic, reason in FOREIGN_STARTS if encoding else FOREIGN_STARTS + UTF_16_STARTS:
        if start.startswith(magic):
            raise BrokenFileError(reason)
    if start.startswith(GZIP_MAGIC):
        raise BrokenFileError("gzip inside gzip; unpack it once")
    if start[257:262] == b"ustar":
        raise BrokenFileError("a tar archive, not text; unpack it first")
    yield start.removeprefix(BOM)
    if broken is not None:  # only now: the reader knows how far the text was good
        raise broken
    yield from blocks


def read_blocks(stream: Readable, limits: Limits, encoding: str = "") -> Iterator[bytes]:
    """Return the uncompressed bytes of a plain or gzip stream, without byte order mark, within limits.

    The content decides whether it is gzip, never the name. Text in another encoding becomes UTF-8; what that encoding
    does not have stays invalid. Raises `BrokenFileError`.
    """
    pieces = _raw(stream)
    first = next(pieces, b"")
    if len(first) == 1:  # a stream may give less than asked for
        first += next(pieces, b"")

    def blocks_from_first() -> Iterator[bytes]:
        yield first
        yield from pieces

    blocks = _gunzip(blocks_from_first(), limits) if first.startswith(GZIP_MAGIC) else blocks_from_first()
    total = 0
    plain = _plain_start(blocks, encoding)
    for block in in_utf8(plain, encoding) if encoding else plain:
        total += len(block)
        if total > limits.max_bytes:
            raise BrokenFileError(f"larger than the limit of {limits.max_bytes} uncompressed bytes")
        yield block


def _text(raw: bytes, name: str, number: int, limits: Limits, encoding: str) -> str:
    """Return one line's text, or raise at the first byte that is wrong."""
    raw = raw.removesuffix(b"\r")
    if len(raw) > limits.max_line:
        head, used = codecs.utf_8_decode(raw[: limits.max_line], "ignore", False)
        _text(raw[:used], name, number, limits, encoding)  # what is wrong further left is told first
        raise TrecFormatError(name, number, len(head) + 1, f"line longer than {limits.max_line} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8")
        _refuse_controls(before, name, number)  # the first wrong byte wins, whichever its kind
        raise TrecFormatError(name, number, len(before) + 1, f"not valid {encoding or 'UTF-8'}") from None
    _refuse_controls(text, name, number)
    return text


def _refuse_controls(text: str, name: str, number: int) -> None:
    wrong = [
        (place, what)
        for place, what in ((text.find("\0"), "NUL byte"), (text.find("\r"), "CR"))
        if place >= 0
    ]
    if wrong:
        place, what = min(wrong)
        reason = "NUL byte" if what == "NUL byte" else "lone carriage return; end lines with LF or CRLF"
        raise TrecFormatError(name, number, place + 1, reason)


def _lines(
    data: bytes, name: str, number: int, limits: Limits, noting: Noting, encoding: str
) -> Iterator[Line]:
    """Return the lines of data that ends with a line end; ``number`` lines were before."""
    clean = data.replace(b"\r\n", b"\n")[:-1]
    usual = b"\r" not in clean and b"\0" not in clean and b"\n" * (MAX_EMPTY_LINES + 1) not in clean
    if usual and (len(clean) <= limits.max_line or _short(clean, limits)):
        try:
            yield from map(Line, count(number + 1), clean.decode("utf-8").split("\n"))
            return
        except UnicodeDecodeError:
            pass  # the slow way knows where
    empty = 0
    for place, raw in enumerate(data[:-1].split(b"\n"), number + 1):
        empty = 0 if raw.strip(b"\r") else empty + 1
        if empty > MAX_EMPTY_LINES:
            raise TrecFormatError(name, place, 1, f"more than {MAX_EMPTY_LINES} empty lines in a row")
        with noting:
            yield Line(place, _text(raw, name, place, limits, encoding))


def _short(data: bytes, limits: Limits) -> bool:
    return max(map(len, data.split(b"\n"))) <= limits.max_line


def open_text(
    source: Source | Readable,
    name: str,
    limits: Limits | None = None,
    faults: Faults | None = None,
    encoding: str = "",
) -> Iterator[Line]:
    """Return the lines of a text file, plain or gzip, LF or CRLF, with or without byte order mark.

    The text is UTF-8, or in that `encoding` of `judging.encodings`.

    Refused with file, line and column: invalid UTF-8, NUL bytes, lone carriage returns, lines longer than
    ``limits.max_line`` bytes, thousands of empty lines, damaged or truncated gzip, trailing garbage, archives, bombs.
    With ``faults`` a line that is wrong is one of them and left out; what ends the file is raised all the same.

    >>> import io
    >>> [line.text for line in open_text(io.BytesIO(b"a\\r\\nb"), "example")]
    ['a', 'b']
    """
    limits = limits or Limits()
    with binary(source) as stream:
        yield from split_lines(read_blocks(stream, limits, encoding), name, limits, faults, encoding)


def split_lines(
    blocks: Iterator[bytes], name: str, limits: Limits, faults: Faults | None, encoding: str
) -> Iterator[Line]:
    """Return the lines of what `read_blocks` returned, as `open_text` does."""
    noting = Noting(faults)
    number, begun, size = 0, [b""], 0  # a long line is put together once, not with every block
    try:
        for block in blocks:
            end = block.rfind(b"\n") + 1
            if end:
                data = b"".join([*begun, block[:end]])
                begun, size = [], 0
                yield from _lines(data, name, number, limits, noting, encoding)
                number += data.count(b"\n")
            begun.append(block[end:])
            size += len(begun[-1])
            if size > limits.max_line:
                _text(b"".join(begun)[: limits.max_line + 2], name, number + 1, limits, encoding)
    except BrokenFileError as error:
        column = len(b"".join(begun).decode("utf-8", "replace")) + 1
        raise TrecFormatError(name, number + 1, column, str(error)) from None
    if size:
        with noting:
            yield Line(number + 1, _text(b"".join(begun), name, number + 1, limits, encoding))


def head_of(lines: Iterator[Line], name: str, what: str, faults: Faults | None = None) -> list[Line]:
    """Return the lines up to the first with text, from which formats are told; none with text is an error.

    If the `faults` say why there is none, there are no lines.
    """
    head: list[Line] = []
    n_before = len(faults) if faults is not None else 0
    for line in lines:
        head.append(line)
        if line.text.strip():
            return head
    if faults is not None and len(faults) > n_before:
        return []
    raise TrecFormatError(name, 1, 1, f"no {what} in the file")


class ReplayedStream:
    """A stream of which the beginning was looked at and is read again."""

    def __init__(self, stream: Readable, n_bytes: int) -> None:
        self.stream, self.head = stream, b""
        while len(self.head) < n_bytes and (piece := stream.read(n_bytes - len(self.head))):
            self.head += piece
        self._left = self.head

    def read(self, size: int = -1, /) -> bytes:
        """Return what is next: of the beginning first, then of the stream."""
        if not self._left:
            return self.stream.read(size)
        end = len(self._left) if size < 0 else size
        data, self._left = self._left[:end], self._left[end:]
        return data + self.stream.read(-1) if size < 0 else data


def check_id(value: str, what: str, name: str, line: int, column: int) -> str:
    """Return the id unchanged: not empty, no white space or control character, at most `MAX_ID_BYTES`."""
    if not value:
        raise TrecFormatError(name, line, column, f"{what} is empty")
    if value.split() != [value] or CONTROL.search(value):
        raise TrecFormatError(
            name, line, column, f"{what} {value[:80]!r} holds white space or a control character"
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise TrecFormatError(name, line, column, f"{what} holds a lone surrogate") from None
    if size > MAX_ID_BYTES:
        raise TrecFormatError(name, line, column, f"{what} is {size} bytes long; the limit is {MAX_ID_BYTES}")
    return value
