"""How far a number may be off for reasons that no sampling error shows: a range, never an interval.

Gold from elsewhere, or gold chosen without recorded probabilities, gives two ends and the assumption behind each,
and says how much local gold would give an interval instead. Drift of a judge between two rounds, which one audit
cannot see, is turned round: how much drift would change the verdict?
Source: docs/methods/derivations/real-judges.md, section 2; docs/methods/derivations/noise-correction.md, section 2.3.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Refusal
from analytics.estimation.more_gold import gold_labels_for
from analytics.papers.refusals import rate

RAW_ASSUMES = "the judges make no errors, or their errors cancel"
INVERSE_ASSUMES = (
    "the judges err on these documents as on the gold documents, and alike on all documents of one grade; on real "
    "judges this roughly doubles a difference"
)


@dataclass(frozen=True)
class SensitivityRange:
    """Two ends with what each assumes; the truth may lie outside. No probability belongs to it.

    `local_gold` is how many gold labels, drawn at random among these very items, would give an interval of
    `half_width`.
    """

    low: float
    high: float
    raw: float
    inverse: float
    raw_assumes: str
    inverse_assumes: str
    local_gold: int
    half_width: float

    @property
    def sign_known(self) -> bool:
        """Whether both ends are on the same side of 0. It is no test."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class DriftVerdict:
    """What drift of the judges between two rounds would do to a corrected difference with one audit.

    `significant` without drift, by the naive test, which is exact if the rates are the same in both rounds.
    `changing_sd`: SD of mR and mN between rounds from which it is no longer significant; None if it is not.
    `explaining_sensitivity`, `explaining_specificity`: the change of one rate that would explain the whole
    difference, None where no change within [0, 1] could.
    `changing_sensitivity`: the change of mR from which the verdict is another.
    """

    significant: bool
    p_value: float
    changing_sd: float | None
    explaining_sensitivity: float | None
    explaining_specificity: float | None
    changing_sensitivity: float | None
    words: str


# -- without audit probabilities ----------------------------------------------------------------------------


def cautious_residual_variance(weights: ArrayLike, gains: ArrayLike) -> float:
    """Return the largest S^2 that w r can have, r the gold gain minus any guess within the gains' span: for planning.

    ``mean(w^2) span^2 / 4``: a gain of two equally likely ends. Real residuals have about half of it or less.
    """
    w, v = finite("weights", weights), finite("gains", gains)
    if w.ndim != 1 or w.size == 0 or v.size < 2:
        raise ValueError(f"weights must be flat and not empty, gains at least 2, got {w.shape} and {v.size}")
    return float((w**2).mean()) * float(np.ptp(v)) ** 2 / 4


def sensitivity_range(
    raw: float,
    inverse: float | Refusal,
    *,
    n_items: int,
    residual_variance: float,
    half_width: float | None = None,
) -> SensitivityRange | Refusal:
    """Return raw and J^-1 as the ends of a range, and the local gold labels that an interval needs.

    `n_items` items with non-zero weight, `residual_variance` S^2 of w r over them (`cautious_residual_variance`
    without any local gold). `half_width` None: half the range, or half the raw number where the ends agree.
    Refused if the inverse is: then there is one end only, and no gold from here.
    """
    if isinstance(inverse, Refusal):
        return Refusal(
            f"only the raw number, without any statement about its error: {inverse.reason}", inverse.needed
        )
    low, high = min(raw, inverse), max(raw, inverse)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"raw and inverse must be finite, got {raw} and {inverse}")
    h = half_width if half_width is not None else (high - low) / 2 or abs(raw) / 2
    if not h > 0:
        raise ValueError(f"half_width must be above 0, got {h}")
    needed = gold_labels_for(h, n_items, residual_variance)
    return SensitivityRange(low, high, raw, inverse, RAW_ASSUMES, INVERSE_ASSUMES, needed, h)


# -- drift between rounds -----------------------------------------------------------------------------------


def drift_variance(relevant_share: float, drift_sd: float) -> float:
    """Return ``2 s_m^2 (m_G^2 + (1-m_G)^2)``: what drift of SD s_m in mR and mN adds to V(ja - jb).

    Assumption: both rates differ from the audit's independently in both rounds, with mean 0.
    """
    m = rate("relevant_share", relevant_share)
    if drift_sd < 0:
        raise ValueError(f"drift_sd must be >= 0, got {drift_sd}")
    return 2 * drift_sd**2 * (m**2 + (1 - m) ** 2)


def drift_that_changes(
    difference: float,
    difference_variance: float,
    relevant_share: float,
    *,
    sensitivity: float,
    specificity: float,
    level: float = 0.05,
) -> DriftVerdict:
    """Return how much drift would change the verdict on a difference that one shared audit corrects.

    `difference` is ja - jb and `difference_variance` V(ja - jb), of raw bronze means in [0, 1]; `relevant_share`
    the corrected m_G (of both, averaged). Solved in closed form: ``s_m^2 = ((ja-jb)^2/z^2 - V)/(2(m^2 + (1-m)^2))``; a
    change d of mR alone moves ja - jb by m_G d, one of mN by (1 - m_G) d.
    Ask "same judges, same period, blind to the system?" and give every round an audit otherwise.
    """
    check_difference(difference, difference_variance)
    m = rate("relevant_share", relevant_share)
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    z = float(scipy.stats.norm.isf(level / 2))
    error, size = math.sqrt(difference_variance), abs(difference)
    p = float(2 * scipy.stats.norm.sf(size / error))
    significant = size > z * error
    changing = math.sqrt(max(0.0, ((size / z) ** 2 - difference_variance) / drift_variance(m, 1.0)))
    room = {"sensitivity": rate("sensitivity", sensitivity), "specificity": rate("specificity", specificity)}
    explaining_r = _possible(size, m, room["sensitivity"])
    explaining_n = _possible(size, 1 - m, room["specificity"])
    verdict = _possible(abs(size - z * error), m, room["sensitivity"])
    return DriftVerdict(
        significant,
        p,
        changing if significant else None,
        explaining_r,
        explaining_n,
        verdict,
        _words(significant, changing, verdict, explaining_r),
    )


def _possible(distance: float, share: float, current: float) -> float | None:
    """Return the change of a rate that moves j by `distance`, if the rate stays within [0, 1] some way round."""
    if share * max(current, 1 - current) < distance:
        return None
    return distance / share if share > 0 else 0.0


def _words(significant: bool, changing_sd: float, changing: float | None, explaining: float | None) -> str:
    if not significant:
        how = (
            "no change of the sensitivity"
            if changing is None
            else f"a change of the sensitivity by {changing:.4f}"
        )
        return f"Not significant without drift; {how} between the rounds would make it so."
    whole = "" if explaining is None else f" A change of {explaining:.4f} would explain all of it."
    alone = "" if changing is None else f", or if the sensitivity alone changed by {changing:.4f}"
    return (
        f"No longer significant if the judges' rates drift by {changing_sd:.4f} (standard deviation) between the "
        f"rounds{alone}.{whole}"
    )


def check_difference(difference: float, variance: float) -> None:
    if not (math.isfinite(difference) and abs(difference) <= 1):
        raise ValueError(f"difference must be in [-1, 1], got {difference}")
    if not (math.isfinite(variance) and variance > 0):
        raise ValueError(f"difference_variance must be above 0, got {variance}")
