"""The weights of a design: how far the utility of each item moves what a run has in a measure, before any judgment.

Of a sum over documents they are the weights of its ranks. A ratio bends, so its weights are its derivative phi at what
is predicted (`sampling.measures.ratio_derivative`): the part of the rank, c alpha, less what every item of the topic
takes away by making more possible. Over the gains' stairs of one item

    sum_j phi_ij u_ij = c_i U_i - d_t S_i,        U the item's gain, S the sum of its topic's z_j up to its grade
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sampling.measures.families import FloatArray, Measure, weights_of_runs
from sampling.measures.kinds import Ints, Ratio, quotient
from sampling.measures.ratio_derivative import derivative
from sampling.measures.sparse import SparseRuns


@dataclass(frozen=True, eq=False)
class PriorGrades:
    """What is predicted of every item's grade before anything is judged.

    Attributes
    ----------
    topic_index : int array [item]
    probability : array [item]
        That the item is relevant, within [0, 1].
    gains : array [relevant grade]
        Of the measure. A relevant item has each of these grades with the same probability, any other the gain 0.
    """

    topic_index: Ints
    probability: FloatArray
    gains: FloatArray

    def __post_init__(self) -> None:
        p = np.asarray(self.probability, dtype=np.float64)
        if p.shape != np.shape(self.topic_index) or not ((p >= 0) & (p <= 1)).all():
            raise ValueError("probability must be within [0, 1], one an item")
        gains = np.asarray(self.gains, dtype=np.float64)
        if gains.ndim != 1 or not gains.size or not (np.isfinite(gains) & (gains >= 0)).all():
            raise ValueError(f"gains must be finite and not negative, got {gains.tolist()}")


@dataclass(frozen=True, eq=False)
class Across:
    """What every item of a topic takes from the runs' values, and how relevant grades differ from their mean.

    Attributes
    ----------
    topic_index : int array [item]
    value : array [run, topic]
        d S of a relevant item, for a gain of 1; not negative.
    gain_variance, covariance, count_variance : arrays [topic]
        Over relevant grades, of U and of S, each divided by its mean: 0 with one relevant grade.
    """

    topic_index: Ints
    value: FloatArray
    gain_variance: FloatArray
    covariance: FloatArray
    count_variance: FloatArray


@dataclass(frozen=True, eq=False)
class DesignWeights:
    """Weights [run, item] of a relevant item's mean gain: those of `along`, less what `across` takes."""

    measure: Measure[Any]
    along: SparseRuns
    across: Across | None = None

    def rows(self, runs: ArrayLike) -> "DesignWeights":
        """Return the weights of the given runs only, in the given order."""
        across = self.across and replace(self.across, value=self.across.value[np.asarray(runs, dtype=int)])
        return replace(self, along=self.along.rows(runs), across=across)

    def row(self, run: int) -> FloatArray:
        """Return one run's weights, shape (n_items,)."""
        own = self.along.row(run).astype(np.float64)
        return own if self.across is None else own - self.across.value[run, self.across.topic_index]


def design_weights(
    measure: Measure[Any], ranks: SparseRuns, n_topics: int, prior: PriorGrades | None = None
) -> DesignWeights:
    """Return the weights of every run.

    Of a ratio, phi at the prior prediction, over the number of topics: to first order its value moves by so much for
    every gain of 1. In a topic of which no listed item is predicted relevant d is 0.

    Parameters
    ----------
    ranks : SparseRuns
        A run's rank of each item of the pool.
    n_topics : int
        All topics, also those without an item.
    prior : PriorGrades
        Of a ratio; a sum over documents needs none.

    Raises
    ------
    ValueError
        A measure that is neither a sum over documents nor a mean over topics of a ratio; a ratio without a prediction.

    Examples
    --------
    >>> from sampling.measures.registry import parse_measure
    >>> from sampling.measures.sparse import from_dense
    >>> prior = PriorGrades(np.zeros(3, int), np.array([0.5, 0.5, 1.0]), np.ones(1))
    >>> ranks = from_dense(np.array([[1, 0, 2]]))
    >>> design_weights(parse_measure("R@1"), ranks, 1, prior).row(0).round(6).tolist()
    [0.375, -0.125, -0.125]
    """
    if measure.kind.is_sum:
        return DesignWeights(measure, weights_of_runs(measure, ranks, n_topics))
    if not isinstance(measure.kind, Ratio) or measure.averaging == "micro":
        raise ValueError(f"{measure.name} has no weights for a design")
    if prior is None:
        raise ValueError(f"the weights of {measure.name} depend on what is predicted, got None")
    gains = np.asarray(prior.gains, dtype=np.float64)
    if not gains.any():
        raise ValueError(
            f"no relevant grade has a gain above 0 in {measure.name}: nothing is predicted relevant"
        )
    levels = np.unique(gains[gains > 0])
    steps = np.diff(levels, prepend=0.0)
    reached = (gains >= levels[:, None]).astype(np.float64)  # [stair, grade]
    p = reached.mean(axis=1)[:, None] * prior.probability
    at = derivative(measure, ranks, prior.topic_index, n_topics, p, steps)
    scale = at.denominator * n_topics
    order = np.lexsort((at.run, at.item))
    item = at.item[order]
    entries = SparseRuns(
        ranks.n_runs, ranks.n_items, at.run[order].astype(np.int32), item.astype(np.int32), np.zeros(0)
    )
    c = at.numerator_slope[order] / scale[prior.topic_index[item]]
    count = at.slope.T @ reached  # [topic, grade]
    mean_count = count.mean(axis=1)
    relative = quotient(count, np.broadcast_to(mean_count[:, None], count.shape)) - (mean_count[:, None] > 0)
    gain = gains / gains.mean() - 1
    return DesignWeights(
        measure,
        entries.with_values(c),
        Across(
            prior.topic_index,
            at.value / scale * (mean_count / gains.mean()),
            np.full(n_topics, np.square(gain).mean()),
            (relative * gain).mean(axis=1),
            np.square(relative).mean(axis=1),
        ),
    )
