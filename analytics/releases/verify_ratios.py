"""How nDCG and AP of a release follow from its facts: a ratio of two estimates, its interval by a bootstrap.

Part of every release, beside verify.py, which calls it; NumPy is all it needs. Every pair of the frame has a
pseudo-label ``u* = f + (what the judgment adds) / pi``, which is unbiased. A graded gain is a staircase
of labels of 0 and 1, one a step up, so that the ideal ranking follows from how many pairs of a topic reach each stair.

The bootstrap repeats the drawing (and the audit) by multiplying every judged pair's noise with random numbers of mean 0
and variance 1, from the seed in estimates.json. NumPy promises the same random numbers for the same version alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

if __package__:
    from analytics.releases.verify_estimates import (
        LEAST,
        NORMAL_FROM,
        REFUSED,
        always_valid,
        class_moments,
        interval,
        merged_classes,
        with_topics,
    )
    from analytics.releases.verify_facts import Facts, Floats, Ints, Mask, Row, draw_probability, not_covered
    from analytics.releases.verify_measures import RATIOS, Quotient
    from analytics.releases.verify_one_step import Difference, Gold, Ranked, Stairs, gold_of
else:  # in a release, the files lie beside each other
    from verify_estimates import (  # type: ignore
        LEAST,
        NORMAL_FROM,
        REFUSED,
        always_valid,
        class_moments,
        interval,
        merged_classes,
        with_topics,
    )
    from verify_facts import Facts, Floats, Ints, Mask, Row, draw_probability, not_covered  # type: ignore
    from verify_measures import RATIOS, Quotient  # type: ignore
    from verify_one_step import Difference, Gold, Ranked, Stairs, gold_of  # type: ignore

REPLICATES = 1000
NUMBERS_AT_ONCE = 1_000_000
PER_TOPIC, SHARE = 100, 0.2  # known pairs a topic, or of the pool, below which a mean over topics is refused
MICRO_PER_TOPIC, MICRO_SHARE = 8, 0.5  # of a ratio of sums, which a mean needs as well
UNPREDICTED = 30  # a topic, where nothing is predicted


@dataclass(frozen=True, eq=False)
class Labels:
    """The pseudo-labels of the frame. Noise is the standard deviation of a pair's part; arrays [stair, item]."""

    topic: Ints  # [frame]
    n_topics: int
    utility: Floats  # [frame], u* in gains
    steps: Floats  # [stair]
    total: Floats  # [stair, topic], how many pairs reach the stair, estimated
    found: Floats  # [stair, topic], and how many are known to
    item: Ints  # judged pairs: places in the frame
    drawing: Floats
    audit: Floats
    expected: Floats  # of the drawing, if labels vary as predicted
    found_drawing: Floats
    found_audit: Floats
    known: Mask  # [item]
    predicted: bool
    has_audit: bool
    is_watched: bool  # of the reported method, whose numbers have intervals that hold at every look
    even: float = math.inf  # as how many known pairs, evenly spread, an audit counts: N^2 / sum 1/chance

    @property
    def noisy(self) -> Ints:
        both = np.concatenate([self.drawing, self.audit, self.found_drawing, self.found_audit])
        return np.flatnonzero(both.any(axis=0))

    @property
    def is_census(self) -> bool:
        return bool(self.known.all()) and self.item.size == self.topic.size and self.noisy.size == 0

    def sums(self, rows: Floats) -> Floats:
        """Return [row, topic], the sums of values [row, item]."""
        own = self.topic[self.item]
        return np.array([np.bincount(own, row, self.n_topics) for row in rows])

    def cautious(self) -> "Labels":
        """Return them with the larger noise of the drawing, topic by topic: seen or expected."""
        seen, expected = self.sums(
            np.array([(self.steps @ noise) ** 2 for noise in (self.drawing, self.expected)])
        )
        wider = (expected > seen)[self.topic[self.item]]
        return replace(self, drawing=np.where(wider, self.expected, self.drawing))


LabelsOf = Callable[[Facts, Floats, Floats, Gold], Labels | None]


def on_stairs(gains: Floats, grades: Ints) -> Floats:
    """Return [stair, label]: 1 where the grade's gain reaches the stair; stairs are the different gains above 0."""
    return np.asarray(gains[grades] >= np.unique(gains[gains > 0])[:, None], dtype=np.float64)


def labels_of(
    facts: Facts, gains: Floats, f: Floats, item: Ints, pi: Floats, mean: Floats, seen: Mask, a: Floats, gold: Floats,
    *, has_audit: bool, variances: tuple[Floats, Floats] | None,
) -> Labels:  # fmt: skip
    """Return the pseudo-labels of items drawn with chance pi: what is thought of them (`mean`), and of the seen, gold.

    All but f [frame] are [item] or [stair, item]; `variances` within the classes of the stairs' labels, and of gains.
    """
    n = len(facts.topics)
    steps = np.diff(np.unique(gains[gains > 0]), prepend=0.0)
    surprise = np.where(seen, (gold - mean) / a, 0.0)
    observed = mean + surprise
    share = np.maximum((observed / pi).sum(axis=1), 0.0)
    scale = float(share @ steps)
    share = share / scale if scale > 0 else np.full(steps.size, 1 / float(steps.sum()))
    predicted = share[:, None] * f[item]
    gap, own = (observed - predicted) / pi, facts.topic[item]
    known = np.where(seen, gold, 0.0)
    sums = [np.array([np.bincount(own, row, n) for row in rows], dtype=np.float64) for rows in (gap, known)]
    utility = f.copy()
    utility[item] += steps @ gap
    if variances is None:
        p = np.minimum.accumulate(np.clip(predicted, 0, 1), axis=0)
        square = p * (1 - p)
        whole = ((2 * np.cumsum(steps) - steps) * steps) @ p - (steps @ p) ** 2
    else:
        off = mean - predicted
        square, whole = off**2 + variances[0] / a, (steps @ off) ** 2 + variances[1] / a
    parts = np.sqrt(square)
    apart = np.divide(parts, steps @ parts, out=np.zeros_like(parts), where=(steps @ parts) > 0)
    return Labels(
        topic=facts.topic, n_topics=n, utility=utility, steps=steps,
        total=share[:, None] * np.bincount(facts.topic, f, n) + sums[0], found=sums[1],
        item=item, drawing=gap * np.sqrt(1 - pi), audit=surprise * np.sqrt(pi * (1 - a)) / pi,
        expected=apart * np.sqrt(np.maximum(whole, 0) * (1 - pi)) / pi,
        found_drawing=known * np.sqrt(1 - pi), found_audit=known * np.sqrt(pi * (1 - a)),
        known=seen, predicted=bool(f.any()), has_audit=has_audit, is_watched=has_audit,
    )  # fmt: skip


def naive_labels(facts: Facts, gains: Floats, f: Floats, _: Gold) -> Labels | None:
    """Return the labels as judged: of every item the share of its judgments that reach a stair."""
    everything = np.ones(facts.item.size, dtype=bool)
    chance = draw_probability(facts, everything)
    if not_covered(facts, everything, chance):
        return None
    number = np.bincount(facts.label_item, minlength=facts.item.size)
    reached = on_stairs(gains, facts.label_grade)
    rows = np.array([np.bincount(facts.label_item, row, facts.item.size) for row in reached]) / number
    one = np.ones(facts.item.size)
    return labels_of(
        facts, gains, f, facts.item, chance[facts.item], rows, everything, one, rows, has_audit=False, variances=None
    )  # fmt: skip


def corrected_labels(facts: Facts, gains: Floats, f: Floats, gold: Gold) -> Labels | None:
    """Return the labels corrected by the audit: what is predicted of an item, and of the audited the gold grade.

    `gold` is predicted of every stair: without it too little is audited for a number, or the release is older, and the
    means of classes predict. Where gold judges judged every document, there is nothing to correct.
    """
    if facts.is_by_gold_judges:
        as_judged = naive_labels(facts, gains, f, gold)
        return None if as_judged is None else replace(as_judged, is_watched=True)
    is_open = facts.audit_probability > 0
    chance = draw_probability(facts, is_open)
    if not is_open.any() or not_covered(facts, is_open, chance) or (facts.gold and not gold):
        return None
    item, seen, a = facts.item[is_open], facts.audited[is_open], facts.audit_probability[is_open]
    v, pi = on_stairs(gains, facts.audit_grade[is_open]) * seen, chance[item]
    steps, even = np.diff(np.unique(gains[gains > 0]), prepend=0.0), math.inf
    if gold:
        of = Stairs.of(facts, gold, gains, is_open, chance)
        f, h, variance, even = (
            steps @ of.p,
            of.h,
            of.h * (1 - of.h),
            f.size**2 / float((1 / (pi**2 * a)).sum()),
        )
        spread = np.maximum(0.0, ((2 * np.cumsum(steps) - steps) * steps) @ h - (steps @ h) ** 2)
    else:
        classes = merged_classes(facts.bronze_class[is_open], seen)
        h, variance = np.moveaxis(np.array([class_moments(classes, seen, row, a, 1.0) for row in v]), 1, 0)
        spread = class_moments(classes, seen, steps @ v, a, float(steps.sum()))[1]
    made = labels_of(
        facts, gains, f, item, pi, h, seen, a, v, has_audit=True, variances=(variance, spread)
    )  # fmt: skip
    made = replace(made, even=even)
    predicted = np.sqrt((1 / a - 1) * spread / pi)
    if ((steps @ made.audit) ** 2).sum() >= (predicted**2).sum():
        return made
    deviation = np.sqrt(variance)  # an audit that found few errors shows less noise than there is
    whole = steps @ deviation
    part = np.divide(deviation, whole, out=np.zeros_like(deviation), where=whole > 0)
    return replace(made, audit=part * predicted)


def true_labels(facts: Facts, gains: Floats, _: Floats, __: Gold) -> Labels:
    """Return the labels of a frame of which every right grade is known."""
    every, one = np.arange(facts.topic.size), np.ones(facts.topic.size)
    rows, nothing = on_stairs(gains, facts.gold_answer), np.zeros(facts.topic.size)
    return labels_of(
        facts, gains, nothing, every, one, rows, one > 0, one, rows, has_audit=False, variances=None
    )  # fmt: skip


# -- ratios ------------------------------------------------------------------------------------------------------


def numerator(labels: Labels, ratio: Quotient, order: Ints, rank: Ints, utility: Floats) -> Floats:
    """Return [topic, ...] of utilities [listed, ...]: sum u/log2(r + 1), or ``sum (1/r) u (1 + sum of u above)``."""
    weight = ratio.weights(rank.astype(np.float64))[:, None]
    terms, topic = weight * utility, labels.topic[order]
    first = np.flatnonzero(np.diff(topic, prepend=-1))
    if ratio.has_products and order.size:
        above = np.cumsum(utility, axis=0) - utility
        terms = terms * (1 + above - np.repeat(above[first], np.diff(first, append=topic.size), axis=0))
    sums = np.zeros((labels.n_topics, utility.shape[1]))
    if order.size:
        sums[topic[first]] = np.add.reduceat(terms, first, axis=0)
    return sums


def denominator(labels: Labels, ratio: Quotient, cutoff: int, total: Floats, relevant: Floats) -> Floats:
    """Return [topic, ...]: how many are relevant, or the ideal ranking's gain; at least what was found, and one."""
    count = np.maximum(total, relevant)
    count[0] = np.maximum(count[0], 1.0)
    if ratio.ideal is None:
        return np.asarray(count[0])
    pooled = int(np.bincount(labels.topic).max())
    ideal = ratio.ideal(min(cutoff, pooled))
    gained: Floats = np.zeros(count[0].shape)
    for step, one in zip(labels.steps, count, strict=True):
        gained += step * np.interp(one, np.arange(ideal.size), ideal)
    return gained


def ratios(
    labels: Labels, ratio: Quotient, cutoff: int, listed: list[tuple[Ints, Ints]], seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return the mean over topics of every run's ratio, its replicates [run, replicate], and its values by topic.

    Of every topic it is twice the ratio less the replicates' mean; the ratio itself where all is known.
    """
    noisy, n = labels.noisy, labels.noisy.size
    place = np.full(labels.topic.size, -1)
    place[labels.item[noisy]] = np.arange(n)
    utility = [labels.utility[order][:, None] for order, _ in listed]
    whole = denominator(labels, ratio, cutoff, labels.total[:, :, None].copy(), labels.found[:, :, None])
    of_topics = np.array(
        [
            (numerator(labels, ratio, order, rank, u) / whole)[:, 0]
            for (order, rank), u in zip(listed, utility, strict=True)
        ]
    )
    value, added = [float(row.mean()) for row in of_topics], np.zeros(of_topics.shape)
    made = np.zeros((len(listed), REPLICATES))
    n_numbers = n * (2 if labels.has_audit else 1)
    chunk = max(1, min(REPLICATES, NUMBERS_AT_ONCE // max(1, n_numbers)))
    member = np.zeros((labels.n_topics, n))
    member[labels.topic[labels.item[noisy]], np.arange(n)] = 1
    random = np.random.default_rng(seed)
    for start in range(0, REPLICATES, chunk):
        stop = min(start + chunk, REPLICATES)
        number = np.ascontiguousarray(random.standard_exponential((stop - start, n_numbers)).T) - 1
        noises = []
        for drawing, audit in ((labels.drawing, labels.audit), (labels.found_drawing, labels.found_audit)):
            noise = drawing[:, noisy, None] * number[:n]
            noises.append(noise + audit[:, noisy, None] * number[n:] if labels.has_audit else noise)
        total, relevant = (
            counts[:, :, None] + member @ noise
            for counts, noise in zip((labels.total, labels.found), noises, strict=True)
        )
        below = denominator(labels, ratio, cutoff, total, relevant)
        gained = np.concatenate(
            [np.tensordot(labels.steps, noises[0], 1), np.zeros((1, stop - start))]
        )  # -1: no noise
        for run, ((order, rank), u) in enumerate(zip(listed, utility, strict=True)):
            above = numerator(labels, ratio, order, rank, u + gained[place[order]])
            made[run, start:stop] = (above / below).mean(axis=0)
            added[run] += (above / below).sum(axis=1)
    if not labels.is_census:
        of_topics = 2 * of_topics - added / REPLICATES
    return np.array(value), made, of_topics


def few_known(labels: Labels) -> bool:
    """Return whether so little is known that a mean over topics has no bootstrap that can be trusted."""
    if labels.is_census:
        return False
    known = np.bincount(labels.topic[labels.item[labels.known]], minlength=labels.n_topics)
    pooled = np.bincount(labels.topic, minlength=labels.n_topics)
    micro = MICRO_PER_TOPIC if labels.predicted else UNPREDICTED
    enough = [
        min(per_topic * labels.n_topics, share * labels.topic.size)
        for per_topic, share in ((PER_TOPIC, SHARE), (micro, MICRO_SHARE))
    ]
    too_few = min(labels.even, known.sum()) < 0.95 * enough[0] or known.sum() < 0.95 * enough[1]
    return bool(((pooled > 0) & (known == 0)).any() or too_few)


class RatioMethod:
    """One ratio measure by one method: the numbers of any run or pair of runs."""

    def __init__(
        self,
        facts: Facts,
        labels: LabelsOf,
        measure: Row,
        f: Floats,
        seed: int,
        differences: Callable[[Facts, Row, Ranked], Difference | None] | None,
        *,
        over_topics: bool,
    ) -> None:
        self.over_topics = over_topics
        gains = np.array(measure["gains"])
        self.facts, self.cutoff = facts, measure["cutoff"] or np.iinfo(np.int64).max
        self.labels = labels(facts, gains, f, gold_of(facts, measure)) if gains.any() else None
        self.never = bool((facts.first_probability == 0).all(axis=0).any())
        self.listed = []
        for place, rank in facts.returned:
            near = np.flatnonzero(rank <= self.cutoff)
            near = near[np.lexsort((rank[near], facts.topic[place[near]]))]
            self.listed.append((place[near], rank[near]))
        self.difference = differences(facts, measure, self.listed) if differences else None
        if self.labels is not None:
            kinds = (self.labels, self.labels.cautious())
            self.made = [
                ratios(kind, RATIOS[measure["family"]], self.cutoff, self.listed, seed) for kind in kinds
            ]

    def __call__(self, run: int, run_b: int | None) -> Row:
        """Return twice the ratio less the bootstrap's mean, with the larger of its two variances."""
        runs = [run] if run_b is None else [run, run_b]
        if self.never or any((self.facts.outside[one] <= self.cutoff).any() for one in runs):
            return REFUSED
        if run_b is not None and all(map(np.array_equal, self.listed[run], self.listed[run_b])):
            return interval(0.0, {}, math.inf, 0)
        labels = self.labels
        if labels is None:
            return REFUSED
        used = self._n_used(labels, runs)
        if few_known(labels):
            return REFUSED if run_b is None or self.difference is None else self.difference(run, run_b)
        if not labels.is_census and (used < LEAST or not labels.predicted):
            return REFUSED
        sign = [1.0, -1.0][: len(runs)]
        value = float(self.made[0][0][runs] @ sign)
        parts = np.asarray(sign @ self.made[0][2][runs]) / labels.n_topics
        if labels.is_census:
            row = interval(value, {}, math.inf, used)
            return with_topics(row, parts) if self.over_topics else row
        seen, wide = (np.asarray(sign @ made[1][runs]) for made in self.made)
        variance = float(max(seen.var(ddof=1), wide.var(ddof=1)))
        df = math.inf if used >= NORMAL_FROM else used - 1.0
        estimate = interval(2 * value - float(seen.mean()), {"drawing": variance}, df, used)
        if labels.has_audit:
            estimate["components"] = {}
        if self.over_topics:
            estimate = with_topics(estimate, parts)
        return estimate | always_valid(estimate, self.facts, None) if labels.is_watched else estimate

    def _n_used(self, labels: Labels, runs: list[int]) -> int:
        """Return how many known items the run ranks, or the two runs rank differently."""
        ranks = np.zeros((2, labels.topic.size), dtype=np.int64)
        for row, one in zip(ranks, runs, strict=False):
            row[self.listed[one][0]] = self.listed[one][1]
        known = ranks[:, labels.item[labels.known]]
        return int(np.count_nonzero(known[0] != known[1]))
