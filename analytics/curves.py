"""What a budget buys: half-widths against the number of judged items, as a picture (see analytics/charts.py)."""

import itertools
import math
from collections.abc import Mapping, Sequence

from analytics.charts import (
    BRONZE,
    GOLD,
    INFO,
    INK,
    INK_SOFT,
    LINE_STRONG,
    OK,
    Spec,
    number,
    page,
    printable,
    svg,
)

# Colour is never the only difference: each design has its own dash.
LINE_COLOURS = (GOLD, INK_SOFT, BRONZE, INFO, OK, INK)
LINE_DASHES = ([1, 0], [2, 2], [6, 3], [8, 3, 2, 3], [4, 4], [10, 4])
WIDEST = 6.0  # a line that begins higher than this many times the first design's start is cut off there


def half_width_curve(
    budgets: Sequence[float],
    widths: Mapping[str, Sequence[float | None]],
    title: str = "What a budget buys",
    chosen: float | None = None,
) -> str:
    """Return expected half-widths of the 95 % interval against the budget as SVG text: one line a design.

    The first design is the one that is looked at: its line is whole, and the point of it at the budget `chosen` is
    marked. Budgets stand on a logarithmic axis. A half-width of None is a gap: the design cannot reach that budget.

    Parameters
    ----------
    budgets : items that may be judged, positive and rising
    widths : each design's half-width at each of them, or None
    chosen : one of the budgets, or None

    Raises
    ------
    ValueError
        No or more than six designs, lengths that differ, fewer than two budgets, budgets that are not positive or do
        not rise, a width that is negative or not finite, no width at all, a chosen budget that is not among them.
    """
    _check_curve(budgets, widths, chosen)
    ceiling = _ceiling(widths)
    values = [
        {"budget": budget, "width": width, "design": printable(design)}
        for design, line in widths.items()
        for budget, width in _below(budgets, line, ceiling)
    ]
    names = [printable(design) for design in widths]
    legend = {"orient": "bottom", "title": None, "symbolSize": 300, "columns": 2, "labelLimit": 210}
    x_axis = {
        "title": "items judged",
        "values": _round_numbers(budgets[0], budgets[-1]),
        "grid": False,
        "format": ",d",
    }
    x_scale = {"type": "log", "domain": [float(budgets[0]), float(budgets[-1])], "nice": False}
    y_axis = {"title": "expected half-width, plus or minus", "tickCount": 5}
    y_scale = {"domain": [0.0, ceiling], "nice": True}
    lines: Spec = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2.5},
        "encoding": {"x": number("budget", x_scale, x_axis), "y": number("width", y_scale, y_axis)},
    }
    for channel, look in (("stroke", LINE_COLOURS), ("strokeDash", LINE_DASHES)):
        scale = {"domain": names, "range": list(look[: len(names)])}
        lines["encoding"][channel] = {"field": "design", "type": "nominal", "scale": scale, "legend": legend}
    layers = [lines, *_mark_of(budgets, widths, chosen)]
    ends = "; ".join(f"{design} {_ends(line)}" for design, line in widths.items())
    span = f"from {budgets[0]:g} to {budgets[-1]:g} items"
    described = f"Expected half-width of the interval {span}: {ends}."
    return svg(page(title) | {"height": 250, "layer": layers}, title, described)


def _mark_of(
    budgets: Sequence[float], widths: Mapping[str, Sequence[float | None]], chosen: float | None
) -> list[Spec]:
    """Return a line down from the first design's point at the chosen budget, and the point."""
    line = next(iter(widths.values()))
    width = None if chosen is None else line[list(budgets).index(chosen)]
    if chosen is None or width is None:
        return []
    at = {"values": [{"budget": float(chosen), "width": float(width), "foot": 0.0}]}
    here = {"x": number("budget"), "y": number("width")}
    ruler = {"type": "rule", "stroke": LINE_STRONG, "strokeDash": [3, 3]}
    point = {"type": "point", "size": 90, "fill": GOLD, "stroke": GOLD, "opacity": 1}
    return [
        {"data": at, "mark": ruler, "encoding": here | {"y2": {"field": "foot"}}},
        {"data": at, "mark": point, "encoding": here},
    ]


def _ends(line: Sequence[float | None]) -> str:
    """Return the first and the last half-width of a line in words.

    >>> _ends([0.5, 0.25, None])
    '0.5 to 0.25, then it cannot reach more'
    """
    known = [width for width in line if width is not None]
    if not known:
        return "cannot reach any of these"
    more = ", then it cannot reach more" if line[-1] is None else ""
    return f"{known[0]:.3g} to {known[-1]:.3g}{more}"


def _ceiling(widths: Mapping[str, Sequence[float | None]]) -> float:
    """Return the upper end of the axis: all of the lines, unless one would press the first flat."""
    known = [width for line in widths.values() for width in line if width is not None]
    first = [width for width in next(iter(widths.values())) if width is not None]
    highest = max(known)
    return min(highest, WIDEST * max(first)) if first and max(first) > 0 else highest or 1.0


def _below(
    budgets: Sequence[float], line: Sequence[float | None], ceiling: float
) -> list[tuple[float, float | None]]:
    """Return the points of a line up to the ceiling: above it nothing, and a point where it comes through.

    >>> _below([10, 1000], [3.0, 1.0], 2.0)
    [(10.0, None), (100.0, 2.0), (1000.0, 1.0)]
    """
    points: list[tuple[float, float | None]] = []
    for place, (budget, width) in enumerate(zip(budgets, line, strict=True)):
        before = line[place - 1] if place else None
        if width is not None and before is not None and before > ceiling >= width:
            share = (before - ceiling) / (before - width)
            points.append((float(budgets[place - 1] * (budget / budgets[place - 1]) ** share), ceiling))
        points.append((float(budget), None if width is None or width > ceiling else float(width)))
    return points


def _round_numbers(low: float, high: float) -> list[float]:
    """Return the numbers 1, 2 and 5 times powers of ten from low to high; where these are fewer than two, the ends.

    >>> _round_numbers(30, 700)
    [50.0, 100.0, 200.0, 500.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [
        step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high
    ]
    if len(found) > 7:  # five decades: powers of ten are enough
        found = [value for value in found if f"{value:g}".lstrip("0.").startswith("1")]
    return found if len(found) >= 2 else [float(low), float(high)]


def _check_curve(
    budgets: Sequence[float], widths: Mapping[str, Sequence[float | None]], chosen: float | None
) -> None:
    """Raise ValueError where a curve cannot be drawn."""
    if not 1 <= len(widths) <= len(LINE_COLOURS):
        raise ValueError(f"between 1 and {len(LINE_COLOURS)} designs can be drawn, got {len(widths)}")
    if len(budgets) < 2 or any(b <= a for a, b in itertools.pairwise(budgets)) or budgets[0] <= 0:
        raise ValueError(f"budgets must be at least 2, positive, and rise, got {list(budgets)}")
    for design, line in widths.items():
        if len(line) != len(budgets):
            raise ValueError(f"design {design!r} needs {len(budgets)} widths, got {len(line)}")
        if not all(width is None or (math.isfinite(width) and width >= 0) for width in line):
            raise ValueError(f"widths of design {design!r} must be finite and at least 0, got {list(line)}")
    if all(width is None for line in widths.values() for width in line):
        raise ValueError("no design has a half-width at any of the budgets")
    if chosen is not None and chosen not in budgets:
        raise ValueError(f"the chosen budget must be one of {list(budgets)}, got {chosen}")
