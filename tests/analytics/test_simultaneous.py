"""The step-down max-t test: exact cases, its error under dependence, and what it refuses."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from analytics.estimation.comparison import holm
from analytics.estimation.ranking import covariance_from_pairs
from analytics.estimation.simultaneous import PairTest, paired_p_values, pairs_apart_by_holm


def table(*rows):
    """Return p-values as a symmetric table; None is not tested."""
    return np.array([[np.nan if cell is None else cell for cell in row] for row in rows], dtype=float)


def p_of(values, covariance):
    """Return the two-sided normal p-values of all differences."""
    variance = np.diagonal(covariance)
    error = np.sqrt(variance[:, None] + variance - 2 * covariance)
    np.fill_diagonal(error, 1)
    return 2 * ndtr(-np.abs(values[:, None] - values) / error)


@pytest.mark.parametrize("seed", range(5))
def test_a_single_pair_is_told_apart_by_its_own_p_value(seed):
    """Never above the level, whatever was drawn; a little below it the scatter of the draws may still decide."""
    for p, expected in ((0.04, True), (0.0501, False)):
        assert PairTest(table([None, p], [p, None]), np.eye(2), seed=seed).pairs_apart()[0, 1] == expected


def test_independent_pairs_need_the_critical_value_of_sidak():
    """Pairs (0, 1), (2, 3), ... share no run, so that their statistics are independent."""
    n_pairs = 20
    critical = -ndtri((1 - 0.95 ** (1 / n_pairs)) / 2)
    for z, expected in ((critical - 0.15, 0), (critical + 0.15, n_pairs)):
        first, second = np.arange(0, 2 * n_pairs, 2), np.arange(1, 2 * n_pairs, 2)
        p = paired_p_values(2 * n_pairs, (first, second), np.full(n_pairs, 2 * ndtr(-z)))
        apart = PairTest(p, np.eye(2 * n_pairs), seed=1, draws=40_000).pairs_apart()
        assert np.triu(apart).sum() == expected


def test_pairs_whose_errors_are_the_same_cost_nothing():
    """All runs but the first share their errors: their differences from the first are one statistic, not nine."""
    covariance = np.zeros((10, 10))
    covariance[0, 0] = 1.0
    covariance[1:, 1:] = 1.0
    p = paired_p_values(10, (np.zeros(9, dtype=int), np.arange(1, 10)), np.full(9, 0.04))
    assert PairTest(p, covariance, seed=1, draws=40_000).pairs_apart()[0, 1:].sum() in (0, 9)
    assert PairTest(p * 0.9, covariance, seed=1, draws=40_000).pairs_apart()[0, 1:].all()
    assert (holm(np.full(9, 0.04 * 0.9)) > 0.05).all()


def test_pairs_rejected_first_make_the_bar_lower_for_the_others():
    """The second pair alone would be told apart; beside a certain one it is too, because the test steps down."""
    p = paired_p_values(4, ([0, 2], [1, 3]), np.array([1e-12, 0.04]))
    apart = PairTest(p, np.eye(4), seed=3, draws=40_000).pairs_apart()
    assert apart[0, 1]
    assert apart[2, 3]
    without_steps = paired_p_values(4, ([0, 2], [1, 3]), np.array([0.9, 0.04]))
    assert not PairTest(without_steps, np.eye(4), seed=3, draws=40_000).pairs_apart().any()


def test_asking_about_one_run_only_tells_more_of_its_pairs_apart():
    values, covariance = np.arange(12) * 0.82, np.eye(12)
    test = PairTest(p_of(values, covariance), covariance, seed=2)
    together, alone = test.pairs_apart()[5], test.pairs_apart([5])
    assert alone[5].sum() > together.sum()
    assert (alone[5] | ~together).all()
    others = np.delete(np.arange(12), 5)
    assert not alone[np.ix_(others, others)].any()


@pytest.mark.parametrize("own", [1.0, 0.3])
def test_any_false_rejection_among_equal_runs_comes_in_about_five_of_a_hundred_cases(own):
    """Seeded: 600 campaigns of 8 equal runs with shared errors; the control, unadjusted p-values, errs in half."""
    rng = np.random.default_rng(8)
    direction = rng.standard_normal(8)
    covariance = own * np.eye(8) + (1 - own) * np.outer(direction, direction)
    wrong, unadjusted = 0, 0
    for seed in range(600):
        p = p_of(rng.multivariate_normal(np.zeros(8), covariance), covariance)
        wrong += PairTest(p, covariance, seed=seed, draws=1000).pairs_apart().any()
        unadjusted += (p[np.triu_indices(8, 1)] < 0.05).any()
    assert 0.03 < wrong / 600 < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)
    assert unadjusted / 600 > 0.4


def test_what_is_not_tested_or_certain_stays_so():
    p = table([None, 0.0, None], [0.0, None, 1.0], [None, 1.0, None])
    apart = PairTest(p, np.eye(3), seed=1).pairs_apart()
    assert apart.tolist() == [[False, True, False], [True, False, False], [False, False, False]]


def test_a_pair_without_known_correlation_is_drawn_by_itself():
    """Equal errors by the covariance, and yet a p-value: no division by 0, and its own p-value decides."""
    covariance = np.ones((2, 2))
    assert PairTest(table([None, 0.01], [0.01, None]), covariance, seed=1).pairs_apart()[0, 1]
    assert not PairTest(table([None, 0.06], [0.06, None]), covariance, seed=1).pairs_apart()[0, 1]


def test_the_same_seed_gives_the_same_answers():
    rng = np.random.default_rng(4)
    p = p_of(rng.standard_normal(30) * 3, np.eye(30))
    one, two = (PairTest(p, np.eye(30), seed=7, draws=200).pairs_apart() for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"p_values": table([None, 1.2], [1.2, None])}, "within"),
        ({"p_values": table([None, 0.1], [0.2, None])}, "symmetric"),
        ({"p_values": np.full((3, 3), 0.1)}, "2 runs"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "eigenvalue"),
        ({"covariance": [[1.0, 0.5], [0.0, 1.0]]}, "symmetric"),
        ({"covariance": [[np.nan, 0.0], [0.0, 1.0]]}, "finite"),
        ({"draws": 99}, "draws must be at least 100"),
    ],
)
def test_bad_input_is_refused(change, words):
    given = {"p_values": table([None, 0.1], [0.1, None]), "covariance": np.eye(2), "seed": 1} | change
    with pytest.raises(ValueError, match=words):
        PairTest(**given)


def test_a_level_outside_0_and_1_is_refused():
    with pytest.raises(ValueError, match="level"):
        PairTest(table([None, 0.1], [0.1, None]), np.eye(2), seed=1).pairs_apart(level=1.0)


def test_holm_steps_down_over_the_pairs_asked_about():
    """By hand: .01 * 3 and .02 * 2 are below .05; of the third run's own pairs .02 * 2 is, and .06 is not."""
    p = table([None, 0.01, 0.02], [0.01, None, 0.06], [0.02, 0.06, None])
    expected = [[False, True, True], [True, False, False], [True, False, False]]
    assert pairs_apart_by_holm(p).tolist() == expected
    alone = pairs_apart_by_holm(p, [2])
    assert alone.tolist() == [[False, False, True], [False, False, False], [True, False, False]]
    # .03 * 2 of two pairs is not enough, of one it is
    less = table([None, 0.03, 0.5], [0.03, None, None], [0.5, None, None])
    assert not pairs_apart_by_holm(less).any()
    assert pairs_apart_by_holm(less, [1])[0, 1]
    with pytest.raises(ValueError, match="level must be in"):
        pairs_apart_by_holm(p, level=0.0)


def test_over_few_topics_holm_keeps_the_level_and_the_covariance_of_the_topics_does_not():
    """Runs that are equally good, on 12 topics: the covariance fits what fell out, so that max-t is too sure."""
    n_runs, n_topics, campaigns = 15, 12, 300
    first, second = np.triu_indices(n_runs, 1)
    by_holm = by_max_t = 0
    rng = np.random.default_rng(11)
    for seed in range(campaigns):
        values = rng.normal(size=(n_runs, n_topics))
        z = values[first] - values[second]
        error = z.std(axis=1, ddof=1) / np.sqrt(n_topics)
        p = paired_p_values(n_runs, (first, second), 2 * stdtr(n_topics - 1, -np.abs(z.mean(axis=1) / error)))
        half = stdtrit(n_topics - 1, 0.975) * error / ndtri(0.975)
        variance = np.zeros((n_runs, n_runs))
        variance[first, second] = variance[second, first] = half**2
        by_holm += pairs_apart_by_holm(p).any()
        by_max_t += (
            PairTest(p, covariance_from_pairs(None, variance), seed=seed, draws=500).pairs_apart().any()
        )
    most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / campaigns)
    assert by_holm / campaigns <= most
    assert by_max_t / campaigns > most
