"""The tests of a log as a table, and the flags that remain after adjusting for their number."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.screening.kinds import (
    ALL_ALIKE,
    DRIFT,
    FALSE_ALARMS,
    FAST_TOPICS,
    GIVING_UP,
    MISSES,
    NO_RELATION,
    RATE,
    SERIAL,
    SPEED,
    FlagKind,
)
from analytics.screening.known import false_alarms, misses, no_relation
from analytics.screening.log import Mask, ScreeningLog
from analytics.screening.pace import fast_topics, giving_up, pace_residuals, speed
from analytics.screening.peers import Finding
from analytics.screening.sequence import all_alike, drift, rate, serial
from sampling.arrays import FloatArray

FALSE_DISCOVERIES = 0.10
NO_ORDER = "the order of presentation is unknown (imported judgments)"
NOT_RANDOM = "documents come by what they tell here: who judges early sees more that is relevant"


@dataclass(frozen=True)
class Screen:
    """One test of the log.

    Attributes
    ----------
    kind : FlagKind
        What it says, in words.
    find : callable
        From the log and the residuals of the time model what it says of each assessor.
    needs_order : bool
        It looks at the order of presentation: judgments whose order is unknown (imports) are left out.
    needs_random_order : bool
        It takes the documents of an assessor for a random part of a topic, and their order for random.
    """

    kind: FlagKind
    find: Callable[[ScreeningLog, FloatArray], Finding]
    needs_order: bool = False
    needs_random_order: bool = False

    @property
    def key(self) -> str:
        return self.kind.key


def _labels_only(find: Callable[[ScreeningLog], Finding]) -> Callable[[ScreeningLog, FloatArray], Finding]:
    return lambda log, residuals: find(log)


SCREENS = (
    Screen(SPEED, speed),
    Screen(FAST_TOPICS, fast_topics),
    Screen(GIVING_UP, giving_up, needs_order=True),
    Screen(SERIAL, _labels_only(serial), needs_order=True, needs_random_order=True),
    Screen(ALL_ALIKE, _labels_only(all_alike), needs_random_order=True),
    Screen(DRIFT, _labels_only(drift), needs_order=True, needs_random_order=True),
    Screen(RATE, _labels_only(rate), needs_random_order=True),
    Screen(NO_RELATION, _labels_only(no_relation)),
    Screen(FALSE_ALARMS, _labels_only(false_alarms)),
    Screen(MISSES, _labels_only(misses)),
)


@dataclass(frozen=True)
class Screening:
    """What every test says, and what is left after adjustment.

    Attributes
    ----------
    residuals : (n,) array
        Of the time model, by row of the log; NaN where no time is known.
    findings : dict of str to Finding
        By the key of the test.
    adjusted : dict of str to (n_assessors,) array
        Of each test the p adjusted for the assessor's tests (Bonferroni) and for the assessors (Benjamini-Hochberg).
    """

    residuals: FloatArray
    findings: dict[str, Finding]
    adjusted: dict[str, FloatArray]

    def flags(self, false_discoveries: float = FALSE_DISCOVERIES) -> list[tuple[int, str]]:
        """Return assessor and test of each flag, the smallest adjusted p first."""
        found = [
            (float(values[one]), int(one), key)
            for key, values in self.adjusted.items()
            for one in np.flatnonzero(values <= false_discoveries)
        ]
        return [(one, key) for _, one, key in sorted(found)]


def benjamini_hochberg(p: ArrayLike) -> FloatArray:
    """Return p-values adjusted for the false discovery rate; NaN stays and does not count.

    Source: Benjamini and Hochberg (1995).

    >>> (benjamini_hochberg([0.001, 0.2, 0.012, 0.04, 0.5]) <= 0.05).tolist()
    [True, False, True, False, False]
    """
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full(values.size, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    ratios = values[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(ratios[::-1])[::-1])
    return adjusted


def screen(log: ScreeningLog, *, has_random_order: bool = True) -> Screening:
    """Return what every test says of every assessor.

    Bonferroni over the tests that an assessor had, Benjamini-Hochberg over the assessors. A test that is not the
    assessor's worst is adjusted as if it were.
    """
    residuals = pace_residuals(log)
    ordered = log.with_order()
    findings = {}
    for one in SCREENS:
        if one.needs_random_order and not has_random_order:
            findings[one.key] = _no_finding(log)
        elif one.needs_order:
            findings[one.key] = _in_order(one, log, ordered, residuals)
        else:
            findings[one.key] = one.find(log, residuals)
    table = np.array([findings[one.key].p for one in SCREENS]).reshape(len(SCREENS), -1)
    is_tested: Mask = ~np.isnan(table)
    n_tests = is_tested.sum(axis=0)
    single = np.minimum(1.0, table * n_tests)
    worst = np.where(is_tested.any(axis=0), np.nanmin(np.where(is_tested, single, np.inf), axis=0), np.nan)
    over_assessors = benjamini_hochberg(worst)
    factor = np.divide(over_assessors, worst, out=np.ones(worst.size), where=worst > 0)
    adjusted = np.minimum(1.0, single * factor)
    return Screening(residuals, findings, {one.key: row for one, row in zip(SCREENS, adjusted, strict=True)})


def _no_finding(log: ScreeningLog) -> Finding:
    unknown = np.full(log.n_assessors, np.nan)
    people = np.flatnonzero(log.n_judgments > 0).tolist()
    return Finding(unknown, unknown.copy(), dict.fromkeys(people, NOT_RANDOM), {})


def _in_order(one: Screen, log: ScreeningLog, ordered: ScreeningLog, residuals: FloatArray) -> Finding:
    """Return what a test of the order says; who has no judgment with a known order has that as the reason."""
    found = one.find(ordered, residuals[log.has_order])
    for person in np.flatnonzero((log.n_judgments > 0) & (ordered.n_judgments == 0)).tolist():
        found.refusals[person] = NO_ORDER
    return found
