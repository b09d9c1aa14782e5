"""Do the intervals of a ranking hold? Ranks that hold at once, and Kendall's tau, on simulated truth; JSON.

    python benchmarks/ranking.py --json > ranking.json

Each world is a truth (how the runs' true values lie) and errors with a covariance, as those of runs that share
documents and judges. What is estimated is the truth plus errors; the covariance is known, as an audit of some hundred
items knows it nearly. Counted over the campaigns of a world: how often every true rank lies between its ends (95 % are
promised), how often the true tau lies in its interval (95 %), and how wide both are.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.special import ndtr

from analytics.estimation.comparison import holm
from analytics.estimation.ranking import (
    covariance_from_pairs,
    rank_intervals,
    rank_probabilities,
    tau_interval,
)

SURE = 0.05
NEARLY = 1e-6  # true values that are equal get an order all the same, far below every error


@dataclass(frozen=True)
class World:
    """Where the true values lie, and how large the errors are; `shared` of their variance all runs have in common."""

    name: str
    truth: Callable[[np.random.Generator], np.ndarray]
    error: float
    own: float = 0.5  # the rest of the variance lies in two directions that some runs share


@dataclass(frozen=True)
class Row:
    """What came of a world."""

    world: str
    runs: int
    error: float
    campaigns: int
    ranks_held: float
    rank_width: float
    tau_held: float
    tau_low: float
    tau_high: float
    tau_true: float
    best_chance: float  # that was given to the run that came first
    best_right: float  # how often it was the best


def worlds() -> Iterator[World]:
    """Yield the worlds: runs spread evenly, as a sample, in groups, nearly equal, one far ahead."""
    for error in (0.3, 1.0):
        for n in (2, 3, 8, 20, 50):
            yield World(f"even {n}", lambda _, n=n: np.arange(n) * 0.5, error)
        yield World("sample 20", lambda rng: rng.standard_normal(20), error)
        yield World("two groups of 10", lambda _: np.repeat([0.0, 3.0], 10) + np.arange(20) * NEARLY, error)
        yield World("nearly equal 20", lambda _: np.arange(20) * NEARLY, error)
        yield World("one ahead of 9", lambda _: np.append(np.arange(9) * 0.01, 4.0), error)
        yield World("growing 15", lambda _: np.cumsum(1.3 ** np.arange(15) / 20), error)


def covariance(n: int, error: float, own: float, rng: np.random.Generator) -> np.ndarray:
    """Return a covariance with this variance on the diagonal: part of each run's own, part along two directions."""
    directions = rng.standard_normal((n, 2))
    shared = directions @ directions.T
    scale = np.sqrt(np.diag(shared))
    together = shared / np.outer(scale, scale)
    matrix: np.ndarray = error**2 * (own * np.eye(n) + (1 - own) * together)
    return matrix


def campaign(world: World, seed: int) -> tuple[bool, float, bool, float, float, float, float, bool]:
    """Return what one campaign's intervals say, and whether it is so."""
    rng = np.random.default_rng(seed)
    truth = world.truth(rng)
    n = truth.size
    spread = covariance(n, world.error, world.own, rng)
    values = rng.multivariate_normal(truth, spread)
    variance = np.diag(spread)
    pairs = variance[:, None] + variance[None] - 2 * spread
    np.fill_diagonal(pairs, 0.0)
    first, second = np.triu_indices(n, 1)
    p = 2 * ndtr(-np.abs(values[first] - values[second]) / np.sqrt(pairs[first, second]))
    apart = np.zeros((n, n), dtype=bool)
    apart[first, second] = apart[second, first] = holm(p) < SURE
    low, high = rank_intervals(values, apart)
    rank = n - np.argsort(np.argsort(truth))
    known = covariance_from_pairs(None, np.maximum(pairs, 0.0))
    tau = tau_interval(values, known, seed=seed)
    agree = np.sign(values[first] - values[second]) * np.sign(truth[first] - truth[second])
    best = int(values.argmax())
    chance = rank_probabilities(values, known, seed=seed, draws=1000)[best, 0]
    return (
        bool(((low <= rank) & (rank <= high)).all()),
        float((high - low + 1).mean() / n),
        bool(tau.low - 1e-9 <= agree.mean() <= tau.high + 1e-9),
        tau.low,
        tau.high,
        float(agree.mean()),
        float(chance),
        best == int(truth.argmax()),
    )


def measured(world: World, campaigns: int) -> Row:
    """Return the means over the campaigns of a world."""
    outcomes = np.array([campaign(world, seed) for seed in range(campaigns)], dtype=np.float64)
    n = world.truth(np.random.default_rng(0)).size
    return Row(world.name, n, world.error, campaigns, *outcomes.mean(axis=0).round(4).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=1000, help="campaigns a world")
    parser.add_argument("--json", action="store_true", help="all numbers as JSON")
    given = parser.parse_args()
    rows = []
    for world in worlds():
        row = measured(world, given.campaigns)
        rows.append(row)
        print(
            f"{row.world:20s} error {row.error:.1f}  ranks {row.ranks_held:.3f}  tau {row.tau_held:.3f}"
            f"  [{row.tau_low:+.2f}, {row.tau_high:+.2f}] true {row.tau_true:+.2f}"
            f"  first: chance {row.best_chance:.2f}, right {row.best_right:.2f}",
            file=sys.stderr if given.json else sys.stdout,
        )
    if given.json:
        json.dump({"campaigns": given.campaigns, "rows": [asdict(row) for row in rows]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
