"""The interval at a declared look, from the sizes of the looks so far.

Part of every release, beside verify.py; NumPy is all it needs. The audits were declared as looks before the first one.
At look k the difference from the truth, in standard errors, is Z_k; with I = n/(1 - n/N) is Cov(Z_j, Z_k) =
sqrt(I_j / I_k). Bounds b_k are such that the chance to leave them by look k is what Lan and DeMets (1983) let be spent
by then, in O'Brien and Fleming's way: 4 (1 - Phi(z / sqrt(share))), z the normal quantile of 1 - .0125. Armitage,
McPherson and Rowe (1969) carry the density of the paths that stayed from look to look; the integrals are Gauss-Legendre
sums.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

if __package__:
    from analytics.releases.verify_quantiles import t_quantile, t_tail
else:  # in a release, the files lie beside each other
    from verify_quantiles import t_quantile, t_tail  # type: ignore

Floats = NDArray[np.float64]
FARTHEST = 9.0  # no normal number is farther out
LEAST_GROWTH = 0.002  # a look with less new information than this part is the look before
LEAST_SPENT = 1e-15


def spent_by(share: float) -> float:
    """Return how much of the 5 % may be spent by then."""
    return 4 * t_tail(math.inf, t_quantile(math.inf, 0.0125) / math.sqrt(share)) if share > 0 else 0.0


def declared_bound(looks: list[dict[str, Any]]) -> float | None:
    """Return the bound at the newest of the looks, in standard errors; None if there is none, or nothing to spend."""
    if not looks:
        return None
    newest = looks[-1]
    shares = [min(1.0, look["n"] / look["n_planned"]) for look in looks]
    if newest["number"] == newest["declared"]:
        shares[-1] = 1.0
    whole = newest["n_items"]
    information = [look["n"] / (1 - min(look["n"], whole - 0.5) / whole) for look in looks]
    used, before, bound, most = 0.0, 0.0, math.inf, 0.0
    node, mass = np.zeros(1), np.ones(1)
    closest = min(_growths(information), default=1.0)
    for reached, share in zip(information, shares, strict=True):
        most = max(most, share)
        if 1 - before / reached < LEAST_GROWTH:
            continue
        more, bound = spent_by(most) - used, math.inf
        if more > LEAST_SPENT:
            bound = _bound(node, mass, before, reached, more)
            used += more
        z, weight = _nodes(min(bound, FARTHEST), closest)
        spread = math.sqrt(reached - before)
        away = (z[:, None] * math.sqrt(reached) - node * math.sqrt(before)) / spread
        density = np.exp(-0.5 * away**2) @ mass * math.sqrt(reached / (2 * math.pi)) / spread
        node, mass, before = z, weight * density, reached
    return None if math.isinf(bound) else bound


def _growths(information: list[float]) -> list[float]:
    """Return by how much, as a part, each look with new information raises it."""
    found, before = [], 0.0
    for reached in information:
        if 1 - before / reached >= LEAST_GROWTH:
            found.append(1 - before / reached)
            before = reached
    return found


def _bound(node: Floats, mass: Floats, before: float, reached: float, chance: float) -> float:
    """Return by halving the b with 2 sum mass P(Z > b at the next look) = chance."""
    low, high = 0.0, FARTHEST
    spread = math.sqrt(reached - before)
    for _ in range(60):
        middle = (low + high) / 2
        away = (middle * math.sqrt(reached) - node * math.sqrt(before)) / spread / math.sqrt(2)
        outside = float(mass @ np.array([math.erfc(one) for one in away.tolist()]))
        low, high = (middle, high) if outside > chance else (low, middle)
    return (low + high) / 2


def _nodes(reach: float, closest: float) -> tuple[Floats, Floats]:
    """Return nodes and weights on [-reach, reach], so close that the narrowest step between looks is summed rightly."""
    number = 64
    while number < 5 * reach / math.sqrt(closest):
        number *= 2
    node, weight = np.polynomial.legendre.leggauss(number)
    return node * reach, weight * reach
