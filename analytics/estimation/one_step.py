"""nDCG@k, AP@k and R@k from few gold labels: one step from the predicted value, along its derivative.

    value = mean over topics of q(p) + sum_ij phi_ij (u*_ij - p_ij)

p predicts whether item i reaches stair j of the gains, u* is its pseudo-label (`analytics.estimation.two_phase`), q is
the measure of a topic and phi its derivative (`sampling.measures.ratio_derivative`). So the sum is linear in the
labels: unbiased for fixed predictions, and its variance, degrees of freedom and t are those of `two_phase` with phi for
the weights. What one step leaves out is of second order in the errors of the prediction; the audit estimates that too,
and its square is added to the variance.

All stairs of an item are drawn and audited together, so what counts is its sum over them, a combination of two numbers,
U_i = sum_j step_j u_ij and S_i = sum_j z_j u_ij:

    sum_j phi_ij u_ij = c_i U_i - d S_i,       c_i = alpha_i / (Z T),   d = q / (Z T),   T topics
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Estimates, Floats, Ints, Refusal, refused_where
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.graded_labels import on_stairs, stairs
from analytics.estimation.one_step_limits import instead_of_one_step, missing_labels
from analytics.estimation.samples import AuditSample, Frame
from analytics.estimation.two_phase import TwoPhaseSums, audit_surprises, two_phase_estimates, variance_terms
from sampling.measures.families import Measure
from sampling.measures.kinds import Ratio
from sampling.measures.ratio_derivative import Derivative, derivative, second_order
from sampling.measures.sparse import SparseRuns

MOST_BEND = 0.25  # of V: the largest b^2 with which a number is given
CHUNK_NUMBERS = 1_000_000  # of one table [target, item]: 8 MB


@dataclass(frozen=True)
class OneStep:
    """What `one_step` returns: of every run, then of every pair of runs.

    `second_order` is b, the estimate of what one step leaves out: b^2 is in the variance, and b not in the value.
    `topic_values` [run, topic] have the runs' values as their means.
    """

    estimates: Estimates
    second_order: Floats
    topic_values: Floats


@dataclass(frozen=True, eq=False)
class StairPhases:
    """The judged items that were open to an audit, with predictions and gold of every stair.

    Attributes
    ----------
    frame : Frame
        Its judged items are those that were open to the audits, with pi.
    steps : array [stair]
        `analytics.estimation.graded_labels.stairs(gains).steps`.
    audited : bool array [open]
    gold : array [stair, open]
        v, 0 or 1; read where audited.
    audit_probability : array [open]
        a, within [0, 1]; 0 = it had no chance of an audit.
    before : array [stair, frame]
        g, within [0, 1], no stair more probable than the one below.
    after : array [stair, open]
        h, likewise; where a = 1 it becomes v.

    Raises
    ------
    ValueError
        Input out of bounds or of different shapes; an audited item without a chance of being audited.
    """

    frame: Frame
    steps: Floats
    audited: NDArray[np.bool_]
    gold: Floats
    audit_probability: Floats
    before: Floats
    after: Floats

    def __post_init__(self) -> None:
        n_open, n_stairs = self.frame.judged.size, np.size(self.steps)
        seen = np.asarray(self.audited)
        if seen.dtype != np.bool_ or seen.shape != (n_open,):
            raise ValueError(f"audited must be {n_open} booleans, got {seen.dtype} of shape {seen.shape}")
        chance = finite("audit_probability", self.audit_probability, (n_open,))
        if ((chance < 0) | (chance > 1)).any():
            raise ValueError(
                f"audit_probability must be in [0, 1], got {chance[(chance < 0) | (chance > 1)][0]}"
            )
        if (chance[seen] == 0).any():
            raise ValueError("audit_probability of an audited item must be above 0, got 0")
        gold = np.where(seen, self.gold, 0.0) if np.shape(self.gold) == (n_stairs, n_open) else self.gold
        arrays = {
            "steps": finite("steps", self.steps, (n_stairs,)),
            "audited": seen,
            "gold": _stair_table("gold", gold, (n_stairs, n_open)),
            "audit_probability": chance,
            "before": _stair_table("before", self.before, (n_stairs, self.frame.topic_index.size)),
            "after": _stair_table("after", self.after, (n_stairs, n_open)),
        }
        # Where an audit was certain nothing is left to predict, as in `two_phase`.
        arrays["after"] = np.where(seen & (chance == 1), arrays["gold"], arrays["after"])
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @cached_property
    def prediction(self) -> Floats:
        """Return p [stair, frame]: g, and h of an item that was certain to be drawn."""
        p = self.before.copy()
        certain = self.frame.draw_probability == 1
        p[:, self.frame.judged[certain]] = self.after[:, certain]
        return p

    @cached_property
    def active(self) -> Ints:
        """Return the places among the open items of those whose pseudo-label is not, or not certainly, p."""
        asked = self.audited | (self.frame.draw_probability < 1) | (self.audit_probability == 0)
        return np.flatnonzero(asked)


def _stair_table(name: str, values: Floats, shape: tuple[int, int]) -> Floats:
    table = finite(name, values, shape)
    if ((table < 0) | (table > 1)).any():
        raise ValueError(f"{name} must be in [0, 1], got {table[(table < 0) | (table > 1)][0]}")
    if (np.diff(table, axis=0) > 0).any():
        raise ValueError(f"{name} must not rise from a stair to the next")
    return table


def stair_phases(
    frame: Frame, audit: AuditSample, gains: Floats, predictions: Sequence[GoldPrediction]
) -> StairPhases:
    """Return the items of an audit with what is predicted of each stair: that its indicator, a gain of 0 or 1, is 1.

    Each stair is predicted by a fit of its own; where a higher one came out more probable than the one below, it takes
    that one's probability.
    """
    before, after = (
        np.minimum.accumulate(np.stack(rows))
        for rows in zip(*((one.before, one.after) for one in predictions), strict=True)
    )
    return StairPhases(
        frame=frame.open_to(audit),
        steps=stairs(gains).steps,
        audited=audit.audited,
        gold=on_stairs(gains, audit.gold_grade),
        audit_probability=audit.audit_probability,
        before=before,
        after=after,
    )


# -- all targets ----------------------------------------------------------------------------------------------


class _Active:
    """The items that can differ from p, in the two numbers U and S; arrays [2, item] unless they say otherwise."""

    def __init__(self, items: StairPhases, slope: Floats) -> None:
        here, frame = items.active, items.frame
        self.n_frame = frame.topic_index.size
        self.place, self.topic = frame.judged[here], frame.judged_topic[here]
        self.pi, self.seen = frame.draw_probability[here], items.audited[here]
        self.unauditable = items.audit_probability[here] == 0
        self.a = np.where(self.unauditable, 1.0, items.audit_probability[here])
        z, steps = slope[:, self.topic], items.steps[:, None]
        self.is_counted = (z != 0).any(axis=0)  # whether one more of it would change the denominator
        after = items.after[:, here]

        def both(stairs: Floats) -> Floats:
            return np.stack([(steps * stairs).sum(axis=0), (z * stairs).sum(axis=0)])

        self.before = both(items.prediction[:, self.place])
        self.after, self.gold = both(after), both(items.gold[:, here])
        exactly = after - np.concatenate([after[1:], np.zeros((1, here.size))])  # this stair and no higher
        reached = np.stack([np.cumsum(np.broadcast_to(steps, z.shape), axis=0), np.cumsum(z, axis=0)])
        self.moments = [
            (exactly * reached[one] * reached[other]).sum(axis=0) - self.after[one] * self.after[other]
            for one, other in ((0, 0), (0, 1), (1, 1))
        ]
        self.error = (
            self.after - self.before + audit_surprises(self.gold, self.after, self.seen, self.a)
        ) / self.pi
        off = np.where(self.seen, self.gold - self.before, 0.0)
        self.own = off * off[1] / (self.pi * self.a) - self.error * self.error[1]

    def of_runs(self, at: Derivative) -> Floats:
        """Return alpha [run, item]."""
        where = np.full(self.n_frame, -1)
        where[self.place] = np.arange(self.place.size)
        column = where[at.item]
        alpha = np.zeros((len(at.value), self.place.size))
        alpha[at.run[column >= 0], column[column >= 0]] = at.numerator_slope[column >= 0]
        return alpha

    def over_frame(self, values: Floats) -> Floats:
        """Return [row, frame] of values [row, item], 0 elsewhere."""
        table = np.zeros((values.shape[0], self.n_frame))
        table[:, self.place] = values
        return table


def _blocks(n_runs: int, n_items: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the targets in parts of bounded size: the first run of each and the second, -1 of a run alone."""
    first, second = np.triu_indices(n_runs, 1)
    runs = np.arange(n_runs)
    a, b = np.concatenate([runs, first]), np.concatenate([np.full(n_runs, -1), second])
    step = max(1, CHUNK_NUMBERS // max(1, n_items))
    for start in range(0, a.size, step):
        yield a[start : start + step], b[start : start + step]


def _less(rows: Floats, a: Ints, b: Ints) -> Floats:
    """Return what run a has less what run b has, or what a has alone."""
    alone = (b < 0).reshape(-1, *[1] * (rows.ndim - 1))
    return np.asarray(np.where(alone, rows[a], rows[a] - rows[b]))


def _sums(active: _Active, c: Floats, d: Floats) -> tuple[Floats, Floats]:
    """Return [target] what is added to q(p), and [column, target] the sums that `TwoPhaseSums` takes."""

    def of(both: Floats) -> Floats:
        return np.asarray(c * both[0] - d * both[1])

    variance, covariance, of_count = active.moments
    spread = np.maximum(0.0, c**2 * variance - 2 * c * d * covariance + d**2 * of_count)
    terms = variance_terms(
        active.pi,
        active.a,
        active.seen,
        of(active.before),
        of(active.after),
        of(active.gold),
        spread,
    )
    predicted, correction, audit, pooled, fourth = (term.sum(axis=-1) for term in terms)
    weighed = (c != 0) | ((d != 0) & active.is_counted)
    uncertain = (active.pi < 1) | (active.a < 1)
    masks = (np.ones(active.pi.size, bool), active.seen, active.unauditable, uncertain)
    counts = [(weighed & mask).sum(axis=-1) for mask in masks]
    columns = [predicted, predicted + correction, audit, pooled, fourth, *counts]
    return of(active.error).sum(axis=-1), np.stack(columns)


def one_step(
    measure: Measure[Ratio], items: StairPhases, ranks: SparseRuns, *, fewest: int = FEWEST_ITEMS
) -> OneStep:
    """Return the measure of every run, then the difference of every pair, with 95 % confidence intervals.

    Assumption: items were drawn, and judged items audited, independently with the recorded probabilities (Poisson); the
    gold gain is right; documents outside the frame count as not relevant. The part that is linear in the labels is
    unbiased for fixed predictions. What is left is of second order in the prediction's errors: its estimate b is not
    taken off, for it is noisy, but V + b^2 is the variance. These topics: the interval does not contain their choice.

    Refused as in `analytics.estimation.two_phase.two_phase`, and where b^2 > V/4: there more than one step
    would be needed. Which audits serve at all is for `one_step_limits.refusal_by_size` to say, in advance.

    Parameters
    ----------
    measure : Measure[Ratio]
        A mean over topics, and not the ratio of sums.
    items : StairPhases
    ranks : SparseRuns
        A run's rank of each item of the frame.

    Raises
    ------
    ValueError
        A ratio of sums; a binary measure with several stairs; ranks of another frame.

    Source: docs/methods/derivations/correction.md, section 3, for the linear part; Särndal, Swensson and Wretman
    (1992), section 5.5, for linearisation; Järvelin and Kekäläinen (2002) for nDCG.
    """
    _check(measure, items, ranks)
    frame = items.frame
    at = derivative(measure, ranks, frame.topic_index, frame.n_topics, items.prediction, items.steps)
    value, sums, left, of_topics = _of_targets(measure, items, at, ranks.n_runs)
    found = two_phase_estimates(
        value,
        sums,
        is_census=bool((items.audit_probability == 1).all()),
        fewest=fewest,
        more={"second order": left**2},
    )
    linear = found.components["drawing"] + found.components["gold"]
    bent = refused_where(
        (fewest > 0) & (left**2 > MOST_BEND * linear), lambda target: _too_bent(measure, items)
    )
    return OneStep(replace(found, refusals=bent | found.refusals), left, of_topics)


def _check(measure: Measure[Ratio], items: StairPhases, ranks: SparseRuns) -> None:
    if measure.averaging == "micro":
        raise ValueError(f"one step takes a mean over topics, got {measure.name}")
    if ranks.n_items != items.frame.topic_index.size:
        raise ValueError(f"ranks must be of {items.frame.topic_index.size} items, got {ranks.n_items}")


def _of_targets(
    measure: Measure[Ratio], items: StairPhases, at: Derivative, n_runs: int
) -> tuple[Floats, TwoPhaseSums, Floats, Floats]:
    """Return by target the value, the sums of its variance, and b; and the values of topics, [run, topic]."""
    frame = items.frame
    active = _Active(items, at.slope)
    error, own = active.over_frame(active.error), active.over_frame(active.own)
    bend = second_order(measure, at, frame.topic_index, error[0], error[1], own)
    scale = at.denominator * frame.n_topics
    c, d = active.of_runs(at) / scale[active.topic], at.value / scale
    value, columns, curvature = [], [], []
    for a, b in _blocks(n_runs, active.place.size):
        added, parts = _sums(active, _less(c, a, b), _less(d, a, b)[:, active.topic])
        value.append(_less(at.value.mean(axis=1), a, b) + added)
        columns.append(parts)
        curvature.append(_less(bend, a, b))
    whole = np.concatenate(columns, axis=1)
    sums = TwoPhaseSums(*whole[:5], *np.rint(whole[5:]).astype(np.int64))
    added = c * active.error[0] - d[:, active.topic] * active.error[1]
    of_topics = [np.bincount(active.topic, row, frame.n_topics) for row in added]
    values = at.value + frame.n_topics * np.array(of_topics).reshape(at.value.shape)
    return np.concatenate(value), sums, np.concatenate(curvature), values


def _too_bent(measure: Measure[Ratio], items: StairPhases) -> Refusal:
    frame = items.frame
    missing = missing_labels(int(items.audited.sum()), frame.topic_index.size, frame.n_topics)
    words = f"{measure.name} bends too much around what is predicted for one step"
    return Refusal(f"{words}; {instead_of_one_step(missing)}", missing)
