"""A graded world of ten items, three topics and three runs, with draws and audits of it, for one step."""

import numpy as np

from analytics.estimation.graded_labels import stairs
from analytics.estimation.one_step import StairPhases
from analytics.estimation.samples import Frame
from sampling.measures.registry import parse_ratio

TOPIC = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2])
GRADED = np.array(
    [[0.9, 0.62, 0.51, 0.31, 0.2, 0.7, 0.35, 0.22, 0.81, 0.4], [0.5, 0.3, 0.1, 0.3, 0, 0.6, 0, 0.1, 0.2, 0.1]]
)
MANY_RANKS = np.array(
    [[1, 3, 0, 2, 4, 2, 1, 3, 0, 1], [0, 1, 2, 0, 3, 1, 0, 2, 3, 0], [5, 4, 3, 2, 1, 0, 0, 0, 1, 0]]
)
STEPS = stairs([0, 1, 3]).steps


def measure_of(name):
    return parse_ratio(name)


def sampled(drawn, audited, gold, *, pi, chance, before, after, steps):
    """Return the phases of one draw and one audit of it; `gold` [stair, frame]."""
    places = np.flatnonzero(drawn)
    return StairPhases(
        Frame(3, TOPIC, places, pi[places]),
        steps,
        audited[places],
        np.where(audited, gold, np.nan)[:, places],
        chance[places],
        before,
        after[:, places],
    )


def graded_world(n_certain=7, seed=5):
    """Return pi and a of ten items, some certain, with predictions and gold of two stairs."""
    rng = np.random.default_rng(seed)
    pi, chance = rng.uniform(0.3, 0.9, 10), rng.uniform(0.3, 0.9, 10)
    pi[:n_certain] = 1.0
    chance[3:] = 1.0
    chance[-2:] = 0.5
    after = -np.sort(-rng.random((2, 10)), axis=0)
    gold = np.array([[1, 0, 1, 1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 1, 0, 0, 0, 0, 1, 0]], dtype=float)
    return {"pi": pi, "chance": chance, "before": GRADED, "after": after, "steps": STEPS}, gold
