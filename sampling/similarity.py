"""How alike runs are, by the preferences that they share; and judgments that a coin could give.

A run prefers what it returns to everything below it and to what it does not return (`sampling/experts.py`).
Source: Carterette and Allan (2007), section 5; Soboroff, Nicholas and Cahan (2001) for the pseudo-judgments.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sampling.arrays import FloatArray
from sampling.experts import RankedPool


def shared_preferences(pool: RankedPool) -> FloatArray:
    """Return how many preferences each pair of runs has in common: (n_runs, n_runs); a run's own on the diagonal."""
    shared = np.zeros((pool.n_runs, pool.n_runs))
    for document in range(pool.n_documents):
        runs = np.flatnonzero(pool.returns[:, document])
        # To which documents each of them prefers this one.
        beats = (pool.ranks[runs, document, np.newaxis] < pool.ranks[runs]).astype(np.float32)
        shared[np.ix_(runs, runs)] += beats @ beats.T
    return shared


def similarities(pool: RankedPool) -> FloatArray:
    """Return for each pair of runs the shared preferences over all preferences of either; NaN where neither has one.

    Examples
    --------
    >>> similarities(RankedPool.of([[1, 2, 3, np.inf, np.inf], [2, 1, np.inf, 3, np.inf]]))[0, 1].item()
    0.5
    """
    shared = shared_preferences(pool)
    own = pool.n_preferences
    either = own[:, np.newaxis] + own - shared
    alike: FloatArray = np.divide(shared, either, out=np.full(shared.shape, np.nan), where=either > 0)
    return alike


def mean_similarity(topics: Sequence[FloatArray]) -> FloatArray:
    """Return d of every run: its similarity with every other, averaged over topics, then over the others.

    Parameters
    ----------
    topics
        Of each topic what `similarities` returned; a pair without a preference in a topic does not count there.

    Raises
    ------
    ValueError
        Without topics, with a single run, or where a run and another have no preference in any topic.
    """
    if not topics or len(topics[0]) < 2:
        raise ValueError(f"runs must be at least 2, in at least 1 topic, got {len(topics)} topics")
    stacked = np.asarray(topics)
    counts = np.isfinite(stacked).sum(axis=0)
    np.fill_diagonal(counts, 1)
    if not counts.all():
        raise ValueError("each pair of runs must have a preference in some topic, got none of a pair")
    averages = np.where(np.isfinite(stacked), stacked, 0.0).sum(axis=0) / counts
    np.fill_diagonal(averages, 0.0)
    mean: FloatArray = averages.sum(axis=1) / (len(averages) - 1)
    return mean


def pseudo_judgments(
    pool: RankedPool, n_relevant: int, rng: np.random.Generator, *, by_popularity: bool
) -> NDArray[np.bool_]:
    """Return so many documents of the pool drawn as if they were relevant, without replacement.

    Every document has the same chance, or one in proportion to how many runs return it. Score the whole runs with
    them: scores of the first 100 ranks do not lead to the published figures.

    Raises
    ------
    ValueError
        Where the pool has not so many documents (of those that a run returns, by popularity).
    """
    popularity = pool.returns.sum(axis=0)
    chances = popularity if by_popularity else np.ones(pool.n_documents)
    available = int(np.count_nonzero(chances))
    if not 0 <= n_relevant <= available:
        raise ValueError(f"n_relevant must be within [0, {available}], got {n_relevant}")
    drawn = np.zeros(pool.n_documents, dtype=bool)
    drawn[rng.choice(pool.n_documents, n_relevant, replace=False, p=chances / chances.sum())] = True
    return drawn
