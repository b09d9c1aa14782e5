"""Part of benchmarks/claims.py: how often any of many comparisons comes out significant where no run is better.

The values of topics of every run are centred, so that all runs are equally good on the population of topics, and topics
are drawn with replacement. Values: of CLEF TAR 2017 in DCG@100 as they come; normal ones with their covariance; and
those of a synthetic pool of 20 runs. Adjusted by Holm's test, by step-down max-t with random signs, and by the test of
the page Ranking for the same claim.
"""

from pathlib import Path
from typing import Any

import numpy as np
from parts.coverage_collection import Floats, Ints
from parts.coverage_grid import hash_of
from parts.trec_like import trec_like
from reuse import clef

from analytics.estimation.comparison import holm
from analytics.estimation.estimate import Z95, Estimates, quantiles95
from analytics.estimation.ranking import covariance_from_pairs
from analytics.estimation.sign_flips import step_down_p
from analytics.estimation.simultaneous import PairTest, paired_p_values
from analytics.estimation.topic_samples import every_target
from analytics.estimation.topics import over_topics_of, p_like_these, skewness, t_warning
from analytics.estimation.wording import LEVEL
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense

FLIPS = 2_000  # a fifth of the product's, for time
N_TOPICS = (25, 50, 100)
NORMAL_TOPICS = 20_000


def topic_values(ranks: Ints, topic_index: Ints, relevant: Floats) -> Floats:
    """Return DCG@100 of every run in every topic, [run, topic], less the run's mean."""
    n_topics = int(topic_index.max()) + 1
    weights = weights_of_runs(parse_linear("DCG@100"), from_dense(ranks), n_topics).dense() * n_topics
    values = np.stack([np.bincount(topic_index, row * relevant, n_topics) for row in weights])
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def populations(folder: Path | None) -> dict[str, Floats]:
    """Return by name the centred values [run, topic]; those of CLEF TAR if its folder is given."""
    made = trec_like(1, near_duplicates=True)
    found = {"synthetic": topic_values(made.ranks, made.topic_index, made.relevant)}
    if folder is not None:
        pool = clef(folder)
        values = topic_values(pool.ranks, pool.topic_index, pool.relevant)
        normal = np.random.default_rng(5).multivariate_normal(
            np.zeros(len(values)), np.cov(values, bias=True), NORMAL_TOPICS
        )
        found = {"CLEF": values, "CLEF, normal": normal.T - normal.mean(axis=0)[:, None], **found}
    return found


def is_found(p_values: Floats) -> bool:
    """Return whether anything is significant."""
    return bool((p_values < LEVEL).any())


def ranked_apart(found: Estimates, n_runs: int, p: Floats, seed: int) -> bool:
    """Return whether the test of ranks tells any pair apart, with half-widths over topics for the errors."""
    first, second = np.triu_indices(n_runs, 1)
    half = (quantiles95(found.degrees_of_freedom) * found.standard_error)[n_runs:]
    variance = np.zeros((n_runs, n_runs))
    variance[first, second] = variance[second, first] = (half / Z95) ** 2
    test = PairTest(
        paired_p_values(n_runs, (first, second), p), covariance_from_pairs(None, variance), seed=seed
    )
    return bool(test.pairs_apart(level=LEVEL).any())


def run_cell(name: str, values: Floats, n_topics: int, campaigns: int, seed: int) -> dict[str, Any]:
    """Return how often anything is significant, and how often a warning of skewness stands beside what is."""
    n_runs, targets = len(values), every_target(len(values))
    first, second = np.triu_indices(n_runs, 1)
    rng = np.random.default_rng([seed, hash_of(f"{name}/{n_topics}")])
    counts = {"holm": 0, "max_t_by_signs": 0, "ranking_max_t": 0, "warned": 0, "holm_and_warned": 0}
    for number in range(campaigns):
        drawn = values[:, rng.integers(values.shape[1], size=n_topics)]
        over = over_topics_of(targets, drawn / n_topics, ("topics",))
        p = p_like_these(over, np.zeros(len(targets)))[n_runs:]
        p[[place - n_runs for place in over.refusals if place >= n_runs]] = (
            1.0  # the same in all topics drawn
        )
        apart = drawn[first] - drawn[second]
        warned = np.array([bool(t_warning(n_topics, skewness(z))) for z in apart])
        by_holm = holm(p)
        counts["holm"] += is_found(by_holm)
        counts["max_t_by_signs"] += is_found(np.maximum(p, step_down_p(apart, flips=FLIPS)))
        counts["ranking_max_t"] += ranked_apart(over, n_runs, p, number)
        counts["warned"] += bool(warned.any())
        counts["holm_and_warned"] += bool((warned & (by_holm < LEVEL)).any())
    of_pairs = [abs(skewness(values[a] - values[b])) for a, b in zip(first, second, strict=True)]
    return {
        "campaigns": campaigns,
        "pairs": int(first.size),
        "largest_skewness": round(max(of_pairs), 2),
        **{what: round(count / campaigns, 4) for what, count in counts.items()},
    }
