"""The papers' methods for two grades: sensitivity and specificity of the labels, from the audit and the gold checks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analytics.estimation.estimate import Z95, Refusal
from analytics.papers.algorithms import parametric_bootstrap
from analytics.papers.goldberg import (
    SharedAuditDifference,
    corrected_value,
    corrected_variance,
    shared_audit_difference,
)
from analytics.papers.intervals import Interval, corrected_interval
from analytics.papers.refusals import audit_refusal
from analytics.papers.sensitivity import drift_that_changes
from analytics.services.analyses.context import Case, Side
from analytics.services.analyses.graded import SEED
from analytics.services.analyses.request import Line, refuse_line

NOT_BINARY = "the method needs two grades; choose P@k, or see Eq 17 and 18"
EQ5 = "Goldberg et al. (2017), Eq 5, 14 and 7"
SHARED = "Goldberg et al. (2017), Eq 5, with the covariance that a shared audit brings"


@dataclass(frozen=True)
class Rates:
    """Sensitivity and specificity with their variances (Eq 8), and the counts behind them."""

    relevant: tuple[float, float]  # labelled relevant, all
    not_relevant: tuple[float, float]

    @property
    def values(self) -> tuple[float, float, float, float]:
        """Return mR, V_R, mN, V_N."""
        (hits_r, n_r), (hits_n, n_n) = self.relevant, self.not_relevant
        m_r, m_n = hits_r / n_r, hits_n / n_n
        return m_r, m_r * (1 - m_r) / n_r, m_n, m_n * (1 - m_n) / n_n

    @property
    def whole_counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the counts as whole numbers of gold labels, for draws: rounded effective numbers."""
        pairs = []
        for hits, n in (self.relevant, self.not_relevant):
            size = max(1, round(n))
            pairs.append((min(size, round(hits / n * size)), size))
        return pairs[0], pairs[1]


def binary_lines(case: Case) -> Iterator[Line]:
    """Yield the lines of the difference, then those of each run."""
    rates = rates_of(case)
    yield from _difference_lines(case, rates)
    for of, side in zip(("run", "against"), case.sides, strict=True):
        yield from _run_lines(case, rates, of, side)


def rates_of(case: Case) -> Rates | Refusal:
    """Return sensitivity and specificity, or why there are none."""
    if not case.is_binary:
        return Refusal(NOT_BINARY)
    for grade, name in ((1, "relevant"), (0, "not relevant")):
        if case.counts[grade].sum() <= 0:
            return Refusal(f"no gold label “{name}”", 10)
    found = Rates(
        (float(case.counts[1, 1]), float(case.counts[1].sum())),
        (float(case.counts[0, 0]), float(case.counts[0].sum())),
    )
    m_r, _, m_n, _ = found.values
    if m_r + m_n - 1 < 1e-9:
        d = m_r + m_n - 1
        return Refusal(f"labels are no better than chance: sensitivity + specificity - 1 = {d:.3f}")
    return found


# -- one run ------------------------------------------------------------------------------------------------


def _run_lines(case: Case, rates: Rates | Refusal, of: str, side: Side) -> Iterator[Line]:
    wald = Line(of, "Sensitivity and specificity, as printed", EQ5)
    fieller = Line(
        of, "Fieller with one hit and one miss added", "Fieller (1954); for Goldberg et al. (2017), Eq 5"
    )
    drawn = Line(of, "Draws of labels and audit, quantiles", "Goldberg et al. (2017), Algorithm 1")
    if isinstance(rates, Refusal):
        yield from (refuse_line(line, rates) for line in (wald, fieller, drawn))
        return
    j, j_variance = float(np.clip(side.shares[1], 0, 1)), case.variance(side.parts[:, 1])
    yield _as_printed(wald, j, j_variance, rates, side.total)
    found = corrected_interval(j, j_variance, rates.relevant, rates.not_relevant)
    yield _interval(fieller, found, side.total)
    yield _with_drawn_counts(drawn, j, j_variance, rates, side.total)


def _as_printed(line: Line, j: float, j_variance: float, rates: Rates, total: float) -> Line:
    """Return Eq 5 with Eq 7 as they are printed, also where they give what cannot be; the note says so."""
    m_r, v_r, m_n, v_n = rates.values
    value = corrected_value(j, m_r, m_n)
    half = Z95 * math.sqrt(corrected_variance(j, j_variance, m_r, v_r, m_n, v_n))
    impossible = "Impossible: a share outside 0 to 1. The formula gives no warning; Fieller's method refuses"
    note = "" if 0 <= value <= 1 else impossible
    return replace(
        line, value=total * value, low=total * (value - half), high=total * (value + half), note=note
    )


def _with_drawn_counts(line: Line, j: float, j_variance: float, rates: Rates, total: float) -> Line:
    relevant, not_relevant = rates.whole_counts
    found = parametric_bootstrap(
        j,
        relevant=relevant,
        not_relevant=not_relevant,
        j_variance=j_variance,
        rng=np.random.default_rng(SEED),
    )
    if isinstance(found, Refusal):
        return refuse_line(line, found)
    note = "Quantiles: the standard deviation that the paper takes has no finite value"
    return replace(line, low=total * found.low, high=total * found.high, note=note)


def _interval(line: Line, found: Interval | Refusal, total: float) -> Line:
    if isinstance(found, Refusal):
        return refuse_line(line, found)
    return replace(line, low=total * found.low, high=total * found.high)


# -- the difference -----------------------------------------------------------------------------------------


def _difference_lines(case: Case, rates: Rates | Refusal) -> Iterator[Line]:
    of = "difference"
    wald = Line(of, "One audit for both runs, Wald", SHARED, one_audit=True)
    fieller = Line(of, "One audit for both runs, Fieller", SHARED, one_audit=True)
    score = Line(
        of,
        "One audit for both runs, score test",
        "with one shared audit, “no difference” is tested with the grades as given",
        one_audit=True,
    )
    eq10 = Line(of, "As if audited separately: not used", "Goldberg et al. (2017), Eq 10 and 11")
    lines = (wald, fieller, score, eq10)
    found = rates if isinstance(rates, Refusal) else shared_audit(case, rates)
    if isinstance(found, Refusal):
        yield from (refuse_line(line, found) for line in lines)
        return
    total = case.sides[0].total
    unfit = unfit_audit(case, rates) if isinstance(rates, Rates) else None
    if unfit is not None:  # the score test needs no audit, and stays
        yield from (refuse_line(line, unfit) for line in (wald, fieller))
        yield replace(score, p_value=found.score_p_value)
        yield refuse_line(eq10, unfit)
        return
    error = Z95 * found.standard_error
    yield replace(
        wald,
        value=total * found.value,
        low=total * (found.value - error),
        high=total * (found.value + error),
        p_value=found.p_value,
    )
    yield replace(_interval(fieller, found.fieller, total), p_value=found.score_p_value)
    yield replace(score, p_value=found.score_p_value)
    error = Z95 * found.eq10_standard_error
    yield replace(
        eq10,
        value=total * found.value,
        low=total * (found.value - error),
        high=total * (found.value + error),
        p_value=found.eq10_p_value,
        note=found.eq10_reason.rstrip("."),
    )


def shared_audit(case: Case, rates: Rates) -> SharedAuditDifference | Refusal:
    """Return the difference of shares of relevant documents that one audit corrects."""
    a, b = case.sides
    if not math.isclose(a.total, b.total, rel_tol=1e-6):
        reason = "the runs return different numbers of documents, so their shares are not on one scale"
        return Refusal(f"{reason}; see Eq 17 and 18")
    separate = case.variance(a.parts[:, 1]), case.variance(b.parts[:, 1])
    together = case.variance(a.parts[:, 1] - b.parts[:, 1])
    if together <= 0 or min(separate) <= 0:
        return Refusal("all topics have the same value, so their spread cannot be estimated")
    j = (float(np.clip(a.shares[1], 0, 1)), float(np.clip(b.shares[1], 0, 1)))
    return shared_audit_difference(j, together, *rates.values, separate_variances=separate)


def unfit_audit(case: Case, rates: Rates) -> Refusal | None:
    """Return why these rates may not correct the two runs: impossible shares, or hardly any separation."""
    shares = [(float(np.clip(side.shares[1], 0, 1)), case.variance(side.parts[:, 1])) for side in case.sides]
    return audit_refusal(shares, rates.relevant, rates.not_relevant)


def drift_words(case: Case) -> str:
    """Return the drift of the judges' rates between the runs that would change the verdict; empty if unknown."""
    rates = rates_of(case)
    if (
        isinstance(rates, Refusal)
        or isinstance(shared_audit(case, rates), Refusal)
        or unfit_audit(case, rates)
    ):
        return ""
    a, b = case.sides
    m_r, _, m_n, _ = rates.values
    j = float(a.shares[1]), float(b.shares[1])
    corrected = [corrected_value(float(np.clip(x, 0, 1)), m_r, m_n) for x in j]
    found = drift_that_changes(
        j[0] - j[1],
        case.variance(a.parts[:, 1] - b.parts[:, 1]),
        float(np.clip(np.mean(corrected), 0, 1)),
        sensitivity=m_r,
        specificity=m_n,
    )
    return found.words
