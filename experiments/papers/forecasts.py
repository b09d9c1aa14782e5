"""Variances of one design before anything is judged: exact for known utilities, forecasts under a prior."""

import numpy as np
from numpy.typing import ArrayLike

from experiments.papers.sizes import require_support
from sampling.arrays import MAX_VALUE, distribution, numbers, probabilities
from sampling.forecasts import NORMAL_97_5, draws_for_distinct
from sampling.measures.families import FloatArray


def design_variance(q: ArrayLike, utility: ArrayLike, weights: ArrayLike) -> float:
    """Return n * Sigma(Q), the exact variance of one draw's u g/Q: divided by n it is the variance of the
    mean of n draws.

    n Sigma = sum of u^2 g^2/Q - (sum of u g)^2, for known utilities u (labels without noise).

    Source: Schnabel et al. (2016), Eq 8, in unnormalised weights.

    Parameters
    ----------
    q : array, shape (n_items,)
        A distribution.
    utility : array, shape (n_items,)
        True (or assumed) utility, not negative.
    weights : array, shape (n_items,)
        w of one run, or the difference g of two; any sign.

    Raises
    ------
    UnsupportedWeightError
        Q is 0 where u g is not: the variance would be infinite in the limit and the estimate biased.
    """
    true = numbers("utility", utility)
    return expected_design_variance(q, true, np.square(true), weights)


def expected_design_variance(
    q: ArrayLike, mean: ArrayLike, second_moment: ArrayLike, weights: ArrayLike
) -> float:
    """Return n * Sigma(Q) when an item's label c has the given mean and second moment: sum E[c^2] g^2/Q -
    (sum E[c] g)^2.

    For binary relevance of probability p both moments are p. For corrected labels of noisy assessors the
    second moment is `experiments.papers.sizes.corrected_second_moments`.

    Raises
    ------
    UnsupportedWeightError
        Q is 0 where the second moment and the weight are not.
    """
    probability = distribution("q", q)
    moment = numbers("second_moment", second_moment, probability.size)
    centre = numbers("mean", mean, probability.size, ndim=None, least=-MAX_VALUE)
    weight = numbers("weights", weights, probability.size, ndim=None, least=-MAX_VALUE)
    require_support(probability, np.where(moment > 0.0, weight, 0.0))
    drawn = probability > 0.0
    expected_square = np.square(weight[drawn]) / probability[drawn] * moment[drawn]
    return float(max(expected_square.sum() - (centre * weight).sum() ** 2, 0.0))


def poisson_variance(
    inclusion_probability: ArrayLike, weights: ArrayLike, second_moment: ArrayLike
) -> FloatArray:
    """Return sum of (1 - pi)/pi * g^2 * E[e^2], the variance of a Horvitz-Thompson or difference estimate
    under Poisson.

    Exact for fixed, known e: e = u for Horvitz-Thompson, e = u - prediction for the difference estimator.
    Under a prior for E[e^2] it is a forecast.

    Parameters
    ----------
    inclusion_probability : array, shape (n_items,)
    weights : array, shape (..., n_items)
        One target per row, any sign.
    second_moment : array, shape (n_items,)

    Returns
    -------
    array, shape (...,)
        In the measure's unit, squared.

    Raises
    ------
    UnsupportedWeightError
        pi is 0 where weight and second moment are not.
    """
    pi = probabilities("inclusion_probability", inclusion_probability)
    weight = numbers("weights", weights, pi.size, ndim=None, least=-MAX_VALUE)
    moment = numbers("second_moment", second_moment, pi.size)
    require_support(pi, np.where(moment > 0.0, weight, 0.0))
    drawn = pi > 0.0
    odds_against = (1.0 - pi[drawn]) / pi[drawn]
    return np.asarray(
        (odds_against * np.square(weight[..., drawn]) * moment[drawn]).sum(axis=-1), dtype=np.float64
    )


def forecast_half_width(
    inclusion_probability: ArrayLike, weights: ArrayLike, variance: ArrayLike
) -> FloatArray:
    """Return 1.96 * sqrt(sum of (1 - pi)/pi g^2 var): half the 95 % confidence interval expected before anything is
    judged.

    Covers the error of judging a sample of these topics' pools, not the choice of topics; as good as the
    prior for var.

    Parameters
    ----------
    variance : array, shape (n_items,)
        Variance of an item's utility around its prediction, p (1 - p) for binary relevance.

    Raises
    ------
    UnsupportedWeightError
        pi is 0 where the weight is not, whatever the variance: a prior of 0 makes no sample unbiased.
    """
    require_support(probabilities("inclusion_probability", inclusion_probability), weights)
    return np.asarray(NORMAL_97_5 * np.sqrt(poisson_variance(inclusion_probability, weights, variance)))


def forecast_naive_half_width(
    q: ArrayLike, weights: ArrayLike, mean: ArrayLike, second_moment: ArrayLike, distinct: float
) -> float:
    """Return half the 95 % confidence interval expected from draws with replacement that cost `distinct` different
    judgments.

    For `naive_design` next to `forecast_half_width`: the ratio of their squares says how many times more
    judgments the naive design needs. Labels may be reused without harm only if they are free of noise.

    Raises
    ------
    ValueError
        As `expected_design_variance` and `draws_for_distinct`.
    """
    variance = expected_design_variance(q, mean, second_moment, weights)
    return float(NORMAL_97_5 * np.sqrt(variance / draws_for_distinct(q, distinct)))
