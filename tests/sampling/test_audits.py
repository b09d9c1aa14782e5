import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling.audits import audit_probabilities, simple_audit_probabilities
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.sizes import IdenticalSystemsError

ONES = np.ones(4)


def test_the_audit_of_a_pair_is_proportional_to_the_difference_of_weights():
    pi = audit_probabilities([[0.4, 0.2, 0.1, 0.3], [0.0, 0.0, 0.0, 0.0]], ONES, 1.0, 0.01)
    assert pi == pytest.approx([0.4, 0.2, 0.1, 0.3])


def test_the_audit_of_several_runs_takes_the_spread_over_runs():
    # Spread by hand: item 0 weights 1, 2, 3 -> sqrt 2; item 1 weights 0, 0, 3 -> sqrt 6.
    pi = audit_probabilities([[1, 0], [2, 0], [3, 3]], [1, 1], 0.9, 0.001)
    assert pi == pytest.approx(0.9 * np.array([math.sqrt(2), math.sqrt(6)]) / (math.sqrt(2) + math.sqrt(6)))


def test_the_audit_of_one_run_takes_its_weights():
    assert audit_probabilities([[3, 1]], [1, 1], 1.0, 0.1) == pytest.approx([0.75, 0.25])


def test_an_item_that_was_drawn_with_a_small_probability_is_audited_more_often():
    # w/pi: .2/.25 = .8 and .2/1 = .2.
    assert audit_probabilities([[0.2, 0.2]], [0.25, 1.0], 1.0, 0.05) == pytest.approx([0.8, 0.2])


def test_an_item_on_which_the_runs_agree_keeps_the_floor_and_one_that_nobody_weighs_gets_nothing():
    pi = audit_probabilities([[0.6, 0.2, 0.5, 0], [0.0, 0.0, 0.5, 0]], ONES, 1.0, 0.2)
    assert pi == pytest.approx([0.6, 0.2, 0.2, 0])


def test_items_that_would_fall_below_the_floor_are_lifted_and_the_others_pay_for_it():
    # Shares .9, .08, .02 of 1; both small ones are lifted to .1, the large one keeps .8.
    assert audit_probabilities([[90, 8, 2]], [1, 1, 1], 1.0, 0.1) == pytest.approx([0.8, 0.1, 0.1])


def test_audits_that_certain_items_cannot_use_go_to_the_items_at_the_floor():
    pi = audit_probabilities([[1.0, 0.5, 0.5], [0.0, 0.5, 0.5]], [1, 1, 1], 2.0, 0.1)
    assert pi == pytest.approx([1, 0.5, 0.5])


def test_a_budget_of_all_items_audits_all_that_matter():
    assert audit_probabilities([[1, 0, 2]], [1, 1, 1], 50, 0.1).tolist() == [1, 0, 1]
    assert simple_audit_probabilities(3, 50).tolist() == [1, 1, 1]


def test_a_floor_that_takes_the_whole_budget_is_a_simple_audit():
    assert audit_probabilities([[9, 1, 2, 4]], ONES, 2.0, 0.5) == pytest.approx([0.5] * 4)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 1)), min_size=1, max_size=30).filter(
        lambda items: any(a != b for a, b, _ in items)
    ),
    st.floats(0.01, 20),
    st.floats(0.001, 1),
)
def test_probabilities_respect_floor_and_budget_whatever_the_weights(items, count, share):
    a, b, drawn = np.array(items).T
    weighed = np.maximum(a, b) > 0
    floor = min(1.0, share * count / weighed.sum())
    pi = audit_probabilities([a, b], drawn, count, floor)
    assert np.all(pi[~weighed] == 0)
    assert np.all(pi[weighed] >= floor * (1 - 1e-9))
    assert np.all(pi <= 1)
    assert pi.sum() == pytest.approx(min(count, weighed.sum()), rel=1e-9)


def test_over_all_audits_the_mean_error_of_the_judgments_is_estimated_without_bias():
    weights, drawn = np.array([[0.5, 0.2, 0.3, 0.0], [0.1, 0.4, 0.3, 0.2]]), np.array([0.5, 1.0, 0.8, 0.4])
    pi = audit_probabilities(weights, drawn, 2.0, 0.1)
    error = (weights[0] - weights[1]) / drawn * np.array([1.0, 0.0, -1.0, 1.0])
    mean = 0.0
    for chosen in itertools.product([True, False], repeat=4):
        sample = poisson_draw(pi, np.where(chosen, pi / 2, np.minimum((1 + pi) / 2, 1 - 1e-9)))
        mean += np.prod(np.where(chosen, pi, 1 - pi)) * (error[sample] / pi[sample]).sum()
    assert mean == pytest.approx(error.sum(), abs=1e-12)


def test_an_audit_needs_another_seed_than_the_draw():
    """With the draw's own numbers every judged item would be audited, instead of half of them."""
    topics, docs = ["t"] * 4000, [str(i) for i in range(4000)]
    numbers = permanent_random_numbers(topics, docs, 1)
    judged = poisson_draw(np.full(4000, 0.5), numbers)
    half = np.full(judged.size, 0.5)
    fresh = permanent_random_numbers(topics, docs, 2)
    assert poisson_draw(half, numbers[judged]).size == judged.size
    # Four standard errors of a half: .045.
    assert poisson_draw(half, fresh[judged]).size / judged.size == pytest.approx(0.5, abs=0.045)


def test_identical_runs_are_refused_by_name():
    with pytest.raises(IdenticalSystemsError):
        audit_probabilities([[1, 2], [1, 2]], [1, 1], 1.0, 0.1)


@pytest.mark.parametrize(
    ("weights", "drawn", "count", "floor", "reason"),
    [
        ([[1, 2]], [1, 0], 1, 0.1, "must be above 0, got 0.0"),
        ([[1, 2]], [1, 1.1], 1, 0.1, r"within \[0, 1\], got 1.1"),
        ([[1, 2]], [1], 1, 0.1, "must have 2 items, got 1"),
        ([[1, 2]], [1, 1], 0, 0.1, "expected_count must be positive"),
        ([[1, 2]], [1, 1], math.nan, 0.1, "expected_count must be positive"),
        ([[1, 2]], [1, 1], 1, 0, r"floor must be within \(0, 1\], got 0"),
        ([[1, 2]], [1, 1], 1, 0.6, r"floor must be at most 0.5 \(1 audits over 2 items\), got 0.6"),
        ([[0, 0]], [1, 1], 1, 0.1, "at least 1 judged item must have weight"),
        ([[1, math.nan]], [1, 1], 1, 0.1, "weights must be within"),
        ([[1, -1]], [1, 1], 1, 0.1, "weights must be within"),
        ([1, 2], [1, 1], 1, 0.1, "2 axes"),
    ],
)
def test_impossible_audits_are_refused_with_bound_and_value(weights, drawn, count, floor, reason):
    with pytest.raises(ValueError, match=reason):
        audit_probabilities(weights, drawn, count, floor)


def test_a_simple_audit_treats_every_item_alike():
    assert simple_audit_probabilities(5, 2.0) == pytest.approx([0.4] * 5)


@pytest.mark.parametrize(("n", "count"), [(0, 1), (3, 0), (3, math.inf)])
def test_an_impossible_simple_audit_is_refused(n, count):
    with pytest.raises(ValueError, match="must be"):
        simple_audit_probabilities(n, count)
