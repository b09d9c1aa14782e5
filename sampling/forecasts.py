"""How many draws with replacement cost as many judgments as a draw without replacement."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import distribution

NORMAL_97_5 = 1.959963984540054


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
    probability = distribution("q", q)
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
    return float(np.exp(scipy.optimize.brentq(excess, -50.0, high, xtol=1e-12)))


def question_half_width(inclusion_probability: ArrayLike, variance: ArrayLike) -> float | None:
    """Return half of the expected 95 % confidence interval of a question's answer: drawing alone, by a Poisson draw.

    Parameters
    ----------
    inclusion_probability : array [item]
        Within [0, 1].
    variance : array [item]
        Of what the item adds to the answer before it is judged: `sampling.contrasts.Importance.variance`.

    Returns
    -------
    float or None
        None where an item that matters cannot be drawn.

    Examples
    --------
    >>> round(question_half_width([0.5, 0.5], [0.25, 0.0]), 6)
    0.979982
    """
    pi, v = np.asarray(inclusion_probability, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    matters = v > 0
    if np.any(pi[matters] == 0):
        return None
    return float(NORMAL_97_5 * np.sqrt(((1 - pi[matters]) / pi[matters] * v[matters]).sum()))
