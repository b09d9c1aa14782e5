"""Part of benchmarks/coverage.py: how often the reported interval holds the truth, over a grid of campaigns.

The reported number rests on predicted gold; that from class means is computed from the same audits beside it.
"""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from parts.coverage_collection import NOISES
from parts.coverage_grid import Cell, Tally, draw_probabilities, hash_of
from parts.coverage_prediction import Comparison, World, campaign_of, make_world, median_half_width

AUDIT_SIZES = (50, 100, 300, 1000)
MOST_WRONG_SIGNS = {50: None, 100: 0.007, 300: 0.007, 1000: 0.003}


def grid() -> list[Cell]:
    """Return all cells."""
    return [
        Cell(*values)
        for values in product(
            ("whole", "drawn"), ("simple", "influence"), AUDIT_SIZES, NOISES, (1, 3), ("random", "not_random")
        )
    ]


@cache
def _world() -> World:
    """Return the collection, the same for all cells."""
    return make_world(Comparison("alike", "P@10", "whole", 100, 1))


def run_cell(cell: Cell, repetitions: int, seed: int) -> dict[str, Any]:
    """Return the tally of one cell, and of class means on the same audits."""
    world, rng = _world(), np.random.default_rng([seed, hash_of(cell.name)])
    kind = Comparison(
        "alike",
        "P@10",
        cell.item_design,
        cell.n_audits,
        cell.votes,
        cell.audit_design,
        cell.noise,
        cell.assignment,
    )
    pi = np.ones(world.collection.grade.size)
    if cell.item_design == "drawn":
        pi = draw_probabilities(world.collection)
    tally, control = Tally(world.truth), Tally(world.truth)
    for _ in range(repetitions):
        once = campaign_of(world, kind, pi, rng)
        audit = once.audit(once.influence(kind, kind.n_audits))
        tally.add(once.by_prediction(audit))
        control.add(once.class_means(audit))
    summary, n_runs = tally.summary(), world.targets.runs.n_runs
    ratio = median_half_width(tally, n_runs) / median_half_width(control, n_runs)
    return {
        **summary,
        "half_width_ratio": round(ratio, 4),
        "class_means": control.summary(),
        "holds": holds(cell, summary),
    }


def holds(cell: Cell, summary: dict[str, Any]) -> dict[str, bool]:
    """Return which goals of docs/methods/derivations/real-judges.md, section 5, the cell reaches."""
    most = MOST_WRONG_SIGNS[cell.n_audits]
    return {
        "pairs": 0.945 <= summary["pairs"] <= 0.985,
        "pairs_5th_percentile": summary["pairs_5th_percentile"] >= 0.93,
        "singles": 0.945 <= summary["singles"] <= 0.985,
        **({} if most is None else {"wrong_sign_significant": summary["wrong_sign_significant"] < most}),
    }
