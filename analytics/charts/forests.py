"""Values with their intervals, one below the other: runs by method, and differences by topic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from analytics import methods
from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import (
    BRONZE,
    GOLD,
    INFO,
    INK,
    INK_SOFT,
    NARROWEST,
    NOT_ESTIMABLE,
    SURFACE,
    Notes,
    Spec,
    finite,
    finites,
    labels_of,
    name_room,
    printable,
    text_width,
)
from analytics.methods import REPORTED

LANE = 18  # height of one method of one run
NARROW_LANE = 14  # the same where there are many
MANY_LANES = 60
NAME_ROOM = 190  # units kept free for names, at most
REASON_LETTER = 6.9  # units of a letter of a reason, in italics

# Fill, stroke and shape, given to the methods in their order. Colour is never the only difference.
LOOKS = (
    (SURFACE, INK_SOFT, "circle"),
    (GOLD, GOLD, "circle"),
    (BRONZE, BRONZE, "square"),
    (INFO, INFO, "triangle-up"),
    (INK, INK, "diamond"),
    (INK_SOFT, INK_SOFT, "cross"),
    (BRONZE, BRONZE, "triangle-down"),
    (INFO, INFO, "triangle-left"),
    (INK, INK, "triangle-right"),
)
FILL, STROKE, SHAPE = range(3)  # of a look
FOREST_COLUMNS = ("label", "method", "value", "low", "high", "note")
TOPIC_COLUMNS = ("topic", "value", "low", "high")


@dataclass(frozen=True)
class ForestRow:
    """One line of a forest plot: a run's value by one method with its interval, or the reason it has none.

    `method` is the short name of a method. A row with `refused` text shows that text in place of the mark, and its
    numbers are not looked at. A value of None or NaN is not estimable; a value without ends is a point without a line.
    """

    label: str
    method: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refused: str = ""


def method_looks() -> dict[str, tuple[str, str, str]]:
    """Return fill, stroke and shape of every method, by its short name.

    >>> method_looks()["corrected"][2]
    'circle'
    """
    return {method.short: LOOKS[place % len(LOOKS)] for place, method in enumerate(methods.METHODS)}


def forest(
    rows: Sequence[ForestRow],
    title: str,
    description: str = "",
    measure: str = "",
    reference: float | None = None,
) -> Chart:
    """Return a forest plot: one lane for each method of each run, from top to bottom as they come in `rows`.

    Parameters
    ----------
    measure : names the axis
    reference : puts a vertical line, for example at 0 for differences
    description : says in words what the picture shows, for those who do not see it; else it is made from the rows

    Raises
    ------
    ValueError
        No rows, an unknown method, a (label, method) pair twice, or not low <= value <= high.
    """
    plain = tuple(_plain(row) for row in rows)
    _check_forest(plain, reference)
    return _forest(plain, title, description, measure, reference)


def topic_differences(
    topic_ids: Sequence[str],
    values: Sequence[float | None],
    low: Sequence[float | None],
    high: Sequence[float | None],
    title: str,
    description: str = "",
    measure: str = "difference",
) -> Chart:
    """Return the difference of two runs in each topic with its interval, the topics as they are given.

    A topic whose value is None stands there with the words. ValueError: no topics, one twice, lengths that differ, or
    not low <= value <= high.
    """
    columns = (tuple(topic_ids), finites(values), finites(low), finites(high))
    if not topic_ids or len({*map(len, columns)}) != 1:
        raise ValueError(f"topics and their numbers must be as many, at least 1, got {[*map(len, columns)]}")
    if len({*topic_ids}) != len(topic_ids):
        raise ValueError("topic_ids must be different")
    rows = tuple(
        ForestRow(topic, REPORTED.short, v, lo, hi) for topic, v, lo, hi in zip(*columns, strict=True)
    )
    _check_forest(rows, None)
    return _topics(rows, title, description, measure)


def _plain(row: ForestRow) -> ForestRow:
    """Return the row with None for every number that is not finite."""
    if row.refused:
        return ForestRow(row.label, row.method, refused=row.refused)
    value = finite(row.value)
    if value is None:
        return ForestRow(row.label, row.method, refused=NOT_ESTIMABLE)
    low, high = finite(row.low), finite(row.high)
    if low is None or high is None:
        low = high = None
    return ForestRow(row.label, row.method, value, low, high)


def _check_forest(rows: Sequence[ForestRow], reference: float | None) -> None:
    """Raise ValueError where rows cannot be drawn truthfully."""
    if not rows:
        raise ValueError("a forest plot needs at least 1 row, got 0")
    if reference is not None and not math.isfinite(reference):
        raise ValueError(f"reference must be finite, got {reference}")
    seen: set[tuple[str, str]] = set()
    looks = method_looks()
    for row in rows:
        if row.method not in looks:
            raise ValueError(f"method must be one of {list(looks)}, got {row.method!r}")
        if (row.label, row.method) in seen:
            raise ValueError(f"label and method must not repeat, got {(row.label, row.method)} twice")
        seen.add((row.label, row.method))
        numbers = (row.low, row.value, row.high)
        known = [number for number in numbers if number is not None]
        if row.value is not None and known != sorted(known):
            raise ValueError(f"{row.label!r} needs low <= value <= high, got {numbers}")


@lru_cache(maxsize=64)
def _forest(
    rows: tuple[ForestRow, ...], title: str, description: str, measure: str, reference: float | None
) -> Chart:
    alt = altair()

    notes = Notes()
    labels = labels_of((row.label for row in rows), notes)
    looks = method_looks()
    lanes = [method for method in looks if any(row.method == method for row in rows)]
    shown = [_record(row, labels) for row in rows if row.value is not None]
    refused = _refusals(rows, labels, notes)
    # A method whose rows are all refused keeps its lane, but has no mark that a legend could explain.
    drawn = [method for method in lanes if any(value["method"] == method for value in shown)]
    n_lanes = len(labels) * len(lanes)
    y = {
        "y": _names(list(labels.values())),
        "yOffset": alt.YOffset("method:N").scale(domain=lanes),
    }
    scale = _scale(rows, reference)
    axis = alt.Axis(title=printable(measure), tickCount=5, grid=True)
    legend = alt.Legend(orient="bottom", columns=2, title=None)

    def by_method(channel: Any, look: int) -> Any:
        domain = alt.Scale(domain=drawn, range=[looks[method][look] for method in drawn])
        return channel("method:N", scale=domain, legend=legend if drawn else None)

    lines = [row for row in shown if row["low"] is not None]
    layers = [
        *_ruler(reference, scale),
        alt.Chart(_data(lines))
        .mark_rule(strokeWidth=2)
        .encode(
            x=alt.X("low:Q", scale=scale, axis=axis),
            x2="high:Q",
            stroke=by_method(alt.Stroke, STROKE),
            **y,
        ),
        alt.Chart(_data(shown))
        .mark_point(size=75, strokeWidth=2, opacity=1)
        .encode(
            x=alt.X("value:Q", scale=scale, axis=axis),
            fill=by_method(alt.Fill, FILL),
            stroke=by_method(alt.Stroke, STROKE),
            shape=by_method(alt.Shape, SHAPE),
            **y,
        ),
        _words(refused).encode(text="text:N", **y),
    ]
    step = {"step": LANE if n_lanes <= MANY_LANES else NARROW_LANE, "for": "offset"}
    return chart_of(
        alt.layer(*layers).properties(height=alt.Step(**step)),
        title=title,
        description=description or _description(rows, measure or title),
        caption=description
        or "Each point is a value, its line the 95 % confidence interval; the shape shows the method.",
        columns=FOREST_COLUMNS,
        rows=[(row.label, row.method, row.value, row.low, row.high, row.refused) for row in rows],
        notes=notes,
    )


@lru_cache(maxsize=64)
def _topics(rows: tuple[ForestRow, ...], title: str, description: str, measure: str) -> Chart:
    alt = altair()

    notes = Notes()
    labels = labels_of((row.label for row in rows), notes, 18)
    shown = [_record(row, labels) for row in rows if row.value is not None]
    for record in shown:
        record["side"] = _side(record)
    refused = [{"label": labels[row.label], "text": NOT_ESTIMABLE} for row in rows if row.value is None]
    scale = _scale(rows, 0.0)
    axis = alt.Axis(title=printable(measure), tickCount=5, grid=True)
    sides = ["above 0", "not significant", "below 0"]
    legend = alt.Legend(orient="bottom", columns=3, title=None)
    y = {"y": _names(list(labels.values()))}

    def by_side(channel: Any, looks: list[str]) -> Any:
        return channel("side:N", scale=alt.Scale(domain=sides, range=looks), legend=legend if shown else None)

    layers = [
        *_ruler(0.0, scale),
        alt.Chart(_data([row for row in shown if row["low"] is not None]))
        .mark_rule(strokeWidth=2)
        .encode(
            x=alt.X("low:Q", scale=scale, axis=axis),
            x2="high:Q",
            stroke=by_side(alt.Stroke, [GOLD, INK_SOFT, INFO]),
            **y,
        ),
        alt.Chart(_data(shown))
        .mark_point(size=55, strokeWidth=2, opacity=1)
        .encode(
            x=alt.X("value:Q", scale=scale, axis=axis),
            fill=by_side(alt.Fill, [GOLD, SURFACE, INFO]),
            stroke=by_side(alt.Stroke, [GOLD, INK_SOFT, INFO]),
            shape=by_side(alt.Shape, ["triangle-right", "circle", "triangle-left"]),
            **y,
        ),
        _words(refused).encode(text="text:N", **y),
    ]
    step = LANE if len(rows) <= MANY_LANES else NARROW_LANE
    return chart_of(
        alt.layer(*layers).properties(height=alt.Step(step)),
        title=title,
        description=description or _description(rows, measure),
        caption=description or "Each point is a topic's difference, its line the 95 % confidence interval.",
        columns=TOPIC_COLUMNS,
        rows=[(row.label, row.value, row.low, row.high) for row in rows],
        notes=notes,
    )


def _side(record: Spec) -> str:
    """Return on which side of 0 the whole interval lies."""
    if record["low"] is not None and record["low"] > 0:
        return "above 0"
    return "below 0" if record["high"] is not None and record["high"] < 0 else "not significant"


def _record(row: ForestRow, labels: dict[str, str]) -> Spec:
    return {
        "label": labels[row.label],
        "method": row.method,
        "value": row.value,
        "low": row.low,
        "high": row.high,
    }


def _refusals(rows: Sequence[ForestRow], labels: dict[str, str], notes: Notes) -> list[Spec]:
    """Return the reasons of the rows without a number: in their lane where it has room, else in a footnote."""
    letters = (NARROWEST - 24 - name_room(labels.values(), NAME_ROOM)) / REASON_LETTER
    shown = []
    for row in rows:
        if row.value is None:
            text = f"{row.method}: {printable(row.refused)}"
            if text_width(text) > letters:
                mark = notes.mark(printable(row.refused))
                text = f"{row.method}: {NOT_ESTIMABLE} {mark}"
                text = text if text_width(text) <= letters else f"{row.method} {mark}"
            shown.append({"label": labels[row.label], "method": row.method, "text": text})
    return shown


def _data(values: list[Spec]) -> Any:
    alt = altair()

    return alt.InlineData(values=values)


def _names(labels: list[str]) -> Any:
    """Return the axis of names, in their order."""
    alt = altair()

    scale = alt.Scale(domain=labels, paddingInner=0.25, paddingOuter=0.15)
    room = name_room(labels, NAME_ROOM)
    axis = alt.Axis(title=None, labelLimit=0, labelPadding=6, ticks=False, minExtent=room)
    return alt.Y("label:N", scale=scale, axis=axis)


def _words(values: list[Spec]) -> Any:
    """Return the layer of reasons, at the left edge of their lanes."""
    alt = altair()

    return (
        alt.Chart(_data(values))
        .mark_text(align="left", fontStyle="italic", fill=INK_SOFT)
        .encode(x=alt.value(4))
    )


def _ruler(reference: float | None, scale: Any) -> list[Any]:
    alt = altair()

    if reference is None:
        return []
    at = _data([{"at": float(reference)}])
    return [
        alt.Chart(at)
        .mark_rule(stroke=INK, strokeDash=[4, 3])
        .encode(x=alt.X("at:Q", scale=scale, axis=alt.Axis(title=None)))
    ]


def _scale(rows: Sequence[ForestRow], reference: float | None) -> Any:
    """Return an axis that holds every interval, the reference, and a margin of a twentieth."""
    alt = altair()

    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    ends += [] if reference is None else [reference]
    if not ends:
        return alt.Scale(domain=[0.0, 1.0], nice=True, zero=False)
    air = 0.05 * (max(ends) - min(ends)) or 0.05
    return alt.Scale(domain=[float(min(ends) - air), float(max(ends) + air)], nice=True, zero=False)


def _description(rows: Sequence[ForestRow], measure: str) -> str:
    """Return the picture in words: the first dozen of its rows, and how many there are."""
    words = []
    for row in rows[:12]:
        label = printable(row.label)
        if row.value is None:
            words.append(f"{label}, {row.method}: {row.refused or NOT_ESTIMABLE}")
        elif row.low is None or row.high is None:
            words.append(f"{label}, {row.method}: {row.value:.3g}")
        else:
            words.append(f"{label}, {row.method}: {row.value:.3g} ({row.low:.3g} to {row.high:.3g})")
    more = f"; and {len(rows) - 12} more rows" if len(rows) > 12 else ""
    return f"{measure} with 95 % confidence intervals. {'; '.join(words)}{more}."
