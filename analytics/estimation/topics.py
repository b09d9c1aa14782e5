"""The second interval: the topics as a sample of many that could have been asked.

The estimators of a draw say how well a measure is known *for these topics*. Whoever concludes that run A is
better than run B on topics of this kind needs the spread over topics as well, and usually it is the larger
part. The value is the same; the standard error comes from the values of the topics.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import (
    Estimate,
    Estimates,
    Floats,
    Refusal,
    all_refused,
    estimates,
    few_items_warning,
    quantiles95,
    refused_where,
)
from analytics.estimation.targets import TargetWeights, rows_alone

FEW_TOPICS = 10


def over_topics(parts: ArrayLike, sources: Sequence[str] = ("drawing", "topics")) -> Estimate | Refusal:
    """Return the sum of the topics' parts with its t interval for the population of topics.

    Weights hold 1/n_topics, so the n values ``n Z_t`` have the measure as their mean, and ``n Var(Z)`` is the
    variance of that mean. It already holds whatever makes the parts of topics err independently: drawing,
    label noise. Assumption: the topics are an independent sample. For a difference of runs this is the
    paired t. Refused for fewer than 2 topics or parts that are all equal. `sources` are all errors held.

    >>> over_topics([.25, .5, .75]).value
    1.5

    Source: Student (1908); docs/methods/derivations/sampling.md, section 6.
    """
    z = finite("parts", parts)
    if z.ndim != 1:
        raise ValueError(f"parts must be flat, one per topic, got {z.ndim} axes")
    return over_topics_of(rows_alone(1), z[None], sources)[0]


def over_topics_of(
    targets: TargetWeights,
    parts: Floats,
    sources: Sequence[str] = ("drawing", "topics"),
    refusals: Mapping[int, Refusal] | None = None,
) -> Estimates:
    """Return `over_topics` of every target from the runs' parts, [run, topic]; targets refused before stay refused."""
    n_targets, n = len(targets), parts.shape[1]
    if n < 2:
        refusal = Refusal(f"{n} topic says nothing about others; at least 2 are needed", 2 - n)
        return all_refused(n_targets, refusal, but=refusals)
    value, variance, largest = np.zeros((3, n_targets))
    for part, z in targets.blocks(parts):
        value[part], variance[part], largest[part] = (
            z.sum(axis=1),
            n * z.var(axis=1, ddof=1),
            abs(z).max(axis=1),
        )
    # rounding leaves a spread of 1e-17 in parts that are equal
    alike = variance <= (1e-12 * n * largest) ** 2
    same = Refusal("all topics have the same value, so their spread cannot be estimated")
    warning = few_items_warning(n, "topics") if n < FEW_TOPICS else ""
    return estimates(
        value,
        {"topics": variance},
        degrees_of_freedom=n - 1,
        n=np.full(n_targets, n),
        refusals=refused_where(alike, lambda _: same) | dict(refusals or {}),
        sources=sources,
        warning=lambda _: warning,
    )


def never_narrower(
    over: Estimates, standard_error: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return standard error, low and high over topics, none of them narrower than given for these topics.

    A population of topics is no better known than the topics at hand. The spread over topics holds the errors of
    judging as well, but few topics may happen to lie close together: the standard error is at least the one for these
    topics. Student's t over topics may have more degrees of freedom than the interval for these topics: both have the
    same centre, so that the larger half-width gives the interval that holds both.

    Parameters
    ----------
    over : Estimates
        Of `over_topics_of`.
    standard_error, low, high : arrays [target]
        The estimates for these topics.
    """
    error = np.maximum(over.standard_error, standard_error)
    half = quantiles95(over.degrees_of_freedom) * error
    return error, np.minimum(over.value - half, low), np.maximum(over.value + half, high)
