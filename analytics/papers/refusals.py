"""When a number corrected by gold may not be shown: the reason, and how much gold is missing.

`relevant` = (labels "relevant", all) among gold relevant documents, `not_relevant` = (labels "not relevant",
all) among gold non-relevant ones; `counts[true_grade, given_grade]` for more grades. Weighted audits: effective counts.
Source of everything here: docs/methods/derivations/noise-correction.md, section 6.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Floats, Refusal

DIRICHLET_DRAWS = 2000


# -- validation ---------------------------------------------------------------------------------------------


def rate(name: str, value: float) -> float:
    """Return a number in [0, 1]. Raise ValueError otherwise."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def check_hits(name: str, pair: tuple[float, float]) -> None:
    """Raise ValueError unless 0 <= hits <= n."""
    hits, n = pair
    if not 0 <= hits <= n:
        raise ValueError(f"{name} must hold 0 <= hits <= n, got {hits} of {n}")


def count_table(counts: ArrayLike) -> Floats:
    """Return counts[true, given] as floats. Raise ValueError if there are fewer labels than grades."""
    table = finite("counts", counts)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < table.shape[0]:
        raise ValueError(f"counts must be [true, given] with given >= true >= 2, got shape {table.shape}")
    if (table < 0).any():
        raise ValueError(f"counts must be >= 0, got {table.min()}")
    return table


# -- refusals -----------------------------------------------------------------------------------------------


def gold_to_bound(sensitivity: float, specificity: float) -> int:
    """Return ``z^2 (mR(1-mR) + mN(1-mN)) / D^2``: gold labels per grade just to bound the interval.

    Ten times that many make the interval useful. Raise ValueError if D <= 0: no amount would do.

    >>> [gold_to_bound(m, m) for m in (.8, .65, .6, .55)]
    [4, 20, 47, 191]
    """
    d = rate("sensitivity", sensitivity) + rate("specificity", specificity) - 1
    if d <= 0:
        raise ValueError(f"sensitivity + specificity must be above 1, got {sensitivity + specificity}")
    spread = sensitivity * (1 - sensitivity) + specificity * (1 - specificity)
    return max(1, math.ceil(Z95**2 * spread / d**2))


def missing_gold_refusal(counts: ArrayLike) -> Refusal | None:
    """Return the refusal for a grade without any gold label, or None."""
    totals = count_table(counts).sum(axis=1)
    missing = np.flatnonzero(totals == 0)
    if missing.size == 0:
        return None
    return Refusal(f"no gold label of true grade {int(missing[0])}", FEWEST_ITEMS * int(missing.size))


def separation_refusal(counts: ArrayLike, rng: np.random.Generator | None = None) -> Refusal | None:
    """Return why the labels do not separate the grades well enough to be inverted, or None.

    Two grades: ``D / SE(D) < 1.96`` with one hit and one miss added to each row (Fieller is unbounded). More:
    ``Pr(det J > 0) < .975`` over draws Dirichlet(count + 1/2). More labels than grades: det(J J^T), which is
    never negative, says nothing, so that only a grade without gold is refused. `rng` None: seed 0.
    """
    table = count_table(counts)
    found = missing_gold_refusal(table)
    if found is not None or table.shape[0] != table.shape[1]:
        return found
    if table.shape[0] == 2:
        return binary_separation((table[1, 1], table[1].sum()), (table[0, 0], table[0].sum()))
    generator = np.random.default_rng(0) if rng is None else rng
    drawn = np.stack([generator.dirichlet(row + 0.5, DIRICHLET_DRAWS) for row in table], axis=1)
    return determinant_refusal(np.linalg.det(drawn), float(table.sum()))


def determinant_refusal(determinants: Floats, n: float) -> Refusal | None:
    """Return the refusal if fewer than 97.5 % of drawn determinants are positive; n gold labels in all."""
    positive = float((determinants > 0).mean())
    if positive >= 0.975:
        return None
    ratio = float(determinants.mean() / determinants.std())
    # the spread of the determinant falls with the root of the gold labels
    needed = math.ceil(n * ((Z95 / ratio) ** 2 - 1)) if ratio > 0.2 else None
    words = f"the labels hardly separate the grades: Pr(det J > 0) = {positive:.3f} < .975"
    return Refusal(
        words if needed is None else f"{words}; about {needed} more gold labels are needed", needed
    )


def binary_separation(relevant: tuple[float, float], not_relevant: tuple[float, float]) -> Refusal | None:
    """Return the refusal for ``D / SE(D) < 1.96``, rates with one hit and one miss added, or None."""
    (m_r, v_r), (m_n, v_n) = with_one_more(relevant), with_one_more(not_relevant)
    d, error = m_r + m_n - 1, math.sqrt(v_r + v_n)
    if d / error >= Z95:
        return None
    if d <= 0:
        return Refusal(f"labels are no better than chance: sensitivity + specificity - 1 = {d:.3f}")
    wanted = gold_to_bound(m_r, m_n)
    missing = max(1, math.ceil(sum(max(0.0, wanted - n) for _, n in (relevant, not_relevant))))
    return Refusal(
        f"sensitivity + specificity - 1 = {d:.3f} is less than 1.96 standard errors ({error:.3f}) from 0: the "
        f"interval is unbounded; about {wanted} gold labels of each grade just to bound it, ten times that to "
        "be useful",
        missing,
    )


def with_one_more(counted: tuple[float, float], pseudo_count: float = 1.0) -> tuple[float, float]:
    """Return the rate ``(x + 1)/(n + 2)`` and its binomial variance over n + 2."""
    hits, n = counted
    size = n + 2 * pseudo_count
    m = (hits + pseudo_count) / size
    return m, m * (1 - m) / size


def errors_outside(
    j: float, j_variance: float, relevant: tuple[float, float], not_relevant: tuple[float, float]
) -> float:
    """Return by how many standard errors j lies outside [1 - mN, mR]; 0 inside, above: > 0, below: < 0.

    Outside, no share of relevant documents gives such labels. `relevant` and `not_relevant` are (rate, variance) of the
    sensitivity and of the specificity.
    """
    above, below = j - relevant[0], 1 - not_relevant[0] - j
    if max(above, below) <= 0:
        return 0.0
    distance, variance = (above, relevant[1]) if above >= below else (-below, not_relevant[1])
    error = math.sqrt(j_variance + variance)
    return distance / error if error > 0 else math.copysign(math.inf, distance)


def infeasible_refusal(z: float, j: float, sensitivity: float, specificity: float) -> Refusal | None:
    """Return the refusal for j more than 1.96 standard errors outside [1 - mN, mR], or None."""
    if abs(z) <= 1.96:
        return None
    side = (
        f"above the sensitivity {sensitivity:.3f}"
        if z > 0
        else f"below 1 - specificity = {1 - specificity:.3f}"
    )
    return Refusal(
        f"j = {j:.3f} lies {side} by {abs(z):.2f} standard errors: no share of relevant documents gives such "
        "labels, so this is not the audit of these labels; gold labels of these very items are needed",
        FEWEST_ITEMS,
    )


def audit_refusal(
    means: Sequence[tuple[float, float]], relevant: tuple[float, float], not_relevant: tuple[float, float]
) -> Refusal | None:
    """Return why an audit may not correct systems of these (j, V_J), one or more, or None.

    A grade without gold; a j outside [1 - mN, mR] by more than 1.96 standard errors; ``D / SE(D) < 1.96``. One system
    that is refused refuses the difference. The score test of a difference needs no audit, and stays.
    """
    for name, pair in (("relevant", relevant), ("not_relevant", not_relevant)):
        check_hits(name, pair)
        if pair[1] == 0:
            return Refusal(f"no gold label that is {name.replace('_', ' ')}", FEWEST_ITEMS)
    rates = with_one_more(relevant), with_one_more(not_relevant)
    for j, j_variance in means:
        if j_variance < 0:
            raise ValueError(f"j_variance must be >= 0, got {j_variance}")
        z = errors_outside(rate("j", j), j_variance, *rates)
        found = infeasible_refusal(z, j, rates[0][0], rates[1][0])
        if found is not None:
            return found
    return binary_separation(relevant, not_relevant)
