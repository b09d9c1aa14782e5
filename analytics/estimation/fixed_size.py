"""Estimates from a draw of fixed size (Pareto, conditional Poisson), plain or within strata such as topics.

Inclusion probabilities of a Pareto draw hold closely, not exactly; the bias this leaves is far below the
standard error (tests/analytics/test_fixed_size.py integrates it). Arrays hold the *drawn* items.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import integers
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Ints,
    Refusal,
    estimates,
    few_or_alike,
)
from analytics.estimation.estimators import sample
from analytics.estimation.targets import TargetWeights, Weights, not_zero

MOST_NAMED = 5  # strata that a refusal names
NEARLY_HALF = 0.49  # an item with half of its stratum's sum of 1 - pi has no solution, and near it a slow one
MOST_ROUNDS = 200


@dataclass(frozen=True)
class _Strata:
    """The strata of the uncertain drawn items (pi < 1): their places, and a stratum 0, 1, ... for each."""

    places: Ints
    index: Ints
    names: Ints  # [stratum], as given; of joined strata the first
    count: Ints  # [stratum]
    joined: NDArray[np.bool_]  # [stratum]


def fixed_size(
    weights: Weights,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    join_strata: bool = False,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return the difference (or HT) estimate of a draw of fixed size, or of one such draw in every stratum.

    Assumption and arguments as in `analytics.estimation.estimators.difference_estimator`, the draw being Pareto or
    conditional Poisson; `strata` (integers, one per drawn item: its topic) if a fixed number was drawn within
    each. The variance is Hajek's, ``m/(m-1) sum (1-pi) (z-B)^2`` with z = e/pi, e the error of the prediction, B the
    (1-pi)-weighted mean of z and m the drawn items with pi < 1; in strata, which are small, the sum of theirs with the
    fixed point of Deville and Tille in place of m/(m-1), which is up to an eighth too small for runs the sizes were not
    made for. t with Satterthwaite's degrees of freedom ``V^2 / sum V_h^2/(m_h - 1)``, for one stratum m - 1. A stratum
    with one uncertain item has no variance of its own: refused by name, or with `join_strata` joined to the next
    stratum in order (the last to the one before). Joined strata take 1 for the factor 1 - pi: their variance is then
    too large by the difference of their totals, never too small.

    Source: Hajek (1964); Deville and Tille (2005), Variance approximation under balanced sampling; Cochran (1977),
    sections 5.4 (degrees of freedom) and 5A.12 (joining strata).
    """
    drawn = sample(
        weights,
        utility,
        inclusion_probability,
        prior=prior,
        prior_total=prior_total,
        label_variance=label_variance,
    )
    pi = drawn.probability
    members = np.zeros(pi.size, dtype=np.int64) if strata is None else integers("strata", strata)
    if members.shape != pi.shape:
        raise ValueError(f"strata must have length {pi.size}, got {members.size}")

    cells = _merge_small_strata(_uncertain(members, pi)) if join_strata else _uncertain(members, pi)
    share = _shares(pi, cells, stratified=strata is not None)
    variance, spread = _variances(drawn.targets, drawn.surprise, cells, share)
    counted, noise = drawn.targets.sums(
        (not_zero, np.stack([np.ones(pi.size), pi < 1], axis=1)), (np.square, drawn.noise)
    )
    n, n_uncertain = np.rint(counted).astype(np.int64).T
    single = _single_items(cells, stratified=strata is not None)
    without = {} if single is None else dict.fromkeys(range(n.size), single)
    alike = (fewest > 0) & (variance == 0) & (n_uncertain > 0) & (single is None)
    parts = {"drawing": variance, "label noise": np.maximum(0.0, noise)}
    return estimates(
        drawn.values(),
        {name: parts[name] for name in drawn.sources},
        degrees_of_freedom=np.divide(variance**2, spread, out=np.full(n.size, np.inf), where=spread > 0),
        n=n,
        refusals=without | few_or_alike(n, alike, fewest),
    )


def _uncertain(members: Ints, pi: Floats) -> _Strata:
    places = np.flatnonzero(pi < 1)
    names, index = np.unique(members[places], return_inverse=True)
    count = np.bincount(index, minlength=names.size)
    return _Strata(places, index, names, count, np.zeros(names.size, dtype=np.bool_))


def _merge_small_strata(strata: _Strata) -> _Strata:
    """Return strata of at least 2 items (if there are 2): a poor one is joined to the next, the last backwards."""
    group, new, held = np.zeros(strata.count.size, dtype=np.int64), 0, 0
    for stratum, count in enumerate(strata.count):
        if held >= 2:
            new, held = new + 1, 0
        group[stratum] = new
        held += int(count)
    if held < 2 and new > 0:
        group[group == new] = new - 1
    index = group[strata.index]
    first = np.unique(group, return_index=True)[1]
    joined = np.bincount(group, minlength=first.size) > 1
    return _Strata(strata.places, index, strata.names[first], np.bincount(index), joined)


def _single_items(strata: _Strata, *, stratified: bool) -> Refusal | None:
    single = strata.names[strata.count == 1].tolist()
    if not single:
        return None
    if not stratified:
        return Refusal("1 drawn item has an inclusion probability below 1; at least 2 are needed", 1)
    shown = ", ".join(str(name) for name in single[:MOST_NAMED])
    more = f" and {len(single) - MOST_NAMED} more" if len(single) > MOST_NAMED else ""
    return Refusal(
        f"strata with 1 uncertain drawn item have no variance of their own: {shown}{more}; "
        "draw 2 of each, or join them",
        len(single),
    )


def _variances(
    targets: TargetWeights, surprise: Floats, strata: _Strata, share: Floats
) -> tuple[Floats, Floats]:
    """Return by target the sum of the strata's variances around their centres, and ``sum V_h^2/(m_h - 1)``."""
    freedom = np.maximum(1, strata.count - 1)
    z = targets.over(strata.places).times(surprise[strata.places])
    variance, spread = np.zeros((2, len(targets)))
    for part, by_stratum in z.spreads(share, strata.index, strata.count.size):
        variance[part], spread[part] = by_stratum.sum(axis=1), (by_stratum**2 / freedom).sum(axis=1)
    return variance, spread


def _shares(pi: Floats, strata: _Strata, *, stratified: bool) -> Floats:
    """Return Hajek's ``m/(m-1) (1 - pi)``; in strata c with ``c - c^2/sum c = 1 - pi`` where there is one.

    For equal pi both are the same. Where a stratum has few items of unequal pi, an item of small pi moves the centre
    most, and needs more than the common factor to make up for it.
    """
    rest = np.where(strata.joined[strata.index], 1.0, 1 - pi[strata.places])
    n = strata.count.size
    factor = strata.count / np.maximum(1, strata.count - 1)
    largest = np.zeros(n)
    np.maximum.at(largest, strata.index, rest)
    solvable = (largest < NEARLY_HALF * np.bincount(strata.index, rest, n))[strata.index]
    share = np.asarray(rest * factor[strata.index])
    if not stratified:
        return share
    for _ in range(MOST_ROUNDS):
        total = np.bincount(strata.index, share, n)[strata.index]
        better = np.where(solvable, rest + share**2 / total, share)
        if np.all(np.abs(better - share) <= 1e-12 * better):
            return better
        share = better
    return share
