"""How a method of evaluation is tested: random subsets of runs, the same for all methods, beside full judgments.

A method's quality on a subset is Kendall's tau-b of its ranking with that by full judgments. Each method is compared
with the first on the same subsets: d, the difference of tau. Subsets overlap, so that a p-value from subsets alone
shrinks at will; the interval resamples topics as well, and collections are joined by a random-effects mean.

Source: Carterette and Allan (2007), sections 3 and 6; DerSimonian and Laird (1986) for the mean over collections. The
bootstrap over topics is ours.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from analytics.lowcost.evaluation_methods import ChosenMethod, Trial, full_judgments
from analytics.lowcost.run_folder import FolderTopic, RunFolder
from sampling.arrays import FloatArray
from sampling.experts import RankedPool

N_BOOTSTRAPS = 500
Z95 = 1.959963984540054
Alternative = Literal["two-sided", "greater", "less"]


@dataclass(frozen=True)
class Comparison:
    """One method beside the first: the mean difference of tau, with its 95 % interval and standard error."""

    method: str
    tau: float
    difference: float
    low: float
    high: float
    standard_error: float


@dataclass(frozen=True)
class CollectionTrials:
    """What the trials on one collection say: mean tau of the first method, and the others beside it.

    `taus` has by method the mean tau for each size of a subset.
    """

    name: str
    n_runs: int
    n_topics: int
    sizes: tuple[int, ...]
    taus: dict[str, tuple[float, ...]]
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class OverallDifference:
    """The random-effects mean of a method's differences over collections.

    Attributes
    ----------
    p_value : float
        Of no difference, against the alternative that was stated before.
    heterogeneity : float
        The variance of the difference between collections.
    """

    method: str
    difference: float
    low: float
    high: float
    p_value: float
    heterogeneity: float


def kendall_tau_b(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return tau-b of every two rows; 0 where a row orders nothing.

    >>> kendall_tau_b(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(6).tolist()
    [0.333333]
    """
    one, other = np.triu_indices(first.shape[-1], 1)
    a = np.sign(first[..., one] - first[..., other])
    b = np.sign(second[..., one] - second[..., other])
    ordered = np.sqrt(np.abs(a).sum(axis=-1) * np.abs(b).sum(axis=-1))
    agreement = (a * b).sum(axis=-1)
    return np.asarray(np.divide(agreement, ordered, out=np.zeros(agreement.shape), where=ordered > 0))


def topics_of(topics: Sequence[FolderTopic], runs: Sequence[int]) -> list[FolderTopic]:
    """Return the topics of some runs alone: the pool is what these return."""
    rows = list(runs)
    found = []
    for topic in topics:
        pool = topic.pool.ranks[rows]
        is_pooled = np.isfinite(pool).any(axis=0)
        if not is_pooled.any():
            continue
        found.append(
            replace(
                topic,
                doc_ids=tuple(np.array(topic.doc_ids, dtype=object)[is_pooled]),
                pool=RankedPool(pool[:, is_pooled]),
                ranks=topic.ranks[rows][:, is_pooled],
                is_relevant=topic.is_relevant[is_pooled],
                relevant_ranks=topic.relevant_ranks[rows],
            )
        )
    return found


def collection_trials(
    name: str,
    folder: RunFolder,
    methods: Sequence[ChosenMethod],
    *,
    n_subsets: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    is_manual: Sequence[bool] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CollectionTrials:
    """Return how the methods do on `n_subsets` random subsets of each size.

    Raises
    ------
    ValueError
        For fewer than two methods, one of them twice, no subset, or a size that is not between 2 and the number of
        runs.
    """
    spellings = [method.spelling for method in methods]
    if len(methods) < 2 or len({*spellings}) < len(spellings):
        raise ValueError(f"methods must be at least 2 and all different, got {', '.join(spellings)}")
    if n_subsets < 2:
        raise ValueError(f"subsets must be at least 2, got {n_subsets}")
    n_runs = len(folder.runs)
    for size in sizes:
        if not 2 <= size <= n_runs:
            raise ValueError(f"a subset's size must be within [2, {n_runs}] in {name}, got {size}")
    manual = tuple(is_manual) or (False,) * n_runs
    n_all = len(sizes) * n_subsets
    weights = _topic_weights(len(folder.topics), rng)
    taus = np.empty((len(methods), n_all, len(weights)))
    for number, size in enumerate(np.repeat(sizes, n_subsets).tolist()):
        progress(number, n_all)
        taus[:, number] = _one_subset(folder, methods, manual, size, weights, rng)
    by_size = taus[:, :, 0].reshape(len(methods), len(sizes), n_subsets).mean(axis=2)
    return CollectionTrials(
        name,
        n_runs,
        len(folder.topics),
        tuple(sizes),
        {spelling: tuple(row) for spelling, row in zip(spellings, by_size.tolist(), strict=True)},
        tuple(_comparison(spellings[one], taus[0], taus[one], rng) for one in range(1, len(methods))),
    )


def _topic_weights(n_topics: int, rng: np.random.Generator) -> FloatArray:
    """Return [1 + bootstraps, topic] how often each topic counts: once at first, then as drawn with replacement."""
    drawn = rng.multinomial(n_topics, np.full(n_topics, 1 / n_topics), size=N_BOOTSTRAPS)
    return np.vstack([np.ones(n_topics), drawn])


def _one_subset(
    folder: RunFolder,
    methods: Sequence[ChosenMethod],
    is_manual: tuple[bool, ...],
    size: int,
    weights: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return tau [method, weighting of topics] on a random subset of the runs."""
    runs = np.sort(rng.permutation(len(folder.runs))[:size]).tolist()
    topics = topics_of(folder.topics, runs)
    ids = {topic.topic_id for topic in topics}
    counted = weights[:, [topic.topic_id in ids for topic in folder.topics]]
    truth = counted @ full_judgments(topics)
    trial = Trial(topics, tuple(is_manual[run] for run in runs), rng)
    return np.array([kendall_tau_b(counted @ method.scores(trial), truth) for method in methods])


def _comparison(spelling: str, first: FloatArray, other: FloatArray, rng: np.random.Generator) -> Comparison:
    """Return the difference of two methods from tau [subset, weighting]; its bootstrap draws subsets too."""
    differences = other - first
    n_subsets, n_weightings = differences.shape
    drawn = rng.integers(n_subsets, size=(n_subsets, n_weightings - 1))
    means = np.take_along_axis(differences[:, 1:], drawn, axis=0).mean(axis=0)
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return Comparison(
        spelling,
        float(other[:, 0].mean()),
        float(differences[:, 0].mean()),
        low,
        high,
        float(means.std(ddof=1)),
    )


def overall_difference(comparisons: Sequence[Comparison], alternative: Alternative) -> OverallDifference:
    """Return the random-effects mean of one method's differences over collections.

    Source: DerSimonian and Laird (1986). Of one collection it is that collection's difference.

    Raises
    ------
    ValueError
        Without collections, or where a difference has no standard error.
    """
    if not comparisons:
        raise ValueError("collections must be at least 1, got 0")
    effects = np.array([one.difference for one in comparisons])
    variances = np.array([one.standard_error**2 for one in comparisons])
    if not (variances > 0).all():
        raise ValueError("every difference needs a standard error above 0: the methods rank alike")
    between = _between(effects, variances)
    weights = 1.0 / (variances + between)
    mean = float((weights * effects).sum() / weights.sum())
    error = math.sqrt(1.0 / weights.sum())
    upper = float(scipy.special.ndtr(-mean / error))
    p = {"greater": upper, "less": 1.0 - upper, "two-sided": 2.0 * min(upper, 1.0 - upper)}[alternative]
    return OverallDifference(comparisons[0].method, mean, mean - Z95 * error, mean + Z95 * error, p, between)


def _between(effects: FloatArray, variances: FloatArray) -> float:
    """Return the variance between collections by DerSimonian and Laird's moments; 0 where there is less."""
    weights = 1.0 / variances
    mean = (weights * effects).sum() / weights.sum()
    q = float((weights * (effects - mean) ** 2).sum())
    spread = weights.sum() - (weights**2).sum() / weights.sum()
    return max(0.0, (q - effects.size + 1) / float(spread)) if spread > 0 else 0.0
