"""Pictures of plans and of agreement: numbers to SVG, in the looks of analytics/charts.py."""

import itertools
import math
from collections.abc import Mapping, Sequence

from analytics.charts import GOLD, GOLD_FILL, LINE_STRONG, Spec, number, page, printable, svg
from analytics.curves import LINE_COLOURS, LINE_DASHES


def money_curve(
    money: Sequence[float],
    widths: Mapping[str, Sequence[float | None]],
    title: str,
    wanted: float | None = None,
) -> str:
    """Return half-widths of the 95 % interval against the money that is spent, as SVG text: one line a purchase.

    The first line is whole, each other one has its own dash; `wanted` puts a level line where the interval is narrow
    enough. A half-width of None is a gap.

    Raises
    ------
    ValueError
        No or more than six lines, lengths that differ, fewer than two amounts, amounts that do not rise or begin below
        0, a width or a wanted width that is negative or not finite, no width at all.
    """
    _check(money, widths, wanted)
    values = [
        {"money": float(amount), "width": width, "purchase": printable(name)}
        for name, line in widths.items()
        for amount, width in zip(money, line, strict=True)
    ]
    names = [printable(name) for name in widths]
    legend = {"orient": "bottom", "title": None, "symbolSize": 300, "columns": 2, "labelLimit": 210}
    known = [width for line in widths.values() for width in line if width is not None]
    top = max([*known, wanted or 0.0])
    x_axis = {"title": "money spent from now on", "tickCount": 6, "grid": False, "format": "~s"}
    x_scale = {"domain": [float(money[0]), float(money[-1])], "nice": False}
    y_axis = {"title": "expected half-width, plus or minus", "tickCount": 5}
    lines: Spec = {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2.5},
        "encoding": {
            "x": number("money", x_scale, x_axis),
            "y": number("width", {"domain": [0.0, top or 1.0], "nice": True}, y_axis),
        },
    }
    for channel, look in (("stroke", LINE_COLOURS), ("strokeDash", LINE_DASHES)):
        scale = {"domain": names, "range": list(look[: len(names)])}
        lines["encoding"][channel] = {
            "field": "purchase",
            "type": "nominal",
            "scale": scale,
            "legend": legend,
        }
    layers = [lines]
    if wanted is not None:
        ruler = {"type": "rule", "stroke": LINE_STRONG, "strokeDash": [3, 3], "strokeWidth": 2}
        at = {"values": [{"width": float(wanted)}]}
        layers.append({"data": at, "mark": ruler, "encoding": {"y": number("width")}})
    ends = "; ".join(f"{name}: {_ends(line)}" for name, line in widths.items())
    level = "" if wanted is None else f" Narrow enough at {wanted:.3g}."
    described = f"Expected half-width for {money[0]:g} to {money[-1]:g} spent: {ends}.{level}"
    return svg(page(title) | {"height": 250, "layer": layers}, title, described)


def _ends(line: Sequence[float | None]) -> str:
    known = [width for width in line if width is not None]
    return f"{known[0]:.3g} to {known[-1]:.3g}" if known else "unknown"


def _check(
    money: Sequence[float], widths: Mapping[str, Sequence[float | None]], wanted: float | None
) -> None:
    if not 1 <= len(widths) <= len(LINE_COLOURS):
        raise ValueError(f"between 1 and {len(LINE_COLOURS)} lines can be drawn, got {len(widths)}")
    if len(money) < 2 or money[0] < 0 or any(b <= a for a, b in itertools.pairwise(money)):
        raise ValueError(f"money must be at least 2 amounts from 0 on that rise, got {list(money)}")
    for name, line in widths.items():
        if len(line) != len(money):
            raise ValueError(f"line {name!r} needs {len(money)} widths, got {len(line)}")
    known = [width for line in widths.values() for width in line if width is not None]
    if not known:
        raise ValueError("no line has a half-width at any amount")
    for width in [*known, wanted or 0.0]:
        if not (math.isfinite(width) and width >= 0):
            raise ValueError(f"half-widths must be finite and at least 0, got {width}")


def histogram(edges: Sequence[float], counts: Sequence[int], title: str, x_title: str, y_title: str) -> str:
    """Return counts between edges as SVG text: bars.

    ValueError: edges that do not rise or are not one more than the counts, or a negative count.
    """
    if len(edges) != len(counts) + 1 or len(counts) < 1 or any(b <= a for a, b in itertools.pairwise(edges)):
        raise ValueError(f"edges must rise and be one more than counts, got {len(edges)} and {len(counts)}")
    if min(counts) < 0:
        raise ValueError(f"counts must be at least 0, got {min(counts)}")
    values = [
        {"from": float(low), "to": float(high), "count": int(count)}
        for (low, high), count in zip(itertools.pairwise(edges), counts, strict=True)
    ]
    x_scale = {"domain": [float(edges[0]), float(edges[-1])], "nice": False, "zero": False}
    spec = page(title) | {
        "height": 150,
        "data": {"values": values},
        "mark": {"type": "bar", "fill": GOLD_FILL, "stroke": GOLD},
        "encoding": {
            "x": number("from", x_scale, {"title": printable(x_title), "grid": False, "tickCount": 6}),
            "x2": {"field": "to"},
            "y": number("count", axis={"title": printable(y_title), "tickCount": 4, "tickMinStep": 1}),
            "y2": {"datum": 0},
        },
    }
    told = "; ".join(f"{v['from']:g} to {v['to']:g}: {v['count']}" for v in values if v["count"])
    return svg(spec, title, f"{y_title} by {x_title}: {told}.")
