"""How often does the rule of agreement accuse a judge as good as the peer, and how often does it find a guesser? JSON.

    python benchmarks/careless_rules.py               # 20,000 campaigns of two judges, a minute
    python benchmarks/careless_rules.py --repeats 500

108 items, four grades alike frequent. The peer is right in .6, else a neighbouring grade; so is a judge as good. An
even guesser gives every grade with probability 1/4. Goals: at most .05 of the first are flagged, at least .8 of the
second.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from analytics.screening.carelessness import chance_agreement

N_ITEMS, N_GRADES, RIGHT = 108, 4, 0.6
MOST_GOOD, LEAST_GUESSERS = 0.05, 0.8
Grades = NDArray[np.int64]


def usual_judge(truth: Grades, rng: np.random.Generator) -> Grades:
    """Return grades that are right in RIGHT of the cases, else a neighbouring grade: above and below alike likely."""
    step = rng.choice([-1, 1], size=truth.size)
    inside = (truth + step >= 0) & (truth + step < N_GRADES)
    wrong = np.where(inside, truth + step, truth - step)
    return np.where(rng.random(truth.size) < RIGHT, truth, wrong)


def even_guesser(truth: Grades, rng: np.random.Generator) -> Grades:
    return rng.integers(N_GRADES, size=truth.size)


def share_flagged(judge: str, n_repeats: int, seed: int) -> float:
    """Return how many of so many judges beside one peer are flagged."""
    rng = np.random.default_rng(seed)
    grade = {"good": usual_judge, "guesser": even_guesser}[judge]
    n_flagged = 0
    for _ in range(n_repeats):
        truth = rng.integers(N_GRADES, size=N_ITEMS)
        peer = np.eye(N_GRADES)[usual_judge(truth, rng)]
        n_flagged += chance_agreement(grade(truth, rng), peer).is_no_better_than_chance
    return n_flagged / n_repeats


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--repeats", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    good = share_flagged("good", asked.repeats, asked.seed)
    guessers = share_flagged("guesser", asked.repeats, asked.seed + 1)
    passed = good <= MOST_GOOD and guessers >= LEAST_GUESSERS
    print(
        json.dumps({"good": good, "guessers": guessers, "repeats": asked.repeats, "passed": passed}, indent=2)
    )
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
