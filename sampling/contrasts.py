"""How much each item of a frame says about a question, and the sizes of a design that follow.

A question's *comparisons* are the numbers to estimate. An item's *contrast* is how far its utility moves them, by the
weights of a design (`sampling.measures.design_weights`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import numbers, probabilities, run_table
from sampling.designs import average_run_design, mixture, normalise, uniform_design
from sampling.measures.design_weights import Across, DesignWeights
from sampling.measures.families import FloatArray, Measure, weights_of_runs
from sampling.measures.kinds import Linear, topic_sums
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks
from sampling.questions import Design, QuestionRefused
from sampling.sizes import IdenticalSystemsError, distance_from, distance_from_mean

ROUNDING = 1e-12  # of the squares whose difference a squared contrast is: below, it is 0


def squared_contrast(question: str, weights: ArrayLike | SparseRuns) -> FloatArray:
    """Return the mean over the question's comparisons of the squared weight of every item.

    Its root is the contrast: the comparisons' mean variance under a Poisson design is
    ``sum (1 - pi)/pi * squared_contrast * Var(u - f)``. system: w^2. pair: (w_A - w_B)^2. baseline (first row): mean of
    (w_j - w_0)^2. ranking: mean over all pairs, 2/(k-1) sum_j (w_j - mean w)^2. pool: mean of w_j^2.

    Source: Schnabel et al. (2016), Eq 4, 9, 11 and 13; for the sum over pairs docs/methods/derivations/sampling.md,
    section 2.3.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items), rows in the question's order

    Examples
    --------
    >>> squared_contrast("pair", [[1.0, 0.5], [0.5, 0.5]]).tolist()
    [0.25, 0.0]
    """
    rows = run_table("weights", weights)
    n_others = max(rows.n_runs - 1, 1)
    if question == "pair":
        return np.asarray(np.square(rows.row(0) - rows.row(1)))
    if question == "baseline":
        others = rows.rows(range(1, rows.n_runs))
        return np.asarray(distance_from(others, rows.row(0), squared=True) / n_others)
    if question == "ranking":
        return np.asarray(distance_from_mean(rows, squared=True) * (2 / n_others))
    return np.asarray(rows.item_sums(np.square(rows.value)) / rows.n_runs)


def mean_square_total(question: str, totals: ArrayLike) -> float:
    """Return the mean over the question's comparisons of the squared value, from the value of every run.

    >>> mean_square_total("ranking", [1.0, 3.0])
    4.0
    """
    return float(squared_contrast(question, np.asarray(totals, dtype=np.float64)[:, None])[0])


@dataclass(frozen=True)
class Importance:
    """What the runs say about every item of a frame under one question and measure; gains in units of relevant items'.

    Attributes
    ----------
    squared_contrast : array, shape (n_items,)
        Of a relevant item's mean gain: see `squared_contrast`.
    summed_weights : array, shape (n_items,)
        Of the question's runs at the items they list: the naive design's.
    average_run : array, shape (n_items,)
        Mean over all known runs of abs(w)/sum(abs(w)): a distribution.
    grade_contrast : array, shape (n_items,), optional
        Mean over the comparisons of the variance over the relevant grades; None where these count as one.
    """

    squared_contrast: FloatArray
    summed_weights: FloatArray
    average_run: FloatArray
    grade_contrast: FloatArray | None = None

    def variance(self, probability: ArrayLike) -> FloatArray:
        """Return the mean over the comparisons of Var(w u) of every item that is relevant with this probability."""
        p = np.asarray(probability, dtype=np.float64)
        variance = self.squared_contrast * p * (1 - p)
        return variance if self.grade_contrast is None else variance + p * self.grade_contrast

    @property
    def matters(self) -> FloatArray:
        """Return whether the items say anything about the question."""
        return np.asarray(self.variance(0.5) > 0)


def importance(question: str, weights: DesignWeights, rows: Sequence[int]) -> Importance:
    """Return what the runs' weights say about every item.

    Parameters
    ----------
    weights : DesignWeights
        Of all known runs.
    rows : the question's runs, see `sampling.questions.question_rows`

    Raises
    ------
    IdenticalSystemsError
        The runs of the question weigh every item alike: each difference is exactly 0 and there is nothing to judge.
    QuestionRefused
        No run returns anything inside the measure's cutoff.
    """
    own = weights.rows(rows)
    if not own.along.value.size:
        raise QuestionRefused(
            f"no run of the question returns a document inside the cutoff of {weights.measure.name}"
        )
    contrast, of_grades = contrasts(question, own)
    if not contrast.any():
        raise IdenticalSystemsError(
            "the runs rank alike inside the cutoff: every difference is exactly 0, there is nothing to judge"
        )
    return Importance(contrast, own.along.item_sums(own.along.value), average_weights(weights), of_grades)


def contrasts(question: str, own: DesignWeights) -> tuple[FloatArray, FloatArray | None]:
    """Return the squared contrast of every item, and that over relevant grades, of the question's runs in its order.

    Of a ratio the sum over the gains' stairs of one item is c U - d S, so with [cc], [cd] and [dd], the means over the
    comparisons of products of differences, it is ``[cc] - 2 [cd] + [dd]`` at a relevant item's mean gain, and over
    relevant grades ``[cc] Var U - 2 [cd] Cov(U, S) + [dd] Var S``.
    """
    cc = squared_contrast(question, own.along)
    across = own.across
    if across is None:
        return cc, None
    topic = across.topic_index
    dd = squared_contrast(question, across.value)[topic]
    limit = np.sqrt(cc * dd)
    cd = np.clip(_products(question, own.along, across), -limit, limit)
    parts = (
        (np.ones(topic.size), np.ones(topic.size), np.ones(topic.size)),
        (across.gain_variance[topic], across.covariance[topic], across.count_variance[topic]),
    )
    squares = []
    for gain, both, count in parts:
        added = gain * cc + count * dd
        square = added - 2 * both * cd
        squares.append(np.where(square > ROUNDING * added, square, 0.0))
    return squares[0], squares[1]


def _products(question: str, along: SparseRuns, across: Across) -> FloatArray:
    """Return [cd] by item: the mean over the question's comparisons of a difference along times one across."""
    d, n_others = across.value, max(along.n_runs - 1, 1)
    if question in ("pair", "baseline"):
        factor = (d - d[0]) / n_others
        factor[0] = -factor[1:].sum(axis=0)
    elif question == "ranking":
        factor = (d - d.mean(axis=0)) * (2 / n_others)
    else:
        factor = d / along.n_runs
    return along.item_sums(along.value * factor[along.run, across.topic_index[along.item]])


def contrast_among(own: DesignWeights) -> FloatArray:
    """Return the contrast of every item among the question's runs as audits weigh it: of one run abs(w)."""
    question = "system" if own.along.n_runs == 1 else "ranking"
    return np.asarray(np.sqrt(contrasts(question, own)[0]))


def average_weights(weights: DesignWeights) -> FloatArray:
    """Return the mean over runs of abs(w)/sum(abs(w)), a distribution; runs that return nothing are left out."""
    along, across = weights.along, weights.across
    if across is None:
        return average_run_design(along)
    at_entry = across.value[along.run, across.topic_index[along.item]]
    more = np.abs(along.value - at_entry) - at_entry  # than an item of the topic that the run does not list
    n_items = np.bincount(across.topic_index, minlength=across.value.shape[1])
    total = np.bincount(along.run, more, along.n_runs) + across.value @ n_items
    there = total > 0
    share = np.divide(1.0, total, out=np.zeros_like(total), where=there)
    sums = (share @ across.value)[across.topic_index] + along.item_sums(more * share[along.run])
    return normalise(np.maximum(sums, 0.0))


def variances_of_runs(weights: DesignWeights, probability: FloatArray, factor: FloatArray) -> FloatArray:
    """Return sum over the items of factor * Var(w u) of every run; infinite where a factor is and the variance not 0.

    Items are relevant with the probability, independently. The factor of a Poisson draw is (1 - pi)/pi.
    """
    along, across, p = weights.along, weights.across, probability
    is_open = np.isinf(factor) & (p > 0)
    finite = np.where(np.isinf(factor), 0.0, factor)
    doubt = finite * p * (1 - p)
    if across is None:
        of_entries = np.square(along.value) * doubt[along.item]
        found = np.bincount(along.run, of_entries, along.n_runs).astype(np.float64)
        open_entries = (is_open & (p < 1))[along.item]
        return np.where(np.bincount(along.run, open_entries, along.n_runs) > 0, np.inf, found)
    topic = across.topic_index[along.item]
    value, taken, n_topics = along.value, across.value[along.run, topic], across.value.shape[1]
    squared = value * (value - 2 * taken) * doubt[along.item]
    of_grades = across.gain_variance[topic] * value - 2 * across.covariance[topic] * taken
    squared += value * of_grades * (finite * p)[along.item]
    rows = np.stack([doubt, finite * p, is_open.astype(np.float64)])
    of_doubt, of_chance, n_open = topic_sums(across.topic_index, rows, n_topics)
    found = np.bincount(along.run, squared, along.n_runs).astype(np.float64)
    found += np.square(across.value) @ (of_doubt + of_chance * across.count_variance)
    is_out = (across.value[:, n_open > 0] > 0).any(axis=1)
    is_out |= np.bincount(along.run, is_open[along.item], along.n_runs) > 0
    return np.where(is_out, np.inf, np.maximum(found, 0.0))


def run_totals(
    measure: Measure[Linear],
    ranks: ArrayLike | SparseRuns,
    rows: Sequence[int],
    n_topics: int,
    values: ArrayLike,
) -> FloatArray:
    """Return sum of w * value over the items for every run in `rows`: its measure if the values were the gains."""
    weights = weights_of_runs(measure, as_ranks(ranks), n_topics).rows(rows)
    value = np.asarray(values, dtype=np.float64)
    return np.bincount(weights.run, weights.value * value[weights.item], minlength=len(rows)).astype(
        np.float64
    )


# ---- sizes of a design ---------------------------------------------------------------------------


def default_sizes(design: Design, says: Importance, prior: ArrayLike) -> FloatArray:
    """Return the sizes of the default design, summing to 1: contrast times doubt, mixed with other runs and a floor.

    The question's part is contrast * sqrt(p (1 - p)), p the prior probability of relevance: what the difference
    estimator cannot foresee; of graded ratios the root of `Importance.variance`. `design.other_runs_share` goes to the
    average of all known runs, `design.uniform_share` evenly over the pool. The question "pool" is even.

    Source: docs/methods/derivations/sampling.md, sections 3.3 and 3.4.
    """
    if design.question == "pool":
        return uniform_design(says.squared_contrast.size)
    p = probabilities("prior", prior)
    question = normalise(np.sqrt(says.variance(p)))
    others = [says.average_run, uniform_design(question.size)]
    return mixture(question, others, [design.other_runs_share, design.uniform_share])


def single_draw_probability(question: str, method: str, says: Importance, utility: ArrayLike) -> FloatArray:
    """Return Q of one draw with replacement: proportional to utility times contrast ("paper") or summed weights.

    Source: Schnabel et al. (2016), Eq 4, 9, 11, 13 ("paper"); section 7.3 and Table 6 ("naive").
    """
    prior = numbers("utility", utility)
    if method == "paper" and question != "pool":
        return normalise(prior * np.sqrt(says.squared_contrast))
    return normalise(prior * says.summed_weights)
