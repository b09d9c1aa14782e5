"""Agreement of any number of assessors, each of whom judged some of the documents: Krippendorff's alpha."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import integers
from analytics.estimation.estimate import Floats, Ints, Refusal

Metric = Literal["nominal", "ordinal", "interval"]
FEWEST_FOR_INTERVAL = 10  # documents; a bootstrap of fewer repeats mostly itself
REPLICATES = 2000


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's alpha; `interval` is (low, high) or the reason why there is none."""

    value: float
    interval: tuple[float, float] | Refusal
    metric: Metric
    n_documents: int
    n_labels: int


def krippendorff_alpha(
    label_item: ArrayLike,
    label_grade: ArrayLike,
    *,
    metric: Metric = "nominal",
    n_grades: int | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Alpha | Refusal:
    """Return 1 - observed/expected disagreement over all pairs of labels of a document, whoever gave them.

    Documents with one label say nothing about agreement and are left out; any number of labels may be missing.
    nominal: labels differ or not; ordinal: by the number of labels between them; interval: squared difference of the
    grades. The 95 % confidence interval is the bootstrap's percentiles, documents drawn with replacement;
    replicates in which all labels are the same have no alpha and are left out, and if they are more than 1 in 40
    there is no interval.

    Refused: no document with two labels (as with one assessor); all labels the same.

    Source: Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.

    Parameters
    ----------
    label_item, label_grade : int arrays [label]
        An assessor's labels of a document count once: pass one label a pair of assessor and document.
    n_grades : int
        Grades of the scale; by default the largest one and one.

    Raises
    ------
    ValueError
        An unknown metric, lengths that differ, a grade outside the scale, fewer than 100 replicates.

    Examples
    --------
    >>> krippendorff_alpha([0, 0, 1, 1, 2], [0, 0, 1, 1, 1]).value
    1.0
    """
    item = integers("label_item", label_item, 0)
    grade = integers("label_grade", label_grade, 0, None if n_grades is None else n_grades - 1)
    if item.shape != grade.shape:
        raise ValueError(f"label_grade must have {item.size} labels, got {grade.size}")
    if metric not in ("nominal", "ordinal", "interval"):
        raise ValueError(f"metric must be nominal, ordinal or interval, got {metric!r}")
    if replicates < 100:
        raise ValueError(f"replicates must be at least 100, got {replicates}")

    table = _labels_by_item(item, grade)
    table = table[table.sum(axis=1) >= 2]
    if not len(table):
        return Refusal("no document has labels of 2 assessors", 1)
    # Documents with the same labels are the same: the bootstrap draws patterns instead, which costs nothing.
    patterns, n_each = np.unique(table, axis=0, return_counts=True)
    size = patterns.sum(axis=1)
    same = patterns[:, :, None] * np.eye(patterns.shape[1])
    pairs = (patterns[:, :, None] * patterns[:, None, :] - same) / (size - 1)[:, None, None]
    value = _alphas(np.tensordot(n_each[None], pairs, 1), metric)
    if not value.size:
        return Refusal(f"all labels of the {len(table)} documents with 2 or more are the same")
    drawn = np.random.default_rng(seed).multinomial(len(table), n_each / n_each.sum(), size=replicates)
    interval = _interval(_alphas(np.tensordot(drawn, pairs, 1), metric), replicates, len(table))
    return Alpha(float(value[0]), interval, metric, len(table), int(table.sum()))


def _labels_by_item(item: Ints, grade: Ints) -> Ints:
    if not item.size:
        return np.zeros((0, 1), dtype=np.int64)
    _, place = np.unique(item, return_inverse=True)
    n_grades = int(grade.max()) + 1
    flat = np.bincount(place * n_grades + grade, minlength=(int(place.max()) + 1) * n_grades)
    return flat.reshape(-1, n_grades).astype(np.int64)


def _alphas(coincidences: Floats, metric: Metric) -> Floats:
    """Return alpha of every coincidence matrix [replicate, label, label] whose labels are not all the same."""
    total = coincidences.sum(axis=2)
    grade = np.arange(total.shape[1])
    if metric == "ordinal":
        middle = np.cumsum(total, axis=1) - total / 2
        distance = np.square(middle[:, :, None] - middle[:, None, :])
    else:
        apart = np.abs(grade[:, None] - grade[None, :])
        distance = (np.square(apart) if metric == "interval" else apart > 0)[None].astype(np.float64)
    observed = (coincidences * distance).sum(axis=(1, 2))
    expected = (total[:, :, None] * total[:, None, :] * distance).sum(axis=(1, 2))
    varied = np.count_nonzero(total > 1e-9, axis=1) > 1
    n = total.sum(axis=1)[varied]
    return np.asarray(1 - (n - 1) * observed[varied] / expected[varied])


def _interval(alphas: Floats, replicates: int, n_documents: int) -> tuple[float, float] | Refusal:
    if n_documents < FEWEST_FOR_INTERVAL:
        reason = f"{n_documents} documents with 2 labels or more; an interval needs {FEWEST_FOR_INTERVAL}"
        return Refusal(reason, FEWEST_FOR_INTERVAL - n_documents)
    if alphas.size < replicates * 39 / 40:
        share = 1 - alphas.size / replicates
        return Refusal(f"{share:.0%} of the bootstrap's samples have one label only, so there is no interval")
    low, high = np.quantile(alphas, [0.025, 0.975])
    return float(low), float(high)
