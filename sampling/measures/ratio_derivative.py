"""nDCG, AP and R as functions of predicted labels: value, derivative, and what bends.

A topic's value is q = N/Z: a numerator, which the run brings, over a denominator, which depends on all items of the
topic. N is a function of the items' utility U_i = sum_j step_j p_ij, p_ij the chance that item i reaches stair j of the
gains; Z of the number of items C_j = sum_i p_ij that reach each stair. alpha_i = dN/dU_i and z_j = dZ/dC_j, so that

    dq/dp_ij = ( step_j alpha_i - q z_j ) / Z

Of nDCG, alpha is the discount of the rank, 0 beyond the cutoff, and z_j = step_j D'(C_j); of R, alpha is 1 within the
cutoff, of AP it is ``[1 + sum_above p]/r + sum_below p/r``, and z is 1 in both.
"""

from dataclasses import dataclass

import numpy as np

from sampling.measures.families import Measure
from sampling.measures.kinds import Floats, Ints, Ratio, quotient, sums_above, topic_sums
from sampling.measures.sparse import SparseRuns


@dataclass(frozen=True, eq=False)
class Derivative:
    """The value of a measure at p, and its derivative: see the head of this file.

    Attributes
    ----------
    value : array [run, topic]
        q.
    denominator, slope : arrays [topic], [stair, topic]
        Z and z.
    run, item, weight, numerator_slope : arrays [entry]
        What the runs list within the cutoff, ordered by run, topic and rank: the weight of the rank, and alpha.
    """

    value: Floats
    denominator: Floats
    slope: Floats
    run: Ints
    item: Ints
    weight: Floats
    numerator_slope: Floats

    def phi(self, topic_index: Ints, steps: Floats) -> Floats:
        """Return phi [run, stair, item], over the number of topics: a table for few runs."""
        n_runs, n_topics = self.value.shape
        own = np.zeros((n_runs, topic_index.size))
        own[self.run, self.item] = self.numerator_slope
        along = own[:, None] * steps[:, None]
        across = (self.value[:, None] * self.slope)[..., topic_index]
        return np.asarray((along - across) / self.denominator[topic_index] / n_topics)


def derivative(
    measure: Measure[Ratio], ranks: SparseRuns, topic_index: Ints, n_topics: int, p: Floats, steps: Floats
) -> Derivative:
    """Return value and derivative of the measure at p [stair, item], of every run.

    The denominator is linear between whole numbers of items, so its slope there is a difference of two values. It is
    that of `Ratio`: a topic has at least one item on the lowest stair, because without one N is 0, whatever Z is.
    """
    if measure.binary and steps.tolist() != [1.0]:
        raise ValueError(f"{measure.name} needs labels of one stair of step 1, got steps {steps.tolist()}")
    counts = topic_sums(topic_index, p, n_topics)
    nothing = [np.zeros((n_topics, 1)) for _ in steps]
    pooled = int(np.bincount(topic_index, minlength=1).max(initial=1))
    depth = min(measure.last_rank, max(1, pooled))

    def whole(totals: Floats) -> Floats:
        rows = [row[:, None] for row in totals]
        return measure.kind.denominator(steps, rows, nothing, depth)[0][:, 0]

    slope = np.zeros_like(counts)
    for stair in range(steps.size):
        low, high = counts.copy(), counts.copy()
        low[stair] = np.floor(counts[stair])
        high[stair] = low[stair] + 1
        slope[stair] = whole(high) - whole(low)
    near = np.flatnonzero(ranks.value <= measure.last_rank)
    run, item = ranks.run[near].astype(np.int64), ranks.item[near].astype(np.int64)
    order = np.lexsort((ranks.value[near], topic_index[item], run))
    run, item, rank = run[order], item[order], ranks.value[near][order].astype(np.float64)
    group = run * n_topics + topic_index[item]
    weight = measure.kind.numerator.weights(rank)
    worth = weight * (steps @ p[:, item])
    alpha, terms = weight, worth
    if measure.kind.numerator.has_products:
        above = sums_above(p[0, item], group)
        total = np.bincount(group, worth, ranks.n_runs * n_topics)
        alpha = weight * (1 + above) + total[group] - sums_above(worth, group) - worth
        terms = worth * (1 + above)
    numerator = np.bincount(group, terms, ranks.n_runs * n_topics).reshape(ranks.n_runs, n_topics)
    denominator = whole(counts)
    value = quotient(numerator.astype(np.float64), np.broadcast_to(denominator, numerator.shape))
    return Derivative(value, denominator, slope, run, item, weight, alpha)


def second_order(
    measure: Measure[Ratio], at: Derivative, topic_index: Ints, utility: Floats, count: Floats, own: Floats
) -> Floats:
    """Return b of every run: the second-order term of q around p, as the audit estimates it.

        b = mean over topics of [ d2N/Z - dN dZ/Z^2 + N dZ^2/Z^3 ]

    dN = sum alpha_i e_i, dZ = sum of the items' e in S, d2N = sum over pairs of ranked items of weight e e (AP alone).
    e = u* - p; its square, or that of one item's utility and count, is replaced by an unbiased estimate.

    Parameters
    ----------
    utility, count : arrays [item]
        e of U and of S, 0 where the pseudo-label is p.
    own : array [2, item]
        What is to be added to the products e_U e_S and e_S e_S of an item with itself.
    """
    n_runs, n_topics = at.value.shape
    group = at.run * n_topics + topic_index[at.item]

    def by_run(terms: Floats) -> Floats:
        return np.bincount(group, terms, n_runs * n_topics).reshape(n_runs, n_topics).astype(np.float64)

    d_count, own_square = topic_sums(topic_index, np.stack([count, own[1]]), n_topics)
    crossed = by_run(at.numerator_slope * utility[at.item]) * d_count
    crossed += by_run(at.numerator_slope * own[0, at.item])
    squared = d_count**2 + own_square
    of_topic = (at.value * squared - crossed) / at.denominator**2
    if measure.kind.numerator.has_products:
        above = sums_above(utility[at.item], group)
        of_topic += by_run(at.weight * utility[at.item] * above) / at.denominator
    return np.asarray(of_topic.mean(axis=1))
