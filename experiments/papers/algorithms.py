"""Goldberg's Algorithm 2: a whole evaluation, simulated where the truth is known.

Source: Goldberg et al. (2017), section 5, with what the listing lacks; as printed: `experiments.papers.printed`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import Floats
from analytics.papers.refusals import rate

RUNS_AT_ONCE = 500  # bounds the memory of a simulation: 500 runs of 500 labels are 2 MB


@dataclass(frozen=True)
class Simulation:
    """One entry per simulated evaluation; runs whose audit gives mR* + mN* = 1 are left out."""

    naive: Floats
    naive_variance: Floats  # s^2/n over topics
    corrected: Floats
    corrected_variance: Floats  # Eq 7


def simulate_precision(
    relevant_share: ArrayLike,
    *,
    sensitivity: float,
    specificity: float,
    n_relevant: int,
    n_not_relevant: int,
    n_topics: int,
    runs: int,
    rng: np.random.Generator,
    otherwise_assigned: bool = True,
) -> Simulation:
    """Return `runs` of Algorithm 2: P@k of bronze labels, and corrected by an audit, where the truth is known.

    `relevant_share[rank]` is m_G at each rank; the true P@k is its mean. Gold g is Bernoulli(m_G); a label is g
    with probability mR or mN, else its opposite; both rates are then estimated from binomial audits.
    `otherwise_assigned` False: as printed, where nothing is assigned to a label that is not flipped (taken as 0).
    """
    share = finite("relevant_share", relevant_share)
    if share.ndim != 1 or share.size == 0 or ((share < 0) | (share > 1)).any():
        raise ValueError(f"relevant_share must be a flat array in [0, 1], got {share.tolist()}")
    if rate("sensitivity", sensitivity) + rate("specificity", specificity) <= 1:
        raise ValueError(f"sensitivity + specificity must be above 1, got {sensitivity + specificity}")
    if min(n_relevant, n_not_relevant, runs) < 1 or n_topics < 2:
        raise ValueError(
            "audits and runs must be >= 1 and n_topics >= 2, "
            f"got {n_relevant}, {n_not_relevant}, {runs} and {n_topics}"
        )

    topic_values = np.concatenate(
        [
            _label_means(
                share,
                sensitivity,
                specificity,
                (min(RUNS_AT_ONCE, runs - first), n_topics),
                rng,
                otherwise_assigned,
            )
            for first in range(0, runs, RUNS_AT_ONCE)
        ]
    )
    m_r = rng.binomial(n_relevant, sensitivity, runs) / n_relevant
    m_n = rng.binomial(n_not_relevant, specificity, runs) / n_not_relevant
    kept = np.abs(m_r + m_n - 1) > 1e-12
    m_r, m_n, topic_values = m_r[kept], m_n[kept], topic_values[kept]
    naive, variance = topic_values.mean(axis=1), topic_values.var(axis=1, ddof=1) / n_topics
    d = m_r + m_n - 1
    value = (naive - 1 + m_n) / d
    audit = value**2 * m_r * (1 - m_r) / n_relevant + (1 - value) ** 2 * m_n * (1 - m_n) / n_not_relevant
    return Simulation(naive, variance, value, (variance + audit) / d**2)


def _label_means(
    share: Floats,
    sensitivity: float,
    specificity: float,
    size: tuple[int, int],
    rng: np.random.Generator,
    otherwise_assigned: bool,
) -> Floats:
    """Return P@k of the labels, [run, topic]."""
    gold = rng.random((*size, share.size)) < share
    flipped = rng.random(gold.shape) < np.where(gold, 1 - sensitivity, 1 - specificity)
    label = gold ^ flipped if otherwise_assigned else ~gold & flipped
    return np.asarray(label.mean(axis=2))
