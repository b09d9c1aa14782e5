"""Files that are not written over: what people filled in, and what a command reads."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from touchstone_ir.columns import InputRefused

Pair = tuple[str, str]


def grades_in(path: Path) -> dict[Pair, str]:
    """Return the grades that stand in a CSV of pairs; none of a file that is none, or is not there."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        try:
            rows = list(csv.DictReader(lines))
        except csv.Error:  # whatever it is, it is not what people fill in
            return {}
    return {
        (row.get("topic") or "", row.get("doc") or ""): grade
        for row in rows
        if (grade := (row.get("grade") or "").strip())
    }


def require_no_grades(path: Path) -> None:
    """Raise InputRefused where the file holds grades, which writing over it would lose."""
    if grades := grades_in(path):
        raise InputRefused(f"{path}: {len(grades)} grades stand in this file: write to another one")


def require_other_output(options: Mapping[str, Any]) -> None:
    """Raise InputRefused where a command would write over a file that it reads."""
    out = options.get("out")
    if out is None or not Path(out).is_file():
        return
    given = [name for key, value in options.items() if key not in ("out", "plot") for name in _names(value)]
    if any(Path(name).is_file() and Path(name).samefile(out) for name in given):
        raise InputRefused(f"{out}: the command reads this file: write to another one")


def _names(value: Any) -> list[Any]:
    many = value if isinstance(value, list) else [value]
    return [one for one in many if isinstance(one, str | Path) and str(one)]
