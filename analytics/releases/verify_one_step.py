"""Differences of two runs in nDCG from few gold labels: one step from what is predicted, along the derivative.

Part of every release, beside verify.py; NumPy is all it needs. p predicts whether a pair of the frame reaches a stair
of the gains, u* is its pseudo-label. A topic's value is q = N/Z: N = sum of discount * step * p, Z = sum of step *
D(C), C is how many pairs reach the stair, D(C) the discounts down to rank C. phi is the derivative of the mean of q:

    value = mean over topics of q(p) + sum phi (u* - p)           variance = that of the sum, and b^2

b estimates what is of second order in u* - p. For these topics.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

if __package__:
    from analytics.releases.verify_estimates import (
        LEAST,
        REFUSED,
        always_valid,
        degrees_of_freedom,
        interval,
        with_topics,
    )
    from analytics.releases.verify_facts import (
        Facts,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        Row,
        draw_probability,
        not_covered,
    )
    from analytics.releases.verify_measures import RATIOS, discount
else:  # in a release, the files lie beside each other
    from verify_estimates import (  # type: ignore
        LEAST,
        REFUSED,
        always_valid,
        degrees_of_freedom,
        interval,
        with_topics,
    )
    from verify_facts import (  # type: ignore
        Facts,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        Row,
        draw_probability,
        not_covered,
    )
    from verify_measures import RATIOS, discount  # type: ignore

# Where differences are given: expected gold labels, topics, relevant pairs predicted a topic, stairs, last rank.
LABELS, TOPICS, RELEVANT, STAIRS, LAST_RANK = (100, 200), 50, 10, 1, 10
MOST_OF_A_DRAW = 125  # gold labels, where a part of the pool was drawn
MOST_BEND = 0.25  # the largest b^2, as a share of the rest of the variance

Ranked = list[tuple[Ints, Ints]]  # [run], places in the frame and their ranks, within the cutoff
Difference = Callable[[int, int], Row]
Gold = Sequence[GoldColumns]  # of every stair


def gold_of(facts: Facts, measure: Row) -> Gold:
    """Return what the release predicts of every stair of a measure, nothing where no number needs it."""
    return [facts.gold[name.removeprefix("prediction_")] for name in measure.get("stairs") or []]


def differences_of(facts: Facts, measure: Row, listed: Ranked) -> Difference | None:
    """Return the differences of two runs in one step, or None where the size of the audit does not allow it."""
    gold = gold_of(facts, measure)
    is_open = facts.audit_probability > 0
    chance = draw_probability(facts, is_open)
    is_whole = is_open.size == facts.topic.size and bool(is_open.all() and (chance == 1).all())
    n_labels = float(facts.audit_probability[is_open].sum())
    if not gold or not is_allowed(facts, measure, n_labels, LABELS[1] if is_whole else MOST_OF_A_DRAW):
        return None
    if not_covered(facts, is_open, chance):
        return None
    gains = np.array(measure["gains"])
    return Differences(Stairs.of(facts, gold, gains, is_open, chance), facts, measure["cutoff"], listed)


def is_allowed(facts: Facts, measure: Row, n_labels: float, most: int) -> bool:
    """Return whether an audit of this size was found to give intervals that hold."""
    gains, known, n = np.array(measure["gains"]), facts.fitted_with, len(facts.topics)
    return (
        RATIOS[measure["family"]].one_step
        and known is not None
        and bool(facts.single.size == 0)
        and 0 < (measure["cutoff"] or np.inf) <= LAST_RANK
        and np.unique(gains[gains > 0]).size <= STAIRS
        and n >= TOPICS
        and float(known.prior.sum()) / n >= RELEVANT
        and LABELS[0] - 1e-6 <= n_labels <= most + 1e-6
    )


@dataclass(frozen=True, eq=False)
class Stairs:
    """Predictions and gold of every stair, of the pairs that audits could take; [stair, item] unless said."""

    steps: Floats  # [stair]
    p: Floats  # [stair, frame]
    item: Ints  # [item], places in the frame
    pi: Floats  # [item], the chance to be drawn
    a: Floats  # [item], and to be audited
    seen: Mask  # [item], whether it was
    h: Floats
    v: Floats

    @classmethod
    def of(cls, facts: Facts, gold: Gold, gains: Floats, is_open: Mask, chance: Floats) -> "Stairs":
        levels = np.unique(gains[gains > 0])
        item, seen, a = facts.item[is_open], facts.audited[is_open], facts.audit_probability[is_open]
        v = (gains[facts.audit_grade[is_open]] >= levels[:, None]) & seen
        p = np.minimum.accumulate([one.before for one in gold])  # no stair is likelier than the one below
        h = np.minimum.accumulate([one.after[is_open] for one in gold])
        h = np.where(seen & (a == 1), v, h)
        pi = chance[item]
        p[:, item[pi == 1]] = h[:, pi == 1]
        return cls(np.diff(levels, prepend=0.0), p, item, pi, a, seen, h, v.astype(np.float64))

    @property
    def errors(self) -> Floats:
        """Return u* - p."""
        surprise = np.where(self.seen, (self.v - self.h) / self.a, 0.0)
        return np.asarray((self.h - self.p[:, self.item] + surprise) / self.pi)


class Differences:
    """The difference of any two runs in one measure."""

    def __init__(self, stairs: Stairs, facts: Facts, cutoff: int, listed: Ranked) -> None:
        self.stairs, self.facts = stairs, facts
        self.n_topics, self.topic = len(facts.topics), facts.topic[stairs.item]
        count = np.array([np.bincount(facts.topic, row, self.n_topics) for row in stairs.p])
        count[0] = np.maximum(count[0], 1.0)
        depth = min(cutoff, int(np.bincount(facts.topic).max()))
        each = discount(np.arange(1.0, depth + 1))
        whole = np.concatenate([[0.0], np.cumsum(each)])
        self.z = sum(
            step * np.interp(row, np.arange(depth + 1.0), whole)
            for step, row in zip(stairs.steps, count, strict=True)
        )
        # what one more pair on the stair adds: the discount of the next rank; below one pair nothing, as one is counted
        exact = np.array([np.bincount(facts.topic, row, self.n_topics) for row in stairs.p])
        following = np.floor(exact).astype(np.int64)
        self.slope = stairs.steps[:, None] * np.where(
            following < depth, each[np.minimum(following, depth - 1)], 0
        )
        self.slope[0][exact[0] < 1] = 0.0
        self.discounts = np.zeros((len(listed), facts.topic.size))
        for row, (place, rank) in zip(self.discounts, listed, strict=True):
            row[place] = discount(rank.astype(np.float64))
        worth = stairs.steps @ stairs.p
        gained = [np.bincount(facts.topic, row * worth, self.n_topics) for row in self.discounts]
        self.q = np.array(gained) / self.z  # [run, topic]

    def __call__(self, run: int, run_b: int) -> Row:
        stairs, facts = self.stairs, self.facts
        apart = self.discounts[run, stairs.item] - self.discounts[run_b, stairs.item]
        of_topics = self.q[run] - self.q[run_b]
        phi = stairs.steps[:, None] * apart - (of_topics * self.slope)[:, self.topic]
        phi = phi / (self.z * self.n_topics)[self.topic]
        error = stairs.errors
        value = float(of_topics.mean() + (phi * error).sum())
        parts, df, n, n_uncertain = self.variance(phi)
        bend = self.second_order(apart, of_topics, error)
        linear = sum(parts.values())
        if n < LEAST or (linear == 0 and n_uncertain) or bend**2 > MOST_BEND * linear:
            return REFUSED
        row = interval(value, {**parts, "second order": bend**2}, df, n)
        added = np.bincount(self.topic, (phi * error).sum(axis=0), self.n_topics)
        row = with_topics(row, of_topics / self.n_topics + added)
        return row | always_valid(row, facts, None)

    def variance(self, phi: Floats) -> tuple[dict[str, float], float, int, int]:
        """Return the parts of the variance of sum phi u*, degrees of freedom, and items with weight."""
        stairs, own = self.stairs, phi != 0
        pi, a, seen = stairs.pi, stairs.a, stairs.seen
        before, after, gold = (
            (phi * row).sum(axis=0) for row in (stairs.p[:, stairs.item], stairs.h, stairs.v)
        )
        square = np.zeros(pi.size)  # mean of (sum phi u)^2: of two stairs the higher is reached with both
        for j in range(len(phi)):
            for k in range(len(phi)):
                square += phi[j] * phi[k] * stairs.h[max(j, k)]
        q = (after - before) ** 2 + np.maximum(0.0, square - after**2)
        kappa = (1 - pi) / pi**2 * q
        first = np.where(seen, (1 - pi) / pi**2 * ((gold - before) ** 2 - q) / a, 0.0)
        second = np.where(seen, (1 - a) * ((gold - after) / (a * pi)) ** 2, 0.0)
        drawing = float(max((kappa + first).sum(), kappa.sum() / 2))
        parts = {"drawing": drawing, "gold": float(second.sum())}
        fourth = float(((1 - pi) * kappa**2 + (1 - a) * (first + second) ** 2).sum())
        weighed = own.any(axis=0)
        n, n_uncertain = (int((weighed & some).sum()) for some in (seen, (pi < 1) | (a < 1)))
        return parts, degrees_of_freedom(2 * sum(parts.values()) ** 2, fourth), n, n_uncertain

    def second_order(self, apart: Floats, of_topics: Floats, error: Floats) -> float:
        """Return b, the mean over topics of ``-dN dZ/Z^2 + N dZ^2/Z^3``, e_i^2 replaced by ``(v - p)^2/(pi a)``."""
        stairs = self.stairs
        slope = self.slope[:, self.topic]
        off = np.where(stairs.seen, stairs.v - stairs.p[:, stairs.item], 0.0)
        gained, counted = stairs.steps @ error, (slope * error).sum(axis=0)
        off_gained, off_counted = stairs.steps @ off, (slope * off).sum(axis=0)

        def by_topic(values: Floats) -> Floats:
            return np.asarray(np.bincount(self.topic, values, self.n_topics), dtype=np.float64)

        scale = stairs.pi * stairs.a
        own_crossed = off_gained * off_counted / scale - gained * counted
        own_squared = off_counted**2 / scale - counted**2
        d_z = by_topic(counted)
        crossed = by_topic(apart * gained) * d_z + by_topic(apart * own_crossed)
        squared = d_z**2 + by_topic(own_squared)
        return float(((of_topics * squared - crossed) / self.z**2).mean())
