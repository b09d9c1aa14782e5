"""Bounds for a number that is looked at a few times, declared beforehand: narrower than a confidence sequence.

A confidence sequence holds however often one looks, and pays for it: 3.04 standard errors where it is narrowest. Who
declares K looks pays for K. The statistic at look k is Z_k = (estimate - truth)/standard error; with information
I = 1/Var the Z are jointly normal with mean 0, variance 1 and Cov(Z_j, Z_k) = sqrt(I_j/I_k) for j <= k, because what
comes between two looks is independent of what was there before (sequences.py derives it for nested audits). A symmetric
bound b_k at each look is exceeded first at look k with a chance that follows by recursion from the density g of Z_{k-1}
on the paths that have not left:

    P_k = 2 int_{-b}^{b} g(u) Phi(-(b_k sqrt(I_k) - u sqrt(I_{k-1}))/sqrt(I_k - I_{k-1})) du          b = b_{k-1}

and the new density is the same integral with a normal density in place of Phi. Each integral is a Gauss-Legendre sum
whose nodes lie closer than what the narrowest of the kernels needs: all parts are positive, so that small chances too
have about 12 right digits.

Spending. How much of the 5 % the first looks may use is a function of a share that rises to 1. The bounds then follow
from what was seen of the *sizes* of the looks, whatever was planned: neither the number nor the times of the later
looks enter. The share may be of information or of any other time that does not follow from the results. The last look
spends what is left, also if less came in than planned; a look at or above what was planned spends all, and leaves
nothing to later ones.

What is approximate: as in sequences.py, t quantiles with the same tail stand in place of normal ones, nothing is said
below 20 audited items, and information is taken to grow as n/(1 - n/N). benchmarks/group_sequential.py measures the
error also where it grows otherwise.

Source: Armitage, McPherson and Rowe (1969), the recursion; Pocock (1977) and O'Brien and Fleming (1979), the classical
bounds; Lan and DeMets (1983), spending; Lan and DeMets (1989), a time other than information; Jennison and Turnbull
(2000), chapters 7 and 19, and section 4.4 for t quantiles.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats

FARTHEST = 9.0  # a normal number is farther out with a chance of 2e-19
LEAST_GROWTH = 0.002  # of the information from one look to the next, as a part; with less it is the same look
LEAST_SPENT = 1e-15  # below it nothing is spent: the bound is infinite
MOST_LOOKS = 50
NODES = 64


# -- what may be spent ---------------------------------------------------------------------------------------------


def _like_obrien_fleming(share: Floats, side: float) -> Floats:
    z = float(scipy.special.ndtri(1 - side / 2))
    return np.asarray(2 * scipy.special.ndtr(-z / np.sqrt(np.maximum(share, 1e-300))))


def _like_pocock(share: Floats, side: float) -> Floats:
    return np.asarray(side * np.log1p((np.e - 1) * share))


SPENDING: dict[str, Callable[[Floats, float], Floats]] = {
    "obrien-fleming": _like_obrien_fleming,
    "pocock": _like_pocock,
}


def spent_by(share: ArrayLike, *, spending: str = "obrien-fleming", level: float = 0.95) -> Floats:
    """Return how much of the error ``1 - level`` looks may have used when so large a share of all is there.

    Twice the one-sided functions of Lan and DeMets (1983) at ``a = (1 - level)/2``: ``2 - 2 Phi(z_{a/2}/sqrt(share))``,
    which resembles O'Brien and Fleming's bounds and leaves nearly everything to the last look, or
    ``a log(1 + (e - 1) share)``, which resembles Pocock's.

    Parameters
    ----------
    share : array
        Parts of the information (or of another time) expected at the last look; above 1 is 1. Any shape.

    Raises
    ------
    ValueError
        A negative share, an unknown kind of spending, a level outside (0, 1).

    Examples
    --------
    >>> spent_by([0.2, 0.6, 1.0]).round(6).tolist(), spent_by(0.5, spending="pocock").round(6).tolist()
    ([1e-06, 0.007616, 0.05], 0.031006)
    """
    part = finite("share", share)
    if part.size and part.min() < 0:
        raise ValueError(f"share must be at least 0, got {part.min()}")
    if spending not in SPENDING:
        raise ValueError(f"spending must be one of {sorted(SPENDING)}, got {spending!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    side = (1 - level) / 2
    return np.asarray(np.where(part > 0, 2 * SPENDING[spending](np.minimum(part, 1.0), side), 0.0))


# -- the recursion -------------------------------------------------------------------------------------------------


class _Walk:
    """Paths of Z that have not left the bounds so far: their density at nodes, from one look to the next."""

    def __init__(self) -> None:
        self.information = 0.0
        self.node: Floats = np.zeros(1)
        self.mass: Floats = np.ones(1)  # weight of the node times density: before the first look all are at 0

    def chance(self, bound: float, information: float) -> float:
        """Return the chance to stay so far, and to be outside of -+ `bound` at the next look."""
        spread = np.sqrt(information - self.information)
        away = bound * np.sqrt(information) - self.node * np.sqrt(self.information)
        return float(2 * self.mass @ scipy.special.ndtr(-away / spread))

    def go_on(self, bound: float, information: float, closest: float) -> None:
        """Go to the next look; `closest` is the smallest part by which a look raises it."""
        reach = min(bound, FARTHEST)
        z, weight = _nodes(reach, closest)
        spread = np.sqrt(information - self.information)
        root, before = np.sqrt(information), np.sqrt(self.information)
        away = (z[:, None] * root - self.node * before) / spread
        density = np.exp(-0.5 * away**2) @ self.mass * root / spread / np.sqrt(2 * np.pi)
        self.information, self.node, self.mass = information, z, weight * density


def _nodes(reach: float, growth: float) -> tuple[Floats, Floats]:
    """Return nodes and weights on [-reach, reach], close enough for kernels whose variance is this part of Z's."""
    wanted = 1.5 * np.pi * reach / np.sqrt(growth)
    number = NODES
    while number < wanted:
        number *= 2
    node, weight = _legendre(number)
    return node * reach, weight * reach


@cache
def _legendre(number: int) -> tuple[Floats, Floats]:
    node, weight = scipy.special.roots_legendre(number)
    return np.asarray(node), np.asarray(weight)


def _new_looks(information: Floats) -> tuple[list[int], float]:
    """Return the looks that bring new information, and the smallest part by which one of them raises it; checked."""
    if information.ndim != 1 or not 1 <= information.size <= MOST_LOOKS:
        raise ValueError(
            f"information must be a list of 1 to {MOST_LOOKS} looks, got shape {information.shape}"
        )
    if information.min() <= 0 or (np.diff(information) < 0).any():
        raise ValueError(f"information must be above 0 and never fall, got {information.tolist()}")
    new, known, closest = [], 0.0, 1.0
    for look, reached in enumerate(information.tolist()):
        growth = 1 - known / reached
        if growth >= LEAST_GROWTH:
            new.append(look)
            known, closest = reached, min(closest, growth)
    return new, closest


def crossing_probabilities(bounds: ArrayLike, information: ArrayLike) -> Floats:
    """Return by look the chance that it is the first at which ``|Z|`` exceeds its bound; Z as at the top of the module.

    Parameters
    ----------
    bounds : array [look]
        In standard errors, above 0; infinity at a look that is not used.
    information : array [look]
        1/variance in any unit, above 0. A look with less than a 500th more than the one before is the same look, and
        has chance 0.

    Raises
    ------
    ValueError
        Lists of different lengths, more than 50 looks, a bound of 0 or below, information that falls.

    Examples
    --------
    >>> crossing_probabilities([1.96] * 5, [1, 2, 3, 4, 5]).sum().round(3)
    np.float64(0.142)
    """
    known = finite("information", information)
    new, closest = _new_looks(known)
    limit = np.asarray(bounds, dtype=np.float64)
    if limit.shape != known.shape or not (limit > 0).all():
        raise ValueError(f"bounds must be above 0, one a look, got {limit.tolist()} for {known.size} looks")
    walk, found = _Walk(), np.zeros(known.size)
    for look in new:
        found[look] = walk.chance(limit[look], known[look])
        walk.go_on(limit[look], known[look], closest)
    return found


def look_bounds(information: ArrayLike, spent: ArrayLike) -> Floats:
    """Return by look the bound, in standard errors, at which the looks so far have used as much as they may.

    All intervals ``value -+ bound * standard error`` of the looks contain the truth at once with the chance that
    `spent` leaves. The bound of a look does not depend on later ones.

    Parameters
    ----------
    information : array [look]
        As `crossing_probabilities` takes it.
    spent : array [look]
        In all, of the error: rises, below 1 (`spent_by`). A look at which it does not rise has an infinite bound; one
        without new information has the bound of the look before, and what it might have spent is spent later.

    Raises
    ------
    ValueError
        As `crossing_probabilities`; `spent` negative, falling, or 1 and above.

    Examples
    --------
    >>> look_bounds([1, 2, 3, 4, 5], spent_by([0.2, 0.4, 0.6, 0.8, 1.0])).round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    known, allowed = finite("information", information), finite("spent", spent)
    new, closest = _new_looks(known)
    if (
        allowed.shape != known.shape
        or allowed.min() < 0
        or (np.diff(allowed) < 0).any()
        or allowed.max() >= 1
    ):
        raise ValueError(f"spent must be a part of 1 that never falls, one a look, got {allowed.tolist()}")
    walk, used = _Walk(), 0.0
    found = np.full(known.size, np.inf)
    for look in range(known.size):
        if look not in new:
            found[look] = found[look - 1]
            continue
        more = float(allowed[look]) - used
        if more > LEAST_SPENT:
            found[look] = _bound(walk, float(known[look]), more)
            used = float(allowed[look])
        walk.go_on(found[look], known[look], closest)
    return found


def _bound(walk: _Walk, information: float, chance: float) -> float:
    """Return the bound that is exceeded at the next look with this chance; on logarithms, as chances may be small."""

    def above(bound: float) -> float:
        return math.log(max(walk.chance(bound, information), 1e-300) / chance)

    return float(scipy.optimize.brentq(above, 1e-9, FARTHEST, xtol=1e-13, rtol=1e-14))


# -- declared looks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """A complete audit that was declared, before the first one, as the `number`-th of `declared` looks.

    `n`: items that the audits so far select, as expected; `n_planned`: in all, as planned when this one was drawn;
    `n_items`: drawn by then, all that an audit could ever take. None of them follows from an audit's results.
    """

    number: int
    declared: int
    n: float
    n_planned: int
    n_items: int


def bound_at_look(looks: Sequence[Look]) -> float:
    """Return the bound at the newest of the looks so far, 1, 2, ..., in standard errors of a normal number.

    What may be spent follows from the part of the planned items that is audited, in O'Brien and Fleming's way; at the
    last declared look it is all. How the looks hang together follows from the information ``n/(1 - n/N)``, N being the
    items drawn by the newest look. Infinite where a look has nothing to spend: all went to an earlier one, which had
    all that was planned, or the look is too early.

    Raises
    ------
    ValueError
        No look, numbers that are not 1, 2, ..., sizes that fall.

    Examples
    --------
    >>> round(bound_at_look([Look(1, 2, 100.0, 200, 10**9), Look(2, 2, 200.0, 200, 10**9)]), 3)
    1.969
    """
    if [look.number for look in looks] != list(range(1, len(looks) + 1)) or not looks:
        raise ValueError(f"looks must be numbered 1, 2, ..., got {[look.number for look in looks]}")
    newest = looks[-1]
    size = np.array([look.n for look in looks])
    share = np.minimum(1.0, size / np.array([look.n_planned for look in looks]))
    if newest.number == newest.declared:
        share[-1] = 1.0
    whole = max(newest.n_items, 1)
    information = size / (1 - np.minimum(size, whole - 0.5) / whole)
    return float(look_bounds(information, spent_by(np.maximum.accumulate(share)))[-1])
