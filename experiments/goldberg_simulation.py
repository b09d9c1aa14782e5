"""Rebuild the simulation of Goldberg et al. (2017), section 5, and the example of section 4.2.

    python experiments/goldberg_simulation.py            # 10,000 runs of Algorithm 2: under a second
    python experiments/goldberg_simulation.py --json     # one object: means, coverage, every_run, figure1, as_printed

P@10 of 50 queries, truth .4, judges with mR = .9 and mN = .8, each estimated from 250 gold documents. Each number is
checked against docs/methods/derivations/noise-correction.md, its tolerance widened if fewer runs are asked for; the
program ends with status 1, and says why, when one is not.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.estimation.estimate import Estimate, Floats
from analytics.papers.graded import corrected_system
from experiments.papers.algorithms import Simulation, simulate_precision
from experiments.papers.graded import ranked_labels
from experiments.parts.goldberg import run, simulated, six
from experiments.parts.rows import Report, Row, row

HEADINGS = {
    "means": "Figure 2: P@10 by the labels as they are, and corrected",
    "coverage": "How often the 95 % confidence interval holds the true .4",
    "every_run": '"In every run the naive P@10 is larger than the true value"',
    "figure1": "Eq 18 on the two queries of Figure 1",
    "as_printed": "Algorithm 2 without its else-branches, as printed",
}
RELEVANT_SHARE = np.arange(0.49, 0.30, -0.02)
TRUTH, TOPICS, GOLD = 0.4, 50, 250
SENSITIVITY, SPECIFICITY = 0.9, 0.8
J = [[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]]


def simulation(runs: int, seed: list[int], *, otherwise_assigned: bool = True) -> Simulation:
    """Return runs of Algorithm 2 with the paper's numbers."""
    return simulate_precision(
        RELEVANT_SHARE,
        sensitivity=SENSITIVITY,
        specificity=SPECIFICITY,
        n_relevant=GOLD,
        n_not_relevant=GOLD,
        n_topics=TOPICS,
        runs=runs,
        rng=np.random.default_rng(seed),
        otherwise_assigned=otherwise_assigned,
    )


def report(draws: int, seed: int) -> Report:
    """Return all rows for so many runs of Algorithm 2."""
    outcome, some = simulation(draws, [seed, 2]), min(draws, 1000)
    printed = simulation(some, [seed, 3], otherwise_assigned=False)
    full, part = (draws, 10_000), (some, 1000)
    return {
        "means": [
            simulated("naive P@10", 0.48, float(outcome.naive.mean()), 0.4804, 0.001, full),
            simulated("corrected P@10", 0.4, float(outcome.corrected.mean()), 0.4001, 0.001, full),
            simulated("SD of the naive one", None, float(outcome.naive.std(ddof=1)), 0.0224, 0.001, full),
            simulated("SD of the corrected one", None, float(outcome.corrected.std(ddof=1)), 0.0405, 0.001, full),
        ],
        "coverage": _coverage(outcome, full),
        "every_run": _every_run(outcome, draws),
        "figure1": _figure1(),
        "as_printed": [
            simulated("naive P@10", None, float(printed.naive.mean()), 0.12, 0.001, part,
                      "only flipped non-relevant documents are ever given a 1: .6 x .2")
        ],
    }  # fmt: skip


def covered(values: Floats, variances: Floats) -> float:
    """Return the share of intervals value +- 1.96 SE that hold the truth."""
    return float((np.abs(values - TRUTH) <= 1.959964 * np.sqrt(variances)).mean())


def _coverage(outcome: Simulation, draws: tuple[int, int]) -> list[Row]:
    return [
        simulated(
            "naive, SD/sqrt(50)",
            0.05,
            covered(outcome.naive, outcome.naive_variance),
            0.0484,
            0.006,
            draws,
        ),
        simulated(
            "naive, SD/sqrt(10) as printed",
            0.05,
            covered(outcome.naive, outcome.naive_variance * TOPICS / RELEVANT_SHARE.size),
            0.754,
            0.0125,
            draws,
            "the paper's 5 % is that of 50 queries",
        ),
        simulated("Eq 7", 0.95, covered(outcome.corrected, outcome.corrected_variance), 0.9478, 0.006, draws),
    ]


def not_above_truth() -> tuple[float, float]:
    """Return the chance that a run's naive mean is .4 or less: exactly, and by the normal approximation."""
    label = np.repeat(RELEVANT_SHARE * SENSITIVITY + (1 - RELEVANT_SHARE) * (1 - SPECIFICITY), TOPICS)
    sums = np.ones(1)
    for p in label:
        sums = np.convolve(sums, [1 - p, p])
    distance = label.mean() - TRUTH
    error = np.sqrt((label * (1 - label)).sum()) / label.size
    return float(sums[: round(TRUTH * label.size) + 1].sum()), float(norm.sf(distance / error))


def _every_run(outcome: Simulation, draws: int) -> list[Row]:
    exact, normal = not_above_truth()
    below = int((outcome.naive <= TRUTH + 1e-12).sum())
    return [
        row("chance of a run at or below .4, exact", 0, exact),
        row("chance of a run, normal approximation", None, normal, expected=1.6e-4, tolerance=5e-6),
        row("chance of no such run in 10,000, exact", None, (1 - exact) ** 10_000),
        row(
            "chance of no such run, normal approximation",
            None,
            (1 - normal) ** 10_000,
            expected=0.2,
            tolerance=0.01,
        ),
        row(
            "runs at or below .4",
            0,
            below,
            expected=exact * draws,
            tolerance=4 * np.sqrt(exact * draws) + 1,
            note='the caption\'s "almost always" is right',
        ),
    ]


def _figure1() -> list[Row]:
    labels = ranked_labels([[2, 0], [1, 2]], 1 / np.log2([2, 3]))
    rows = []
    for name, matrix, value in (("J = I", np.eye(3), 0.565465), ("J of F7", np.array(J), 0.482132)):
        corrected = corrected_system(
            labels, matrices=[matrix], gold_per_grade=[[1000] * 3], gains=[1, 0.5, 0]
        )
        assert isinstance(corrected, Estimate)
        rows.append(six(f"DCG@2, {name}", None, corrected.value, value))
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every number is what it must be, else 1."""
    return run(__doc__, HEADINGS, report, 10_000, arguments)


if __name__ == "__main__":
    sys.exit(main())
