"""Numbers to Vega-Lite to SVG: pictures that a page can hold without a script.

Colours are the page's CSS custom properties (`var(--ink, #24221f)`), so one SVG serves light and dark; what
follows the comma is for a file opened on its own. Nothing in an SVG needs more than the page's
Content-Security-Policy gives: no script, no style attribute, no address.
"""

import datetime
import hashlib
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import vl_convert

Spec = dict[str, Any]

INK = "var(--ink, #24221f)"
INK_SOFT = "var(--ink-soft, #5e584f)"
LINE = "var(--line, #dcd6ca)"
LINE_STRONG = "var(--line-strong, #857d71)"
SURFACE = "var(--surface, #fffdf9)"
GOLD = "var(--gold, #7a5900)"
GOLD_FILL = "var(--gold-fill, #d9a62e)"
BRONZE = "var(--bronze, #95552a)"
INFO = "var(--info, #2f5d7c)"
OK = "var(--ok, #2f6b45)"

WIDTH = 480  # user units; at 360 px of screen a 13-unit letter is still 9 px high
LANE = 18  # height of one method of one run in a forest plot

# Colour is never the only difference: each method has its own shape.
METHOD_FILL = {
    "naive": SURFACE,
    "corrected": GOLD,
    "matrix inverse": BRONZE,
    "importance sampling": INFO,
    "true value": INK,
}
METHOD_STROKE = METHOD_FILL | {"naive": INK_SOFT}
METHOD_SHAPE = {
    "naive": "circle",
    "corrected": "circle",
    "matrix inverse": "square",
    "importance sampling": "triangle-up",
    "true value": "diamond",
}


@dataclass(frozen=True)
class ForestRow:
    """One line of a forest plot: a run's value by one method with its interval, or the reason it has none.

    `method` is one of "naive", "corrected", "matrix inverse", "importance sampling", "true value". A row with `refused`
    text shows that text in place of the mark; its three numbers are not looked at.
    """

    label: str
    method: str
    value: float
    low: float
    high: float
    refused: str = ""


def printable(text: str) -> str:
    """Return the text on one line, with characters that XML forbids replaced.

    >>> printable("run\\x00 a\\nb")
    'run\\ufffd a b'
    """
    one_line = re.sub(r"[\t\n\r]+", " ", text)
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", one_line)


def forest_plot_spec(
    rows: Sequence[ForestRow], title: str, axis_title: str, reference: float | None = None
) -> Spec:
    """Return the Vega-Lite specification of a forest plot: one lane for each method of each run.

    Runs stand from top to bottom as they come in `rows`; `axis_title` names the measure; `reference` puts a
    vertical line, for example at 0 for differences. ValueError: no rows, an unknown method, a (label, method)
    pair twice, a number that is not finite, or not low <= value <= high.
    """
    _check_forest(rows, reference)
    methods = [method for method in METHOD_SHAPE if any(row.method == method for row in rows)]
    shown, refused = _forest_values(rows)
    x_scale = {"domain": _domain(rows, reference), "nice": True, "zero": False}
    x_axis = {"title": printable(axis_title), "tickCount": 5, "grid": True}
    # A method whose rows are all refused keeps its lane, but has no mark that a legend could explain.
    drawn = [method for method in methods if any(value["method"] == method for value in shown)]
    layers: list[Spec] = [
        {
            "data": {"values": shown},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {
                "x": number("low", x_scale, x_axis),
                "x2": {"field": "high"},
                "stroke": _by_method(drawn, METHOD_STROKE),
            },
        },
        {
            "data": {"values": shown},
            "mark": {"type": "point", "size": 75, "strokeWidth": 2, "opacity": 1},
            "encoding": {
                "x": number("value", x_scale),
                "fill": _by_method(drawn, METHOD_FILL),
                "stroke": _by_method(drawn, METHOD_STROKE),
                "shape": _by_method(drawn, METHOD_SHAPE),
            },
        },
        {
            "data": {"values": refused},
            "mark": {"type": "text", "align": "left", "fontStyle": "italic", "limit": 300, "fill": INK_SOFT},
            "encoding": {"x": {"value": 4}, "text": {"field": "text"}},
        },
    ]
    if reference is not None:
        ruler = {"type": "rule", "stroke": INK, "strokeDash": [4, 3]}
        at = {"values": [{"at": float(reference)}]}
        layers.insert(0, {"data": at, "mark": ruler, "encoding": {"x": number("at", x_scale)}})
    labels = list(dict.fromkeys(printable(row.label) for row in rows))
    lanes = {
        "y": {
            "field": "label",
            "type": "nominal",
            "scale": {"domain": labels, "paddingInner": 0.25, "paddingOuter": 0.15},
            "axis": {"title": None, "labelLimit": 150, "labelPadding": 6, "ticks": False},
        },
        "yOffset": {"field": "method", "scale": {"domain": methods}},
    }
    for layer in layers[-3:]:
        layer["encoding"].update(lanes)
    return page(title) | {"height": {"step": LANE, "for": "offset"}, "layer": layers}


def forest_plot(
    rows: Sequence[ForestRow], title: str, description: str, axis_title: str, reference: float | None = None
) -> str:
    """Return a forest plot as SVG text (see `forest_plot_spec` for rows and errors).

    `description` says in words what the picture shows, for those who do not see it.
    """
    return svg(forest_plot_spec(rows, title, axis_title, reference), title, description)


def confusion_heat_map(
    matrix: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, grade_labels: Sequence[str], title: str
) -> str:
    """Return a confusion matrix as SVG text: percentages with their intervals below.

    `matrix`, `low`, `high` have the shape (n_grades, n_grades): `confusion[true_grade, given_grade]` and the
    ends of its intervals, as fractions. `grade_labels` go from grade 0 upwards. ValueError: shapes that
    differ, labels that repeat, or a number outside [0, 1].
    """
    size = len(grade_labels)
    labels = [printable(label) for label in grade_labels]
    if size == 0 or len(set(labels)) != size:
        raise ValueError(f"grade_labels must be at least one and all different, got {labels}")
    middle = _fractions("matrix", matrix, size)
    lower, upper = _fractions("low", low, size), _fractions("high", high, size)
    cells = [
        {
            "true": labels[i],
            "given": labels[j],
            "share": float(middle[i, j]),
            "percent": f"{100 * middle[i, j]:.0f} %",
            "interval": f"{100 * lower[i, j]:.0f} to {100 * upper[i, j]:.0f}",
            "right": i == j,
        }
        for i, j in np.ndindex(size, size)
    ]
    axis = {"ticks": False, "domain": False, "labelLimit": 110, "labelPadding": 6}
    spec = page(title) | {
        "height": {"step": 52},
        "data": {"values": cells},
        "encoding": {
            "x": _grade_axis("given", "grade given", labels, axis | {"orient": "top", "labelAngle": 0}),
            "y": _grade_axis("true", "true grade", labels, axis),
        },
        "layer": [
            {
                "mark": {"type": "rect", "fill": GOLD_FILL},
                "encoding": {
                    # Never darker than 0.45: the same ink then keeps 4.5:1 on every cell in both themes.
                    "fillOpacity": _fixed("share", {"domain": [0, 1], "range": [0.03, 0.45]}, "quantitative"),
                    "stroke": _fixed("right", {"domain": [True, False], "range": [LINE_STRONG, LINE]}),
                },
            },
            {"mark": {"type": "text", "dy": -8, "fontSize": 14}, "encoding": {"text": {"field": "percent"}}},
            {"mark": {"type": "text", "dy": 10, "fontSize": 11}, "encoding": {"text": {"field": "interval"}}},
        ],
    }
    told = "; ".join(f"true {c['true']}, given {c['given']}: {c['percent']} ({c['interval']})" for c in cells)
    return svg(spec, title, f"Shares of each true grade: {told}.")


def progress_timeline(
    days: Sequence[datetime.date], counts: Sequence[int], title: str = "Judgments a day"
) -> str:
    """Return the judgments of each day as SVG text: bars.

    ValueError: no days, lengths that differ, a day twice, or a negative count.
    """
    if len(days) == 0 or len(days) != len(counts):
        raise ValueError(f"days and counts must be as many, at least 1, got {len(days)} and {len(counts)}")
    if len(set(days)) != len(days):
        raise ValueError(f"days must be different, got {len(days) - len(set(days))} twice")
    if min(counts) < 0:
        raise ValueError(f"counts must be at least 0, got {min(counts)}")
    x_axis = {"title": None, "grid": False, "format": "%-d %b", "tickCount": min(len(days), 7)}
    values = [{"day": day.isoformat(), "count": int(n)} for day, n in zip(days, counts, strict=True)]
    spec = page(title) | {
        "height": 170,
        "data": {"values": values},
        "mark": {"type": "bar", "fill": GOLD_FILL, "stroke": GOLD},
        "encoding": {
            "x": {"field": "day", "type": "temporal", "timeUnit": "utcyearmonthdate", "axis": x_axis},
            "y": number("count", axis={"title": "judgments", "tickCount": 4, "tickMinStep": 1}),
        },
    }
    described = f"{sum(counts)} judgments from {min(days)} to {max(days)}, at most {max(counts)} a day."
    return svg(spec, title, described)


def svg(spec: Spec, title: str, description: str) -> str:
    """Return the SVG text of a specification: as wide as its place, named for screen readers."""
    drawn: str = vl_convert.vegalite_to_svg(spec)
    box = re.search(r'viewBox="[^"]*"', drawn[: drawn.index(">")])
    if box is None:
        raise ValueError("the renderer gave an SVG without a viewBox")
    # One image with one name: no roles inside; several may stand on one page, so ids come from what is drawn.
    drawn = re.sub(r' (?:role|aria-roledescription|aria-label)="[^"]*"', "", drawn)
    key = hashlib.sha256((drawn + title + description).encode("utf-8", "replace")).hexdigest()[:12]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} width="100%" role="img"'
        f' aria-labelledby="t{key} d{key}"><title id="t{key}">{html.escape(printable(title))}</title>'
        f'<desc id="d{key}">{html.escape(printable(description))}</desc>{drawn[drawn.index(">") + 1 :]}'
    )


def standalone_svg(drawn: str) -> str:
    """Return the SVG with the light theme's colours written out, for a file that leaves the page.

    >>> standalone_svg('<svg viewBox="0 0 4 2" width="100%"><path fill="var(--ink, #24221f)"/></svg>')
    '<svg viewBox="0 0 4 2" width="4" height="2"><path fill="#24221f"/></svg>'
    """
    plain = re.sub(r'\b(fill|stroke)="var\(--[a-z-]+, (#[0-9a-f]{6})\)"', r'\1="\2"', drawn)
    size = r'viewBox="0 0 \1 \2" width="\1" height="\2"'
    return re.sub(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="100%"', size, plain, count=1)


def png(drawn: str) -> bytes:
    """Return the picture as PNG bytes on a transparent ground, two pixels a unit."""
    return bytes(vl_convert.svg_to_png(standalone_svg(drawn), scale=2))


def page(title: str) -> Spec:
    """Return what all pictures share: size, type, quiet axes; no ARIA inside, the whole is one image."""
    text = {"labelColor": INK, "labelFontSize": 13, "titleColor": INK_SOFT, "titleFontSize": 13}
    lines = {"domainColor": LINE_STRONG, "tickColor": LINE_STRONG, "gridColor": LINE}
    axis = {"titleFontWeight": "normal", "labelFlush": False} | lines
    heading = {"anchor": "start", "frame": "group", "fontSize": 14, "fontWeight": "bold", "offset": 12}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "padding": 4,
        "width": WIDTH,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "title": {"text": printable(title), "color": INK, "limit": WIDTH} | heading,
        "config": {
            "aria": False,
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": text | axis,
            "legend": text | {"symbolStrokeWidth": 2},
            "text": {"fill": INK, "fontSize": 13},
        },
    }


def _check_forest(rows: Sequence[ForestRow], reference: float | None) -> None:
    """Raise ValueError where rows cannot be drawn truthfully."""
    if not rows:
        raise ValueError("a forest plot needs at least 1 row, got 0")
    if reference is not None and not math.isfinite(reference):
        raise ValueError(f"reference must be finite, got {reference}")
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if row.method not in METHOD_SHAPE:
            raise ValueError(f"method must be one of {list(METHOD_SHAPE)}, got {row.method!r}")
        pair = (printable(row.label), row.method)
        if pair in seen:
            raise ValueError(f"label and method must not repeat, got {pair} twice")
        seen.add(pair)
        numbers = (row.low, row.value, row.high)
        if not row.refused and not (all(map(math.isfinite, numbers)) and row.low <= row.value <= row.high):
            raise ValueError(f"{row.label!r} needs finite low <= value <= high, got {numbers}")


def _domain(rows: Sequence[ForestRow], reference: float | None) -> list[float]:
    """Return the ends of the axis: every interval, the reference, and a twentieth of air."""
    ends = [end for row in rows if not row.refused for end in (row.low, row.high)]
    ends += [] if reference is None else [reference]
    if not ends:
        return [0.0, 1.0]
    air = 0.05 * (max(ends) - min(ends)) or 0.05
    return [float(min(ends) - air), float(max(ends) + air)]


def _forest_values(rows: Sequence[ForestRow]) -> tuple[list[Spec], list[Spec]]:
    """Return records of the rows that have numbers, and of the rows that have a reason instead."""
    shown: list[Spec] = []
    refused: list[Spec] = []
    for row in rows:
        names = {"label": printable(row.label), "method": row.method}
        numbers = {"value": float(row.value), "low": float(row.low), "high": float(row.high)}
        if row.refused:
            refused.append({**names, "text": f"{row.method}: {printable(row.refused)}"})
        else:
            shown.append({**names, **numbers})
    return shown, refused


def number(field: str, scale: Spec | None = None, axis: Spec | None = None) -> Spec:
    """Return the encoding of a number by its position."""
    given = {"scale": scale, "axis": axis}
    return {"field": field, "type": "quantitative"} | {k: v for k, v in given.items() if v is not None}


def _by_method(methods: list[str], looks: Mapping[str, str]) -> Spec:
    """Return the encoding that gives every method its look; the three channels share one legend."""
    legend = {"orient": "bottom", "columns": 2, "title": None, "symbolOpacity": 1}
    scale = {"domain": methods, "range": [looks[method] for method in methods]}
    return {"field": "method", "type": "nominal", "scale": scale, "legend": legend if methods else None}


def _fractions(name: str, given: npt.ArrayLike, size: int) -> npt.NDArray[np.float64]:
    """Return a checked square array of fractions."""
    array = np.asarray(given, dtype=np.float64)
    if array.shape != (size, size):
        raise ValueError(f"{name} must have the shape {(size, size)}, got {array.shape}")
    outside = ~((array >= 0) & (array <= 1))
    if outside.any():
        raise ValueError(f"{name} must be in [0, 1], got {array[outside][0]}")
    return array


def _grade_axis(field: str, title: str, labels: list[str], axis: Spec) -> Spec:
    """Return the encoding of one side of a confusion matrix."""
    scale = {"domain": labels, "padding": 0.06}
    return {"field": field, "type": "nominal", "scale": scale, "axis": axis | {"title": title}}


def _fixed(field: str, scale: Spec, kind: str = "nominal") -> Spec:
    """Return an encoding that needs no legend."""
    return {"field": field, "type": kind, "scale": scale, "legend": None}
