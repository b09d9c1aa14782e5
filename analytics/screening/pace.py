"""Tests of pace: who judges faster than the peers, in which topics, and from which moment on.

Source: Carterette and Soboroff (2010), section 2, for the time model and for topics judged fast; the peers' rate in
place of one half, and the test of giving up, are ours.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from analytics.screening.log import ScreeningLog
from analytics.screening.peers import (
    FEWEST_JUDGMENTS,
    MAD_TO_SD,
    Finding,
    finding,
    has_peers,
    lower_tail,
    peer_rate,
    upper_tail,
    z_scores,
)
from sampling.arrays import FloatArray

LONGEST = 200.0  # seconds: beyond, the assessor did something else. Dropped for the time model alone.
HUBER = 1.5  # standard deviations beyond which a judgment counts less
ROUNDS = 6  # of reweighting: the weights no longer change in the third digit
SMALL = 1e-9
FEWEST_IN_TOPIC = 10
FAST_SHARE = 0.9
MACHINE = "a machine's pace says nothing"
NO_TIMES = "too few judgments with a measured time, or too few peers"


def pace_residuals(log: ScreeningLog) -> FloatArray:
    """Return the logarithm of each judgment's seconds less the effects of label and position, centred; NaN if unknown.

    log seconds = label + position + assessor + topic + e, by least squares with Huber's weights; what is returned is
    assessor + topic + e, with median 0. Times above LONGEST, without a measurement, and machines' are left out.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        logarithms = np.log(log.seconds)
    known = np.isfinite(logarithms) & (log.seconds <= LONGEST) & ~log.is_machine[log.assessor]
    residuals = np.full(log.assessor.size, np.nan)
    if not known.any():
        return residuals
    covariates = np.column_stack([log.relevant[known], log.position[known]]).astype(np.float64)
    slopes = _slopes(logarithms[known], covariates, log.assessor[known], log.topic[known])
    rest = logarithms[known] - covariates @ slopes
    residuals[known] = rest - np.median(rest)
    return residuals


def _slopes(
    y: FloatArray, covariates: FloatArray, assessor: NDArray[np.int64], topic: NDArray[np.int64]
) -> FloatArray:
    weights = np.ones(y.size)
    slopes = np.zeros(covariates.shape[1])
    for _ in range(ROUNDS):
        slopes, errors = _weighted_fit(y, covariates, assessor, topic, weights)
        spread = MAD_TO_SD * np.median(np.abs(errors - np.median(errors)))
        if spread <= SMALL:
            break
        weights = np.minimum(1.0, HUBER * spread / np.maximum(np.abs(errors), SMALL))
    return slopes


def _weighted_fit(
    y: FloatArray,
    covariates: FloatArray,
    assessor: NDArray[np.int64],
    topic: NDArray[np.int64],
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and errors of a weighted fit with an effect of each assessor and of each topic.

    The topics' effects are eliminated first: what is left to solve has the size of the number of assessors, however
    many judgments and topics there are.
    """
    topic_weight = np.maximum(np.bincount(topic, weights=weights), SMALL)
    shape = (int(assessor.max()) + 1 + covariates.shape[1], topic_weight.size)
    n_assessors = shape[0] - covariates.shape[1]
    # Columns: assessors, then covariates. cross[column, topic] is their weighted inner product.
    rows = [assessor, *(np.full(y.size, n_assessors + one) for one in range(covariates.shape[1]))]
    values = [weights, *(weights * column for column in covariates.T)]
    places = (np.concatenate(rows), np.tile(topic, len(rows)))
    cross = scipy.sparse.coo_array((np.concatenate(values), places), shape=shape).tocsr()
    left = np.zeros((shape[0], shape[0]))
    left[np.arange(n_assessors), np.arange(n_assessors)] = np.bincount(
        assessor, weights, minlength=n_assessors
    )
    for one, column in enumerate(covariates.T):
        by_assessor = np.bincount(assessor, weights * column, minlength=n_assessors)
        left[n_assessors + one, :n_assessors] = left[:n_assessors, n_assessors + one] = by_assessor
        for other in range(one, covariates.shape[1]):
            product = float((weights * column * covariates[:, other]).sum())
            left[n_assessors + one, n_assessors + other] = left[n_assessors + other, n_assessors + one] = (
                product
            )
    right = np.concatenate(
        [np.bincount(assessor, weights * y, minlength=n_assessors), covariates.T @ (weights * y)]
    )
    topic_right = np.bincount(topic, weights * y, minlength=topic_weight.size)
    left -= (cross.multiply(1.0 / topic_weight) @ cross.T).toarray()
    right -= cross @ (topic_right / topic_weight)
    solution = np.linalg.lstsq(left, right, rcond=None)[
        0
    ]  # one constant may move between assessors and topics
    effects = (topic_right - cross.T @ solution) / topic_weight
    slopes = solution[n_assessors:]
    return slopes, y - covariates @ slopes - solution[assessor] - effects[topic]


def _totals(log: ScreeningLog, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the number and the sum of the known residuals of every assessor."""
    known = ~np.isnan(residuals)
    of = log.assessor[known]
    number = np.bincount(of, minlength=log.n_assessors).astype(np.float64)
    return number, np.bincount(of, residuals[known], minlength=log.n_assessors).astype(np.float64)


def _machines(log: ScreeningLog) -> dict[int, str]:
    return dict.fromkeys(np.flatnonzero(log.is_machine).tolist(), MACHINE)


def speed(log: ScreeningLog, residuals: FloatArray) -> Finding:
    """Return whether an assessor's mean residual is below the peers'; effect in robust deviations of theirs."""
    number, total = _totals(log, residuals)
    means = np.divide(total, number, out=np.full(number.size, np.nan), where=number >= FEWEST_JUDGMENTS)
    z, n_peers = z_scores(means)
    return finding(lower_tail(z, n_peers - 1), z.copy(), NO_TIMES, refusals=_machines(log))


def fast_topics(log: ScreeningLog, residuals: FloatArray) -> Finding:
    """Return whether more of an assessor's topics than of the peers' have 90 % of the residuals below 0.

    Of topics with FEWEST_IN_TOPIC measured times at least. The paper's Bin(n, 1/2) takes the judgments of a topic for
    independent: with topic effects of half a standard deviation 29 of 32 are faster with probability .017, not
    .0000013.
    """
    known = ~np.isnan(residuals)
    number = log.per_session(known.astype(np.float64))
    faster = log.per_session((np.where(known, residuals, 0.0) < 0).astype(np.float64))
    is_counted = number >= FEWEST_IN_TOPIC
    is_fast = is_counted & (faster >= FAST_SHARE * number)
    n_topics, n_fast = log.per_assessor(is_counted.astype(float)), log.per_assessor(is_fast.astype(float))
    rate = peer_rate(n_fast, n_topics)
    p = np.where((n_topics >= 2) & has_peers(n_topics > 0), upper_tail(n_fast, n_topics, rate), np.nan)
    effect = np.divide(n_fast, n_topics, out=np.full(p.size, np.nan), where=n_topics > 0)
    return finding(p, effect, NO_TIMES, log.topics_of(is_fast), _machines(log))


def giving_up(log: ScreeningLog, residuals: FloatArray) -> Finding:
    """Return whether an assessor begins to rush within a topic: residuals are not exchangeable.

    C is the largest, over topics, of max_k sum_(i<=k) (e_i - mean) / (sd sqrt n); p = min(1, T exp(-2 C^2)),
    the tail of a Brownian bridge's maximum with Bonferroni's factor for T topics. Effect: C.
    """
    known = np.flatnonzero(~np.isnan(residuals))
    p, effect = np.full(log.n_assessors, np.nan), np.full(log.n_assessors, np.nan)
    topics: dict[int, tuple[int, ...]] = {}
    session = log.session[known]
    number = np.bincount(session, minlength=log.starts.size)
    mean, deviation = _moments(residuals[known], session, number)
    centred = residuals[known] - mean[session]
    sums = np.cumsum(centred)  # every session sums to 0, so that one running sum serves all of them
    highest = np.zeros(number.size)
    np.maximum.at(highest, session, sums)
    counted = (number >= FEWEST_IN_TOPIC) & (deviation > SMALL)
    c = np.where(counted, highest / np.where(counted, deviation * np.sqrt(number), 1.0), 0.0)
    n_topics = log.per_assessor(counted.astype(float))
    largest = np.zeros(log.n_assessors)
    np.maximum.at(largest, log.session_assessor, c)
    tested = (n_topics > 0) & (_totals(log, residuals)[0] >= FEWEST_JUDGMENTS)
    p[tested] = np.minimum(1.0, n_topics[tested] * np.exp(-2.0 * largest[tested] ** 2))
    effect[tested] = largest[tested]
    topics = log.topics_of(counted & (n_topics[log.session_assessor] * np.exp(-2.0 * c**2) < 0.05))
    return finding(p, effect, "no topic with ten measured times", topics, _machines(log))


def _moments(
    values: FloatArray, session: NDArray[np.int64], number: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of every session."""
    sizes = np.maximum(number, 1)
    mean = np.bincount(session, values, minlength=number.size) / sizes
    squares = np.bincount(session, (values - mean[session]) ** 2, minlength=number.size)
    return mean, np.sqrt(squares / np.maximum(sizes - 1, 1))
