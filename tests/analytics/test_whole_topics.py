"""Values of any measure from whole topics: the case by hand, every draw of it, predictions across folds, refusals."""

import numpy as np
import pytest
from enumeration import exactly, poisson_samples, summary

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.targets import TargetWeights
from analytics.estimation.whole_topics import TakenTopics, predicted_values, whole_topics
from sampling.measures.sparse import from_dense
from sampling.whole_topics import topic_probabilities

SHARE = np.array([0.5, 0.3, 0.15, 0.05])
CHANCE = topic_probabilities(SHARE, [0.2, 0.4, 0.3, 0.5], [10, 20, 10, 40], 30)
PREDICTED = np.array([0.5, 0.3, 0.4, 0.6])
THETA = np.array([0.6, 0.9, 0.5, 0.1])
FIRST_AND_THIRD = np.array([True, False, True, False])


def of_sample(taken, predicted=PREDICTED, theta=THETA, share=SHARE, chance=CHANCE):
    """Return the estimate; the values of topics that were not taken are not there."""
    topics = TakenTopics(share, chance, taken)
    found = whole_topics(topics, np.where(taken, theta, np.nan), predicted, fewest=0)[0]
    assert isinstance(found, Estimate)
    return found


def test_the_fixture_by_hand():
    found = of_sample(FIRST_AND_THIRD)
    assert found.value == pytest.approx(0.531307, abs=5e-7)
    assert found.standard_error**2 == pytest.approx(0.001690, abs=5e-7)
    # terms (1 - rho)(omega e / rho)^2 of both topics: .177419 x .060784^2 and .629838 x .040523^2
    terms, rest = np.array([0.00065550, 0.00103427]), np.array([0.177419, 0.629838])
    expected = 2 * terms.sum() ** 2 / (rest * terms**2).sum()
    assert found.degrees_of_freedom == pytest.approx(expected, rel=1e-4)
    assert found.n == 2


@pytest.mark.parametrize("predicted", [PREDICTED, np.zeros(4), np.array([3.0, -1.0, 0.2, 0.9])])
def test_value_and_variance_are_exactly_unbiased_over_all_draws(predicted):
    outcomes = [(of_sample(taken, predicted), chance) for taken, chance in poisson_samples(CHANCE)]
    mean, variance, expected_variance = summary(outcomes)
    assert mean == pytest.approx((SHARE * THETA).sum(), **exactly)
    assert expected_variance == pytest.approx(variance, **exactly)


def test_chances_that_are_not_the_recorded_ones_are_noticed():
    """The positive control: topics drawn with their chances, and taken as if they were equally likely."""
    equal = np.full(4, CHANCE.mean())
    outcomes = [(of_sample(taken, chance=equal), chance) for taken, chance in poisson_samples(CHANCE)]
    mean, variance, expected_variance = summary(outcomes)
    assert abs(mean - (SHARE * THETA).sum()) > 0.01
    assert abs(expected_variance / variance - 1) > 0.1


def test_a_pair_is_the_difference_of_its_runs_with_a_variance_of_its_own():
    theta, f = np.stack([THETA, 1 - THETA, THETA]), np.stack([PREDICTED, PREDICTED, PREDICTED])
    runs = TargetWeights(from_dense(np.eye(3)))
    topics = TakenTopics(SHARE, CHANCE, FIRST_AND_THIRD)
    found = whole_topics(topics, theta, f, targets=runs, fewest=1)
    assert len(found) == 6
    one = found[3]
    alone = of_sample(FIRST_AND_THIRD, np.zeros(4), THETA - (1 - THETA))
    numbers = ("value", "standard_error", "low", "high", "degrees_of_freedom")
    for name in numbers:
        assert getattr(one, name) == pytest.approx(getattr(alone, name), **exactly)
    same = found[4]
    assert isinstance(same, Refusal)
    assert "all as predicted" in same.reason


# -- predictions across folds ---------------------------------------------------------------------------------

FOLD = np.array([0, 0, 0, 1, 1, 1])
PLUG_IN = np.array([[0.2, 0.4, 0.5, 0.3, 0.6, 0.1], [0.3, 0.3, 0.6, 0.2, 0.5, 0.2]])
AGREEMENT = np.array([0.9, 0.1, 0.5, 0.4, 0.8, 0.3])
VALUES = np.array([[0.9, 0.1, 0.8, 0.6, 1.0, 0.0], [0.5, 0.2, 0.9, 0.1, 1.0, 0.3]])
SIX = np.full(6, 1 / 6)
SIX_CHANCES = np.array([0.5, 0.3, 0.8, 0.6, 0.4, 0.7])


def across_folds(taken):
    return predicted_values(PLUG_IN, AGREEMENT, np.where(taken, VALUES, np.nan), taken, FOLD)


def of_own_fold(taken):
    """Return f as a fit finds it that sees the topic's own fold: every topic stands there twice, once unjudged."""
    twice = predicted_values(
        np.tile(PLUG_IN, 2),
        np.tile(AGREEMENT, 2),
        np.tile(VALUES, 2),
        np.concatenate([taken, np.zeros(6, dtype=bool)]),
        np.repeat([0, 1], 6),
    )
    return twice[:, 6:]


def mean_values(fitted):
    total = np.zeros(2)
    for taken, chance in poisson_samples(SIX_CHANCES):
        found = whole_topics(TakenTopics(SIX, SIX_CHANCES, taken), VALUES, fitted(taken), fewest=0)
        total += chance * found.value
    return total


def test_with_predictions_from_the_other_folds_the_value_is_exactly_unbiased():
    assert mean_values(across_folds) == pytest.approx(VALUES.mean(axis=1), **exactly)


def test_a_prediction_that_saw_its_own_fold_is_biased():
    """The positive control of the enumeration."""
    assert abs(mean_values(of_own_fold) - VALUES.mean(axis=1)).max() > 0.001


def test_without_judged_topics_the_prediction_is_the_plug_in_value():
    assert across_folds(np.zeros(6, dtype=bool)).tolist() == PLUG_IN.tolist()


def test_one_fold_by_hand():
    """Topic 4 alone is judged. With x = (1, plug-in, agreement) and ridges r, b = y (x/r) / (1 + sum x^2/r)."""
    taken = np.array([False, False, False, False, True, False])
    scaled = [(row - row.mean()) / row.std() for row in (PLUG_IN[0], AGREEMENT)]
    x, ridge = np.array([1.0, scaled[0][4], scaled[1][4]]), np.array([10.0, 30.0, 30.0])
    b = (1.0 - 0.6) * (x / ridge) / (1 + (x**2 / ridge).sum())
    expected = PLUG_IN[0, 0] + b @ [1.0, scaled[0][0], scaled[1][0]]
    assert across_folds(taken)[0, 0] == pytest.approx(expected, rel=1e-12)
    assert across_folds(taken)[0, 4] == PLUG_IN[0, 4]


def test_many_judged_topics_teach_what_the_plug_in_value_does_not_know():
    rng = np.random.default_rng(8)
    plug_in, agreement = rng.random((1, 400)), rng.random(400)
    theta = 0.1 + 0.5 * plug_in + 0.3 * agreement + rng.normal(0, 0.05, (1, 400))
    taken = rng.random(400) < 0.5
    f = predicted_values(plug_in, agreement, theta, taken, np.arange(400) % 10)
    assert (theta - f).std() < 0.06 < 0.15 < (theta - plug_in).std()


# -- refusals and bad input -----------------------------------------------------------------------------------


def test_few_topics_are_refused_and_all_topics_never():
    topics = TakenTopics(SHARE, CHANCE, FIRST_AND_THIRD)
    found = whole_topics(topics, THETA, PREDICTED)[0]
    assert found == Refusal("2 judged topics; at least 10 are needed", 8)
    certain = whole_topics(TakenTopics(SHARE, np.ones(4), np.ones(4, dtype=bool)), THETA, PREDICTED)[0]
    assert isinstance(certain, Estimate)
    assert (certain.value, certain.standard_error) == (pytest.approx((SHARE * THETA).sum()), 0)


def test_values_that_are_all_as_predicted_have_no_interval():
    taken = np.arange(40) % 2 == 0
    found = whole_topics(TakenTopics(np.full(40, 1 / 40), np.full(40, 0.5), taken), np.ones(40), np.ones(40))[
        0
    ]
    assert isinstance(found, Refusal)
    assert "all as predicted" in found.reason


@pytest.mark.parametrize("wrong", [0.0, -0.1, np.nan, np.inf])
def test_shares_and_chances_that_are_not_positive_are_refused_by_name(wrong):
    bad = np.array([0.5, wrong, 0.2, 0.1])
    with pytest.raises(ValueError, match="share"):
        TakenTopics(bad, CHANCE, FIRST_AND_THIRD)
    with pytest.raises(ValueError, match="probability"):
        TakenTopics(SHARE, bad, FIRST_AND_THIRD)


def test_other_input_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="must be taken"):
        TakenTopics(SHARE, np.ones(4), FIRST_AND_THIRD)
    with pytest.raises(ValueError, match="taken must be"):
        TakenTopics(SHARE, CHANCE, np.array([1, 0, 1, 0]))
    topics = TakenTopics(SHARE, CHANCE, FIRST_AND_THIRD)
    with pytest.raises(ValueError, match="value"):
        whole_topics(topics, [np.nan, 0, 0, 0], PREDICTED)
    with pytest.raises(ValueError, match="predicted"):
        whole_topics(topics, THETA, PREDICTED[:3])
    with pytest.raises(ValueError, match="taken and fold"):
        predicted_values(PLUG_IN, AGREEMENT, VALUES, np.ones(5, dtype=bool), FOLD)
    with pytest.raises(ValueError, match="value must have shape"):
        predicted_values(PLUG_IN, AGREEMENT, VALUES[:, :5], np.ones(6, dtype=bool), FOLD)
