"""One line of a table or figure: the paper's number, ours, and what ours must be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

Report = dict[str, list["Row"]]


@dataclass(frozen=True)
class Row:
    """The paper's number beside ours. None stands for a number that does not exist; the note says why.

    `expected` +- `tolerance` is what `computed` must be: an earlier, independent computation, or a closed form.
    `paper_tolerance` is how near to the paper it must be, `least` and `most` are bounds. `ok` is None where nothing is
    demanded.
    """

    name: str
    paper: float | None
    computed: float | None
    expected: float | None = None
    tolerance: float | None = None
    paper_tolerance: float | None = None
    ok: bool | None = None
    note: str = ""
    least: float | None = None
    most: float | None = None


def row(
    name: str,
    paper: float | None,
    computed: float,
    *,
    expected: float | None = None,
    tolerance: float | None = None,
    paper_tolerance: float | None = None,
    least: float | None = None,
    most: float | None = None,
    note: str = "",
) -> Row:
    """Return a row that is checked against what is demanded of it.

    >>> row("one third", 0.33, 1 / 3, expected=0.333, tolerance=0.001).ok
    True
    """
    if not math.isfinite(computed):
        raise ValueError(f"computed must be finite, got {computed} in the row {name!r}")
    if (expected is None) != (tolerance is None) or (paper is None and paper_tolerance is not None):
        raise ValueError(f"a tolerance belongs to a value, in the row {name!r}")
    held = []
    if expected is not None and tolerance is not None:
        held.append(abs(computed - expected) <= tolerance)
    if paper is not None and paper_tolerance is not None:
        held.append(abs(computed - paper) <= paper_tolerance)
    if least is not None:
        held.append(computed >= least)
    if most is not None:
        held.append(computed <= most)
    ok = all(held) if held else None
    return Row(name, paper, float(computed), expected, tolerance, paper_tolerance, ok, note, least, most)


def unchecked(values: Mapping[str, float], reason: str) -> list[Row]:
    """Return rows of the paper's TREC values, which cannot be computed again."""
    return [Row(f"TREC {name}", value, None, note=reason) for name, value in values.items()]


def failures(report: Report) -> list[str]:
    """Return a sentence for every row that is not what it must be."""
    return [
        f"{part}, {line.name}: computed {line.computed:.7g}, must be {_demand(line)}"
        for part, lines in report.items()
        for line in lines
        if line.ok is False
    ]


def as_json(report: Report) -> dict[str, list[dict[str, object]]]:
    """Return the report as plain lists and dictionaries."""
    return {part: [asdict(line) for line in lines] for part, lines in report.items()}


def as_text(titles: Mapping[str, str], report: Report, *, significant: int | None = None) -> str:
    """Return the report as aligned text: the paper's column, ours, and the verdict.

    Numbers have 2 and 4 decimals, or so many `significant` digits.
    """
    blocks = []
    for part, lines in report.items():
        width = max(len(line.name) for line in lines)
        cells = [
            (_number(line.paper, 2, significant), _number(line.computed, 4, significant)) for line in lines
        ]
        wide = max(9, *(len(cell) for pair in cells for cell in pair))
        head = f"{'':{width}}  {'paper':>{wide}}  {'computed':>{wide}}"
        numbers = [f"{first:>{wide}}  {second:>{wide}}" for first, second in cells]
        body = [
            f"{line.name:{width}}  {number}  {_remark(line)}".rstrip()
            for line, number in zip(lines, numbers, strict=True)
        ]
        blocks.append("\n".join([titles[part], head, *body]))
    return "\n\n".join(blocks)


def within(values: Sequence[float], share: float) -> list[float]:
    """Return the tolerance that is this share of each value."""
    return [share * abs(value) for value in values]


def _number(value: float | None, decimals: int, significant: int | None) -> str:
    if value is None:
        return "-"
    return f"{value:.{decimals}f}" if significant is None else f"{value:.{significant}g}"


def _demand(line: Row) -> str:
    parts = []
    if line.expected is not None and line.tolerance is not None:
        parts.append(f"{line.expected:.7g} +- {line.tolerance:.2g}")
    if line.paper_tolerance is not None:
        parts.append(f"{line.paper:.6g} +- {line.paper_tolerance:.2g} (the paper's)")
    if line.least is not None:
        parts.append(f"at least {line.least:.6g}")
    if line.most is not None:
        parts.append(f"at most {line.most:.6g}")
    return " and ".join(parts)


def _remark(line: Row) -> str:
    verdict = "" if line.ok is None else f"{'ok' if line.ok else 'NO'}: {_demand(line)}"
    return "; ".join(part for part in (verdict, line.note) if part)
