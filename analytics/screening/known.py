"""Tests against what is known from elsewhere: the prior of the draw, gold checks and audits."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.screening.log import Mask, ScreeningLog
from analytics.screening.peers import (
    FEWEST_JUDGMENTS,
    Finding,
    finding,
    has_peers,
    lower_tail,
    peer_centres,
    peer_rate,
    upper_tail,
)
from sampling.arrays import FloatArray

FEWEST_OF_A_KIND = 3  # labels of each kind in a topic, for an AUC
DEGREES = 8  # of the t distribution: weights of a few AUCs are themselves estimated
NO_PRIOR = "no topic with three labels of each kind and a prior, or too few peers"
NO_GOLD = "too few known answers, or too few peers"
FEWEST_KNOWN = 5  # known answers of a kind
FEWEST_KNOWN_IN_ALL = 20


def auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Return the probability that a relevant document scores above another, ties half.

    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    given = np.asarray(labels)
    n_relevant = int(given.sum())
    ranks = scipy.stats.rankdata(np.asarray(scores))[given == 1]
    return float((ranks.sum() - n_relevant * (n_relevant + 1) / 2) / (n_relevant * (given.size - n_relevant)))


def auc_variance(value: ArrayLike, n_relevant: ArrayLike, n_other: ArrayLike) -> FloatArray:
    """Return the variance of an AUC. Source: Hanley and McNeil (1982), Eq 1.

    >>> round(float(auc_variance(0.8, 10, 30)), 6)
    0.008207
    """
    a, m, n = (np.asarray(one, dtype=np.float64) for one in (value, n_relevant, n_other))
    first, second = a / (2 - a), 2 * a**2 / (1 + a)
    variance: FloatArray = (a * (1 - a) + (m - 1) * (first - a**2) + (n - 1) * (second - a**2)) / (m * n)
    return variance


def session_aucs(log: ScreeningLog) -> tuple[FloatArray, FloatArray]:
    """Return of every session the AUC of its labels against the prior and its variance; NaN where there is none."""
    has_prior = ~np.isnan(log.prior)
    rows = np.flatnonzero(has_prior)
    session = log.session[rows]
    size = np.bincount(session, minlength=log.starts.size)
    relevant = np.bincount(session, log.relevant[rows], minlength=log.starts.size)
    other = size - relevant
    ranks = _ranks_within(log.prior[rows], session, size)
    sums = np.bincount(session, np.where(log.relevant[rows] == 1, ranks, 0.0), minlength=log.starts.size)
    counted = np.minimum(relevant, other) >= FEWEST_OF_A_KIND
    pairs = np.where(counted, relevant * other, 1.0)
    values = np.where(counted, (sums - relevant * (relevant + 1) / 2) / pairs, np.nan)
    # At 0 and 1 the formula gives no variance at all: as if half a pair were the other way.
    inside = np.clip(values, 0.5 / pairs, 1 - 0.5 / pairs)
    variances = np.where(counted, auc_variance(inside, np.maximum(relevant, 1), np.maximum(other, 1)), np.nan)
    return values, variances


def _ranks_within(values: FloatArray, session: np.ndarray, size: np.ndarray) -> FloatArray:
    """Return the rank of each value within its session, ties in the middle."""
    order = np.lexsort((values, session))
    ordered, owner = values[order], session[order]
    starts = np.cumsum(size) - size
    place = np.arange(values.size) - starts[owner] + 1.0
    is_new = np.ones(values.size, dtype=bool)
    is_new[1:] = (np.diff(ordered) != 0) | (np.diff(owner) != 0)
    tie = np.cumsum(is_new) - 1
    middle = np.bincount(tie, place) / np.bincount(tie)
    ranks = np.empty(values.size)
    ranks[order] = middle[tie]
    return ranks


def no_relation(log: ScreeningLog) -> Finding:
    """Return whether labels go with the prior less than the peers' labels do.

    z = sum u (AUC - the peers' median AUC) / sqrt(sum u) over topics with three labels of each kind, u the inverse of
    Hanley and McNeil's variance plus that between topics; then less the peers' median z, over the larger of 1 and their
    MAD, by t with 8 degrees of freedom. Effect: the weighted mean AUC.
    """
    values, variances = session_aucs(log)
    known = ~np.isnan(values)
    n = log.n_assessors
    between = (
        max(0.0, float(np.var(values[known], ddof=1) - variances[known].mean())) if known.sum() > 1 else 0.0
    )
    weights = np.where(known, 1.0 / (np.where(known, variances, 1.0) + between), 0.0)
    total = log.per_assessor(weights)
    filled = np.where(known, values, 0.0)
    means = np.divide(log.per_assessor(weights * filled), total, out=np.full(n, np.nan), where=total > 0)
    means[log.n_judgments < FEWEST_JUDGMENTS] = np.nan
    z = (means - _peer_medians(values, log.session_assessor, n)) * np.sqrt(total)
    centres, spreads, _ = peer_centres(z)
    deviation = (z - centres) / np.maximum(1.0, spreads)
    deviation[~has_peers(~np.isnan(means))] = np.nan
    return finding(
        np.asarray(scipy.stats.t.cdf(deviation, DEGREES)),
        means,
        NO_PRIOR,
        log.topics_of(known & (values < 0.5)),
    )


def _peer_medians(values: FloatArray, owner: np.ndarray, n_assessors: int) -> FloatArray:
    """Return of every assessor the median of the others' values; with many of them that of all does."""
    known = ~np.isnan(values)
    if n_assessors > 100:
        return np.full(n_assessors, np.median(values[known]) if known.any() else np.nan)
    others = [values[known & (owner != one)] for one in range(n_assessors)]
    return np.array([np.median(one) if one.size else np.nan for one in others])


def _error_rate(log: ScreeningLog, truth: int) -> Finding:
    """Return whether an assessor errs on documents of this true label more often than the peers. Effect: the rate.

    The binomial upper tail at the peers' rate takes all documents to be equally hard. Topics differ, and nobody judges
    all: where the peers' rates spread more than that, the deviation in units of their spread must be as improbable, so
    that p is the larger of the two.
    """
    is_known = log.truth == truth
    totals = np.bincount(log.assessor[is_known], minlength=log.n_assessors).astype(np.float64)
    wrong: Mask = is_known & (log.relevant != truth)
    errors = np.bincount(log.assessor[wrong], minlength=log.n_assessors).astype(np.float64)
    rate = peer_rate(errors, totals)
    tested = (totals >= FEWEST_KNOWN) & has_peers(totals >= FEWEST_KNOWN)
    tail = np.maximum(upper_tail(errors, totals, rate), _spread_tail(errors, totals, rate, tested))
    effect = np.divide(errors, totals, out=np.full(totals.size, np.nan), where=totals > 0)
    topics = log.topics_of(log.per_session(wrong.astype(np.float64)) > 0)
    return finding(np.where(tested, tail, np.nan), effect, NO_GOLD, topics)


def _spread_tail(errors: FloatArray, totals: FloatArray, rate: FloatArray, tested: Mask) -> FloatArray:
    """Return the upper tail of the deviation from the peers' median in units of their MAD, by Student's t.

    0 where the peers spread no more than binomial numbers at their rate do.
    """
    z = np.full(totals.size, np.nan)
    deviation = np.sqrt(totals * rate * (1.0 - rate))
    z[tested] = (errors - totals * rate)[tested] / deviation[tested]
    centres, spreads, n_peers = peer_centres(z)
    tail = lower_tail((centres - z) / np.maximum(spreads, 1.0), n_peers - 1)
    return np.asarray(np.where(spreads > 1, tail, 0.0))


def false_alarms(log: ScreeningLog) -> Finding:
    """Return whether more documents known not to be relevant than by the peers are called relevant."""
    return _error_rate(log, 0)


def misses(log: ScreeningLog) -> Finding:
    """Return whether more documents known to be relevant than by the peers are called not relevant."""
    return _error_rate(log, 1)


def less_accurate(counts: ArrayLike) -> FloatArray:
    """Return the p of being right as seldom as an assessor is, if all were right equally often at each true grade.

    The one-sided test of Mantel and Haenszel (1959), an assessor against all others, the true grades as strata:
    z = (k - E + 1/2) / sqrt(V), k right answers, E and V the sums over grades of the hypergeometric mean and variance.
    It takes answers to be independent: where documents of a topic are alike hard, somebody of ten equally good ones is
    flagged at .05 (Holm) in up to 6 % of campaigns (tests/analytics/screening/test_known_labels.py).

    Parameters
    ----------
    counts : array [assessor, true grade, given grade]
        Known answers, weighted ones as effective counts.

    Returns
    -------
    array [assessor]
        NaN for those with fewer than 20 known answers, and where fewer than 4 others have so many.

    >>> rights = np.array([30.0, 29, 31, 30, 32, 12])
    >>> less_accurate(np.stack([np.diag([k, k]) + (40 - k) * np.eye(2)[::-1] for k in rights])).round(4).tolist()
    [0.9373, 0.8431, 0.9802, 0.9373, 0.9951, 0.0]
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 3 or table.shape[1] != table.shape[2] or not (table >= 0).all():
        raise ValueError(
            f"counts must be [assessor, true, given] and >= 0, got an array of shape {table.shape}"
        )
    right, n = np.diagonal(table, axis1=1, axis2=2), table.sum(axis=2)
    all_right, all_n = right.sum(axis=0), np.maximum(n.sum(axis=0), 1.0)
    deviation = (right - n * all_right / all_n).sum(axis=1)
    spread = n * (all_n - n) * all_right * (all_n - all_right) / (all_n**2 * np.maximum(all_n - 1, 1.0))
    variance = spread.sum(axis=1)
    is_known = n.sum(axis=1) >= FEWEST_KNOWN_IN_ALL
    tested = is_known & has_peers(is_known) & (variance > 0)
    p = np.full(tested.size, np.nan)
    p[tested] = scipy.special.ndtr((deviation[tested] + 0.5) / np.sqrt(variance[tested]))
    return p
