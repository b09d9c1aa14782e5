"""The options `--grades` and `--gains` of the commands: what grades of a file are to mean, and what they are worth."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from judging.file_options import parse_grades
from touchstone_ir.columns import InputRefused

FLAG = "--grades"
OPTION: dict[str, Any] = {
    "default": "",
    "metavar": "MAP",
    "help": "what grades mean: -2=0,-1= (empty leaves the lines out)",
}
NEGATIVE = re.compile(r"-\d+=")


def grade_map(text: str) -> dict[int, int | None] | None:
    """Return what grades are to mean; None where nothing is said.

    >>> grade_map("-2=0,-1=")
    {-2: 0, -1: None}
    """
    try:
        return parse_grades(text) if text else None
    except ValueError as error:
        raise InputRefused(f"{FLAG}: {error}") from None


def gain_map(text: str) -> dict[int, float] | None:
    """Return the gain of each grade; None where nothing is said.

    >>> gain_map("0=0,1=1,2=3")
    {0: 0.0, 1: 1.0, 2: 3.0}
    """
    if not text:
        return None
    gains: dict[int, float] = {}
    for part in text.split(","):
        given, _, worth = part.partition("=")
        try:
            grade, gain = int(given), float(worth)
        except ValueError:
            raise InputRefused(f"--gains: {part[:40]!r} is not of the form 2=3") from None
        if grade in gains:
            raise InputRefused(f"--gains: grade {grade} has two gains")
        gains[grade] = gain
    return gains


def joined_grades(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments of a command; a map that begins with a minus is no flag, so it is joined with its own.

    >>> list(joined_grades(["estimate", "--grades", "-2=0,-1=", "a.run"]))
    ['estimate', '--grades=-2=0,-1=', 'a.run']
    """
    left = iter(arguments)
    for one in left:
        following = next(left, None) if one == FLAG else None
        if following is None:
            yield one
        elif NEGATIVE.match(following):
            yield f"{FLAG}={following}"
        else:
            yield from (one, following)
