"""Compare choices behind the default design's predictions, and count how often intervals of few judgments hold.

    python benchmarks/prediction_choices.py --seed 1 --clef <folder> [--part choices] [--part few]

choices: variance over that of the paper's Q* at 100, 400 and 1,800 judgments, for adjacent pairs of runs and without
mixture; one choice of the product is changed in every row. Variances are exact over the frame, given the predictions of
a realised draw, and averaged over draws. few: the share of 95 % confidence intervals (t) that hold the DCG of a
single run, the skewed case, with 10 to 50 judgments. The pools are those of `benchmarks/judgments_needed.py`.

JSON on standard output. About 8 minutes of processor time, shared by `--processes`; `--quick` a third of that.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judgments_needed import CLEF, pairs_of, pools_of
from parts.budgets import Pair, Plan, PriorModel, realised, with_features

from sampling.pooling import prior_utility
from sampling.prediction import N_FOLDS

COUNTS = (100, 400, 1800)
FEW = (10, 20, 30, 50)
KINDS = ("diverse", "near-duplicates", CLEF)


def unreturned_at(factor: int) -> Callable[[Pair], PriorModel]:
    """Return the product's prior with what a run does not return at `factor` times the depth."""

    def prior_model(pair: Pair) -> PriorModel:
        pool, usual = pair.known.pool, pair.known.all_runs
        prior = prior_utility(pool.ranks, pool.depth, unreturned_rank=factor * pool.depth)
        return with_features(prior, usual.features)

    return prior_model


def with_ridge(ridge: float) -> Callable[[Pair], PriorModel]:
    """Return the product's prior with another precision of the features' coefficients."""

    def prior_model(pair: Pair) -> PriorModel:
        usual = pair.known.all_runs
        return PriorModel(usual.prior, usual.features, np.full(usual.ridge.size, ridge))

    return prior_model


def without_features(pair: Pair) -> PriorModel:
    """Return the product's prior without features: the prior and the topics remain."""
    usual = pair.known.all_runs
    return PriorModel(usual.prior, usual.features[:, :0], usual.ridge[:0])


def with_every_run(pair: Pair) -> PriorModel:
    """Return the product's prior with a column besides for every run: 1/rank, 0 where it does not return the item."""
    ranks, usual = pair.known.pool.ranks, pair.known.all_runs
    columns = np.divide(1.0, ranks, out=np.zeros(ranks.shape), where=ranks > 0).T
    return with_features(usual.prior, np.column_stack([usual.features, columns]))


def as_it_is(pair: Pair) -> PriorModel:
    """Return the product's prior."""
    return pair.known.all_runs


@dataclass(frozen=True)
class Choice:
    """One row of the table: a plan, and the number of folds."""

    plan: Plan
    n_folds: int = N_FOLDS


CHOICES = {
    "not returned: rank depth + 1 (the paper's)": Choice(
        Plan(lambda pair: pair.known.all_runs_as_in_the_paper)
    ),
    "3 times the depth": Choice(Plan(unreturned_at(3))),
    "10 times (the product)": Choice(Plan(as_it_is)),
    "30 times": Choice(Plan(unreturned_at(30))),
    "100 times": Choice(Plan(unreturned_at(100))),
    "no features": Choice(Plan(without_features)),
    "a column for every run besides": Choice(Plan(with_every_run)),
    "ridge of the features 1": Choice(Plan(with_ridge(1.0))),
    "ridge of the features 100": Choice(Plan(with_ridge(100.0))),
    "ridge of the topics .3": Choice(Plan(as_it_is, topic_ridge=0.3)),
    "ridge of the topics 3": Choice(Plan(as_it_is, topic_ridge=3.0)),
    "2 folds": Choice(Plan(as_it_is), n_folds=2),
    "20 folds": Choice(Plan(as_it_is), n_folds=20),
}


def choice_variances(pairs: list[Pair], name: str, draws: int, seed: int) -> dict[str, float]:
    """Return by count the mean over pairs of the variance over Q*'s. Rows of one pair have the same random numbers."""
    choice = CHOICES[name]
    variances: dict[int, list[float]] = {count: [] for count in COUNTS}
    for (number, pair), count in product(enumerate(pairs), COUNTS):
        if count > 0.8 * pair.support:
            continue
        rng = np.random.default_rng([seed, number, count])
        each = [
            realised(choice.plan, pair, count, rng, n_folds=choice.n_folds).variance(pair)
            for _ in range(draws)
        ]
        variances[count].append(float(np.mean(each)) / pair.with_replacement(False, count))
    return {str(count): round(float(np.mean(values)), 3) for count, values in variances.items()}


def few_judgments(pairs: list[Pair], repetitions: int, seed: int) -> dict[str, dict[str, float]]:
    """Return by count the coverage of intervals for single runs, drawn for that run without mixture."""
    plan = CHOICES["10 times (the product)"].plan
    coverage = {}
    for count in FEW:
        rng = np.random.default_rng([seed, 77, count])
        inside = []
        for pair in pairs:
            run = Pair(pair.known, pair.first, None)
            for _ in range(repetitions):
                draw = realised(plan, run, count, rng)
                if np.count_nonzero(run.g[draw.drawn]) < 2:
                    continue
                result = draw.estimate(run)
                inside.append(result.low <= run.truth <= result.high)
        share = float(np.mean(inside))
        coverage[str(count)] = {
            "coverage": round(share, 4),
            "standard_error": round(float(np.sqrt(share * (1 - share) / len(inside))), 4),
            "n": len(inside),
        }
    return coverage


Task = tuple[str, str, str, argparse.Namespace]  # kind of pool, part, row, options


def measured(task: Task) -> Any:
    """Return one row of one part for one kind of pool."""
    kind, part, name, options = task
    pairs = pairs_of(pools_of(kind, options.seed, options.clef), options.quick)
    if part == "few":
        return few_judgments(pairs, options.repetitions, options.seed)
    return choice_variances(pairs, name, options.draws, options.seed)


def tasks_of(options: argparse.Namespace, kinds: tuple[str, ...]) -> list[Task]:
    """Return all rows that are asked for."""
    parts = options.part or ["few", "choices"]
    made: list[Task] = []
    if "few" in parts:
        made += [(kind, "few", "", options) for kind in kinds]
    if "choices" in parts:
        made += [(kind, "choices", name, options) for kind, name in product(kinds, CHOICES)]
    return made


def options_given() -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=2, help="draws whose variances are averaged (choices)")
    parser.add_argument("--repetitions", type=int, default=30, help="draws of a run and count (few)")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--part", action="append", choices=("choices", "few"), help="may be repeated; default: both"
    )
    parser.add_argument(
        "--clef", type=Path, help="folder of CLEF TAR 2017 (qrels and runs); left out without it"
    )
    parser.add_argument("--quick", action="store_true", help="a third of the pairs")
    options = parser.parse_args()
    if min(options.draws, options.repetitions, options.processes) < 1:
        parser.error("--draws, --repetitions and --processes must be at least 1")
    return options


def main() -> None:
    """Print the figures as JSON."""
    options = options_given()
    kinds = KINDS if options.clef is not None else KINDS[:2]
    started = time.perf_counter()
    tasks = tasks_of(options, kinds)
    results: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(options.processes) as executor:
        for (kind, part, name, _), figures in zip(tasks, executor.map(measured, tasks), strict=True):
            place = results.setdefault(part, {}).setdefault(name or kind, {})
            place.update({kind: figures} if name else figures)
            print(f"{part} {kind} {name}", file=sys.stderr)
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({"seed": options.seed, "seconds": seconds, **results}, indent=1))


if __name__ == "__main__":
    main()
