"""Chances of whole topics: the case by hand, budgets met, nesting, the least variance, and input that is refused."""

import numpy as np
import pytest

from sampling.whole_topics import topic_numbers, topic_probabilities, traffic_shares

SHARE = np.array([0.5, 0.3, 0.15, 0.05])
SPREAD = np.array([0.2, 0.4, 0.3, 0.5])
COST = np.array([10, 20, 10, 40])


def test_the_fixture_by_hand():
    """c = 30 / sum omega s sqrt(cost) = 30 / 1.153299: no chance reaches 1."""
    chance = topic_probabilities(SHARE, SPREAD, COST, 30)
    assert chance == pytest.approx([0.822581, 0.697983, 0.370162, 0.102823], abs=5e-7)
    assert chance @ COST == pytest.approx(30)


def test_a_chance_that_would_exceed_one_is_one_and_the_others_share_what_is_left():
    """Of the budget of 50, 10 pay for the first topic; the others get c = 40/.837071, too much for the second: 30 paid,
    then 20 are left for .142302 + .158114."""
    chance = topic_probabilities(SHARE, SPREAD, COST, 50)
    scale = 20 / (0.15 * 0.3 * 10**0.5 + 0.05 * 0.5 * 40**0.5)
    expected = [1, 1, scale * 0.15 * 0.3 / 10**0.5, scale * 0.05 * 0.5 / 40**0.5]
    assert chance == pytest.approx(expected, rel=1e-12)


def cases(n_cases=300):
    rng = np.random.default_rng(11)
    for _ in range(n_cases):
        n = int(rng.integers(1, 9))
        yield (
            *rng.uniform(0.01, 1, (2, n)),
            rng.integers(1, 50, n),
            rng.uniform(0, 1, n) * (rng.random() < 0.5),
            rng,
        )


def test_the_budget_is_met_and_no_chance_shrinks():
    for share, spread, cost, earlier, rng in cases():
        budget = rng.uniform(cost @ earlier, cost.sum())
        chance = topic_probabilities(share, spread, cost, budget, earlier)
        assert chance @ cost == pytest.approx(budget, rel=1e-9)
        assert (chance >= earlier).all()
        assert (chance <= 1).all()


def test_topics_of_a_smaller_budget_are_among_those_of_a_larger_one():
    numbers = topic_numbers([str(n) for n in range(200)], seed=5)
    share, spread = np.random.default_rng(3).uniform(0.1, 1, (2, 200))
    cost, before, taken = np.full(200, 20), np.zeros(200), np.zeros(200, dtype=bool)
    for budget in (400, 1000, 2500):
        before = topic_probabilities(share, spread, cost, budget, before)
        assert (numbers[taken] < before[taken]).all()
        taken = numbers < before
    assert 0 < taken.sum() < 200


def test_no_other_chances_of_this_cost_have_a_smaller_variance():
    chance = topic_probabilities(SHARE, SPREAD, COST, 30)

    def variance(rho):
        return float(((1 - rho) * (SHARE * SPREAD) ** 2 / rho).sum())

    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.clip(chance * rng.uniform(0.7, 1.3, 4), 0.01, 1)
        other *= 30 / (other @ COST)
        if (other <= 1).all():
            assert variance(other) >= variance(chance) - 1e-15
    plain = np.full(4, 30 / COST.sum())
    assert variance(plain) > 1.5 * variance(chance)


def test_where_the_budget_pays_for_everything_all_is_taken_and_a_spent_one_adds_nothing():
    assert topic_probabilities(SHARE, SPREAD, COST, 80).tolist() == [1, 1, 1, 1]
    earlier = np.array([0.5, 0.1, 0.1, 0.1])
    assert topic_probabilities(SHARE, SPREAD, COST, 5, earlier).tolist() == earlier.tolist()


@pytest.mark.parametrize("name", ["share", "spread", "cost"])
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_what_is_not_positive_is_refused_by_name(name, wrong):
    given = {"share": SHARE.copy(), "spread": SPREAD.copy(), "cost": COST.astype(float)}
    given[name][2] = wrong
    with pytest.raises(ValueError, match=name):
        topic_probabilities(**given, budget=30)


@pytest.mark.parametrize("budget", [0, -3, np.nan, np.inf])
def test_a_budget_is_positive_and_finite(budget):
    with pytest.raises(ValueError, match="budget"):
        topic_probabilities(SHARE, SPREAD, COST, budget)


def test_arrays_of_other_lengths_and_chances_above_one_are_refused():
    with pytest.raises(ValueError, match="cost"):
        topic_probabilities(SHARE, SPREAD, COST[:3], 30)
    with pytest.raises(ValueError, match="earlier"):
        topic_probabilities(SHARE, SPREAD, COST, 30, [0.1, 0.2, 1.3, 0])


# -- shares of the traffic ------------------------------------------------------------------------------------


def test_shares_sum_to_one_and_are_equal_without_weights():
    assert traffic_shares(["1", "2"], {"2": 30.0, "1": 10.0}).tolist() == [0.25, 0.75]
    assert traffic_shares(["1", "2", "3", "4"], {}).tolist() == [0.25] * 4


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_weights_that_are_not_positive_are_refused(wrong):
    with pytest.raises(ValueError, match="weight must be"):
        traffic_shares(["1", "2"], {"1": 1.0, "2": wrong})


def test_weights_of_unknown_topics_and_missing_ones_are_refused():
    with pytest.raises(ValueError, match=r"weights of unknown topics: 1, for example 'x'"):
        traffic_shares(["1"], {"1": 1.0, "x": 1.0})
    with pytest.raises(ValueError, match=r"1 topics have no weight, for example '2'"):
        traffic_shares(["1", "2"], {"1": 1.0})


def test_weights_that_are_too_far_apart_are_refused():
    with pytest.raises(ValueError, match=r"too far apart: '2' has the weight 1e-300, less than 1e-12 of all"):
        traffic_shares(["1", "2"], {"1": 1e100, "2": 1e-300})
    with pytest.raises(ValueError, match="too far apart: '1'"):
        traffic_shares(["1", "2"], {"1": 0.9, "2": 1e12})
    share = traffic_shares(
        ["1", "2"], {"1": 1.1, "2": 1e12}
    )  # the control; its chances still spend the budget
    chance = topic_probabilities(share, [0.5, 0.5], [10, 10], 15)
    assert chance.tolist() == pytest.approx([0.5, 1.0], rel=1e-3)


def test_numbers_of_topics_are_permanent_and_not_those_of_pairs():
    few, many = topic_numbers(["7", "8"], seed=1), topic_numbers(["9", "8", "7"], seed=1)
    assert few.tolist() == [many[2], many[1]]
    assert not np.isclose(few, topic_numbers(["7", "8"], seed=2)).any()
