"""Parts of benchmarks/coverage.py: the assumption test's size and power, and intervals watched after every judgment."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts.coverage_collection import GAINS, Collection, Floats, Ints, judge, make_collection
from parts.coverage_grid import Cell, audit_design, chosen, labels_of
from scipy import stats

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimates
from analytics.estimation.samples import AuditSample
from analytics.estimation.sequences import FEWEST_WATCHED, always_valid_factor
from analytics.papers.assumption import AssumptionTest, AuditedLabels, assumption_test

POWER = {100: (0.54, 0.67), 300: (0.97, 0.99), 1000: (1.0, 1.0)}  # judges of a TREC collection; not checked
WATCHED = (0, 8, 16, 23, 30, 100, 200, 290)  # four systems, and four pairs behind the 24 systems


# -- the assumption test ------------------------------------------------------------------------------------


def run_assumption(design: str, n_audits: int, votes: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often the test rejects at 5 %, with errors that depend on popularity and with shuffled labels."""
    collection, rng = make_collection(1), np.random.default_rng([seed, n_audits, votes, design == "simple"])
    n = collection.grade.size
    log_runs = np.log(collection.returned_by)
    cell = Cell("whole", design, n_audits, "", votes, "random")
    audit_pi = audit_design(cell, collection.runs, np.ones(n))
    rejected = {"popularity": 0, "shuffled": 0}
    clustered = {"popularity": 0, "shuffled": 0}
    tested = dict.fromkeys(rejected, 0)
    for _ in range(repetitions):
        for noise in rejected:
            labels = judge(collection, noise, votes, random_assignment=True, rng=rng)
            mine = np.flatnonzero(chosen(audit_pi, rng)[labels.item])
            item = labels.item[mine]
            test = assumption_test(
                log_runs[item],
                AuditedLabels(
                    gold_grade=collection.grade[item],
                    given_grade=labels.given[mine],
                    audit_probability=audit_pi[item],
                    gains=GAINS,
                    item_index=item,
                ),
                topic_index=collection.topic[item],
                rng=rng,
                permutations=199,
            )
            if isinstance(test, AssumptionTest):
                tested[noise] += 1
                rejected[noise] += test.p_value <= 0.05
                clustered[noise] += abs(test.topic_t or 0.0) > 2.01  # t with 49 degrees of freedom
    size, power = (rejected[noise] / max(1, tested[noise]) for noise in ("shuffled", "popularity"))
    return {
        "size": round(size, 4),
        "power": round(power, 4),
        "topic_t": {noise: round(count / max(1, tested[noise]), 4) for noise, count in clustered.items()},
        "repetitions": repetitions,
        "refused": 2 * repetitions - sum(tested.values()),
        "target": {"size": [0.02, 0.08], "power_on_real_judges": POWER[n_audits]},
        "holds": {"size": 0.02 <= size <= 0.08},
    }


# -- watched intervals --------------------------------------------------------------------------------------


def nested_probabilities(cell: Cell, collection: Collection, looks: range) -> Floats:
    """Return audit probabilities [look, item] with an expected count that rises by one at every look."""
    ones = np.ones(collection.grade.size)
    rows = [
        audit_design(Cell(cell.item_design, cell.audit_design, size, "", 1, "random"), collection.runs, ones)
        for size in looks
    ]
    return np.maximum.accumulate(np.stack(rows), axis=0)


def run_watched(design: str, last: int, planned: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return the chance that an interval, watched or fixed, misses the truth at any look, one after every judgment.

    Four systems and four pairs; audits share one random number an item, so that they are nested. The fixed interval
    is looked at from the same 20 audited items on.
    """
    collection, rng = make_collection(1), np.random.default_rng([seed, last, design == "simple"])
    n = collection.grade.size
    targets, truth = collection.targets.subset(WATCHED), collection.truth[list(WATCHED)]
    looks = range(FEWEST_WATCHED, last + 1)
    probability = nested_probabilities(Cell("whole", design, planned, "", 1, "random"), collection, looks)
    n_items = targets.n_weighed()
    ever = {
        name: np.zeros((repetitions, len(WATCHED)), dtype=bool) for name in ("watched", "fixed", "last_look")
    }
    widths: list[float] = []
    for repetition in range(repetitions):
        labels = judge(collection, "popularity", 1, random_assignment=True, rng=rng)
        bronze = labels_of(labels, n).classes()
        number = rng.random(n)
        for audit_pi in probability:
            audit = AuditSample(
                np.ones(n), bronze, number < audit_pi, collection.grade, audit_pi, n_grades=len(GAINS)
            )
            estimates = correct(targets, audit, GAINS).estimates
            fixed, watched, ratio = one_look(estimates, truth, planned, n_items)
            ever["fixed"][repetition] |= fixed
            ever["watched"][repetition] |= watched
        ever["last_look"][repetition] = fixed
        widths.append(float(np.nanmean(ratio)))
    share = {name: float(missed.mean()) for name, missed in ever.items()}
    spread = ever["watched"].mean(axis=1).std(ddof=1) / np.sqrt(repetitions) if repetitions > 1 else 0.0
    return {
        "looks": len(looks),
        "planned": planned,
        "paths": repetitions * len(WATCHED),
        "watched_error": round(share["watched"], 4),
        "watched_error_se": round(float(spread), 4),
        "fixed_error": round(share["fixed"], 4),
        "fixed_error_at_the_last_look": round(share["last_look"], 4),
        "watched_width_over_fixed_at_the_last_look": round(float(np.mean(widths)), 3),
        "target": {"watched_error": 0.05},
        "holds": {"watched_error": share["watched"] <= 0.05, "control_fails": share["fixed"] > 0.1},
    }


def one_look(
    estimate: Estimates, truth: Floats, planned: int, n_items: Ints
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Return by target whether the fixed and the watched interval miss, and how wide the watched one is beside it."""
    counts = estimate.n.copy()
    counts[list(estimate.refusals)] = 0
    factor = always_valid_factor(counts, planned, n_items=n_items)
    usable = np.isfinite(factor)
    half = np.where(usable, factor, 0.0) * estimate.standard_error
    fixed = usable & ((truth < estimate.low) | (truth > estimate.high))
    watched = usable & (np.abs(estimate.value - truth) > half)
    ratio = np.where(usable, 2 * half / np.where(usable, estimate.high - estimate.low, 1.0), np.nan)
    return fixed, watched, ratio


# -- the boundary itself ------------------------------------------------------------------------------------

WHOLE, PLANNED, LAST_LOOK = 2001, 200, 2000


def run_boundary(growth: str, n_items: int | None, repetitions: int, seed: int) -> dict[str, Any]:
    """Return the boundary's error for Brownian motion whose information grows as said; 2,000 looks, 200 planned."""
    n = np.arange(FEWEST_WATCHED, LAST_LOOK + 1)
    factor = always_valid_factor(n, PLANNED, n_items=n_items)
    rng = np.random.default_rng([seed, len(growth), n_items or 0])
    return boundary_errors(growth, n, factor, repetitions, rng)


def run_moved_plan(growth: str, repetitions: int, seed: int) -> dict[str, Any]:
    """Return the boundary's error if the planned number is at every look the one that makes the interval narrowest."""
    n = np.arange(FEWEST_WATCHED, LAST_LOOK + 1)
    factor = np.array([float(always_valid_factor(one, int(one))) for one in n])
    rng = np.random.default_rng([seed, len(growth), 1])
    return boundary_errors(growth, n, factor, repetitions, rng)


def boundary_errors(
    growth: str, n: Ints, factor: Floats, repetitions: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return how often Brownian motion leaves the boundary, and how often the fixed interval, at any look."""
    information = {
        "as n": n.astype(float),
        "as n squared": n.astype(float) ** 2,
        "as the root of n": np.sqrt(n),
        "as n/(1 - n/N)": n / (1 - n / WHOLE),
    }[growth]
    normal = stats.norm.isf(stats.t.sf(factor, n - 1))  # Brownian motion has no degrees of freedom to lose
    steps = np.sqrt(np.diff(information, prepend=0.0))
    missed, fixed = 0, 0
    for _ in range(repetitions):
        z = np.abs(np.cumsum(rng.normal(size=n.size) * steps)) / np.sqrt(information)
        missed += bool((z > normal).any())
        fixed += bool((z > 1.96).any())
    return {
        "paths": repetitions,
        "watched_error": round(missed / repetitions, 4),
        "fixed_error": round(fixed / repetitions, 4),
    }


# -- standard errors that are too small ---------------------------------------------------------------------

ERROR_RATE = 0.1  # errors are 0 in nine of ten items


def run_plain_mean(first: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often a sequence misses whose standard error is s/sqrt(n) of rare errors; looks from `first` to 2,000.

    Where no error was seen yet s is 0, and the interval has no width.
    """
    n = np.arange(first, LAST_LOOK + 1)
    factor = always_valid_factor(n, PLANNED)
    rng = np.random.default_rng([seed, 71, first])
    missed = 0
    for _ in range(repetitions):
        mean = (np.cumsum(rng.random(LAST_LOOK) < ERROR_RATE) / np.arange(1, LAST_LOOK + 1))[first - 1 :]
        standard_error = np.sqrt(mean * (1 - mean) / (n - 1))
        missed += bool((np.abs(mean - ERROR_RATE) > factor * standard_error).any())
    return {"paths": repetitions, "watched_error": round(missed / repetitions, 4)}
