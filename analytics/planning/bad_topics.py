"""How many badly judged topics a ranking of runs stands: topics replaced by erring doubles at random.

Source: Carterette and Soboroff (2010), section 4.2 and Figure 5, for the experiment; scores are AP estimated from the
sample (`sampling/rejudging.py`), the reference is the ranking by the labels as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from judging.behaviour import LabelArray
from judging.erring_assessors import BEHAVIOURS, ErringAssessor
from sampling.arrays import FloatArray
from sampling.rejudging import SampledTopic, sampled_average_precision

LEAST_TAU = 0.9
N_TRIALS = 25
FEWEST_RUNS = 3
SHARES = np.arange(21) / 20

Doubles = Callable[[LabelArray, np.random.Generator], LabelArray]


@dataclass(frozen=True)
class Tolerance:
    """How Kendall's tau falls as more topics are judged badly.

    Attributes
    ----------
    shares, taus : (n_shares,) arrays
        Share of bad topics; mean tau over the trials, between the ranking with them and the ranking as it is.
    limit_share : float
        Where the mean tau falls below the least one, between shares on a straight line; 1 where it never does.
    """

    shares: FloatArray
    taus: FloatArray
    limit_share: float


def mixture_labels(labels: LabelArray, rng: np.random.Generator) -> LabelArray:
    """Return the labels of an assessor who errs in one of the known ways, drawn evenly, with usual parameters."""
    behaviour = BEHAVIOURS[rng.integers(len(BEHAVIOURS))]
    return ErringAssessor(behaviour, behaviour.defaults).labels(labels, rng.random(labels.size))


def flips(false_alarm: float, miss: float) -> Doubles:
    """Return doubles that reverse each label with the error rate of its kind, independently.

    >>> flips(1.0, 0.0)(np.array([0, 1]), np.random.default_rng(0)).tolist()
    [1, 1]
    """
    for name, rate in (("false_alarm", false_alarm), ("miss", miss)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} must be within [0, 1], got {rate}")

    def double(labels: LabelArray, rng: np.random.Generator) -> LabelArray:
        is_wrong = rng.random(labels.size) < np.where(labels == 1, miss, false_alarm)
        return np.where(is_wrong, 1 - labels, labels)

    return double


def tolerance(
    topics: Sequence[SampledTopic],
    double: Doubles,
    rng: np.random.Generator,
    *,
    least_tau: float = LEAST_TAU,
    n_trials: int = N_TRIALS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tolerance:
    """Return how the ranking of runs changes as random topics get the labels of erring doubles.

    Parameters
    ----------
    topics
        With their documents in judging order.
    double
        From a topic's labels those of somebody who errs.

    Raises
    ------
    ValueError
        Without topics, with fewer than 3 runs, or where all runs have one score: there is no ranking.
    """
    right = run_scores(topics)
    reference, n_runs = right.mean(axis=0), right.shape[1]
    taus = np.empty((n_trials, SHARES.size))
    for trial in range(n_trials):
        progress(trial, n_trials)
        wrong = np.array([sampled_average_precision(_judged_by(topic, double, rng)) for topic in topics])
        changes = (wrong - right)[rng.permutation(len(topics))]
        summed = np.vstack([np.zeros(n_runs), np.cumsum(changes, axis=0)])
        for place, share in enumerate(SHARES):
            scores = reference + summed[round(share * len(topics))] / len(topics)
            taus[trial, place] = kendalls_tau(reference, scores)
    mean = taus.mean(axis=0)
    return Tolerance(SHARES, mean, crossing(SHARES, mean, least_tau))


def run_scores(topics: Sequence[SampledTopic]) -> FloatArray:
    """Return AP [topic, run] by the labels as they are; ValueError where they do not rank three runs."""
    if not topics:
        raise ValueError("topics must be at least 1, got 0")
    n_runs = topics[0].ranks.shape[0]
    if n_runs < FEWEST_RUNS:
        raise ValueError(f"runs must be at least {FEWEST_RUNS}, got {n_runs}")
    scores = np.array([sampled_average_precision(topic) for topic in topics])
    means = scores.mean(axis=0)
    if np.ptp(means) == 0:
        raise ValueError(f"runs must differ in score, got {means[0]} of each")
    return scores


def crossing(shares: ArrayLike, taus: ArrayLike, least_tau: float) -> float:
    """Return the share at which tau first falls below the least one; 1 where it never does.

    >>> round(crossing([0, 0.5, 1], [1, 0.95, 0.75], 0.9), 6)
    0.625
    """
    x, y = np.asarray(shares, dtype=np.float64), np.asarray(taus, dtype=np.float64)
    below = np.flatnonzero(y < least_tau)
    if not below.size:
        return 1.0
    place = int(below[0])
    if place == 0:
        return float(x[0])
    fall = y[place - 1] - y[place]
    return float(x[place - 1] + (x[place] - x[place - 1]) * (y[place - 1] - least_tau) / fall)


def _judged_by(topic: SampledTopic, double: Doubles, rng: np.random.Generator) -> SampledTopic:
    return replace(topic, is_relevant=double(topic.is_relevant.astype(np.int64), rng) == 1)


def kendalls_tau(reference: FloatArray, scores: FloatArray) -> float:
    """Return Kendall's tau; 0 where all scores are alike, which orders nothing."""
    return float(scipy.stats.kendalltau(reference, scores).statistic) if np.ptp(scores) else 0.0
