"""MAE and MSE of predicted grades, against scikit-learn and exact enumeration."""

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error

from analytics.estimation.estimators import difference_estimator
from experiments.papers.grade_errors import error_weights, errors, errors_by_grade, parse_error_measure

MAE, MSE = parse_error_measure("MAE"), parse_error_measure("MSE")


def test_all_items_judged_gives_the_mean_over_topics_of_each_topics_mean_error():
    rng = np.random.default_rng(1)
    topic = np.repeat([0, 1], [4, 7])
    ranks = np.concatenate([np.arange(1, 5), np.arange(1, 8)])
    score, gain = rng.normal(size=11), rng.integers(0, 4, size=11)
    for measure, reference in ((MAE, mean_absolute_error), (MSE, mean_squared_error)):
        value = (error_weights(measure, ranks, topic, 2) * errors(measure, score, gain)).sum()
        expected = [reference(gain[topic == t], score[topic == t]) for t in (0, 1)]
        assert value == pytest.approx(np.mean(expected))


def test_a_list_is_as_long_as_what_the_run_returns_within_the_cutoff():
    short = parse_error_measure("MAE@2")
    weights = error_weights(short, [[1, 2, 3, 0], [0, 1, 0, 0]], [0, 0, 0, 0], 1)
    assert weights.tolist() == [[0.5, 0.5, 0, 0], [0, 1, 0, 0]]
    assert error_weights(short, [0, 0], [0, 1], 2).tolist() == [0, 0]


def test_a_sample_estimates_the_difference_of_two_runs_with_weights_of_one_and_utilities_of_both():
    gain = np.array([0.0, 1.0, 3.0, 1.0])
    ranks, topic = np.array([[1, 2, 3, 0], [0, 1, 2, 3]]), [0] * 4
    score = np.array([[0.5, 1.0, 1.0, 0.0], [0.0, 2.0, 3.0, 0.5]])
    weights = error_weights(MSE, ranks, topic, 1)
    utility = weights[0] * errors(MSE, score[0], gain) - weights[1] * errors(MSE, score[1], gain)
    truth = (0.25 + 0 + 4) / 3 - (1 + 0 + 0.25) / 3
    pi = np.array([0.5, 0.9, 0.3, 0.6])
    mean = 0.0
    for drawn in itertools.product([False, True], repeat=4):
        chosen = np.array(drawn)
        if chosen.any():
            found = difference_estimator(np.ones(chosen.sum()), utility[chosen], pi[chosen], fewest=0)[0]
            mean += np.prod(np.where(chosen, pi, 1 - pi)) * found.value
    assert mean == pytest.approx(truth)


def test_errors_by_grade_hold_the_error_of_whichever_grade_is_given():
    gains, score = np.array([0.0, 1.0, 3.0]), np.array([0.2, 2.5])
    table = errors_by_grade(MSE, score, gains)
    assert table == pytest.approx(np.array([[0.04, 6.25], [0.64, 2.25], [7.84, 0.25]]))
    grade = np.array([2, 0])
    assert table[grade, [0, 1]] == pytest.approx(errors(MSE, score, gains[grade]))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("RMSE", "must be MAE or MSE"),
        ("MAE(p=1)", "takes the parameters"),
        ("MAE@0", "cutoff must be within"),
    ],
)
def test_another_name_is_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        parse_error_measure(name)


@pytest.mark.parametrize(
    ("ranks", "topic", "n_topics", "reason"),
    [
        ([1.0], [0], 1, "ranks must be integers"),
        ([-1], [0], 1, "ranks must be at least 0"),
        ([1], [0.0], 1, "topic_index must be integers"),
        ([1, 2], [0], 1, "must end in an axis of 1 items"),
        ([1], [1], 1, "above every topic_index"),
        ([1], [0], 0, "n_topics must be at least 1"),
    ],
)
def test_impossible_frames_are_refused(ranks, topic, n_topics, reason):
    with pytest.raises(ValueError, match=reason):
        error_weights(MAE, ranks, topic, n_topics)


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="predicted must be finite, got nan"):
        errors(MAE, [math.nan], [1])
    with pytest.raises(ValueError, match="gain must be finite, got inf"):
        errors(MAE, [1], [math.inf])
    with pytest.raises(ValueError, match="must fit each other"):
        errors(MAE, [1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="at least 2 grades"):
        errors_by_grade(MAE, [1.0], [1])
