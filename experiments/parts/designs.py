"""The paper's designs and comparisons on SYNTH, each by the product's own function."""

import itertools
from dataclasses import dataclass

import numpy as np

from analytics.estimation.estimate import Estimate
from analytics.estimation.importance import importance_sampling
from experiments.papers.designs import (
    baseline_design,
    naive_design,
    pair_design,
    ranking_design,
    single_design,
)
from experiments.papers.draws import draw_with_replacement
from experiments.papers.forecasts import design_variance
from experiments.parts.synth import ITEMS, Synth, true_scores
from sampling.designs import mixture, normalise
from sampling.measures.families import FloatArray

UNIFORM_SHARE = 0.04  # the widths of Table 4 need it; the paper does not say so


@dataclass(frozen=True)
class Comparison:
    """What a sample is to tell: one row of weights per number wanted, and the designs that are compared.

    The designs are distributions over the cells: `naive` and `optimal`, each with the prior utility (u~) and
    with the true one (u*).
    """

    name: str
    targets: FloatArray  # [target, cell]
    naive: tuple[FloatArray, ...]  # u~, u*
    optimal: tuple[FloatArray, ...]


def uniform_pairs(synth: Synth) -> FloatArray:
    """Return the design that draws every pair of user and item alike: a cell by the number of its pairs."""
    return normalise(synth.share / ITEMS)


def single_designs(synth: Synth, system: int) -> dict[str, FloatArray]:
    """Return Table 3's designs for one system, and Table 4's mixture, without which its widths do not come out."""
    weights = synth.weights[system]
    optimal = single_design(weights, synth.prior[system])
    uniform = uniform_pairs(synth)
    return {
        "Q*": optimal,
        "Q^P": single_design(weights, np.ones(weights.size)),
        "Q^unif": uniform,
        "mixture": mixture(optimal, [uniform], [UNIFORM_SHARE]),
    }


def by_quality(synth: Synth) -> list[int]:
    """Return the systems from the best to the worst."""
    return [int(system) for system in np.argsort(-true_scores(synth), kind="stable")]


def pair_comparisons(synth: Synth, names: tuple[str, ...]) -> list[Comparison]:
    """Return section 7.3's four pairs of systems that are neighbours in quality (Eq 9)."""
    order = by_quality(synth)
    comparisons = []
    for a, b in itertools.pairwise(order):
        utilities = (synth.prior[[a, b]].mean(axis=0), synth.grade)
        comparisons.append(
            Comparison(
                name=f"{names[a]}/{names[b]}",
                targets=synth.weights[[a]] - synth.weights[[b]],
                naive=tuple(naive_design(synth.weights[[a, b]], utility) for utility in utilities),
                optimal=tuple(
                    pair_design(synth.weights[a], synth.weights[b], utility) for utility in utilities
                ),
            )
        )
    return comparisons


def baseline_comparison(synth: Synth, *, naive_with_baseline: bool = False) -> Comparison:
    """Return section 7.4's four systems against the one of middle quality (Eq 11).

    The paper's naive design leaves the baseline out. Harmless here, where every system returns every item;
    elsewhere items that only the baseline returns would never be drawn.
    """
    order = by_quality(synth)
    baseline = order[len(order) // 2]
    others = [system for system in order if system != baseline]
    utilities = (synth.prior.mean(axis=0), synth.grade)
    naive_rows = order if naive_with_baseline else others
    return Comparison(
        name="four systems against the middle one",
        targets=synth.weights[others] - synth.weights[baseline],
        naive=tuple(naive_design(synth.weights[naive_rows], utility) for utility in utilities),
        optimal=tuple(
            baseline_design(synth.weights[others], synth.weights[baseline], utility) for utility in utilities
        ),
    )


def ranking_comparison(synth: Synth) -> Comparison:
    """Return section 7.5's five systems, each against the mean of all (Eq 13)."""
    utilities = (synth.prior.mean(axis=0), synth.grade)
    return Comparison(
        name="five systems ranked",
        targets=synth.weights - synth.weights.mean(axis=0),
        naive=tuple(naive_design(synth.weights, utility) for utility in utilities),
        optimal=tuple(ranking_design(synth.weights, utility) for utility in utilities),
    )


def mean_variance(q: FloatArray, targets: FloatArray, synth: Synth, n_users: int) -> float:
    """Return the mean over the targets of n Sigma(Q)/|X|, in DCG^2: the unit of Tables 5 to 7.

    The paper's Eq 10 is the sum over the comparisons; its tables are means.
    """
    return float(np.mean([design_variance(q, synth.grade, target) for target in targets])) / n_users


def draw_estimates(
    synth: Synth, q: FloatArray, targets: FloatArray, sizes: list[int], rng: np.random.Generator
) -> list[list[Estimate]]:
    """Return what the first n draws of one sample say about every target, for every n of `sizes`: Eq 3, 6, 7.

    As in the paper, a number is given however few draws say anything about a target (`fewest=0`).
    """
    drawn = draw_with_replacement(q, max(sizes), rng)
    utility, probability, weights = synth.grade[drawn], q[drawn], targets[:, drawn]
    estimates = []
    for n in sizes:
        results = importance_sampling(weights[:, :n], utility[:n], probability[:n], fewest=0)
        estimates.append([result for result in results if isinstance(result, Estimate)])
        if len(estimates[-1]) != len(results):
            raise ValueError(f"every target must get an estimate, got {results}")
    return estimates
