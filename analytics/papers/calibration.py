"""How much a bronze label tells about the gold grade, from an audit of the very items or from two rates.

`audit_counts[true_grade, label]` counts the audited items, `label_totals[label]` all items with that bronze label.
Within a label, the audited items must be a simple random sample (its size may have been chosen by label).
The estimators that use such an audit are in `experiments.papers.calibration`.
Source: docs/methods/derivations/noise-correction.md, sections 1.3, 1.4 and 4.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Floats, Refusal
from analytics.papers.refusals import rate


@dataclass(frozen=True)
class LabelAudit:
    counts: Floats  # [true, label]
    totals: Floats  # N_l
    sizes: Floats  # n_l
    gains: Floats

    @property
    def shares(self) -> Floats:
        """h_l."""
        return np.asarray(self.totals / self.totals.sum())

    @property
    def given_label(self) -> Floats:
        """p_{g|l}, [true, label]; 0 for labels nobody gave."""
        return np.asarray(
            np.divide(self.counts, self.sizes, out=np.zeros_like(self.counts), where=self.sizes > 0)
        )

    def smoothed_probabilities(self) -> Floats:
        """p_{g|l} with 1/2 added to every cell, for variances."""
        return np.asarray((self.counts + 0.5) / (self.sizes + self.counts.shape[0] / 2))


# -- validation ---------------------------------------------------------------------------------------------


def label_audit(
    audit_counts: ArrayLike, label_totals: ArrayLike, gains: ArrayLike | None = None
) -> LabelAudit:
    counts = finite("audit_counts", audit_counts)
    if counts.ndim != 2 or min(counts.shape) < 2 or (counts < 0).any():
        raise ValueError(f"audit_counts must be [true, label] and >= 0, got shape {counts.shape}")
    totals = finite("label_totals", label_totals, (counts.shape[1],))
    sizes = counts.sum(axis=0)
    if (totals < sizes).any() or totals.sum() <= 0:
        raise ValueError(
            f"label_totals must be at least the audited numbers {sizes.tolist()}, got {totals.tolist()}"
        )
    v = np.zeros(counts.shape[0]) if gains is None else finite("gains", gains, (counts.shape[0],))
    return LabelAudit(counts, totals, sizes, v)


def unaudited_refusal(audit: LabelAudit, least: int) -> Refusal | None:
    short = np.flatnonzero((audit.totals > 0) & (audit.sizes < np.minimum(least, audit.totals)))
    if short.size == 0:
        return None
    label, size = int(short[0]), int(audit.sizes[short[0]])
    return Refusal(
        f"{size} audited items with label {label}, which {int(audit.totals[label])} items have; "
        f"at least {least} are needed",
        int((np.minimum(least, audit.totals) - audit.sizes)[short].sum()),
    )


# -- from an audit ------------------------------------------------------------------------------------------


def informativeness(audit_counts: ArrayLike, label_totals: ArrayLike, gains: ArrayLike) -> float | Refusal:
    """Return K, the share of the gain's variance that the bronze label explains (two grades: corr^2).

    A label is worth buying only for its K: bronze and gold together have (1 - K) of the gold's variance.
    """
    audit = label_audit(audit_counts, label_totals, gains)
    refused = unaudited_refusal(audit, 1)
    if refused is not None:
        return refused
    h, v = audit.shares, audit.gains
    means, squares = v @ audit.given_label, v**2 @ audit.given_label
    total = float(h @ squares) - float(h @ means) ** 2
    if total <= 0:
        return Refusal("all audited items have one gain, so there is nothing to explain", FEWEST_ITEMS)
    return min(1.0, max(0.0, 1 - float(h @ (squares - means**2)) / total))


# -- from two rates -----------------------------------------------------------------------------------------


def label_informativeness(prevalence: float, sensitivity: float, specificity: float) -> float:
    """Return ``K = pq D^2 / (pi(1-pi))``, corr^2 of gold and bronze, pi the share of bronze "relevant".

    >>> round(label_informativeness(.8, .73, .80), 6)
    0.191558
    """
    p = rate("prevalence", prevalence)
    m_r, m_n = rate("sensitivity", sensitivity), rate("specificity", specificity)
    positive = p * m_r + (1 - p) * (1 - m_n)
    if not 0 < positive < 1:
        raise ValueError(f"the labels must vary, got a share of {positive} relevant ones")
    return p * (1 - p) * (m_r + m_n - 1) ** 2 / (positive * (1 - positive))
