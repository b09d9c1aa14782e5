"""How the numbers of a release follow from its files: estimates with their intervals, and confusion matrices.

Part of every release, beside verify.py, which calls it. NumPy and Python's standard library are all it needs. A
target is a run, or a pair of runs with the difference of their weights. For a linear measure every run gives each
pair (topic, document) of the frame a weight w = lambda(rank) / number of topics, so that the measure is sum w * gain.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]

Z95 = 1.959963984540054
ROUNDING = 1e-12  # what rounding leaves of a value that is 0
LEAST = 10  # items (or audited items) with weight below which there is no interval
LEAST_WATCHED = 20  # audited items below which there is no always-valid interval
NORMAL_FROM = 100  # audited items from which the normal distribution takes the place of t


@dataclass(frozen=True, eq=False)
class Facts:
    """What a release says, as arrays: of the frame (all pairs that could be drawn), of judged items, of labels."""

    gains: Floats  # [grade]
    relevant_grade: int
    topics: list[str]
    runs: list[str]  # those whose file is in the release: of the others nothing can be computed again
    topic: Ints  # [frame], places in topics
    drawn_in: Ints  # [frame], the first batch that drew the pair, from 1; 0 = none
    first_probability: Floats  # [batch, frame], the chance that this batch is the first to draw it
    predictions: dict[str, Floats]  # [frame]: the gain expected of each pair, made without its own judgments
    gold_answer: Ints  # [frame], -1 where none is known
    returned: list[tuple[Ints, Ints]]  # [run], places in the frame and their ranks
    outside: list[Ints]  # [run], ranks at which it returns what could not be drawn
    item: Ints  # [item], judged pairs: places in the frame
    bronze_class: Ints  # [item], what its judgments say together, in classes
    audited: Mask  # [item]
    audit_grade: Ints  # [item], 0 where not audited
    audit_probability: Floats  # [item], 0 where no audit could take it
    label_item: Ints  # [label], judgments that count: places in item
    label_grade: Ints
    label_assessor: NDArray[np.str_]
    check_assessor: NDArray[np.str_]  # [check], judgments of pairs whose right grade was known
    check_true: Ints
    check_given: Ints
    tier: dict[str, str]  # by assessor
    fixed_size: bool  # a fixed number was drawn of every topic; else each pair by itself
    order_is_random: bool  # what is judged so far is a random part of what was drawn
    n_planned: int  # items that audits will take in all


# -- distributions -----------------------------------------------------------------------------------------------


def beta_share(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b): Lentz's continued fraction, 8.17.22 of the DLMF."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        before = fraction
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d, c = 1 / (1 + step * d), 1 + step / c
            fraction *= c * d
        if abs(fraction - before) <= 1e-16 * abs(fraction):
            break
    return math.exp(front) * fraction / a


def _root(rises: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition that holds at high and not at low begins to hold."""
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if rises(middle) else (middle, high)
    return high


@cache
def beta_quantile(share: float, a: float, b: float) -> float:
    return _root(lambda x: beta_share(a, b, x) >= share, 0.0, 1.0)


def t_tail(df: float, t: float) -> float:
    """Return the chance that a t distributed number is above t > 0; infinite degrees of freedom: normal."""
    if math.isinf(df):
        return 0.5 * math.erfc(t / math.sqrt(2))
    return 0.5 * beta_share(df / 2, 0.5, df / (df + t * t))


@cache
def t_quantile(df: float, tail: float) -> float:
    """Return the t > 0 that is passed with this chance, at most .5."""
    z = -NormalDist().inv_cdf(tail)
    if math.isinf(df):
        return z
    if df > 1e4 and z < 6:  # Cornish and Fisher's series: what is left out is below 1e-11
        parts = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return z + sum(part / df ** (power + 1) for power, part in enumerate(parts))
    t = max(z, 1.0)
    for _ in range(200):  # Newton's steps on logarithms, where the tail is concave: from any start they arrive
        tail_here = t_tail(df, t)
        density = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - (df + 1) / 2 * math.log1p(t * t / df))
        slope = t * density / math.sqrt(df * math.pi) / tail_here
        before, t = t, t * math.exp(math.log(tail_here / tail) / slope)
        if abs(t - before) <= 1e-15 * t:
            break
    return t


def t95(df: float) -> float:
    return Z95 if math.isinf(df) else t_quantile(df, 0.025)


# -- weights -----------------------------------------------------------------------------------------------------


def rank_weights(measure: str) -> Floats:
    """Return lambda of rank 1 to the cutoff: P and Gain 1/k, DCG 1/log(rank + 1), RBP (1 - p) p^(rank - 1)."""
    family, _, inside, cutoff = re.fullmatch(r"(P|Gain|DCG|RBP)(\((.*)\))?@(\d+)", measure).groups()  # type: ignore[union-attr]
    given = dict(part.strip().split("=") for part in (inside or "").split(",") if part)
    rank = np.arange(1, int(cutoff) + 1, dtype=np.float64)
    if family == "DCG":
        return np.asarray(1 / np.log(rank + 1) if "ln" in given.get("dcg", "") else 1 / np.log2(rank + 1))
    if family == "RBP":
        p = float(given.get("p", "0.8"))
        return np.asarray((1 - p) * p ** (rank - 1))
    return np.full(rank.size, 1 / rank.size)


def grade_gains(measure: str, facts: Facts) -> Floats:
    """Return the gain of every grade: P and RBP count relevant documents, the others the scale's own gains."""
    if not measure.startswith(("P", "RBP")):
        return facts.gains
    named = re.search(r"rel=(\d+)", measure)
    relevant = int(named[1]) if named else facts.relevant_grade
    return np.asarray(np.arange(facts.gains.size) >= relevant, dtype=np.float64)


# -- chances -----------------------------------------------------------------------------------------------------


def draw_probability(facts: Facts, members: Mask) -> Floats:
    """Return for every pair of the frame the chance that it is drawn and among `members`, a mask over the items.

    What is judged so far is a random part of what each batch drew of a topic. So the chance is, summed over batches,
    that the batch is the first to draw the pair, times the part of its items of the topic that are members. Where a
    batch drew nothing of a topic, its part over all topics stands in; but where a topic has drawn items and no member
    yet, only a batch that is complete counts.
    """
    shape = (len(facts.first_probability), len(facts.topics))
    drawn, inside = facts.drawn_in > 0, facts.item[members]
    n_drawn, n = np.zeros(shape), np.zeros(shape)
    np.add.at(n_drawn, (facts.drawn_in[drawn] - 1, facts.topic[drawn]), 1)
    np.add.at(n, (facts.drawn_in[inside] - 1, facts.topic[inside]), 1)
    whole = n_drawn.sum(axis=1)
    everywhere = np.divide(n.sum(axis=1), whole, out=np.ones(shape[0]), where=whole > 0)[:, None]
    reached = (n.sum(axis=0) > 0) | (n_drawn.sum(axis=0) == 0)
    share = np.where(reached | (everywhere == 1), everywhere, 0.0)
    share = np.divide(n, n_drawn, out=share, where=n_drawn > 0)
    return np.asarray((facts.first_probability * share[:, facts.topic]).sum(axis=0))


def not_covered(facts: Facts, members: Mask, chance: Floats) -> bool:
    """Return whether the members cannot stand for the whole frame, so that nothing is estimated from them."""
    if ((facts.first_probability > 0).any(axis=0) & (chance <= 0)).any():
        return True
    topic, n = facts.topic, len(facts.topics)
    inside, drawn = np.bincount(topic[facts.item[members]], minlength=n), np.bincount(topic[facts.drawn_in > 0], minlength=n)
    return not facts.order_is_random and bool(((inside > 0) & (inside < drawn)).any())


# -- what all methods share --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Weighed:
    """The weights of all runs in one measure, over those pairs of the frame that any run weighs."""

    facts: Facts
    place: Ints  # [weighed], places in the frame
    weight: Floats  # [run, weighed]
    gains: Floats  # [grade]
    prediction: Floats  # [weighed]
    known: Floats  # [run, topic]: sum of prediction * weight over the whole frame
    reaches_outside: Mask  # [run]

    def of_items(self, values: Floats) -> Floats:
        """Return values [item] at the weighed pairs, 0 where one is not judged."""
        at = np.zeros((self.facts.topic.size, *values.shape[1:]))
        at[self.facts.item] = values
        return np.asarray(at[self.place])

    def targets(self) -> Iterator[tuple[int, int | None, Floats]]:
        """Yield the runs, then the pairs of runs, with their weights [weighed]."""
        for run, row in enumerate(self.weight):
            yield run, None, row
        for a, b in self.facts.pairs:
            yield a, b, self.weight[a] - self.weight[b]


def weigh(facts: Facts, measure: str, prediction: int) -> Weighed:
    table = rank_weights(measure) / len(facts.topics)
    inside = [rank <= table.size for _, rank in facts.returned]
    places = [place[near] for (place, _), near in zip(facts.returned, inside, strict=True)]
    weighed = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *places]))
    weight = np.zeros((len(facts.runs), weighed.size))
    for row, place, (_, rank), near in zip(weight, places, facts.returned, inside, strict=True):
        row[np.searchsorted(weighed, place)] = table[rank[near] - 1]
    f = facts.predictions[prediction][weighed]
    topic, n = facts.topic[weighed], len(facts.topics)
    known = np.stack([np.bincount(topic, f * row, n) for row in weight])
    outside = np.array([bool((rank <= table.size).any()) for rank in facts.outside], dtype=bool)
    return Weighed(facts, weighed, weight, grade_gains(measure, facts), f, known, outside)


def settled(w: Weighed, run: int, run_b: int | None, weights: Floats) -> Row | None:
    """Return the answer that no judgment can change: two runs that are the same, documents nobody could judge."""
    runs = [run] if run_b is None else [run, run_b]
    if w.reaches_outside[runs].any() or weights[(w.facts.first_probability[:, w.place] == 0).all(axis=0)].any():
        return {"refused": True}
    if run_b is not None and not weights.any():
        exact = dict.fromkeys(("value", "standard_error", "low", "high"), 0.0)
        return {**exact, "n": 0, "degrees_of_freedom": None, "components": {}, "settled": True}
    return None


def interval(value: float, components: dict[str, float], df: float, n: int) -> Row:
    """Return the estimate with its symmetric 95 % interval: value / standard error is t, or normal."""
    error = math.sqrt(sum(components.values()))
    half = t95(df) * error
    value = value if abs(value) > ROUNDING else 0.0
    return {
        "value": value, "standard_error": error, "low": value - half, "high": value + half,
        "degrees_of_freedom": None if math.isinf(df) else df, "n": n, "components": components,
    }  # fmt: skip


def over_topics(row: Row, parts: Floats) -> Row:
    """Return the second interval: the topics as a sample of those that could have been asked.

    `parts` are the topics' shares of the value. Their spread holds every other source of error as well; but as a few
    topics may happen to lie close together, the standard error is at least the one for these topics.
    """
    n = parts.size
    variance = n * float(parts.var(ddof=1)) if n > 1 else 0.0
    if math.sqrt(variance) < ROUNDING or variance <= (1e-12 * n * float(np.abs(parts).max())) ** 2:
        return dict.fromkeys(("topics_standard_error", "topics_low", "topics_high"))
    error = max(math.sqrt(variance), row["standard_error"])
    value, half = float(parts.sum()), t95(n - 1) * error
    return {"topics_standard_error": error, "topics_low": value - half, "topics_high": value + half}


# -- grades as given ---------------------------------------------------------------------------------------------


def naive(w: Weighed) -> Iterator[Row]:
    """Yield the estimates that take the mean gain of an item's judgments as true.

    ``sum over the frame of f w + sum over judged items of w (u - f) / pi``, f the prediction, u the mean gain, pi the
    chance to be drawn and judged. Variance of a draw of each pair by itself (Poisson): ``sum (1 - pi) v^2`` with
    v = w (u - f) / pi, and t with ``2 V^2 / sum (1 - pi) v^4 (1 - pi)^2`` degrees of freedom.
    """
    facts = w.facts
    everything = np.ones(facts.item.size, dtype=bool)
    chance = draw_probability(facts, everything)
    if not_covered(facts, everything, chance):
        yield from ({"refused": True} for _ in w.targets())
        return
    gain = np.bincount(facts.label_item, w.gains[facts.label_grade], facts.item.size)
    utility = gain / np.bincount(facts.label_item, minlength=facts.item.size)
    judged = w.of_items(everything.astype(np.float64)) > 0
    pi = np.where(judged, chance[w.place], 1.0)
    surprise = np.where(judged, (w.of_items(utility) - w.prediction) / pi, 0.0)
    complete = facts.item.size == int((facts.drawn_in > 0).sum())
    strata = Strata.of(facts, chance[facts.item], w) if complete and facts.fixed_size else None
    for run, run_b, weights in w.targets():
        row = settled(w, run, run_b, weights) or _naive_row(w, run, run_b, weights, surprise, pi, judged, strata)
        if "refused" not in row and "settled" not in row:
            added = np.bincount(facts.topic[w.place], weights * surprise, len(facts.topics))
            row |= over_topics(row, added + known_of(w, run, run_b))
        yield row


def known_of(w: Weighed, run: int, run_b: int | None) -> Floats:
    """Return by topic what the predictions alone say of a target."""
    return np.asarray(w.known[run] if run_b is None else w.known[run] - w.known[run_b])


def _naive_row(
    w: Weighed, run: int, run_b: int | None, weights: Floats, surprise: Floats, pi: Floats, judged: Mask,
    strata: "Strata | None",
) -> Row:  # fmt: skip
    v = weights * surprise
    value = float(known_of(w, run, run_b).sum() + v.sum())
    n, uncertain = int(np.count_nonzero(weights[judged])), bool(weights[judged & (pi < 1)].any())
    if strata is None:
        terms = (1 - pi) * v**2
        variance, spread = float(terms.sum()), float(((1 - pi) * terms**2).sum())
        df = max(1.0, 2 * variance**2 / spread) if spread > 0 else math.inf
    else:
        variance, df = strata.variance(v)
    if n < LEAST or (variance == 0 and uncertain):
        return {"refused": True}
    return interval(value, {"drawing": variance}, df, n)


@dataclass(frozen=True, eq=False)
class Strata:
    """Topics of which a fixed number was drawn: the uncertain judged items, their topic, and each one's factor."""

    member: Mask  # [weighed], judged with a chance below 1
    stratum: Ints  # of these
    share: Floats  # of these
    whole: Floats  # [stratum], sum of the shares of all uncertain items, weighed or not
    count: Ints  # [stratum]

    @classmethod
    def of(cls, facts: Facts, pi: Floats, w: Weighed) -> "Strata":
        """Return the topics as strata; one with a single uncertain item is joined to the next (the last backwards).

        The factor c of an item solves ``c - c^2 / sum c = 1 - pi`` (Deville and Tille), or is ``m/(m-1) (1 - pi)``
        where that has no solution; joined strata take 1 for 1 - pi.
        """
        uncertain = np.flatnonzero(pi < 1)
        names, stratum = np.unique(facts.topic[facts.item[uncertain]], return_inverse=True)
        group, new, held = np.zeros(names.size, dtype=np.int64), 0, 0
        for place, count in enumerate(np.bincount(stratum, minlength=names.size)):
            new, held = (new + 1, 0) if held >= 2 else (new, held)
            group[place], held = new, held + int(count)
        if held < 2 and new > 0:
            group[group == new] = new - 1
        stratum, joined = group[stratum], np.bincount(group) > 1
        count = np.bincount(stratum)
        n = count.size
        rest = np.where(joined[stratum], 1.0, 1 - pi[uncertain])
        largest = np.zeros(n)
        np.maximum.at(largest, stratum, rest)
        solvable = (largest < 0.49 * np.bincount(stratum, rest, n))[stratum]
        share = rest * (count / np.maximum(1, count - 1))[stratum]
        for _ in range(200):
            better = np.where(solvable, rest + share**2 / np.bincount(stratum, share, n)[stratum], share)
            done = bool((np.abs(better - share) <= 1e-12 * better).all())
            share = better
            if done:
                break
        at = np.full(facts.topic.size, -1)
        at[facts.item[uncertain]] = np.arange(uncertain.size)
        own = at[w.place]
        return cls(own >= 0, stratum[own[own >= 0]], share[own[own >= 0]], np.bincount(stratum, share, n), count)

    def variance(self, v: Floats) -> tuple[float, float]:
        """Return the sum of the strata's variances around their centres, and Satterthwaite's degrees of freedom."""
        z, n = v[self.member], self.count.size
        total, squares = np.bincount(self.stratum, self.share * z, n), np.bincount(self.stratum, self.share * z**2, n)
        by_stratum = squares - total**2 / self.whole
        by_stratum[by_stratum <= 1e-13 * squares] = 0.0
        variance = float(by_stratum.sum())
        spread = float((by_stratum**2 / np.maximum(1, self.count - 1)).sum())
        return variance, variance**2 / spread if spread > 0 else math.inf
