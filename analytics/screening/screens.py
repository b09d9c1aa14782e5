"""The tests of a log as a table, and the flags that remain after adjusting for their number."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.screening.known import false_alarms, misses, no_relation
from analytics.screening.log import Mask, ScreeningLog
from analytics.screening.pace import fast_topics, giving_up, pace_residuals, speed
from analytics.screening.peers import Finding
from analytics.screening.sequence import all_alike, drift, rate, serial
from sampling.arrays import FloatArray

FALSE_DISCOVERIES = 0.10


@dataclass(frozen=True)
class Screen:
    """One test of the log.

    Attributes
    ----------
    key : str
        As stored, and as the API spells it; at most 40 characters.
    label, help : str
        Its name on the screen, and a sentence on what it shows.
    effect : str
        What the effect is, as a phrase after its value.
    find : callable
        From the log and the residuals of the time model what it says of each assessor.
    """

    key: str
    label: str
    help: str
    effect: str
    find: Callable[[ScreeningLog, FloatArray], Finding]


def _labels_only(find: Callable[[ScreeningLog], Finding]) -> Callable[[ScreeningLog, FloatArray], Finding]:
    return lambda log, residuals: find(log)


SCREENS = (
    Screen(
        "speed",
        "Speed",
        "Judges faster than the other assessors, given labels and places of the documents.",
        "robust standard deviations from the others' median",
        speed,
    ),
    Screen(
        "fast-topics",
        "Fast topics",
        "Judges nearly every document of many topics faster than usual.",
        "of the topics judged fast",
        fast_topics,
    ),
    Screen(
        "giving-up",
        "Giving up",
        "Begins to rush at some point of a topic.",
        "largest cumulative deviation",
        giving_up,
    ),
    Screen(
        "serial",
        "Pattern of labels",
        "Repeats or alternates labels more than chance allows.",
        "changes of label per expected change",
        _labels_only(serial),
    ),
    Screen(
        "all-alike",
        "Topics without a relevant document",
        "Finds nothing relevant in more topics than the other assessors.",
        "of the topics without a relevant label",
        _labels_only(all_alike),
    ),
    Screen(
        "drift",
        "Drift",
        "The share of relevant labels changes along a topic as it does for nobody else.",
        "robust standard deviations from the others' trend",
        _labels_only(drift),
    ),
    Screen(
        "rate",
        "Share of relevant labels",
        "Calls more or fewer documents relevant than the other assessors.",
        "of the labels relevant",
        _labels_only(rate),
    ),
    Screen(
        "no-relation",
        "No relation to the prior",
        "Labels go with the ranks of the runs less than those of the other assessors.",
        "AUC of the labels against the prior",
        _labels_only(no_relation),
    ),
    Screen(
        "false-alarms",
        "False alarms",
        "Calls documents relevant that are known not to be, more often than the other assessors.",
        "of the documents known not to be relevant",
        _labels_only(false_alarms),
    ),
    Screen(
        "misses",
        "Misses",
        "Overlooks documents known to be relevant more often than the other assessors.",
        "of the documents known to be relevant",
        _labels_only(misses),
    ),
)


@dataclass(frozen=True)
class Screening:
    """What every test says, and what is left after adjustment.

    Attributes
    ----------
    findings : dict of str to Finding
        By the key of the test.
    adjusted : dict of str to (n_assessors,) array
        Of each test the p adjusted for the assessor's tests (Bonferroni) and for the assessors (Benjamini-Hochberg).
    """

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


def screen(log: ScreeningLog) -> Screening:
    """Return what every test says of every assessor.

    Bonferroni over the tests that an assessor had, Benjamini-Hochberg over the assessors. A test that is not the
    assessor's worst is adjusted as if it were.
    """
    residuals = pace_residuals(log)
    findings = {one.key: one.find(log, residuals) for one in SCREENS}
    table = np.array([findings[one.key].p for one in SCREENS]).reshape(len(SCREENS), -1)
    is_tested: Mask = ~np.isnan(table)
    n_tests = is_tested.sum(axis=0)
    single = np.minimum(1.0, table * n_tests)
    worst = np.where(is_tested.any(axis=0), np.nanmin(np.where(is_tested, single, np.inf), axis=0), np.nan)
    over_assessors = benjamini_hochberg(worst)
    factor = np.divide(over_assessors, worst, out=np.ones(worst.size), where=worst > 0)
    adjusted = np.minimum(1.0, single * factor)
    return Screening(findings, {one.key: row for one, row in zip(SCREENS, adjusted, strict=True)})
