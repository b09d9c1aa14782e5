"""Design-based estimators: exact enumeration of all samples of a tiny frame, and inputs that must be refused."""

from itertools import product

import numpy as np
import pytest

from analytics.estimators import (
    Estimate,
    Refusal,
    difference_estimator,
    horvitz_thompson,
    poisson_degrees_of_freedom,
    unsupported_share,
)
from analytics.fixed_size import fixed_size, fixed_size_variance
from analytics.importance import importance_sampling

W = np.array([0.7, -0.4, 0.2, 1.0])
U = np.array([2.0, 1.0, 3.0, 0.0])
PI = np.array([0.9, 0.3, 0.5, 0.2])
PRIOR = np.array([1.5, 0.5, 1.0, 1.0])


def poisson_samples(pi):
    """Yield every sample of a Poisson draw with its chance."""
    for taken in product([False, True], repeat=len(pi)):
        mask = np.array(taken)
        yield mask, float(np.prod(np.where(mask, pi, 1 - pi)))


def moments(rows):
    """Return mean and variance of (value, chance) rows."""
    values, chances = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    mean = (values * chances).sum()
    return mean, ((values - mean) ** 2 * chances).sum()


def test_horvitz_thompson_and_its_variance_are_unbiased_over_all_poisson_samples():
    found = [(horvitz_thompson(W[m], U[m], PI[m], fewest=0)[0], p) for m, p in poisson_samples(PI)]
    mean, variance = moments([(e.value, p) for e, p in found])
    assert mean == pytest.approx((W * U).sum(), abs=1e-12)
    assert sum(e.standard_error**2 * p for e, p in found) == pytest.approx(variance, abs=1e-12)


def test_difference_estimator_and_its_variance_are_unbiased_over_all_poisson_samples():
    total = [(PRIOR * W).sum()]
    found = [
        (difference_estimator(W[m], U[m], PI[m], prior=PRIOR[m], prior_total=total, fewest=0)[0], p)
        for m, p in poisson_samples(PI)
    ]
    mean, variance = moments([(e.value, p) for e, p in found])
    assert mean == pytest.approx((W * U).sum(), abs=1e-12)
    assert sum(e.standard_error**2 * p for e, p in found) == pytest.approx(variance, abs=1e-12)


def test_the_label_noise_term_makes_the_variance_unbiased_for_noisy_labels():
    # sensitivity .8, specificity .9: scores c and their variance estimates nu (methods/sampling.md, section 8)
    c, nu = np.array([-1 / 7, 9 / 7]), np.array([8 / 49, 18 / 49])
    grade, chance_of_one = np.array([1, 0, 1]), np.array([0.1, 0.8])
    w, pi = W[:3], PI[:3]
    rows, expected = [], 0.0
    for mask, p in poisson_samples(pi):
        for label in product([0, 1], repeat=3):
            given = np.array(label)
            q = p * np.prod(np.where(given == 1, chance_of_one[grade], 1 - chance_of_one[grade]))
            e = horvitz_thompson(w[mask], c[given][mask], pi[mask], label_variance=nu[given][mask], fewest=0)[
                0
            ]
            rows.append((e.value, q))
            expected += e.standard_error**2 * q
    mean, variance = moments(rows)
    assert mean == pytest.approx((w * grade).sum(), abs=1e-12)
    assert expected == pytest.approx(variance, abs=1e-12)


def test_importance_sampling_and_its_variance_are_unbiased_over_all_pairs_of_draws():
    q = np.array([0.4, 0.3, 0.2, 0.1])
    found = []
    for i, j in product(range(4), repeat=2):
        drawn = [i, j]
        found.append((importance_sampling(W[drawn], U[drawn], q[drawn], fewest=2)[0], q[i] * q[j]))
    mean, variance = moments([(e.value, p) for e, p in found])
    assert mean == pytest.approx((W * U).sum(), abs=1e-12)
    assert sum(e.standard_error**2 * p for e, p in found) == pytest.approx(variance, abs=1e-12)


def test_fixed_size_variance_of_a_simple_random_sample_is_the_textbook_one():
    # N = 10, m = 4 of equal chance: N^2 (1 - m/N) s^2 / m
    e = np.array([1.0, 4.0, 2.0, 5.0])
    assert fixed_size_variance(e, np.full(4, 0.4)) == pytest.approx(100 * 0.6 * e.var(ddof=1) / 4)


def test_fixed_size_leaves_certain_items_out_of_the_variance():
    pi = np.array([1.0] * 6 + [0.5] * 6)
    u = np.array([9.0] * 6 + [2.0] * 6)
    result = fixed_size(np.ones(12), u, pi)[0]
    assert result.value == 78.0
    assert result.standard_error == 0.0
    assert result.degrees_of_freedom == 5


def test_several_targets_are_estimated_as_if_each_stood_alone():
    rng = np.random.default_rng(1)
    w, u, pi = rng.normal(size=(3, 20)), rng.random(20), rng.uniform(0.2, 1, 20)
    together = difference_estimator(w, u, pi)
    assert together == [difference_estimator(row, u, pi)[0] for row in w]


def test_degrees_of_freedom_follow_the_variance_of_the_poisson_variance():
    # V = 4 + 1; sum (1 - pi) v^2 = .5 * 16 + .75 * 1
    assert poisson_degrees_of_freedom(np.array([4.0, 1.0]), np.array([0.5, 0.25])) == pytest.approx(50 / 8.75)


def test_fewer_than_ten_items_with_weight_are_refused_with_the_number_missing():
    weights = np.array([1.0] * 9 + [0.0] * 5)
    result = horvitz_thompson(weights, np.ones(14), np.full(14, 0.5))[0]
    assert isinstance(result, Refusal)
    assert result.needed == 1
    assert "9 judged items" in result.reason


def test_between_ten_and_fifty_items_there_is_a_warning():
    few = horvitz_thompson(np.ones(12), np.ones(12), np.full(12, 0.5))[0]
    many = horvitz_thompson(np.ones(60), np.ones(60), np.full(60, 0.5))[0]
    assert isinstance(few, Estimate)
    assert isinstance(many, Estimate)
    assert "12" in few.warning
    assert many.warning == ""


def test_a_whole_pool_without_label_noise_has_no_drawing_error():
    result = horvitz_thompson(np.ones(12), np.ones(12), np.ones(12))[0]
    assert (result.value, result.standard_error, result.degrees_of_freedom) == (12.0, 0.0, None)


def test_weight_that_the_design_can_never_select_is_found():
    share = unsupported_share([[3.0, -1.0], [0.0, 2.0], [0.0, 0.0]], [0.0, 0.5])
    assert share.tolist() == [0.75, 0.0, 0.0]


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, np.nan])
def test_a_probability_outside_zero_to_one_is_named(bad):
    with pytest.raises(ValueError, match=r"inclusion_probability must be"):
        horvitz_thompson([1.0, 1.0], [1.0, 1.0], [0.5, bad])


def test_infinite_weights_and_half_a_prior_are_errors():
    with pytest.raises(ValueError, match="weights must be finite"):
        horvitz_thompson([np.inf], [1.0], [0.5])
    with pytest.raises(ValueError, match="belong together"):
        difference_estimator([1.0], [1.0], [0.5], prior=[1.0])


def test_one_uncertain_item_of_a_fixed_size_draw_has_no_variance():
    with pytest.raises(ValueError, match="got 1"):
        fixed_size_variance([1.0, 2.0], [0.5, 1.0])
    assert isinstance(fixed_size(np.ones(12), np.ones(12), [0.5] + [1.0] * 11)[0], Refusal)


def test_no_input_is_changed():
    w, u, pi = W.copy(), U.copy(), PI.copy()
    difference_estimator(w, u, pi, fewest=0)
    assert (w == W).all()
    assert (u == U).all()
    assert (pi == PI).all()
