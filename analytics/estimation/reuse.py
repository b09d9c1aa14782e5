"""Judgments drawn for one question, asked another: may they answer it, how well, and what do they lack?

Frame-indexed arrays: one entry per pair that could have been judged, with the inclusion probability it had. A run
that came later may return documents outside that frame. To reuse judgments say how much of its weight they are;
to top up append them to the frame with probability 0, so that they can be drawn now.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Z95, Floats, Refusal
from analytics.estimation.targets import weight_rows
from sampling.designs import inclusion_probabilities
from sampling.sizes import IdenticalSystemsError, UnsupportedWeightError

STEPS = 2000  # at most so many halvings of the scale before the bisection; about 50 are used


@dataclass(frozen=True)
class Reusability:
    """What judgments of an old draw say of one new target (a run, or the difference of two).

    Attributes
    ----------
    share_outside : float
        Part of sum |w| on pairs that could not be judged, in the frame or not. Above 0: `refusal`.
    expected_judgments : float
        Sum of pi over the pairs that the target weighs.
    effective_judgments : float
        ``(sum |w|)^2 / sum w^2/pi`` over the pairs that could be judged: how many judgments of a design
        made for this target (pi proportional to |w|) are worth as much.
    half_width : float or Refusal
        Forecast of half the 95 % confidence interval under the guessed spread.
    relative_variance : float or Refusal
        That forecast's variance over the one of the target's own design of the same expected number.
    refusal : Refusal or None
        Why these judgments alone may not be used.
    """

    share_outside: float
    expected_judgments: float
    effective_judgments: float
    half_width: float | Refusal
    relative_variance: float | Refusal
    refusal: Refusal | None


@dataclass(frozen=True)
class TopUp:
    """The inclusion probabilities that add just the judgments that are lacking.

    `inclusion_probability[frame]` is nowhere below the old one, so that with the draw's permanent random numbers
    every earlier judgment stays. Tuples hold one number per target; a half-width is a forecast under the guess.
    """

    inclusion_probability: Floats
    expected_new_judgments: float
    half_width_before: tuple[float | Refusal, ...]
    half_width_after: tuple[float, ...]
    share_outside_before: tuple[float, ...]
    share_outside_after: tuple[float, ...]
    warning: str = ""


# -- validation ---------------------------------------------------------------------------------------------


def _frame(weights: ArrayLike, probability: ArrayLike, spread: ArrayLike) -> tuple[Floats, Floats, Floats]:
    rows = weight_rows(weights)
    pi = finite("inclusion_probability", probability, (rows.shape[1],))
    if ((pi < 0) | (pi > 1)).any():
        raise ValueError(f"inclusion_probability must be in [0, 1], got {pi[(pi < 0) | (pi > 1)][0]}")
    deviation = finite("spread", spread, (rows.shape[1],))
    if (deviation < 0).any():
        raise ValueError(f"spread must be >= 0, got {deviation.min()}")
    unknown = (deviation == 0) & rows.any(axis=0)
    if unknown.any():
        raise UnsupportedWeightError(
            f"spread must be above 0 where a target has weight, got 0 for {int(unknown.sum())} pairs: "
            "they could never be drawn"
        )
    return rows, pi, deviation


def _share_outside(rows: Floats, pi: Floats, beyond: Floats) -> Floats:
    total = np.abs(rows).sum(axis=1) + beyond
    outside = np.abs(rows[:, pi == 0]).sum(axis=1) + beyond
    share: Floats = np.divide(outside, total, out=np.zeros_like(total), where=total > 0)
    return share


def _variances(squares: Floats, pi: Floats) -> Floats:
    """Return ``sum (1-pi)/pi (w s)^2`` per target, infinite where a pair with weight cannot be judged."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = squares * (1 / pi - 1)
    terms[squares == 0] = 0.0
    variances: Floats = terms.sum(axis=1)
    return variances


# -- reuse --------------------------------------------------------------------------------------------------


def reusability(
    frame_weights: ArrayLike,
    inclusion_probability: ArrayLike,
    spread: ArrayLike,
    *,
    weight_outside: ArrayLike | None = None,
) -> list[Reusability]:
    """Return for every target (row of weights) how well the judgments of an old draw serve it.

    `spread[frame]` is the guessed standard deviation of a pair's utility around its prediction (sqrt(p(1-p)));
    `weight_outside[target]` is sum |w| of documents that are not in the frame. Forecasts assume a Poisson draw
    and the difference estimator with that prediction; the variance is ``sum (1-pi)/pi w^2 s^2``, exact if the
    guess is. The own design takes pi proportional to |w| s with the same sum of pi over the frame. Effective
    judgments follow from Kish's ``(sum a)^2/sum a^2`` with the drawn items' a = |w|/pi: both sums are replaced
    by their expectations, so that the number belongs to the design and not to one draw.

    Raise ValueError for a target without any weight (an empty run, or two runs that are the same).

    Source: Kish (1965); Owen (2013), section 9.3; docs/methods/derivations/sampling.md, section 8.1.
    """
    rows, pi, deviation = _frame(frame_weights, inclusion_probability, spread)
    beyond = _weight_outside(weight_outside, rows.shape[0])
    total = np.abs(rows).sum(axis=1) + beyond
    if (total == 0).any():
        raise ValueError(f"every target must weigh something, got 0 for target {int(total.argmin())}")
    shares = _share_outside(rows, pi, beyond)

    results: list[Reusability] = []
    for w, share in zip(rows, shares, strict=True):
        reached = (w != 0) & (pi > 0)
        unit = float(np.abs(w).max()) or 1.0
        size, probability = np.abs(w[reached]) / unit, pi[reached]
        effective = float(size.sum() ** 2 / (size**2 / probability).sum()) if size.size else 0.0
        refusal = _no_reuse(float(share)) if share > 0 else None
        half_width: float | Refusal = refusal or 0.0
        relative: float | Refusal = refusal or 0.0
        if refusal is None:
            target = w / unit * deviation
            variance = float(_variances(target[None] ** 2, pi)[0])
            half_width = Z95 * unit * math.sqrt(variance)
            relative = _relative(variance, target, float(pi.sum()))
        results.append(
            Reusability(float(share), float(probability.sum()), effective, half_width, relative, refusal)
        )
    return results


def _weight_outside(weight_outside: ArrayLike | None, n_targets: int) -> Floats:
    if weight_outside is None:
        return np.zeros(n_targets)
    beyond = np.atleast_1d(finite("weight_outside", weight_outside))
    if beyond.shape != (n_targets,) or (beyond < 0).any():
        raise ValueError(f"weight_outside must be {n_targets} numbers >= 0, got {beyond.tolist()}")
    return beyond


def _no_reuse(share: float) -> Refusal:
    return Refusal(
        f"{share:.1%} of the weight lies on documents that could not be judged: the value would be wrong by an "
        "unknown amount; top the judgments up"
    )


def _relative(variance: float, target: Floats, count: float) -> float | Refusal:
    """Return the variance over that of the target's own design of `count` expected judgments."""
    own = inclusion_probabilities(np.abs(target), count)
    least = float(_variances(target[None] ** 2, own)[0])
    if least == 0:
        if variance == 0:
            return 1.0
        return Refusal("as many judgments in a design of its own would judge all the target weighs")
    return variance / least


# -- topping up ---------------------------------------------------------------------------------------------


def top_up(
    frame_weights: ArrayLike,
    inclusion_probability: ArrayLike,
    spread: ArrayLike,
    *,
    half_width: float | None = None,
    budget: float | None = None,
) -> TopUp:
    """Return the probabilities of a nested second draw: the fewest expected new judgments for a half-width, or
    the best use of `budget` expected new judgments. Give one of the two.

    ``pi_new = min(1, max(pi_old, c a))``, a = sqrt(sum over targets of w^2) s, with the least c for which the
    forecast of every target is at most `half_width` (or the largest whose sum pi_new - pi_old is at most the
    budget). For one target nothing cheaper exists: minimising the sum of pi under a bound on
    ``sum (1-pi)/pi a^2`` within pi_old <= pi <= 1 is a convex problem, and its solution has this form (the
    derivative 1 - lambda a^2/pi^2 is 0 inside the bounds). For several targets it minimises the sum of variances.

    The spread must come from what was known before judging (ranks, a prior), not from the judgments that are
    to be kept: probabilities that depend on those labels make the estimate biased.

    Source: Neyman (1934) allocation with a floor at what is already spent; docs/methods/derivations/sampling.md,
    section 8.2.

    Raises
    ------
    IdenticalSystemsError
        No target weighs anything.
    UnsupportedWeightError
        A spread of 0 where a target has weight.
    ValueError
        Not exactly one aim, an aim that is not above 0 and finite, or input out of bounds.
    """
    rows, pi, deviation = _frame(frame_weights, inclusion_probability, spread)
    if (half_width is None) == (budget is None):
        raise ValueError("give either half_width or budget, got both or none of them")
    aim = half_width if half_width is not None else budget
    if aim is None or not 0 < aim < math.inf:
        name = "half_width" if half_width is not None else "budget"
        raise ValueError(f"{name} must be above 0 and finite, got {aim}")
    matters = rows.any(axis=0)
    if not matters.any():
        raise IdenticalSystemsError(
            "no target weighs anything: every value is 0 and there is nothing to judge"
        )

    targets, old = (rows * deviation)[:, matters], pi[matters]
    unit = float(np.abs(targets).max())
    squares, size = (targets / unit) ** 2, np.hypot.reduce(targets / unit, axis=0)
    if not size.min() > 0:
        raise UnsupportedWeightError(f"weight times spread must be above 0 as a double, got {size.min()}")
    room, note = float((1 - old).sum()), ""
    if budget is not None:
        new = np.ones(old.size) if budget >= room else _spend(size, old, budget)
        if budget > room:
            note = f"the budget of {budget:g} is more than is left to judge ({room:g})"
    else:
        new = _reach(size, old, squares, (aim / Z95 / unit) ** 2)
    after = pi.copy()
    after[matters] = new

    before = _variances(squares, old)
    nothing = np.zeros(rows.shape[0])
    shares = _share_outside(rows, pi, nothing)
    return TopUp(
        inclusion_probability=after,
        expected_new_judgments=float((new - old).sum()),
        half_width_before=tuple(
            _no_reuse(float(share)) if share > 0 else Z95 * unit * math.sqrt(variance)
            for share, variance in zip(shares, before, strict=True)
        ),
        half_width_after=tuple((Z95 * unit * np.sqrt(_variances(squares, new))).tolist()),
        share_outside_before=tuple(shares.tolist()),
        share_outside_after=tuple(_share_outside(rows, after, nothing).tolist()),
        warning=note,
    )


def _raise(size: Floats, old: Floats, scale: float) -> Floats:
    with np.errstate(over="ignore"):
        raised: Floats = np.minimum(1.0, np.maximum(old, scale * size))
    return raised


def _reach(size: Floats, old: Floats, squares: Floats, variance: float) -> Floats:
    """Return the probabilities of the least scale at which every target's variance is at most `variance`."""

    def is_enough(scale: float) -> bool:
        return bool(_variances(squares, _raise(size, old, scale)).max() <= variance)

    if bool(_variances(squares, old).max() <= variance):
        return old
    return _raise(size, old, _border(is_enough, 1 / size.min())[1])


def _spend(size: Floats, old: Floats, budget: float) -> Floats:
    """Return the probabilities of the largest scale that costs at most `budget`."""

    def too_dear(scale: float) -> bool:
        return bool((_raise(size, old, scale) - old).sum() > budget)

    return _raise(size, old, _border(too_dear, 1 / size.min())[0])


def _border(holds: Callable[[float], bool], high: float) -> tuple[float, float]:
    """Return neighbouring scales (low, high): the condition, which large scales fulfil, holds at high only."""
    low = high / 2
    for _ in range(STEPS):
        if not holds(low):
            break
        low, high = low / 2, low
    while high - low > 1e-14 * high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
