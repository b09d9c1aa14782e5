"""Estimates from a draw of fixed size (Pareto, conditional Poisson), plain or within strata such as topics.

Inclusion probabilities of a Pareto draw hold closely, not exactly; the bias this leaves is far below the
standard error (tests/analytics/test_fixed_size.py integrates it). Arrays hold the *drawn* items.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimators import (
    FEWEST_ITEMS,
    Estimate,
    Floats,
    Refusal,
    estimate,
    few_items_warning,
    finite,
    label_variances,
    no_spread,
    prior_rows,
    probabilities,
    too_few,
    weight_rows,
)
from analytics.labels import Ints, integers

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


def fixed_size_variance(error: ArrayLike, inclusion_probability: ArrayLike) -> float:
    """Return Hajek's variance of ``sum e/pi`` for a draw of fixed size (Pareto, conditional Poisson).

    ``m/(m-1) sum (1-pi) (z-B)^2`` with z = e/pi, B the (1-pi)-weighted mean of z and m the drawn items with
    pi < 1. Raise ValueError if exactly one item is uncertain: its variance cannot be estimated.

    Source: Hajek (1964); methods/sampling.md, section 1.
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


def fixed_size(
    weights: ArrayLike,
    utility: ArrayLike,
    inclusion_probability: ArrayLike,
    *,
    strata: ArrayLike | None = None,
    join_strata: bool = False,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> list[Estimate | Refusal]:
    """Return the difference (or HT) estimate of a draw of fixed size, or of one such draw in every stratum.

    Assumption and arguments as in `analytics.estimators.difference_estimator`, the draw being Pareto or
    conditional Poisson; `strata` (integers, one per drawn item: its topic) if a fixed number was drawn within
    each. The variance is `fixed_size_variance`; in strata, which are small, the sum of theirs with the fixed point of
    Deville and Tille in place of m/(m-1), which is up to an eighth too small for runs the sizes were not made for. t
    with Satterthwaite's degrees of freedom ``V^2 / sum V_h^2/(m_h - 1)``, for one stratum m - 1. A stratum with one
    uncertain item has no variance of its own: refused by name, or with `join_strata` joined to the next stratum in
    order (the last to the one before). Joined strata take 1 for the factor 1 - pi: their variance is then too large by
    the difference of their totals, never too small.

    Source: Hajek (1964); Deville and Tille (2005), Variance approximation under balanced sampling; Cochran (1977),
    sections 5.4 (degrees of freedom) and 5A.12 (joining strata).
    """
    rows = weight_rows(weights)
    n_items = rows.shape[1]
    u = finite("utility", utility, (n_items,))
    pi = probabilities("inclusion_probability", inclusion_probability, n_items)
    f, totals = prior_rows(prior, prior_total, (rows.shape[0], n_items))
    nu, sources = label_variances(label_variance, n_items)
    members = np.zeros(n_items, dtype=np.int64) if strata is None else integers("strata", strata)
    if members.shape != (n_items,):
        raise ValueError(f"strata must have length {n_items}, got {members.size}")

    drawn = _uncertain(members, pi)
    if join_strata:
        drawn = _joined(drawn)
    refused = _single_items(drawn, stratified=strata is not None)
    share = _shares(pi, drawn, stratified=strata is not None)
    results: list[Estimate | Refusal] = []
    for w, total in zip(rows, totals, strict=True):
        used = int(np.count_nonzero(w))
        problem = too_few(used, fewest) if used < fewest else refused
        if problem is not None:
            results.append(problem)
            continue
        error = w * (u - f)
        by_stratum = _stratum_variances(error, pi, drawn, share)
        if fewest and not by_stratum.any() and (pi[w != 0] < 1).any():
            results.append(no_spread(used))
            continue
        variance = float(by_stratum.sum())
        spread = float((by_stratum**2 / np.maximum(1, drawn.count - 1)).sum())
        parts = [("drawing", variance), ("label noise", max(0.0, float((nu * w**2 / pi).sum())))]
        results.append(
            estimate(
                float(total + (error / pi).sum()),
                sum(part for _, part in parts),
                degrees_of_freedom=variance**2 / spread if spread > 0 else None,
                n=used,
                sources=sources,
                components=parts[: len(sources)],
                warning=few_items_warning(used),
            )
        )
    return results


def _uncertain(members: Ints, pi: Floats) -> _Strata:
    places = np.flatnonzero(pi < 1)
    names, index = np.unique(members[places], return_inverse=True)
    count = np.bincount(index, minlength=names.size)
    return _Strata(places, index, names, count, np.zeros(names.size, dtype=np.bool_))


def _joined(strata: _Strata) -> _Strata:
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


def _stratum_variances(error: Floats, pi: Floats, strata: _Strata, share: Floats) -> Floats:
    """Return the variance of every stratum around its centre, all at once."""
    z, n = error[strata.places] / pi[strata.places], strata.count.size
    centre = np.bincount(strata.index, share * z, n) / np.bincount(strata.index, share, n)
    return np.asarray(np.bincount(strata.index, share * (z - centre[strata.index]) ** 2, n))


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
