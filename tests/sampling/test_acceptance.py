"""Acceptance sampling of topics: fixtures of an independent implementation, and exact enumeration."""

from itertools import combinations, product

import pytest

from sampling.acceptance import (
    accept_probability,
    acceptance_plan,
    apparent_rate,
    fewest_checks,
    merged_errors,
    most_bad_topics,
    sequential_plan,
)

N = 638
SIX_DIGITS = 5e-7


def test_the_fewest_checks_for_each_number_of_bad_topics():
    assert [fewest_checks(N, 232, most_bad, 0.05) for most_bad in range(4)] == [7, 11, 15, 19]
    assert accept_probability(N, 232, 15, 2) == pytest.approx(0.047916, abs=SIX_DIGITS)


@pytest.mark.parametrize(
    ("good", "limit", "plan", "risk"), [(64, 232, (26, 5), 0.037047), (32, 128, (49, 5), 0.029101)]
)
def test_plans_of_the_fixtures(good, limit, plan, risk):
    result = acceptance_plan(N, good, limit)
    assert (result.n_checked, result.most_bad) == plan
    assert result.producer_risk == pytest.approx(risk, abs=1e-6)
    assert result.consumer_risk <= 0.05


@pytest.mark.parametrize(
    ("checked", "bad", "bound"), [(30, 0, 59), (30, 2, 122), (30, 5, 201), (59, 0, 30), (22, 4, 233)]
)
def test_the_upper_bound_of_the_fixtures(checked, bad, bound):
    assert most_bad_topics(N, checked, bad) == bound


def test_enumeration_of_all_samples():
    """Over every sample of 4 of 9 topics: acceptance, and the bound covers in 95 % or more of them."""
    for n_bad in range(10):
        counts = [sum(topic < n_bad for topic in sample) for sample in combinations(range(9), 4)]
        for most_bad in range(5):
            share = sum(count <= most_bad for count in counts) / len(counts)
            assert accept_probability(9, n_bad, 4, most_bad) == pytest.approx(share, abs=1e-12)
        covered = sum(n_bad <= most_bad_topics(9, 4, count) for count in counts) / len(counts)
        assert covered >= 0.95


def test_a_bound_one_lower_does_not_cover():
    """The control: for some number of bad topics the bound less 1 is too small too often."""
    lowest = min(
        sum(
            n_bad <= most_bad_topics(9, 4, sum(topic < n_bad for topic in sample)) - 1
            for sample in combinations(range(9), 4)
        )
        / 126
        for n_bad in range(1, 10)
    )
    assert lowest < 0.95


def test_the_sequential_plan():
    plan = sequential_plan(0.1, 0.364)
    assert plan.slope == pytest.approx(0.211811, abs=SIX_DIGITS)
    assert plan.accept_intercept == plan.reject_intercept == pytest.approx(1.796288, abs=SIX_DIGITS)
    assert plan.accept_probability(0.1) == pytest.approx(0.965614, abs=SIX_DIGITS)
    assert plan.accept_probability(0.364) == pytest.approx(0.042701, abs=SIX_DIGITS)
    assert plan.mean_checks(0.1) == pytest.approx(15.907517, abs=SIX_DIGITS)
    assert plan.mean_checks(0.364) == pytest.approx(12.812680, abs=2 * SIX_DIGITS)
    assert plan.decision(8, 0) is None
    assert plan.decision(9, 0) is True
    assert plan.decision(3, 3) is False
    assert plan.decision(60, 13) is False  # undecided at the end


def test_enumeration_of_the_sequential_plan():
    plan = sequential_plan(0.1, 0.5, most_checks=10)
    accepted = checks = 0.0
    for outcome in product((0, 1), repeat=10):
        weight = 0.3 ** sum(outcome) * 0.7 ** (10 - sum(outcome))
        for n_checked in range(1, 11):
            decision = plan.decision(n_checked, sum(outcome[:n_checked]))
            if decision is not None:
                accepted += weight * decision
                checks += weight * n_checked
                break
    assert plan.accept_probability(0.3) == pytest.approx(accepted, abs=1e-12)
    assert plan.mean_checks(0.3) == pytest.approx(checks, abs=1e-12)


@pytest.mark.parametrize(
    ("votes", "need", "expected"),
    [(3, 2, (0.104, 0.028)), (2, 2, (0.04, 0.19)), (3, 3, (0.008, 0.271)), (5, 3, (0.05792, 0.00856))],
)
def test_errors_of_merged_votes(votes, need, expected):
    assert merged_errors(votes, need, 0.2, 0.1) == pytest.approx(expected)


def test_an_imperfect_checker_sees_another_rate():
    assert apparent_rate(0.364, 0.8, 0.98) == pytest.approx(0.30392)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: acceptance_plan(N, 232, 232), "n_bad_good must be below n_bad_limit, got 232 and 232"),
        (lambda: acceptance_plan(N, 64, 639), r"n_bad_limit must be within \[1, 638\], got 639"),
        (lambda: accept_probability(N, 5, 639, 1), r"n_checked must be within \[0, 638\], got 639"),
        (lambda: most_bad_topics(N, 30, 31), r"n_found must be within \[0, 30\], got 31"),
        (lambda: acceptance_plan(N, 1, 2, alpha=0), r"alpha must be within \(0, 1\), got 0"),
        (lambda: sequential_plan(0.4, 0.3), r"rates must rise within \(0, 1\), got 0.4 and 0.3"),
        (lambda: merged_errors(3, 4, 0.1, 0.1), r"need must be within \[1, 3\], got 4"),
    ],
)
def test_bad_values_are_refused_with_the_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
