"""What to judge again: fixtures of an independent implementation, and changes of AP beside a new evaluation."""

import numpy as np
import pytest

from sampling.rejudging import (
    SampledTopic,
    label_influence,
    prevalence_by_prior,
    ranking_influence,
    sampled_average_precision,
    shortest_queue,
    total_influence,
    wrong_probability,
)

SIX_DIGITS = 1e-6
RANKS = [[1, 3, 4, 8, np.inf], [2, 1, np.inf, 5, 3]]
LABELS, CHANCES = [1, 0, 1, 1, 1], [0.9, 0.6, 0.5, 0.2, 0.1]


def test_sampled_average_precision_of_the_fixture():
    topic = SampledTopic.of(RANKS, LABELS, CHANCES)
    assert sampled_average_precision(topic) == pytest.approx([0.261503, 1.087935], abs=SIX_DIGITS)


def test_influence_of_the_fixture():
    changes = label_influence(SampledTopic.of(RANKS, LABELS, CHANCES))
    assert changes[0] == pytest.approx([-0.121797, 0.132067, -0.110641, -0.096249, 0.322401], abs=SIX_DIGITS)
    assert changes[1] == pytest.approx([-0.244797, 0.404575, 0.135054, -0.508839, -0.759167], abs=SIX_DIGITS)


def random_topic(rng: np.random.Generator, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = 12
    ranks = np.array([rng.permutation(n) + 1.0 for _ in range(3)])
    ranks[rng.random(ranks.shape) < 0.3] = np.inf
    return ranks, (rng.random(n) < share).astype(int), rng.uniform(0.05, 1, n)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_influence_is_the_difference_of_two_evaluations(share):
    rng = np.random.default_rng(3)
    for _ in range(5):
        ranks, labels, chances = random_topic(rng, share)
        topic = SampledTopic.of(ranks, labels, chances)
        before, changes = sampled_average_precision(topic), label_influence(topic)
        for document in range(labels.size):
            other = labels.copy()
            other[document] = 1 - other[document]
            after = sampled_average_precision(SampledTopic.of(ranks, other, chances))
            assert changes[:, document] == pytest.approx(after - before, abs=1e-10)


def test_complete_judgments_give_ordinary_average_precision():
    topic = SampledTopic.of([[1, 2, 3, 4, np.inf]], [1, 0, 1, 0, 1], np.ones(5))
    assert sampled_average_precision(topic) == pytest.approx([(1 + 2 / 3) / 3])


def test_a_shift_of_all_runs_reorders_nothing():
    changes = np.array([[0.2, 0.1], [0.2, -0.1]])
    assert total_influence(changes) == pytest.approx([0.4, 0.2])
    assert ranking_influence(changes) == pytest.approx([0.0, np.sqrt(0.02)])


def test_the_probability_of_a_wrong_label_is_bayes_rule():
    wrong = wrong_probability([1, 0], 0.2, 0.1, [0.25, 0.25])
    assert wrong == pytest.approx(
        [0.2 * 0.75 / (0.2 * 0.75 + 0.9 * 0.25), 0.1 * 0.25 / (0.1 * 0.25 + 0.8 * 0.75)]
    )


def test_prevalence_by_decile_is_corrected_and_clipped():
    """100 documents a decile; the observed rates .2 to 1 give (rate - f) / (1 - f - g)."""
    prior = np.repeat(np.arange(10.0), 100)
    rates = np.linspace(0.1, 1.0, 10)
    labels = np.concatenate(
        [np.r_[np.ones(round(100 * rate)), np.zeros(100 - round(100 * rate))] for rate in rates]
    )
    prevalence = prevalence_by_prior(labels, prior, 0.2, 0.1)
    assert prevalence[::100] == pytest.approx(np.clip((rates - 0.2) / 0.7, 0, 1))
    assert prevalence_by_prior([0, 1], [1, 2], 0.6, 0.5).tolist() == [0.5, 0.5]


def test_the_queue_is_cut_at_half_of_its_sum():
    priority = [5.0, 4.0, 1.0, 9.0, 0.0]
    assert shortest_queue(priority, [0.3, 0.3, 0.3, 0.2, 0.9]) == [0]
    assert shortest_queue(priority, [0.3, 0.3, 0.3, 0.3, 0.9]) == [3, 0]
    assert shortest_queue([], []) == []
    assert shortest_queue([1.0], [0.1]) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]], [1, 0], [0.5, 0.5]), "ranks must be at least 1, got 0"),
        (([[1, 2]], [1, 2], [0.5, 0.5]), "labels must be 2 times 0 or 1"),
        (([[1, 2]], [1, 0], [0.5, 0.0]), "inclusion_probability must be above 0, got 0"),
        (([[1, 2]], [1, 0], [0.5, 1.5]), "inclusion_probability must be within"),
        (([1, 2], [1, 0], [0.5, 1]), "ranks must have 2 axes"),
    ],
)
def test_bad_values_are_refused_with_the_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        SampledTopic.of(*arguments)
