"""Designs: the rule that gives every item of a frame its probability. Nothing here is random.

Two families. *With replacement* (Schnabel et al. 2016): a distribution Q over the items, sum Q = 1, from
which single draws are taken. *Without replacement* (the default): inclusion probabilities pi, sum pi = the
expected number of judgments, from the sizes of sampling/sizes.py.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from sampling.measures import FloatArray
from sampling.sizes import (
    as_distribution,
    as_finite,
    as_nonnegative,
    as_probabilities,
    baseline_contrast,
    pair_contrast,
    ranking_contrast,
    require_same_items,
    require_support,
)

NORMAL_97_5 = 1.959963984540054


# ---- with replacement: a distribution over the items ---------------------------------------------


def normalised(sizes: ArrayLike) -> FloatArray:
    """Return sizes/sum(sizes), a distribution; ValueError when no size is positive.

    Examples
    --------
    >>> normalised([1, 3]).tolist()
    [0.25, 0.75]
    """
    array = as_nonnegative("sizes", sizes, 1)
    if not np.any(array > 0.0):
        raise ValueError(
            "at least 1 size must be positive, got 0: the rankings are empty or the utilities all 0"
        )
    scaled = array / array.max()
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def _proportional_to(contrast: FloatArray, utility: ArrayLike) -> FloatArray:
    guess = as_nonnegative("utility", utility, 1)
    require_same_items("utility", guess, contrast.size)
    return normalised(guess * contrast)


def uniform_design(n_items: int) -> FloatArray:
    """Return 1/n_items for every item of the frame; ValueError when the frame is empty."""
    if n_items < 1:
        raise ValueError(f"n_items must be at least 1, got {n_items}")
    return np.full(n_items, 1.0 / n_items)


def naive_design(weights: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * sum of the runs' weights: the heuristic that optimal designs are
    shown against.

    It spends judgments on documents that all runs rank alike. For a comparison with a baseline pass the
    baseline as one of the rows: left out, documents that only it returns can never be drawn.

    Source: Schnabel et al. (2016), section 7.3 and Table 6, after Yilmaz et al. (2008) and multiple
    importance sampling.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items)
    utility : array, shape (n_items,)
    """
    return _proportional_to(as_nonnegative("weights", weights, 2).sum(axis=0), utility)


def single_design(weights: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * w: least variance for one run's score, if the utility guess is
    right.

    Source: Schnabel et al. (2016), Eq 4. For a guessed probability p of binary relevance the optimum takes
    sqrt(p) as utility, in general the root of the second moment; the paper plugs in p.

    Raises
    ------
    ValueError
        Negative or not finite input, or nothing to draw (an empty run).
    """
    return _proportional_to(as_nonnegative("weights", weights, 1), utility)


def pair_design(weights_a: ArrayLike, weights_b: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * abs(w_a - w_b): least variance for the difference of two runs.

    Source: Schnabel et al. (2016), Eq 9. Zero where the runs agree: see `require_support` before any reuse.

    Examples
    --------
    >>> pair_design([1.0, 0.5, 0.0], [1.0, 0.0, 0.5], [2.0, 3.0, 1.0]).tolist()
    [0.0, 0.75, 0.25]
    """
    return _proportional_to(pair_contrast(weights_a, weights_b), utility)


def baseline_design(candidates: ArrayLike, baseline: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * sqrt(sum (w_j - w_0)^2): least summed variance of all candidates'
    differences.

    Source: Schnabel et al. (2016), Eq 11.
    """
    return _proportional_to(baseline_contrast(candidates, baseline), utility)


def ranking_design(weights: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * sqrt(sum (w_j - mean w)^2): least summed variance of all pairwise
    differences.

    Source: Schnabel et al. (2016), Eq 13.
    """
    return _proportional_to(ranking_contrast(weights), utility)


def average_run_design(weights: ArrayLike) -> FloatArray:
    """Return the mean over runs of w_j/sum(w_j): mixed in at 10 to 20 % it keeps judgments useful for the
    other known runs.

    A run that returns nothing has no distribution and is left out of the mean.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items)

    Raises
    ------
    ValueError
        Every run is empty.
    """
    rows = as_nonnegative("weights", weights, 2)
    rows = rows[rows.max(axis=1) > 0.0]
    if rows.shape[0] == 0:
        raise ValueError("at least 1 run must return an item of the frame, got 0")
    scaled = rows / rows.max(axis=1, keepdims=True)
    return np.asarray((scaled / scaled.sum(axis=1, keepdims=True)).mean(axis=0), dtype=np.float64)


def mixture(design: ArrayLike, others: Sequence[ArrayLike], shares: Sequence[float]) -> FloatArray:
    """Return (1 - sum of shares) * design + sum of share_j * other_j, each a distribution over the same
    items.

    A share of `uniform_design` puts a floor under every item of the pool; a share of `average_run_design`
    serves reuse. Shares are parts of all draws, so their meaning does not depend on the size of the pool.

    Raises
    ------
    ValueError
        Not one share per other design, a share outside [0, 1), shares that sum to 1 or more, or a part that
        is not a distribution over the same items.

    Examples
    --------
    >>> mixture([1.0, 0.0], [uniform_design(2)], [0.5]).tolist()
    [0.75, 0.25]
    """
    base = as_distribution("design", design)
    if len(others) != len(shares):
        raise ValueError(
            f"mixture needs 1 share per other design, got {len(others)} designs and {len(shares)} shares"
        )
    if not all(0.0 <= share < 1.0 for share in shares):
        raise ValueError(f"shares must be within [0, 1), got {list(shares)}")
    if sum(shares) >= 1.0:
        raise ValueError(f"shares must sum to less than 1, got {sum(shares)}")
    mixed = (1.0 - sum(shares)) * base
    for other, share in zip(others, shares, strict=True):
        part = as_distribution("other design", other)
        require_same_items("other design", part, base.size)
        mixed = mixed + share * part
    return np.asarray(mixed, dtype=np.float64)


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
    true = as_nonnegative("utility", utility, 1)
    return expected_design_variance(q, true, np.square(true), weights)


def expected_design_variance(
    q: ArrayLike, mean: ArrayLike, second_moment: ArrayLike, weights: ArrayLike
) -> float:
    """Return n * Sigma(Q) when an item's label c has the given mean and second moment: sum E[c^2] g^2/Q -
    (sum E[c] g)^2.

    For binary relevance of probability p both moments are p. For corrected labels of noisy assessors the
    second moment is `sampling.sizes.corrected_second_moments`.

    Raises
    ------
    UnsupportedWeightError
        Q is 0 where the second moment and the weight are not.
    """
    probability = as_distribution("q", q)
    moment = as_nonnegative("second_moment", second_moment, 1)
    require_same_items("second_moment", moment, probability.size)
    centre = as_finite("mean", mean, probability.size)
    weight = as_finite("weights", weights, probability.size)
    require_support(probability, np.where(moment > 0.0, weight, 0.0))
    drawn = probability > 0.0
    expected_square = np.square(weight[drawn]) / probability[drawn] * moment[drawn]
    return float(max(expected_square.sum() - (centre * weight).sum() ** 2, 0.0))


def draws_for_distinct(q: ArrayLike, distinct: float) -> float:
    """Return the number of draws with replacement after which `distinct` different items are expected.

    The expectation is sum of 1 - (1 - Q)^n. A person judges an item once, however often it is drawn:
    designs with and without replacement compare fairly only at equal numbers of different items.

    Raises
    ------
    ValueError
        distinct not above 0, or not below the number of items that Q can draw.

    Examples
    --------
    >>> round(draws_for_distinct([0.5, 0.5], 1.5), 6)
    2.0
    """
    probability = as_distribution("q", q)
    positive = probability[probability > 0.0]
    if not 0.0 < distinct < positive.size:
        raise ValueError(
            f"distinct must be within (0, {positive.size}), the items that q can draw, got {distinct}"
        )
    # log1p(-1) is minus infinity for a certain item; the next smaller double changes nothing reported.
    miss = np.log1p(-np.minimum(positive, np.nextafter(1.0, 0.0)))

    def excess(log_draws: float) -> float:
        return float(-np.expm1(np.exp(log_draws) * miss).sum() - distinct)

    high = 1.0
    while excess(high) < 0.0:
        high += 5.0
        if high > 600.0:
            raise ValueError(
                f"distinct must be reachable, got {distinct} of {positive.size} items with q down to 0"
            )
    return float(np.exp(brentq(excess, -50.0, high, xtol=1e-12)))


# ---- without replacement: inclusion probabilities ------------------------------------------------


def inclusion_probabilities(sizes: ArrayLike, expected_count: float) -> FloatArray:
    """Return pi = min(1, c * size) with sum pi = expected_count: the chance of each item to be judged.

    Items that would exceed 1 become certain and the rest share what is left. Size 0 keeps pi = 0; every
    other item has pi > 0. With a budget of at least as many items as have a size, all of these are certain.

    Parameters
    ----------
    sizes : array, shape (n_items,)
        Finite, not negative, at least one positive.
    expected_count : float
        Judgments wanted, above 0; need not be a whole number.

    Raises
    ------
    ValueError
        Sizes negative, not finite or all 0; expected_count not positive and finite.

    Examples
    --------
    >>> inclusion_probabilities([8.0, 1.0, 1.0, 0.0], 2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    scaled = normalised(sizes)
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    positive = np.flatnonzero(np.asarray(sizes, dtype=np.float64) > 0.0)
    pi = np.zeros(scaled.size)
    if expected_count >= positive.size:
        pi[positive] = 1.0
        return pi
    order = np.argsort(-scaled[positive], kind="stable")
    descending = scaled[positive][order]
    # Sum from the smallest size up, so that a large ratio between sizes does not wipe the small ones out.
    tail = np.cumsum(descending[::-1])[::-1]
    certain = np.arange(descending.size)
    # The certain items are the largest; the first k that leaves nobody above 1 is the right number of them.
    k = int(np.argmax((expected_count - certain) * descending <= tail))
    if tail[k] == 0.0:  # the rest are below the smallest double beside the largest size: share evenly
        descending[k:] = 1.0
        tail[k] = descending.size - k
    shared = np.ones(positive.size)
    shared[order[k:]] = np.clip((expected_count - k) * (descending[k:] / tail[k]), np.finfo(float).tiny, 1.0)
    pi[positive] = shared
    return pi


def poisson_variance(
    inclusion_probability: ArrayLike, weights: ArrayLike, second_moment: ArrayLike
) -> FloatArray:
    """Return sum of (1 - pi)/pi * g^2 * E[e^2], the variance of a Horvitz-Thompson or difference estimate
    under Poisson.

    Exact for fixed, known e: e = u for Horvitz-Thompson, e = u - prediction for the difference estimator.
    Under a guess of E[e^2] it is a forecast.

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
    pi = as_probabilities("inclusion_probability", inclusion_probability)
    weight = as_finite("weights", weights, pi.size)
    moment = as_nonnegative("second_moment", second_moment, 1)
    require_same_items("second_moment", moment, pi.size)
    require_support(pi, np.where(moment > 0.0, weight, 0.0))
    drawn = pi > 0.0
    odds_against = (1.0 - pi[drawn]) / pi[drawn]
    return np.asarray(
        (odds_against * np.square(weight[..., drawn]) * moment[drawn]).sum(axis=-1), dtype=np.float64
    )


def forecast_half_width(
    inclusion_probability: ArrayLike, weights: ArrayLike, variance: ArrayLike
) -> FloatArray:
    """Return 1.96 * sqrt(sum of (1 - pi)/pi g^2 var): half the 95 % interval expected before anything is
    judged.

    Covers the error of judging a sample of these topics' pools, not the choice of topics; as good as the
    guess of var.

    Parameters
    ----------
    variance : array, shape (n_items,)
        Variance of an item's utility around its prediction, p (1 - p) for binary relevance.

    Raises
    ------
    UnsupportedWeightError
        pi is 0 where the weight is not, whatever the variance: a guess of 0 makes no sample unbiased.
    """
    require_support(as_probabilities("inclusion_probability", inclusion_probability), weights)
    return np.asarray(NORMAL_97_5 * np.sqrt(poisson_variance(inclusion_probability, weights, variance)))


def forecast_naive_half_width(
    q: ArrayLike, weights: ArrayLike, mean: ArrayLike, second_moment: ArrayLike, distinct: float
) -> float:
    """Return half the 95 % interval expected from draws with replacement that cost `distinct` different
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
