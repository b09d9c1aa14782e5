"""What is wrong in a file: one fault as an error, or all of them in one look."""

import re
from types import TracebackType

# What differs between faults that are alike: quoted words, ids after what they name, words with a digit.
VARIES = re.compile(r"'[^']*'|\"[^\"]*\"|(?<=\bdocument )\S+|(?<=\btopic )\S+|(?<=\bworker )\S+|\S*\d\S*")


def column_letters(column: int) -> str:
    """Return how a spreadsheet names its column of that number, counted from 1."""
    letters = ""
    while column > 0:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def place_name(line: int, column: int, sheet: str = "") -> str:
    """Return a place as it is written behind a file's name; in a sheet it is a cell.

    >>> place_name(17, 3), place_name(17, 28, "Sheet1")
    ('17:3', 'Sheet1!AB17')
    """
    return f"{sheet}!{column_letters(column)}{line}" if sheet else f"{line}:{column}"


class TrecFormatError(ValueError):
    """A file is not what its format says; ``str()`` is ``file:line:column: reason``, counted from 1.

    In a spreadsheet, whose `sheet` is named, it is ``file:sheet!cell: reason``.
    """

    def __init__(self, file: str, line: int, column: int, reason: str, sheet: str = "") -> None:
        self.place = place_name(line, column, sheet)
        super().__init__(f"{file}:{self.place}: {reason}")
        self.file, self.line, self.column, self.reason, self.sheet = file, line, column, reason, sheet

    def __reduce__(self) -> tuple[type["TrecFormatError"], tuple[str, int, int, str, str]]:
        """Return what pickle needs: the error must survive the way back from a worker."""
        return TrecFormatError, (self.file, self.line, self.column, self.reason, self.sheet)


class EnoughFaults(Exception):
    """As many faults were counted as were asked for."""


class Faults:
    """The faults of one or more files, alike ones together.

    Parameters
    ----------
    most : int
        How many are kept with their place; the others are counted.
    stop_after : int
        How many are counted; then reading ends.

    Examples
    --------
    >>> faults = Faults()
    >>> for line in (2, 5):
    ...     faults.add(TrecFormatError("a.run", line, 1, f"expected 6 columns, found {line}"))
    >>> print(faults)
    a.run:2:1: expected 6 columns, found 2 (and one more like it, at 5:1)
    2 faults
    """

    def __init__(self, most: int = 100, stop_after: int = 10_000) -> None:
        self.most, self.stop_after = most, stop_after
        self.n = 0
        self._n_kept = 0
        self._kinds: dict[tuple[str, str], _Alike] = {}

    def __len__(self) -> int:
        return self.n

    def add(self, fault: TrecFormatError) -> None:
        """Count a fault; raise `EnoughFaults` with the last that is counted."""
        self.n += 1
        kind = fault.file, VARIES.sub("", fault.reason)
        alike = self._kinds.get(kind)
        if alike is not None:
            alike.n += 1
        elif len(self._kinds) < self.most:
            alike = self._kinds[kind] = _Alike(fault)
        if alike is not None and self._n_kept < self.most:
            alike.places.append(fault.place)
            self._n_kept += 1
        if self.n >= self.stop_after:
            raise EnoughFaults

    def __str__(self) -> str:
        """Return a line for each kind of fault, and how many there are if there are several."""
        lines = [str(alike) for alike in self._kinds.values()]
        if self.n >= self.stop_after:
            lines.append(f"{self.n:,} faults, and the rest of the file was not read")
        elif self.n > 1:
            lines.append(f"{self.n:,} faults")
        return "\n".join(lines)


class _Alike:
    """Faults of one file that differ in their values alone."""

    def __init__(self, first: TrecFormatError) -> None:
        self.first, self.n = first, 1
        self.places: list[str] = []

    def __str__(self) -> str:
        if self.n == 1:
            return str(self.first)
        others = self.n - 1
        named = self.places[1:]
        where = f", at {', '.join(named)}" if named else ""
        rest = " ..." if named and len(named) < others else ""
        return f"{self.first} (and {'one' if others == 1 else f'{others:,}'} more like it{where}{rest})"


class Noting:
    """A context that adds a fault to the faults and goes on behind; without faults, the error is raised.

    Readers enter it for each record, to go on with the next, and once around all, for what ends the file.
    """

    def __init__(self, faults: Faults | None) -> None:
        self.faults = faults

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.faults is None or not isinstance(error, TrecFormatError):
            return False
        self.faults.add(error)
        return True


class NotingAll(Noting):
    """The context around a whole file: it also ends well when there are faults enough."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, EnoughFaults):
            return True
        try:
            return super().__exit__(kind, error, trace)
        except EnoughFaults:
            return True
