"""The rules of a gate: what it asks for, and when it decides."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from analytics.estimation.sequences import always_valid_factor
from analytics.planning.gating import BETTER, NOT_WORSE, WORSE, Question
from sampling.judged import Judged
from sampling.strategies import strategy_probabilities

N_ITEMS = 300
QUESTION = Question(tolerance=0.02, cap=120, plan=60, batch=10)


@pytest.fixture
def weight() -> np.ndarray:
    """Weights of either sign, of very different sizes."""
    rng = np.random.default_rng(4)
    return rng.choice([-1.0, 1.0], N_ITEMS) * rng.exponential(size=N_ITEMS) / 500


@pytest.fixture
def number() -> np.ndarray:
    return np.random.default_rng(5).random(N_ITEMS)


def test_batches_are_what_the_largest_probability_so_far_selects(
    weight: np.ndarray, number: np.ndarray
) -> None:
    zeros = np.zeros(N_ITEMS, dtype=int)
    judged = Judged(np.abs(weight) / 3, np.ones(N_ITEMS), zeros, zeros, np.zeros(N_ITEMS), n_grades=1)
    largest, expected = np.zeros(N_ITEMS), []
    before: set[int] = set()
    for count in range(20, 140, 10):
        largest = np.maximum(largest, strategy_probabilities("influence", judged, expected_count=count))
        chosen = set(np.flatnonzero(number < largest).tolist())
        if len(chosen) > 120:
            break
        assert chosen >= before
        if chosen > before:
            expected.append(sorted(chosen - before))
        before = chosen
    found = list(QUESTION.batches(weight, number))
    assert [batch.new.tolist() for batch in found] == expected
    assert len(found) > 5


def test_no_more_is_asked_for_than_the_cap_and_next_to_nothing_less(weight: np.ndarray) -> None:
    for seed in range(20):
        last = list(QUESTION.batches(weight, np.random.default_rng(seed).random(N_ITEMS)))[-1]
        assert 100 <= last.asked.size <= 120


def test_probabilities_only_grow_and_are_those_of_all_that_was_asked_for(
    weight: np.ndarray, number: np.ndarray
) -> None:
    found = list(QUESTION.batches(weight, number))
    for before, after in pairwise(found):
        assert (after.probability >= before.probability).all()
        assert np.array_equal(np.union1d(before.asked, after.new), after.asked)
    assert all(np.array_equal(np.flatnonzero(number < one.probability), one.asked) for one in found)


def test_a_cap_beyond_all_items_ends_with_all_of_them(weight: np.ndarray, number: np.ndarray) -> None:
    question = Question(tolerance=0, cap=1000, plan=60, batch=25)
    last = list(question.batches(weight, number))[-1]
    assert last.asked.size == N_ITEMS
    assert (last.probability == 1.0).all()


def test_bounds_are_those_of_the_sequence() -> None:
    factor = float(always_valid_factor(70, 60, n_items=300))
    assert QUESTION.bounds(0.1, 0.02, 70, 300) == pytest.approx((0.1 - factor * 0.02, 0.1 + factor * 0.02))
    assert QUESTION.bounds(0.1, 0.02, 19, 300) is None


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.001, 0.1, BETTER),
        (0.0, 0.1, NOT_WORSE),
        (-0.019, 0.1, NOT_WORSE),
        (-0.019, -0.001, NOT_WORSE),  # worse, but by less than the tolerance
        (-0.02, 0.1, None),
        (-0.1, 0.0, None),
        (-0.1, -0.001, WORSE),
    ],
)
def test_the_verdict_is_better_else_not_worse_else_worse(
    low: float, high: float, verdict: str | None
) -> None:
    assert QUESTION.verdict(low, high) == verdict


def test_without_a_tolerance_nothing_is_merely_not_worse() -> None:
    question = Question(tolerance=0, cap=120, plan=60, batch=10)
    assert question.verdict(0.0, 0.1) is None
    assert question.first_verdict([(-0.1, 0.1), None, (0.0, 0.1), (0.01, 0.1)]) == (3, BETTER)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cap", 19, "cap must be at least 20"),
        ("plan", 19, "plan must be at least 20"),
        ("batch", 0, "batch must be at least 1"),
        ("tolerance", -0.01, "tolerance must be at least 0"),
        ("tolerance", float("nan"), "tolerance must be at least 0"),
        ("tolerance", float("inf"), "tolerance must be at least 0"),
    ],
)
def test_a_number_off_its_range_is_refused(name: str, value: float, words: str) -> None:
    given: dict[str, Any] = {"tolerance": 0.02, "cap": 120, "plan": 60, "batch": 10} | {name: value}
    with pytest.raises(ValueError, match=words):
        Question(**given)


def test_an_item_without_weight_is_refused(number: np.ndarray) -> None:
    with pytest.raises(ValueError, match="nowhere 0"):
        list(QUESTION.batches(np.zeros(N_ITEMS), number))
