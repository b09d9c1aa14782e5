"""Whole topics: which topics are judged, each completely, so that every measure of a taken topic is known.

A topic is taken with a chance of its own, independently of the others: the larger its share of the traffic, the less
sure its value, and the fewer documents it costs, the more likely. Each topic has one permanent random number, so that
the topics of a smaller budget are among those of a larger one.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import MAX_VALUE, numbers, probabilities
from sampling.draws import permanent_random_numbers
from sampling.measures.families import FloatArray

LEAST_SHARE = 1e-12  # of the traffic: chances of smaller ones are lost in the rounding of the larger ones


def topic_probabilities(
    share: ArrayLike,
    spread: ArrayLike,
    cost: ArrayLike,
    budget: float,
    earlier: ArrayLike | None = None,
) -> FloatArray:
    """Return rho, the chance of every topic to be taken: ``max(earlier, min(1, c omega s / sqrt(cost)))``.

    c is such that ``sum rho cost`` is the budget. Among all chances that cost as much these make the variance
    ``sum (1 - rho) (omega s)^2 / rho`` least (Neyman's allocation with costs). With one permanent random number a topic
    the topics taken with a larger budget contain those taken before. Nothing is added where the earlier chances cost
    the budget already, and every chance is 1 where the budget pays for all topics.

    Source: Cochran (1977), section 5.5, for costs that differ; Brewer, Early and Joyce (1972) for permanent numbers.

    Parameters
    ----------
    share : array, shape (n_topics,)
        omega, each topic's share of the traffic; only their proportions matter.
    spread : array, shape (n_topics,)
        s, the predicted standard deviation of the topic's value around its prediction.
    cost : array, shape (n_topics,)
        Documents that have to be judged where the topic is taken.
    budget : float
        Documents to be judged in expectation, those of earlier batches included.
    earlier : array, shape (n_topics,), optional
        The chances that earlier batches gave; none where left out.

    Raises
    ------
    ValueError
        A share, spread or cost that is 0, negative or not finite; a budget that is not positive; earlier chances
        outside [0, 1]; arrays of different lengths.

    Examples
    --------
    >>> topic_probabilities([1, 1], [0.5, 0.5], [10, 40], 30).round(6).tolist()
    [1.0, 0.5]
    """
    omega = positive("share", share)
    costs = positive("cost", cost, omega.size)
    size = omega * positive("spread", spread, omega.size) / np.sqrt(costs)
    positive("size", size)  # products of what is finite and positive may still be neither
    before = np.zeros(omega.size) if earlier is None else probabilities("earlier", earlier, omega.size)
    if not 0 < budget < np.inf:
        raise ValueError(f"budget must be positive and finite, got {budget}")
    if budget <= costs @ before:
        return before
    if budget >= costs.sum():
        return np.ones(omega.size)
    size = size / size.max()
    # The cost grows with c in straight pieces: a topic joins where c size passes its earlier chance, and ends at 1.
    ends = np.concatenate([before, np.ones(omega.size)]) / np.tile(size, 2)
    slopes = np.concatenate([costs * size, -costs * size])
    order = np.argsort(ends, kind="stable")
    at, slope = ends[order], np.cumsum(slopes[order])
    spent = costs @ before + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(at))])
    last = int(np.searchsorted(spent, budget, side="right")) - 1
    scale = at[last] + (budget - spent[last]) / slope[last] if slope[last] > 0 else at[last]
    return np.asarray(np.maximum(before, np.minimum(1.0, scale * size)))


def positive(name: str, values: ArrayLike, n_topics: int | None = None) -> FloatArray:
    """Return the values as floats; ValueError unless all are finite and above 0."""
    array = numbers(name, values, n_topics, least=-MAX_VALUE)
    if (array <= 0).any():
        raise ValueError(f"{name} must be positive, got {array[array <= 0][0]}")
    return array


def traffic_shares(topic_ids: Sequence[str], weights: Mapping[str, float]) -> FloatArray:
    """Return omega of the topics, in their order, summing to 1; equal where no topic has a weight.

    Raises
    ------
    ValueError
        Weights of unknown topics, of some topics only, or that are 0, negative or not finite; a topic with less than
        1e-12 of the traffic.

    Examples
    --------
    >>> traffic_shares(["1", "2"], {"2": 3, "1": 1}).tolist(), traffic_shares(["1", "2"], {}).tolist()
    ([0.25, 0.75], [0.5, 0.5])
    """
    unknown = sorted(set(weights).difference(topic_ids))
    if unknown:
        raise ValueError(f"weights of unknown topics: {len(unknown)}, for example {unknown[0]!r}")
    if not weights:
        return np.full(len(topic_ids), 1 / len(topic_ids))
    missing = [topic_id for topic_id in topic_ids if topic_id not in weights]
    if missing:
        raise ValueError(
            f"{len(missing)} topics have no weight, for example {missing[0]!r}: give all or none"
        )
    weight = positive("weight", [weights[topic_id] for topic_id in topic_ids])
    share = np.asarray(weight / weight.sum())
    least = int(share.argmin())
    if share[least] < LEAST_SHARE:
        raise ValueError(
            f"the weights of the topics are too far apart: {topic_ids[least]!r} has the weight {weight[least]:g}, less "
            f"than {LEAST_SHARE:g} of all together"
        )
    return share


def topic_numbers(topic_ids: Iterable[str], seed: int) -> FloatArray:
    """Return the permanent random number of every topic, a function of its id and the seed alone.

    A topic is taken where the number is below its chance.
    """
    names = list(topic_ids)
    return permanent_random_numbers(names, [""] * len(names), seed, purpose="topics")
