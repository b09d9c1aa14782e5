"""The test of declared gold: right in size where gold is a random part, and able to refute where it is not."""

from typing import Any

import numpy as np
import pytest

from sampling.gold_samples import choice_words, declaration_words, uniform_choice_test

N, N_GOLD, N_TOPICS, TRIALS = 300, 90, 12, 2000


def population(rng):
    topic = np.repeat(np.arange(N_TOPICS), N // N_TOPICS)
    labels = rng.integers(1, 17, N)
    return topic, rng.binomial(labels, 0.4) / labels, labels


def share_doubted(weights, *, by_topic=False, trials=TRIALS) -> float:
    """Return how often the declaration is doubted, gold chosen with chances in proportion to weights."""
    rng = np.random.default_rng(5)
    topic, score, labels = population(rng)
    chances = weights(topic, score, labels).astype(float)
    doubted = 0
    for _ in range(trials):
        gold = np.zeros(N, dtype=bool)
        gold[rng.choice(N, N_GOLD, replace=False, p=chances / chances.sum())] = True
        found = uniform_choice_test(
            gold, bronze_score=score, n_labels=labels, topic_index=topic, by_topic=by_topic
        )
        doubted += found is not None and found.is_doubtful
    return doubted / trials


def test_a_random_part_is_doubted_in_one_of_a_hundred_at_most() -> None:
    assert share_doubted(lambda topic, score, labels: np.ones(N)) <= 0.015


@pytest.mark.parametrize(
    "weights",
    [
        lambda topic, score, labels: score + 0.05,
        lambda topic, score, labels: labels,
        lambda topic, score, labels: 1 + 4 * (topic < 3),
    ],
    ids=["bronze score", "number of labels", "topic"],
)
def test_what_was_chosen_by_something_known_is_doubted(weights) -> None:
    assert share_doubted(weights, trials=200) > 0.9


def test_by_topic_the_numbers_of_topics_are_taken_as_given() -> None:
    by_topics = {"weights": lambda topic, score, labels: 1 + 4 * (topic < 3), "by_topic": True}
    assert share_doubted(**by_topics) <= 0.015
    assert share_doubted(lambda topic, score, labels: score + 0.05, by_topic=True, trials=200) > 0.9


def test_the_sum_test_is_that_of_a_sample_without_replacement() -> None:
    """Six items, three of gold: chi-square of the sum from its exact mean and variance over all 20 choices."""
    from itertools import combinations

    from scipy.stats import chi2

    score = np.array([0.0, 0.2, 0.4, 0.5, 0.9, 1.0])
    sums = np.array([score[list(some)].sum() for some in combinations(range(6), 3)])
    gold = np.isin(np.arange(6), [3, 4, 5])
    expected = chi2.sf((score[gold].sum() - sums.mean()) ** 2 / sums.var(), 1)
    found = uniform_choice_test(
        gold, bronze_score=score, n_labels=np.ones(6), topic_index=np.zeros(6, dtype=int)
    )
    assert found.parts == {"bronze score": pytest.approx(expected, rel=1e-12)}
    assert found.p_value == pytest.approx(expected, rel=1e-12)


def test_where_nothing_varies_there_is_no_test() -> None:
    alike: dict[str, Any] = {
        "bronze_score": np.ones(5),
        "n_labels": np.ones(5),
        "topic_index": np.zeros(5, dtype=int),
    }
    assert uniform_choice_test(np.array([True, False, True, False, False]), **alike) is None
    everything: dict[str, Any] = {
        "bronze_score": np.arange(4),
        "n_labels": np.arange(1, 5),
        "topic_index": np.array([0, 0, 1, 1]),
    }
    assert uniform_choice_test(np.ones(4, dtype=bool), **everything) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"bronze_score": [0.0, np.nan]},
        {"n_labels": [0, 1]},
        {"topic_index": [0]},
        {"n_labels": [1.0, np.inf]},
    ],
)
def test_wrong_input_is_refused(wrong) -> None:
    right: dict[str, Any] = {"bronze_score": [0.0, 1.0], "n_labels": [1, 2], "topic_index": [0, 0]}
    assert uniform_choice_test(np.array([True, False]), **right) is not None
    with pytest.raises(ValueError, match="must"):
        uniform_choice_test(np.array([True, False]), **{**right, **wrong})


def test_words() -> None:
    assert declaration_words("by-topic", 10, 1000).endswith("random part of the 1,000 in every topic")
    assert declaration_words("uniform", 12, 12) == "exact: all 12 documents in the file have a gold grade"
    assert declaration_words("probabilities", 3, 9).endswith("from the 9 with the probabilities in the file")
    assert "contradicts this (p < 0.0001)" in choice_words("uniform", 1e-9)
    assert "does not contradict this (p = 0.0100)" in choice_words("by-topic", 0.01)
    assert "into a new campaign and declare it by topic, or plan an audit here." in choice_words(
        "uniform", 0.001
    )
    assert choice_words("by-topic", 0.001).endswith("(p = 0.0010). Plan an audit here.")
    with pytest.raises(ValueError, match="declaration must be one of"):
        declaration_words("mine", 1, 2)
