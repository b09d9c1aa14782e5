"""What a log of judgments shows: lines over the position, quartiles by group, shares of the grades by group."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import (
    GOLD,
    INK,
    LINE_COLOURS,
    LINE_DASHES,
    LINE_STRONG,
    NOT_ESTIMABLE,
    Notes,
    finites,
    labels_of,
    name_room,
    printable,
)

SHOWN_GROUPS = 40  # the table behind the picture has all
FAINT, STRONG = 0.1, 0.95  # of the lowest and of the highest grade
LABEL_LIMIT = 150  # pixels

Column = tuple[float | None, ...]


def position_lines(
    positions: Sequence[int],
    lines: Mapping[str, Sequence[float | None]],
    title: str,
    description: str = "",
    y_title: str = "",
    *,
    is_share: bool = False,
) -> Chart:
    """Return a line for each series over the position in a topic, counted from 1; None is a gap.

    ValueError: no positions or positions that do not rise, no or more than six lines, lengths that differ.
    """
    if not positions or any(b <= a for a, b in pairwise(positions)):
        raise ValueError("positions must be at least 1 and rise")
    if not 1 <= len(lines) <= len(LINE_COLOURS):
        raise ValueError(f"between 1 and {len(LINE_COLOURS)} lines can be drawn, got {len(lines)}")
    plain = tuple((name, finites(line)) for name, line in lines.items())
    for name, line in plain:
        if len(line) != len(positions):
            raise ValueError(f"line {name!r} needs {len(positions)} numbers, got {len(line)}")
    return _position_lines(tuple(positions), plain, title, description, y_title, is_share)


def quartile_bars(
    labels: Sequence[str],
    quartiles: Sequence[Sequence[float | None]],
    title: str,
    description: str = "",
    x_title: str = "",
    group: str = "group",
) -> Chart:
    """Return of every group the median as a point and the middle half as a line; `quartiles` are low, median, high.

    ValueError: no groups, one twice, lengths that differ, or quartiles that do not rise.
    """
    rows = tuple(finites(row) for row in quartiles)
    if not labels or len({*labels}) != len(labels) or len(rows) != len(labels):
        raise ValueError(f"labels must be different and as many as quartiles, got {list(labels)}")
    for label, row in zip(labels, rows, strict=True):
        known = [number for number in row if number is not None]
        if len(row) != 3 or len(known) not in (0, 3) or known != sorted(known):
            raise ValueError(f"{label!r} needs three numbers that rise, got {row}")
    return _quartile_bars(tuple(labels), rows, title, description, x_title, group)


def grade_shares(
    labels: Sequence[str],
    grades: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    title: str,
    description: str = "",
    group: str = "group",
) -> Chart:
    """Return of every group a bar with the share of each grade, the lowest grade first.

    ValueError: no groups or grades, one twice, lengths that differ, a share outside [0, 1].
    """
    rows = tuple(finites(row) for row in shares)
    for names in (labels, grades):
        if not names or len({*names}) != len(names):
            raise ValueError(f"names must be at least 1 and all different, got {list(names)}")
    if len(rows) != len(labels) or any(len(row) != len(grades) for row in rows):
        raise ValueError(f"shares must have {len(labels)} rows of {len(grades)}, got {[*map(len, rows)]}")
    outside = [x for row in rows for x in row if x is not None and not -1e-9 <= x <= 1 + 1e-9]
    if outside:
        raise ValueError(f"shares must be in [0, 1], got {outside[0]}")
    return _grade_shares(tuple(labels), tuple(grades), rows, title, description, group)


@lru_cache(maxsize=64)
def _position_lines(
    positions: tuple[int, ...],
    lines: tuple[tuple[str, Column], ...],
    title: str,
    description: str,
    y_title: str,
    is_share: bool,
) -> Chart:
    alt = altair()

    notes = Notes()
    names = labels_of((name for name, _ in lines), notes)
    values = [
        {"position": at, "value": value, "line": names[name]}
        for name, line in lines
        for at, value in zip(positions, line, strict=True)
    ]
    legend = alt.Legend(
        orient="bottom", title=None, symbolSize=300, columns=2, columnPadding=36, labelLimit=0
    )

    def by_line(channel: Any, looks: Sequence[Any], explained: Any = legend) -> Any:
        scale = alt.Scale(domain=list(names.values()), range=list(looks[: len(names)]))
        return channel("line:N", scale=scale, legend=explained)

    axis = alt.Axis(title=printable(y_title), tickCount=4, **({"format": "%"} if is_share else {}))
    scale = alt.Scale(domain=[0, 1]) if is_share else alt.Scale(zero=True, nice=True)
    x_axis = alt.Axis(title="position in the topic", grid=False, tickCount=6, tickMinStep=1, format="d")
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X("position:Q", scale=alt.Scale(nice=False, zero=False), axis=x_axis),
        y=alt.Y("value:Q", scale=scale, axis=axis),
    )
    drawing = alt.layer(
        base.mark_line(strokeWidth=2).encode(
            stroke=by_line(alt.Stroke, LINE_COLOURS),
            strokeDash=by_line(alt.StrokeDash, [list(dash) for dash in LINE_DASHES]),
        ),
        base.mark_point(size=18, opacity=1, filled=True).encode(fill=by_line(alt.Fill, LINE_COLOURS, None)),
    ).properties(height=150)
    return chart_of(
        drawing,
        title=title,
        description=description or f"{y_title} by position in the topic. {_ends(lines)}",
        columns=("position", *(name for name, _ in lines)),
        rows=zip(positions, *(line for _, line in lines), strict=True),
        notes=notes,
    )


def _ends(lines: tuple[tuple[str, Column], ...]) -> str:
    """Return the first and the last number of each line in words.

    >>> _ends((("bob", (3.0, None, 2.0)), ("others", (None,))))
    'bob: 3 at first, 2 at last; others: not estimable.'
    """
    words = []
    for name, line in lines:
        known = [value for value in line if value is not None]
        ends = f"{known[0]:.3g} at first, {known[-1]:.3g} at last" if known else NOT_ESTIMABLE
        words.append(f"{name}: {ends}")
    return f"{'; '.join(words)}."


@lru_cache(maxsize=32)
def _quartile_bars(
    labels: tuple[str, ...], rows: tuple[Column, ...], title: str, description: str, x_title: str, group: str
) -> Chart:
    alt = altair()

    notes = Notes()
    names = labels_of(labels[:SHOWN_GROUPS], notes)
    shown = [
        {"group": names[label], "low": row[0], "median": row[1], "high": row[2]}
        for label, row in zip(labels[:SHOWN_GROUPS], rows, strict=False)
        if row[1] is not None
    ]
    y = alt.Y("group:N", sort=list(names.values()), axis=_group_axis(alt, names.values()))
    axis = alt.Axis(title=printable(x_title), tickCount=5, grid=True)
    scale = alt.Scale(zero=True, nice=True)
    base = alt.Chart(alt.InlineData(values=shown)).encode(y=y)
    drawing = alt.layer(
        base.mark_rule(strokeWidth=3, stroke=LINE_STRONG).encode(
            x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
        ),
        base.mark_point(size=70, fill=GOLD, stroke=INK, opacity=1).encode(
            x=alt.X("median:Q", scale=scale, axis=axis)
        ),
    ).properties(height=alt.Step(20 if len(names) <= SHOWN_GROUPS // 2 else 14))
    caption = "A point is the median, its line the middle half."
    return chart_of(
        drawing,
        title=title,
        description=description or f"{x_title} by {group}: {_medians(labels, rows)}",
        caption=caption + _more(len(labels)),
        columns=(group, "lower_quartile", "median", "upper_quartile"),
        rows=[(label, *row) for label, row in zip(labels, rows, strict=True)],
        notes=notes,
    )


@lru_cache(maxsize=32)
def _grade_shares(
    labels: tuple[str, ...],
    grades: tuple[str, ...],
    rows: tuple[Column, ...],
    title: str,
    description: str,
    group: str,
) -> Chart:
    alt = altair()

    notes = Notes()
    names = labels_of(labels[:SHOWN_GROUPS], notes)
    levels = list(labels_of(grades, notes, 18).values())
    shown = [
        {"group": names[label], "grade": level, "place": place, "share": share}
        for label, row in zip(labels[:SHOWN_GROUPS], rows, strict=False)
        for place, (level, share) in enumerate(zip(levels, row, strict=True))
        if share is not None
    ]
    step = (STRONG - FAINT) / max(1, len(levels) - 1)
    opacity = alt.Scale(domain=levels, range=[round(FAINT + step * place, 3) for place in range(len(levels))])
    legend = alt.Legend(
        orient="bottom",
        title=None,
        columns=3,
        symbolType="square",
        symbolFillColor=GOLD,
        symbolStrokeColor=LINE_STRONG,
        labelLimit=0,
    )
    drawing = (
        alt.Chart(alt.InlineData(values=shown))
        .mark_bar(fill=GOLD, stroke=LINE_STRONG)
        .encode(
            y=alt.Y("group:N", sort=list(names.values()), axis=_group_axis(alt, names.values())),
            x=alt.X(
                "share:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="share of each grade", format="%", tickCount=5, grid=False),
            ),
            opacity=alt.Opacity("grade:N", scale=opacity, legend=legend),
            order=alt.Order("place:Q"),
        )
        .properties(height=alt.Step(20 if len(names) <= SHOWN_GROUPS // 2 else 14))
    )
    firsts = tuple(row[:1] * 2 for row in rows)
    return chart_of(
        drawing,
        title=title,
        description=description
        or f"Share of each grade by {group}. Of {grades[0]}: {_medians(labels, firsts)}",
        caption="From left to right the grades from the lowest to the highest." + _more(len(labels)),
        columns=(group, *grades),
        rows=[(label, *row) for label, row in zip(labels, rows, strict=True)],
        notes=notes,
    )


def _group_axis(alt: Any, names: Iterable[str]) -> Any:
    """Return the axis of the groups. It keeps room for their names in a font wider than that of the drawing program."""
    room = name_room(names, LABEL_LIMIT)
    return alt.Axis(title=None, ticks=False, domain=False, labelLimit=0, labelPadding=6, minExtent=room)


def _medians(labels: tuple[str, ...], rows: tuple[Column, ...]) -> str:
    """Return the second number of the first dozen groups in words."""
    words = [
        f"{label} {NOT_ESTIMABLE if row[1] is None else format(row[1], '.3g')}"
        for label, row in list(zip(labels, rows, strict=True))[:12]
    ]
    more = f"; and {len(labels) - 12} more" if len(labels) > 12 else ""
    return f"{'; '.join(words)}{more}."


def _more(n_groups: int) -> str:
    return f" The first {SHOWN_GROUPS} of {n_groups} are drawn." if n_groups > SHOWN_GROUPS else ""
