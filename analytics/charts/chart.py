"""A chart: its specification, its texts and its numbers, drawn as SVG on demand."""

import hashlib
import html
import importlib
import io
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from analytics.charts.theme import (
    DARK,
    INK,
    INK_SOFT,
    LIGHT,
    WIDTH,
    Notes,
    Spec,
    Theme,
    config,
    printable,
    wrap_lines,
)
from judging.spreadsheets import SheetWriter

KEPT_BYTES = 24_000_000  # of pictures drawn before, in each process
TITLE_LETTER, NOTE_LETTER = 8.8, 6.6  # units of a letter of the title and of a footnote
NOTE_LINE = 15  # units from one line of the footnotes to the next
TABLE_ROWS = 200  # of the numbers behind a picture, in a page; the CSV has all
Cell = str | int | float | bool | None

_VARIABLE = re.compile(r"var\(--([a-z-]+), (#[0-9a-f]{6})\)")
_COLOUR = re.compile(r'\b(fill|stroke)="var\(--([a-z-]+), (#[0-9a-f]{6})\)"')


@dataclass(frozen=True, eq=False)
class Chart:
    """One chart for pages, files and screen readers, all from the same numbers.

    `spec` is Vega-Lite; `description` is read to those who do not see the picture, `caption` stands below it. `rows`
    are what it draws, under the names of `columns`, whole and unrounded; None is a number that is not estimable.
    `notes` are its footnotes: names and reasons that have no room in it, whole. Equal specifications and words are
    drawn once and kept.
    """

    spec: Spec
    title: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    def svg(self, theme: Theme = "auto") -> str:
        """Return the SVG for a page: as wide as its container, named for screen readers.

        "auto" follows the page's theme through its CSS custom properties; "light" and "dark" are that theme's colours.
        """
        drawn = self._drawing(WIDTH, has_title=True)
        return drawn if theme == "auto" else _apply_theme(drawn, theme)

    def standalone_svg(self, theme: Theme = "light", width: int = WIDTH, *, has_title: bool = True) -> str:
        """Return the SVG as a file, so many units wide, with a background and the colours of one theme."""
        palette = DARK if theme == "dark" else LIGHT
        size = r'viewBox="0 0 \1 \2" width="\1" height="\2"'
        plain = _apply_theme(self._drawing(width, has_title=has_title), theme)
        plain = re.sub(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="100%"', size, plain, count=1)
        ground = f'</desc><rect width="100%" height="100%" fill="{palette["surface"]}"/>'
        return plain.replace("</desc>", ground, 1)

    def coloured_spec(self, theme: Theme = "light") -> Spec:
        """Return the specification with the colours of one theme in place of the page's custom properties."""
        palette = DARK if theme == "dark" else LIGHT
        text = json.dumps({**self.spec, "background": palette["surface"]})
        coloured: Spec = json.loads(_VARIABLE.sub(lambda found: palette.get(found[1], found[2]), text))
        return coloured

    def csv(self) -> str:
        """Return the numbers as CSV: a header, then every row; cells that are not estimable are empty.

        A text that a spreadsheet would run as a formula gets an apostrophe before it, as spreadsheets themselves do.
        """
        target = io.StringIO()
        writer = SheetWriter(target)
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow(row)
        return target.getvalue()

    @property
    def column_titles(self) -> tuple[str, ...]:
        """The names of the columns as words."""
        return tuple(column.replace("_", " ") for column in self.columns)

    @property
    def shown_rows(self) -> list[list[str]]:
        """The first rows, as a page's table writes them; the CSV has all, unrounded."""
        return [[_words(value) for value in row] for row in self.rows[:TABLE_ROWS]]

    @property
    def n_rows_left(self) -> int:
        return max(0, len(self.rows) - TABLE_ROWS)

    @cached_property
    def _key(self) -> str:
        content = json.dumps(
            [self.spec, self.title, self.description, self.notes], sort_keys=True, default=str
        )
        return hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()

    def _drawing(self, width: int, *, has_title: bool) -> str:
        return _KEPT.get(f"{self._key} {width} {has_title}", lambda: self._draw(width, has_title=has_title))

    def _draw(self, width: int, *, has_title: bool) -> str:
        import vl_convert  # 60 ms of import, and a second for its first picture: only for who looks at one

        spec = {**(self.spec if width >= WIDTH else _with_narrow_legends(self.spec)), "width": width}
        lines = wrap_lines(self.title, (width - 8) / TITLE_LETTER) if has_title else []
        spec["title"] = {**spec["title"], "text": lines or ""}
        named = add_name(vl_convert.vegalite_to_svg(spec), self.title, self.description)
        return add_notes(named, self.notes)


def altair() -> Any:
    """Return the module, imported at its first use: the import takes 300 ms.

    Altair would check every part of a drawing against Vega-Lite's schema, for half of the time; tests draw every kind.
    """
    module = importlib.import_module("altair")
    module.utils.schemapi.disable_debug_mode()
    return module


def add_name(drawn: str, title: str, description: str) -> str:
    """Return the renderer's SVG with a name and without its own size: one image, with no roles inside."""
    box = re.search(r'viewBox="[^"]*"', drawn[: drawn.index(">")])
    if box is None:
        raise ValueError("the renderer gave an SVG without a viewBox")
    drawn = re.sub(r' (?:role|aria-roledescription|aria-label)="[^"]*"', "", drawn)
    # Several may stand on one page: the ids come from what is drawn.
    key = hashlib.sha256((drawn + title + description).encode("utf-8", "replace")).hexdigest()[:12]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} width="100%" role="img"'
        f' aria-labelledby="t{key} d{key}"><title id="t{key}">{html.escape(printable(title))}</title>'
        f'<desc id="d{key}">{html.escape(printable(description))}</desc>{drawn[drawn.index(">") + 1 :]}'
    )


def chart_of(
    drawing: Any,
    *,
    title: str,
    description: str,
    columns: tuple[str, ...],
    rows: Iterable[Iterable[Cell]],
    caption: str = "",
    notes: Notes | None = None,
) -> Chart:
    """Return the Chart of an Altair drawing, in the shared style."""
    spec = {**drawing.to_dict(validate=False), **frame_spec(title)}
    texts = tuple(notes.texts) if notes else ()
    return Chart(spec, title, description, columns, tuple(tuple(row) for row in rows), caption, texts)


def frame_spec(title: str) -> Spec:
    """Return the shared part of all specifications: title, size and style, without a border."""
    heading = {"anchor": "start", "frame": "bounds", "fontSize": 14, "fontWeight": "bold", "offset": 12}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "config": config(),
        "background": None,
        "padding": 4,
        "width": WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "title": {"text": printable(title), "color": INK, "limit": 0, **heading},
    }


def add_notes(drawn: str, notes: Sequence[str]) -> str:
    """Return the SVG with its footnotes below it, wrap_lines to its width; the picture grows by their height."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    if not notes or box is None:
        return drawn
    width, height = float(box[1]), float(box[2])
    lines = [
        line
        for place, note in enumerate(notes, start=1)
        for line in wrap_lines(f"[{place}] {note}", (width - 8) / NOTE_LETTER)
    ]
    texts = "".join(
        f'<text x="4" y="{height + NOTE_LINE * (place + 1):g}" font-family="sans-serif" font-size="11px"'
        f' fill="{INK_SOFT}">{html.escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    grown = f'viewBox="0 0 {box[1]} {height + NOTE_LINE * (len(lines) + 0.5):g}"'
    return drawn.replace(box[0], grown, 1).replace("</svg>", f"{texts}</svg>")


def _with_narrow_legends(part: Any) -> Any:
    """Return a part of a specification whose legends have one entry a line."""
    if isinstance(part, list):
        return [_with_narrow_legends(one) for one in part]
    if not isinstance(part, dict):
        return part
    # What is drawn is left alone: data may have a column of any name.
    keep = ("datasets", "data")
    return {
        name: 1 if name == "columns" else one if name in keep else _with_narrow_legends(one)
        for name, one in part.items()
    }


def _apply_theme(drawn: str, theme: Theme) -> str:
    palette = DARK if theme == "dark" else LIGHT
    return _COLOUR.sub(lambda found: f'{found[1]}="{palette.get(found[2], found[3])}"', drawn)


def _words(value: Cell) -> str:
    """Return a cell of the table behind a picture.

    >>> [_words(value) for value in (0.123456, -2.0, 12000, None, "bm25", 1e-7)]
    ['0.1235', '-2', '12,000', '–', 'bm25', '1e-07']
    """
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return printable(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


class _TextCache:
    """A cache of the newest texts, limited in bytes."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.held = 0
        self.texts: OrderedDict[str, str] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, key: str, make: Callable[[], str]) -> str:
        with self.lock:
            if key in self.texts:
                self.texts.move_to_end(key)
                return self.texts[key]
        text = make()  # outside the lock: two may draw the same picture, none waits for another's
        with self.lock:
            if key not in self.texts and len(text) <= self.n_bytes:
                self.texts[key] = text
                self.held += len(text)
            while self.held > self.n_bytes:
                self.held -= len(self.texts.popitem(last=False)[1])
        return text


_KEPT = _TextCache(KEPT_BYTES)
