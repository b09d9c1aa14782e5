"""Colours, type and words of every picture.

A picture names its colours as the page's CSS custom properties (`var(--ink, #24221f)`): one SVG inside a page then
follows the reader's light or dark theme. A file that leaves the page gets the colours of one theme written out.
"""

import math
import re
import unicodedata
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
LINE_DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (12, 3, 2, 3, 2, 3), (10, 4))
LINE_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

WIDTH = 480  # user units; at 360 px of screen a 13-unit letter is still 9 px high
NARROWEST = 380  # of a file: below, names and numbers would cover each other
LABEL_LENGTH = 24  # letters of a label that are shown beside a picture; the others are in its footnote
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


def text_width(text: str) -> float:
    """Return the width of a text in letters of usual width; the picture's font is not known before it is drawn.

    >>> text_width("bm25"), text_width("MW"), text_width("日本")
    (4.7, 3.4, 4.0)
    """
    return round(sum(_letter_width(letter) for letter in text), 1)


def _letter_width(letter: str) -> float:
    if letter in "mwMW@%—…" or unicodedata.east_asian_width(letter) in "WF":
        return 1.7 if letter.isascii() else 2.0
    return 1.2 if letter.isupper() else 1.0


def wrap_lines(text: str, letters: float) -> list[str]:
    """Return the text in lines that are at most so many letters wide; a longer word is broken, nothing is left out.

    >>> wrap_lines("no audit is complete yet", 9), wrap_lines("abcdefgh", 3)
    (['no audit', 'is', 'complete', 'yet'], ['abc', 'def', 'gh'])
    """
    lines: list[str] = []
    line = ""
    for word in printable(text).split():
        if line and text_width(f"{line} {word}") <= letters:
            line = f"{line} {word}"
            continue
        if line and text_width(word) > letters:
            line += " "  # broken anyway: it begins beside what stands there
        elif line:
            lines.append(line)
            line = ""
        for letter in word:
            if line and text_width(line + letter) > letters:
                lines.append(line.rstrip())
                line = ""
            line += letter
    return [*lines, line] if line else lines


class Notes:
    """The footnotes of one picture, in the order of their first mark: what has no room stands there in full."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """Return the mark of a footnote with this text; equal texts share one.

        >>> notes = Notes()
        >>> notes.mark("no audit"), notes.mark("no judgment"), notes.mark("no audit"), notes.texts
        ('[1]', '[2]', '[1]', ['no audit', 'no judgment'])
        """
        if text not in self.texts:
            self.texts.append(text)
        return f"[{self.texts.index(text) + 1}]"


def shorten(text: str, length: float = LABEL_LENGTH) -> str:
    """Return the text, or its two ends where it is too wide: names often differ at the end.

    >>> shorten("a-run-with-a-very-long-name-2026-b", 20)
    'a-run-wi…e-2026-b'
    """
    clean = printable(text)
    if text_width(clean) <= length:
        return clean
    each = (length - 2) / 2  # 2 for the dots
    head, tail = clean, clean
    while text_width(head) > each:
        head = head[:-1]
    while text_width(tail) > each:
        tail = tail[1:]
    return f"{head}…{tail}"


def labels_of(names: Iterable[str], notes: Notes, length: float = LABEL_LENGTH) -> dict[str, str]:
    """Return for each different name what stands beside the picture, no two the same.

    A name that is too wide is shown by its two ends and the mark of a footnote, which has it whole.

    >>> labels_of(["ab", "a\\u200eb", "ab"], Notes())
    {'ab': 'ab', 'a\\u200eb': 'ab (2)'}
    >>> notes = Notes()
    >>> labels_of(["a-run-with-a-very-long-name"], notes, 16), notes.texts
    ({'a-run-with-a-very-long-name': 'a-run…name [1]'}, ['a-run-with-a-very-long-name'])
    """
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        clean = printable(name)
        label, place = clean, 1
        if text_width(clean) > length:
            label = f"{shorten(name, length - 4)} {notes.mark(clean)}"
        first = label
        while label in taken:
            place += 1
            label = f"{first} ({place})"
        taken.add(label)
        shown[name] = label
    return shown


def name_room(names: Iterable[str], limit: int) -> int:
    """Return the width that an axis keeps free for its names, so that a page's wider font does not run out of it.

    >>> name_room(["bm25", "bm25-description"], 190)
    135
    """
    return min(limit, round(LETTER * max(map(text_width, names), default=0))) + 6


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
