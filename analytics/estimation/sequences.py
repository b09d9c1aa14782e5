"""Intervals for a number that is watched while judging and auditing go on: valid at all looks at once.

A 95 % confidence interval promises 95 % for *one* look, fixed beforehand. Whoever looks after every audit and
stops at the first interval without 0 finds a difference between equal runs in a third of the cases. A confidence
sequence is wider, and misses the truth **at any look ever** with a chance of at most 5 %.

Why a formula for Brownian motion applies. Items are audited if their permanent random number u_i is at most pi_i, and
pi_i only grows. For a fixed prediction the estimate at a look is ``U = U* + sum e_i (1[u_i <= pi_i]/pi_i - 1)``,
U* being what a complete audit would give. With pi <= pi' at two looks

    E[1[u <= pi]/pi given the later audit] = 1[u <= pi']/pi',   so   E[U given the later audit] = U',
    Cov(U, U') = sum e_i^2 (pi_i/(pi_i pi'_i) - 1) = sum e_i^2 (1/pi'_i - 1) = Var(U').

So U is a martingale backwards in time; the same holds for items that are drawn in batches under one random number, and
for both together. With the information t = 1/Var(U) the score t (U - truth) has uncorrelated increments of variance dt,
and for many items that count (no single one carrying a good part of the variance) it moves as Brownian motion.

What is approximate. The class means of GREG-label are estimated at every look, and so is the variance: t quantiles
with n - 1 degrees of freedom take the place of normal ones, as is usual in group sequential tests, and nothing is
said below 20 items. Information is taken to grow as n/(1 - n/N), which is right for a simple audit of N judged items,
and as n where N is not given. If it grows slower (a drawing error stays, and no audit removes it) the error is below
5 %. If it grows faster it may be above: .07 if all of 2,000 items are audited after 200 were planned and N was not
given (docs/benchmarks.md). `planned` and N must not follow from what was seen.

Source: Robbins (1970), normal mixture; Howard, Ramdas, McAuliffe and Sekhon (2021), Eq 14 and section 3.5;
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), "time-uniform central limit theory"; Jennison and Turnbull
(2000), section 4.4 for t quantiles.
"""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats

FEWEST_WATCHED = 20  # audited items before a sequence begins
SMALLEST = float(np.finfo(np.float64).tiny)


def always_valid_factor(
    n: ArrayLike, planned: ArrayLike, *, level: float = 0.95, n_items: ArrayLike | None = None
) -> Floats:
    """Return the factor: ``value -+ factor * standard_error`` holds at all looks at once with chance `level`.

    ``z = sqrt((1 + 1/x) log((1 + x)/alpha^2))`` with x proportional to the information ``n/(1 - n/N)`` and such that
    z is least at n = `planned`, where it is 3.04 for 95 %; then the t quantile with n - 1 degrees of freedom of the
    same tail. Assumptions: top of the module.

    Parameters
    ----------
    n : array
        Audited items that count at the look, any shape. Below 20: infinity, there is no interval yet; store none.
    planned : array
        Audited items planned in all, fixed beforehand; at least 20 and at most N/2 is taken. Broadcast against `n`.
    level : float
        Chance that the truth is inside at every look, in (0, 1).
    n_items : array, optional
        N: judged items with weight, all that an audit could ever take. Without it: as many as one likes.

    Raises
    ------
    ValueError
        n negative or above n_items, planned or n_items not positive, level outside (0, 1), or not finite.

    Examples
    --------
    >>> always_valid_factor([10, 100, 200, 400], 200).round(3).tolist()
    [inf, 3.162, 3.075, 3.084]
    """
    size, x, alpha = _clock(n, planned, level, n_items)
    return t_of_same_tail(np.sqrt((1 + 1 / x) * (np.log1p(x) - 2 * np.log(alpha))), size)


def t_of_same_tail(normal: ArrayLike, n: ArrayLike) -> Floats:
    """Return the t quantile, n - 1 degrees of freedom, with the tail of a normal quantile; below 20 items infinity.

    Examples
    --------
    >>> t_of_same_tail(1.96, [19, 20, 1000]).round(3).tolist()
    [inf, 2.093, 1.962]
    """
    size = np.asarray(n, dtype=np.float64)
    # far from what is planned the tail is 0, of which there is no quantile
    tail = np.maximum(scipy.special.ndtr(-np.asarray(normal, dtype=np.float64)), SMALLEST)
    return np.asarray(
        np.where(size >= FEWEST_WATCHED, -scipy.special.stdtrit(np.maximum(size - 1, 1.0), tail), np.inf)
    )


def always_valid_p_value(
    statistic: ArrayLike,
    n: ArrayLike,
    planned: ArrayLike,
    *,
    level: float = 0.95,
    n_items: ArrayLike | None = None,
) -> Floats:
    """Return p of "no difference" from ``value / standard_error``, valid at whatever look one stops.

    ``min(1, sqrt(1 + x) exp(-z^2 x / (2 (1 + x))))``, z the normal quantile of the t statistic: below ``1 - level``
    exactly where the interval of `always_valid_factor` excludes 0 (`level` only says what the boundary was
    tuned for). The smallest p over all looks so far is valid too. 1 below 20 items. Assumptions: top of the module.

    Raises
    ------
    ValueError
        As `always_valid_factor`.

    Examples
    --------
    >>> always_valid_p_value([0, 3.0, 4.0], 200, 200).round(4).tolist()
    [1.0, 0.0606, 0.0032]
    """
    size, x, _ = _clock(n, planned, level, n_items)
    t = np.abs(finite("statistic", statistic))
    tail = np.maximum(scipy.special.stdtr(np.maximum(size - 1, 1.0), -t), SMALLEST)
    log_p = 0.5 * np.log1p(x) - 0.5 * scipy.special.ndtri(tail) ** 2 * x / (1 + x)
    return np.asarray(np.where(size >= FEWEST_WATCHED, np.exp(np.minimum(log_p, 0.0)), 1.0))


def _clock(
    n: ArrayLike, planned: ArrayLike, level: float, n_items: ArrayLike | None
) -> tuple[Floats, Floats, float]:
    """Return n, x and alpha.

    The boundary is least where ``x = log(1 + x) - 2 log alpha``: x = -W(-alpha^2/e) - 1, W the lower branch of
    Lambert's function (Howard et al. 2021, section 3.5).
    """
    size, wanted = finite("n", n), finite("planned", planned)
    if size.size and size.min() < 0:
        raise ValueError(f"n must be at least 0, got {size.min()}")
    if wanted.size and wanted.min() <= 0:
        raise ValueError(f"planned must be above 0, got {wanted.min()}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    alpha = 1 - level
    best = -float(scipy.special.lambertw(-(alpha**2) / np.e, -1).real) - 1
    plan = np.maximum(wanted, FEWEST_WATCHED)
    if n_items is None:
        return size, np.asarray(best * np.maximum(size, 1) / plan), alpha
    whole = finite("n_items", n_items)
    if (whole <= 0).any() or (size > whole).any():
        raise ValueError(f"n_items must be above 0 and at least n, got {whole.min()} for n = {size.max()}")
    plan = np.minimum(plan, whole / 2)
    # the last half item keeps the information of a complete audit finite
    reached, aim = (np.maximum(k, 1) / (1 - np.minimum(k, whole - 0.5) / whole) for k in (size, plan))
    return size, np.asarray(best * reached / aim), alpha
