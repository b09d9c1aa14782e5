"""Counts by time and by size: bars, and one line a tier."""

import datetime
import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import (
    GOLD,
    INK,
    LINE_COLOURS,
    LINE_DASHES,
    LINE_SHAPES,
    SURFACE,
    Notes,
    finite,
    finites,
    labels_of,
    name_room,
    printable,
)

Moment = datetime.date | datetime.datetime
MOST_DOTS = 60  # names in one picture


def throughput(
    moments: Sequence[Moment],
    series: Mapping[str, Sequence[float | None]],
    title: str,
    description: str = "",
    unit: str = "judgments",
) -> Chart:
    """Return the counts of each tier by day or hour: one line a tier, None where they are unknown.

    ValueError: no moments or moments that do not rise, no or more than six series, lengths that differ, a negative
    number.
    """
    if not moments or any(b <= a for a, b in itertools.pairwise(moments)):
        raise ValueError("moments must be at least 1 and rise")
    if not 1 <= len(series) <= len(LINE_COLOURS):
        raise ValueError(f"between 1 and {len(LINE_COLOURS)} series can be drawn, got {len(series)}")
    lines = tuple((name, finites(numbers)) for name, numbers in series.items())
    for name, numbers in lines:
        if len(numbers) != len(moments):
            raise ValueError(f"series {name!r} needs {len(moments)} numbers, got {len(numbers)}")
        if any(number is not None and number < 0 for number in numbers):
            raise ValueError(f"series {name!r} must be at least 0")
    return _throughput(tuple(moments), lines, title, description, unit)


def histogram(
    edges: Sequence[float],
    counts: Sequence[int],
    title: str,
    description: str = "",
    x_title: str = "",
    y_title: str = "",
    reference: float | None = None,
) -> Chart:
    """Return counts between edges as bars; `reference` puts an upright line.

    ValueError: edges that do not rise or are not one more than the counts, or a negative count.
    """
    if len(edges) != len(counts) + 1 or len(counts) < 1 or any(b <= a for a, b in itertools.pairwise(edges)):
        raise ValueError(f"edges must rise and be one more than counts, got {len(edges)} and {len(counts)}")
    if min(counts) < 0:
        raise ValueError(f"counts must be at least 0, got {min(counts)}")
    plain = tuple(map(float, edges)), tuple(map(int, counts))
    return _histogram(*plain, title, description, x_title, y_title, finite(reference))


def dots(
    names: Sequence[str],
    series: Mapping[str, Sequence[float]],
    title: str,
    description: str = "",
    x_title: str = "",
) -> Chart:
    """Return one line a name with a mark of each series, the first name at the bottom; the CSV has what is too much.

    ValueError: no names, no or more than six series, lengths that differ, a number that is not finite.
    """
    if not names or not 1 <= len(series) <= len(LINE_COLOURS):
        raise ValueError(
            f"at least 1 name and 1 to {len(LINE_COLOURS)} series can be drawn, got {len(series)}"
        )
    lines = tuple((name, finites(numbers)) for name, numbers in series.items())
    for name, numbers in lines:
        if len(numbers) != len(names) or None in numbers:
            raise ValueError(f"series {name!r} needs {len(names)} finite numbers, got {len(numbers)}")
    return _dots(tuple(names), lines, title, description, x_title)


@lru_cache(maxsize=32)
def _throughput(
    moments: tuple[Moment, ...],
    lines: tuple[tuple[str, tuple[float | None, ...]], ...],
    title: str,
    description: str,
    unit: str,
) -> Chart:
    alt = altair()

    notes = Notes()
    names = labels_of((name for name, _ in lines), notes)
    are_hours = isinstance(moments[0], datetime.datetime)
    when = [_utc(moment) for moment in moments]
    values = [
        {"when": at, "count": number, "tier": names[name]}
        for name, numbers in lines
        for at, number in zip(when, numbers, strict=True)
    ]
    form = "%-d %b %H:%M" if are_hours else "%-d %b"
    legend = alt.Legend(orient="bottom", title=None, columns=3, symbolSize=200)
    looks = {"domain": list(names.values())}
    n = len(lines)

    def by_tier(channel: Any, looks_of: Sequence[Any]) -> Any:
        return channel("tier:N", scale=alt.Scale(**looks, range=list(looks_of[:n])), legend=legend)

    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X(
            "when:T",
            scale=alt.Scale(type="utc"),
            axis=alt.Axis(title=None, grid=False, format=form, tickCount=min(len(moments), 6)),
        ),
        y=alt.Y("count:Q", axis=alt.Axis(title=printable(unit), tickCount=4)),
    )
    drawing = alt.layer(
        base.mark_line(strokeWidth=2).encode(
            stroke=by_tier(alt.Stroke, LINE_COLOURS),
            strokeDash=by_tier(alt.StrokeDash, [list(dash) for dash in LINE_DASHES]),
        ),
        base.mark_point(size=35, opacity=1).encode(
            stroke=by_tier(alt.Stroke, LINE_COLOURS),
            fill=by_tier(alt.Fill, LINE_COLOURS),
            shape=by_tier(alt.Shape, LINE_SHAPES),
        ),
    ).properties(height=190)
    summary = "; ".join(
        f"{name}: {sum(number or 0 for number in numbers):,g} in all, "
        f"at most {max((number or 0 for number in numbers), default=0):,g}"
        for name, numbers in lines
    )
    by_moment = zip(when, *(numbers for _, numbers in lines), strict=True)
    return chart_of(
        drawing,
        title=title,
        description=description or f"{unit} by tier from {when[0]} to {when[-1]}. {summary}.",
        columns=("when", *(name for name, _ in lines)),
        rows=by_moment,
        notes=notes,
    )


def _utc(moment: Moment) -> str:
    """Return a moment as ISO 8601; one without a zone is taken as UTC.

    >>> _utc(datetime.date(2026, 11, 2)), _utc(datetime.datetime(2026, 11, 2, 5))
    ('2026-11-02', '2026-11-02T05:00:00Z')
    """
    if not isinstance(moment, datetime.datetime):
        return moment.isoformat()
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='seconds')}Z"


@lru_cache(maxsize=32)
def _dots(
    names: tuple[str, ...],
    lines: tuple[tuple[str, tuple[float | None, ...]], ...],
    title: str,
    description: str,
    x_title: str,
) -> Chart:
    alt = altair()

    shown = names[-MOST_DOTS:]
    notes = Notes()
    labels, tiers = labels_of(shown, notes), labels_of((name for name, _ in lines), notes)
    values = [
        {"name": labels[name], "value": number, "tier": tiers[tier]}
        for tier, numbers in lines
        for name, number in zip(shown, numbers[-MOST_DOTS:], strict=True)
    ]
    legend = alt.Legend(orient="bottom", title=None, columns=3, symbolSize=200)

    def by_tier(channel: Any, looks: Sequence[Any]) -> Any:
        scale = alt.Scale(domain=list(tiers.values()), range=list(looks[: len(lines)]))
        return channel("tier:N", scale=scale, legend=legend)

    order = [labels[name] for name in reversed(shown)]
    names_room = name_room(order, 190)
    axis = alt.Axis(title=None, grid=True, ticks=False, labelPadding=6, labelLimit=0, minExtent=names_room)
    drawing = (
        alt.Chart(alt.InlineData(values=values))
        .mark_point(size=60, opacity=1, strokeWidth=2)
        .encode(
            x=alt.X(
                "value:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=printable(x_title), tickCount=5)
            ),
            y=alt.Y("name:N", sort=order, axis=axis),
            stroke=by_tier(alt.Stroke, LINE_COLOURS),
            fill=by_tier(alt.Fill, LINE_COLOURS),
            shape=by_tier(alt.Shape, LINE_SHAPES),
        )
        .properties(height=max(90, 22 * len(shown)))
    )
    ends = "; ".join(f"{tier}: {min(numbers):.3g} to {max(numbers):.3g}" for tier, numbers in lines)  # type: ignore[type-var]
    return chart_of(
        drawing,
        title=title,
        description=description or f"{x_title} of {len(names)}, a mark for each series. {ends}.",
        columns=("name", *(tier for tier, _ in lines)),
        rows=zip(names, *(numbers for _, numbers in lines), strict=True),
        notes=notes,
    )


@lru_cache(maxsize=32)
def _histogram(
    edges: tuple[float, ...],
    counts: tuple[int, ...],
    title: str,
    description: str,
    x_title: str,
    y_title: str,
    reference: float | None,
) -> Chart:
    alt = altair()

    values = [
        {"from": low, "to": high, "count": count, "foot": 0}
        for (low, high), count in zip(itertools.pairwise(edges), counts, strict=True)
    ]
    scale = alt.Scale(domain=[edges[0], edges[-1]], nice=False, zero=False)
    axis = alt.Axis(title=printable(x_title), grid=False, tickCount=6)
    bars = (
        alt.Chart(alt.InlineData(values=values))
        .mark_bar(fill=GOLD, stroke=SURFACE)
        .encode(
            x=alt.X("from:Q", scale=scale, axis=axis),
            x2="to:Q",
            y=alt.Y("count:Q", axis=alt.Axis(title=printable(y_title), tickCount=4, tickMinStep=1)),
            y2="foot:Q",
        )
    )
    layers = [bars]
    if reference is not None:
        at = alt.InlineData(values=[{"at": reference}])
        layers.append(
            alt.Chart(at)
            .mark_rule(stroke=INK, strokeDash=[4, 3], strokeWidth=2)
            .encode(x=alt.X("at:Q", scale=scale))
        )
    summary = "; ".join(f"{v['from']:g} to {v['to']:g}: {v['count']}" for v in values if v["count"])
    return chart_of(
        alt.layer(*layers).properties(height=150),
        title=title,
        description=description or f"{y_title} by {x_title}: {summary or 'none'}.",
        columns=("from", "to", "count"),
        rows=[(v["from"], v["to"], v["count"]) for v in values],
    )
