"""Tests that reject honest assessors: those of Carterette and Soboroff (2010), section 2, and two plain ones."""

import math

import numpy as np
from scipy.stats import binom, norm

from analytics.screening.log import ScreeningLog
from sampling.arrays import FloatArray

STANDARD_DEVIATIONS = 9.0  # to either side, of what is integrated over
STEPS = 4001


def two_proportion_z(first: float, n_first: float, second: float, n_second: float) -> float:
    """Return z of the difference of two proportions with a pooled variance; 0 where all or none are successes.

    >>> round(two_proportion_z(44, 200, 150, 800), 6)
    1.039621
    """
    pooled = (first + second) / (n_first + n_second)
    variance = pooled * (1 - pooled) * (1 / n_first + 1 / n_second)
    return (first / n_first - second / n_second) / math.sqrt(variance) if variance > 0 else 0.0


def pooled_serial(log: ScreeningLog) -> FloatArray:
    """Return p, one for each assessor, of the paper's test that labels depend on the label before.

    Relevant after a relevant document against relevant after another one, transitions of all topics together. Topics
    differ in prevalence, so the two proportions differ for whoever judges rightly.

    Returns
    -------
    (n_assessors,) array
        Two-sided; NaN without transitions of both kinds.
    """
    follows = np.diff(log.session) == 0
    before, after, owner = log.relevant[:-1][follows], log.relevant[1:][follows], log.assessor[1:][follows]
    p = np.full(log.n_assessors, np.nan)
    n = np.bincount(2 * owner + before, minlength=2 * log.n_assessors).reshape(-1, 2)
    relevant = np.bincount(2 * owner + before, after, minlength=2 * log.n_assessors).reshape(-1, 2)
    for one in np.flatnonzero(n.min(axis=1) > 0).tolist():
        z = two_proportion_z(relevant[one, 1], n[one, 1], relevant[one, 0], n[one, 0])
        p[one] = 2 * norm.sf(abs(z))
    return p


def unbroken_runs(log: ScreeningLog) -> FloatArray:
    """Return p, one for each assessor, of Wald and Wolfowitz's runs test over whole topics, without blocks.

    The normal approximation, number of changes less its expectation, summed over topics. Two-sided.
    """
    n, r = log.sizes.astype(np.float64), log.n_relevant.astype(np.float64)
    changed = (np.diff(log.session) == 0) & (np.diff(log.relevant) != 0)
    changes = np.bincount(log.assessor[1:][changed], minlength=log.n_assessors)
    products = 2 * r * (n - r)
    mean = products / n
    variance = products * (products - n) / (n**2 * np.maximum(n - 1, 1))
    spread = np.sqrt(log.per_assessor(np.maximum(variance, 0)))
    z = np.divide(
        changes - log.per_assessor(mean), spread, out=np.full(spread.size, np.nan), where=spread > 0
    )
    return np.asarray(2 * norm.sf(np.abs(z)))


def zero_drift(log: ScreeningLog) -> FloatArray:
    """Return p, one for each assessor, of the hypothesis that labels have no trend over position. Two-sided."""
    n = log.sizes.astype(np.float64)
    share = log.n_relevant / n
    place = log.position - (n[log.session] - 1) / 2
    trend = log.per_assessor(log.per_session(place * (log.relevant - share[log.session])))
    variance = log.per_assessor(n * (n**2 - 1) / 12 * (n * share * (1 - share)) / np.maximum(n - 1, 1))
    z = np.divide(trend, np.sqrt(variance), out=np.full(trend.size, np.nan), where=variance > 0)
    return np.asarray(2 * norm.sf(np.abs(z)))


def faster_probability(least: int, n_documents: int, topic_effect: float) -> float:
    """Return the probability that so many documents of a topic or more are judged faster than expected.

    `topic_effect` is the standard deviation of the topics' effects on the logarithm of the seconds, in standard
    deviations of what is left from document to document. 0 is the paper's reckoning, binomial with 1/2.

    >>> [round(faster_probability(29, 32, effect), 8) for effect in (0, 0.333, 0.5)]
    [1.28e-06, 0.00247605, 0.01706604]
    """
    if topic_effect == 0:
        return float(binom.sf(least - 1, n_documents, 0.5))
    z = np.linspace(-STANDARD_DEVIATIONS, STANDARD_DEVIATIONS, STEPS)
    density = norm.pdf(z) * (z[1] - z[0])
    return float((density * binom.sf(least - 1, n_documents, norm.cdf(topic_effect * z))).sum())
