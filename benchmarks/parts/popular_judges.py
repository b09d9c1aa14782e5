"""A machine judge whose errors follow popularity, as in the coverage grid, and its scores calibrated elsewhere.

What is assumed of a judge is one sensitivity and one specificity. Calibrated are the scores as the product does it
(`sampling.score_calibration`), on gold of another pool.
"""

import numpy as np
from parts.coverage_collection import wrong_rates
from parts.trec_like import Floats, JudgedPool

from sampling.questions import prior_of_runs
from sampling.score_calibration import Calibration, fit_calibration, log_popularity

GOLD_ELSEWHERE = (300, 1000, 10_000)  # evenly drawn from the other pool


def popular_judge(pool: JudgedPool, rng: np.random.Generator) -> Floats:
    """Return labels, 0 or 1: sensitivity .93, specificity .72 where one run returns the item, less where more do."""
    wrong = wrong_rates(pool.relevant.astype(np.int64), returned_by(pool).astype(np.int64), "popularity")
    return np.where(rng.random(wrong.size) < wrong, 1.0 - pool.relevant, pool.relevant)


def returned_by(pool: JudgedPool) -> Floats:
    """Return how many runs return each item."""
    return np.asarray((pool.ranks > 0).sum(axis=0), dtype=np.float64)


def calibrated(pool: JudgedPool, labels: Floats, calibration: Calibration) -> Floats:
    """Return the prior probability of relevance with the judge's labels, as calibrated elsewhere."""
    return calibration.prior(
        prior_of_runs(pool.ranks, pool.depth), labels, log_popularity(pool.ranks, pool.depth)
    )


def calibration(pool: JudgedPool, labels: Floats, n_gold: int, rng: np.random.Generator) -> Calibration:
    """Return what the gold of some items, drawn evenly, says of the labels."""
    rows = rng.choice(pool.relevant.size, n_gold, replace=False)
    prior = prior_of_runs(pool.ranks, pool.depth)
    popularity = log_popularity(pool.ranks, pool.depth)
    return fit_calibration(prior[rows], labels[rows], popularity[rows], pool.relevant[rows])
