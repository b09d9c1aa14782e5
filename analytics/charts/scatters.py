"""Two numbers of every run against each other, and probabilities against how often they come true."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import BRONZE, INFO, INK, INK_SOFT, LINE_STRONG, Notes, labels_of, printable

MOST_NAMES = 3  # in one scatter: more would cover each other


@dataclass(frozen=True)
class ScatterPoint:
    """A run in a scatter; `is_marked` gives it the second look."""

    name: str
    x: float
    y: float
    is_marked: bool = False


@dataclass(frozen=True)
class ProbabilityBin:
    """The documents with a probability from `low` to `high`, and what share of them is relevant."""

    low: float
    high: float
    share: float
    n: int


def run_scatter(
    points: Sequence[ScatterPoint],
    title: str,
    description: str = "",
    *,
    x_title: str,
    y_title: str,
    kinds: tuple[str, str] = ("run", "marked run"),
    caption: str = "",
) -> Chart:
    """Return one mark a run; the three whose places by the two numbers differ most bear their names.

    Parameters
    ----------
    kinds : what the two looks mean; the legend stands where both occur

    Raises
    ------
    ValueError
        Fewer than two points, or a number that is not finite.
    """
    if len(points) < 2:
        raise ValueError(f"points must be at least 2, got {len(points)}")
    for point in points:
        if not (math.isfinite(point.x) and math.isfinite(point.y)):
            raise ValueError(f"points must be finite, got {point.x} and {point.y} of {point.name!r}")
    return _run_scatter(tuple(points), title, description, x_title, y_title, kinds, caption)


def calibration_curve(
    bins: Sequence[ProbabilityBin], title: str, description: str = "", *, x_title: str, y_title: str
) -> Chart:
    """Return the share of each bin at its middle, with its number of documents, and the diagonal.

    ValueError: no bins, bins that overlap or do not rise within [0, 1], a share outside [0, 1], a bin of nothing.
    """
    if not bins:
        raise ValueError("bins must be at least 1, got 0")
    ends = [end for one in bins for end in (one.low, one.high)]
    rises = all(one.low < one.high for one in bins) and ends == sorted(ends)
    if not rises or ends[0] < 0 or ends[-1] > 1:
        raise ValueError(f"bins must rise within [0, 1], got {ends}")
    for one in bins:
        if not 0 <= one.share <= 1 or one.n < 1:
            raise ValueError(
                f"a bin must have a share within [0, 1] of at least 1, got {one.share} of {one.n}"
            )
    return _calibration_curve(tuple(bins), title, description, x_title, y_title)


@lru_cache(maxsize=32)
def _run_scatter(
    points: tuple[ScatterPoint, ...],
    title: str,
    description: str,
    x_title: str,
    y_title: str,
    kinds: tuple[str, str],
    caption: str,
) -> Chart:
    alt = altair()

    named = set(_largest_gaps(points))
    notes = Notes()
    labels = labels_of((points[place].name for place in sorted(named)), notes)
    values = [
        {
            "x": point.x,
            "y": point.y,
            "kind": kinds[point.is_marked],
            "name": labels[point.name] if place in named else "",
        }
        for place, point in enumerate(points)
    ]
    has_both = len({point.is_marked for point in points}) == 2
    legend = alt.Legend(orient="bottom", title=None, symbolSize=120) if has_both else None

    def by_kind(channel: Any, looks: Sequence[str]) -> Any:
        return channel("kind:N", scale=alt.Scale(domain=list(kinds), range=list(looks)), legend=legend)

    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X("x:Q", scale=alt.Scale(zero=False, padding=16), axis=_axis(x_title)),
        y=alt.Y("y:Q", scale=alt.Scale(zero=False, padding=16), axis=_axis(y_title)),
    )
    marks = base.mark_point(size=60, opacity=1, strokeWidth=2).encode(
        stroke=by_kind(alt.Stroke, (INFO, BRONZE)),
        shape=by_kind(alt.Shape, ("circle", "triangle-up")),
    )
    middle = (min(point.x for point in points) + max(point.x for point in points)) / 2
    names = [
        base.transform_filter(f"datum.name != '' && datum.x {sign} {middle!r}")
        .mark_text(align=align, dx=shift, dy=-11, fill=INK, fontSize=12)
        .encode(text="name:N")
        for sign, align, shift in (("<=", "left", -3), (">", "right", 3))
    ]
    return chart_of(
        alt.layer(marks, *names).properties(height=300),
        title=title,
        description=description or _scatter_words(points, x_title, y_title),
        columns=("run", "kind", x_title, y_title),
        rows=[(point.name, kinds[point.is_marked], point.x, point.y) for point in points],
        caption=caption,
        notes=notes,
    )


def _largest_gaps(points: tuple[ScatterPoint, ...]) -> list[int]:
    """Return which points' places by the two numbers differ most: at most three, none with equal places."""
    by_x = sorted(range(len(points)), key=lambda place: -points[place].x)
    by_y = sorted(range(len(points)), key=lambda place: -points[place].y)
    gap = {place: abs(by_x.index(place) - by_y.index(place)) for place in by_x}
    return [place for place in sorted(by_x, key=lambda place: -gap[place])[:MOST_NAMES] if gap[place]]


def _scatter_words(points: tuple[ScatterPoint, ...], x_title: str, y_title: str) -> str:
    best = max(points, key=lambda point: point.x), max(points, key=lambda point: point.y)
    return (
        f"{y_title} against {x_title} of {len(points)} runs. The highest {x_title}: {best[0].name}; "
        f"the highest {y_title}: {best[1].name}."
    )


@lru_cache(maxsize=32)
def _calibration_curve(
    bins: tuple[ProbabilityBin, ...], title: str, description: str, x_title: str, y_title: str
) -> Chart:
    alt = altair()

    unit = alt.Scale(domain=[0, 1], nice=False)
    values = [{"x": (one.low + one.high) / 2, "y": one.share, "n": f"{one.n:,}"} for one in bins]
    x, y = alt.X("x:Q", scale=unit, axis=_axis(x_title)), alt.Y("y:Q", scale=unit, axis=_axis(y_title))
    diagonal = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    base = alt.Chart(alt.InlineData(values=values)).encode(x=x, y=y)
    drawing = alt.layer(
        diagonal.mark_line(stroke=LINE_STRONG, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y),
        base.mark_line(stroke=INFO, strokeWidth=2),
        base.mark_point(size=60, fill=INFO, stroke=INFO, opacity=1),
        base.mark_text(dy=-13, fill=INK_SOFT, fontSize=12).encode(text="n:N"),
    ).properties(height=300)
    said = "; ".join(f"{one.low:g} to {one.high:g}: {one.share:.3g} of {one.n}" for one in bins)
    return chart_of(
        drawing,
        title=title,
        description=description or f"{y_title} by {x_title}: {said}.",
        columns=("from", "to", "relevant", "documents"),
        rows=[(one.low, one.high, one.share, one.n) for one in bins],
    )


def _axis(title: str) -> Any:
    return altair().Axis(title=printable(title), tickCount=5)
