"""How the estimates of a release follow from its facts: values, standard errors, intervals and p-values.

Part of every release, beside verify.py, which calls it; NumPy is all it needs. A target is a run, or a pair of runs
with the difference of their weights. For a linear measure every run gives each pair (topic, document) of the frame a
weight w = lambda(rank) / number of topics, so that the measure is the sum of w * gain.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

if __package__:
    from analytics.releases.verify_facts import (
        Facts,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        draw_probability,
        not_covered,
    )
    from analytics.releases.verify_measures import grade_gains, rank_weights
    from analytics.releases.verify_quantiles import t95, t_quantile, t_tail
    from analytics.releases.verify_ranges import OutsideWeights, nearest_zero
else:  # in a release, the files lie beside each other
    from verify_facts import (  # type: ignore
        Facts,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        draw_probability,
        not_covered,
    )
    from verify_measures import grade_gains, rank_weights  # type: ignore
    from verify_quantiles import t95, t_quantile, t_tail  # type: ignore
    from verify_ranges import OutsideWeights, nearest_zero  # type: ignore

Row = dict[str, Any]
ROUNDING = 1e-12  # what rounding leaves of a value that is 0
LEAST = 10  # items (or audited items) with weight below which there is no interval
LEAST_WATCHED = 20  # audited items below which there is no always-valid interval
NORMAL_FROM = 100  # audited items from which the normal distribution takes the place of t


# -- what all methods share --------------------------------------------------------------------------------------

REFUSED: Row = {"refused": True}


@dataclass(frozen=True, eq=False)
class Target:
    """A run, or a pair of runs: its weights [weighed], and what the predictions alone say of it [topic]."""

    weights: Floats
    known: Floats
    settled: Row | None  # the answer where no judgment can change it


Method = Callable[[Target], Row]


@dataclass(frozen=True, eq=False)
class WeightTable:
    """The weights of all runs in one measure, over those pairs of the frame that any run weighs."""

    facts: Facts
    gains: Floats  # [grade]
    place: Ints  # [weighed], places in the frame
    weight: Floats  # [run, weighed]
    prediction: Floats  # [weighed]
    known: Floats  # [run, topic]: sum of prediction * weight over the frame
    outside: OutsideWeights
    gold: GoldColumns | None  # the predictions of gold gains, for the method that takes them

    @classmethod
    def of(
        cls, facts: Facts, measure: str, predicted: Floats, gold: GoldColumns | None = None
    ) -> "WeightTable":
        """Return the weights in the measure; `predicted` [frame] are the gains known before anything is judged."""
        table = rank_weights(measure) / len(facts.topics)
        near = [(place[rank <= table.size], rank[rank <= table.size]) for place, rank in facts.returned]
        weighed = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(place for place, _ in near)]))
        weight = np.zeros((len(near), weighed.size))
        for row, (place, rank) in zip(weight, near, strict=True):
            row[np.searchsorted(weighed, place)] = table[rank - 1]
        f, topic = predicted[weighed], facts.topic[weighed]
        gains = grade_gains(measure, facts.gains, facts.relevant_grade)
        outside = OutsideWeights.of(facts, table, weighed, weight, float(gains.max()))
        weight[:, outside.never] = 0.0
        known = [np.bincount(topic, f * row, len(facts.topics)) for row in weight]
        return cls(facts, gains, weighed, weight, f, np.array(known), outside, gold)

    def target(self, run: int, run_b: int | None) -> Target:
        weights = self.weight[run] if run_b is None else self.weight[run] - self.weight[run_b]
        known = self.known[run] if run_b is None else self.known[run] - self.known[run_b]
        is_same = run_b is not None and not weights.any() and self.outside.is_same(run, run_b)
        if is_same and not self.facts.is_foreign:  # inside the cutoff
            return Target(weights, known, interval(0.0, {}, math.inf, 0))
        return Target(weights, known, None)

    def at_items(self, values: NDArray[Any]) -> Floats:
        """Return the values [item, ...] at the weighed pairs, 0 where one is not judged."""
        at = np.zeros((self.facts.topic.size, *values.shape[1:]))
        at[self.facts.item] = values
        return np.asarray(at[self.place])

    def with_topics(self, row: Row, target: Target, added: Floats) -> Row:
        """Return the row with what its topics say: a sample of those that could have been asked.

        `added` [weighed] is what every pair adds to the value, so that the topics' parts of the value are known. Their
        spread holds every other source of error as well.
        """
        n = len(self.facts.topics)
        return with_topics(row, target.known + np.bincount(self.facts.topic[self.place], added, n))


def with_topics(row: Row, parts: Floats) -> Row:
    """Return the row with value, standard error and n - 1 over topics, from the topics' parts of its value."""
    n = parts.size
    variance = n * float(parts.var(ddof=1)) if n > 1 else 0.0
    least = max(ROUNDING, 1e-12 * n * float(np.abs(parts).max(initial=0.0)))
    if math.sqrt(variance) < least:
        return row
    return row | {"over_topics": (float(parts.sum()), math.sqrt(variance), n - 1)}


def interval(value: float, components: dict[str, float], df: float, n: int) -> Row:
    """Return the estimate with its symmetric 95 % interval: value / standard error is t, or normal, distributed."""
    error = math.sqrt(sum(components.values()))
    value = value if abs(value) > ROUNDING else 0.0
    half = t95(df) * error
    known = None if math.isinf(df) else df
    ends = {"value": value, "standard_error": error, "low": value - half, "high": value + half}
    return {**ends, "degrees_of_freedom": known, "n": n, "components": components}


# -- grades as given ---------------------------------------------------------------------------------------------


def naive(w: WeightTable) -> Method:
    """Return the estimate that takes the mean gain u of an item's judgments as true: a difference estimator.

    ``sum over the frame of w f + sum over judged items of w (u - f) / pi``, with f the prediction and pi the chance to
    be drawn and judged. The variance is that of the drawing alone: `poisson`, or `Strata` once all that was drawn with
    a fixed number a topic is judged. Assessors' errors are not in it.
    """
    facts = w.facts
    everything = np.ones(facts.item.size, dtype=bool)
    chance = draw_probability(facts, everything)
    if not_covered(facts, everything, chance):
        return lambda target: target.settled or REFUSED
    number = np.bincount(facts.label_item, minlength=facts.item.size)
    utility = np.bincount(facts.label_item, w.gains[facts.label_grade], facts.item.size) / number
    judged = w.at_items(everything) > 0
    pi = np.where(judged, chance[w.place], 1.0)
    given = w.at_items(utility)
    surprise = np.where(judged, (given - w.prediction) / pi, 0.0)
    complete = facts.item.size == int((facts.drawn_in > 0).sum())
    strata = Strata.of(w, chance[facts.item]) if complete and facts.fixed_size else None

    def estimate(target: Target) -> Row:
        v = target.weights * surprise
        variance, df = poisson(v, pi) if strata is None else strata.variance(v)
        n, open_ones = (int(np.count_nonzero(target.weights[some])) for some in (judged, judged & (pi < 1)))
        alone = strata is not None and (strata.count == 1).any()  # an only uncertain item shows no variance
        if target.settled or n < LEAST or (variance == 0 and open_ones) or alone:
            return target.settled or REFUSED
        row = interval(float(target.known.sum() + v.sum()), {"drawing": variance}, df, n)
        row["n_positive"] = int(np.count_nonzero(target.weights[given > 0]))
        return w.with_topics(row, target, v)

    return estimate


def poisson(v: Floats, pi: Floats) -> tuple[float, float]:
    """Return the variance of ``sum v``, v = w e / pi, if each pair was drawn by itself; and degrees of freedom.

    ``V = sum (1 - pi) v^2``, without bias; ``2 V^2 / sum (1 - pi) v'^2`` degrees with v' = (1 - pi) v^2, at least 1.
    """
    terms = (1 - pi) * v**2
    variance, spread = float(terms.sum()), float(((1 - pi) * terms**2).sum())
    return variance, degrees_of_freedom(2 * variance**2, spread)


def degrees_of_freedom(top: float, spread: float) -> float:
    """Return degrees of freedom, ``top / spread``: at least 1, and infinite where nothing varies."""
    return max(1.0, top / spread) if spread > 0 and top > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Strata:
    """The topics of a draw that took a fixed number of each: judged items with a chance below 1, and their factors."""

    member: Mask  # [weighed], which of them are such items
    stratum: Ints  # of these
    share: Floats  # of these
    whole: Floats  # [stratum], sum of the shares, also of items that no run weighs
    count: Ints  # [stratum]

    @classmethod
    def of(cls, w: WeightTable, pi: Floats) -> "Strata":
        """Return the strata; a topic with a single such item is merged with the next one (the last with the previous).

        The factor c of an item solves ``c - c^2 / sum c = 1 - pi`` (Deville and Tille 2005), or is ``m/(m-1) (1 - pi)``
        where that has no solution. Merged topics take 1 for 1 - pi.
        """
        items = np.flatnonzero(pi < 1)
        _, stratum = np.unique(w.facts.topic[w.facts.item[items]], return_inverse=True)
        group = np.zeros(int(stratum.max(initial=-1)) + 1, dtype=np.int64)
        new, held = 0, 0
        for place, count in enumerate(np.bincount(stratum)):
            new, held = (new + 1, 0) if held >= 2 else (new, held)
            group[place], held = new, held + int(count)
        if held < 2 and new > 0:
            group[group == new] = new - 1
        stratum, merged = group[stratum], np.bincount(group) > 1
        count = np.bincount(stratum)
        rest = np.where(merged[stratum], 1.0, 1 - pi[items])
        largest = np.zeros(count.size)
        np.maximum.at(largest, stratum, rest)
        solvable = (largest < 0.49 * np.bincount(stratum, rest, count.size))[stratum]
        share = rest * (count / np.maximum(1, count - 1))[stratum]
        for _ in range(200):
            before = share
            share = np.where(
                solvable, rest + share**2 / np.bincount(stratum, share, count.size)[stratum], share
            )
            if (np.abs(share - before) <= 1e-12 * share).all():
                break
        at = np.full(w.facts.topic.size, -1)
        at[w.facts.item[items]] = np.arange(items.size)
        own = at[w.place]
        here = own[own >= 0]
        whole = np.bincount(stratum, share, count.size).astype(np.float64)
        return cls(own >= 0, stratum[here], share[here], whole, count)

    def variance(self, v: Floats) -> tuple[float, float]:
        """Return the sum of the strata's variances around their centres, and Satterthwaite's degrees of freedom."""
        z, n = v[self.member], self.count.size
        squares = np.bincount(self.stratum, self.share * z**2, n)
        own = squares - np.bincount(self.stratum, self.share * z, n) ** 2 / self.whole
        own[own <= 1e-13 * squares] = 0.0
        variance, spread = float(own.sum()), float((own**2 / np.maximum(1, self.count - 1)).sum())
        return variance, variance**2 / spread if spread > 0 else math.inf


# -- corrected by the audit --------------------------------------------------------------------------------------


def corrected_estimates(w: WeightTable) -> Method:
    """Return the reported number, which needs only that a random part of the judged items was judged again (audited).

    ``sum_frame w f + sum_judged (w / pi) (mu - f) + sum_audited (w / pi) (v - mu) / a``: v is the gain of the audit's
    grade, a the recorded chance to be audited, mu the mean gold gain of the item's class (of what its judgments say
    together). Nothing is assumed about how assessors err.

    Variance of the drawing: that of ``sum w (v - f) / pi``; (v - f)^2 is predicted for all from the class and corrected
    by the audited, at least half the prediction. Of the audit: the larger of what the audited items show and of what
    the spread within classes makes one expect. z from 100 audited items with weight, else t with one degree less.
    """
    facts = w.facts
    is_open = facts.audit_probability > 0
    chance = draw_probability(facts, is_open)
    if not is_open.any() or not_covered(facts, is_open, chance):
        return lambda target: target.settled or REFUSED
    audited, a = facts.audited, np.where(is_open, facts.audit_probability, 1.0)
    gain = np.where(audited, w.gains[facts.audit_grade], 0.0)
    mean, spread = np.zeros((2, facts.item.size))
    mean[is_open], spread[is_open] = class_moments(
        merged_classes(facts.bronze_class[is_open], audited[is_open]), audited[is_open], gain[is_open],
        a[is_open], float(np.ptp(w.gains)),
    )  # fmt: skip
    columns = w.at_items(np.stack([is_open, audited, gain, a, mean, spread], axis=1)).T
    judged, seen, (gain, a, mean, spread) = columns[0] > 0, columns[1] > 0, columns[2:]
    pi, a, f = np.where(judged, chance[w.place], 1.0), np.where(judged, a, 1.0), w.prediction
    residual = np.where(seen, (gain - mean) / a, 0.0)
    added = np.where(judged, (mean - f + residual) / pi, 0.0)
    predicted = np.where(judged, (mean - f) ** 2 + spread, 0.0)
    observed = np.where(seen, ((gain - f) ** 2 - predicted) / a, 0.0)
    per_item = np.stack(
        [(1 - pi) * predicted, (1 - pi) * observed, (1 - a) * residual**2, (1 / a - 1) * spread]
    )

    def estimate(target: Target) -> Row:
        model, correction, design, pooled = per_item @ (target.weights / pi) ** 2
        n, n_items = (int(np.count_nonzero(target.weights[some])) for some in (seen, judged))
        if target.settled or n < LEAST:
            return target.settled or REFUSED
        parts = {"drawing": float(max(model + correction, model / 2)), "gold": float(max(design, pooled))}
        value = float(target.known.sum() + target.weights @ added)
        row = interval(value, parts, math.inf if n >= NORMAL_FROM else max(1, n - 1), n)
        row = w.with_topics(row, target, target.weights * added)
        return row | always_valid(row, facts, max(n_items, n, 1))

    return estimate


def merged_classes(classes: Ints, audited: Mask) -> Ints:
    """Return classes of at least 10 audited items: the poorest is merged with the poorer of its ordered neighbours."""
    _, index = np.unique(classes, return_inverse=True)
    count = [int(n) for n in np.bincount(index, audited)]
    group = [[place] for place in range(len(count))]
    while len(count) > 1 and min(count) < 10:
        poorest = count.index(min(count))
        near = [place for place in (poorest - 1, poorest + 1) if 0 <= place < len(count)]
        left, right = sorted((poorest, min(near, key=lambda place: count[place])))
        group[left : right + 1] = [group[left] + group[right]]
        count[left : right + 1] = [count[left] + count[right]]
    new = np.empty(sum(map(len, group)), dtype=np.int64)
    for number, members in enumerate(group):
        new[members] = number
    return np.asarray(new[index])


def class_moments(
    classes: Ints, audited: Mask, gain: Floats, a: Floats, span: float
) -> tuple[Floats, Floats]:
    """Return by item the weighted mean of its class's audited gains, and their variance.

    The variance counts one more observation, drawn from all audited gains, and is at least what half an unseen one at
    the far end of the gains would make it: ten equal gains do not prove that a class has no errors.
    """
    value, weight, member, n = gain[audited], 1 / a[audited], classes[audited], int(classes.max()) + 1
    floor = span**2 * 0.5 * (value.size + 0.5) / (value.size + 1) ** 2
    centre, overall = (float(value.mean()), float(value.var())) if value.size else (0.0, 0.0)
    count = np.bincount(member, minlength=n)
    whole = np.where(count > 0, np.bincount(member, weight, n), 1.0)
    mean = np.bincount(member, weight * value, n) / whole
    spread = (
        np.bincount(member, weight * (value - mean[member]) ** 2, n)
        / whole
        * count
        / np.maximum(1, count - 1)
    )
    with_one = (count * spread + overall) / (count + 1) + count * (mean - centre) ** 2 / (count + 1) ** 2
    return mean[classes], np.maximum(floor, with_one)[classes]


def always_valid(row: Row, facts: Facts, n_items: int | None) -> Row:
    """Return the interval that holds at every look at once, for n audited of `n_items` items; n_planned in all.

    At a declared look it is the interval that holds at all declared ones instead, and verify_looks.py has its bound.
    Robbins' normal mixture: ``z = sqrt((1 + 1/x) (log(1 + x) - 2 log .05))``, x proportional to the information
    ``n / (1 - n / n_items)``, or n, and such that z is least at the planned number; then t with the same tail.
    """
    n, value = row["n"], row["value"]
    if row["standard_error"] == 0:
        return {"always_low": value, "always_high": value}
    if n < LEAST_WATCHED:
        return {}
    z = facts.declared_bound
    if z is None:
        z = mixture_bound(n, facts.n_planned, n_items)
    half = t_quantile(n - 1.0, max(t_tail(math.inf, z), 2.2250738585072014e-308)) * row["standard_error"]
    return {"always_low": value - half, "always_high": value + half}


def mixture_bound(n: int, n_planned: int, n_items: int | None) -> float:
    """Return the z of the confidence sequence."""
    best = 8.0
    for _ in range(200):  # where z is least: x = log(1 + x) - 2 log .05
        best = math.log1p(best) - 2 * math.log(0.05)
    plan: float = max(n_planned, LEAST_WATCHED)
    if n_items is None:
        x = best * n / plan
    else:
        reached, aim = (k / (1 - min(k, n_items - 0.5) / n_items) for k in (n, min(plan, n_items / 2)))
        x = best * reached / aim
    return math.sqrt((1 + 1 / x) * (math.log1p(x) - 2 * math.log(0.05)))


def p_value(row: Row) -> float:
    """Return the two-sided p of "no difference"; where no error is left a difference is certain: 0, or 1.

    Where documents could not be judged it is the largest p of all values that they allow.
    """
    value, error = nearest_zero(row), row["standard_error"]
    if error == 0:
        return float(value == 0)
    df = row["degrees_of_freedom"]
    return 2 * t_tail(math.inf if df is None else df, abs(value) / error)


# -- all gold known ----------------------------------------------------------------------------------------------


def true(w: WeightTable) -> Method:
    """Return the true value, from the right grade of every pair of the frame."""
    gain = w.gains[w.facts.gold_answer[w.place]]
    return lambda target: (
        target.settled
        or interval(float(target.weights @ gain), {}, math.inf, int(np.count_nonzero(target.weights)))
    )
