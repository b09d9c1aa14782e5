"""How each assessor errs: confusion matrices from gold checks and from audits.

`counts[true_grade, given_grade]`, always this way round. A true grade without gold has no row:
it is None in `matrix`, `low` and `high`, and listed in `absent_grades`; it is never a row of zeros.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats, Refusal

Row = tuple[float, ...]

GOLD_FOR_A_ROW = 10  # gold labels of one grade below which a row says next to nothing


@dataclass(frozen=True)
class ConfusionEstimate:
    """A confusion matrix with Jeffreys 95 % confidence intervals for every cell.

    `n_per_grade` is the number of gold labels behind each row; for weighted rows Kish's effective number, and
    `counts` then are the effective counts (shares times effective number).
    """

    counts: tuple[Row, ...]
    matrix: tuple[Row | None, ...]
    low: tuple[Row | None, ...]
    high: tuple[Row | None, ...]
    n_per_grade: Row

    @property
    def absent_grades(self) -> tuple[int, ...]:
        """True grades without any gold label."""
        return tuple(grade for grade, row in enumerate(self.matrix) if row is None)

    def as_array(self) -> Floats:
        """Return the matrix as an array. Raise ValueError naming the grades without gold."""
        if self.absent_grades:
            raise ValueError(f"every true grade needs gold, got none for grades {list(self.absent_grades)}")
        return np.array(self.matrix, dtype=np.float64)


@dataclass(frozen=True)
class ShrunkConfusion:
    """Matrices of many assessors, each row pulled towards the common row of its grade.

    `matrices[assessor, true, given]`; `n_per_grade[assessor, true]` is what the row is worth in gold labels, less than
    n + k because mu is estimated too; `common[true, given]` and `strength[true]` are mu and k.
    """

    matrices: Floats
    n_per_grade: Floats
    common: Floats
    strength: Floats


# -- validation ---------------------------------------------------------------------------------------------


def _grades(name: str, values: ArrayLike, n_grades: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a flat array of integers, got {array.dtype} with {array.ndim} axes")
    outside = (array < 0) | (array >= n_grades)
    if outside.any():
        raise ValueError(f"{name} must be in 0..{n_grades - 1}, got {int(array[outside][0])}")
    return array.astype(np.int64)


def _count_table(name: str, counts: ArrayLike, axes: int) -> Floats:
    table = finite(name, counts)
    if table.ndim != axes or table.shape[-1] != table.shape[-2] or table.shape[-1] < 2:
        raise ValueError(f"{name} must have {axes} axes ending in two equal ones >= 2, got {table.shape}")
    if (table < 0).any():
        raise ValueError(f"{name} must be >= 0, got {table.min()}")
    return table


def _pairs(
    true_grade: ArrayLike, given_grade: ArrayLike, n_grades: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if n_grades < 2:
        raise ValueError(f"n_grades must be at least 2, got {n_grades}")
    true, given = _grades("true_grade", true_grade, n_grades), _grades("given_grade", given_grade, n_grades)
    if true.shape != given.shape:
        raise ValueError(f"true_grade and given_grade must be equally long, got {true.size} and {given.size}")
    return true, given


# -- one assessor -------------------------------------------------------------------------------------------


def confusion_from_counts(counts: ArrayLike) -> ConfusionEstimate:
    """Return the matrix of row shares with Jeffreys intervals, cell by cell.

    Assumption: within a true grade the labels are independent draws from the row (gold checks chosen without
    looking at the labels given). Interval: quantiles of Beta(x + 1/2, n - x + 1/2), its low end 0 for x = 0
    and its high end 1 for x = n (Brown, Cai and DasGupta 2001). Cells are not adjusted for each other.

    >>> confusion_from_counts([[9, 1], [0, 0]]).matrix
    ((0.9, 0.1), None)
    """
    return confusions_from_counts(_count_table("counts", counts, 2)[None])[0]


def confusions_from_counts(counts: ArrayLike) -> list[ConfusionEstimate]:
    """Return `confusion_from_counts` of every table of counts[table, true, given], at once."""
    tables = _count_table("counts", counts, 3)
    totals = tables.sum(axis=2)
    n = totals[:, :, None]
    is_known = n > 0
    missing = np.where(is_known, n - tables, 0.0)
    share = np.divide(tables, n, out=np.zeros(tables.shape), where=is_known)
    low = np.where(tables == 0, 0.0, scipy.stats.beta.ppf(0.025, tables + 0.5, missing + 0.5))
    high = np.where(tables == n, 1.0, scipy.stats.beta.ppf(0.975, tables + 0.5, missing + 0.5))
    return [
        ConfusionEstimate(
            tuple(tuple(row) for row in table.tolist()),
            _known_rows(rows, n > 0),
            _known_rows(below, n > 0),
            _known_rows(above, n > 0),
            tuple(n.tolist()),
        )
        for table, rows, below, above, n in zip(tables, share, low, high, totals, strict=True)
    ]


def _known_rows(rows: Floats, is_known: NDArray[np.bool_]) -> tuple[Row | None, ...]:
    return tuple(
        tuple(row) if known else None for row, known in zip(rows.tolist(), is_known.tolist(), strict=True)
    )


def assessor_counts(
    assessor_index: ArrayLike, true_grade: ArrayLike, given_grade: ArrayLike, n_assessors: int, n_grades: int
) -> Floats:
    """Return counts[assessor, true_grade, given_grade] of everybody's gold checks in one pass."""
    true, given = _pairs(true_grade, given_grade, n_grades)
    assessor = _grades("assessor_index", assessor_index, n_assessors)
    if assessor.shape != true.shape:
        raise ValueError(f"assessor_index must have length {true.size}, got {assessor.size}")
    cells = np.bincount((assessor * n_grades + true) * n_grades + given, minlength=n_assessors * n_grades**2)
    return cells.reshape(n_assessors, n_grades, n_grades).astype(np.float64)


def audit_counts(
    gold_grade: ArrayLike, given_grade: ArrayLike, audit_probability: ArrayLike, n_grades: int
) -> Floats:
    """Return effective counts[gold_grade, given_grade] of an audit drawn with unequal probabilities.

    Assumptions and arithmetic: `grouped_audit_counts`.
    """
    group = np.zeros(np.asarray(gold_grade).size, dtype=np.int64)
    return np.asarray(grouped_audit_counts(group, gold_grade, given_grade, audit_probability, 1, n_grades)[0])


def grouped_audit_counts(
    group: ArrayLike,
    gold_grade: ArrayLike,
    given_grade: ArrayLike,
    audit_probability: ArrayLike,
    n_groups: int,
    n_grades: int,
) -> Floats:
    """Return effective counts[group, gold_grade, given_grade] of the labels of audited items.

    Rows are Hajek shares, ``sum 1/pi [g, l] / sum 1/pi [g]`` times Kish's effective number ``(sum 1/pi)^2 /
    sum 1/pi^2`` (docs/methods/derivations/noise-correction.md, section 4.1). Unweighted rows of such an audit are
    biased. Assumption: `audit_probability` is the recorded chance of the item; if a label's own grade decided the
    chance, the effective number is an approximation (rows are then not independent).

    >>> grouped_audit_counts([0, 0, 1], [1, 1, 0], [1, 0, 0], [.5, .25, 1], 2, 2).round(6).tolist()
    [[[0.0, 0.0], [1.2, 0.6]], [[1.0, 0.0], [0.0, 0.0]]]
    """
    gold, given = _pairs(gold_grade, given_grade, n_grades)
    member = _grades("group", group, n_groups)
    if member.shape != gold.shape:
        raise ValueError(f"group must have length {gold.size}, got {member.size}")
    pi = finite("audit_probability", audit_probability, gold.shape)
    if ((pi <= 0) | (pi > 1)).any():
        raise ValueError(f"audit_probability must be in (0, 1], got {pi[(pi <= 0) | (pi > 1)][0]}")

    row, n_rows = member * n_grades + gold, n_groups * n_grades
    weighted = np.bincount(row * n_grades + given, weights=1 / pi, minlength=n_rows * n_grades)
    weighted = weighted.reshape(n_rows, n_grades)
    squares = np.bincount(row, weights=1 / pi**2, minlength=n_rows)
    totals = weighted.sum(axis=1)
    # shares * n_eff = weighted / total * total^2 / squares
    factor = np.divide(totals, squares, out=np.zeros(n_rows), where=squares > 0)
    return np.asarray((weighted * factor[:, None]).reshape(n_groups, n_grades, n_grades))


# -- whether errors change with time ------------------------------------------------------------------------


def drift_p_values(
    assessor_index: ArrayLike,
    true_grade: ArrayLike,
    given_grade: ArrayLike,
    time: ArrayLike,
    n_assessors: int,
    n_grades: int,
) -> Floats:
    """Return per assessor the p-value of "errs alike at all times", from gold checks; NaN where they tell nothing.

    Within every true grade the order of time is compared with two scores of each answer: the grade given (does the
    assessor become milder?) and whether it is right (or careless?). Summed over true grades these have, if time
    does not matter, mean 0 and the covariance of a random order; the statistic is their quadratic form, chi-squared
    with as many degrees of freedom as the covariance has rank. Steady change is found best; ups and downs are not.
    NaN below ten answers, or where all answers of each grade are alike.

    Source: Mantel (1963), extended to two scores as in Landis, Heyman and Koch (1978), Eq 2.6.
    """
    true, given = _pairs(true_grade, given_grade, n_grades)
    assessor = _grades("assessor_index", assessor_index, n_assessors)
    moment = finite("time", time, true.shape)
    if assessor.shape != true.shape:
        raise ValueError(f"assessor_index must have length {true.size}, got {assessor.size}")

    stratum, n_strata = assessor * n_grades + true, n_assessors * n_grades
    n = np.bincount(stratum, minlength=n_strata).astype(np.float64)

    def centre(values: Floats) -> Floats:
        means = np.bincount(stratum, values, n_strata) / np.maximum(n, 1)
        return np.asarray(values - means[stratum])

    def sum_of(values: Floats) -> Floats:
        return np.asarray(
            np.bincount(stratum, values, n_strata).reshape(n_assessors, n_grades), dtype=np.float64
        )

    order = centre(scipy.stats.rankdata(moment))
    scores = [centre(given.astype(np.float64)), centre((given == true).astype(np.float64))]
    spread = sum_of(order**2) / np.maximum(n - 1, 1).reshape(n_assessors, n_grades)
    total = np.stack([sum_of(order * score).sum(axis=1) for score in scores], axis=1)
    covariance = np.stack(
        [np.stack([(spread * sum_of(a * b)).sum(axis=1) for b in scores], axis=1) for a in scores], axis=1
    )
    inverse = np.linalg.pinv(covariance, rtol=1e-9, hermitian=True)
    rank = np.linalg.matrix_rank(covariance, rtol=1e-9, hermitian=True)
    statistic = np.einsum("ai,aij,aj->a", total, inverse, total)
    is_told = (rank > 0) & (n.reshape(n_assessors, n_grades).sum(axis=1) >= GOLD_FOR_A_ROW)
    return np.where(is_told, scipy.stats.chi2.sf(statistic, np.maximum(rank, 1)), np.nan)


# -- many assessors with little gold ------------------------------------------------------------------------


def shrink(counts: ArrayLike) -> ShrunkConfusion | Refusal:
    """Return ``(x + k mu) / (n + k)`` for every assessor's rows: empirical Bayes.

    Assumption: within a true grade, assessors' rows are Dirichlet(k mu) around a common row mu. mu is the
    pooled row with 1/2 added to each cell (a zero would forbid that error to everybody), k maximises the
    Dirichlet-multinomial likelihood in [0.1, 1000] (docs/methods/derivations/real-judges.md, section 4.1). A grade
    without any gold: refusal.

    A row is worth ``1 / (1/(n + k) + A (k/(n + k))^2 / N)`` gold labels, N those of the grade in all and A the
    number of assessors: n + k alone would count the same N labels once for every assessor.
    """
    table = _count_table("counts", counts, 3)
    per_grade = table.sum(axis=(0, 2))
    if (per_grade == 0).any():
        grade = int(np.flatnonzero(per_grade == 0)[0])
        return Refusal(f"no gold label of true grade {grade}", GOLD_FOR_A_ROW)

    smoothed = table.sum(axis=0) + 0.5
    common = smoothed / smoothed.sum(axis=1, keepdims=True)
    strength = np.array([_strength(table[:, grade], common[grade]) for grade in range(common.shape[0])])
    n = table.sum(axis=2)
    matrices = (table + strength[:, None] * common) / (n + strength)[:, :, None]
    # The rows lean on one estimated mu, so their errors are not independent. Were the A assessors alike, the shared
    # part k/(n + k) would enter V_J A times over; what a row is worth is lowered so that the sum of A
    # independent rows covers that.
    leaning = (strength / (n + strength)) ** 2
    worth = 1 / (1 / (n + strength) + table.shape[0] * leaning / per_grade)
    return ShrunkConfusion(matrices, worth, common, strength)


def _strength(rows: Floats, common: Floats) -> float:
    """Return k of highest Dirichlet-multinomial likelihood for rows[assessor, given] around `common`."""
    seen = rows[rows.sum(axis=1) > 0]

    def loss(log_k: float) -> float:
        alpha = np.exp(log_k) * common
        n = seen.sum(axis=1)
        whole = scipy.special.gammaln(alpha.sum()) - scipy.special.gammaln(alpha.sum() + n)
        cells = (scipy.special.gammaln(seen + alpha) - scipy.special.gammaln(alpha)).sum(axis=1)
        return -float((whole + cells).sum())

    best = scipy.optimize.minimize_scalar(loss, bounds=(np.log(0.1), np.log(1000.0)), method="bounded")
    return float(np.exp(best.x))
