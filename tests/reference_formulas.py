"""Formulas written out for one number, with which the tests compare what the product computes for all at once."""

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.estimate import Floats
from analytics.estimation.estimators import known_prior, sample
from analytics.estimation.importance import _designs, _joint_kernels, distinct_inclusion
from analytics.estimation.pseudolabels import PseudoLabels
from analytics.estimation.ratio_parts import Denominator, numerator, ranked_items
from analytics.estimation.ratios import checked_ranks
from analytics.estimation.targets import Weights, as_targets
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio


def fixed_size_variance(error: ArrayLike, inclusion_probability: ArrayLike) -> float:
    """Return Hajek's variance of ``sum e/pi`` for a draw of fixed size (Pareto, conditional Poisson).

    ``m/(m-1) sum (1-pi) (z-B)^2`` with z = e/pi, B the (1-pi)-weighted mean of z and m the drawn items with
    pi < 1. Raise ValueError if exactly one item is uncertain: its variance cannot be estimated.

    Source: Hajek (1964); docs/methods/derivations/sampling.md, section 4.1.
    """
    errors = finite("error", error)
    pi = probabilities("inclusion_probability", inclusion_probability, errors.shape[0])
    open_items = pi < 1
    m = int(open_items.sum())
    if m == 0:
        return 0.0
    if m == 1:
        raise ValueError("at least 2 drawn items with inclusion probability below 1 are needed, got 1")
    z, rest = errors[open_items] / pi[open_items], 1 - pi[open_items]
    centre = float((rest * z).sum() / rest.sum())
    return m / (m - 1) * float((rest * (z - centre) ** 2).sum())


def fixed_size_forecast(frame_error: ArrayLike, inclusion_probability: ArrayLike) -> float:
    """Return ``sum pi (1-pi) (z-B)^2`` over the frame: the variance that `fixed_size_variance` estimates.

    z = e/pi, B the pi(1-pi)-weighted mean of z. An approximation for large draws; exact for no design but
    simple random sampling up to n/(n-1). Items with pi = 0 must have e = 0, or ValueError is raised.

    >>> fixed_size_forecast([1, 3, 0], [.5, .5, 0])
    2.0

    Source: Hajek (1964), the large-sample variance of rejective sampling.
    """
    errors = finite("frame_error", frame_error)
    pi = finite("inclusion_probability", inclusion_probability, errors.shape)
    if ((pi < 0) | (pi > 1)).any():
        raise ValueError(f"inclusion_probability must be in [0, 1], got {pi[(pi < 0) | (pi > 1)][0]}")
    if errors[pi == 0].any():
        raise ValueError("frame_error must be 0 where inclusion_probability is 0: such an item is never seen")
    open_items = (pi > 0) & (pi < 1)
    z, share = errors[open_items] / pi[open_items], pi[open_items] * (1 - pi[open_items])
    centre = float((share * z).sum() / share.sum()) if share.size else 0.0
    return float((share * (z - centre) ** 2).sum())


def distinct_variances(error: ArrayLike, draw_probability: ArrayLike, n_draws: ArrayLike) -> Floats:
    """Return Horvitz and Thompson's variance of ``sum e/pi`` over the distinct items, per row of errors.

    ``sum_i (1-pi_i) z_i^2 + sum_{i!=j} (pi_ij - pi_i pi_j)/pi_ij z_i z_j`` with z = e/pi: exactly unbiased, but
    with several batches it can come out negative. Draws compete, so pi_ij < pi_i pi_j: nearly a fixed size.
    Time grows with the square of the number of distinct items, memory does not.

    Source: Horvitz and Thompson (1952), their second variance.
    """
    errors = np.atleast_2d(finite("error", error))
    designs, draws = _designs(draw_probability, n_draws)
    if designs.shape[1] != errors.shape[1]:
        raise ValueError(f"draw_probability must be of {errors.shape[1]} items, got {designs.shape[1]}")
    pi = distinct_inclusion(designs, draws)
    if (pi <= 0).any():
        raise ValueError("draw_probability of a drawn item must be above 0 in some batch, got 0")

    z = errors / pi
    total = (z**2 * (1 - pi)).sum(axis=1)
    for part, kernel in _joint_kernels(designs, draws, pi):
        total += ((z[:, part] @ kernel) * z).sum(axis=1)
    return np.asarray(total)


def topic_parts(
    weights: Weights,
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
    targets = as_targets(weights)
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    shape = (len(targets), n_topics)
    f, known = known_prior(prior, prior_total_by_topic, targets.n_items, shape)
    drawn = sample(targets, utility, inclusion_probability, prior=f, prior_total=known.sum(axis=1))
    return known + targets.totals_by_topic(drawn.surprise, topic, n_topics)


def numerators(measure: Measure[Ratio], labels: PseudoLabels, ranks: ArrayLike) -> Floats:
    """Return [run, topic], unbiased: sum of u*/log2(rank + 1), or ``sum_i (1/r_i) [u*_i + sum_{j above i} u*_i u*_j]``.

    The diagonal is u*, not its square: only products of *different* items keep their expectation under Poisson.
    `ranks` as in `ratio_estimates`.
    """
    rank = checked_ranks(labels, ranks)
    return np.stack([numerator(measure, labels, ranked_items(measure, labels, row)).value for row in rank])


def denominators(measure: Measure[Ratio], labels: PseudoLabels) -> Floats:
    """Return [topic], what the mean over topics divides by: R, or the gain of the ideal ranking.

    R is ``max(sum u*, number found relevant, 1)``. The ideal ranking of a graded scale has stair j on its first
    C_j ranks, so its gain is ``sum_j step_j D(C_j)``, D(C) being the discounts summed down to rank C (or to the
    cutoff) and linear between whole numbers; C_j is estimated and bounded as R is, by 1 on the lowest stair only.
    """
    return Denominator(measure, labels).values()[0][:, 0]
