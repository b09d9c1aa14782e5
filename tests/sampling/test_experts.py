"""The consensus of the runs: fixtures, another solver, what holds whatever the runs, calibration, bad input."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from sampling.experts import (
    Preferences,
    RankedPool,
    calibration_by_judgments,
    calibration_by_prevalence,
    consensus,
    manual_weights,
    topic_prior,
)

NOT = np.inf
FIXTURE = RankedPool.of([[1, 2, NOT, NOT], [1, NOT, 2, NOT], [2, 1, NOT, NOT]])


def random_pool(rng, n_runs, n_documents, size):
    quality = rng.normal(size=n_documents)
    ranks = np.full((n_runs, n_documents), NOT)
    for run in range(n_runs):
        order = np.argsort(-(quality + rng.normal(size=n_documents)))[:size]
        ranks[run, order] = np.arange(1.0, size + 1)
    return RankedPool.of(ranks)


def counted_one_by_one(pool, weights):
    """n_ij as the text says it, pair by pair."""
    counts = np.zeros((pool.n_documents, pool.n_documents))
    for ranks, weight in zip(pool.ranks, weights, strict=True):
        counts += weight * (ranks[:, np.newaxis] < ranks)
    return counts


def test_the_fixtures_counts():
    preferences = Preferences.of(FIXTURE)
    assert preferences.wins.tolist() == [8, 5, 2, 0]
    upper = preferences.pairs[np.triu_indices(4, 1)]
    assert upper.tolist() == [3, 3, 3, 3, 2, 1]  # 01 02 03 12 13 23


def test_the_fixtures_optimum():
    preferences = Preferences.of(FIXTURE)
    found = consensus(preferences)
    assert found.theta == pytest.approx([1.302364, 0.482486, -0.339257, -1.520129], abs=5e-7)
    assert found.probability == pytest.approx([0.786233, 0.618335, 0.415990, 0.179443], abs=5.1e-7)
    assert preferences.objective(found.theta) == pytest.approx(-11.613035, abs=5e-7)


def test_the_fixtures_weights_and_prior():
    heavy = consensus(Preferences.of(FIXTURE, [1, 1, 3]))
    assert heavy.theta == pytest.approx([1.112768, 1.098660, -0.605623, -1.780122], abs=5.1e-7)
    assert consensus(Preferences.of(FIXTURE, b=3)).probability.sum() == pytest.approx(1.0)


def test_a_weight_is_so_many_runs():
    twice = RankedPool.of(FIXTURE.ranks[[0, 1, 2, 2, 2]])
    assert consensus(Preferences.of(twice)).theta == pytest.approx(
        consensus(Preferences.of(FIXTURE, [1, 1, 3])).theta
    )


def test_the_counts_are_those_of_pairs_listed_one_by_one():
    rng = np.random.default_rng(1)
    pool, weights = random_pool(rng, 7, 20, 8), rng.random(7)
    counts = counted_one_by_one(pool, weights)
    preferences = Preferences.of(pool, weights)
    assert preferences.wins == pytest.approx(counts.sum(axis=1))
    assert preferences.pairs == pytest.approx(counts + counts.T)
    theta = rng.normal(size=20)
    likelihood = (counts * np.log(expit(np.subtract.outer(theta, theta)))).sum()
    likelihood += np.log(expit(theta)).sum() + np.log(expit(-theta)).sum()
    assert preferences.objective(theta) == pytest.approx(likelihood)


def test_the_papers_two_and_a_half_million_preferences():
    pool = random_pool(np.random.default_rng(1), 33, 800, 100)
    assert pool.n_preferences.sum() == 2_473_350
    assert Preferences.of(pool).wins.sum() == 2_473_350


@pytest.mark.parametrize("seed", range(4))
def test_another_solver_finds_the_same(seed):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, 9, 40, 15)
    preferences = Preferences.of(pool, rng.random(9) * 4, a=1.0 + seed, b=2.0)

    def downhill(theta):
        s = expit(np.subtract.outer(theta, theta))
        slope = preferences.wins - (preferences.pairs * s).sum(axis=1) + preferences.a
        slope -= (preferences.a + preferences.b) * expit(theta)
        return -preferences.objective(theta), -slope

    other = minimize(
        downhill, np.zeros(40), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert consensus(preferences).probability == pytest.approx(expit(other.x), abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_the_probabilities_sum_to_what_the_prior_says_whatever_the_runs(seed):
    rng = np.random.default_rng(seed)
    n_documents = int(rng.integers(2, 60))
    pool = random_pool(rng, int(rng.integers(1, 12)), n_documents, int(rng.integers(1, n_documents + 1)))
    assert consensus(Preferences.of(pool)).probability.sum() == pytest.approx(n_documents / 2, abs=1e-8)
    judged = consensus(Preferences.of(pool, a=3.0, b=5.0))
    assert judged.probability.mean() == pytest.approx(3 / 8, abs=1e-10)


@pytest.mark.parametrize(
    "ranks",
    [
        [[1]],  # one document
        [[1, 2, 3, NOT]],  # one run
        [[1, 2, NOT]] * 5,  # runs all alike
        [[NOT, NOT], [1, 2]],  # a run that returns nothing
        np.arange(1.0, 201)[np.newaxis],  # a document preferred by all to all
    ],
)
def test_what_could_diverge_is_solved(ranks):
    found = consensus(Preferences.of(RankedPool.of(ranks), np.full(len(ranks), 1000.0)))
    assert np.isfinite(found.theta).all()
    assert found.probability.mean() == pytest.approx(0.5, abs=1e-9)


def test_what_has_no_optimum_within_reach_is_refused():
    with pytest.raises(ValueError, match="weights must differ less"):
        consensus(Preferences.of(RankedPool.of([np.arange(1.0, 151)]), [1e9]))


def test_who_prefers_more_is_likelier():
    found = consensus(Preferences.of(RankedPool.of([[1, 2, 3, NOT]])))
    assert np.all(np.diff(found.theta) < 0)


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([], "at least 1 run"),
        ([[]], "at least 1 run and 1 document"),
        ([[0, 1]], "at least 1, got 0"),
        ([[1, np.nan]], "at least 1, got nan"),
        ([[1, 2], [3, 3]], "run 1 must have 1 document at rank 3, got 2"),
        ([[NOT, NOT]], "no run returns"),
    ],
)
def test_a_pool_that_is_none_is_refused(ranks, words):
    with pytest.raises(ValueError, match=words):
        RankedPool.of(ranks)


@pytest.mark.parametrize("weights", [[0, 0, 0], [1, 1], [1, -1, 1], [1, np.nan, 1], [np.inf, 1, 1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights must"):
        Preferences.of(FIXTURE, weights)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 0), (-1, 1), (np.nan, 1), (1, np.inf)])
def test_a_prior_that_lets_theta_diverge_is_refused(a, b):
    with pytest.raises(ValueError, match="must be within"):
        Preferences.of(FIXTURE, a=a, b=b)


def test_manual_runs_weigh_more():
    assert manual_weights([False, True], 8).tolist() == [1, 8]
    with pytest.raises(ValueError, match="weights must"):
        manual_weights([True, True], 0)


def test_judgments_are_the_topics_prior():
    assert topic_prior(0, 0) == (1, 1)
    a, b = topic_prior(3, 8)
    pool = random_pool(np.random.default_rng(2), 5, 30, 10)
    assert consensus(Preferences.of(pool, a=a, b=b)).probability.mean() == pytest.approx(4 / 10)
    with pytest.raises(ValueError, match="within"):
        topic_prior(4, 3)


# -- calibration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prevalence", [1e-6, 0.05, 0.5, 0.999])
def test_the_shift_gives_the_prevalence(prevalence):
    theta = np.random.default_rng(1).normal(size=200) * 5
    found = calibration_by_prevalence(theta, prevalence)
    assert found.slope == 1
    assert found.probability(theta).mean() == pytest.approx(prevalence, rel=1e-8)


def test_log_odds_all_alike_become_the_prevalence():
    assert calibration_by_prevalence([2.0, 2.0], 0.05).probability([2.0]) == pytest.approx([0.05])


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, np.nan])
def test_a_prevalence_that_is_none_is_refused(prevalence):
    with pytest.raises(ValueError, match="prevalence must"):
        calibration_by_prevalence([0.0], prevalence)


def test_judgments_give_back_the_two_numbers():
    rng = np.random.default_rng(3)
    theta = rng.normal(size=40_000) * 2
    labels = rng.random(theta.size) < expit(-2 + 0.6 * theta)
    found = calibration_by_judgments(theta, labels)
    assert (found.shift, found.slope) == pytest.approx((-2, 0.6), abs=0.05)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], [0, 0, 1]])
def test_judgments_all_alike_or_told_apart_leave_it_finite(labels):
    found = calibration_by_judgments([-1.0, 0.0, 1.0], labels)
    assert np.isfinite([found.shift, found.slope]).all()
    assert np.all((found.probability([-1.0, 1.0]) > 0) & (found.probability([-1.0, 1.0]) < 1))


@pytest.mark.parametrize("labels", [[0, 2], [0]])
def test_labels_that_are_none_are_refused(labels):
    with pytest.raises(ValueError, match="is_relevant must"):
        calibration_by_judgments([0.0, 1.0], labels)
