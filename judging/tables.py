"""Tables with a header: CSV, TSV, and the like with semicolons or bars; the first sheet of a spreadsheet."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from judging.faults import Faults, Noting, column_letters
from judging.file_options import PLAIN, FileOptions
from judging.sheets import is_sheet, open_sheet
from judging.textfiles import (
    MEGABYTE,
    Limits,
    Line,
    Readable,
    ReplayedStream,
    Source,
    TrecFormatError,
    binary,
    open_text,
)


@dataclass(frozen=True)
class Row:
    """One record of a table: its cells by column name, and where it starts."""

    cells: dict[str, str]
    name: str
    line: int
    raw: str
    delimiter: str
    sheet: str = ""

    def fail(self, column_name: str, reason: str) -> NoReturn:
        """Raise `TrecFormatError` at the cell of that column."""
        raise TrecFormatError(self.name, self.line, self.column(column_name), reason, self.sheet)

    def column(self, column_name: str) -> int:
        """Return where the cell of that column starts, counted from 1; in a sheet, the number of its column."""
        index = list(self.cells).index(column_name)
        return index + 1 if self.sheet else cell_column(self.raw, self.delimiter, index)

    def columns_of(self, field: str, usual: tuple[str, ...], options: FileOptions) -> tuple[str, ...]:
        """Return the columns of a field: those chosen, or the first usual one that is there; maybe none."""
        chosen = options.mapping.get(field, ())
        for title in chosen:
            if title not in self.cells:
                raise TrecFormatError(self.name, 1, 1, f"no column named {title[:80]}", self.sheet)
        return chosen or next(((title,) for title in usual if title in self.cells), ())

    def required_columns(self, field: str, usual: tuple[str, ...], options: FileOptions) -> tuple[str, ...]:
        """Return the columns of a field that the table must have."""
        found = self.columns_of(field, usual, options)
        if not found:
            raise TrecFormatError(self.name, 1, 1, f"no column named {' or '.join(usual)}", self.sheet)
        return found

    def only_column(self, usual: tuple[str, ...]) -> str | None:
        """Return the column that has one of these names, None where none has; two of them are an error."""
        found = [title for title in self.cells if title in usual]
        if len(found) > 1:
            reason = f"the columns {found[0]} and {found[1]} mean the same: leave one out"
            raise TrecFormatError(self.name, 1, 1, reason, self.sheet)
        return found[0] if found else None

    def lacks(self, usual: tuple[str, ...]) -> NoReturn:
        """Raise `TrecFormatError`: the table has none of these columns, and it says which it has."""
        there = ", ".join(title[:40] for title in list(self.cells)[:20])
        reason = f"no column named {' or '.join(usual)}; its columns are {there}"
        raise TrecFormatError(self.name, 1, 1, reason, self.sheet)

    def text(self, columns: tuple[str, ...], between: str) -> str:
        """Return what the cells of the columns say, the empty ones left out."""
        cells = (self.cells[title].strip() for title in columns)
        return between.join(cell for cell in cells if cell)


def cell_column(raw: str, delimiter: str, index: int) -> int:
    """Return the column at which cell ``index`` of a CSV line starts, counted from 1.

    >>> cell_column('a,"b,c",d', ",", 2)
    9
    """
    quoted = False
    for place, character in enumerate(raw):
        if index == 0:
            return place + 1
        if character == '"' and delimiter != "\t":
            quoted = not quoted
        elif character == delimiter and not quoted:
            index -= 1
    return len(raw) + 1


def header_delimiter(header: str) -> str:
    """Return what parts the columns of a header: a tab or a comma, if it has one, or else a semicolon or a bar.

    >>> header_delimiter("id;title"), header_delimiter("id")
    (';', ',')
    """
    return next((one for one in "\t,;|" if one in header), ",")


def parse_lines(texts: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Return the cells of records; those parted by tabs are never quoted. Raises csv.Error."""
    if delimiter == "\t":
        return csv.reader(texts, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    return csv.reader(texts, delimiter=delimiter, strict=True)


def _wrong_width(
    name: str, first: Line, last: Line, delimiter: str, wanted: int, found: int
) -> TrecFormatError:
    place = cell_column(first.text, delimiter, wanted) if found > wanted else None
    reason = f"expected {wanted} columns, found {found}"
    return TrecFormatError(name, first.number, place or len(last.text) + 1, reason)


def _titles(cells: list[str], name: str, sheet: str = "") -> list[str]:
    titles = [title.strip() for title in cells]
    twice = next((title for index, title in enumerate(titles) if title in titles[:index]), None)
    if twice is not None:
        raise TrecFormatError(name, 1, 1, f"two columns have the same name: {twice[:80]!r}", sheet)
    return titles


def read_table(
    lines: Iterable[Line],
    name: str,
    max_cell: int = 10 * MEGABYTE,
    faults: Faults | None = None,
    delimiter: str = "",
) -> Iterator[Row]:
    """Return the rows of a text with a header; without a delimiter the header tells it. TSV is never quoted.

    With ``faults`` a row of another width is one of them and left out; malformed CSV is raised all the same.
    """
    noting = Noting(faults)
    held: list[Line] = []  # the lines of the record being read, for its position
    size = 0
    source = iter(lines)
    header = next(source, None)
    if header is None or not header.text.strip():
        raise TrecFormatError(name, 1, 1, "no header line")
    delimiter = delimiter or header_delimiter(header.text)

    def feed() -> Iterator[str]:
        nonlocal size
        for line in source:
            size = size + len(line.text) if held else len(line.text)
            held.append(line)
            if size > max_cell * 2:
                raise TrecFormatError(
                    name, held[0].number, 1, f"record longer than {2 * max_cell} characters"
                )
            yield line.text + "\n"

    csv.field_size_limit(max(csv.field_size_limit(), 2 * max_cell + 2))
    try:
        titles = _titles(next(parse_lines([header.text], delimiter)), name)
        for cells in parse_lines(feed(), delimiter):
            first, last = held[0], held[-1]
            held.clear()
            if not cells:
                continue
            with noting:
                if len(cells) != len(titles):
                    raise _wrong_width(name, first, last, delimiter, len(titles), len(cells))
                yield Row(dict(zip(titles, cells, strict=True)), name, first.number, first.text, delimiter)
    except csv.Error as error:
        place = held[0].number if held else 1
        raise TrecFormatError(name, place, 1, f"malformed CSV ({error})") from None


def sheet_rows(stream: Readable, name: str, faults: Faults | None = None) -> Iterator[Row]:
    """Return the rows of a spreadsheet's first sheet, whose first row with text is the header; all cells are text."""
    noting = Noting(faults)
    titles: list[str] = []
    _, read = open_sheet(stream, name)
    for sheet, number, cells in read:
        width = max((index for index, cell in enumerate(cells, 1) if cell.strip()), default=0)
        if not width:
            continue
        if not titles:
            named = [
                cell.strip() or f"column {column_letters(index)}"
                for index, cell in enumerate(cells[:width], 1)
            ]
            titles = _titles(named, name, sheet)
            continue
        with noting:
            if width > len(titles):
                reason = f"expected {len(titles)} columns, found {width}"
                raise TrecFormatError(name, number, len(titles) + 1, reason, sheet)
            filled = cells[: len(titles)] + [""] * (len(titles) - len(cells))
            yield Row(dict(zip(titles, filled, strict=True)), name, number, "", "", sheet)
    if not titles:
        raise TrecFormatError(name, 1, 1, "no header line")


def open_rows(
    source: Source | Readable,
    name: str,
    options: FileOptions = PLAIN,
    *,
    limits: Limits | None = None,
    max_cell: int = 10 * MEGABYTE,
    faults: Faults | None = None,
) -> Iterator[Row]:
    """Return the rows of a file: of text as the options say, or of a spreadsheet, which its content tells."""
    with binary(source) as stream:
        replayed = ReplayedStream(stream, 4)
        if is_sheet(replayed.head):
            yield from sheet_rows(replayed, name, faults)
            return
        lines = open_text(replayed, name, limits, faults, options.encoding)
        yield from read_table(lines, name, max_cell, faults, options.delimiter)
