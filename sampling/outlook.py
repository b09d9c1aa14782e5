"""How wide the corrected number's interval will be, in closed form: from the draw, the labels and the audit to come.

The variance of `analytics.estimation.two_phase` in expectation over grades, draw, labels and audit, for a fixed
prediction by the class of an item's labels:

    V_drawing = sum (1 - pi)/pi w^2 s^2             s^2 = sum_g p(g) (v_g - f)^2,  f = sum_g p(g) v_g
    V_gold  = sum_judged (w/pi)^2 (1/a - 1) t^2   t^2 = sum_g p(g) sum_l P(l|g) (v_g - m_l)^2
    m_l       = sum pi p(g) P(l|g) v_g / sum pi p(g) P(l|g), over items and grades

p(g) is the predicted chance of an item's grade, P(l|g) that of its labels' class, a the chance of an audit of a judged
item: an item that gets gold for certain adds nothing to V_gold. It is exact where items are drawn, labelled and
audited independently. Left out: how the prediction is learned, and that t has few degrees of freedom after a small
audit, both of which make intervals wider; that the estimator predicts from more than the class, which makes them
narrower; and that some strategies of audits go by the labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import FloatArray, numbers, probabilities
from sampling.forecasts import NORMAL_97_5
from sampling.measures.sparse import SparseRuns

USUAL_RATES = (0.20, 0.15)  # misses, false alarms: assumed where nothing is measured


@dataclass(frozen=True)
class LabelErrors:
    """How a label errs: P(given grade | true grade), and in words where that is known from."""

    matrix: FloatArray
    origin: str
    is_assumed: bool


@dataclass(frozen=True)
class Outlook:
    """The expected variance of the corrected number by source; `assessors` is None where no audit is planned."""

    drawing: float
    assessors: float | None

    @property
    def variance(self) -> float | None:
        return None if self.assessors is None else self.drawing + self.assessors

    @property
    def half_width(self) -> float | None:
        """Return half the 95 % confidence interval; None without an audit, or where an item has no chance."""
        if self.variance is None or not np.isfinite(self.variance):
            return None
        return float(NORMAL_97_5 * np.sqrt(self.variance))

    @property
    def drawing_share(self) -> float:
        """Return the part of the drawing in the variance; 0 where there is none.

        >>> Outlook(1.0, 3.0).drawing_share
        0.25
        """
        return self.drawing / self.variance if self.variance and np.isfinite(self.variance) else 0.0


def assumed_errors(
    n_grades: int, relevant_grade: int, rates: tuple[float, float] = USUAL_RATES
) -> LabelErrors:
    """Return errors of which only two rates are assumed: misses (relevant taken for not relevant), and false alarms.

    A label on the right side of relevance is taken to be the right grade, one on the wrong side any of its grades.

    Raises
    ------
    ValueError
        A rate outside [0, 1], or labels that say nothing or the reverse: rates that sum to 1 or more.

    Examples
    --------
    >>> assumed_errors(3, 1, (0.2, 0.1)).matrix.tolist()
    [[0.9, 0.05, 0.05], [0.2, 0.8, 0.0], [0.2, 0.0, 0.8]]
    """
    misses, false_alarms = rates
    if not 0 < relevant_grade < n_grades:
        raise ValueError(f"relevant_grade must be within 1 and {n_grades - 1}, got {relevant_grade}")
    if not (0 <= misses <= 1 and 0 <= false_alarms <= 1 and misses + false_alarms < 1):
        raise ValueError(
            f"misses and false alarms must be within 0 and 1 and sum to less than 1, got {misses} and {false_alarms}"
        )
    matrix = np.zeros((n_grades, n_grades))
    matrix[:relevant_grade, relevant_grade:] = false_alarms / (n_grades - relevant_grade)
    matrix[relevant_grade:, :relevant_grade] = misses / relevant_grade
    matrix[np.diag_indices(n_grades)] = np.where(
        np.arange(n_grades) < relevant_grade, 1 - false_alarms, 1 - misses
    )
    words = f"assumed, not measured: {misses:.0%} misses and {false_alarms:.0%} false alarms"
    return LabelErrors(matrix, words.replace("%", " %"), True)


def grade_chances(prior: ArrayLike, n_grades: int, relevant_grade: int) -> FloatArray:
    """Return p[item, grade] of items relevant with probability `prior`: alike for all grades of a side.

    >>> grade_chances([0.5], 3, 1).tolist()
    [[0.5, 0.25, 0.25]]
    """
    p = probabilities("prior", prior)
    n_relevant = n_grades - relevant_grade
    side = np.zeros((2, n_grades))
    side[0, :relevant_grade], side[1, relevant_grade:] = 1 / relevant_grade, 1 / n_relevant
    return np.asarray((1 - p)[:, None] * side[0] + p[:, None] * side[1])


def label_classes(matrix: ArrayLike, n_labels: int) -> FloatArray:
    """Return P(class | true grade) of an item with so many independent labels; its class is the sum of their grades.

    That orders items as the mean of their grades does, a campaign's usual aggregated label.

    >>> label_classes([[0.75, 0.25], [0.5, 0.5]], 2).tolist()
    [[0.5625, 0.375, 0.0625], [0.25, 0.5, 0.25]]
    """
    errors = numbers("matrix", matrix, ndim=2)
    if errors.shape[0] != errors.shape[1] or not np.allclose(errors.sum(axis=1), 1, atol=1e-6):
        raise ValueError(f"matrix must be square with rows that sum to 1, got shape {errors.shape}")
    if n_labels < 1:
        raise ValueError(f"n_labels must be at least 1, got {n_labels}")
    classes = errors
    for _ in range(n_labels - 1):
        classes = np.stack([np.convolve(row, once) for row, once in zip(classes, errors, strict=True)])
    return classes


def class_predictions(weight_of_grade: ArrayLike, classes: ArrayLike, gains: ArrayLike) -> FloatArray:
    """Return m_l, the expected gain by class; 0 of a class that nothing gets.

    `weight_of_grade` is the expected number of judged items of every true grade.

    >>> class_predictions([3.0, 1.0], [[0.75, 0.25], [0.25, 0.75]], [0.0, 1.0]).tolist()
    [0.1, 0.5]
    """
    joint = np.asarray(weight_of_grade, dtype=np.float64)[:, None] * np.asarray(classes, dtype=np.float64)
    total = joint.sum(axis=0)
    value = np.asarray(gains, dtype=np.float64) @ joint
    return np.asarray(np.divide(value, total, out=np.zeros(total.size), where=total > 0))


def outlook(
    squares: ArrayLike,
    draw_probability: ArrayLike,
    chances: ArrayLike,
    *,
    classes: ArrayLike,
    gains: ArrayLike,
    audit_probability: ArrayLike | None,
    drawn: ArrayLike | None = None,
) -> Outlook:
    """Return the expected variance of the corrected number.

    Parameters
    ----------
    squares : array [item]
        w^2, or for several comparisons its mean over them: then variances are means over them too.
    draw_probability : array [item]
        pi; with a weight and without a chance the variance is infinite.
    chances : array [item, grade]
        p(g) from what is known before any judgment.
    classes : array [grade, class]
        See `label_classes`.
    gains : array [grade]
    audit_probability : array [item] or None
        a, within (0, 1] where an item can be judged; of an item that was audited anew in every play its mean is
        that of 1/a (`sampling.audit_plays`). None: no audit is planned, so there is no corrected number.
    drawn : bool array [item], optional
        Which items were drawn, once that is known: then V_gold is the sum over them.
    Raises
    ------
    ValueError
        Arrays that do not fit; an item that can be judged without a chance of an audit.
    """
    square, pi = numbers("squares", squares), probabilities("draw_probability", draw_probability)
    chance, value = numbers("chances", chances, ndim=2), numbers("gains", gains)
    if square.size != pi.size or chance.shape != (pi.size, value.size):
        raise ValueError(
            f"squares, draw_probability and chances must be of as many items, got {square.size}, {pi.size} "
            f"and {chance.shape}"
        )
    known = pi > 0 if drawn is None else np.asarray(drawn, dtype=bool)
    if audit_probability is not None:
        audit = probabilities("audit_probability", audit_probability)
        if audit.size != pi.size or np.any(audit[known] == 0):
            raise ValueError("audit_probability of an item that can be judged must be above 0")
    here = _places(square > 0)  # nothing else has a part: of a large pool most have none
    p, square_here, chance_here = pi[here], square[here], chance[here]
    spread = np.maximum(chance_here @ value**2 - np.square(chance_here @ value), 0.0)
    if np.any((p == 0) & (spread > 0)):
        drawing = np.inf
    else:
        odds = np.divide(1 - p, p, out=np.zeros(p.size), where=p > 0)
        drawing = float((odds * square_here * spread).sum())
    if audit_probability is None:
        return Outlook(drawing, None)
    table = numbers("classes", classes, ndim=2)
    predicted = class_predictions(pi @ chance, table, value)
    left = (table * np.square(value[:, None] - predicted[None])).sum(axis=1)  # by true grade
    judged = _places(known[here])
    once = p if drawn is None else p**2  # 1/pi^2, times pi where it is not known what is drawn
    weight = square_here[judged] / once[judged]
    terms = weight * (1 / audit[here][judged] - 1) * (chance_here @ left)[judged]
    return Outlook(drawing, float(terms.sum()))


def _places(chosen: NDArray[np.bool_]) -> NDArray[np.int64] | slice:
    """Return what takes the chosen entries from an array; without a copy where all are."""
    return slice(None) if chosen.all() else np.flatnonzero(chosen)


def spread_between_topics(
    runs: SparseRuns,
    comparisons: Sequence[tuple[int, int | None]],
    topic_index: NDArray[np.int64],
    n_topics: int,
    *,
    gain: ArrayLike,
    square: ArrayLike,
) -> float:
    """Return what the spread between topics adds to the variance of a number before anything is judged: S^2/n.

    Its expectation if grades fall independently as predicted: the values that topics are expected to have differ, and
    so do their true values around these. ``n var(sum_t w f) + sum w^2 s^2``, the mean over the comparisons.

    Parameters
    ----------
    runs : SparseRuns [run, item]
        Weights, with 1/n_topics in them.
    comparisons : sequence of (run, run or None)
    topic_index : int array [item]
    n_topics : int
        With those of which no document is pooled; at least 2.
    gain, square : arrays [item]
        The expected gain f and the expected square of the gain.

    Examples
    --------
    >>> from sampling.measures.sparse import from_dense
    >>> spread_between_topics(from_dense(np.array([[0.5, 0.5]])), [(0, None)], np.array([0, 1]), 2,
    ...                       gain=[1.0, 0.0], square=[1.0, 0.0])
    0.25
    """
    f, found = numbers("gain", gain), []
    variance = np.maximum(numbers("square", square) - f**2, 0.0)
    for run, against in comparisons:
        w = runs.row(run) - (0.0 if against is None else runs.row(against))
        parts = np.bincount(topic_index, w * f, minlength=n_topics)
        found.append(n_topics * parts.var(ddof=1) + float(np.square(w) @ variance))
    return float(np.mean(found))


# -- in words -------------------------------------------------------------------------------------------------


def outlook_sentence(corrected: Mapping[str, Any]) -> str:
    """Return what is expected of the corrected number, from its outlook as JSON: for topics like these, and for these.

    >>> shown = {"half_width": 0.658, "middle": [0.61, 0.7], "n_plays": 20, "n_gold": 200, "refusal": "",
    ...          "shares": {"drawing": 0.004, "assessors": 0.996, "topics": 0.0},
    ...          "errors_from": "measured in this campaign", "topics_like_these": None}
    >>> print(outlook_sentence(shown).replace(" (", "\\n(").replace("; ", ";\\n").replace(". ", ".\\n"))
    Corrected number: expect ± 0.658 for these topics
    (80 % of 20 simulated campaigns: ± 0.610 to ± 0.700), with 200 gold labels;
    of its variance drawing 0 % and assessors' errors 100 %.
    Assessors' errors: measured in this campaign.
    """
    if corrected["refusal"]:
        return f"{corrected['refusal']}."
    like = corrected["topics_like_these"]
    gold = "" if corrected["n_gold"] is None else f", with {round(corrected['n_gold']):,} gold labels"
    first, where = (corrected, "these topics") if like is None else (like, "topics like these")
    expected = f"{_width(first['half_width'])} for {where}{_middle(first, corrected['n_plays'])}"
    words = [f"Corrected number: expect {expected}{gold}{_shares(first['shares'])}."]
    if like is not None:
        words.append(
            f"For these topics alone: {_width(corrected['half_width'])}{_middle(corrected, corrected['n_plays'])}"
            f"{_shares(corrected['shares'])}."
        )
    if corrected["errors_from"]:
        words.append(f"Assessors' errors: {corrected['errors_from']}.")
    if like is not None:
        words.append(f"Spread between topics: {like['topics_from']}.")
    return " ".join(words)


def floor_sentence(n_gold: float | None, now: float | None, floor: float | None) -> str:
    """Return how far more items narrow the corrected number's interval; empty without an audit of n gold labels.

    `now` is its half-width with the items that are asked for, `floor` the least that any larger number reaches.

    >>> floor_sentence(200.0, 0.62, 0.6)
    'With an audit of 200, more items do not narrow the corrected interval below ± 0.600 for these topics.'
    >>> floor_sentence(200.0, 0.62, 0.62)
    'With an audit of 200, more items do not narrow the corrected interval for these topics.'
    """
    if not n_gold or not floor or now is None:
        return ""
    below = "" if floor >= 0.995 * now else f" below {_width(floor)}"
    more = f"more items do not narrow the corrected interval{below} for these topics"
    return f"With an audit of {round(n_gold):,}, {more}."


def _shares(shares: Mapping[str, float]) -> str:
    """Return the parts of the variance, the largest source of topics like these first; empty without a variance."""
    names = {"topics": "topics", "drawing": "drawing", "assessors": "assessors' errors"}
    parts = [
        f"{words} {round(100 * shares[name])} %"
        for name, words in names.items()
        if name in shares and (shares[name] or name != "topics")
    ]
    if not parts:
        return ""
    return f"; of its variance {', '.join(parts[:-1])} and {parts[-1]}"


def _middle(shown: Mapping[str, Any], n_plays: int) -> str:
    """Return how far simulated campaigns differ; empty where none was simulated."""
    if shown["middle"] is None:
        return ""
    low, high = (_width(end) for end in shown["middle"])
    return f" (80 % of {n_plays} simulated campaigns: {low} to {high})"


def _width(width: float) -> str:
    """Return a half-width to read: three decimals, or two digits where these would hide it.

    >>> _width(0.02134), _width(0.00063), _width(0.0)
    ('± 0.021', '± 0.00063', '± 0.000')
    """
    return f"± {width:.3f}" if width >= 0.01 or width == 0 else f"± {width:.2g}"
