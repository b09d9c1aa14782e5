"""The strategy of whole topics: the chances by hand, the same as those of a draw, nesting, and input refused."""

import numpy as np
import pytest

from sampling.audit_plan import Auditable
from sampling.judged import Judged, relevance_given_grade
from sampling.strategies import strategies_for, strategy_keys, strategy_probabilities
from sampling.whole_topics import topic_probabilities

SHARE, SPREAD, COST = (
    np.array([0.5, 0.3, 0.15, 0.05]),
    np.array([0.2, 0.4, 0.3, 0.5]),
    np.array([10, 20, 10, 40]),
)
TOPIC = np.repeat(np.arange(4), COST)


def judged(**changed):
    n = TOPIC.size
    given = {
        "influence": np.ones(n),
        "inclusion_probability": np.ones(n),
        "topic_index": TOPIC,
        "bronze_grade": np.zeros(n, dtype=np.int64),
        "error_variance": np.zeros(n),
        "n_grades": 2,
        "topic_size": (SHARE * SPREAD / np.sqrt(COST))[TOPIC],
    }
    return Judged(**{**given, **changed})


def by_topic(pi):
    """Return the chance of every topic, which is that of each of its documents."""
    found = [np.unique(pi[topic == TOPIC]) for topic in range(4)]
    assert [one.size for one in found] == [1] * 4
    return np.concatenate(found)


def test_the_fixture_by_hand():
    rho = by_topic(strategy_probabilities("whole-topics", judged(), expected_count=30))
    assert rho == pytest.approx([0.822581, 0.697983, 0.370162, 0.102823], abs=5e-7)


@pytest.mark.parametrize("earlier", [np.zeros(4), np.array([0.1, 0.9, 0.4, 0.05])])
@pytest.mark.parametrize("n_more", [5, 20, 35])
def test_chances_are_those_of_a_draw_with_the_same_budget_and_nested(earlier, n_more):
    pi = Auditable(judged(), earlier[TOPIC]).probabilities("whole-topics", n_more)
    expected = topic_probabilities(SHARE, SPREAD, COST, earlier @ COST + n_more, earlier)
    assert by_topic(pi) == pytest.approx(expected, abs=1e-5)
    assert np.all(by_topic(pi) >= earlier)
    assert pi.sum() == pytest.approx(earlier @ COST + n_more, abs=1e-5)


def test_without_known_sizes_only_the_cost_differs():
    rho = by_topic(strategy_probabilities("whole-topics", judged(topic_size=None), expected_count=8))
    expected = topic_probabilities(np.ones(4), np.ones(4), COST, 8)
    assert rho == pytest.approx(expected, abs=1e-12)


def test_it_is_the_only_strategy_of_whole_topics():
    assert [one.key for one in strategies_for(has_whole_topics=True)] == ["whole-topics"]
    others = [one.key for one in strategies_for(has_whole_topics=False)]
    assert sorted([*others, "whole-topics", "census"]) == sorted(strategy_keys())


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_sizes_that_are_not_positive_are_refused(wrong):
    with pytest.raises(ValueError, match="topic_size"):
        judged(topic_size=np.full(TOPIC.size, wrong))


# -- relevance given a bronze grade -----------------------------------------------------------------------------


def test_checks_turn_the_prior_by_bayes_rule():
    # 18 of 20 relevant ones were given as relevant, 3 of 10 others: rates 18.5/21 and 3.5/11
    counts = np.array([[7, 2, 1], [1, 9, 0], [1, 0, 9]])
    found = relevance_given_grade([0.2, 0.2, 0.6], [2, 0, 1], counts, 1)
    yes, no = 18.5 / 21, 3.5 / 11
    expected = [
        0.2 * yes / (0.2 * yes + 0.8 * no),
        0.2 * (1 - yes) / (0.2 * (1 - yes) + 0.8 * (1 - no)),
        0.6 * yes / (0.6 * yes + 0.4 * no),
    ]
    assert found == pytest.approx(expected, rel=1e-12)


def test_without_checks_the_prior_stays():
    assert relevance_given_grade([0.0, 0.3, 1.0], [1, 0, 1], np.zeros((2, 2)), 1) == pytest.approx(
        [0, 0.3, 1]
    )


def test_a_prior_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="prior"):
        relevance_given_grade([1.2], [0], np.zeros((2, 2)), 1)
