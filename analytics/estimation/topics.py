"""The second interval: the topics as a sample of many that could have been asked.

The estimators of a draw say how well a measure is known *for these topics*. Whoever concludes that run A is
better than run B on topics of this kind needs the spread over topics as well, and usually it is the larger
part. The value is the same; the standard error comes from the values of the topics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

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
FEWEST_FOR_T = 25  # topics below which, or
MOST_SKEWED = 2.0  # skewness beyond which, t over topics is said to be approximate
LARGER_P = "p is the one for these topics, which is larger than that of t"


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


@dataclass(frozen=True, eq=False)
class LikeThese:
    """What is known of topics like these, by target: of two intervals with the same centre, the wider one.

    Attributes
    ----------
    standard_error, low, high, degrees_of_freedom : arrays [target]
        Of the side that is wider; infinite degrees of freedom are the normal distribution.
    is_of_topics : bool array [target]
        The spread over topics is the wider side; elsewhere the judging limits what is known.
    """

    standard_error: Floats
    low: Floats
    high: Floats
    degrees_of_freedom: Floats
    is_of_topics: NDArray[np.bool_]


def never_narrower(
    over: Estimates, standard_error: Floats, low: Floats, high: Floats, degrees_of_freedom: Floats
) -> LikeThese:
    """Return the interval over topics, at least as wide as the one for these topics: ``h = max(t0 S/sqrt(n), h_F)``.

    A population of topics is no better known than the topics at hand. The values z_t of topics hold the errors of
    judging as well, so that S^2/n is the whole variance and adding V_F would count the judges twice; but few topics may
    happen to lie close together, or be judged from few labels.

    Parameters
    ----------
    over : Estimates
        Of `over_topics_of`.
    standard_error, low, high, degrees_of_freedom : arrays [target]
        The estimates for these topics; infinite degrees of freedom are the normal distribution.
    """
    half = quantiles95(over.degrees_of_freedom) * over.standard_error
    is_of_topics = half >= (high - low) / 2
    return LikeThese(
        np.where(is_of_topics, over.standard_error, standard_error),
        np.minimum(over.value - half, low),
        np.maximum(over.value + half, high),
        np.where(is_of_topics, over.degrees_of_freedom, degrees_of_freedom),
        is_of_topics,
    )


def p_like_these(over: Estimates, p_these: Floats) -> Floats:
    """Return the two-sided p over topics, by target: ``max(p of t = d sqrt(n)/S with n - 1, p for these topics)``.

    Unknown (NaN) where there is none for these topics. Assumption: the topics are an independent sample.
    """
    known = over.standard_error > 0
    statistic = np.divide(over.value, over.standard_error, out=np.zeros(len(over)), where=known)
    student = 2 * scipy.special.stdtr(over.degrees_of_freedom, -np.abs(statistic))
    return np.asarray(np.where(np.isnan(p_these), np.nan, np.maximum(student, p_these)))


def effect_size(difference: float, topic_variance: float, n: int, variance: float) -> float | Refusal:
    """Return the standardised mean difference, ``d / sqrt(S^2 - n V_F)``: over the spread of topics, without judging.

    S^2 is the variance of the topics' values with their errors of judging, V_F the variance of d for these topics.
    Refused where judging explains all of the spread.

    >>> round(effect_size(0.822193, 2.372739**2, 45, 0.002395977), 6)
    0.349883
    """
    between = topic_variance - n * variance
    if between <= 0:
        return Refusal("the errors of judging explain all of the spread over topics")
    return float(difference / np.sqrt(between))


def between_topics(topic_variance: float, n: int, variance: float) -> float:
    """Return the part "topics" of the variance for topics like these: ``max(0, S^2/n - V_F)``.

    >>> round(between_topics(2.372739**2, 45, 0.002395977), 6)
    0.122713
    """
    return max(0.0, topic_variance / n - variance)


def skewness(values: Floats) -> float:
    """Return the skewness of the topics' values, 0 where all are equal.

    >>> round(skewness(np.array([0.0, 0.0, 0.0, 1.0])), 6)
    1.154701
    """
    away = values - values.mean()
    spread = float((away**2).mean())
    return float((away**3).mean() / spread**1.5) if spread > 0 else 0.0


def t_warning(n: int, skew: float) -> str:
    """Return a warning where t over topics is approximate: few topics, or skewed values; else an empty string.

    >>> t_warning(24, 0.0)
    'only 24 topics: t is approximate'
    """
    if n < FEWEST_FOR_T:
        return f"only {n} topics: t is approximate"
    if abs(skew) > MOST_SKEWED:
        return f"the differences of topics are skewed ({skew:+.1f}): t is approximate"
    return ""
