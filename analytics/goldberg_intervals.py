"""When a number corrected by gold may be shown, and intervals that hold with little gold.

Fieller with one hit and one miss added for two grades, Dirichlet draws for more, and the refusals.
`relevant` = (labels "relevant", all) among gold relevant documents, `not_relevant` = (labels "not relevant",
all) among gold non-relevant ones; `counts[true_grade, given_grade]` for more grades.
Source of everything here: methods/noise-correction.md, section 3.3.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analytics.estimators import FEWEST_ITEMS, Z95, Floats, Refusal, finite

DIRICHLET_DRAWS = 2000
FEWEST_DRAWS_KEPT = 100


@dataclass(frozen=True)
class Interval:
    """A 95 % interval without a point estimate; `accepted` is the share of usable draws, if it was drawn.

    `warning` says why there is no point estimate, where the interval was asked for nevertheless.
    """

    low: float
    high: float
    accepted: float = 1.0
    warning: str = ""


# -- validation ---------------------------------------------------------------------------------------------


def rate(name: str, value: float) -> float:
    """Return a number in [0, 1]. Raise ValueError otherwise."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}")
    return float(value)


def _hits(name: str, pair: tuple[int, int]) -> None:
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
        return _binary_separation((table[1, 1], table[1].sum()), (table[0, 0], table[0].sum()))
    generator = np.random.default_rng(0) if rng is None else rng
    drawn = np.stack([generator.dirichlet(row + 0.5, DIRICHLET_DRAWS) for row in table], axis=1)
    return _determinant_refusal(np.linalg.det(drawn), float(table.sum()))


def _determinant_refusal(determinants: Floats, n: float) -> Refusal | None:
    positive = float((determinants > 0).mean())
    if positive >= 0.975:
        return None
    ratio = float(determinants.mean() / determinants.std())
    # the spread of the determinant falls with the root of the gold labels
    needed = math.ceil(n * ((Z95 / ratio) ** 2 - 1)) if ratio > 0.2 else None
    words = f"the labels hardly separate the grades: Pr(det J > 0) = {positive:.3f} < .975"
    return Refusal(words if needed is None else f"{words}; about {needed} more gold labels are needed", needed)


def _binary_separation(relevant: tuple[float, float], not_relevant: tuple[float, float]) -> Refusal | None:
    (m_r, v_r), (m_n, v_n) = _with_one_more(relevant), _with_one_more(not_relevant)
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


def _with_one_more(counted: tuple[float, float], pseudo_count: float = 1.0) -> tuple[float, float]:
    hits, n = counted
    size = n + 2 * pseudo_count
    m = (hits + pseudo_count) / size
    return m, m * (1 - m) / size


def feasibility_z(
    j: float,
    j_variance: float,
    relevant: tuple[int, int],
    not_relevant: tuple[int, int],
    *,
    pseudo_count: float = 1.0,
) -> float:
    """Return by how many standard errors j lies outside [1 - mN, mR]; 0 inside, above: > 0, below: < 0.

    Outside, no share of relevant documents gives such labels. `pseudo_count` 0: plain rates.

    >>> round(feasibility_z(.513, .2596**2 / 50, (14, 50), (230, 285), pseudo_count=0), 2)
    3.18
    """
    rate("j", j)
    for name, pair in (("relevant", relevant), ("not_relevant", not_relevant)):
        _hits(name, pair)
        if pair[1] + pseudo_count <= 0:
            raise ValueError(f"{name} must hold at least 1 gold label, got 0")
    if j_variance < 0:
        raise ValueError(f"j_variance must be >= 0, got {j_variance}")
    m_r, v_r = _with_one_more(relevant, pseudo_count)
    m_n, v_n = _with_one_more(not_relevant, pseudo_count)
    return _outside(j, j_variance, (m_r, v_r), (m_n, v_n))


def _outside(
    j: float, j_variance: float, relevant: tuple[float, float], not_relevant: tuple[float, float]
) -> float:
    above, below = j - relevant[0], 1 - not_relevant[0] - j
    if max(above, below) <= 0:
        return 0.0
    distance, variance = (above, relevant[1]) if above >= below else (-below, not_relevant[1])
    error = math.sqrt(j_variance + variance)
    return distance / error if error > 0 else math.copysign(math.inf, distance)


def _infeasible(z: float, j: float, sensitivity: float, specificity: float) -> Refusal | None:
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


def label_mix_refusal(audited_labels: ArrayLike, label_shares: ArrayLike) -> Refusal | None:
    """Return the refusal if the audit's label mix differs from the population's (chi-square, 5 %), or None.

    `audited_labels[label]` counts the audited items by bronze label, `label_shares[label]` are the shares in the
    population (known). Ask it only for an audit without recorded probabilities: a different mix is then either
    bad luck or an unknown selection, and the two give different answers (eBay .805 or .521).

    >>> label_mix_refusal([83, 60], [.3657, .6343]).reason.split(":")[0]
    "the audit's labels are not mixed as the population's (z = -5.33 for the last label, p = 9.7e-08)"
    """
    counts, shares = finite("audited_labels", audited_labels), finite("label_shares", label_shares)
    if counts.ndim != 1 or counts.size < 2 or shares.shape != counts.shape or (counts < 0).any():
        raise ValueError(
            f"audited_labels must be flat counts >= 0 with one share each, got {counts.shape} and {shares.shape}"
        )
    if (shares < 0).any() or not math.isclose(float(shares.sum()), 1, abs_tol=1e-6):
        raise ValueError(f"label_shares must be >= 0 and sum to 1, got {shares.tolist()}")
    n = float(counts.sum())
    if n == 0:
        return Refusal("no audited item", FEWEST_ITEMS)
    present = shares > 0
    if (counts[~present] > 0).any():
        return Refusal("the audit has a label that the population does not have: it is another population's")
    if present.sum() < 2:
        return None
    expected = n * shares[present]
    statistic = float(((counts[present] - expected) ** 2 / expected).sum())
    p = float(stats.chi2.sf(statistic, int(present.sum()) - 1))
    if p >= 0.05:
        return None
    last = shares[-1]
    z = (counts[-1] / n - last) / math.sqrt(last * (1 - last) / n) if 0 < last < 1 else math.nan
    shown = f"z = {z:.2f} for the last label, p = {p:.1e}" if math.isfinite(z) else f"p = {p:.1e}"
    return Refusal(
        f"the audit's labels are not mixed as the population's ({shown}): it was not a simple random sample, "
        "and without recorded probabilities its rates cannot be used"
    )


# -- Fieller ------------------------------------------------------------------------------------------------


def fieller(
    numerator: float,
    numerator_variance: float,
    denominator: float,
    denominator_variance: float,
    covariance: float,
) -> Interval | Refusal:
    """Return the 95 % interval of a ratio A/B: all r with ``(A - r B)^2 <= z^2 Var(A - r B)``.

    Assumption: A and B are normal with known (co)variances. Refused where the set is not an interval: B is
    then not significantly different from 0. Source: Fieller (1954).

    >>> fieller(.05, .01, .1, .01, .005).reason
    'the denominator is within 1.96 standard errors of 0: the interval is unbounded'
    """
    variances = (numerator_variance, denominator_variance)
    if min(variances) < 0 or not all(map(math.isfinite, (numerator, denominator, covariance, *variances))):
        raise ValueError(f"variances must be >= 0 and everything finite, got {variances}, {covariance}")
    z2 = Z95**2
    a = denominator**2 - z2 * denominator_variance
    b = numerator * denominator - z2 * covariance
    c = numerator**2 - z2 * numerator_variance
    if a <= 0:
        return Refusal("the denominator is within 1.96 standard errors of 0: the interval is unbounded")
    root = math.sqrt(max(0.0, b * b - a * c))
    return Interval((b - root) / a, (b + root) / a)


def corrected_interval(
    j: float,
    j_variance: float,
    relevant: tuple[int, int],
    not_relevant: tuple[int, int],
    *,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return Fieller's interval of the corrected value with one hit and one miss added, within [0, 1].

    Never below .941 coverage in simulation. Refused when a grade has no gold, when it is unbounded (with the
    gold that is missing), misses [0, 1], or j is outside [1 - mN, mR] by more than 1.96 standard errors.
    `refuse` False: then the interval, or all of [0, 1], with the reason as its warning.
    """
    for name, pair in (("relevant", relevant), ("not_relevant", not_relevant)):
        _hits(name, pair)
        if pair[1] == 0:
            return _as_asked(
                Refusal(f"no gold label that is {name.replace('_', ' ')}", FEWEST_ITEMS), None, refuse
            )
    rates = (_with_one_more(relevant), _with_one_more(not_relevant))
    separation = _binary_separation(relevant, not_relevant)
    return _fieller_within(rate("j", j), j_variance, rates, separation, refuse)


def corrected_interval_of_shares(
    j: float,
    j_variance: float,
    relevant_shares: ArrayLike,
    not_relevant_shares: ArrayLike,
    *,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return `corrected_interval` for documents with several votes: an entry is a document's vote share.

    `relevant_shares`: share of votes "relevant" of each gold relevant document; `not_relevant_shares`: share of
    votes "not relevant" of each gold non-relevant one. Votes on one document are alike, so that the variance is
    the documents' sample variance with one share 1 and one share 0 added, over n + 2; for single votes
    that is `corrected_interval`. Source: methods/real-judges.md, section 4.

    >>> corrected_interval_of_shares(.5, .001, [1] * 43 + [0] * 16, [1] * 67 + [0] * 17) == (
    ...     corrected_interval(.5, .001, (43, 59), (67, 84)))
    True
    """
    rates, sizes = [], []
    for name, values in (
        ("relevant_shares", relevant_shares),
        ("not_relevant_shares", not_relevant_shares),
    ):
        shares = finite(name, values)
        if shares.ndim != 1 or ((shares < 0) | (shares > 1)).any():
            raise ValueError(f"{name} must be a flat array in [0, 1], got {np.asarray(values).tolist()}")
        if shares.size == 0:
            noun = name.removesuffix("_shares").replace("_", " ")
            return _as_asked(Refusal(f"no gold label that is {noun}", FEWEST_ITEMS), None, refuse)
        size = shares.size + 2
        m = (float(shares.sum()) + 1) / size
        rates.append((m, max(0.0, (float((shares**2).sum()) + 1) / size - m**2) / size))
        sizes.append(shares.size)
    separation = None
    if rates[0][0] + rates[1][0] - 1 < Z95 * math.sqrt(rates[0][1] + rates[1][1]):
        # one document is worth one vote at least: an upper bound of the gold that is missing
        separation = _binary_separation((rates[0][0] * sizes[0], sizes[0]), (rates[1][0] * sizes[1], sizes[1]))
        separation = separation or Refusal("sensitivity + specificity - 1 is within 1.96 standard errors of 0")
    return _fieller_within(rate("j", j), j_variance, (rates[0], rates[1]), separation, refuse)


def _fieller_within(
    j: float,
    j_variance: float,
    rates: tuple[tuple[float, float], tuple[float, float]],
    separation: Refusal | None,
    refuse: bool,
) -> Interval | Refusal:
    if j_variance < 0:
        raise ValueError(f"j_variance must be >= 0, got {j_variance}")
    (m_r, v_r), (m_n, v_n) = rates
    found = fieller(j - 1 + m_n, j_variance + v_n, m_r + m_n - 1, v_r + v_n, v_n)
    if isinstance(found, Refusal) or separation is not None:
        reason = separation or (found if isinstance(found, Refusal) else None)
        return _as_asked(reason, None, refuse)
    problem = _infeasible(_outside(j, j_variance, *rates), j, m_r, m_n)
    if problem is None and (m_r + m_n < 1 or found.low > 1 or found.high < 0):
        problem = Refusal("the interval lies outside [0, 1]: not the audit of these labels")
    within = Interval(min(1.0, max(0.0, found.low)), max(0.0, min(1.0, found.high)))
    return _as_asked(problem, within, refuse)


def _as_asked(problem: Refusal | None, found: Interval | None, refuse: bool) -> Interval | Refusal:
    shown = found if found is not None else Interval(0.0, 1.0)
    if problem is None:
        return shown
    return problem if refuse else Interval(shown.low, shown.high, shown.accepted, problem.reason)


# -- three or more grades -----------------------------------------------------------------------------------


def dirichlet_interval(
    counts: ArrayLike,
    label_counts: ArrayLike,
    gains: ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 4000,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return the 95 % interval of ``v . J^-T h`` for any number of grades, by Dirichlet draws.

    Rows of J ~ Dirichlet(count + 1/2), label shares h ~ Dirichlet(label count + 1/2); draws are kept if
    det J > 0 and the implied grade shares are all in [0, 1]; `accepted` is their share among all draws. Refused if
    Pr(det J > 0) < .975, if a grade has no gold, or if fewer than 100 draws are kept. `refuse` False: then
    the interval, or the range of the gains, with the reason as its warning.
    `label_counts` are of independent labels; for clusters give effective counts.
    """
    table, labels, v = finite("counts", counts), finite("label_counts", label_counts), finite("gains", gains)
    if table.shape != (v.size, v.size) or labels.shape != (v.size,) or min(table.min(), labels.min()) < 0:
        raise ValueError(
            f"counts, label_counts and gains must agree and be >= 0, got {table.shape}, {labels.shape}"
        )
    if draws < 1000:
        raise ValueError(f"draws must be at least 1000, got {draws}")
    everything = Interval(float(v.min()), float(v.max()))
    missing = missing_gold_refusal(table)
    if missing is not None:
        return _as_asked(missing, everything, refuse)

    j: Floats = np.stack([rng.dirichlet(row + 0.5, draws) for row in table], axis=1)
    h = rng.dirichlet(labels + 0.5, draws)
    determinants = np.linalg.det(j)
    problem = _determinant_refusal(determinants, float(table.sum()))
    if problem is not None and refuse:
        return problem
    usable = determinants > 0
    mix = np.linalg.solve(np.swapaxes(j[usable], 1, 2), h[usable][:, :, None])[:, :, 0]
    kept = mix[(mix >= 0).all(axis=1)]
    if len(kept) < FEWEST_DRAWS_KEPT:
        few = Refusal(f"only {len(kept)} of {draws} draws give possible shares: not the audit of these labels")
        return _as_asked(few, everything, refuse)
    low, high = np.quantile(kept @ v, [0.025, 0.975])
    return _as_asked(problem, Interval(float(low), float(high), len(kept) / draws), refuse)
