"""The same seed gives the same bits: on two runs, and whatever number of threads the libraries use."""

import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
SEED, ANOTHER = 20260101, 20260102


def stored_runs(n_runs=12, n_topics=6, depth=300):
    from judging.rankings import read_rankings, write_rankings

    rng = np.random.default_rng(7)
    runs = []
    for _ in range(n_runs):
        documents = [rng.choice(1500, size=depth, replace=False) for _ in range(n_topics)]
        frame = pl.DataFrame(
            {
                "topic_id": np.repeat([str(401 + topic) for topic in range(n_topics)], depth),
                "doc_id": [f"LA{doc:06d}-{'é' * (doc % 2)}" for doc in np.concatenate(documents).tolist()],
                "rank": np.tile(np.arange(1, depth + 1), n_topics),
                "score": np.tile(np.arange(depth, 0, -1.0), n_topics),
                "run_tag": ["x"] * (n_topics * depth),
            }
        )
        target = io.BytesIO()
        write_rankings(frame, target)
        runs.append(read_rankings(target.getvalue()))
    return runs


def digests(seed):
    """Return the SHA-256 of everything that a draw consists of, from the ranking files to the items drawn."""
    from experiments.papers.draws import draw_with_replacement
    from experiments.papers.sizes import binary_spread, design_sizes, ranking_contrast
    from sampling.components import run_components
    from sampling.designs import (
        average_run_design,
        inclusion_probabilities,
        mixture,
        normalise,
        uniform_design,
    )
    from sampling.draws import pareto_draw, permanent_random_numbers, poisson_draw
    from sampling.measures.families import run_weights
    from sampling.measures.registry import parse_linear
    from sampling.pooling import pool_of_rankings, prior_utility
    from sampling.prediction import cross_fitted, folds, rank_features
    from sampling.strata import stratified_pareto_draw, stratified_probabilities

    pooled = pool_of_rankings(stored_runs(), 300)
    topic_ids = pooled.topic_ids[pooled.topic_index]
    weights = pooled.returned.with_values(run_weights(parse_linear("DCG@300"), pooled.returned.value, 6))
    prior = prior_utility(pooled.returned, 300)
    sizes = normalise(design_sizes(ranking_contrast(weights), binary_spread(prior)))
    sizes = mixture(sizes, [average_run_design(weights), uniform_design(sizes.size)], [0.15, 0.05])
    pi, by_topic = (
        inclusion_probabilities(sizes, 700),
        stratified_probabilities(sizes, pooled.topic_index, 700),
    )
    numbers = permanent_random_numbers(topic_ids, pooled.doc_ids, seed)
    drawn = poisson_draw(pi, numbers)
    many_ranks = np.random.default_rng(129).integers(0, 100, (129, 5000))
    predicted = cross_fitted(
        features=rank_features(pooled.returned, 300),
        topic_index=pooled.topic_index,
        fold=folds(topic_ids, pooled.doc_ids, seed),
        prior=prior,
        labelled=drawn,
        label=(np.arange(drawn.size) % 3 == 0).astype(float),
    )
    parts = {
        "frame": "\n".join(
            f"{topic} {doc}" for topic, doc in zip(topic_ids, pooled.doc_ids, strict=True)
        ).encode(),
        "ranks": pooled.ranks.tobytes(),
        "probabilities": pi.tobytes() + by_topic.tobytes(),
        "numbers": numbers.tobytes(),
        "poisson": drawn.tobytes(),
        "components": run_components(many_ranks).first(20).tobytes(),
        "predicted": predicted.tobytes(),
        "pareto": pareto_draw(inclusion_probabilities(sizes, 700), numbers, 700).tobytes(),
        "by topic": stratified_pareto_draw(by_topic, numbers, pooled.topic_index).tobytes(),
        "with replacement": draw_with_replacement(sizes, 700, np.random.default_rng(seed)).tobytes(),
    }
    return {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}


def start(n_threads, seed):
    threads = {
        name: str(n_threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
    }
    paths = os.pathsep.join([str(REPOSITORY), str(Path(__file__).parent)])
    return subprocess.Popen(
        [sys.executable, __file__, str(seed)],
        env={**os.environ, **threads, "PYTHONPATH": paths, "PYTHONHASHSEED": str(n_threads)},
        stdout=subprocess.PIPE,
    )


@pytest.fixture(scope="module")
def drawn():
    """Return the digests of one seed with 1 thread, with 4, and of another seed with 4."""
    children = [start(1, SEED), start(4, SEED), start(4, ANOTHER)]
    outputs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    return [json.loads(output) for output in outputs]


def test_two_processes_with_one_and_with_four_threads_draw_the_same_bits(drawn):
    one, four, _ = drawn
    assert one["threads"] == 1
    assert four["threads"] == 4, "the libraries must have been told"
    assert one["digests"] == four["digests"]
    assert len(set(one["digests"].values())) == 10


def test_another_seed_changes_what_is_random_and_nothing_else(drawn):
    _, first, second = (child["digests"] for child in drawn)
    same = {name for name in first if first[name] == second[name]}
    assert same == {"frame", "ranks", "probabilities", "components"}


if __name__ == "__main__":
    print(json.dumps({"threads": pl.thread_pool_size(), "digests": digests(int(sys.argv[1]))}))
