"""What to judge again: the documents whose label is probably wrong and whose correction would move the answer most.

Source: Carterette and Soboroff (2010), section 4.1, for judging again by inclusion probability; the product of
influence and error probability is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import FloatArray, numbers, probabilities

Mask = NDArray[np.bool_]
TINY = 1e-9
LEAST_LABELS = 10  # in a group of the prior, for a rate of its own


@dataclass(frozen=True)
class SampledTopic:
    """The judged sample of one topic and where the runs rank it.

    Attributes
    ----------
    ranks : (n_runs, n_documents) array
        From 1; infinite where a run does not return the document.
    is_relevant : (n_documents,) array of bool
    inclusion_probability : (n_documents,) array
        Within (0, 1].
    """

    ranks: FloatArray
    is_relevant: Mask
    inclusion_probability: FloatArray

    @classmethod
    def of(cls, ranks: ArrayLike, labels: ArrayLike, inclusion_probability: ArrayLike) -> "SampledTopic":
        """Return the topic; ValueError for ranks below 1, labels that are not 0 or 1, probabilities out of (0, 1]."""
        places = np.asarray(ranks, dtype=np.float64)
        if places.ndim != 2:
            raise ValueError(f"ranks must have 2 axes, got shape {places.shape}")
        refused = places[~(places >= 1)]
        if refused.size:
            raise ValueError(f"ranks must be at least 1, got {refused[0]}")
        given = np.asarray(labels)
        refused = given[~np.isin(given, (0, 1))]
        if refused.size or given.shape != places.shape[1:]:
            raise ValueError(
                f"labels must be {places.shape[1]} times 0 or 1, got {refused[:1] or given.shape}"
            )
        chances = probabilities("inclusion_probability", inclusion_probability, places.shape[1])
        if not chances.min(initial=1) > 0:
            raise ValueError("inclusion_probability must be above 0, got 0")
        return cls(places, given.astype(bool), chances)

    @property
    def weights(self) -> FloatArray:
        """Return x / pi."""
        return np.where(self.is_relevant, 1.0 / self.inclusion_probability, 0.0)


def sampled_average_precision(topic: SampledTopic) -> FloatArray:
    """Return AP of every run, estimated from the sample: N / R.

    R = sum x / pi and N = sum x (1 + A) / (pi rank), A the sum of 1 / pi of relevant documents above. A ratio: not
    unbiased, and it may exceed 1. 0 for a topic without a relevant document.
    Source: Carterette and Soboroff (2010), Eq 1-2, with 1 in place of 1 / pi for the document itself: as printed, a
    single relevant document at rank r gives 1 / (pi r) and not 1 / r.

    Returns
    -------
    (n_runs,) array
    """
    return relevance_sums(topic)[0] / (topic.weights.sum() or 1.0)


def label_influence(topic: SampledTopic) -> FloatArray:
    """Return by how much AP of each run changes where the label of one document is reversed.

    Exact: with B the sum of 1 / (pi rank) of the relevant documents below, adding a document gives
    N' = N + (A + 1) / (pi rank) + B / pi (the same N where the run does not return it) and R' = R + 1 / pi.

    Returns
    -------
    (n_runs, n_documents) array
        AP with the reversed label less AP as judged.
    """
    relevant = topic.weights.sum()
    numerator, above, below = relevance_sums(topic)
    single = 1.0 / topic.inclusion_probability
    sign = np.where(topic.is_relevant, -1.0, 1.0)
    relevant_after = relevant + sign * single
    own = np.where(np.isfinite(topic.ranks), (above + 1.0) / topic.ranks + below, 0.0) * single
    numerator_after = numerator[:, np.newaxis] + sign * own
    is_left = relevant_after > TINY * single  # rounding may leave a little of the last relevant document
    after = np.divide(numerator_after, relevant_after, out=np.zeros(own.shape), where=is_left)
    changes: FloatArray = after - (numerator / relevant if relevant else 0.0 * numerator)[:, np.newaxis]
    return changes


def relevance_sums(topic: SampledTopic) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return N of every run; of run and document the weight of relevant ones above, and of weight over rank below.

    The weight of a relevant document is 1 / pi, that of any other 0.
    """
    ranks, weights = topic.ranks, topic.weights
    order = np.argsort(ranks, axis=1, kind="stable")
    sorted_weights = weights[order]
    gains = np.where(np.isfinite(ranks), weights / ranks, 0.0)
    sorted_gains = np.take_along_axis(gains, order, axis=1)
    above, below = np.empty(ranks.shape), np.empty(ranks.shape)
    np.put_along_axis(above, order, np.cumsum(sorted_weights, axis=1) - sorted_weights, axis=1)
    total = gains.sum(axis=1)
    np.put_along_axis(below, order, total[:, np.newaxis] - np.cumsum(sorted_gains, axis=1), axis=1)
    return (gains * (1.0 + above)).sum(axis=1), above, below


def total_influence(changes: FloatArray) -> FloatArray:
    """Return the sum over runs of the size of the change: what moves the scores."""
    influence: FloatArray = np.abs(changes).sum(axis=0)
    return influence


def ranking_influence(changes: FloatArray) -> FloatArray:
    """Return the root of the sum of squares about the mean over runs: a shift common to all runs reorders nothing."""
    centred = changes - changes.mean(axis=0)
    influence: FloatArray = np.sqrt((centred**2).sum(axis=0))
    return influence


def wrong_probability(
    labels: ArrayLike, false_alarm: ArrayLike, miss: ArrayLike, prevalence: ArrayLike
) -> FloatArray:
    """Return the probability that a label is wrong, by Bayes' rule.

    P(wrong | 1) = f (1 - rho) / (f (1 - rho) + (1 - g) rho), P(wrong | 0) = g rho / (g rho + (1 - f)(1 - rho)).

    Parameters
    ----------
    labels
        0 or 1.
    false_alarm, miss
        f and g: the rates of 1 where the truth is 0, and of 0 where it is 1; one for all labels, or one a label. See
        `rates_of_votes` for a label of several votes.
    prevalence
        rho: the probability that the document is relevant, before it was judged; see `prevalence_by_prior`.
    """
    given = np.asarray(labels)
    refused = given[~np.isin(given, (0, 1))]
    if refused.size:
        raise ValueError(f"labels must be 0 or 1, got {refused[0]}")
    f, g = (
        np.broadcast_to(probabilities(name, np.atleast_1d(np.asarray(value, dtype=np.float64))), given.shape)
        for name, value in (("false_alarm", false_alarm), ("miss", miss))
    )
    rho = np.broadcast_to(np.asarray(prevalence, dtype=np.float64), given.shape)
    wrong = np.where(given == 1, f * (1 - rho), g * rho)
    right = np.where(given == 1, (1 - g) * rho, (1 - f) * (1 - rho))
    return np.asarray(np.divide(wrong, wrong + right, out=np.zeros(given.shape), where=wrong + right > 0))


def rates_of_votes(
    labels: ArrayLike, item: ArrayLike, vote: ArrayLike, false_alarm: ArrayLike, miss: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return by item f and g of its label, from all its votes: what `wrong_probability` takes.

    With L1 and L0 the probabilities of the item's votes if it is relevant and if not (votes are independent given the
    truth), both over the larger of the two: the label 1 has f = L0 and 1 - g = L1, the label 0 has g = L1 and
    1 - f = L0. Of a single vote these are its own rates, up to a factor that cancels.

    Parameters
    ----------
    labels : (n_items,) array
        0 or 1: what the votes say together.
    item, vote, false_alarm, miss : (n_votes,) arrays
        Of each vote its item, counted from 0, whether it is 1, and the rates of who gave it.

    Examples
    --------
    >>> f, g = rates_of_votes([1], [0, 0, 0], [1, 1, 0], [0.2] * 3, [0.1] * 3)
    >>> wrong_probability([1], f, g, 0.5).round(6).tolist()  # .2^2 .8 / (.2^2 .8 + .9^2 .1)
    [0.283186]
    """
    label, place = np.asarray(labels) == 1, np.asarray(item, dtype=np.int64)
    is_one = np.asarray(vote) == 1
    f, g = (
        np.clip(probabilities(name, rate, place.size), TINY, 1 - TINY)
        for name, rate in (("false_alarm", false_alarm), ("miss", miss))
    )
    if_relevant = np.bincount(place, np.log(np.where(is_one, 1 - g, g)), label.size)
    if_not = np.bincount(place, np.log(np.where(is_one, f, 1 - f)), label.size)
    largest = np.maximum(if_relevant, if_not)
    relevant, other = np.exp(if_relevant - largest), np.exp(if_not - largest)
    return np.where(label, other, 1 - other), np.where(label, 1 - relevant, relevant)


def prevalence_by_prior(
    labels: ArrayLike, prior: ArrayLike, false_alarm: float, miss: float, n_groups: int = 10
) -> FloatArray:
    """Return each document's probability of relevance: the corrected rate of its decile of the prior.

    The rate of relevant labels in a group is f + (1 - f - g) rho, so rho = (rate - f) / (1 - f - g), clipped to [0, 1].
    Documents of one prior fall into one group. Where f + g is 1 or more a label tells nothing: 1/2.
    """
    given = np.asarray(labels, dtype=np.float64)
    scores = numbers("prior", prior, given.size, least=-1e100)
    signal = 1.0 - false_alarm - miss
    if signal <= 0:
        return np.full(given.size, 0.5)
    bounds = np.quantile(scores, np.linspace(0, 1, n_groups + 1)[1:-1])
    group = np.searchsorted(bounds, scores, side="right")
    sizes = np.bincount(group, minlength=n_groups)
    relevant = np.bincount(group, weights=given, minlength=n_groups)
    # A group too small for a rate of its own has that of all.
    overall = given.mean() if given.size else 0.0
    rates = np.where(sizes >= LEAST_LABELS, relevant / np.maximum(sizes, 1), overall)
    prevalence: FloatArray = np.clip((rates - false_alarm) / signal, 0.0, 1.0)[group]
    return prevalence


def shortest_queue(
    priority: ArrayLike, wrong: ArrayLike, *, least: float = 0.25, share: float = 0.5
) -> list[int]:
    """Return the documents worth judging again, most urgent first.

    Of those whose label is wrong with probability `least` or more, by falling priority, as many as make up `share` of
    the sum of their priorities; one with no priority is never taken.
    """
    values, chances = np.asarray(priority, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    candidates = np.flatnonzero((chances >= least) & (values > 0))
    order = candidates[np.argsort(-values[candidates], kind="stable")]
    if not order.size:
        return []
    before = np.cumsum(values[order]) - values[order]
    queue: Sequence[int] = order[before < share * values[order].sum()].tolist()
    return list(queue)
