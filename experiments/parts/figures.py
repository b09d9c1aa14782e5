"""Figures 1 to 3 of the paper: how often a sample of n judgments gets the order of systems right."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from analytics.charts import Chart, theme
from experiments.parts import paper
from experiments.parts.designs import (
    Comparison,
    baseline_comparison,
    draw_estimates,
    pair_comparisons,
    ranking_comparison,
)
from experiments.parts.rows import Row, row
from experiments.parts.tables import Data
from sampling.measures.families import FloatArray

DESIGNS = ("naive", "Q*")
TITLES = {
    "figure1": "Which of two systems is better?",
    "figure2": "Which of four systems beat the fifth?",
    "figure3": "Five systems, ranked",
}
SCORES = {
    "figure1": "share of right verdicts",
    "figure2": "share of right verdicts",
    "figure3": "Kendall's tau with the true order",
}
NO_PAPER_VALUE = "the paper's figure is an image"
# How many trials the expected curves rest on was not recorded; the paper's experiments had 100
EXPECTED_TRIALS = 100
FEW_TRIALS = 200  # below, two curves may cross by chance, and the trials do not tell their own spread


def curves(on: Data) -> dict[str, list[Row]]:
    """Return the rows of the three figures, naive and Q* at six budgets, both designed with u~."""
    drawn = on.drawn
    questions: dict[str, tuple[list[Comparison], Callable[[FloatArray, FloatArray], float]]] = {
        "figure1": (pair_comparisons(drawn, paper.SYSTEMS), right_signs),
        "figure2": ([baseline_comparison(drawn)], right_signs),
        "figure3": ([ranking_comparison(drawn)], kendall_tau),
    }
    return {figure: _rows(on, figure, *parts) for figure, parts in questions.items()}


def right_signs(estimated: FloatArray, true: FloatArray) -> float:
    """Return the part of the differences with the right sign; no difference is no verdict, and wrong.

    >>> right_signs(np.array([0.1, 0.0, 2.0]), np.array([1.0, 1.0, -1.0]))
    0.3333333333333333
    """
    return float(np.mean(estimated * true > 0))


def kendall_tau(estimated: FloatArray, true: FloatArray) -> float:
    """Return Kendall's tau: pairs in the right order minus pairs in the wrong one, by all pairs.

    >>> kendall_tau(np.array([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    0.3333333333333333
    """
    first, second = np.triu_indices(true.size, k=1)
    agree = np.sign(estimated[first] - estimated[second]) * np.sign(true[first] - true[second])
    return float(agree.mean())


def _rows(
    on: Data, figure: str, comparisons: list[Comparison], score: Callable[[FloatArray, FloatArray], float]
) -> list[Row]:
    sizes = [round(budget * on.grades.shape[0]) for budget in paper.BUDGETS]
    lines = []
    for d, design in enumerate(DESIGNS):
        scores = np.array(
            [
                _scores(on, comparison, d, sizes, score, [int(figure[-1]), k])
                for k, comparison in enumerate(comparisons)
            ]
        ).mean(axis=0)  # [trial, budget]: mean over comparisons
        for b, budget in enumerate(paper.BUDGETS):
            expected = paper.EXPECTED_CURVES[figure][d][b]
            error = _spread(scores[:, b], expected) * np.sqrt(1 / on.trials + 1 / EXPECTED_TRIALS)
            lines.append(
                row(
                    f"n/|X| = {budget:g}: {design}",
                    None,
                    float(scores[:, b].mean()),
                    expected=expected,
                    tolerance=max(0.02, 4 * error),
                    note=NO_PAPER_VALUE,
                )
            )
    return [*lines, _order(lines, on.trials)]


def _spread(scores: FloatArray, expected: float) -> float:
    """Return the sd of a trial's score; with few trials the largest that a score within [-1, 1] can have."""
    if scores.size >= FEW_TRIALS:
        return float(scores.std(ddof=1))
    return math.sqrt(1 - min(expected, 0.99) ** 2)


def _order(lines: list[Row], trials: int) -> Row:
    """Return whether Q* is at least as often right as naive at every budget: the paper's claim."""
    scores = np.array([line.computed for line in lines]).reshape(len(DESIGNS), -1)
    demand = {"expected": 1.0, "tolerance": 0.0} if trials >= FEW_TRIALS else {}
    holds = float(np.all(scores[1] >= scores[0]))
    return row("Q* at least naive at every budget", 1, holds, note="1 = holds", **demand)


def _scores(
    on: Data,
    comparison: Comparison,
    d: int,
    sizes: list[int],
    score: Callable[[FloatArray, FloatArray], float],
    stream: list[int],
) -> FloatArray:
    """Return the score of every trial at every budget; the smaller samples are the beginnings of the largest."""
    rng = np.random.default_rng([on.seed, 30, d, *stream])
    q = (comparison.naive, comparison.optimal)[d][0]
    true = (comparison.targets * on.drawn.grade).sum(axis=1)
    scores = np.empty((on.trials, len(sizes)))
    for trial in range(on.trials):
        for b, results in enumerate(draw_estimates(on.drawn, q, comparison.targets, sizes, rng)):
            values = np.array([result.value for result in results])
            scores[trial, b] = score(values, true)
    return scores


def picture(figure: str, rows: list[Row]) -> str:
    """Return a figure as SVG text on white: the score against the budget, one line a design."""
    scores = {line.name: line.computed for line in rows}
    values = [
        {"budget": budget, "score": scores[f"n/|X| = {budget:g}: {design}"], "design": design}
        for design in DESIGNS
        for budget in paper.BUDGETS
    ]
    title = f"Figure {figure[-1]} on SYNTH: {TITLES[figure]}"
    summary = "; ".join(
        f"{design} " + ", ".join(f"{value['score']:.3f}" for value in values if value["design"] == design)
        for design in DESIGNS
    )
    at = ", ".join(f"{budget:g}" for budget in paper.BUDGETS)
    described = f"{SCORES[figure]} at {at} judgments per user: {summary}."
    rows_shown = tuple((value["design"], value["budget"], value["score"]) for value in values)
    chart = Chart(
        _spec(title, SCORES[figure], values), title, described, ("design", "budget", "score"), rows_shown
    )
    return chart.standalone_svg()


def _spec(title: str, score: str, values: list[dict[str, Any]]) -> theme.Spec:
    """Return the Vega-Lite specification: lines by design, the points drawn solid above them."""
    text = {"labelColor": theme.INK, "labelFontSize": 13, "titleColor": theme.INK_SOFT, "titleFontSize": 13}
    quiet = {"domainColor": theme.LINE_STRONG, "tickColor": theme.LINE_STRONG, "gridColor": theme.LINE}
    lowest = min(0.4, math.floor(10 * min(value["score"] for value in values)) / 10)
    x = {"title": "judgments per user, n/|X| (logarithmic)", "values": list(paper.BUDGETS), "format": "~g"}
    x_scale = {"type": "log", "domain": [paper.BUDGETS[0], paper.BUDGETS[-1]]}
    legend = {"orient": "bottom", "title": None, "symbolSize": 300}

    def by_design(look: list[Any], shown: theme.Spec | None) -> theme.Spec:
        scale = {"domain": list(DESIGNS), "range": look}
        return {"field": "design", "type": "nominal", "scale": scale, "legend": shown}

    stroke = by_design([theme.INK_SOFT, theme.GOLD], legend)
    dash = by_design([[3, 3], [1, 0]], legend)
    shape = by_design(["circle", "square"], None)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": None,
        "padding": 8,
        "width": theme.WIDTH,
        "height": 260,
        "title": {"text": title, "anchor": "start", "fontSize": 14, "color": theme.INK, "offset": 12},
        "data": {"values": values},
        "encoding": {
            "x": {"field": "budget", "type": "quantitative", "scale": x_scale, "axis": x | {"grid": False}},
            "y": {
                "field": "score",
                "type": "quantitative",
                "scale": {"domain": [lowest, 1.0]},
                "axis": {"title": score, "tickCount": 6},
            },
            "stroke": stroke,
        },
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2.5}, "encoding": {"strokeDash": dash}},
            {
                "mark": {"type": "point", "fill": "white", "size": 60, "opacity": 1, "strokeWidth": 2},
                "encoding": {"shape": shape},
            },
        ],
        "config": {
            "aria": False,
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": text | quiet | {"titleFontWeight": "normal", "labelFlush": False},
            "legend": text,
        },
    }
