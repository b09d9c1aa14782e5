"""JSON objects: a line each, or the elements of an array, of which one is in memory, however long the array."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from judging.faults import Faults, TrecFormatError
from judging.possessive import POSSESSIVE
from judging.textfiles import (
    BrokenFileError,
    Limits,
    Line,
    Readable,
    Source,
    binary,
    read_blocks,
    split_lines,
)

STRUCTURE = re.compile(r'["{}\[\]]')  # what changes the depth, outside of strings
STRING_END = re.compile(rf'(?:[^"\\]+{POSSESSIVE}|\\.)*{POSSESSIVE}(?P<quote>"|\\?\Z)', re.DOTALL)
BLANK = re.compile(r"[ \t\r\n]*")


DECODER = json.JSONDecoder()


class Element(Line):
    """An object of an array, with the line and the column at which it begins, and its value where that was read."""

    column: int
    value: Any


def open_objects(
    source: Source | Readable, name: str, limits: Limits, faults: Faults | None = None, encoding: str = ""
) -> Iterator[Line]:
    """Return the objects of an array, or the lines of any other text, as `open_text` does."""
    with binary(source) as stream:
        head, blocks = _peek(read_blocks(stream, limits, encoding))
        if head.lstrip().startswith(b"["):
            yield from _Array(name, limits.max_line).elements(blocks, encoding)
        else:
            yield from split_lines(blocks, name, limits, faults, encoding)


def _peek(blocks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the beginning up to the first block that is not blank, and all blocks."""
    start, broken = b"", None
    try:
        for block in blocks:
            start += block
            if start.strip() or len(start) > 1 << 20:
                break
    except BrokenFileError as error:
        broken = error

    def read_again() -> Iterator[bytes]:
        yield start
        if broken is not None:
            raise broken
        yield from blocks

    return start, read_again()


class _Array:
    """The text of an array that was read and not given out yet, and where it stands."""

    def __init__(self, name: str, longest: int) -> None:
        self.name, self.longest = name, longest
        self.text, self.start = "", 0  # what is in front of the start was given out
        self.line, self.column = 1, 1  # of the start
        self.depth = 0  # within the element that begins at the start
        self.place = 0  # up to which it was searched
        self.in_string = False
        self.is_open = self.is_closed = self.has_element = False

    def fail(self, reason: str) -> NoReturn:
        raise TrecFormatError(self.name, self.line, self.column, reason)

    def add(self, text: str) -> None:
        self.text = self.text[self.start :] + text
        self.place, self.start = self.place - self.start, 0

    def go_to(self, end: int) -> None:
        """Give out what is in front of the end."""
        n_lines = self.text.count("\n", self.start, end)
        self.line += n_lines
        self.column = end - self.text.rfind("\n", 0, end) if n_lines else self.column + end - self.start
        self.start = self.place = end

    def elements(self, blocks: Iterator[bytes], encoding: str) -> Iterator[Element]:
        decoder = codecs.getincrementaldecoder("utf-8")("strict")
        try:
            for block in blocks:
                self.add(decoder.decode(block))
                yield from self.complete()
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            self.go_to(len(self.text))
            self.fail(f"not valid {encoding or 'UTF-8'} behind this place")
        except BrokenFileError as error:
            self.go_to(len(self.text))
            self.fail(str(error))
        if not self.is_closed:
            self.fail("the JSON array is never closed")

    def complete(self) -> Iterator[Element]:
        """Yield the elements of which the end is there."""
        while True:
            if not self.depth and not self.begin():
                return
            end, value = self.decode_value() if self.place == self.start else (0, None)
            end = end or self.end()
            if not end:
                if len(self.text) - self.start > self.longest:
                    self.fail(f"a JSON object longer than {self.longest} characters")
                return
            element = Element(self.line, self.text[self.start : end])
            element.column, element.value = self.column, value
            self.has_element, self.depth = True, 0
            self.go_to(end)
            yield element

    def begin(self) -> bool:
        """Go to the beginning of the next element; return whether it is there."""
        while True:
            self.go_to(self._blank_end())
            if self.start == len(self.text):
                return False
            if self.is_closed:
                self.fail("expected nothing behind the JSON array")
            sign = self.text[self.start]
            if not self.is_open:
                self.is_open = True  # what comes begins with it
            elif sign == "]":
                self.is_closed = True
            elif sign == "," and self.has_element:
                self.has_element = False
            elif sign == "{" and not self.has_element:
                return True
            else:
                self.fail("expected a comma" if sign == "{" else "expected a JSON object")
            self.go_to(self.start + 1)

    def decode_value(self) -> tuple[int, Any]:
        """Return the end and the value of an element that is there and well formed: the common case, and fast."""
        try:
            value, end = DECODER.raw_decode(self.text, self.start)
        except (ValueError, RecursionError):
            return 0, None
        return end, value

    def _blank_end(self) -> int:
        blank = BLANK.match(self.text, self.start)
        return blank.end() if blank else self.start

    def end(self) -> int:
        """Return where the element ends by its brackets, 0 where that is not there yet."""
        while True:
            if self.in_string:
                closing = STRING_END.match(self.text, self.place)
                if closing is None or closing["quote"] != '"':
                    self.place = len(self.text) - (1 if closing and closing["quote"] else 0)
                    return 0
                self.place, self.in_string = closing.end(), False
            sign = STRUCTURE.search(self.text, self.place)
            if sign is None:
                self.place = len(self.text)
                return 0
            self.place = sign.end()
            if sign[0] == '"':
                self.in_string = True
                continue
            self.depth += 1 if sign[0] in "{[" else -1
            if not self.depth:
                return self.place


def json_object(line: Line, name: str) -> dict[str, Any]:
    """Return the JSON object on one line; malformed, too deep, or no object is an error with its column."""
    column = line.column if isinstance(line, Element) else 1
    if isinstance(line, Element) and line.value is not None:
        value = line.value
    else:
        try:
            value = json.loads(line.text)
        except json.JSONDecodeError as error:
            before = column - 1 if error.lineno == 1 else 0
            reason = f"malformed JSON ({error.msg})"
            raise TrecFormatError(
                name, line.number + error.lineno - 1, error.colno + before, reason
            ) from None
        except (ValueError, RecursionError) as error:
            reason = f"JSON refused ({type(error).__name__})"
            raise TrecFormatError(name, line.number, column, reason) from None
    if not isinstance(value, dict):
        raise TrecFormatError(name, line.number, column, "expected a JSON object")
    return value


def json_text(value: dict[str, Any], keys: tuple[str, ...], line: Line, name: str) -> str:
    """Return the first of the keys that is there, as a string; numbers are allowed (ids), other types not."""
    return next((_word(value, key, line, name) for key in keys if value.get(key) is not None), "")


def joined_text(value: dict[str, Any], keys: tuple[str, ...], line: Line, name: str, between: str) -> str:
    """Return what all of the keys say that are there, as one string."""
    words = (_word(value, key, line, name).strip() for key in keys if value.get(key) is not None)
    return between.join(word for word in words if word)


def _word(value: dict[str, Any], key: str, line: Line, name: str) -> str:
    found = value[key]
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise TrecFormatError(
            name, line.number, 1, f"{key[:80]} must be a string, not {type(found).__name__}"
        )
    return str(found)
