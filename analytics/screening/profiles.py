"""What the pictures of a log show: seconds by position, by grade and by assessor, and the grades that each gives.

Source: Carterette and Soboroff (2010), Figure 1, for what is drawn.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.screening.known import session_aucs
from analytics.screening.log import ScreeningLog
from sampling.arrays import FloatArray, IndexArray

BINS = 20  # of positions at most
FEWEST_TIMES = 5  # of a topic, for its share of fast judgments


@dataclass(frozen=True)
class Quartiles:
    """Of every group the number of known values and their quartiles; NaN where there are none."""

    n: IndexArray
    low: FloatArray
    median: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Overview:
    """How long judgments take, and which grades are given.

    Attributes
    ----------
    first_position : (n_bins,) array of int
        From 0; a bin ends where the next begins.
    by_position, by_grade, by_assessor : Quartiles
        Of the seconds.
    grade_share : (n_assessors, n_grades) array
        NaN for who has given none.
    """

    first_position: IndexArray
    by_position: Quartiles
    by_grade: Quartiles
    by_assessor: Quartiles
    grade_share: FloatArray


@dataclass(frozen=True)
class Profiles:
    """What the pictures of every assessor show.

    Attributes
    ----------
    seconds, relevant : (n_assessors, n_bins) arrays
        Median of the seconds and share of relevant labels by position; NaN where there is nothing.
    fast : (n_sessions,) array
        Share of the judgments of an assessor and topic that are faster than usual; NaN with few times.
    auc : (n_sessions,) array
        Of the labels against the prior; NaN where there are too few labels of a kind.
    """

    seconds: FloatArray
    relevant: FloatArray
    fast: FloatArray
    auc: FloatArray


def quartiles(values: ArrayLike, group: ArrayLike, n_groups: int) -> Quartiles:
    """Return the quartiles of every group, interpolated; NaN among the values does not count.

    >>> quartiles([1.0, 2.0, 3.0, 9.0, np.nan], [0, 0, 0, 1, 1], 3).median.tolist()
    [2.0, 9.0, nan]
    """
    number, of = np.asarray(values, dtype=np.float64), np.asarray(group, dtype=np.int64)
    known = ~np.isnan(number)
    number, of = number[known], of[known]
    ordered = number[np.lexsort((number, of))]
    n = np.bincount(of, minlength=n_groups)
    starts = np.cumsum(n) - n
    some = np.flatnonzero(n > 0)
    found = []
    for share in (0.25, 0.5, 0.75):
        place = starts[some] + share * (n[some] - 1)
        below, above = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
        between = np.full(n_groups, np.nan)
        between[some] = ordered[below] + (place - below) * (ordered[above] - ordered[below])
        found.append(between)
    return Quartiles(n, *found)


def _bins(log: ScreeningLog) -> tuple[IndexArray, IndexArray]:
    """Return the first position of every bin, and the bin of every row."""
    n_positions = int(log.position.max(initial=-1)) + 1
    width = max(1, -(-n_positions // BINS))
    first: IndexArray = np.arange(0, max(n_positions, 1), width, dtype=np.int64)
    return first, log.position // width


def overview(log: ScreeningLog, grade: IndexArray, n_grades: int) -> Overview:
    """Return what Figure 1 of the paper shows: `grade` is that of every row, on the campaign's scale."""
    first, place = _bins(log)
    in_order = np.where(log.has_order, log.seconds, np.nan)
    counts = np.bincount(log.assessor * n_grades + grade, minlength=log.n_assessors * n_grades)
    table = counts.reshape(log.n_assessors, n_grades).astype(np.float64)
    totals = table.sum(axis=1, keepdims=True)
    return Overview(
        first,
        quartiles(in_order, place, first.size),
        quartiles(log.seconds, grade, n_grades),
        quartiles(log.seconds, log.assessor, log.n_assessors),
        np.divide(table, totals, out=np.full(table.shape, np.nan), where=totals > 0),
    )


def profiles(log: ScreeningLog, residuals: FloatArray) -> Profiles:
    """Return what the pictures of every assessor show; `residuals` are those of the time model."""
    first, place = _bins(log)
    shape = (log.n_assessors, first.size)
    cell = log.assessor * first.size + place
    seconds = quartiles(np.where(log.has_order, log.seconds, np.nan), cell, shape[0] * shape[1]).median
    rows = np.flatnonzero(log.has_order)
    n = np.bincount(cell[rows], minlength=shape[0] * shape[1])
    relevant = np.bincount(cell[rows], log.relevant[rows], minlength=n.size)
    share = np.divide(relevant, n, out=np.full(n.size, np.nan), where=n > 0)
    is_known = ~np.isnan(residuals)
    number = log.per_session(is_known.astype(np.float64))
    faster = log.per_session((np.where(is_known, residuals, 0.0) < 0).astype(np.float64))
    fast = np.divide(faster, number, out=np.full(number.size, np.nan), where=number >= FEWEST_TIMES)
    return Profiles(seconds.reshape(shape), share.reshape(shape), fast, session_aucs(log)[0])
