"""Estimators of Poisson draws: what an estimate holds, and what is refused. Unbiasedness: test_exact.py."""

import numpy as np
import pytest
from reference_formulas import fixed_size_forecast

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.estimators import difference_estimator, hajek_ratio, poisson_degrees_of_freedom
from experiments.papers.estimators import unsupported_share

W = np.array([0.7, -0.4, 0.2, 1.0])
U = np.array([2.0, 1.0, 3.0, 0.0])
PI = np.array([0.9, 0.3, 0.5, 0.2])
PRIOR = np.array([1.5, 0.5, 1.0, 1.0])


def test_several_targets_are_estimated_as_if_each_stood_alone():
    rng = np.random.default_rng(1)
    w, u, pi = rng.normal(size=(3, 20)), rng.random(20), rng.uniform(0.2, 1, 20)
    together = difference_estimator(w, u, pi)
    assert together == [difference_estimator(row, u, pi)[0] for row in w]


def test_degrees_of_freedom_follow_the_variance_of_the_poisson_variance():
    # V = 4 + 1; sum (1 - pi) v^2 = .5 * 16 + .75 * 1
    assert poisson_degrees_of_freedom(4 + 1, 0.5 * 16 + 0.75 * 1) == pytest.approx(50 / 8.75)
    found = difference_estimator([2.0, 1.0], [1.0, 1.0], [0.5, 0.5], fewest=0)[
        0
    ]  # terms v: .5 * 16 and .5 * 4
    assert found.degrees_of_freedom == pytest.approx(2 * 10**2 / (0.5 * 8**2 + 0.5 * 2**2))


def test_fewer_than_ten_items_with_weight_are_refused_with_the_number_missing():
    weights = np.array([1.0] * 9 + [0.0] * 5)
    result = difference_estimator(weights, np.ones(14), np.full(14, 0.5))[0]
    assert isinstance(result, Refusal)
    assert result.needed == 1
    assert "9 judged items" in result.reason


def test_between_ten_and_fifty_items_there_is_a_warning():
    few = difference_estimator(np.ones(12), np.ones(12), np.full(12, 0.5))[0]
    many = difference_estimator(np.ones(60), np.ones(60), np.full(60, 0.5))[0]
    assert isinstance(few, Estimate)
    assert isinstance(many, Estimate)
    assert "12" in few.warning
    assert many.warning == ""


def test_a_whole_pool_without_label_noise_has_no_drawing_error():
    result = difference_estimator(np.ones(12), np.ones(12), np.ones(12))[0]
    assert (result.value, result.standard_error, result.degrees_of_freedom) == (12.0, 0.0, None)


def test_weight_that_the_design_can_never_select_is_found():
    share = unsupported_share([[3.0, -1.0], [0.0, 2.0], [0.0, 0.0]], [0.0, 0.5])
    assert share.tolist() == [0.75, 0.0, 0.0]


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, np.nan])
def test_a_probability_outside_zero_to_one_is_named(bad):
    with pytest.raises(ValueError, match=r"inclusion_probability must be"):
        difference_estimator([1.0, 1.0], [1.0, 1.0], [0.5, bad])


def test_infinite_weights_and_half_a_prior_are_errors():
    with pytest.raises(ValueError, match="weights must be finite"):
        difference_estimator([np.inf], [1.0], [0.5])
    with pytest.raises(ValueError, match="belong together"):
        difference_estimator([1.0], [1.0], [0.5], prior=[1.0])


def test_no_input_is_changed():
    w, u, pi = W.copy(), U.copy(), PI.copy()
    difference_estimator(w, u, pi, fewest=0)
    assert (w == W).all()
    assert (u == U).all()
    assert (pi == PI).all()


# -- traps ---------------------------------------------------------------------------------------------------


def test_a_sample_without_anything_relevant_has_no_interval_of_width_zero_and_with_a_prior_it_has_a_real_one():
    w, nothing, pi = np.ones(20), np.zeros(20), np.full(20, 0.5)
    refused = difference_estimator(w, nothing, pi)[0]
    assert isinstance(refused, Refusal)
    assert "all alike" in refused.reason
    found = difference_estimator(w, nothing, pi, prior=np.full(20, 0.1), prior_total=[4.0])[0]
    assert found.low < found.high


def test_labels_all_predicted_right_have_no_interval_of_width_zero_either():
    prior = np.linspace(0, 1, 20)
    result = difference_estimator(np.ones(20), prior, np.full(20, 0.5), prior=prior, prior_total=[20.0])[0]
    assert isinstance(result, Refusal)


def test_a_random_number_of_judgments_inflates_horvitz_thompson_for_a_runs_own_value():
    """Exact variances: a run whose documents are nearly alike has most of its variance from the number drawn."""
    rng = np.random.default_rng(8)
    w, u = 1 / np.log2(np.arange(2, 102)), rng.uniform(0.8, 1, 100)
    pi = np.minimum(1, 20 * w / w.sum())
    poisson = ((1 - pi) / pi * (u * w) ** 2).sum()
    assert poisson > 20 * fixed_size_forecast(u * w, pi)
    assert poisson > 20 * ((1 - pi) / pi * ((u - 0.9) * w) ** 2).sum()


def test_systems_that_are_identical_have_no_estimate_but_a_named_reason():
    result = difference_estimator(np.zeros(20), np.ones(20), np.full(20, 0.5))[0]
    assert isinstance(result, Refusal)
    assert "0 judged items with non-zero weight" in result.reason


def test_negative_corrected_labels_are_values_like_others():
    u = np.tile([-1 / 7, 9 / 7], 10)
    result = difference_estimator(np.ones(20), u, np.full(20, 0.5))[0]
    assert result.value == pytest.approx(2 * u.sum())


def test_a_noise_estimate_that_is_negative_in_sum_does_not_make_the_variance_smaller():
    u, pi = np.arange(12.0), np.full(12, 0.5)
    plain = difference_estimator(np.ones(12), u, pi)[0]
    noisy = difference_estimator(np.ones(12), u, pi, label_variance=np.full(12, -0.1))[0]
    assert noisy.standard_error == plain.standard_error
    assert dict(noisy.components)["label noise"] == 0.0


# -- the ratio -----------------------------------------------------------------------------------------------


def test_the_ratio_of_items_of_equal_chance_and_weight_is_their_mean_and_its_error_the_textbooks():
    u = np.array([1.0, 4, 2, 5, 3, 0, 2, 2, 1, 6])
    mean = hajek_ratio(np.ones(10), u, np.full(10, 0.25))[0]
    total = hajek_ratio(np.ones(10), u, np.full(10, 0.25), weight_total=[40.0])[0]
    assert mean.value == pytest.approx(u.mean())
    assert mean.standard_error**2 == pytest.approx(0.75 * u.var(ddof=1) / 10)
    assert (total.value, total.standard_error) == pytest.approx((40 * u.mean(), 40 * mean.standard_error))


def test_the_noise_of_labels_enters_the_ratio_scaled_like_its_value():
    rng = np.random.default_rng(9)
    w, u, pi, nu = rng.uniform(0.2, 0.9, (4, 15))
    result = hajek_ratio(w, u, pi, weight_total=[7.0], label_variance=nu)[0]
    scale = 7 / (w / pi).sum()
    assert dict(result.components)["label noise"] == pytest.approx(scale**2 * (nu * w**2 / pi).sum())


def test_a_difference_of_runs_has_no_ratio():
    result = hajek_ratio(np.tile([1.0, -1.0], 10), np.arange(20.0), np.full(20, 0.5))[0]
    assert result == Refusal("a ratio needs weights of one sign; use the difference estimator")


def test_few_items_and_a_total_that_is_not_positive_are_refused():
    assert isinstance(hajek_ratio(np.ones(9), np.arange(9.0), np.full(9, 0.5))[0], Refusal)
    assert isinstance(hajek_ratio([1.0], [1.0], [0.5], fewest=0)[0], Refusal)
    with pytest.raises(ValueError, match="weight_total must be above 0, got 0"):
        hajek_ratio([1.0], [1.0], [0.5], weight_total=[0.0])
