"""Pseudo-labels: an unbiased stand-in for the label of every frame item, judged or not, with its noise.

``u* = f + (I/pi) z``, z = u - f for a judged item and 0 for all others; E[u*] = u whatever the prediction f is,
if it was fixed without the item's own inclusion. Sums, products of different items, and so the numerators of
DCG and AP, are then unbiased too: items are drawn independently (Poisson).

Noisy labels have a second phase: judged items carry the gold label mu that is predicted of them, audited ones the gold
label v, ``z = (mu - f) + (A/pi_a) (v - mu)``. That is `analytics.estimation.two_phase` written per item; with the mean
of an item's bronze class for mu it is GREG-label (`analytics.estimation.correction`).

A graded label is kept as a staircase of 0/1 labels, see `analytics.estimation.graded_labels`.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.graded_labels import mean_on_stairs, on_stairs, stairs
from analytics.estimation.samples import AuditSample, Frame
from analytics.estimation.two_phase import audit_surprises
from sampling.measures.kinds import topic_sums


@dataclass(frozen=True)
class PseudoLabels:
    """Return of `pseudo_labels`: what `analytics.estimation.ratios` needs to know about labels; nothing about runs.

    Attributes
    ----------
    n_topics : int
    topic_index, utility : arrays [frame]
        Topic of each item; u* in units of gain (may be negative, or above the largest gain).
    steps : array [stair]
    stair_total, stair_found : arrays [stair, topic]
        Sum of u* on the stair over the topic's items, which estimates how many items reach it: without bias,
        but for the split of the prediction over the stairs of a graded scale. How many are known to reach it.
    judged : int array [judged]
        Places in the frame.
    draw_noise, audit_noise : arrays [stair, judged]
        Standard deviation that the drawing (the audit) puts on the item's u*; their squares sum to the
        unbiased estimate of the Poisson variance of any sum of u*.
    expected_noise : array [stair, judged]
        What the drawing's noise is expected to be, see `cautious`.
    found_draw_noise, found_audit_noise : arrays [stair, judged]
        Standard deviation of the item's part of `stair_found`; it varies together with the totals.
    counted : bool array [judged]
        Items whose label is known: all judged ones, or the audited ones where there is an audit.
    predicted : bool
        Whether there is a prediction: False is Horvitz-Thompson.
    sources : tuple of str
        The errors that the noise contains.
    spread_evenly : float
        As how many known items, spread evenly over the pool, an audit's count for what concerns the whole pool:
        ``N^2 / sum 1/chance``, never more than are expected to be known. Infinite where there is no audit.
    """

    n_topics: int
    topic_index: Ints
    utility: Floats
    steps: Floats
    stair_total: Floats
    stair_found: Floats
    judged: Ints
    draw_noise: Floats
    audit_noise: Floats
    expected_noise: Floats
    found_draw_noise: Floats
    found_audit_noise: Floats
    counted: NDArray[np.bool_]
    predicted: bool
    sources: tuple[str, ...]
    spread_evenly: float = math.inf

    @property
    def known_noun(self) -> str:
        """What an item with a known label is called."""
        return "audited" if "gold" in self.sources else "judged"

    @cached_property
    def noisy(self) -> Ints:
        """Places among the judged items of those whose u* has noise: not drawn, or not audited, for certain."""
        noise = (self.draw_noise, self.audit_noise, self.found_draw_noise, self.found_audit_noise)
        return np.flatnonzero(np.concatenate(noise).any(axis=0))

    def replicates(self, multiplier: Floats) -> tuple[list[Floats], list[Floats]]:
        """Return noise[noisy, replicate] of every stair, and of every stair's found items.

        `multiplier` is [noisy, replicate] without an audit, else [2 * noisy, replicate]: the drawing's, then the
        audit's; of mean 0 and variance 1.
        """
        n = self.noisy.size
        made = []
        for draw, audit in (
            (self.draw_noise, self.audit_noise),
            (self.found_draw_noise, self.found_audit_noise),
        ):
            rows = [row[self.noisy, None] * multiplier[:n] for row in draw]
            if multiplier.shape[0] > n:
                for row, one in zip(audit, rows, strict=True):
                    one += row[self.noisy, None] * multiplier[n:]
            made.append(rows)
        return made[0], made[1]

    def cautious(self) -> "PseudoLabels":
        """Return the same with the larger of two noises of the drawing, topic by topic: seen or expected.

        A topic in which a relevant document was missed because it was unlikely to be drawn shows no noise at all.
        What its prediction (or the bronze class) leaves open is expected noise; where that is larger, it counts.
        """
        topic = self.topic_index[self.judged]
        sizes = [
            (self.steps[:, None] * noise).sum(axis=0) ** 2 for noise in (self.draw_noise, self.expected_noise)
        ]
        seen, expected = topic_sums(topic, np.stack(sizes), self.n_topics)
        return replace(
            self, draw_noise=np.where((expected > seen)[topic], self.expected_noise, self.draw_noise)
        )

    @property
    def is_census(self) -> bool:
        """Whether every item of the frame is known, so that nothing is estimated."""
        everything = self.counted.all() and self.judged.size == self.topic_index.size
        return bool(everything and self.noisy.size == 0)


@dataclass(frozen=True)
class _Phases:
    """What is known of the labels. Without an audit: every judged item audited with probability 1, mu = v."""

    prediction: Floats  # [frame]
    class_mean: Floats  # [stair, judged], of the bronze classes; or predicted item by item
    audited: NDArray[np.bool_]
    audit_probability: Floats
    gold: Floats  # [stair, judged], read where audited
    class_variance: Floats | None = None  # [stair, judged] of the stairs' labels; None without an audit
    gain_variance: Floats | None = None  # [judged]


def _stair_rows(name: str, values: ArrayLike, shape: tuple[int, int]) -> Floats:
    rows = finite(name, np.atleast_2d(np.asarray(values, dtype=np.float64)), shape)
    if ((rows < 0) | (rows > 1)).any():
        raise ValueError(f"{name} must be in [0, 1], got {rows[(rows < 0) | (rows > 1)][0]}")
    return rows


def _stair_variance(p: Floats, steps: Floats) -> Floats:
    """Return [item] the variance of a gain that reaches stair j of these steps with chance p [stair, item].

    >>> _stair_variance(np.array([[0.5], [0.25]]), np.array([1.0, 2.0])).tolist()
    [1.5]
    """
    gain = (steps[:, None] * p).sum(axis=0)
    square = ((2 * np.cumsum(steps) - steps)[:, None] * steps[:, None] * p).sum(axis=0)
    return np.asarray(square - gain**2)


def _expected_noise(phases: _Phases, pi: Floats, guess: Floats, steps: Floats) -> Floats:
    """Return [stair, judged]: the drawing's noise if labels vary as the prediction, or the bronze class, says.

    The stairs' noises share one multiplier, so they are scaled to the noise of the gain, which is smaller than
    their sum.
    """
    if phases.class_variance is None or phases.gain_variance is None:
        p = np.minimum.accumulate(
            np.clip(guess, 0, 1), axis=0
        )  # no stair is reached more often than the one below
        square, whole = p * (1 - p), _stair_variance(p, steps)
    else:
        off = phases.class_mean - guess
        square = off**2 + phases.class_variance / phases.audit_probability
        whole = (steps[:, None] * off).sum(axis=0) ** 2 + phases.gain_variance / phases.audit_probability
    parts = np.sqrt(square)
    total = (steps[:, None] * parts).sum(axis=0)
    share = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
    return np.asarray(share * np.sqrt(np.maximum(whole, 0) * (1 - pi)) / pi)


def _pseudo_labels(frame: Frame, phases: _Phases, steps: Floats, sources: tuple[str, ...]) -> PseudoLabels:
    pi, pi_a, n_topics = frame.draw_probability, phases.audit_probability, frame.n_topics
    surprise = audit_surprises(phases.gold, phases.class_mean, phases.audited, pi_a)
    observed = phases.class_mean + surprise  # [stair, judged], unbiased for the stair's label
    # A gain of 1 is split over the stairs as the sample says; the split moves the ideal ranking only, never u*.
    share = np.maximum((observed / pi).sum(axis=1), 0.0)
    scale = float((share * steps).sum())
    share = share / scale if scale > 0 else np.full(steps.size, 1 / float(steps.sum()))
    guess = share[:, None] * phases.prediction[frame.judged]
    gap = (observed - guess) / pi
    topic = frame.judged_topic
    guessed = topic_sums(frame.topic_index, phases.prediction[None], n_topics)
    known = np.where(phases.audited, phases.gold, 0.0)
    utility = phases.prediction.copy()
    utility[frame.judged] += (steps[:, None] * gap).sum(axis=0)
    return PseudoLabels(
        n_topics=n_topics,
        topic_index=frame.topic_index,
        utility=utility,
        steps=steps,
        stair_total=share[:, None] * guessed + topic_sums(topic, gap, n_topics),
        stair_found=topic_sums(topic, known, n_topics),
        judged=frame.judged,
        draw_noise=gap * np.sqrt(1 - pi),
        audit_noise=surprise * np.sqrt(pi * (1 - pi_a)) / pi,
        expected_noise=_expected_noise(phases, pi, guess, steps),
        found_draw_noise=known * np.sqrt(1 - pi),
        found_audit_noise=known * np.sqrt(pi * (1 - pi_a)),
        counted=phases.audited,
        predicted=bool(phases.prediction.any()),
        sources=sources,
    )


def pseudo_labels(
    frame: Frame, *, prediction: ArrayLike, label: ArrayLike, steps: ArrayLike = (1.0,)
) -> PseudoLabels:
    """Return the pseudo-labels of items whose judged label is taken as it is.

    Parameters
    ----------
    prediction : array [frame]
        f in units of gain, fixed without the item's own inclusion (cross-fitted); zeros give Horvitz-Thompson.
    label : array [stair, judged] or [judged]
        In [0, 1]: `on_stairs` of the grade, or its mean over the labels of the item.
    steps : array [stair]
        `stairs(gains).steps`.

    Raises
    ------
    ValueError
        Shapes that do not fit the frame, anything not finite, labels outside [0, 1].

    Examples
    --------
    >>> frame = Frame(n_topics=1, topic_index=[0] * 4, judged=[0, 2], draw_probability=[.5, 1])
    >>> pseudo_labels(frame, prediction=[.4, .3, .5, .2], label=[1, 1]).utility.round(6).tolist()
    [1.6, 0.3, 1.0, 0.2]
    """
    step = np.atleast_1d(finite("steps", steps))
    if step.ndim != 1 or step.size == 0 or (step <= 0).any():
        raise ValueError(f"steps must be flat and above 0, got {step.tolist()}")
    f = finite("prediction", prediction, frame.topic_index.shape)
    rows = _stair_rows("label", label, (step.size, frame.judged.size))
    certain = np.ones(frame.judged.size)
    phases = _Phases(f, rows, certain > 0, certain, rows)
    return _pseudo_labels(frame, phases, step, ("drawing",))


def census(*, topic_index: ArrayLike, n_topics: int, grades: ArrayLike, gains: ArrayLike) -> PseudoLabels:
    """Return the pseudo-labels of a frame of which every grade is known: the true value, nothing estimated."""
    rows = on_stairs(gains, grades)
    everything = np.arange(rows.shape[1])
    frame = Frame(n_topics, np.asarray(topic_index), everything, np.ones(everything.size))
    return pseudo_labels(frame, prediction=np.zeros(everything.size), label=rows, steps=stairs(gains).steps)


def corrected_pseudo_labels(
    frame: Frame,
    audit: AuditSample,
    gains: ArrayLike,
    *,
    prediction: ArrayLike,
    after: ArrayLike | None = None,
) -> PseudoLabels:
    """Return the pseudo-labels corrected by an audit: ``f + (I/pi) [(mu - f) + (A/pi_a) (v - mu)]``.

    `frame` and `prediction` as in `pseudo_labels`; `audit` and `gains` as in `analytics.estimation.two_phase`. Every
    item of the audit must have had a chance of being audited.

    Where an audit happened to find few errors, its noise is what the predicted variances of the gold say, for
    every judged item, instead of what the audited ones show: the larger of the two. Where gold judges judged the items
    themselves nothing is left to correct: `pseudo_labels` of their labels.

    Parameters
    ----------
    after : array [stair, open], optional
        mu = h: the chance that an item reaches a stair, predicted with its labels, but not from its own fold
        (`analytics.estimation.one_step.StairPhases.after`). Default: the means of the bronze classes, as in
        `analytics.estimation.correction.correct`, so that the sum of w u* is its value; a release without predictions
        has no other.

    Raises
    ------
    ValueError
        As `pseudo_labels`; an item that had no chance of being audited; gains of another scale.

    Source: docs/methods/derivations/ratios.md, section 1.2; docs/methods/derivations/correction.md, section 3.2.
    """
    step = stairs(gains).steps
    if audit.unauditable.any():
        raise ValueError("audit_probability must be in (0, 1], got 0")
    f = finite("prediction", prediction, frame.topic_index.shape)
    opened = frame.open_to(audit)
    if audit.labels is not None:
        return pseudo_labels(opened, prediction=f, label=mean_on_stairs(gains, audit.labels), steps=step)
    pi, pi_a = audit.draw_probability, audit.audit_probability
    gold = on_stairs(gains, audit.gold_grade) * audit.audited
    mean, variance, spread = (
        _class_moments(audit, gold, step) if after is None else _predicted_moments(after, gold.shape, step)
    )
    phases = _Phases(f, mean, audit.audited, pi_a, gold, variance, spread)
    made = _pseudo_labels(opened, phases, step, ("drawing", "label noise", "gold"))
    if after is not None:  # older releases have no such limit
        inverse = float((1 / (pi**2 * pi_a)).sum())  # of a part of the pool, without bias for all of it
        made = replace(made, spread_evenly=f.size**2 / inverse if inverse else 0.0)
    predicted = np.sqrt((1 / pi_a - 1) * spread / pi)
    seen_noise = (step[:, None] * made.audit_noise).sum(axis=0)
    if (seen_noise**2).sum() >= (predicted**2).sum():
        return made
    deviation = np.sqrt(variance)
    whole = (step[:, None] * deviation).sum(axis=0)
    part = np.divide(
        deviation, whole, out=np.zeros_like(deviation), where=whole > 0
    )  # of a gain of 1, by stair
    return replace(made, audit_noise=part * predicted)


def _class_moments(audit: AuditSample, gold: Floats, steps: Floats) -> tuple[Floats, Floats, Floats]:
    """Return mean and variance of every stair's labels in the bronze classes, and the variance of the gain."""
    moments = np.stack([audit.class_moments(row, 1.0) for row in gold])  # [stair, 2, judged]
    gain = (steps[:, None] * gold).sum(axis=0)
    return moments[:, 0], moments[:, 1], audit.class_moments(gain, float(steps.sum()))[1]


def _predicted_moments(
    after: ArrayLike, shape: tuple[int, ...], steps: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the same of labels that reach each stair with these chances: 1 on it, so also on all below."""
    h = _stair_rows("after", after, (shape[0], shape[1]))
    return h, h * (1 - h), np.maximum(0.0, _stair_variance(h, steps))
