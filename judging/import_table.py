"""What a look found, as lines of text: a row a file, and below it what must be said of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judging.import_choices import LABELS

HEADS = ("file", "taken for", "rows", "there", "lacks", "faults")


def import_table(cards: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of files, each followed by the reason, the grades and the faults.

    >>> card = {"name": "t.tsv", "kind": "topics", "n_rows": 2, "n_faults": 0, "why": "two columns", "faults": []}
    >>> print("\\n".join(import_table([card])))
    file   taken for  rows  there  lacks  faults
    t.tsv  Topics        2                     0
           two columns
    """
    shown = list(cards)
    rows = [HEADS, *(_row(card) for card in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = [_line(HEADS, widths)]
    for card, row in zip(shown, rows[1:], strict=True):
        lines.append(_line(row, widths))
        lines += [f"{' ' * (widths[0] + 2)}{words}" for words in _remarks(card)]
    return lines


def _row(card: Mapping[str, Any]) -> tuple[str, ...]:
    lacks = [f"{some['n']:,} {what}" for what, some in card.get("lacks", {}).items() if some["n"]]
    n_rows, there = card.get("n_rows"), card.get("there", {}).get("n")
    return (
        card["name"],
        LABELS.get(card["kind"], card["kind"]),
        "" if n_rows is None else f"{n_rows:,}",
        f"{there:,}" if there else "",
        ", ".join(lacks),
        f"{card['n_faults']:,}",
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row, its numbers to the right."""
    cells = [
        cell.rjust(width) if column in (2, 3, 5) else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _remarks(card: Mapping[str, Any]) -> list[str]:
    remarks = [card["why"]] if card.get("why") else []
    if card.get("question"):
        remarks.append(card["question"])
    for encoding in card.get("encodings") or ():
        remarks += [
            f"{encoding['encoding']}: line {number}: {text}" for number, text in encoding["lines"][:2]
        ]
    if card.get("mapping"):
        remarks.append(
            "; ".join(f"{name} = {' + '.join(columns)}" for name, columns in card["mapping"].items())
        )
    if card.get("grades"):
        remarks.append("grades: " + ", ".join(f"{row['grade']} ({row['n']:,})" for row in card["grades"]))
        if card["choices"].get("grade_map"):
            remarks.append(f"grade map: {card['choices']['grade_map']}")
    if card.get("passed_over"):
        remarks.append(f"passed over: {', '.join(card['passed_over'])}")
    return [*remarks, *card["faults"]]
