"""The second interval: the topics as a sample of many that could have been asked.

The estimators of a draw say how well a measure is known *for these topics*. Whoever concludes that run A is
better than run B on topics of this kind needs the spread over topics as well, and usually it is the larger
part. The value is the same; the standard error comes from the values of the topics.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimators import (
    FEWEST_ITEMS,
    Estimate,
    Floats,
    Refusal,
    estimate,
    few_items_warning,
    finite,
    probabilities,
    too_few,
    weight_rows,
)
from analytics.labels import integers

FEW_TOPICS = 10


def topic_parts(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    topic_index: ArrayLike,
    n_topics: int,
    prior: ArrayLike | None = None,
    prior_total_by_topic: ArrayLike | None = None,
) -> Floats:
    """Return each topic's part of the estimate, [target, topic]: its known ``sum f w`` plus ``sum (u-f) w/pi``.

    Rows sum to the difference (or HT) estimate. A topic without any drawn item has its known part, or 0. The
    arrays hold the drawn items, except `prior_total_by_topic[target, topic]`.
    """
    rows = weight_rows(weights)
    n_targets, n_items = rows.shape
    if n_topics < 1:
        raise ValueError(f"n_topics must be at least 1, got {n_topics}")
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    if topic.size != n_items:
        raise ValueError(f"topic_index must have length {n_items}, got {topic.size}")
    u = finite("utility", utility, (n_items,))
    pi = probabilities("inclusion_probability", inclusion_probability, n_items)
    if (prior is None) != (prior_total_by_topic is None):
        raise ValueError("prior and prior_total_by_topic belong together, got only one of them")
    f = np.zeros(n_items) if prior is None else finite("prior", prior, (n_items,))
    parts = np.zeros((n_targets, n_topics))
    if prior_total_by_topic is not None:
        known = np.atleast_2d(finite("prior_total_by_topic", prior_total_by_topic))
        parts += finite("prior_total_by_topic", known, parts.shape)

    for target, w in enumerate(rows):
        parts[target] += np.bincount(topic, w * (u - f) / pi, n_topics)
    return parts


def over_topics(parts: ArrayLike, sources: Sequence[str] = ("drawing", "topics")) -> Estimate | Refusal:
    """Return the sum of the topics' parts with its t interval for the population of topics.

    Weights hold 1/n_topics, so the n values ``n Z_t`` have the measure as their mean, and ``n Var(Z)`` is the
    variance of that mean. It already holds whatever makes the parts of topics err independently: drawing,
    label noise. Assumption: the topics are an independent sample. For a difference of runs this is the
    paired t. Refused for fewer than 2 topics or parts that are all equal. `sources` are all errors held.

    >>> over_topics([.25, .5, .75]).value
    1.5

    Source: Student (1908); methods/sampling.md, section 1 (population of queries).
    """
    z = finite("parts", parts)
    if z.ndim != 1:
        raise ValueError(f"parts must be flat, one per topic, got {z.ndim} axes")
    if z.size < 2:
        return Refusal(f"{z.size} topic says nothing about others; at least 2 are needed", 2 - z.size)
    variance = float(z.size * z.var(ddof=1))
    # rounding leaves a spread of 1e-17 in parts that are equal
    if variance <= (1e-12 * z.size * float(np.abs(z).max())) ** 2:
        return Refusal("all topics have the same value, so their spread cannot be estimated")
    return estimate(
        float(z.sum()),
        variance,
        degrees_of_freedom=z.size - 1,
        n=z.size,
        sources=sources,
        components=(("topics", variance),),
        warning=few_items_warning(z.size, "topics") if z.size < FEW_TOPICS else "",
    )


def population_of_topics(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    topic_index: ArrayLike,
    n_topics: int,
    prior: ArrayLike | None = None,
    prior_total_by_topic: ArrayLike | None = None,
    noisy_labels: bool = False,
    fewest: int = FEWEST_ITEMS,
) -> list[Estimate | Refusal]:
    """Return the difference (or HT) estimate of every target with its interval for the population of topics.

    The value is that of `analytics.estimators.difference_estimator`; arguments as in `topic_parts`, the
    interval as in `over_topics`. Refused as there, and below `fewest` judged items with weight.
    """
    rows = weight_rows(weights)
    parts = topic_parts(
        rows,
        utility,
        inclusion_probability,
        topic_index=topic_index,
        n_topics=n_topics,
        prior=prior,
        prior_total_by_topic=prior_total_by_topic,
    )
    sources = ("drawing", "label noise", "topics") if noisy_labels else ("drawing", "topics")
    results: list[Estimate | Refusal] = []
    for w, z in zip(rows, parts, strict=True):
        used = int(np.count_nonzero(w))
        results.append(too_few(used, fewest) if used < fewest else over_topics(z, sources))
    return results
