"""Expected half-widths against items judged, or against money."""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import (
    GOLD,
    LINE_COLOURS,
    LINE_DASHES,
    LINE_STRONG,
    Notes,
    finites,
    labels_of,
    printable,
)

WIDEST = 6.0  # a line that begins higher than this many times the first one's start is cut off there

Lines = tuple[tuple[str, tuple[float | None, ...]], ...]


def curve(
    budgets: Sequence[float],
    widths: Mapping[str, Sequence[float | None]],
    title: str,
    description: str = "",
    *,
    x_title: str = "items judged",
    y_title: str = "expected half-width",
    chosen: float | None = None,
    target: float | None = None,
    is_logarithmic: bool = True,
) -> Chart:
    """Return half-widths of the 95 % confidence interval against the budget: one line a design or a purchase.

    The first line is the one that is looked at: it is whole, and its point at the budget `chosen` is marked. `target`
    puts a level line where the interval is narrow enough. A half-width of None is a gap: that budget is out of reach.

    Parameters
    ----------
    budgets : items or money, rising; positive where the axis is logarithmic, at least 0 else
    widths : each line's half-width at each of them, or None
    chosen : one of the budgets, or None

    Raises
    ------
    ValueError
        No or more than six lines, lengths that differ, fewer than two budgets, budgets that do not rise, a width that
        is negative, no width at all, a chosen budget that is not among them.
    """
    lines = tuple((name, finites(line)) for name, line in widths.items())
    plain = tuple(float(budget) for budget in budgets)
    _check(plain, lines, chosen, target, least_is_open=is_logarithmic)
    return _curve(plain, lines, title, description, x_title, y_title, chosen, target, is_logarithmic)


@lru_cache(maxsize=32)
def _curve(
    budgets: tuple[float, ...],
    lines: Lines,
    title: str,
    description: str,
    x_title: str,
    y_title: str,
    chosen: float | None,
    target: float | None,
    is_logarithmic: bool,
) -> Chart:
    alt = altair()

    notes = Notes()
    names = labels_of((name for name, _ in lines), notes)
    ceiling = max(_ceiling(lines), target or 0.0)
    values = [
        {"budget": budget, "width": width, "line": names[name]}
        for name, line in lines
        for budget, width in _clip_above(budgets, line, ceiling, is_logarithmic)
    ]
    ends = [budgets[0], budgets[-1]]
    if is_logarithmic:
        x_axis = alt.Axis(title=printable(x_title), values=_round_numbers(*ends), grid=False, format=",d")
        x_scale = alt.Scale(type="log", domain=ends, nice=False)
    else:
        x_axis = alt.Axis(title=printable(x_title), tickCount=6, grid=False, format="~s")
        x_scale = alt.Scale(domain=ends, nice=False)
    x = alt.X("budget:Q", scale=x_scale, axis=x_axis)
    y = alt.Y(
        "width:Q",
        scale=alt.Scale(domain=[0.0, ceiling], nice=True),
        axis=alt.Axis(title=printable(y_title), tickCount=5),
    )
    legend = alt.Legend(orient="bottom", title=None, symbolSize=300, columns=2, labelLimit=0)

    def by_line(channel: Any, looks: Sequence[Any]) -> Any:
        scale = alt.Scale(domain=list(names.values()), range=list(looks[: len(names)]))
        return channel("line:N", scale=scale, legend=legend)

    layers = [
        alt.Chart(alt.InlineData(values=values))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=x,
            y=y,
            stroke=by_line(alt.Stroke, LINE_COLOURS),
            strokeDash=by_line(alt.StrokeDash, [list(dash) for dash in LINE_DASHES]),
        ),
        *_marks(budgets, lines, chosen, target, x, y),
    ]
    return chart_of(
        alt.layer(*layers).properties(height=250),
        title=title,
        description=description or _description(budgets, lines, x_title, y_title, target),
        columns=(x_title, *(name for name, _ in lines)),
        rows=zip(budgets, *(line for _, line in lines), strict=True),
        notes=notes,
    )


def _marks(
    budgets: tuple[float, ...], lines: Lines, chosen: float | None, target: float | None, x: Any, y: Any
) -> list[Any]:
    """Return a line down from the first line's point at the chosen budget, the point, and the target level."""
    alt = altair()

    layers: list[Any] = []
    width = None if chosen is None else lines[0][1][budgets.index(float(chosen))]
    if chosen is not None and width is not None:
        at = alt.InlineData(values=[{"budget": float(chosen), "width": width, "foot": 0.0}])
        base = alt.Chart(at)
        layers += [
            base.mark_rule(stroke=LINE_STRONG, strokeDash=[3, 3]).encode(x=x, y=y, y2="foot:Q"),
            base.mark_point(size=90, fill=GOLD, stroke=GOLD, opacity=1).encode(x=x, y=y),
        ]
    if target is not None:
        level = alt.Chart(alt.InlineData(values=[{"width": float(target)}]))
        layers.append(level.mark_rule(stroke=LINE_STRONG, strokeDash=[3, 3], strokeWidth=2).encode(y=y))
    return layers


def _description(
    budgets: tuple[float, ...], lines: Lines, x_title: str, y_title: str, target: float | None
) -> str:
    ends = "; ".join(f"{name} {_ends(line)}" for name, line in lines)
    level = "" if target is None else f" Target: {target:.3g}."
    return f"{y_title.capitalize()}, for {budgets[0]:g} to {budgets[-1]:g} {x_title}: {ends}.{level}"


def _ends(line: Sequence[float | None]) -> str:
    """Return the first and the last half-width of a line in words.

    >>> _ends([0.5, 0.25, None])
    '0.5 to 0.25, then no more can be reached'
    """
    known = [width for width in line if width is not None]
    if not known:
        return "reaches none of these"
    more = ", then no more can be reached" if line[-1] is None else ""
    return f"{known[0]:.3g} to {known[-1]:.3g}{more}"


def _ceiling(lines: Lines) -> float:
    """Return the upper end of the axis: all of the lines, unless one would press the first flat."""
    highest = max(width for _, line in lines for width in line if width is not None)
    first = [width for width in lines[0][1] if width is not None]
    return min(highest, WIDEST * max(first)) if first and max(first) > 0 else highest or 1.0


def _clip_above(
    budgets: Sequence[float], line: Sequence[float | None], ceiling: float, is_logarithmic: bool = True
) -> list[tuple[float, float | None]]:
    """Return the points of a line up to the ceiling: above it nothing, and a point where it comes through.

    >>> _clip_above([10, 1000], [3.0, 1.0], 2.0)
    [(10.0, None), (100.0, 2.0), (1000.0, 1.0)]
    >>> _clip_above([0, 1000], [3.0, 1.0], 2.0, is_logarithmic=False)
    [(0.0, None), (500.0, 2.0), (1000.0, 1.0)]
    """
    points: list[tuple[float, float | None]] = []
    for place, (budget, width) in enumerate(zip(budgets, line, strict=True)):
        before = line[place - 1] if place else None
        if width is not None and before is not None and before > ceiling >= width:
            share, start = (before - ceiling) / (before - width), budgets[place - 1]
            at = start * (budget / start) ** share if is_logarithmic else start + share * (budget - start)
            points.append((float(at), ceiling))
        points.append((float(budget), None if width is None or width > ceiling else float(width)))
    return points


def _round_numbers(low: float, high: float) -> list[float]:
    """Return the numbers 1, 2 and 5 times powers of ten from low to high; where these are fewer than two, the ends.

    >>> _round_numbers(30, 700)
    [50.0, 100.0, 200.0, 500.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [
        step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high
    ]
    if len(numbers) > 7:  # five decades: powers of ten are enough
        numbers = [value for value in numbers if f"{value:g}".lstrip("0.").startswith("1")]
    return numbers if len(numbers) >= 2 else [float(low), float(high)]


def _check(
    budgets: tuple[float, ...],
    lines: Lines,
    chosen: float | None,
    target: float | None,
    *,
    least_is_open: bool,
) -> None:
    """Raise ValueError where a curve cannot be drawn."""
    if not 1 <= len(lines) <= len(LINE_COLOURS):
        raise ValueError(f"between 1 and {len(LINE_COLOURS)} lines can be drawn, got {len(lines)}")
    rises = all(a < b for a, b in itertools.pairwise(budgets)) and all(map(math.isfinite, budgets))
    if len(budgets) < 2 or not rises or budgets[0] < 0 or (least_is_open and budgets[0] == 0):
        raise ValueError(f"budgets must be at least 2, positive, and rise, got {list(budgets)}")
    for name, line in lines:
        if len(line) != len(budgets):
            raise ValueError(f"line {name!r} needs {len(budgets)} widths, got {len(line)}")
    for width in [*(width for _, line in lines for width in line), target]:
        if width is not None and not (math.isfinite(width) and width >= 0):
            raise ValueError(f"half-widths must be finite and at least 0, got {width}")
    if all(width is None for _, line in lines for width in line):
        raise ValueError("no line has a half-width at any of the budgets")
    if chosen is not None and chosen not in budgets:
        raise ValueError(f"the chosen budget must be one of {list(budgets)}, got {chosen}")
