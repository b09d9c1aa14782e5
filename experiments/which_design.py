"""Pictures for docs/methods/design.md: where each design puts its judgments, and what a budget buys.

    .venv/bin/python experiments/which_design.py --figures docs/images

A synthetic collection (200 topics, 8 runs to rank 20, of which A and B are to be compared), the product's own designs.
Deterministic: the same seed writes the same files.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.charts import Chart
from analytics.charts import curve as budget_curve
from analytics.charts.chart import frame_spec
from analytics.charts.theme import GOLD, INK
from experiments.papers.forecasts import poisson_variance
from sampling.contrasts import (
    Importance,
    default_sizes,
    importance,
    mean_square_total,
    run_totals,
    single_draw_probability,
)
from sampling.designs import inclusion_probabilities
from sampling.forecasts import NORMAL_97_5, draws_for_distinct
from sampling.measures.design_weights import design_weights
from sampling.measures.registry import parse_linear
from sampling.pooling import Pool, pool, prior_utility
from sampling.questions import Design, prior_of_runs, question_rows

N_TOPICS, N_DOCUMENTS, N_RUNS, DEPTH, BUDGET = 200, 200, 8, 20, 1600
MEASURE = parse_linear(f"DCG@{DEPTH}")
NAMES = [f"run{number}" for number in range(N_RUNS)]


@dataclass(frozen=True)
class Asked:
    """A question of the synthetic pool, with what the runs say about it."""

    design: Design
    rows: list[int]
    says: Importance


def synthetic_pool(seed: int) -> Pool:
    """Return the pool of runs that see a document's merit through noise, some better than others."""
    rng = np.random.default_rng(seed)
    merit = rng.normal(size=(N_TOPICS, N_DOCUMENTS))
    tops = []
    for run in range(N_RUNS):
        seen = (0.7 + 0.1 * run) * merit + rng.normal(size=merit.shape)
        best = np.argsort(-seen, axis=1, kind="stable")[:, :DEPTH]
        topic = np.repeat(np.arange(N_TOPICS), DEPTH)
        tops.append(
            pl.DataFrame(
                {
                    "topic_id": [f"t{number:02d}" for number in topic],
                    "doc_id": [f"d{number:03d}" for number in best.ravel()],
                    "rank": np.tile(np.arange(1, DEPTH + 1), N_TOPICS),
                }
            )
        )
    return pool(tops, DEPTH)


def ask(pooled: Pool, question: str, runs: tuple[str, ...] = ()) -> Asked:
    design = Design(question, runs, MEASURE.name, DEPTH, BUDGET)
    rows = question_rows(design, NAMES)
    return Asked(design, rows, importance(question, design_weights(MEASURE, pooled.returned, N_TOPICS), rows))


# -- where judgments go ------------------------------------------------------------------------------------


def probabilities(pooled: Pool, question: Asked, method: str) -> np.ndarray:
    """Return pi of every item: of the default design, or of the other methods' sizes at the same budget."""
    if method == "default":
        return inclusion_probabilities(
            default_sizes(question.design, question.says, prior_of_runs(pooled.returned, DEPTH)), BUDGET
        )
    utility = prior_utility(pooled.returned.rows(question.rows), DEPTH)
    return inclusion_probabilities(
        single_draw_probability(question.design.question, method, question.says, utility), BUDGET
    )


def maps(pooled: Pool) -> str:
    """Return a small picture a design: mean probability by the rank in run A and in run B."""
    a, b = N_RUNS - 1, N_RUNS - 2
    pair = ask(pooled, "pair", (NAMES[a], NAMES[b]))
    shown = {
        "naive": probabilities(pooled, pair, "naive"),
        "pair, the paper's Q*": probabilities(pooled, pair, "paper"),
        "pair, default": probabilities(pooled, pair, "default"),
        "one run, A": probabilities(pooled, ask(pooled, "system", (NAMES[a],)), "default"),
        "ranking of all 8": probabilities(pooled, ask(pooled, "ranking"), "default"),
        "even pool": probabilities(pooled, ask(pooled, "pool"), "default"),
    }
    values = [
        {"design": name, "a": int(i), "b": int(j), "pi": round(float(mean), 4)}
        for name, pi in shown.items()
        for i, j, mean in _means(pooled.ranks[a], pooled.ranks[b], pi)
    ]
    axis = {
        "values": [1, 5, 10, 15, 20, 23],
        "labelExpr": "datum.value == 23 ? 'none' : datum.label",
        "grid": False,
    }
    scale = {"domain": [0, 24]}
    title = "Where each design puts 1,600 judgments"
    spec = frame_spec(title) | {
        "data": {"values": values},
        "facet": {
            "field": "design",
            "type": "nominal",
            "sort": list(shown),
            "title": None,
            "header": {"labelFontSize": 13, "labelColor": INK},
        },
        "columns": 3,
        "spec": {
            "width": 150,
            "height": 150,
            "mark": {"type": "square", "size": 36, "opacity": 1},
            "encoding": {
                "x": {
                    "field": "a",
                    "type": "quantitative",
                    "title": "rank in A",
                    "axis": axis,
                    "scale": scale,
                },
                "y": {
                    "field": "b",
                    "type": "quantitative",
                    "title": "rank in B",
                    "axis": axis,
                    "scale": scale | {"reverse": True},
                },
                "fill": {"value": GOLD},
                "fillOpacity": {
                    "field": "pi",
                    "type": "quantitative",
                    "title": "probability to be judged",
                    "scale": {"type": "sqrt", "domain": [0, 1], "range": [0, 1]},
                    "legend": None,
                },
            },
        },
    }
    for whole in ("width", "autosize"):  # of one picture; here every facet has its own
        spec.pop(whole, None)
    return Chart(
        spec,
        title,
        "Six maps of rank in run A against rank in run B. Naive and one run favour the top ranks, also where A and B "
        "agree; the pair designs leave the diagonal out; the even pool is the same everywhere.",
        ("design", "rank in A", "rank in B", "probability"),
        tuple((value["design"], value["a"], value["b"], value["pi"]) for value in values),
    )


def _means(rank_a: np.ndarray, rank_b: np.ndarray, pi: np.ndarray) -> list[tuple[int, int, float]]:
    """Return (rank in A, rank in B, mean pi); 23 stands for "not returned", and pairs that neither returns are out."""
    a, b = np.where(rank_a == 0, 23, rank_a), np.where(rank_b == 0, 23, rank_b)
    is_top = (a < 23) | (b < 23)
    cell, place = np.unique(a[is_top] * 32 + b[is_top], return_inverse=True)
    means = np.bincount(place, pi[is_top]) / np.bincount(place)
    return [(int(c) // 32, int(c) % 32, float(mean)) for c, mean in zip(cell, means, strict=True)]


# -- what a budget buys ------------------------------------------------------------------------------------


def curve(pooled: Pool) -> Chart:
    """Return expected half-widths of A minus B against the budget, as the design page shows them."""
    pair = ask(pooled, "pair", (NAMES[-1], NAMES[-2]))
    prior = prior_of_runs(pooled.returned, DEPTH)
    squares = pair.says.squared_contrast
    budgets = [200, 300, 400, 600, 800, 1200, BUDGET, 2400, 3200, 4800]
    utility = prior_utility(pooled.returned.rows(pair.rows), DEPTH)
    total = mean_square_total("pair", run_totals(MEASURE, pooled.returned, pair.rows, N_TOPICS, prior))
    lines: dict[str, list[float | None]] = {}
    sizes = default_sizes(pair.design, pair.says, prior)
    for name, own in (("this design", sizes), ("even pool", np.ones(prior.size))):
        variances = [
            poisson_variance(inclusion_probabilities(own, n), np.sqrt(squares), prior * (1 - prior))
            for n in budgets
        ]
        lines[name] = [float(NORMAL_97_5 * np.sqrt(variance)) for variance in variances]
    for name in ("paper", "naive"):
        q = single_draw_probability("pair", name, pair.says, utility)
        drawn = q > 0
        single = float((squares[drawn] * prior[drawn] / q[drawn]).sum()) - total
        reach = int(np.count_nonzero(q))
        lines["the paper's Q*" if name == "paper" else "naive"] = [
            float(NORMAL_97_5 * np.sqrt(single / draws_for_distinct(q, n))) if n < reach else None
            for n in budgets
        ]
    return budget_curve(budgets, lines, "Expected half-width of A minus B, by items judged", chosen=BUDGET)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, default=Path("docs/images"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pooled = synthetic_pool(options.seed)
    for name, drawn in (("design-maps", maps(pooled)), ("design-budget", curve(pooled))):
        target = options.figures / f"{name}.svg"
        target.write_text(drawn.standalone_svg())
        print(target)


if __name__ == "__main__":
    main()
