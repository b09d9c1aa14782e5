"""Tables as charts with their numbers: differences of pairs, probabilities of ranks, confusion matrices."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from analytics.charts.chart import Chart, altair, chart_of
from analytics.charts.theme import (
    GOLD_FILL,
    INFO,
    INK,
    INK_SOFT,
    LABEL_LENGTH,
    LETTER,
    LINE,
    LINE_STRONG,
    NOT_ESTIMABLE,
    WIDTH,
    Notes,
    Spec,
    labels_of,
    name_room,
    table_of,
)

SHOWN_RUNS = 40  # more in one picture and none of its squares could be told
WIDEST_NAMES = 190  # units kept free for names
PRINTED_RUNS = 10  # up to here a square has room for its number
ROOMY_RUNS = 7  # up to here it has room for usual letters
SURE = 0.05
# Never darker than this: the same ink then keeps 4.5:1 on every square in both themes.
STRONGEST = 0.45

Table = Sequence[Sequence[float | None]]
Square = tuple[tuple[float | None, ...], ...]


def difference_matrix(
    run_ids: Sequence[str],
    values: Table,
    low: Table,
    high: Table,
    p_adjusted: Table,
    title: str,
    description: str = "",
    measure: str = "",
) -> Chart:
    """Return the differences of all pairs: the row's run minus the column's, in the order given, below the diagonal.

    Where the adjusted p is below 0.05 the square has a frame and an arrow to the higher run. Up to ten runs the numbers
    are printed; of more than forty the first forty are drawn, and the table has all.

    ValueError: fewer than two runs, one twice, tables that are not square.
    """
    n = _check_names(run_ids, "run_ids", 2)
    tables = [
        table_of(table, name, n)
        for table, name in ((values, "values"), (low, "low"), (high, "high"), (p_adjusted, "p_adjusted"))
    ]
    return _differences(tuple(run_ids), *tables, title, description, measure)


def rank_matrix(run_ids: Sequence[str], probabilities: Table, title: str, description: str = "") -> Chart:
    """Return the probability of each rank for each run: `probabilities[run][rank]`, as fractions, ranks from 1 on.

    ValueError: no runs, one twice, a table that is not square, a number outside [0, 1].
    """
    n = _check_names(run_ids, "run_ids", 1)
    table = table_of(probabilities, "probabilities", n)
    _check_fractions("probabilities", table)
    return _ranks(tuple(run_ids), table, title, description)


def confusion_heat(
    labels: Sequence[str],
    matrix: Table,
    low: Table,
    high: Table,
    counts: Table | None,
    title: str,
    description: str = "",
) -> Chart:
    """Return a confusion matrix: percentages with their intervals below, the right grades framed.

    Parameters
    ----------
    labels : names of the grades, from grade 0 upwards
    matrix, low, high : `[true grade][given grade]` as fractions; a row of None has no gold yet
    counts : how many of each were seen, or None

    Raises
    ------
    ValueError
        No labels, one twice, shapes that differ, or a number outside [0, 1].
    """
    n = _check_names(labels, "labels", 1)
    tables = []
    for name, given in (("matrix", matrix), ("low", low), ("high", high)):
        tables.append(table_of(given, name, n))
        _check_fractions(name, tables[-1])
    seen = None if counts is None else table_of(counts, "counts", n)
    return _confusion(tuple(labels), *tables, seen, title, description)


def _check_names(names: Sequence[str], what: str, least: int) -> int:
    if len(names) < least or len({*names}) != len(names):
        raise ValueError(f"{what} must be at least {least} and all different, got {list(names)}")
    return len(names)


def _check_fractions(name: str, table: Square) -> None:
    for number in (number for row in table for number in row):
        if number is not None and not -1e-9 <= number <= 1 + 1e-9:
            raise ValueError(f"{name} must be in [0, 1], got {number}")


@lru_cache(maxsize=32)
def _differences(
    run_ids: tuple[str, ...],
    values: Square,
    low: Square,
    high: Square,
    p: Square,
    title: str,
    description: str,
    measure: str,
) -> Chart:
    alt = altair()

    pairs = [(i, j) for i in range(len(run_ids)) for j in range(i)]
    shown = run_ids[:SHOWN_RUNS]
    notes = Notes()
    labels = list(labels_of(shown, notes, 22).values())
    largest = max((abs(v) for row in values for v in row if v is not None), default=0.0) or 1.0
    cells = []
    for i, j in pairs:
        if i < len(shown):
            cells.append(_difference_cell(labels, i, j, values[i][j], p[i][j], largest))
    is_printed = len(shown) <= PRINTED_RUNS
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=_side("b", labels[:-1], "minus", -90 if not is_printed else -40, "bottom"),
        y=_side("a", labels[1:], None, 0, "left"),
    )
    signs = alt.Scale(domain=["more", "less", "none"], range=[GOLD_FILL, INFO, LINE])
    opacity = alt.Scale(domain=[0, 1], range=[0.04, STRONGEST])
    frames = alt.Scale(domain=[True, False], range=[INK, LINE])
    layers = [
        base.mark_rect().encode(
            fill=alt.Fill("sign:N", scale=signs, legend=None),
            fillOpacity=alt.FillOpacity("size:Q", scale=opacity, legend=None),
            stroke=alt.Stroke("sure:N", scale=frames, legend=None),
        ),
        base.mark_text(fontSize=11 if len(shown) <= ROOMY_RUNS else 9, dy=-6 if is_printed else 0).encode(
            text="text:N"
        ),
        *([base.mark_text(fontSize=10, dy=8).encode(text="arrow:N")] if is_printed else []),
    ]
    step = 34 if is_printed else max(12, min(24, int((WIDTH - 150) / (len(shown) - 1))))
    n_sure = sum(1 for i, j in pairs if values[i][j] is not None and _is_significant(p[i][j]))
    if not description:
        description = (
            f"{measure or 'The measure'} of the row's run minus the column's, for {len(run_ids)} runs. "
            f"{n_sure} of {len(pairs)} pairs are significant after Holm's adjustment; they have a frame, and an arrow "
            "up where the row's run is higher, down where the column's is."
        )
    if len(run_ids) > SHOWN_RUNS:
        description += f" The first {SHOWN_RUNS} of {len(run_ids)} runs are drawn."
    return chart_of(
        alt.layer(*layers).properties(height=alt.Step(step)),
        title=title,
        description=description,
        caption=description,
        columns=("run", "minus", "difference", "low", "high", "p_adjusted"),
        rows=[(run_ids[i], run_ids[j], values[i][j], low[i][j], high[i][j], p[i][j]) for i, j in pairs],
        notes=notes,
    )


def _is_significant(p: float | None) -> bool:
    return p is not None and p < SURE


def _difference_cell(
    labels: list[str], i: int, j: int, value: float | None, p: float | None, largest: float
) -> Spec:
    sure = value is not None and _is_significant(p)
    arrow = ("▲" if value and value > 0 else "▼") if sure else ""
    text = (
        arrow if len(labels) > PRINTED_RUNS else "?" if value is None else f"{value:+.3f}".replace("-", "−")
    )
    sign = "none" if value is None or value == 0 else "more" if value > 0 else "less"
    size = 0.0 if value is None else abs(value) / largest
    return {
        "a": labels[i],
        "b": labels[j],
        "size": size,
        "sign": sign,
        "sure": sure,
        "text": text,
        "arrow": arrow,
    }


@lru_cache(maxsize=32)
def _ranks(run_ids: tuple[str, ...], table: Square, title: str, description: str) -> Chart:
    alt = altair()

    shown = run_ids[:SHOWN_RUNS]
    notes = Notes()
    labels = list(labels_of(shown, notes).values())
    is_printed = len(shown) <= 2 * PRINTED_RUNS
    cells = [
        {
            "run": labels[i],
            "rank": j + 1,
            "share": table[i][j] or 0.0,
            "text": _percent(table[i][j]) if is_printed else "",
        }
        for i in range(len(shown))
        for j in range(len(shown))
    ]
    axis = alt.Axis(
        title="rank",
        ticks=False,
        domain=False,
        labelAngle=0,
        orient="top",
        labelOverlap="parity",
        labelFontSize=12 if is_printed else 9,
    )
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("rank:O", scale=alt.Scale(paddingInner=0.04), axis=axis),
        y=_side("run", labels, None, 0, "left"),
    )
    opacity = alt.Scale(domain=[0, 1], range=[0.03, STRONGEST])
    layers = [
        base.mark_rect(fill=GOLD_FILL, stroke=LINE).encode(
            fillOpacity=alt.FillOpacity("share:Q", scale=opacity, legend=None)
        ),
        base.mark_text(fontSize=11 if len(shown) <= PRINTED_RUNS else 9).encode(text="text:N"),
    ]
    caption = description or "Each row is a run, with the probability of each rank in percent."
    if len(run_ids) > SHOWN_RUNS:
        caption += f" The first {SHOWN_RUNS} of {len(run_ids)} runs and ranks are drawn."
    return chart_of(
        alt.layer(*layers).properties(height=alt.Step(26 if is_printed else 16)),
        title=title,
        description=description or f"Probability of each rank. {_ranks_said(run_ids, table)}",
        caption=caption,
        columns=("run", "rank", "probability"),
        rows=[(run, j + 1, p) for run, row in zip(run_ids, table, strict=True) for j, p in enumerate(row)],
        notes=notes,
    )


def _ranks_said(run_ids: tuple[str, ...], table: Square) -> str:
    """Return the likeliest rank of the first dozen runs in words.

    >>> _ranks_said(("a", "b"), ((0.75, 0.25), (None, None)))
    'a: rank 1 with 75 %; b: not estimable.'
    """
    words = []
    for run, row in list(zip(run_ids, table, strict=True))[:12]:
        known = [(share, -rank) for rank, share in enumerate(row, start=1) if share is not None]
        words.append(
            f"{run}: rank {-max(known)[1]} with {100 * max(known)[0]:.0f} %"
            if known
            else f"{run}: {NOT_ESTIMABLE}"
        )
    more = f"; and {len(run_ids) - 12} more runs" if len(run_ids) > 12 else ""
    return f"{'; '.join(words)}{more}."


def _percent(share: float | None) -> str:
    """Return a share for a small square: a dot where it is nearly 0.

    >>> _percent(0.5), _percent(0.001), _percent(None)
    ('50', '·', '?')
    """
    if share is None:
        return "?"
    return f"{100 * share:.0f}" if share >= 0.005 else "·"


@lru_cache(maxsize=64)
def _confusion(
    labels: tuple[str, ...],
    matrix: Square,
    low: Square,
    high: Square,
    counts: Square | None,
    title: str,
    description: str,
) -> Chart:
    alt = altair()

    notes = Notes()
    widest = min(LABEL_LENGTH, (WIDTH - 130) / len(labels) / LETTER)  # they stand side by side, too
    names = list(labels_of(labels, notes, widest).values())
    known = [i for i in range(len(labels)) if None not in matrix[i]]
    cells = [
        {
            "true": names[i],
            "given": names[j],
            "share": matrix[i][j],
            "percent": f"{100 * (matrix[i][j] or 0.0):.0f} %",
            "interval": _interval(low[i][j], high[i][j]),
            "right": i == j,
        }
        for i in known
        for j in range(len(labels))
    ]
    unknown = [
        {
            "true": names[i],
            "given": names[0],
            "text": f"{NOT_ESTIMABLE}: no known documents of this grade yet",
        }
        for i in range(len(labels))
        if i not in known
    ]
    x = _side("given", names, "grade given", 0, "top")
    y = _side("true", names, "true grade", 0, "left")
    base = alt.Chart(alt.InlineData(values=cells)).encode(x=x, y=y)
    opacity = alt.Scale(domain=[0, 1], range=[0.03, STRONGEST])
    frames = alt.Scale(domain=[True, False], range=[LINE_STRONG, LINE])
    layers: list[Any] = [
        base.mark_rect(fill=GOLD_FILL).encode(
            fillOpacity=alt.FillOpacity("share:Q", scale=opacity, legend=None),
            stroke=alt.Stroke("right:N", scale=frames, legend=None),
        ),
        base.mark_text(dy=-8, fontSize=14).encode(text="percent:N"),
        base.mark_text(dy=10, fontSize=11).encode(text="interval:N"),
        alt.Chart(alt.InlineData(values=unknown))
        .mark_text(align="left", fontStyle="italic", fill=INK_SOFT)
        .encode(x=alt.value(6), y=y, text="text:N"),
    ]
    return chart_of(
        alt.layer(*layers).properties(height=alt.Step(52)),
        title=title,
        description=description or _confusion_said(labels, matrix, low, high),
        caption=description
        or "Rows are true grades; along them, how often each grade was given, with 95 % confidence intervals.",
        columns=("true_grade", "given_grade", "share", "low", "high", "count"),
        rows=[
            (labels[i], labels[j], matrix[i][j], low[i][j], high[i][j], counts[i][j] if counts else None)
            for i in range(len(labels))
            for j in range(len(labels))
        ],
        notes=notes,
    )


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{100 * low:.0f} to {100 * high:.0f}"


def _confusion_said(labels: tuple[str, ...], matrix: Square, low: Square, high: Square) -> str:
    words = []
    for i, true in enumerate(labels):
        if None in matrix[i]:
            words.append(f"true {true}: {NOT_ESTIMABLE}")
            continue
        for j, given in enumerate(labels):
            ends = _interval(low[i][j], high[i][j])
            words.append(
                f"true {true}, given {given}: {100 * (matrix[i][j] or 0.0):.0f} %"
                + (f" ({ends})" if ends else "")
            )
    return f"Shares of each true grade: {'; '.join(words)}."


def _side(field: str, labels: list[str], title: str | None, angle: int, orient: str) -> Any:
    """Return one side of a table."""
    alt = altair()

    axis = alt.Axis(
        title=title,
        ticks=False,
        domain=False,
        labelLimit=0,
        labelPadding=6,
        orient=orient,
        **({"labelAngle": angle} if orient != "left" else {"minExtent": name_room(labels, WIDEST_NAMES)}),
    )
    channel: Any = alt.Y if orient == "left" else alt.X
    return channel(f"{field}:N", scale=alt.Scale(domain=labels, paddingInner=0.06), axis=axis)
