"""How likely the label of a judged item is on the wrong side of relevance, from gold and from the prior.

A guide to what should be judged again, never an estimate: errors of several assessors are taken to be independent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.confusion import shrink
from analytics.estimation.estimate import Floats, Refusal
from analytics.estimation.samples import Labels
from sampling.rejudging import prevalence_by_prior, rates_of_votes, wrong_probability

SIDES = ("not relevant", "relevant")


@dataclass(frozen=True)
class RelevanceErrors:
    """How often relevance is given wrongly: f where the document is not relevant, g where it is.

    Attributes
    ----------
    false_alarm, miss : float
        Of all assessors together.
    false_alarms, misses : arrays [assessor]
        Of each, drawn towards those of all.
    """

    false_alarm: float
    miss: float
    false_alarms: Floats
    misses: Floats


def relevance_errors(counts: ArrayLike, relevant_grade: int) -> RelevanceErrors | Refusal:
    """Return the error rates from counts[assessor, true, given] of gold checks and audits.

    Beta-smoothed: half a label more in each cell for the rates of all, and empirical Bayes for those of each (a
    beta-binomial: `analytics.estimation.confusion.shrink`). A side of relevance without gold: refusal.

    Examples
    --------
    >>> found = relevance_errors([[[8, 1, 1], [1, 4, 0], [0, 0, 5]]], relevant_grade=1)
    >>> round(found.false_alarm, 6), round(found.miss, 6)  # 2.5 / 11 and 1.5 / 11
    (0.227273, 0.136364)
    >>> relevance_errors([[[8, 1, 1], [0, 0, 0], [0, 0, 0]]], relevant_grade=1).reason
    'no gold label of a document that is relevant'
    """
    table = np.asarray(counts, dtype=np.float64)
    edges = [0, relevant_grade]
    if table.ndim != 3 or not 0 < relevant_grade < table.shape[-1]:
        return Refusal("nobody has judged yet", 1)
    binary = np.add.reduceat(np.add.reduceat(table, edges, axis=1), edges, axis=2)
    sizes = binary.sum(axis=(0, 2))
    for side, size in zip(SIDES, sizes.tolist(), strict=True):
        if size <= 0:
            return Refusal(f"no gold label of a document that is {side}", 1)
    shrunk = shrink(binary)
    if isinstance(shrunk, Refusal):
        return shrunk
    wrong = (binary.sum(axis=0)[[0, 1], [1, 0]] + 0.5) / (sizes + 1.0)
    return RelevanceErrors(
        float(wrong[0]), float(wrong[1]), shrunk.matrices[:, 0, 1], shrunk.matrices[:, 1, 0]
    )


def label_error_probability(
    labels: Labels, label: ArrayLike, prior: ArrayLike, errors: RelevanceErrors
) -> Floats:
    """Return by item how likely its label is on the wrong side of relevance, given all its votes and its prior.

    By Bayes' rule, each vote with the rates of who gave it; before the votes an item is relevant with the corrected
    rate of its decile of the prior.

    Parameters
    ----------
    labels
        Every item has one at least.
    label : (n_items,) array
        Grades: what the votes of an item say together.
    prior : (n_items,) array
        The guess of the draw, before anybody judged.

    Examples
    --------
    >>> labels = Labels([0, 0, 1], [0, 1, 0], [1, 0, 0], n_items=2, n_assessors=2, n_grades=2)
    >>> rates = np.array([0.2, 0.2]), np.array([0.1, 0.1])
    >>> label_error_probability(labels, [0, 0], [0.5, 0.5], RelevanceErrors(0.2, 0.1, *rates)).round(6).tolist()
    [0.116883, 0.028571]
    """
    relevant = labels.relevant_grade
    vote = (labels.grade >= relevant).astype(np.int64)
    before = np.asarray(prior, dtype=np.float64)[labels.item]
    prevalence = labels.means(prevalence_by_prior(vote, before, errors.false_alarm, errors.miss))
    given = (np.asarray(label) >= relevant).astype(np.int64)
    rates = rates_of_votes(
        given,
        labels.item,
        vote,
        errors.false_alarms[labels.assessor],
        errors.misses[labels.assessor],
    )
    return wrong_probability(given, *rates, prevalence)
