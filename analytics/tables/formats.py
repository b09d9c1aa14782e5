"""The formats of tables: LaTeX (booktabs), Markdown, CSV. Each escapes names by its own rules."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from analytics.charts.theme import printable
from analytics.latex import latex_text
from analytics.tables.marks import HIGHER, LOWER
from analytics.tables.table import Cell, Chance, Figure, Interval, Missing, Span, Table, number_words, p_words
from judging.spreadsheets import SheetWriter

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~$&!^@:\"])")
MOST_IN_A_COLUMN = 5  # columns that fit into 84 mm; more go across the page
LATEX_MARKS = {HIGHER: r"\dagger", LOWER: r"\ddagger"}


@dataclass(frozen=True)
class TableFormat:
    """A format of tables: its key in addresses, what a link says, and how a table is written."""

    key: str
    label: str
    content_type: str
    extension: str
    write: Callable[[Table], str]


def markdown_text(text: str) -> str:
    """Return a text that Markdown shows as it is, in a cell of a table too.

    >>> markdown_text("a_b|c")
    'a\\\\_b\\\\|c'
    """
    return MARKDOWN.sub(r"\\\1", printable(text)).replace("www.", "www\\.")


def _latex(table: Table) -> str:
    places = "".join("r" if column.is_number else "l" for column in table.columns)
    titles = " & ".join(latex_text(printable(column.title)) for column in table.columns)
    name = "table" if len(table.columns) <= MOST_IN_A_COLUMN else "table*"
    lines = [
        r"% Needs \usepackage{booktabs}. Names in other scripts than Latin need XeLaTeX or LuaLaTeX.",
        rf"\begin{{{name}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{_latex_daggers(table.caption)}}}",
        rf"\label{{tab:{table.key}}}\par\smallskip",
        rf"\begin{{tabular}}{{{places}}}",
        r"\toprule",
        rf"{titles} \\",
        r"\midrule",
        *(" & ".join(map(_latex_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if table.notes:
        lines.append(r"\par\smallskip\raggedright")
        lines += [
            rf"[{place}] {latex_text(printable(note))}\par" for place, note in enumerate(table.notes, start=1)
        ]
    return "\n".join([*lines, rf"\end{{{name}}}", ""])


def _latex_daggers(text: str) -> str:
    """Return a caption, with its daggers as mathematics; a name may hold one too."""
    escaped = latex_text(printable(text))
    for mark, command in LATEX_MARKS.items():
        escaped = escaped.replace(mark, f"${command}$")
    return escaped


def _latex_cell(cell: Cell) -> str:
    if isinstance(cell, Figure):
        words = _latex_number(cell.value, is_signed=cell.is_signed)
        above = ",".join(LATEX_MARKS.get(mark, rf"\mathrm{{{mark}}}") for mark in cell.marks)
        return f"{words}$^{{{above}}}$" if above else words
    if isinstance(cell, Interval):
        return f"[{_latex_number(cell.low)}, {_latex_number(cell.high)}]"
    if isinstance(cell, Chance):
        return p_words(cell.p).replace("< ", "$<$ ")
    if isinstance(cell, Missing):
        return f"not estimable {latex_text(printable(cell.note))}"
    if isinstance(cell, Span):
        return cell.words
    words = "" if cell is None else _latex_daggers(str(cell))
    return (
        f"{{}}{words}" if words.startswith(("[", "*")) else words
    )  # else it would be an option of the row before


def _latex_number(value: float, *, is_signed: bool = False) -> str:
    words = number_words(value, is_signed=is_signed)
    return f"${words}$" if words[0] in "+-" else words


def _markdown(table: Table) -> str:
    titles = [markdown_text(column.title) or " " for column in table.columns]
    rules = ["---:" if column.is_number else ":---" for column in table.columns]
    lines = [markdown_text(table.caption), "", _markdown_row(titles), _markdown_row(rules)]
    lines += [_markdown_row([_markdown_cell(cell) for cell in row]) for row in table.rows]
    for place, note in enumerate(table.notes, start=1):
        lines += ["", f"\\[{place}\\] {markdown_text(note)}"]
    return "\n".join([*lines, ""])


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    if isinstance(cell, Figure):
        words = number_words(cell.value, is_signed=cell.is_signed).replace("-", "−")
        return f"{words}<sup>{','.join(cell.marks)}</sup>" if cell.marks else words
    if isinstance(cell, Interval):
        return f"\\[{number_words(cell.low)}, {number_words(cell.high)}\\]".replace("-", "−")
    if isinstance(cell, Chance):
        return markdown_text(p_words(cell.p))
    if isinstance(cell, Missing):
        return f"not estimable {markdown_text(cell.note)}"
    if isinstance(cell, Span):
        return cell.words
    return "" if cell is None else markdown_text(str(cell))


def _csv(table: Table) -> str:
    """Return the numbers unrounded, the reason of each that there is not, and the caption in every row."""
    target = io.StringIO()
    writer = SheetWriter(target)
    writer.writerow([*(name for column in table.columns for name in column.names), "refusal", "caption"])
    for row in table.rows:
        cells: list[str | int | float] = []
        for column, cell in zip(table.columns, row, strict=True):
            found = _csv_cells(cell)
            cells += [*found, *([""] * len(column.names))][: len(column.names)]
        reason = next((cell.reason for cell in row if isinstance(cell, Missing)), "")
        writer.writerow([*cells, reason, table.caption])
    return target.getvalue()


def _csv_cells(cell: Cell) -> list[str | int | float]:
    if isinstance(cell, Figure):
        return [cell.value, " ".join(cell.marks)]
    if isinstance(cell, Interval | Span):
        return [cell.low, cell.high]
    if isinstance(cell, Chance):
        return [cell.p]
    return [cell] if isinstance(cell, str | int) else []


TABLE_FORMATS = (
    TableFormat("latex", "LaTeX", "application/x-tex; charset=utf-8", "tex", _latex),
    TableFormat("markdown", "Markdown", "text/markdown; charset=utf-8", "md", _markdown),
    TableFormat("csv", "CSV", "text/csv; charset=utf-8", "csv", _csv),
)


def table_format(key: str) -> TableFormat:
    """Return the format of this key, or raise KeyError."""
    return {one.key: one for one in TABLE_FORMATS}[key]
