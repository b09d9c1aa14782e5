"""Tests of the sequence of labels: patterns, topics without a relevant label, and a trend over the topic.

Source: Carterette and Soboroff (2010), section 2, for what is looked at. Their test of two proportions pools topics
of different prevalence and rejects a quarter of honest assessors at 100 judgments; the exact test in blocks is ours.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import scipy

from analytics.screening.log import ScreeningLog
from analytics.screening.peers import (
    FEWEST_JUDGMENTS,
    Finding,
    finding,
    has_peers,
    peer_rate,
    two_sided,
    upper_tail,
    z_scores,
)
from sampling.arrays import FloatArray

BLOCK = 10  # labels of one topic that count as exchangeable: documents may come in order of priority
STICKINESS = (
    0.04  # of honest people: .22 relevant after a relevant document, .18 after another (the paper's log)
)
TOO_FEW = f"fewer than {FEWEST_JUDGMENTS} judgments, or too few peers"
ALIKE = "all labels alike"


@cache
def change_distribution(n_relevant: int, n_other: int) -> FloatArray:
    """Return P(C = c), c = 0, 1, ..., of the number of changes where the labels come in random order.

    Source: Wald and Wolfowitz (1940), with C = runs - 1.

    >>> change_distribution(3, 4).round(6).tolist()[1:]
    [0.057143, 0.142857, 0.342857, 0.257143, 0.171429, 0.028571]
    """
    n = n_relevant + n_other
    if min(n_relevant, n_other) == 0:
        return np.ones(1)
    probabilities = np.zeros(2 * min(n_relevant, n_other) + (n_relevant != n_other))
    for changes in range(1, probabilities.size):
        first, second = (
            (changes + 1) // 2,
            changes // 2,
        )  # pieces into which each kind is cut, less 1 where even
        if changes % 2:  # an even number of runs: as many of each kind
            ways = (
                2 * scipy.special.comb(n_relevant - 1, first - 1) * scipy.special.comb(n_other - 1, first - 1)
            )
        else:
            ways = scipy.special.comb(n_relevant - 1, second) * scipy.special.comb(n_other - 1, second - 1)
            ways += scipy.special.comb(n_relevant - 1, second - 1) * scipy.special.comb(n_other - 1, second)
        probabilities[changes] = ways
    distribution: FloatArray = probabilities / scipy.special.comb(n, n_relevant)
    return distribution


def _power(distribution: FloatArray, times: int) -> FloatArray:
    """Return the distribution of a sum of equal terms."""
    total, square = np.ones(1), distribution
    while times:
        if times & 1:
            total = np.convolve(total, square)
        times >>= 1
        if times:
            square = np.convolve(square, square)
    return total


def exchangeable_distribution(blocks: Sequence[tuple[int, int]]) -> FloatArray:
    """Return P(C = c) of the changes within blocks of (relevant, other) labels in random order: exact."""
    kinds: dict[tuple[int, int], int] = {}
    for block in blocks:
        kinds[block] = kinds.get(block, 0) + 1
    total = np.ones(1)
    for (n_relevant, n_other), times in kinds.items():
        total = np.convolve(total, _power(change_distribution(n_relevant, n_other), times))
    return total


def sticky_distribution(exchangeable: FloatArray, stickiness: float) -> FloatArray:
    """Return P(C = c) for sticky assessors, from that of labels in random order.

    With E its mean, it is tilted by exp(-g c) so that its mean is (1 - s) E.
    """
    changes = np.arange(exchangeable.size)
    goal = (1.0 - stickiness) * float(exchangeable @ changes)
    support = np.flatnonzero(exchangeable > 0)
    if stickiness <= 0 or goal <= support[0]:
        return exchangeable
    logarithms = np.log(exchangeable[support])

    def tilt(g: float) -> FloatArray:
        exponents = logarithms - g * changes[support]
        values: FloatArray = np.exp(exponents - exponents.max())
        values /= values.sum()
        return values

    g = scipy.optimize.brentq(lambda g: float(tilt(g) @ changes[support]) - goal, 0.0, 50.0)
    result = np.zeros(exchangeable.size)
    result[support] = tilt(g)
    return result


def serial_tails(
    sessions: Sequence[Sequence[int]], stickiness: float = STICKINESS
) -> tuple[float, float, int, float]:
    """Return P(C or fewer), P(C or more), C and the mean of the number of changes in the labels of some topics.

    Parameters
    ----------
    sessions
        Of each topic the labels, 0 or 1, in judging order.

    Examples
    --------
    >>> few, many, changes, mean = serial_tails([[0, 1] * 5, [0, 0, 1, 1, 0, 0]], 0.0)
    >>> round(few, 6), round(many, 6), changes, round(mean, 6)
    (0.988889, 0.051323, 11, 7.666667)
    """
    blocks, changes = [], 0
    for labels in sessions:
        for start in range(0, len(labels), BLOCK):
            block = labels[start : start + BLOCK]
            blocks.append((sum(block), len(block) - sum(block)))
            changes += sum(one != other for one, other in pairwise(block))
    return _tails(blocks, changes, stickiness)


def _tails(
    blocks: Sequence[tuple[int, int]], changes: int, stickiness: float
) -> tuple[float, float, int, float]:
    """Return both tails, each at the end of the null hypothesis that makes it likeliest.

    Honest assessors have any stickiness from 0 to `stickiness`: few changes are likeliest at the largest, many at 0.
    """
    exchangeable = exchangeable_distribution(blocks)
    sticky = sticky_distribution(exchangeable, stickiness)
    mean = float(sticky @ np.arange(sticky.size))
    few, many = float(sticky[: changes + 1].sum()), float(exchangeable[changes:].sum())
    return min(few, 1.0), min(many, 1.0), changes, mean


def serial(log: ScreeningLog) -> Finding:
    """Return whether labels follow a pattern: more or fewer changes than random order within blocks of 10 gives.

    Effect: changes per expected change; below 1 the labels stick, above 1 they alternate.
    """
    block = np.concatenate(([0], np.cumsum(np.diff(log.session) != 0))) * (log.assessor.size + 1)
    block = (
        np.unique(block + log.position // BLOCK, return_inverse=True)[1] if log.assessor.size else block[:0]
    )
    relevant = np.bincount(block, weights=log.relevant).astype(int)
    sizes = np.bincount(block)
    same_block = np.diff(block) == 0
    changed = same_block & (np.diff(log.relevant) != 0)
    n_changes = np.bincount(log.assessor[1:][changed], minlength=log.n_assessors)
    owner = np.zeros(sizes.size, dtype=np.int64)
    owner[block] = log.assessor
    p, effect = np.full(log.n_assessors, np.nan), np.full(log.n_assessors, np.nan)
    refusals: dict[int, str] = {}
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(log.n_assessors + 1))
    for one in np.flatnonzero(log.n_judgments >= FEWEST_JUDGMENTS).tolist():
        own = order[bounds[one] : bounds[one + 1]]
        blocks = list(zip(relevant[own].tolist(), (sizes[own] - relevant[own]).tolist(), strict=True))
        if all(min(pair) == 0 for pair in blocks):
            refusals[one] = ALIKE
            continue
        few, many, changes, mean = _tails(blocks, int(n_changes[one]), STICKINESS)
        p[one], effect[one] = min(1.0, 2.0 * min(few, many)), changes / mean
    return finding(p, effect, TOO_FEW, refusals=refusals)


def all_alike(log: ScreeningLog) -> Finding:
    """Return whether more of an assessor's topics than of the peers' have no relevant label.

    One topic alone never counts against anybody: about every seventh topic has no relevant document. Effect: the share.
    """
    n_topics = np.bincount(log.session_assessor, minlength=log.n_assessors).astype(np.float64)
    is_empty = log.n_relevant == 0
    n_empty = log.per_assessor(is_empty.astype(np.float64))
    tail = upper_tail(n_empty, n_topics, peer_rate(n_empty, n_topics))
    tail = np.where(n_empty >= 2, tail, 1.0)
    tested = (log.n_judgments >= FEWEST_JUDGMENTS) & (n_topics >= 2) & has_peers(n_topics > 0)
    effect = np.divide(n_empty, n_topics, out=np.full(n_topics.size, np.nan), where=n_topics > 0)
    return finding(np.where(tested, tail, np.nan), effect, TOO_FEW, log.topics_of(is_empty))


def drift(log: ScreeningLog) -> Finding:
    """Return whether labels rise or fall along the topic otherwise than the peers' do.

    S = sum (position - mean)(y - mean) over its permutation standard deviation D; with documents in order of priority
    everybody's S is below 0. Compared is S / D less D times the peers' median of S / D^2, so that short and long logs
    compare; the spread is that of the peers, at least sqrt((1 + s) / (1 - s)) for stickiness s. Effect: that deviation.
    """
    sizes = log.sizes.astype(np.float64)
    place = log.position - (sizes[log.session] - 1) / 2
    share = log.n_relevant / sizes
    label = log.relevant - share[log.session]
    trend = log.per_assessor(log.per_session(place * label))
    squares = sizes * (sizes**2 - 1) / 12 * (sizes * share * (1 - share)) / np.maximum(sizes - 1, 1)
    variance = log.per_assessor(squares)
    known = (log.n_judgments >= FEWEST_JUDGMENTS) & (variance > 0)
    slope = np.divide(trend, variance, out=np.full(trend.size, np.nan), where=known)
    root = np.sqrt(variance)
    usual = np.nanmedian(slope) if known.any() else 0.0
    least = np.sqrt((1 + STICKINESS) / (1 - STICKINESS))
    z, n_peers = z_scores(np.where(known, (slope - usual) * root, np.nan), least_spread=least)
    return finding(two_sided(z, n_peers - 1), z.copy(), TOO_FEW)


def rate(log: ScreeningLog) -> Finding:
    """Return whether the share of relevant labels differs from the peers'; the arcsine root makes its spread even.

    Effect: the share itself.
    """
    n = log.n_judgments.astype(np.float64)
    share = np.divide(
        log.per_assessor(log.n_relevant.astype(float)), n, out=np.full(n.size, np.nan), where=n > 0
    )
    roots = np.where(n >= FEWEST_JUDGMENTS, np.arcsin(np.sqrt(share)), np.nan)
    z, n_peers = z_scores(roots)
    return finding(two_sided(z, n_peers - 1), share, TOO_FEW)
