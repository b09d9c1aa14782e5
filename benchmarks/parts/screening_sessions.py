"""Sessions of simulated assessors on the collections of `experiments/carterette_2010.py`, as a log that is screened."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.screening.log import UNKNOWN, ScreeningLog
from experiments.papers.track_collection import TrackTopic
from judging.behaviour import LabelArray, sticky_labels
from judging.erring_assessors import Pace, erring_assessor
from sampling.arrays import FloatArray

HONEST = "honest"
PER_TOPIC = 50
FALSE_ALARMS, MISSES, STICKINESS = 0.03, 0.08, 0.04  # of honest assessors
ASSESSOR_SPREAD, TOPIC_SPREAD = 0.25, 0.2  # of the logarithm of the seconds


@dataclass(frozen=True)
class Session:
    """A topic as one assessor judges it, in judging order."""

    topic: int
    labels: LabelArray
    seconds: FloatArray
    prior: FloatArray
    truth: LabelArray


def judging_orders(topics: Sequence[TrackTopic], by_priority: bool) -> list[np.ndarray]:
    """Return of every topic its first PER_TOPIC documents: as drawn, or those in order of the prior."""
    orders = []
    for topic in topics:
        rows = np.arange(min(PER_TOPIC, topic.labels.size))
        orders.append(rows[np.argsort(-topic.prior[rows], kind="stable")] if by_priority else rows)
    return orders


def honest_labels(truth: LabelArray, rng: np.random.Generator) -> LabelArray:
    """Return labels with the errors of an honest assessor."""
    errs = rng.random(truth.size) < np.where(truth == 1, MISSES, FALSE_ALARMS)
    return sticky_labels(np.where(errs, 1 - truth, truth), rng.random(truth.size), STICKINESS)


def sessions(
    behaviour: str,
    topics: Sequence[TrackTopic],
    orders: Sequence[np.ndarray],
    n_topics: int,
    share_known: float,
    rng: np.random.Generator,
) -> list[Session]:
    """Return what one assessor gives in topics drawn for them; `share_known` of the true labels are known."""
    own = rng.normal(0, ASSESSOR_SPREAD)
    made = []
    for topic in rng.choice(len(topics), n_topics, replace=False).tolist():
        rows = orders[topic]
        truth = topics[topic].labels[rows]
        quits = None
        if behaviour == HONEST:
            given = honest_labels(truth, rng)
        else:
            assessor = erring_assessor(behaviour)
            given, quits = assessor.labels(truth, rng.random(truth.size)), assessor.quits_after(truth)
        effect = own + rng.normal(0, TOPIC_SPREAD)
        seconds = Pace().seconds(given, rng.standard_normal(truth.size), effect=effect, quits_after=quits)
        known = np.where(rng.random(truth.size) < share_known, truth, UNKNOWN)
        made.append(Session(topic, given, seconds, topics[topic].prior[rows], known))
    return made


def session_log(
    behaviours: Sequence[str],
    topics: Sequence[TrackTopic],
    n_judgments: int,
    seed: Sequence[int],
    *,
    by_priority: bool = False,
    share_known: float = 0.2,
) -> ScreeningLog:
    """Return the log of assessors, one for each behaviour, with `n_judgments` each."""
    rng = np.random.default_rng(list(seed))
    orders = judging_orders(topics, by_priority)
    made = [
        (one, session)
        for one, behaviour in enumerate(behaviours)
        for session in sessions(behaviour, topics, orders, n_judgments // PER_TOPIC, share_known, rng)
    ]
    sizes = [session.labels.size for _, session in made]
    return ScreeningLog.of(
        np.repeat([one for one, _ in made], sizes),
        np.repeat([session.topic for _, session in made], sizes),
        np.concatenate([np.arange(size) for size in sizes]),
        np.concatenate([session.labels for _, session in made]),
        seconds=np.concatenate([session.seconds for _, session in made]),
        prior=np.concatenate([session.prior for _, session in made]),
        truth=np.concatenate([session.truth for _, session in made]),
    )
