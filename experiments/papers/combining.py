"""Several labels an item, or several assessors: matrices and weights for what is combined.

Audit what you use: a majority of three has another confusion matrix than a single judge, and correcting it with
the single judge's is wrong. `matrices[assessor, true, given]`, rows sum to 1.
Source: docs/methods/derivations/noise-correction.md, sections 3 and 5.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Estimate, Floats, Refusal, estimate
from analytics.papers.combining import label_matrix, least_variance_scores

MOST_PATTERNS = 100_000


def _judges(matrices: ArrayLike) -> Floats:
    j = finite("matrices", matrices)
    if j.ndim != 3 or j.shape[0] < 1:
        raise ValueError(f"matrices must be [judge, true, given] with at least 1 judge, got {j.shape}")
    return np.stack([label_matrix(one) for one in j])


def second_order_bias(
    matrix: ArrayLike, gold_per_grade: ArrayLike, mix: ArrayLike, gains: ArrayLike
) -> float:
    """Return ``sum_g (pi_g/n_g) (sum_l J[g,l] J^-1[l,g] c_l - v_g)``: how far ``h . J^-1 v`` is too high.

    J is estimated, and its inverse is not linear in it. Subtract the result (summed over assessors) from the
    corrected value; it matters below about 30 gold labels a grade. Square matrices only.
    Assumption: the audit's rows are independent multinomials.
    Source: docs/methods/derivations/noise-correction.md, section 3.6.
    """
    j = label_matrix(matrix)
    if j.shape[0] != j.shape[1]:
        raise ValueError(f"matrix must be square, got shape {j.shape}")
    v, n = finite("gains", gains, (j.shape[0],)), finite("gold_per_grade", gold_per_grade, (j.shape[0],))
    if (n <= 0).any():
        raise ValueError(f"gold_per_grade must be above 0, got {n.min()}")
    inverse = np.linalg.inv(j)
    c = inverse @ v
    inner = np.einsum("gl,lg,l->g", j, inverse, c)
    return float((finite("mix", mix, n.shape) / n * (inner - v)).sum())


def pattern_matrix(matrices: ArrayLike) -> Floats:
    """Return P(pattern | true grade) of one label from each judge, ``[true, pattern]``.

    Patterns count up with the last judge's label changing fastest. Assumption: given the true grade, the judges'
    labels are independent, which hard documents make false.
    """
    j = _judges(matrices)
    if j.shape[2] ** j.shape[0] > MOST_PATTERNS:
        raise ValueError(
            f"judges and labels must give at most {MOST_PATTERNS} patterns, got {j.shape[2] ** j.shape[0]}"
        )
    table = np.ones((j.shape[1], 1))
    for one in j:
        table = (table[:, :, None] * one[:, None, :]).reshape(j.shape[1], -1)
    return np.asarray(table)


def majority_matrix(matrices: ArrayLike) -> Floats:
    """Return the confusion matrix of the majority label of an odd number of judges, two labels.

    Assumption: as `pattern_matrix`. With gold, measure the majority's own matrix instead (audit what you use).

    >>> majority_matrix([[[.8, .2], [.1, .9]]] * 3).round(6).tolist()
    [[0.896, 0.104], [0.028, 0.972]]
    """
    j = _judges(matrices)
    if j.shape[0] % 2 == 0 or j.shape[2] != 2:
        raise ValueError(
            f"an odd number of judges with 2 labels is needed, got {j.shape[0]} and {j.shape[2]}"
        )
    ones = np.array([sum(pattern) for pattern in product((0, 1), repeat=j.shape[0])])
    high = pattern_matrix(j)[:, 2 * ones > j.shape[0]].sum(axis=1)
    return np.stack([1 - high, high], axis=1)


def pattern_scores(matrices: ArrayLike, prevalence: ArrayLike, gains: ArrayLike) -> Floats:
    """Return the score of every pattern of labels: unbiased and of least variance if judges are independent.

    `prevalence[true]` is a prior for the grades' shares; a wrong one costs precision and makes no bias.
    """
    j = pattern_matrix(matrices)
    share = finite("prevalence", prevalence, (j.shape[0],))
    if (share <= 0).any() or not math.isclose(float(share.sum()), 1, abs_tol=1e-6):
        raise ValueError(f"prevalence must be above 0 and sum to 1, got {share.tolist()}")
    seen = share @ j
    possible = seen > 0
    scores = np.zeros(seen.size)
    scores[possible] = least_variance_scores(j[:, possible], seen[possible], gains)
    return scores


def judge_weights(matrices: ArrayLike, gains: ArrayLike, prevalence: ArrayLike | None = None) -> Floats:
    """Return weights ``1/mean tau_a^2`` of the judges' scores inside an item, summing to 1.

    tau_a^2 is the variance of ``c_a(label)``, ``c_a = J_a^-1 v``, averaged over the grades by `prevalence` (None:
    equally). A weighted mean of scores is unbiased whatever the weights and however the judges' errors hang
    together, because it is linear in each label. Square matrices only.
    """
    j, v = _judges(matrices), finite("gains", gains)
    if j.shape[1] != j.shape[2] or v.shape != (j.shape[1],):
        raise ValueError(f"matrices must be square and agree with the gains, got {j.shape} and {v.shape}")
    share = np.full(v.size, 1 / v.size) if prevalence is None else finite("prevalence", prevalence, v.shape)
    if (share < 0).any() or not math.isclose(float(share.sum()), 1, abs_tol=1e-6):
        raise ValueError(f"prevalence must be >= 0 and sum to 1, got {share.tolist()}")
    c = np.stack([least_variance_scores(one, np.ones(v.size), v) for one in j])
    noise = np.einsum("agl,al,g->a", j, c**2, share) - float(share @ v**2)
    if (noise <= 0).any():
        raise ValueError(
            "every judge must have errors in the matrix, else the weight is infinite: add 1/2 to the counts"
        )
    return np.asarray((1 / noise) / (1 / noise).sum())


def inverse_variance_mean(
    values: Sequence[float] | Floats, variances: Sequence[float] | Floats, *, random_assignment: bool
) -> Estimate | Refusal:
    """Return the mean of per-assessor corrected values, weighted by 1/variance.

    Assumption: every assessor's items are a random sample of the same items, and the estimates are independent
    (each assessor has an audit of their own). If assignment depends on the item, every assessor estimates
    another number and the mean is biased: refused unless
    `random_assignment` was recorded. Weights are estimated, which the variance ``1/sum(1/V)`` leaves out.
    Source: docs/methods/derivations/noise-correction.md, section 3.7.

    >>> round(inverse_variance_mean([.5, .7], [.01, .03], random_assignment=True).value, 6)
    0.55
    """
    u = finite("values", values)
    v = finite("variances", variances, u.shape)
    if u.ndim != 1 or u.size < 1:
        raise ValueError(f"values must be flat with at least 1 assessor, got shape {u.shape}")
    if (v <= 0).any():
        raise ValueError(f"variances must be above 0, got {v.min()}")
    if not random_assignment:
        return Refusal(
            "who judged what was not recorded as random: each assessor's number may be about other items, and "
            "their weighted mean would be biased; use the per-assessor scores item by item"
        )
    weight = 1 / v
    total = float(weight.sum())
    return estimate(
        float(weight @ u) / total,
        1 / total,
        degrees_of_freedom=None,
        n=u.size,
        sources=("drawing", "label noise", "confusion matrices"),
    )
