"""The test of what a confusion-matrix correction assumes: errors alike on all documents of one grade.

It explains the corrections that are shown by name; no estimator is chosen by it
(docs/methods/derivations/real-judges.md, section 3.4). Arrays hold the labels of audited items, one entry per label;
`item_index` says which belong to one item.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.confusion import ConfusionEstimate, audit_counts, confusion_from_counts
from analytics.estimation.estimate import FEWEST_ITEMS, Floats, Ints, Refusal
from analytics.papers.inverse import label_scores
from analytics.papers.separation import SINGULAR

FEWEST_AUDITED = 50  # below, the test finds next to nothing, and passing it would be read as a proof
SIGNIFICANT = 0.05
BLOCK = 4_000_000  # permuted scores held at a time


@dataclass(frozen=True)
class AssumptionTest:
    """Whether errors depend on `w` within a gold grade. A pass means "not contradicted", never "true".

    `shift` is what a matrix correction would move the target by, compared with the design-based estimate.
    `topic_t` (None without topics) is the same statistic over its topic-clustered standard error. `n` counts items.
    """

    p_value: float
    shift: float
    standard_error: float
    topic_t: float | None
    n: int


@dataclass(frozen=True)
class Rate:
    """A share with its Jeffreys 95 % confidence interval; all None where there is no gold to tell."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PopularityBand:
    """How labels err on documents that `fewest_runs` to `most_runs` runs return; relevant: above the least gain."""

    fewest_runs: int
    most_runs: int
    n: int
    sensitivity: Rate
    specificity: Rate


@dataclass(frozen=True)
class AssumptionResult:
    """The test with w = log(number of runs that return the document), as stored with a computation.

    `shift` and its standard error belong to the target whose weights were given; None without one.
    """

    p_value: float
    n: int
    topic_t: float | None
    shift: float | None
    standard_error: float | None
    bands: tuple[PopularityBand, ...]

    @property
    def is_contradicted(self) -> bool:
        """Whether the assumption is rejected at 5 %."""
        return self.p_value <= SIGNIFICANT

    def as_json(self) -> dict[str, Any]:
        """Return plain values, with the sentences to show, one by one and together as `words`."""
        sentences = assumption_sentences(self)
        said = {"sentences": sentences, "words": " ".join(sentences)}
        return {**asdict(self), "contradicted": self.is_contradicted, **said}


@dataclass(frozen=True, eq=False)
class AuditedLabels:
    """The labels of audited items, one entry a label; the arrays are checked here, and trusted by all that follows.

    `item_index` says which labels belong to one item; without it each label is of an item of its own.

    Raises
    ------
    ValueError
        Arrays of different length, grades without a gain, probabilities outside (0, 1], or an item with two gold
        grades or audit probabilities.
    """

    gold_grade: Ints
    given_grade: Ints
    audit_probability: Floats
    gains: Floats
    item_index: Ints | None = None

    def __post_init__(self) -> None:
        v = finite("gains", self.gains)
        gold = integers("gold_grade", self.gold_grade, 0, v.size - 1)
        given = integers("given_grade", self.given_grade, 0, v.size - 1)
        pi = probabilities("audit_probability", self.audit_probability, gold.size)
        item = np.arange(gold.size) if self.item_index is None else integers("item_index", self.item_index)
        if not given.size == item.size == gold.size:
            raise ValueError(
                f"given_grade and item_index must have length {gold.size}, got {given.size}, {item.size}"
            )
        _, first, place = np.unique(item, return_index=True, return_inverse=True)
        if (gold != gold[first][place]).any() or (pi != pi[first][place]).any():
            raise ValueError("gold_grade and audit_probability must be the same for all labels of an item")
        arrays = {"gold_grade": gold, "given_grade": given, "audit_probability": pi, "gains": v}
        for name, array in {**arrays, "item_index": item}.items():
            object.__setattr__(self, name, array)


@dataclass(frozen=True)
class _AuditSample:
    """The audited items, and J from all of their labels. Index of items; `share` is 1 / labels of the label's item."""

    gold: Ints
    weight: Floats  # 1 / pi
    item: Ints  # of each label
    given: Ints  # of each label
    share: Floats  # of each label
    gains: Floats
    totals: Floats  # sum of 1/pi by grade
    matrix: Floats
    score: Floats  # mean of J^-1 v over the labels of each item


# -- input ----------------------------------------------------------------------------------------------------


def _audit_sample(labels: AuditedLabels, fewest: int) -> tuple[_AuditSample, Ints] | Refusal:
    """Return the audited items and the first label of each, or why there is no test."""
    gold, given, pi, v = labels.gold_grade, labels.given_grade, labels.audit_probability, labels.gains
    _, first, places = np.unique(np.asarray(labels.item_index), return_index=True, return_inverse=True)
    item = places.astype(np.int64)
    if first.size < fewest:
        return Refusal(f"{first.size} audited items; at least {fewest} are needed", fewest - first.size)

    share: Floats = np.asarray(1.0 / np.bincount(item)[item], dtype=np.float64)
    j = np.zeros((v.size, v.size))
    np.add.at(j, (gold, given), share / pi)
    totals = j.sum(axis=1)
    if (totals == 0).any():
        return Refusal(f"no gold label of true grade {int(np.argmin(totals))}", FEWEST_ITEMS)
    matrix = j / totals[:, None]
    if abs(np.linalg.det(matrix)) < SINGULAR:
        return Refusal("the confusion matrix cannot be inverted: its determinant is 0")
    score = np.bincount(item, weights=share * label_scores(matrix, v)[given]).astype(np.float64)
    return _AuditSample(gold[first], 1 / pi[first], item, given, share, v, totals, matrix, score), first


# -- the test -------------------------------------------------------------------------------------------------


def assumption_test(
    weights: ArrayLike,
    labels: AuditedLabels,
    *,
    rng: np.random.Generator,
    topic_index: ArrayLike | None = None,
    permutations: int = 999,
) -> AssumptionTest | Refusal:
    """Return the permutation test of "errors do not depend on w within a gold grade".

    `weights` is log(number of systems returning the document) for the general test or the target's w/pi_draw for its
    shift. ``T = sum (1/pi)(w - wbar_g)(c(l) - v(g))``, J in ``c = J^-1 v`` from the same labels weighted by 1/pi; the
    statistic is T over a standard error, and items' scores are permuted inside gold grades. Exact where the labels do
    not decide who is audited (simple random, or probabilities from the runs' weights) but for the weighted J in c,
    which matters from three gains on; approximate, and in simulation too cautious, where they do.
    `shift` = T is the matrix inverse minus the difference estimator; its standard error holds the audit's effect on J
    too, so that it serves where the assumption is false. Several labels an item: their mean score, an item is the unit.
    It explains, and chooses no estimator. Refused below 10 audited items.

    Source: docs/methods/derivations/real-judges.md, section 3; Hausman (1978); Janssen (1997).
    """
    found = _audit_sample(labels, FEWEST_ITEMS)
    if isinstance(found, Refusal):
        return found
    audit, first = found
    w = _of_items("weights", finite("weights", weights), audit, first)
    if permutations < 99:
        raise ValueError(f"permutations must be at least 99, got {permutations}")

    error = audit.score - audit.gains[audit.gold]
    parts = audit.weight * (w - _implied_mean(audit, w)[audit.gold]) * error
    shift = float(parts.sum())
    topic = None if topic_index is None else integers("topic_index", topic_index, 0)
    clustered = None if topic is None else _clustered_t(parts, _of_items("topic_index", topic, audit, first))
    p = _permutation_p(audit, w, error, rng, permutations)
    return AssumptionTest(p, shift, math.sqrt(float((parts**2).sum())), clustered, first.size)


def _of_items(name: str, values: Any, audit: _AuditSample, first: Ints) -> Any:
    """Return one value per item. Raise ValueError for another length or labels of an item that differ."""
    if values.shape != audit.item.shape:
        raise ValueError(f"{name} must have length {audit.item.size}, got shape {values.shape}")
    if (values != values[first][audit.item]).any():
        raise ValueError(f"{name} must be the same for all labels of an item")
    return values[first]


def _implied_mean(audit: _AuditSample, w: Floats) -> Floats:
    """Return per grade the mean of w that the labels imply, ``J^-T A / N``, A the total of w by label.

    Centred at it instead of at the mean itself, the parts of T have the same sum (errors sum to 0 within a grade) and
    the variance that T has with J estimated, to first order; the two agree where the assumption is true.
    """
    weighted = (w * audit.weight)[audit.item] * audit.share
    by_label = np.bincount(audit.given, weights=weighted, minlength=audit.gains.size)
    return np.asarray(np.linalg.solve(audit.matrix.T, by_label) / audit.totals)


def _permutation_p(
    audit: _AuditSample, w: Floats, error: Floats, rng: np.random.Generator, permutations: int
) -> float:
    centre = np.bincount(audit.gold, weights=w * audit.weight, minlength=audit.gains.size) / audit.totals
    lever = (w - centre[audit.gold]) * audit.weight
    members = [np.flatnonzero(audit.gold == grade) for grade in range(audit.gains.size)]
    # T does not feel it (levers sum to 0 within a grade), and what permuting leaves alone keeps the test exact
    error = error.copy()
    for member in members:
        error[member] -= error[member].mean()
    observed = _t_statistics(error[None], lever)[0]
    reached, done, step = 1, 0, max(1, BLOCK // error.size)
    while done < permutations:
        rows = np.tile(error, (min(step, permutations - done), 1))
        for member in members:
            rows[:, member] = rng.permuted(rows[:, member], axis=1)
        # the labels' own order counts as one of the permutations, ties included
        reached += int((_t_statistics(rows, lever) >= observed * (1 - 1e-9)).sum())
        done += rows.shape[0]
    return reached / (permutations + 1)


def _t_statistics(errors: Floats, lever: Floats) -> Floats:
    total, square = np.abs(errors @ lever), errors**2 @ lever**2
    return np.asarray(np.divide(total, np.sqrt(square), out=np.zeros_like(total), where=square > 0))


def _clustered_t(parts: Floats, topic: Ints) -> float | None:
    sums = np.bincount(np.unique(topic, return_inverse=True)[1], weights=parts)
    error = math.sqrt(sums.size * float(sums.var(ddof=1))) if sums.size > 1 else 0.0
    return float(sums.sum()) / error if error > 0 else None


# -- by popularity --------------------------------------------------------------------------------------------


def popularity_thirds(log_runs: ArrayLike, weight: ArrayLike | None = None) -> Ints:
    """Return 0, 1 or 2 per item: its third by the number of runs that return it. Equal numbers stay together.

    The third of a number is that of the middle of its share of the (weighted) items, so thirds are of unequal size, and
    one may be empty, where many items have the same number.

    >>> popularity_thirds(np.log([1, 1, 1, 2, 3, 9])).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    x = finite("log_runs", log_runs)
    size = np.ones(x.size) if weight is None else finite("weight", weight, x.shape)
    _, index = np.unique(x, return_inverse=True)
    share = np.bincount(index, weights=size)
    middle = (np.cumsum(share) - share / 2) / share.sum() if x.size else share
    return np.asarray(np.minimum(2, 3 * middle).astype(np.int64)[index])


def popularity_bands(log_runs: ArrayLike, labels: AuditedLabels) -> tuple[PopularityBand, ...]:
    """Return sensitivity and specificity by popularity third, weighted by 1/pi, from the least popular on.

    Assumption: labels of an item count as if they were of different ones, so intervals are too narrow for several
    labels an item. Intervals as in `analytics.estimation.confusion`.
    """
    gold, given, pi, v = labels.gold_grade, labels.given_grade, labels.audit_probability, labels.gains
    x = finite("log_runs", log_runs, gold.shape)
    third, relevant = popularity_thirds(x, 1 / pi), (v > v.min()).astype(np.int64)
    bands = []
    for member in (np.flatnonzero(third == k) for k in range(3)):
        if member.size == 0:
            continue
        counts = audit_counts(relevant[gold[member]], relevant[given[member]], pi[member], 2)
        found = confusion_from_counts(counts)
        rates = [_rate(found, grade) for grade in (1, 0)]
        runs = np.rint(np.exp(x[member])).astype(np.int64)
        bands.append(PopularityBand(int(runs.min()), int(runs.max()), int(member.size), *rates))
    return tuple(bands)


def _rate(found: ConfusionEstimate, grade: int) -> Rate:
    """Return the chance that a label agrees with a gold label of this grade, of two."""
    value, low, high = (rows[grade] for rows in (found.matrix, found.low, found.high))
    if value is None or low is None or high is None:
        return Rate(None, None, None)
    return Rate(value[grade], low[grade], high[grade])


# -- what is stored and shown ---------------------------------------------------------------------------------


def assumption_result(
    labels: AuditedLabels,
    *,
    log_runs: ArrayLike,
    rng: np.random.Generator,
    topic_index: ArrayLike | None = None,
    target_weights: ArrayLike | None = None,
    permutations: int = 999,
) -> AssumptionResult | Refusal:
    """Return the test with w = log_runs, rates by popularity third, and the shift of a target whose weights are given.

    `log_runs` is log(number of runs that return the document). Refused below 50 audited items and where there is no
    test. Arguments and assumptions: `assumption_test`.
    """
    if finite("log_runs", log_runs).size and np.min(np.asarray(log_runs)) < 0:
        raise ValueError(f"log_runs must be at least 0 (one run), got {np.min(np.asarray(log_runs))}")
    found = _audit_sample(labels, FEWEST_AUDITED)
    if isinstance(found, Refusal):
        return found
    tested = assumption_test(log_runs, labels, rng=rng, topic_index=topic_index, permutations=permutations)
    if isinstance(tested, Refusal):
        return tested
    bands = popularity_bands(log_runs, labels)
    of_target = None
    if target_weights is not None:
        of_target = assumption_test(target_weights, labels, rng=rng, topic_index=topic_index, permutations=99)
    moved = of_target if isinstance(of_target, AssumptionTest) else None
    return AssumptionResult(
        p_value=tested.p_value,
        n=tested.n,
        topic_t=tested.topic_t,
        shift=None if moved is None else moved.shift,
        standard_error=None if moved is None else moved.standard_error,
        bands=bands,
    )


def assumption_sentences(result: AssumptionResult | Refusal) -> list[str]:
    """Return what to show beside the papers' corrections: docs/methods/derivations/real-judges.md, section 3.4."""
    if isinstance(result, Refusal):
        return [f"Whether judges err alike on all documents of one grade was not tested: {result.reason}."]
    p = "p < .01" if result.p_value < 0.01 else f"p = {result.p_value:.2f}".replace("0.", ".")
    if not result.is_contradicted:
        said = (
            f"That judges err alike on all documents of one grade is not contradicted by {result.n} audited items "
            f"({p}). This proves nothing: an audit of 100 items notices the errors of real judges in about 6 of 10 "
            "cases."
        )
        return [said, *_rates(result.bands)]
    words = [
        f"Judges do not err alike on all documents of one grade ({p}, {result.n} audited items).",
        *_rates(result.bands),
    ]
    if result.shift is not None and result.standard_error is not None:
        words.append(
            f"A confusion-matrix correction would move this number by {result.shift:+.3g} ± "
            f"{result.standard_error:.2g} (standard error); it is not used."
        )
    else:
        words.append("A confusion-matrix correction takes for granted that they do; it is not used.")
    return words


def _rates(bands: tuple[PopularityBand, ...]) -> list[str]:
    """Return one sentence on specificity by popularity, if it is known in two thirds at least."""
    known = [(band, band.specificity.value) for band in bands if band.specificity.value is not None]
    if len(known) < 2:
        return []
    parts = [f"{value:.0%} where {_runs(band)}" for band, value in known]
    return [f"Of documents that are not relevant, judges see that: {', '.join(parts)}."]


def _runs(band: PopularityBand) -> str:
    if band.fewest_runs == band.most_runs:
        return "1 run returns them" if band.most_runs == 1 else f"{band.most_runs} runs return them"
    return f"{band.fewest_runs} to {band.most_runs} runs return them"
