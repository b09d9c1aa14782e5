"""Colours, type and words of every picture.

A picture names its colours as the page's CSS custom properties (`var(--ink, #24221f)`): one SVG inside a page then
follows the reader's light or dark theme. A file that leaves the page gets the colours of one theme written out.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

Spec = dict[str, Any]
Theme = Literal["auto", "light", "dark"]

# As in platform/touchstone/static/touchstone/style.css; a test holds the two together.
LIGHT = {
    "ink": "#24221f",
    "ink-soft": "#5e584f",
    "line": "#dcd6ca",
    "line-strong": "#857d71",
    "surface": "#fffdf9",
    "gold": "#7a5900",
    "gold-fill": "#d9a62e",
    "bronze": "#95552a",
    "info": "#2f5d7c",
    "ok": "#2f6b45",
}
DARK = {
    "ink": "#ece7de",
    "ink-soft": "#b5ada1",
    "line": "#3c3934",
    "line-strong": "#8c8478",
    "surface": "#24221f",
    "gold": "#e2b23f",
    "gold-fill": "#e2b23f",
    "bronze": "#d9986a",
    "info": "#92bfdc",
    "ok": "#8fcaa3",
}


def _variable(name: str) -> str:
    return f"var(--{name}, {LIGHT[name]})"


INK, INK_SOFT = _variable("ink"), _variable("ink-soft")
LINE, LINE_STRONG = _variable("line"), _variable("line-strong")
SURFACE = _variable("surface")
GOLD, GOLD_FILL = _variable("gold"), _variable("gold-fill")
BRONZE, INFO, OK = _variable("bronze"), _variable("info"), _variable("ok")

# Colour is never the only difference: the n-th line has its own dash and its own point as well.
LINE_COLOURS = (GOLD, INFO, BRONZE, INK_SOFT, OK, INK)
LINE_DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 4), (10, 4))
LINE_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

WIDTH = 480  # user units; at 360 px of screen a 13-unit letter is still 9 px high
LABEL_LENGTH = 24  # letters of a label that are shown
LETTER = 7.7  # units of a letter in the widest of the usual fonts; the drawing program's own is narrower
NOT_ESTIMABLE = "not estimable"

# Characters that XML forbids or that are invisible, and what turns the direction of the text after it.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def printable(text: str) -> str:
    """Return the text on one line: what XML forbids replaced, marks that turn the reading direction left out.

    >>> printable("run\\x00 a\\nb\\u202e")
    'run\\ufffd a b'
    """
    one_line = re.sub(r"[\t\n\r]+", " ", text)
    return _INVISIBLE.sub("", _FORBIDDEN.sub("\ufffd", one_line))


def shorten(text: str, length: int = LABEL_LENGTH) -> str:
    """Return the text, or its two ends where it is too long: names often differ at the end.

    >>> shorten("a-run-with-a-very-long-name-2026-b", 20)
    'a-run-with…me-2026-b'
    """
    clean = printable(text)
    if len(clean) <= length:
        return clean
    tail = (length - 1) // 2
    return f"{clean[: length - 1 - tail]}…{clean[-tail:]}"


def labels_of(names: Iterable[str], length: int = LABEL_LENGTH) -> dict[str, str]:
    """Return for each different name what a picture shows, no two the same.

    >>> labels_of(["ab", "a\\u200eb", "ab"])
    {'ab': 'ab', 'a\\u200eb': 'ab (2)'}
    """
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        label, place = shorten(name, length), 1
        while label in taken:
            place += 1
            label = f"{shorten(name, length)} ({place})"
        taken.add(label)
        shown[name] = label
    return shown


def name_room(names: Iterable[str], limit: int) -> int:
    """Return the width that an axis keeps free for its names, so that a page's wider font does not cut them.

    >>> name_room(["bm25", "bm25-description"], 190)
    129
    """
    return min(limit, round(LETTER * max(map(len, names), default=0))) + 6


def finite(number: float | None) -> float | None:
    """Return the number, or None where it is not finite: not estimable.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return None if number is None or not math.isfinite(number) else float(number)


def finites(numbers: Iterable[float | None]) -> tuple[float | None, ...]:
    return tuple(finite(number) for number in numbers)


def table_of(
    values: Sequence[Sequence[float | None]], name: str, size: int
) -> tuple[tuple[float | None, ...], ...]:
    """Return a checked square table; a row that is None is a row of None.

    >>> table_of([[1.0, float("nan")], None], "values", 2)
    ((1.0, None), (None, None))
    """
    rows = [row if row is not None else [None] * size for row in values]
    if len(rows) != size or any(len(row) != size for row in rows):
        raise ValueError(f"{name} must have {size} rows of {size}, got {[len(row) for row in rows]}")
    return tuple(finites(row) for row in rows)


def config() -> Spec:
    """Return what all pictures share: size, type, quiet axes; no ARIA inside, the whole is one image."""
    text = {"labelColor": INK, "labelFontSize": 13, "titleColor": INK_SOFT, "titleFontSize": 13}
    lines = {"domainColor": LINE_STRONG, "tickColor": LINE_STRONG, "gridColor": LINE}
    return {
        "aria": False,
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**text, "titleFontWeight": "normal", "labelFlush": False, **lines},
        "axisLeft": {"titlePadding": 12},
        "legend": {**text, "symbolStrokeWidth": 2, "symbolOpacity": 1, "columnPadding": 30},
        "text": {"fill": INK, "fontSize": 13},
    }
