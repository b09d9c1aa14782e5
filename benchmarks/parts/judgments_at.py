"""The product's design with its default mixture, at one number of judgments: what it needs, which components it chose.

The part of benchmarks/judgments_needed.py behind `--at`.
"""

from collections import Counter
from typing import Any

import numpy as np
from parts.budgets import MIXED, PLANS, Pair, realised
from parts.variance_curves import needed_on_curve

COUNTS = np.geomspace(0.24, 1.0, 5)  # over Q*'s judgments


def judgments_at(
    names: list[str], pairs: list[Pair], start: int, draws: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Return by plan the mean judgments for the width of Q* with `start`, and how often m components were chosen."""
    counts = start * COUNTS
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        chosen: Counter[int] = Counter()
        needed = []
        for number, pair in enumerate(pairs):
            rng = np.random.default_rng([seed, 44, number, MIXED.index(name)])
            curve = np.array([_mean_variance(name, pair, count, draws, rng, chosen) for count in counts])
            needed.append(needed_on_curve(counts, curve, pair.with_replacement(False, start)))
        found[name] = {
            "judgments": round(float(np.nanmean(needed)), 1),
            "pairs": int(np.count_nonzero(~np.isnan(needed))),
            "components": {str(m): n for m, n in sorted(chosen.items())},
        }
    return found


def plans_for(pairs: list[Pair]) -> list[str]:
    """Return the plans with the default mixture that these pools can have."""
    return [
        name for name in MIXED if "calibrated" not in name or all(pair.known.calibrations for pair in pairs)
    ]


def _mean_variance(
    name: str, pair: Pair, count: float, draws: int, rng: np.random.Generator, chosen: Counter[int]
) -> float:
    variances: list[float] = []
    for _ in range(draws):
        draw = realised(PLANS[name], pair, count, rng)
        chosen.update(draw.n_components)
        variances.append(draw.variance(pair))
    return float(np.mean(variances))


def rows_at(
    found: dict[str, dict[str, Any]], coverage: dict[str, dict[str, dict[str, float]]]
) -> list[tuple[str, ...]]:
    """Return the rows of the table: judgments, what was chosen, and coverage by count."""
    sizes = list(next(iter(coverage.values())))
    rows = [("", "judgments", "components: folds", *(f"coverage at {size}" for size in sizes))]
    for name, of_plan in found.items():
        folds = sum(of_plan["components"].values())
        counted = ", ".join(f"{m}: {n / folds:.0%}" for m, n in of_plan["components"].items())
        covered = (
            [f"{cell['coverage']:.3f}" for cell in coverage[name].values()]
            if name in coverage
            else [""] * len(sizes)
        )
        rows.append((name, f"{of_plan['judgments']:.1f}", counted, *covered))
    return rows
