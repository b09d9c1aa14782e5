import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.designs import (
    baseline_design,
    naive_design,
    pair_design,
    ranking_design,
    single_design,
)
from experiments.papers.forecasts import (
    design_variance,
    expected_design_variance,
    forecast_half_width,
    forecast_naive_half_width,
    poisson_variance,
)
from experiments.papers.sizes import (
    baseline_contrast,
    binary_spread,
    corrected_second_moments,
    design_sizes,
    pair_contrast,
    ranking_contrast,
    require_support,
)
from sampling.designs import average_run_design, inclusion_probabilities, mixture, normalise, uniform_design
from sampling.forecasts import draws_for_distinct
from sampling.sizes import (
    IdenticalSystemsError,
    UnsupportedWeightError,
)

SIZES = st.lists(st.one_of(st.just(0.0), st.floats(1e-200, 1e100)), min_size=1, max_size=40).filter(any)


# ---- designs with replacement


def test_the_single_design_is_proportional_to_weight_times_utility():
    assert single_design([1, 2, 0], [1, 0.5, 9]).tolist() == [0.5, 0.5, 0]


def test_the_pair_design_ignores_documents_at_the_same_rank_in_both_runs():
    assert pair_design([0.5, 0.25, 0], [0.5, 0, 0.25], [1, 1, 1]).tolist() == [0, 0.5, 0.5]


def test_the_baseline_design_reaches_documents_that_only_the_baseline_returns():
    # Contrasts by hand: item 0 sqrt(3^2 + 4^2) = 5, item 1 sqrt(1 + 1).
    q = baseline_design([[3, 0], [4, 0]], [0, 1], [1, 1])
    assert q == pytest.approx([5 / (5 + math.sqrt(2)), math.sqrt(2) / (5 + math.sqrt(2))])


def test_the_ranking_design_takes_the_spread_of_the_weights_over_runs():
    # Deviations from the mean 2: -1, 0, 1; from the mean 1: 1, 1, -2.
    assert ranking_contrast([[1, 2], [2, 2], [3, -0.0]]) == pytest.approx([math.sqrt(2), math.sqrt(8 / 3)])


def test_for_two_runs_ranking_and_pair_designs_are_the_same():
    a, b, u = [0.5, 0.3, 0.1], [0.1, 0.3, 0.5], [1, 2, 3]
    assert ranking_design([a, b], u) == pytest.approx(pair_design(a, b, u), abs=1e-15)


def test_the_naive_design_of_a_comparison_without_its_baseline_misses_what_only_the_baseline_returns():
    candidates, baseline, u = np.array([[1.0, 0.0]]), np.array([0.0, 1.0]), [1, 1]
    with pytest.raises(UnsupportedWeightError, match="got 1, 50"):
        require_support(naive_design(candidates, u), candidates[0] - baseline)
    require_support(naive_design(np.vstack([candidates, baseline]), u), candidates[0] - baseline)


def test_a_pair_design_refuses_to_score_a_third_run_outside_its_support():
    q = pair_design([0.5, 0.25, 0], [0.5, 0, 0.25], [1, 1, 1])
    with pytest.raises(UnsupportedWeightError, match=r"must be 0, got 0.5, 66.667% of all weight"):
        require_support(q, [0.5, 0.25, 0])
    require_support(mixture(q, [uniform_design(3)], [0.01]), [0.5, 0.25, 0])


def test_the_pair_design_has_less_variance_than_the_naive_one_and_no_other_design_less_for_its_target():
    rng = np.random.default_rng(5)
    w, u = rng.random((2, 6)), rng.random(6)
    g = w[0] - w[1]
    best = design_variance(pair_design(w[0], w[1], u), u, g)
    # Schnabel et al. section 5: the optimum is (sum u|g|)^2 - D^2.
    assert best == pytest.approx(np.sum(u * np.abs(g)) ** 2 - np.sum(u * g) ** 2)
    others = [naive_design(w, u), uniform_design(6), *rng.dirichlet(np.ones(6), 50)]
    assert all(design_variance(q, u, g) >= best for q in others)


def test_design_variance_is_the_variance_of_one_draw():
    q, u, g = np.array([0.2, 0.3, 0.5]), np.array([1.0, 2, 0.5]), np.array([0.4, -0.1, 0.3])
    z = u * g / q
    assert design_variance(q, u, g) == pytest.approx(q @ z**2 - (q @ z) ** 2)


def test_expected_variance_of_binary_labels_averages_over_all_labellings():
    q, p, g = np.array([0.2, 0.8]), np.array([0.3, 0.6]), np.array([0.5, -0.25])
    # z takes label/Q: E z^2 - (E z)^2 over item and label together.
    second = sum(q[i] * p[i] * (g[i] / q[i]) ** 2 for i in range(2))
    assert expected_design_variance(q, p, p, g) == pytest.approx(second - (p @ g) ** 2)


def test_infinite_variance_is_refused_and_an_item_of_no_utility_is_not():
    with pytest.raises(UnsupportedWeightError):
        design_variance([1.0, 0.0], [1, 1], [1, 1])
    assert design_variance([1.0, 0.0], [1, 0], [1, 1]) == 0


def test_an_optimal_design_for_a_perfectly_known_run_has_no_variance():
    assert design_variance(single_design([0.5, 0.25], [1, 3]), [1, 3], [0.5, 0.25]) == pytest.approx(
        0, abs=1e-15
    )


def test_a_mixture_gives_every_part_its_share_of_the_draws():
    q = mixture([1, 0, 0], [uniform_design(3), [0, 0, 1]], [0.3, 0.2])
    assert q == pytest.approx([0.6, 0.1, 0.3])


@pytest.mark.parametrize(
    ("others", "shares", "reason"),
    [
        ([[0.5, 0.5]], [], "1 designs and 0 shares"),
        ([[0.5, 0.5]], [-0.1], r"shares must be within \[0, 1\), got \[-0.1\]"),
        ([[0.5, 0.5]], [1.0], "shares must be within"),
        ([[0.5, 0.5]], [math.nan], "shares must be within"),
        ([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], "sum to less than 1, got 1.0"),
        ([[0.5, 0.4]], [0.1], "must sum to 1, got 0.9"),
        ([[0.5, 0.25, 0.25]], [0.1], "must have 2 items, got 3"),
    ],
)
def test_a_mixture_that_is_no_distribution_is_refused(others, shares, reason):
    with pytest.raises(ValueError, match=reason):
        mixture([1.0, 0.0], others, shares)


def test_the_average_of_runs_leaves_an_empty_run_out():
    assert average_run_design([[1, 1, 0], [0, 0, 0], [0, 0, 7]]).tolist() == [0.25, 0.25, 0.5]
    with pytest.raises(ValueError, match="at least 1 run must return"):
        average_run_design(np.zeros((2, 3)))


# ---- traps


def test_identical_systems_are_refused_by_name_before_any_judging():
    w = np.array([0.1, 0.3, 0.7])
    three = np.array([w, w, w])
    assert np.any(three - three.mean(axis=0) != 0), (
        "the trap: the mean of equal numbers differs in the last bit"
    )
    for attempt in (
        lambda: pair_design(w, w, np.ones(3)),
        lambda: baseline_design([w, w], w, np.ones(3)),
        lambda: ranking_design(three, np.ones(3)),
        lambda: pair_contrast(w, w),
    ):
        with pytest.raises(IdenticalSystemsError, match="identical under this measure"):
            attempt()


def test_an_empty_run_has_no_design_of_its_own_but_can_be_compared():
    with pytest.raises(ValueError, match="rankings are empty"):
        single_design([0, 0], [1, 1])
    assert pair_design([0, 0], [0.5, 0.5], [1, 1]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -0.1, 1e101])
@pytest.mark.parametrize(
    "attempt",
    [
        lambda bad: single_design([1, 1], [bad, 1]),
        lambda bad: single_design([bad, 1], [1, 1]),
        lambda bad: pair_contrast([1, 1], [bad, 1]),
        lambda bad: baseline_contrast([[1, bad]], [1, 1]),
        lambda bad: ranking_contrast([[1, bad], [1, 1]]),
        lambda bad: naive_design([[1, bad]], [1, 1]),
        lambda bad: inclusion_probabilities([1, bad], 1),
        lambda bad: design_variance([0.5, 0.5], [bad, 1], [1, 1]),
        lambda bad: poisson_variance([0.5, 0.5], [1, 1], [bad, 1]),
        lambda bad: design_sizes([1, 1], [bad, 1]),
    ],
)
def test_negative_missing_and_infinite_numbers_are_refused_with_bound_and_value(attempt, bad):
    with pytest.raises(ValueError, match=r"must be within \[0, 1e\+100\], got"):
        attempt(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e101])
def test_a_signed_weight_must_be_finite(bad):
    with pytest.raises(ValueError, match=r"weights must be within \[-1e\+100, 1e\+100\]"):
        design_variance([0.5, 0.5], [1, 1], [bad, 1])


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: uniform_design(0), "n_items must be at least 1, got 0"),
        (lambda: single_design([1, 2], [1]), "utility must have 2 items, got 1"),
        (lambda: single_design([], []), "at least 1 item"),
        (lambda: pair_contrast([1, 2], [1]), "weights_b must have 2 items, got 1"),
        (lambda: ranking_contrast([[1, 2]]), "at least 2 runs, got 1"),
        (lambda: design_variance([0.5, 0.4], [1, 1], [1, 1]), "q must sum to 1"),
        (lambda: design_variance([0.5, 0.5], [1, 1], [1]), "weights must have 2 items, got 1"),
        (lambda: binary_spread([0.5, 1.0]), r"within \(0, 1\), got 1.0"),
        (lambda: binary_spread([0.5, 0.0]), r"within \(0, 1\), got 0.0"),
        (lambda: corrected_second_moments([[0.5, 0.5], [0.5, 0.5]], [0, 1]), "condition number below"),
        (lambda: corrected_second_moments([[0.5, 0.4], [0.5, 0.5]], [0, 1]), "rows that sum to 1"),
    ],
)
def test_shapes_and_bounds_are_checked(attempt, reason):
    with pytest.raises(ValueError, match=reason):
        attempt()


# ---- sizes and inclusion probabilities


def test_sizes_are_contrast_times_standard_deviation():
    spread = binary_spread([0.5, 0.2])
    assert design_sizes(pair_contrast([0.5, 0.1], [0.1, 0.3]), spread) == pytest.approx(
        [0.4 * 0.5, 0.2 * 0.4]
    )
    assert design_sizes(ranking_contrast([[0.5, 0.1], [0.1, 0.3]]), spread) == pytest.approx(
        np.array([0.2, 0.08]) / math.sqrt(2)
    )
    assert design_sizes(baseline_contrast([[3, 0], [4, 0]], [0, 1]), spread) == pytest.approx(
        [2.5, math.sqrt(2) * 0.4]
    )


def test_a_spread_of_zero_where_the_item_matters_is_refused():
    with pytest.raises(UnsupportedWeightError):
        design_sizes([1, 1], [0, 1])
    assert design_sizes([0, 1], [0, 1]).tolist() == [0, 1]


def test_certain_items_are_taken_out_and_the_rest_rescaled_until_nobody_exceeds_one():
    # 100 is certain; of the 2 left among 8, 4, 2, 2 (sum 16), 8 gets exactly 1; then 1 among 4, 2, 2.
    assert inclusion_probabilities([100, 8, 4, 2, 2], 3) == pytest.approx([1, 1, 0.5, 0.25, 0.25])


def test_a_budget_of_the_pool_or_more_judges_every_item_that_matters():
    assert inclusion_probabilities([3, 0, 1], 2).tolist() == [1, 0, 1]
    assert inclusion_probabilities([3, 0, 1], 1e9).tolist() == [1, 0, 1]


def test_equal_sizes_get_equal_probabilities_also_at_the_border_of_certainty():
    assert inclusion_probabilities([1] * 7, 3) == pytest.approx([3 / 7] * 7, abs=1e-15)
    assert inclusion_probabilities([5, 5, 1], 2.2) == pytest.approx([1, 1, 0.2])


def test_sizes_that_differ_by_more_than_any_double_still_get_probabilities():
    assert inclusion_probabilities([1e100, 1e-300, 1e-300], 2) == pytest.approx([1, 0.5, 0.5])
    tiny = inclusion_probabilities([1e100, 1e-250], 0.5)
    assert tiny[0] == 0.5
    assert 0 < tiny[1] < 1e-300


@pytest.mark.parametrize("count", [0, -1, math.nan, math.inf])
def test_a_budget_that_is_not_positive_and_finite_is_refused(count):
    with pytest.raises(ValueError, match="expected_count must be positive and finite"):
        inclusion_probabilities([1, 2], count)


def test_sizes_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match="at least 1 size must be positive"):
        inclusion_probabilities([0, 0], 1)


@settings(max_examples=200, deadline=None)
@given(SIZES, st.floats(1e-3, 50))
def test_probabilities_sum_to_the_budget_lie_in_the_unit_interval_and_keep_the_order_of_sizes(sizes, count):
    pi = inclusion_probabilities(sizes, count)
    positive = np.array(sizes) > 0
    assert np.all(pi[~positive] == 0)
    assert np.all((pi[positive] > 0) & (pi[positive] <= 1))
    assert pi.sum() == pytest.approx(min(count, positive.sum()), rel=1e-9)
    assert np.all(np.diff(pi[np.argsort(sizes)]) >= -1e-12)


@settings(max_examples=100, deadline=None)
@given(SIZES, st.floats(1e-3, 30), st.floats(1.0, 3.0))
def test_a_larger_budget_lowers_nobodys_probability(sizes, count, factor):
    smaller = inclusion_probabilities(sizes, count)
    assert np.all(inclusion_probabilities(sizes, count * factor) >= smaller * (1 - 1e-12))


@settings(max_examples=100, deadline=None)
@given(SIZES)
def test_normalised_sizes_sum_to_one_whatever_their_scale(sizes):
    assert normalise(sizes).sum() == pytest.approx(1, abs=1e-12)


def test_inputs_are_never_changed():
    sizes = np.array([3.0, 1.0, 0.0])
    inclusion_probabilities(sizes, 1)
    ranking_contrast(np.array([sizes, sizes[::-1]]))
    assert sizes.tolist() == [3, 1, 0]


# ---- variances and forecasts without replacement


def test_poisson_variance_is_zero_when_everything_is_judged_and_adds_over_items():
    assert poisson_variance([1, 1], [5, 5], [1, 1]) == 0
    # (1 - .5)/.5 * 2^2 * 1 + (1 - .25)/.25 * 1^2 * 3 = 4 + 9
    assert poisson_variance([0.5, 0.25], [2, -1], [1, 3]) == pytest.approx(13)


def test_a_forecast_is_made_for_every_target_at_once():
    widths = forecast_half_width([0.5, 0.25], [[2, 0], [0, 1]], [0.25, 0.25])
    assert widths == pytest.approx([1.959963984540054 * 1.0, 1.959963984540054 * math.sqrt(0.75)])


def test_a_forecast_refuses_an_item_that_matters_but_cannot_be_drawn_even_at_variance_zero():
    with pytest.raises(UnsupportedWeightError):
        forecast_half_width([0.5, 0.0], [1, 1], [0.25, 0.0])


def test_the_number_of_draws_for_distinct_items_inverts_their_expected_number():
    q = np.array([0.5, 0.3, 0.2, 0.0])
    n = draws_for_distinct(q, np.sum(1 - (1 - q) ** 7))
    assert n == pytest.approx(7, rel=1e-9)


@pytest.mark.parametrize("distinct", [0, 3, 10, math.nan])
def test_no_number_of_draws_finds_every_item(distinct):
    with pytest.raises(ValueError, match=r"distinct must be within \(0, 3\)"):
        draws_for_distinct([0.5, 0.3, 0.2, 0.0], distinct)


def test_the_naive_forecast_is_wider_than_the_pairs_own_for_overlapping_runs():
    rng = np.random.default_rng(1)
    a = 1 / np.log2(np.arange(2, 202))
    b = a.copy()
    b[rng.permutation(200)[:40]] *= 0.5
    p = np.clip(a * 0.4, 0.01, 0.5)
    pi = inclusion_probabilities(design_sizes(pair_contrast(a, b), binary_spread(p)), 20)
    own = float(forecast_half_width(pi, a - b, p * (1 - p)))
    naive = forecast_naive_half_width(naive_design([a, b], p), a - b, p, p, 20)
    assert naive > 2 * own


def test_the_naive_forecast_is_that_of_the_exact_variance_over_the_draws():
    q, p, g = [0.5, 0.5], [0.25, 0.25], [1.0, -1.0]
    # n Sigma = 2 * .25/.5 - 0 = 1; 1.5 distinct of two equal items cost two draws.
    assert forecast_naive_half_width(q, g, p, p, 1.5) == pytest.approx(1.959963984540054 / math.sqrt(2))
