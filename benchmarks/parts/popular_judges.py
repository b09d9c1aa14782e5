"""A machine judge whose errors follow popularity, as in the coverage grid, and its scores calibrated elsewhere.

What is assumed of a judge is one sensitivity and one specificity. Calibrated is the logit of relevance, around the
prior from the ranks, on gold of another pool: an intercept, a slope of the label, a term in the logarithm of the share
of runs that return the item, and how the slope changes with it.
"""

import numpy as np
from parts.coverage_collection import wrong_rates
from parts.trec_like import Floats, JudgedPool
from scipy.special import expit, logit

from sampling.logistic import LogisticProblem, minimise
from sampling.questions import prior_of_runs

GOLD_ELSEWHERE = (1000, 10_000)  # evenly drawn from the other pool
RIDGE = 0.1
NO_TOPICS = 1e9  # a ridge that leaves the topics' intercepts at 0


def popular_judge(pool: JudgedPool, rng: np.random.Generator) -> Floats:
    """Return labels, 0 or 1: sensitivity .93, specificity .72 where one run returns the item, less where more do."""
    wrong = wrong_rates(pool.relevant.astype(np.int64), returned_by(pool).astype(np.int64), "popularity")
    return np.where(rng.random(wrong.size) < wrong, 1.0 - pool.relevant, pool.relevant)


def returned_by(pool: JudgedPool) -> Floats:
    """Return how many runs return each item."""
    return np.asarray((pool.ranks > 0).sum(axis=0), dtype=np.float64)


def calibrated(pool: JudgedPool, labels: Floats, coefficients: Floats) -> Floats:
    """Return the prior probability of relevance with the judge's labels, as calibrated elsewhere."""
    prior = logit(prior_of_runs(pool.ranks, pool.depth))
    return np.asarray(expit(prior + coefficients @ _columns(pool, labels)))


def calibration(pool: JudgedPool, labels: Floats, n_gold: int, rng: np.random.Generator) -> Floats:
    """Return the coefficients that the gold of some items, drawn evenly, fits."""
    rows = rng.choice(pool.relevant.size, n_gold, replace=False)
    columns = _columns(pool, labels)[:, rows]
    prior = logit(prior_of_runs(pool.ranks, pool.depth))
    fit = minimise(
        LogisticProblem(
            columns,
            pool.relevant[rows],
            prior[rows],
            np.zeros(n_gold, dtype=np.int64),
            1,
            np.full(len(columns), RIDGE),
            NO_TOPICS,
        )
    )
    return fit.coefficients


def _columns(pool: JudgedPool, labels: Floats) -> Floats:
    says = labels - 0.5
    popularity = np.log2(returned_by(pool) / pool.ranks.shape[0])
    return np.array([np.ones(says.size), says, popularity, says * popularity])
