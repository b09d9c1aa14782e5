"""Do the intervals of a ranking hold? Ranks that hold at once, and Kendall's tau, on simulated truth; JSON.

    python benchmarks/ranking.py --json > ranking.json

Each world is a truth (how the runs' true values lie) and errors with a covariance, as those of runs that share
documents and judges. What is estimated is the truth plus errors; the covariance is known, as an audit of some hundred
items knows it nearly. Counted over the campaigns of a world, by Holm's test and by the step-down max-t test: how often
a pair is told apart the wrong way round (5 % are allowed), how many pairs are told apart, how often every true rank
lies between its ends (95 % are promised) and how wide that is, as a share of all ranks. The same of one run drawn
beforehand, by its own pairs; and how often the true tau lies in its interval (95 %).
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
from analytics.estimation.simultaneous import PairTest, paired_p_values

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
    holm_wrong: float
    holm_apart: float
    holm_held: float
    holm_width: float
    wrong: float
    apart: float
    ranks_held: float
    rank_width: float
    alone_held: float
    alone_width: float
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


@dataclass(frozen=True)
class Campaign:
    """What is estimated in one campaign, and the truth."""

    truth: np.ndarray
    values: np.ndarray
    pair_variances: np.ndarray
    p_values: np.ndarray

    @property
    def rank(self) -> np.ndarray:
        """Return the true ranks; 1 is the best."""
        return self.truth.size - np.argsort(np.argsort(self.truth))

    def tests(self, apart: np.ndarray) -> tuple[bool, float, bool, float]:
        """Return whether a pair is told apart wrongly, the share told apart, whether all ranks hold, their width."""
        first, second = np.triu_indices(self.truth.size, 1)
        seen = np.sign(self.values[first] - self.values[second])
        is_wrong = seen != np.sign(self.truth[first] - self.truth[second])
        low, high = rank_intervals(self.values, apart)
        return (
            bool((apart[first, second] & is_wrong).any()),
            float(apart[first, second].mean()),
            bool(((low <= self.rank) & (self.rank <= high)).all()),
            float((high - low + 1).mean() / self.truth.size),
        )

    def alone(self, apart: np.ndarray, run: int) -> tuple[bool, float]:
        """Return whether one run's rank holds, and the width of its interval."""
        low, high = rank_intervals(self.values, apart)
        held = bool(low[run] <= self.rank[run] <= high[run])
        return held, float((high[run] - low[run] + 1) / self.truth.size)


def made(world: World, rng: np.random.Generator) -> Campaign:
    truth = world.truth(rng)
    spread = covariance(truth.size, world.error, world.own, rng)
    values = rng.multivariate_normal(truth, spread)
    variance = np.diag(spread)
    pairs = np.maximum(variance[:, None] + variance[None] - 2 * spread, 0.0)
    np.fill_diagonal(pairs, 0.0)
    first, second = np.triu_indices(truth.size, 1)
    p = 2 * ndtr(-np.abs(values[first] - values[second]) / np.sqrt(pairs[first, second]))
    return Campaign(truth, values, pairs, paired_p_values(truth.size, (first, second), p))


def campaign(world: World, seed: int) -> list[float]:
    """Return what one campaign's intervals say, and whether it is so: the fields of `Row` after the first four."""
    rng = np.random.default_rng(seed)
    one = made(world, rng)
    n = one.truth.size
    first, second = np.triu_indices(n, 1)
    by_holm = np.zeros((n, n), dtype=bool)
    by_holm[first, second] = by_holm[second, first] = holm(one.p_values[first, second]) < SURE
    known = covariance_from_pairs(None, one.pair_variances)
    test = PairTest(one.p_values, known, seed=seed)
    run = int(rng.integers(n))
    tau = tau_interval(one.values, known, seed=seed)
    agree = np.sign(one.values[first] - one.values[second]) * np.sign(one.truth[first] - one.truth[second])
    best = int(one.values.argmax())
    chance = rank_probabilities(one.values, known, seed=seed, draws=1000)[best, 0]
    return [
        *one.tests(by_holm),
        *one.tests(test.pairs_apart(level=SURE)),
        *one.alone(test.pairs_apart([run], level=SURE), run),
        tau.low - 1e-9 <= agree.mean() <= tau.high + 1e-9,
        tau.low,
        tau.high,
        agree.mean(),
        chance,
        best == int(one.truth.argmax()),
    ]


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
            f"{row.world:20s} error {row.error:.1f}  Holm: wrong {row.holm_wrong:.3f} apart {row.holm_apart:.3f}"
            f" width {row.holm_width:.3f}  max-t: {row.wrong:.3f} {row.apart:.3f} {row.rank_width:.3f}"
            f" held {row.ranks_held:.3f}  alone {row.alone_held:.3f} {row.alone_width:.3f}  tau {row.tau_held:.3f}"
            f"  [{row.tau_low:+.2f}, {row.tau_high:+.2f}] true {row.tau_true:+.2f}"
            f"  first: chance {row.best_chance:.2f}, right {row.best_right:.2f}",
            file=sys.stderr if given.json else sys.stdout,
        )
    if given.json:
        json.dump({"campaigns": given.campaigns, "rows": [asdict(row) for row in rows]}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
