"""The eight behaviours of assessors who err: fixtures of an independent implementation, to six digits."""

import numpy as np
import pytest

from judging.behaviour import (
    compensating_labels,
    disgruntled_labels,
    fatigue_probabilities,
    fatigued_labels,
    feedback_probabilities,
    grades_for_labels,
    lazy_labels,
    missing_probability,
    optimist_labels,
    pattern_labels,
    pessimist_labels,
    quitting_place,
    random_labels,
    relevant_probability,
    sticky_labels,
)
from judging.erring_assessors import BEHAVIOURS, Pace, erring_assessor

X = [1, 0, 0, 1, 0, 0, 0, 1]
U = [0.05, 0.30, 0.20, 0.60, 0.95, 0.10, 0.25, 0.55]
SIX_DIGITS = 5e-7


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (random_labels(X, U, 2, 8), "10100110"),
        (optimist_labels(X, U, 2, 8), "10110111"),
        (pessimist_labels(X, U, 8, 2), "00010001"),
        (pessimist_labels(X, U, 8, 9), "00010000"),
        (disgruntled_labels(X, U, 4, 2), "10010000"),
        (disgruntled_labels(X, U, 40, 2), "10010001"),
        (lazy_labels(digits("00010110"), U, 2, 8), "00000000"),
        (lazy_labels(digits("11001"), U[:5], 1, 4), "11111"),
        (lazy_labels(digits("01001"), U[:5], 1, 1), "01001"),
        (fatigued_labels(X, U, 0.5, 1), "10100110"),
        (sticky_labels(X, U, 0.25), "10010001"),
        (compensating_labels(X, U, 2, 8), "10110101"),
        (pattern_labels(X, U, "01"), "01010101"),
        (pattern_labels(X, U, "0"), "00000000"),
    ],
)
def test_labels_of_the_fixtures(given, expected):
    assert given.tolist() == digits(expected)


def test_probabilities_of_the_fixtures():
    assert relevant_probability(X, 2, 8) == pytest.approx(0.277778, abs=SIX_DIGITS)
    assert missing_probability(X, 8, 2) == pytest.approx(0.388889, abs=SIX_DIGITS)
    assert missing_probability(X, 8, 9) == pytest.approx(0.56)
    assert (quitting_place(X, 4, 2), quitting_place(X, 40, 2)) == (5, 8)
    assert relevant_probability([0] * 32, 2, 8) == pytest.approx(0.047619, abs=SIX_DIGITS)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("perdoc", [1, 0.2, 0.25, 0.454545, 0.285714, 0.294118, 0.3, 0.391304]),
        ("literal", [1, 0.428571, 0.333333, 0.411765, 0.363636, 0.333333, 0.3125, 0.351351]),
    ],
)
def test_probabilities_of_a_fatigued_assessor(variant, expected):
    assert fatigue_probabilities(X, 0.5, 1, variant) == pytest.approx(expected, abs=SIX_DIGITS)


def test_a_fatigued_assessor_may_count_their_own_labels():
    chances, given = feedback_probabilities(X, U, 0.5, 1)
    assert chances == pytest.approx([1, 0.6, 0.6, 0.6, 0.5, 0.44, 0.466667, 0.485714], abs=SIX_DIGITS)
    assert given.tolist() == fatigued_labels(X, U, 0.5, 1, "feedback").tolist() == digits("11100110")


def test_expected_flips_of_optimist_and_pessimist():
    labels = [1] * 14 + [0] * 40
    assert 40 * relevant_probability(labels, 1, 16) == pytest.approx(8.450704, abs=SIX_DIGITS)
    assert 14 * missing_probability(labels, 16, 1) == pytest.approx(8.084507, abs=SIX_DIGITS)


def test_a_sticky_assessor_gives_the_transitions_of_the_log():
    rng = np.random.default_rng(5)
    given = sticky_labels((rng.random(400_000) < 0.1875).astype(int), rng.random(400_000), 0.04)
    after_relevant, after_other = given[1:][given[:-1] == 1].mean(), given[1:][given[:-1] == 0].mean()
    assert 0.217 < after_relevant < 0.223
    assert 0.178 < after_other < 0.182


def test_grades_are_true_where_the_label_is():
    assert grades_for_labels([0, 1, 2, 3, 3], [1, 0, 1, 1, 0], 2).tolist() == [2, 1, 2, 3, 0]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.key)
def test_every_behaviour_gives_labels_for_any_topic(behaviour):
    assessor = erring_assessor(behaviour.key)
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 60):
        for share in (0.0, 0.3, 1.0):
            labels = (rng.random(n) < share).astype(int)
            given = assessor.labels(labels, rng.random(n))
            assert given.shape == (n,)
            assert set(given.tolist()) <= {0, 1}
            quits = assessor.quits_after(labels)
            assert quits is None or 0 <= quits <= n


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_labels([0, 2], [0.1, 0.2], 1, 1), "labels must be 0 or 1, got 2"),
        (lambda: random_labels([0, 1], [0.1, 0.2], -1, 1), "a must be finite and at least 0, got -1"),
        (
            lambda: optimist_labels([0, 1], [0.1, 0.2], 1, float("inf")),
            "b must be finite and at least 0, got inf",
        ),
        (lambda: random_labels([0, 1], [0.1], 1, 1), "uniforms must have 2 items"),
        (lambda: random_labels([0], [1.0], 1, 1), r"uniforms must be within \[0, 1\), got 1.0"),
        (lambda: sticky_labels([0], [0.5], 1.5), "stickiness must be at most 1, got 1.5"),
        (lambda: pattern_labels([0], [0.5], "02"), "pattern must be digits 0 and 1, got '02'"),
        (
            lambda: fatigued_labels([0], [0.5], 1, 1, "tired"),
            "variant must be perdoc or literal, got 'tired'",
        ),
        (lambda: erring_assessor("careless"), "the behaviour must be one of random, pattern"),
        (lambda: erring_assessor("optimist:x"), "a must be a number, got 'x'"),
        (lambda: erring_assessor("optimist:1:2:3"), "optimist takes at most 2 parameters"),
        (lambda: erring_assessor("sticky:-1"), "stickiness must be finite and at least 0, got -1.0"),
    ],
)
def test_bad_values_are_refused_with_the_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_seconds_follow_label_place_and_rushing():
    pace = Pace(start=3.0, relevant=0.5, position=-0.1, noise=0.0, rushing=-1.0)
    seconds = pace.seconds([0, 1, 0, 0], [9, 9, 9, 9], effect=0.25, quits_after=3)
    assert np.log(seconds) == pytest.approx([3.25, 3.65, 3.05, 1.95])
