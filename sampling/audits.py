"""Audits: which judged items a higher tier judges again, at random and with known probabilities.

The selection itself is `draws.poisson_draw` with `draws.permanent_random_numbers` of a seed that is *not
the draw's*. Under the draw's seed the numbers of judged items all lie below their inclusion probability: they
are no longer uniform, and the probabilities given here are wrong. Audits that share one seed are together the
audit with the largest of their probabilities; audits of fresh seeds are independent.
"""

import numpy as np
from numpy.typing import ArrayLike

from sampling.designs import inclusion_probabilities
from sampling.measures import FloatArray
from sampling.sizes import as_nonnegative, as_probabilities, ranking_contrast, require_same_items


def audit_probabilities(
    weights: ArrayLike, inclusion_probability: ArrayLike, expected_count: float, floor: float
) -> FloatArray:
    """Return each judged item's chance to be audited: pi = min(1, max(floor, k q)), sum pi = expected_count.

    q is how much an error in the item's judgment moves the comparison: with weights w/pi_draw, the absolute
    weight of a single run, abs(w_a - w_b) for two, sqrt(sum over runs of (w - mean w)^2) for more. An item
    that no run weighs moves nothing and keeps 0; every item that some run weighs has at least the floor, so
    that an audit also serves scores and runs it was not designed for.

    Source: Neyman (1934) allocation with equal error variances; Poisson design as in Sarndal, Swensson and
    Wretman (1992), section 3.5.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items)
        w of every run at the judged items, not yet divided by anything.
    inclusion_probability : array, shape (n_items,)
        The draw's pi of the judged items, within (0, 1]; ones where every item of the frame is judged.
    expected_count : float
        Audited items wanted.
    floor : float
        Within (0, 1].

    Raises
    ------
    IdenticalSystemsError
        Two or more runs that weigh every item alike; audit such runs with `simple_audit_probabilities`.
    ValueError
        Input out of bounds, no item with weight, or a floor that alone asks for more than expected_count.

    Examples
    --------
    >>> audit_probabilities([[0.5, 0.2, 0.0], [0.1, 0.2, 0.0]], [1, 1, 1], 1.0, 0.25).tolist()
    [0.75, 0.25, 0.0]
    """
    rows = as_nonnegative("weights", weights, 2)
    drawn = as_probabilities("inclusion_probability", inclusion_probability)
    require_same_items("inclusion_probability", drawn, rows.shape[1])
    if not np.all(drawn > 0.0):
        raise ValueError(f"inclusion_probability of a judged item must be above 0, got {drawn.min()}")
    if not 0.0 < floor <= 1.0:
        raise ValueError(f"floor must be within (0, 1], got {floor}")
    if not 0.0 < expected_count < np.inf:
        raise ValueError(f"expected_count must be positive and finite, got {expected_count}")
    weighed = rows.max(axis=0) > 0.0
    n_weighed = int(np.count_nonzero(weighed))
    if n_weighed == 0:
        raise ValueError("at least 1 judged item must have weight in some run, got 0")
    if floor * n_weighed > expected_count:
        raise ValueError(
            f"floor must be at most {expected_count / n_weighed:.6g} "
            f"({expected_count:g} audits over {n_weighed} items), got {floor}"
        )
    contrast = rows[0] if rows.shape[0] == 1 else ranking_contrast(rows)
    # Scaling first keeps the quotient finite; an item never scaled out of sight, since the floor is above 0.
    influence = contrast / contrast.max() / np.maximum(drawn, 1e-90)
    pi = np.zeros(rows.shape[1])
    pi[weighed] = _floored(influence[weighed], expected_count, floor)
    return pi


def _floored(influence: FloatArray, expected_count: float, floor: float) -> FloatArray:
    """Return min(1, max(floor, k * influence)) with the k that makes the sum expected_count, at most all
    items.
    """
    if expected_count >= influence.size:
        return np.ones(influence.size)
    at_floor = influence == 0.0
    while not at_floor.all():
        rest = expected_count - floor * np.count_nonzero(at_floor)
        pi = np.full(influence.size, floor)
        pi[~at_floor] = inclusion_probabilities(influence[~at_floor], rest)
        # Lifting an item to the floor lowers everybody else, so this only ever adds items and must end.
        below = ~at_floor & (pi < floor)
        if not below.any():
            return _spread_remainder(pi, at_floor, expected_count)
        at_floor = at_floor | below
    return np.full(influence.size, expected_count / influence.size)


def _spread_remainder(pi: FloatArray, at_floor: np.ndarray, expected_count: float) -> FloatArray:
    """Return pi with audits that the certain items cannot use shared out over the items at the floor."""
    left = expected_count - pi.sum()
    if left > 1e-12 and at_floor.any():
        pi = np.where(at_floor, pi + left / np.count_nonzero(at_floor), pi)
    return np.minimum(pi, 1.0)


def simple_audit_probabilities(n_items: int, expected_count: float) -> FloatArray:
    """Return expected_count/n_items for every judged item, at most 1: an audit that favours no item.

    It serves the assessors' confusion matrices, whatever is measured afterwards.

    Raises
    ------
    ValueError
        n_items below 1; expected_count not positive and finite.

    Examples
    --------
    >>> simple_audit_probabilities(4, 1.0).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if n_items < 1:
        raise ValueError(f"n_items must be at least 1, got {n_items}")
    return inclusion_probabilities(np.ones(n_items), expected_count)
