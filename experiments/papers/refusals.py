"""When an audit may not correct: labels that no share explains, and an audit that is mixed otherwise."""

import math

from numpy.typing import ArrayLike
from scipy import stats

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Refusal
from analytics.papers.refusals import check_hits, errors_outside, rate, with_one_more


def feasibility_z(
    j: float,
    j_variance: float,
    relevant: tuple[float, float],
    not_relevant: tuple[float, float],
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
        check_hits(name, pair)
        if pair[1] + pseudo_count <= 0:
            raise ValueError(f"{name} must hold at least 1 gold label, got 0")
    if j_variance < 0:
        raise ValueError(f"j_variance must be >= 0, got {j_variance}")
    m_r, v_r = with_one_more(relevant, pseudo_count)
    m_n, v_n = with_one_more(not_relevant, pseudo_count)
    return errors_outside(j, j_variance, (m_r, v_r), (m_n, v_n))


def label_mix_refusal(audited_labels: ArrayLike, label_shares: ArrayLike) -> Refusal | None:
    """Return the refusal if the audit's label mix differs from the population's (chi-square, 5 %), or None.

    `audited_labels[label]` counts the audited items by bronze label, `label_shares[label]` are the shares in the
    population (known). Ask it only for an audit without recorded probabilities: a different mix is then either
    bad luck or an unknown selection, and the two give different answers (eBay .805 or .521).

    >>> label_mix_refusal([83, 60], [.3657, .6343]).reason[:63]
    "the audit's labels are not mixed as the population's (z = -5.33"
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
