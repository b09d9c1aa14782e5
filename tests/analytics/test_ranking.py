"""The chance of every rank, ranks that hold at once, and Kendall's tau: against closed forms and enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, t

from analytics.estimation.ranking import (
    covariance_from_pairs,
    rank_intervals,
    rank_probabilities,
    tau_interval,
)

DRAWS = 200_000
CLOSE = 4 * 0.5 / math.sqrt(DRAWS)  # four standard errors of a share


def table(*rows):
    return np.array(rows, dtype=np.float64)


def differences_of(covariance):
    spread = np.diag(covariance)
    return spread[:, None] + spread[None] - 2 * covariance


def orders(values, covariance):
    """Return P(every order) of three normal runs, by the distribution function of two differences."""
    found = {}
    for first, second, third in itertools.permutations(range(3)):
        # first > second > third: both differences are above 0
        contrast = np.zeros((2, 3))
        contrast[0, [first, second]] = 1, -1
        contrast[1, [second, third]] = 1, -1
        mean, spread = contrast @ values, contrast @ covariance @ contrast.T
        found[first, second, third] = multivariate_normal.cdf(mean, mean=[0, 0], cov=spread)
    return found


def test_of_two_runs_the_chance_that_one_is_better_is_phi_of_the_difference():
    values, covariance = np.array([0.30, 0.25]), table([0.0016, 0.0004], [0.0004, 0.0009])
    error = math.sqrt(0.0016 + 0.0009 - 2 * 0.0004)
    expected = norm.cdf(0.05 / error)
    found = rank_probabilities(values, covariance, seed=3, draws=DRAWS)
    assert found[0, 0] == pytest.approx(expected, abs=CLOSE)
    assert found[1, 0] == pytest.approx(1 - expected, abs=CLOSE)


def test_with_degrees_of_freedom_it_is_the_distribution_of_t():
    values, covariance = np.array([1.0, 0.0]), np.eye(2) / 2  # the difference is 1 with error 1
    found = rank_probabilities(values, covariance, df=4, seed=3, draws=DRAWS)
    assert found[0, 0] == pytest.approx(t.cdf(1.0, 4), abs=CLOSE)


def test_of_three_runs_the_ranks_are_those_of_all_six_orders():
    values = np.array([0.2, 0.0, -0.1])
    covariance = table([0.05, 0.02, 0.0], [0.02, 0.04, 0.01], [0.0, 0.01, 0.09])
    expected = np.zeros((3, 3))
    for order, chance in orders(values, covariance).items():
        for rank, run in enumerate(order):
            expected[run, rank] += chance
    assert expected.sum() == pytest.approx(3, abs=1e-4)
    found = rank_probabilities(values, covariance, seed=1, draws=DRAWS)
    assert found == pytest.approx(expected, abs=CLOSE)


def test_equal_independent_runs_have_every_rank_alike_and_identical_ones_share_theirs():
    found = rank_probabilities(np.zeros(3), np.eye(3), seed=2, draws=DRAWS)
    assert found == pytest.approx(np.full((3, 3), 1 / 3), abs=CLOSE)
    # two that are the same run, far above a third
    same = covariance_from_pairs(None, table([0, 0, 1], [0, 0, 1], [1, 1, 0]))
    found = rank_probabilities(np.array([50.0, 50.0, 0.0]), same, seed=2, draws=DRAWS)
    assert found[:2, :2] == pytest.approx(np.full((2, 2), 0.5), abs=CLOSE)
    assert found[2, 2] == 1.0


def test_what_is_known_for_certain_has_its_rank_for_certain():
    found = rank_probabilities(np.array([1.0, 3.0, 2.0]), np.zeros((3, 3)), seed=0, draws=100)
    assert found.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_rows_and_columns_are_chances_and_the_seed_decides():
    values, covariance = np.linspace(0, 1, 7), np.eye(7) / 4
    one, again = (rank_probabilities(values, covariance, seed=9, draws=5000) for _ in range(2))
    assert np.array_equal(one, again)
    assert one.sum(axis=0) == pytest.approx(np.ones(7))
    assert one.sum(axis=1) == pytest.approx(np.ones(7))
    assert not np.array_equal(one, rank_probabilities(values, covariance, seed=10, draws=5000))


def test_only_differences_count_for_the_ranks():
    values, covariance = (
        np.array([0.2, 0.1, 0.0]),
        table([0.05, 0.02, 0], [0.02, 0.04, 0.01], [0, 0.01, 0.09]),
    )
    centred = covariance_from_pairs(None, differences_of(covariance))
    assert differences_of(centred) == pytest.approx(differences_of(covariance), abs=1e-12)
    whole = rank_probabilities(values, covariance, seed=4, draws=DRAWS)
    assert rank_probabilities(values, centred, seed=5, draws=DRAWS) == pytest.approx(whole, abs=2 * CLOSE)


def test_a_covariance_is_found_again_from_variances_of_runs_and_pairs():
    covariance = table([0.05, 0.02, 0.0], [0.02, 0.04, 0.01], [0.0, 0.01, 0.09])
    found = covariance_from_pairs(np.diag(covariance), differences_of(covariance))
    assert found == pytest.approx(covariance, abs=1e-12)


def test_variances_that_fit_no_covariance_give_one_in_which_nothing_is_surer():
    # a and c are each near b, but far from each other: impossible
    pairs = table([0, 0.01, 4], [0.01, 0, 0.01], [4, 0.01, 0])
    found = covariance_from_pairs(None, pairs)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    assert (differences_of(found) >= pairs - 1e-12).all()


@pytest.mark.parametrize(
    ("own", "pairs", "words"),
    [
        (None, [[0, 1], [2, 0]], "symmetric"),
        (None, [[0, -1], [-1, 0]], "symmetric table of numbers >= 0"),
        (None, [[1, 1], [1, 1]], "between a run and itself"),
        ([-1, 1], [[0, 1], [1, 0]], "run_variances"),
        (None, [[0, math.nan], [math.nan, 0]], "finite"),
        (None, [0, 1], "symmetric"),
    ],
)
def test_bad_variances_are_refused(own, pairs, words):
    with pytest.raises(ValueError, match=words):
        covariance_from_pairs(own, pairs)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="positive semidefinite"):
        rank_probabilities([0, 1], [[1, 2], [2, 1]], seed=1)
    with pytest.raises(ValueError, match="draws"):
        rank_probabilities([0, 1], np.eye(2), seed=1, draws=0)
    with pytest.raises(ValueError, match="df"):
        rank_probabilities([0, 1], np.eye(2), df=0, seed=1)
    with pytest.raises(ValueError, match="at least 2 runs"):
        tau_interval([1.0], np.zeros((1, 1)), seed=1)
    with pytest.raises(ValueError, match="symmetric table of 2 runs"):
        rank_intervals([1, 2], [[False, True], [False, False]])


def test_ranks_that_hold_at_once_count_who_is_surely_better_and_surely_worse():
    values = [0.5, 0.4, 0.3, 0.2]
    apart = np.zeros((4, 4), dtype=bool)
    for a, b in ((0, 2), (0, 3), (1, 3)):
        apart[a, b] = apart[b, a] = True
    low, high = rank_intervals(values, apart)
    assert low.tolist() == [1, 1, 2, 3]
    assert high.tolist() == [2, 3, 4, 4]
    nobody = rank_intervals(values, np.zeros((4, 4)))
    assert nobody[0].tolist() == [1] * 4
    assert nobody[1].tolist() == [4] * 4


def test_tau_is_one_without_error_and_open_where_nothing_is_known():
    assert tau_interval([3, 1, 2], np.zeros((3, 3)), seed=1).low == 1.0
    unknown = tau_interval([0.001, 0.0], np.eye(2), seed=1)
    assert (unknown.low, unknown.high) == (-1.0, 1.0)
    same = tau_interval([1.0, 1.0], np.zeros((2, 2)), seed=1)
    assert (same.low, same.high) == (-1.0, 1.0)


def test_of_two_runs_that_are_apart_the_order_is_right():
    apart = tau_interval([3.0, 0.0], np.eye(2) / 2, seed=1)  # difference 3, error 1
    assert (apart.low, apart.high) == (1.0, 1.0)


@pytest.mark.parametrize(
    "truth", [np.arange(8) / 4.0, np.arange(8) * 1e-4, np.repeat([0.0, 2.0], 4) + np.arange(8) * 1e-4]
)
def test_the_interval_of_tau_holds_the_true_one(truth):
    """Spread, nearly equal, and in two groups; errors that hang together, as those of runs do."""
    rng = np.random.default_rng(7)
    root = rng.normal(size=(8, 8)) * 0.2 + np.eye(8) * 0.3
    covariance = root @ root.T
    first, second = np.triu_indices(8, 1)
    held = 0
    for seed in range(200):
        values = truth + root @ rng.standard_normal(8)
        found = tau_interval(values, covariance, seed=seed, draws=300)
        agree = np.sign(values[first] - values[second]) * np.sign(truth[first] - truth[second])
        held += found.low <= agree.mean() <= found.high
    assert held >= 184  # 92 %: three standard errors below 95 %
