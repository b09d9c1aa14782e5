"""Agreement of two tiers, or two assessors, on the documents that both judged: label tables and kappas.

Tables hold one document once: `table[label_a, label_b]`. An audit selects documents with unequal probabilities, on
purpose by their bronze label: what it says about the pool needs the weights 1/pi; what it says about one bronze
label does not, if documents of that label were selected alike.

Of many assessors: `analytics.agreement.alpha`. How rankings of systems agree: `analytics.agreement.rankings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats, Ints, Refusal

SUBSTANTIAL = 0.6  # after Bailey et al. (2008), who follow Rietveld and van Hout (1993)


# -- conditional tables -------------------------------------------------------------------------------------

Row = tuple[float, ...] | Refusal


@dataclass(frozen=True)
class LabelTables:
    """How often which pair of labels: `counts` of documents, `weighted` the same in numbers of the pool.

    `b_given_a` has one row a label of a, P(b | a), `a_given_b` one a label of b; `overall_a` and `overall_b` are the
    shares of the pool. Rows sum to 1; a label that nobody gave has a Refusal instead.
    """

    counts: Ints
    weighted: Floats
    b_given_a: tuple[Row, ...]
    a_given_b: tuple[Row, ...]
    overall_a: tuple[float, ...]
    overall_b: tuple[float, ...]


def label_tables(
    label_a: ArrayLike, label_b: ArrayLike, n_grades: int, *, weight: ArrayLike | None = None
) -> LabelTables | Refusal:
    """Return the conditional distributions of two tiers' labels, both ways, for the pool that was sampled.

    P(b | a) = sum of weights with (a, b) / sum of weights with a (Hajek): consistent when weight = 1/pi. Without
    weights the numbers describe the sample; only rows of the label that the sample was stratified on then hold for
    the pool too.

    Source: Bailey et al. (2008), Table 4 (without weights, also in its "overall" rows, which are of the sample).

    Parameters
    ----------
    label_a, label_b : int arrays [document]
        Grades from 0; the same documents in the same order.
    n_grades : int
        Grades of the scale.
    weight : array [document], optional
        Positive: 1/pi, or N_l/n_l where n_l of the pool's N_l documents of a label were sampled.

    Raises
    ------
    ValueError
        A grade outside the scale, lengths that differ, a weight that is not positive.

    Examples
    --------
    >>> label_tables([1, 1, 0], [1, 0, 0], 2).b_given_a
    ((1.0, 0.0), (0.5, 0.5))
    """
    a, b = _same_documents(label_a, label_b, n_grades)
    w = np.ones(a.size) if weight is None else finite("weight", weight, a.shape)
    if (w <= 0).any():
        raise ValueError(f"weight must be positive, got {w.min()}")
    if a.size == 0:
        return _nothing_shared()
    counts = _table(a, b, n_grades)
    weighted = _table(a, b, n_grades, w)
    total = float(weighted.sum())
    return LabelTables(
        counts=counts.astype(np.int64),
        weighted=weighted,
        b_given_a=tuple(_shares(grade, row) for grade, row in enumerate(weighted)),
        a_given_b=tuple(_shares(grade, row) for grade, row in enumerate(weighted.T)),
        overall_a=tuple((weighted.sum(axis=1) / total).tolist()),
        overall_b=tuple((weighted.sum(axis=0) / total).tolist()),
    )


def _same_documents(label_a: ArrayLike, label_b: ArrayLike, n_grades: int) -> tuple[Ints, Ints]:
    if n_grades < 2:
        raise ValueError(f"n_grades must be at least 2, got {n_grades}")
    a = integers("label_a", label_a, 0, n_grades - 1)
    b = integers("label_b", label_b, 0, n_grades - 1)
    if a.shape != b.shape:
        raise ValueError(f"label_b must have {a.size} documents, got {b.size}")
    return a, b


def _table(a: Ints, b: Ints, n_grades: int, weight: Floats | None = None) -> Floats:
    flat = np.bincount(a * n_grades + b, weights=weight, minlength=n_grades**2)
    return flat.reshape(n_grades, n_grades).astype(np.float64)


def _shares(label: int, row: Floats) -> Row:
    total = float(row.sum())
    if total == 0:
        return Refusal(f"no document has label {label}", 1)
    return tuple((row / total).tolist())


def _nothing_shared() -> Refusal:
    return Refusal("no document was judged by both tiers", 1)


# -- kappa of two judges ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kappa:
    """Agreement beyond chance, 1 at most. `z` and the two-sided `p_value` test "no agreement but by chance".

    `null_variance` is the variance under that hypothesis, not an error bar of `value`.
    """

    value: float
    observed: float
    expected: float
    null_variance: float
    z: float
    p_value: float
    n: int


def scott_pi(table: ArrayLike, *, n: int | None = None) -> Kappa | Refusal:
    """Return Scott's pi, which for two judges is Siegel and Castellan's kappa: both share one label distribution.

    kappa = (P(A) - P(E))/(1 - P(E)), P(E) = sum ((row_c + column_c)/2N)^2, null variance P(E)/(N (1 - P(E))).
    Refused where both judges gave one and the same label throughout.

    Source: Siegel and Castellan (1988); the paper of Bailey et al. (2008) calls this "Cohen's kappa".

    Parameters
    ----------
    table : array [label_a, label_b]
        Documents, or sums of weights: then the value is that of the pool, and n must be given.
    n : int
        Documents that the table rests on; by default its sum.

    Examples
    --------
    >>> round(scott_pi([[30, 20], [5, 45]]).value, 6)
    0.488491
    """
    share, size = _shares_of_table(table, n)
    if size == 0:
        return _nothing_shared()
    expected = float(np.square((share.sum(axis=0) + share.sum(axis=1)) / 2).sum())
    if expected >= 1 - 1e-12:
        return _no_variation(size)
    return _kappa(share, expected, expected / (size * (1 - expected)), size)


def cohen_kappa(table: ArrayLike, *, n: int | None = None) -> Kappa | Refusal:
    """Return Cohen's kappa: each judge keeps their own label distribution, P(E) = sum row_c column_c / N^2.

    Null variance [P(E) + P(E)^2 - sum row_c column_c (row_c + column_c)]/(N (1 - P(E))^2), in shares.

    Source: Cohen (1960); Fleiss, Cohen and Everitt (1969) for the variance.

    Examples
    --------
    >>> round(cohen_kappa([[30, 20], [5, 45]]).value, 6)
    0.5
    """
    share, size = _shares_of_table(table, n)
    if size == 0:
        return _nothing_shared()
    row, column = share.sum(axis=1), share.sum(axis=0)
    expected = float(row @ column)
    if expected >= 1 - 1e-12:
        return _no_variation(size)
    spread = max(0.0, expected + expected**2 - float((row * column * (row + column)).sum()))
    return _kappa(share, expected, spread / (size * (1 - expected) ** 2), size)


def _shares_of_table(table: ArrayLike, n: int | None) -> tuple[Floats, int]:
    values = finite("table", table)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or values.shape[0] < 2:
        raise ValueError(f"table must be square with at least 2 labels, got shape {values.shape}")
    if (values < 0).any():
        raise ValueError(f"table must not be negative, got {values.min()}")
    total = float(values.sum())
    if n is None and total != round(total):
        raise ValueError(f"n must be given for a table of weights, got a sum of {total:g}")
    size = round(total) if n is None else n
    return (values / total if total else values), size


def _no_variation(n: int) -> Refusal:
    return Refusal(
        f"all {n} documents have the same label from both, so agreement beyond chance is not defined"
    )


def _kappa(share: Floats, expected: float, variance: float, n: int) -> Kappa | Refusal:
    observed = float(np.trace(share))
    value = (observed - expected) / (1 - expected)
    if variance <= 1e-15:
        return Refusal(f"one judge gave all {n} documents the same label, so agreement cannot be tested")
    z = value / variance**0.5
    return Kappa(value, observed, expected, variance, z, float(2 * scipy.special.ndtr(-abs(z))), n)


@dataclass(frozen=True)
class KappaHistogram:
    """Kappas of the topics between `edges`; `refused` topics have none. `significant`: p < .05 and kappa > 0."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    refused: int
    significant: int
    substantial: int


def kappas_by_topic(
    label_a: ArrayLike, label_b: ArrayLike, topic_index: ArrayLike, n_topics: int, n_grades: int
) -> list[Kappa | Refusal]:
    """Return Scott's pi of every topic; a topic without documents, or without variation, has a Refusal.

    Examples
    --------
    >>> [getattr(one, "value", None) for one in kappas_by_topic([0, 1, 0], [0, 1, 0], [0, 0, 1], 2, 2)]
    [1.0, None]
    """
    a, b = _same_documents(label_a, label_b, n_grades)
    topic = integers("topic_index", topic_index, 0, n_topics - 1)
    if topic.shape != a.shape:
        raise ValueError(f"topic_index must have {a.size} documents, got {topic.size}")
    cells = n_grades**2
    flat = np.bincount(topic * cells + a * n_grades + b, minlength=n_topics * cells)
    return [scott_pi(table) for table in flat.reshape(n_topics, n_grades, n_grades)]


def kappa_histogram(
    kappas: Sequence[Kappa | Refusal], edges: Sequence[float] = tuple(np.arange(-10, 11, 2) / 10)
) -> KappaHistogram:
    """Return how many topics have a kappa in each [edge, next edge); the last one includes its upper edge.

    Examples
    --------
    >>> kappa_histogram([scott_pi([[9, 1], [1, 9]])], [-1, 0, 1]).counts
    (0, 1)
    """
    bounds = finite("edges", edges)
    if bounds.ndim != 1 or bounds.size < 2 or (np.diff(bounds) <= 0).any():
        raise ValueError(f"edges must rise and be at least 2, got {bounds.tolist()}")
    known = [one for one in kappas if isinstance(one, Kappa)]
    values = [one.value for one in known]
    if values and not bounds[0] <= min(values) <= max(values) <= bounds[-1]:
        raise ValueError(
            f"edges must hold all kappas, {min(values):g} to {max(values):g}, got {bounds.tolist()}"
        )
    return KappaHistogram(
        edges=tuple(bounds.tolist()),
        counts=tuple(np.histogram(values, bounds)[0].tolist()),
        refused=len(kappas) - len(known),
        significant=sum(one.p_value < 0.05 and one.value > 0 for one in known),
        substantial=sum(one.value >= SUBSTANTIAL for one in known),
    )
