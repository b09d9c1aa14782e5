"""Differences of runs: tests against published values and SciPy, adjustment, and equal runs."""

import numpy as np
import pytest
from scipy import stats

from analytics.estimation.comparison import compare, holm, welch
from analytics.estimation.estimate import Refusal, estimate
from analytics.estimation.estimators import difference_estimator

A = np.array([0.50, 0.42, 0.31, 0.65, 0.28, 0.77, 0.40, 0.55, 0.36, 0.61])
B = np.array([0.45, 0.40, 0.35, 0.57, 0.28, 0.70, 0.41, 0.49, 0.33, 0.50])


def test_welch_agrees_with_scipy():
    a, b = A, B[:7]
    reference = stats.ttest_ind(a, b, equal_var=False)
    found = welch(a.mean(), a.var(ddof=1), 10, b.mean(), b.var(ddof=1), 7)
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.difference.degrees_of_freedom == pytest.approx(reference.df)
    assert found.p_value == pytest.approx(reference.pvalue)


def test_the_p_value_and_the_interval_say_the_same():
    edge = stats.t.ppf(0.975, 12)
    for value, excluded in ((edge * 1.001, True), (edge * 0.999, False)):
        e = estimate(value, 1.0, degrees_of_freedom=12, n=13, sources=("drawing",))
        found = compare(e)
        assert (e.low > 0) is excluded
        assert (found.p_value < 0.05) is excluded


def test_without_degrees_of_freedom_the_p_value_is_normal():
    found = compare(estimate(1.959963984540054, 1.0, degrees_of_freedom=None, n=200, sources=("drawing",)))
    assert found.p_value == pytest.approx(0.05)


def test_holm_of_a_worked_example():
    # ordered .005 .01 .03 .04, times 4 3 2 1, made monotone
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_never_passes_one_and_takes_nothing():
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).size == 0


def test_a_difference_is_not_two_intervals():
    rng = np.random.default_rng(2)
    a, b, u, pi = rng.random(40), rng.random(40), rng.random(40), rng.uniform(0.3, 1, 40)
    one = difference_estimator(a - b, u, pi)[0]
    apart = difference_estimator(np.stack([a, b]), u, pi)
    assert one.value == pytest.approx(apart[0].value - apart[1].value)
    assert one.standard_error < np.hypot(apart[0].standard_error, apart[1].standard_error)


def test_what_cannot_be_tested_is_refused():
    assert isinstance(welch(0.5, 0.0, 5, 0.4, 0.0, 5), Refusal)
    assert isinstance(welch(0.5, 0.1, 1, 0.4, 0.1, 5), Refusal)
    assert isinstance(compare(estimate(1.0, 0.0, degrees_of_freedom=None, n=5, sources=())), Refusal)
    no = Refusal("no gold", 3)
    assert compare(no) is no


def test_impossible_inputs_are_named():
    with pytest.raises(ValueError, match="p_values"):
        holm([0.5, 1.2])
    with pytest.raises(ValueError, match="variances must be >= 0"):
        welch(0.5, -1, 5, 0.4, 1, 5)
