"""A chart as a file: a table of formats, and the sheet that a file is drawn for (its width, its letters, its title)."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from analytics.charts.chart import Chart
from analytics.charts.theme import NARROWEST, WIDTH, Theme

WIDTHS = {"single": 84.0, "double": 174.0}  # mm: one column of a page, and both
LEAST_MM, MOST_MM = 40.0, 400.0
LEAST_PT, MOST_PT = 3.0, 30.0
USUAL_PT = 7.0  # points of the letters on a sheet
LETTERS = 13  # units of the letters in a picture
POINTS_A_MM = 72 / 25.4
PNG_DPI = 300
WIDEST = 4_000  # units


class SheetRefused(ValueError):
    """No picture has this size; `field` is the option to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Sheet:
    """What a file is drawn for.

    Parameters
    ----------
    theme : the colours
    width : "single" (84 mm), "double" (174 mm) or millimetres; empty: as on the page, and one column for a PDF
    font_pt : points of the letters beside axes, 7 by default; others are in proportion
    has_title : whether the title stands above the picture

    Raises
    ------
    SheetRefused
        A width outside 40 to 400 mm, letters outside 3 to 30 points, or letters that leave the picture no room.
    """

    theme: Theme = "light"
    width: str = ""
    font_pt: float | None = None
    has_title: bool = True

    def __post_init__(self) -> None:
        if not LEAST_MM <= self.mm <= MOST_MM:
            raise SheetRefused(
                "width",
                f"must be single, double or {LEAST_MM:g} to {MOST_MM:g} millimetres, got {self.width}",
            )
        if not LEAST_PT <= self.points <= MOST_PT:
            raise SheetRefused("font_pt", f"must be {LEAST_PT:g} to {MOST_PT:g} points, got {self.points:g}")
        if not NARROWEST <= self.units <= WIDEST:
            least, most = (self.mm * POINTS_A_MM * LETTERS / end for end in (WIDEST, NARROWEST))
            raise SheetRefused(
                "font_pt",
                f"letters of {self.points:g} points do not fit a picture of {self.mm:g} mm: "
                f"choose {max(LEAST_PT, least):.1f} to {int(10 * min(MOST_PT, most)) / 10:.1f}",
            )

    @property
    def is_sized(self) -> bool:
        return bool(self.width) or self.font_pt is not None

    @cached_property
    def mm(self) -> float:
        """The width in millimetres; 0 for what is no width."""
        width = self.width or "single"
        if width in WIDTHS:
            return WIDTHS[width]
        return float(width) if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", width) else 0.0

    @property
    def points(self) -> float:
        return USUAL_PT if self.font_pt is None else self.font_pt

    @property
    def units(self) -> int:
        """The width in the picture's own units, so that its letters have the points that were asked for."""
        return round(self.mm * POINTS_A_MM * LETTERS / self.points)

    def svg(self, chart: Chart, unit: str) -> str:
        """Return the picture with its size in millimetres ("mm"), or in points as plain numbers ("")."""
        drawn = chart.standalone_svg(self.theme, self.units, has_title=self.has_title)
        box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="[\d.]+" height="[\d.]+"', drawn)
        if box is None:
            raise ValueError("the picture has no size")
        width = self.mm if unit == "mm" else self.mm * POINTS_A_MM
        height = width * float(box[2]) / float(box[1])
        size = f'viewBox="0 0 {box[1]} {box[2]}" width="{width:.4f}{unit}" height="{height:.4f}{unit}"'
        return drawn.replace(box[0], size, 1)


@dataclass(frozen=True)
class PlotFormat:
    """A format of files: its key in addresses, what a link says, and how a chart is written."""

    key: str
    label: str
    content_type: str
    extension: str
    write: Callable[[Chart, Sheet], bytes]


def _svg(chart: Chart, sheet: Sheet) -> bytes:
    if sheet.is_sized:
        return sheet.svg(chart, "mm").encode()
    return chart.standalone_svg(sheet.theme, WIDTH, has_title=sheet.has_title).encode()


def _pdf(chart: Chart, sheet: Sheet) -> bytes:
    import vl_convert

    return bytes(vl_convert.svg_to_pdf(sheet.svg(chart, "")))


def _png(chart: Chart, sheet: Sheet) -> bytes:
    import vl_convert

    if sheet.is_sized:
        return bytes(vl_convert.svg_to_png(sheet.svg(chart, ""), ppi=PNG_DPI))
    plain = chart.standalone_svg(sheet.theme, WIDTH, has_title=sheet.has_title)
    return bytes(vl_convert.svg_to_png(plain, scale=2))


def _csv(chart: Chart, sheet: Sheet) -> bytes:
    return chart.csv().encode()


def _vega(chart: Chart, sheet: Sheet) -> bytes:
    """Return the Vega-Lite specification and what it draws; `usermeta` has every number, name and reason whole."""
    spec = chart.coloured_spec(sheet.theme)
    if sheet.is_sized:
        spec["width"] = sheet.units
    if not sheet.has_title:
        del spec["title"]
    spec["usermeta"] = {"columns": chart.columns, "rows": chart.rows, "footnotes": chart.notes}
    return json.dumps(spec, indent=1, allow_nan=False).encode()


PLOT_FORMATS = (
    PlotFormat("svg", "SVG", "image/svg+xml", "svg", _svg),
    PlotFormat("pdf", "PDF", "application/pdf", "pdf", _pdf),
    PlotFormat("png", "PNG", "image/png", "png", _png),
    PlotFormat("csv", "CSV", "text/csv; charset=utf-8", "csv", _csv),
    PlotFormat("vega", "Vega-Lite", "application/vnd.vegalite+json", "vl.json", _vega),
)


def plot_format(key: str) -> PlotFormat:
    """Return the format of this key, or raise KeyError."""
    return {one.key: one for one in PLOT_FORMATS}[key]
