"""Preferences that runs share, counted, beside pairs listed one by one; pseudo-judgments."""

import numpy as np
import pytest

from sampling.experts import RankedPool
from sampling.similarity import mean_similarity, pseudo_judgments, similarities

NOT = np.inf


def listed(ranks):
    return {(i, j) for i in range(ranks.size) for j in range(ranks.size) if ranks[i] < ranks[j]}


def random_pool(rng, n_runs, n_documents):
    ranks = np.full((n_runs, n_documents), NOT)
    for run in range(n_runs):
        size = int(rng.integers(0, n_documents + 1))
        ranks[run, rng.permutation(n_documents)[:size]] = np.arange(1.0, size + 1)
    ranks[0] = np.arange(1.0, n_documents + 1)
    return RankedPool.of(ranks)


def test_the_fixture():
    pool = RankedPool.of([[1, 2, 3, NOT, NOT], [2, 1, NOT, 3, NOT]])
    assert similarities(pool)[0, 1] == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(6))
def test_the_counts_are_those_of_pairs_listed_one_by_one(seed):
    pool = random_pool(np.random.default_rng(seed), 6, 12)
    found = similarities(pool)
    for one, first in enumerate(pool.ranks):
        for other, second in enumerate(pool.ranks):
            either = listed(first) | listed(second)
            if either:
                assert found[one, other] == pytest.approx(len(listed(first) & listed(second)) / len(either))
            else:
                assert np.isnan(found[one, other])


def test_runs_all_alike_are_alike_and_one_document_is_no_preference():
    assert similarities(RankedPool.of([[1, 2, NOT]] * 3)) == pytest.approx(np.ones((3, 3)))
    assert np.isnan(similarities(RankedPool.of([[1], [1]]))).all()


def test_a_part_of_the_pool_has_the_preferences_among_its_documents():
    pool = RankedPool.of([[1, 2, 3, NOT], [3, 1, 2, NOT]])
    assert similarities(pool.part([0, 1]))[0, 1] == 0.0  # 0 above 1, and 1 above 0
    assert similarities(pool.part(np.array([False, True, True, True])))[0, 1] == 1.0


def test_a_topic_without_preferences_of_a_pair_is_left_out_of_its_mean():
    nothing = np.full((2, 2), np.nan)
    half = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert mean_similarity([half, nothing]) == pytest.approx([0.5, 0.5])
    assert mean_similarity([half, half / 2]) == pytest.approx([0.375, 0.375])


def test_d_is_the_mean_over_the_other_runs():
    table = np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.9], [0.4, 0.9, 1.0]])
    assert mean_similarity([table]) == pytest.approx([0.3, 0.55, 0.65])


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ([], "at least 2"),
        ([np.ones((1, 1))], "at least 2"),
        ([np.full((2, 2), np.nan)], "none of a pair"),
    ],
)
def test_without_another_run_or_a_preference_there_is_no_d(topics, words):
    with pytest.raises(ValueError, match=words):
        mean_similarity(topics)


def test_pseudo_judgments_have_the_number_and_the_chances():
    pool = RankedPool.of([[1, 2, 3, NOT], [1, 2, NOT, NOT], [1, NOT, NOT, NOT]])
    rng = np.random.default_rng(1)
    counts = {
        by_popularity: np.mean(
            [pseudo_judgments(pool, 1, rng, by_popularity=by_popularity) for _ in range(4000)], axis=0
        )
        for by_popularity in (False, True)
    }
    assert counts[False] == pytest.approx([0.25] * 4, abs=0.03)
    assert counts[True] == pytest.approx([3 / 6, 2 / 6, 1 / 6, 0], abs=0.03)
    assert pseudo_judgments(pool, 3, rng, by_popularity=True).tolist() == [True, True, True, False]
    assert pseudo_judgments(pool, 0, rng, by_popularity=False).sum() == 0


def test_more_pseudo_judgments_than_documents_are_refused():
    pool = RankedPool.of([[1, NOT]])
    with pytest.raises(ValueError, match=r"within \[0, 1\]"):
        pseudo_judgments(pool, 2, np.random.default_rng(1), by_popularity=True)
