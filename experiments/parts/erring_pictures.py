"""Pictures of `carterette_2010.py`: the eight models, contours of two of them, tau by the share of bad topics."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analytics.charts import Chart
from analytics.charts.chart import frame_spec
from analytics.charts.theme import GOLD, INK, INK_SOFT, LINE_COLOURS, LINE_DASHES, LINE_STRONG, Spec
from experiments.parts.erring import Outcome
from judging.erring_assessors import erring_assessor
from sampling.arrays import FloatArray

QUIET = {"labelFontSize": 13, "labelColor": INK}
DARKEST = 0.45  # then the ink on it keeps its contrast in both themes
N_STEPS = 7  # tenths of tau from .9 down to .2, from where on everything is darkest
TOLERABLE = 0.9  # the tau below which the paper would not trust a ranking


def _facets(title: str, n_columns: int, panel: Spec, values: list[dict[str, Any]], order: list[str]) -> Spec:
    """Return a specification with one small picture for each value of `panel`."""
    spec = frame_spec(title) | {
        "data": {"values": values},
        "facet": {"field": "panel", "type": "nominal", "sort": order, "title": None, "header": QUIET},
        "columns": n_columns,
        "spec": panel,
    }
    for whole in ("width", "autosize"):  # of one picture; here every facet has its own
        spec.pop(whole, None)
    return spec


def _number(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", **more}


def models_picture(true_scores: FloatArray, outcomes: Mapping[str, Outcome]) -> Chart:
    """Return Figures 2 and 3: statMAP of the systems by the true labels, and by the labels of each model.

    Systems from the best to the worst; a point is the mean over trials, the bar through it from the 5th to the 95th
    percentile.
    """
    order = np.argsort(-true_scores, kind="stable")
    panels: list[str] = []
    taus: list[str] = []
    values: list[dict[str, Any]] = []
    for model, outcome in outcomes.items():
        behaviour = erring_assessor(model).behaviour
        panel = f"{behaviour.label}, tau {outcome.taus.mean():.2f}"
        panels.append(panel)
        taus.append(f"{behaviour.label} {outcome.taus.mean():.2f}")
        low, high = np.quantile(outcome.scores, (0.05, 0.95), axis=0)
        values += [
            {
                "panel": panel,
                "place": place + 1,
                "true": round(float(true_scores[one]), 4),
                "simulated": round(float(outcome.scores[:, one].mean()), 4),
                "low": round(float(low[one]), 4),
                "high": round(float(high[one]), 4),
            }
            for place, one in enumerate(order.tolist())
        ]
    x = _number("place", title="system, by its true score", axis={"grid": False, "tickCount": 4})
    y_axis = {"title": "statMAP", "tickCount": 4}
    panel_spec = {
        "width": 205,
        "height": 130,
        "layer": [
            {
                "mark": {"type": "line", "stroke": INK_SOFT, "strokeWidth": 1.5},
                "encoding": {"x": x, "y": _number("true", axis=y_axis, scale={"zero": True})},
            },
            {
                "mark": {"type": "rule", "stroke": GOLD, "strokeWidth": 1.5},
                "encoding": {"x": x, "y": _number("low"), "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "fill": GOLD, "stroke": GOLD, "size": 12, "opacity": 1},
                "encoding": {"x": x, "y": _number("simulated")},
            },
        ],
    }
    title = "Scores by true labels (line) and by erring assessors (points)"
    spec = _facets(title, 2, panel_spec, values, panels) | {"resolve": {"scale": {"y": "independent"}}}
    fields = ("panel", "place", "true", "simulated", "low", "high")
    return Chart(
        spec,
        title,
        f"Eight small pictures, Kendall's tau of each: {'; '.join(taus)}.",
        ("model", *fields[1:]),
        tuple(tuple(value[field] for field in fields) for value in values),
    )


def grid_picture(grids: Mapping[str, FloatArray], powers: Sequence[int]) -> Chart:
    """Return Figure 4: tau by a and b as a map, the darker the lower, with its number in every second cell."""
    values: list[dict[str, Any]] = [
        {
            "panel": key,
            "a": a,
            "b": b,
            "tau": round(float(grid[i, j]), 3),
            "opacity": _opacity(float(grid[i, j])),
            "shown": f"{grid[i, j]:.2f}".replace("0.", ".") if i % 2 == 0 and j % 2 == 0 else "",
        }
        for key, grid in grids.items()
        for i, a in enumerate(powers)
        for j, b in enumerate(powers)
    ]
    ticks = {"values": list(powers[::2]), "labelAngle": 0}
    place = {"type": "ordinal", "axis": ticks}
    x, y = {"field": "b", **place}, {"field": "a", "sort": "descending", **place}
    panel_spec = {
        "width": 215,
        "height": 215,
        "layer": [
            {
                "mark": {"type": "rect", "fill": GOLD, "stroke": None},
                "encoding": {
                    "x": x,
                    "y": y,
                    "fillOpacity": {**_number("opacity"), "scale": None, "legend": None},
                },
            },
            {
                "mark": {"type": "text", "fontSize": 10, "fill": INK},
                "encoding": {"x": x, "y": y, "text": {"field": "shown", "type": "nominal"}},
            },
        ],
    }  # fmt: skip
    title = "Kendall's tau by the parameters of the prior"
    means = ", ".join(f"{key} {grid.mean():.2f}" for key, grid in grids.items())
    fields = ("panel", "a", "b", "tau")
    return Chart(
        _facets(title, 2, panel_spec, values, list(grids)),
        title,
        f"Two maps of tau by a (upwards) and b (to the right), powers of 2 from 1 to {powers[-1]:,}. "
        f"Mean tau: {means}.",
        ("model", *fields[1:]),
        tuple(tuple(value[field] for field in fields) for value in values),
    )


def _opacity(tau: float) -> float:
    """Return how dark a cell is: the lower tau the darker, in steps of a tenth, and its number stays legible.

    >>> [round(_opacity(tau), 3) for tau in (0.97, 0.92, 0.55, 0.1)]
    [0.0, 0.0, 0.257, 0.45]
    """
    steps = min(max(math.ceil(10 * (0.9 - tau) - 1e-9), 0), N_STEPS)
    return DARKEST * steps / N_STEPS


def bad_topics_picture(curves: Mapping[str, FloatArray], shares: Sequence[float]) -> Chart:
    """Return Figure 5: mean tau by the share of bad topics, one line a kind.

    Bars through the first line are from the 5th to the 95th percentile.
    """
    values: list[dict[str, Any]] = [
        {
            "line": kind,
            "share": round(100 * share, 6),
            "tau": round(float(taus[:, place].mean()), 4),
            "low": round(float(np.quantile(taus[:, place], 0.05)), 4),
            "high": round(float(np.quantile(taus[:, place], 0.95)), 4),
        }
        for kind, taus in curves.items()
        for place, share in enumerate(shares)
    ]
    kinds = list(curves)
    legend = {"orient": "bottom", "title": None, "symbolSize": 300, "columns": 2, "labelLimit": 210}
    x = _number("share", title="bad topics, %", axis={"grid": False, "tickCount": 6})
    colour = {"field": "line", "type": "nominal", "legend": legend}
    stroke = colour | {"scale": {"domain": kinds, "range": list(LINE_COLOURS[: len(kinds)])}}
    dash = colour | {"scale": {"domain": kinds, "range": [list(one) for one in LINE_DASHES[: len(kinds)]]}}
    title = "Kendall's tau as topics are replaced by an erring double"
    y_axis = {"title": "Kendall's tau", "tickCount": 6}
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": _number("tau", axis=y_axis), "stroke": stroke, "strokeDash": dash},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "transform": [{"filter": {"field": "line", "equal": kinds[0]}}],
            "encoding": {"x": x, "y": _number("low"), "y2": {"field": "high"}, "stroke": stroke},
        },
        {
            "mark": {"type": "rule", "stroke": LINE_STRONG, "strokeDash": [3, 3], "strokeWidth": 2},
            "encoding": {"y": {"datum": TOLERABLE}},
        },
    ]
    ends = "; ".join(
        f"{kind} {taus[:, len(shares) // 2].mean():.2f} at half, {taus[:, -1].mean():.2f} at all"
        for kind, taus in curves.items()
    )
    fields = ("line", "share", "tau", "low", "high")
    return Chart(
        frame_spec(title) | {"height": 260, "data": {"values": values}, "layer": layers},
        title,
        f"Tau from 1 without bad topics: {ends}. A dotted line marks {TOLERABLE:g}.",
        ("assessors", "bad_topics_percent", *fields[2:]),
        tuple(tuple(value[field] for field in fields) for value in values),
    )
