"""CSV for people who open it in a spreadsheet: a text that would run as a formula is shown instead."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a formula can begin with


def spreadsheet_text(text: str) -> str:
    """Return the text as a spreadsheet shows it: an apostrophe stands before one that it would run as a formula.

    Files that programs read back get none: there it would change an id.

    >>> spreadsheet_text("=1+1"), spreadsheet_text("bob")
    ("'=1+1", 'bob')
    """
    return f"'{text}" if text.startswith(FORMULA) else text


class _Echo:
    def write(self, line: str) -> str:
        return line


def sheet_lines(rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    """Yield the lines of a sheet, for a file that is streamed.

    >>> list(sheet_lines([["who", "n"], ["@bob", 2]]))
    ['who,n\\n', "'@bob,2\\n"]
    """
    writer = SheetWriter(_Echo())
    return (writer.writerow(row) for row in rows)


class _Target(Protocol):
    def write(self, text: str, /) -> Any: ...


class SheetWriter:
    """Writes CSV for people. Every file for people is written by it; files that programs read back are not.

    >>> import io
    >>> lines = io.StringIO()
    >>> SheetWriter(lines).writerow(["=1+1", -1, None])
    10
    >>> lines.getvalue()
    "'=1+1,-1,\\n"
    """

    def __init__(self, target: _Target) -> None:
        self._target, self._line = target, io.StringIO()
        # Told that both end a line, it puts quotation marks around a text with either of them.
        self._writer = csv.writer(self._line, lineterminator="\r\n")

    def writerow(self, cells: Iterable[Any]) -> Any:
        """Write one row; texts are guarded, numbers stay numbers. Returns what the target's `write` returns."""
        self._line.seek(0)
        self._line.truncate()
        self._writer.writerow([spreadsheet_text(cell) if isinstance(cell, str) else cell for cell in cells])
        return self._target.write(self._line.getvalue().removesuffix("\r\n") + "\n")
