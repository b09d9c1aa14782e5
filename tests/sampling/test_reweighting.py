"""Weights from a few judgments: one round by hand, the number of rounds, Theorem 2's bound of the weighted vote."""

import math

import numpy as np
import pytest

from sampling.experts import Preferences, RankedPool, consensus
from sampling.reweighting import preference_factors, reweighting, round_count, with_judgments

NOT = np.inf


def test_one_round_on_one_pair():
    # Ranks of the relevant document and of the other: (1,2) (2,1) (-,1) (-,-).
    factors = preference_factors([1, 2, NOT, NOT], [2, 1, 1, NOT])
    assert factors == pytest.approx([1.1, 0.9, 0.9, 1.0])


@pytest.mark.parametrize(("n_runs", "rounds"), [(1, 0), (2, 0), (3, 1), (10, 2), (33, 3), (61, 4), (129, 4)])
def test_how_many_rounds(n_runs, rounds):
    assert round_count(n_runs) == rounds


def test_without_a_run_there_are_no_rounds():
    with pytest.raises(ValueError, match="at least 1"):
        round_count(0)


def pools():
    return [
        RankedPool.of([[1, 2, 3, NOT], [1, 3, 2, NOT], [NOT, 1, NOT, 2]]),
        RankedPool.of([[2, 1, NOT], [1, 2, NOT], [NOT, 2, 1]]),
    ]


def test_the_likeliest_documents_are_judged_and_the_weights_are_the_products_over_pairs():
    truth = [[True, False, False, False], [False, True, False]]
    found = reweighting(pools(), lambda topic, document: truth[topic][document], n_rounds=2)
    weights, expected = np.ones(3), []
    for pool, labels, right in zip(pools(), found.judged, truth, strict=True):
        first = int(np.argmax(consensus(Preferences.of(pool)).probability))
        assert next(iter(labels)) == first
        assert all(right[document] == label for document, label in labels.items())
        relevant = [document for document, label in labels.items() if label]
        others = [document for document, label in labels.items() if not label]
        for document in relevant:
            for other in others:
                weights *= preference_factors(pool.ranks[:, document], pool.ranks[:, other])
        expected.append(len(labels))
    assert expected == [2, 2]
    assert found.weights == pytest.approx(weights)
    assert not np.array_equal(weights, np.ones(3))
    for pool, labels, fit in zip(pools(), found.judged, found.consensuses, strict=True):
        # Judgments are in the prior: mean p = (relevant + 1) / (judged + 2).
        assert fit.probability.mean() == pytest.approx((sum(labels.values()) + 1) / 4)
        assert len(fit.theta) == pool.n_documents


def test_of_equal_probabilities_the_first_document_is_judged():
    pool = RankedPool.of([[1, 2], [2, 1]])
    assert reweighting([pool], lambda *_: True, n_rounds=1).judged == ({0: True},)


def test_where_all_are_judged_nothing_more_is():
    found = reweighting([RankedPool.of([[1, 2]])], lambda _, document: document == 1, n_rounds=5)
    assert found.judged == ({0: False, 1: True},)
    assert found.weights == pytest.approx([0.9])


def test_judgments_all_alike_change_no_weight():
    assert reweighting(pools(), lambda *_: True, n_rounds=3).weights == pytest.approx(np.ones(3))


def test_without_topics_nothing_is_weighed():
    with pytest.raises(ValueError, match="at least 1 topic"):
        reweighting([], lambda *_: True)


@pytest.mark.parametrize("step", [0, 0.6, np.nan])
def test_a_step_out_of_its_bounds_is_refused(step):
    with pytest.raises(ValueError, match="step must"):
        preference_factors([1], [2], step)


def test_judged_documents_are_certain():
    assert with_judgments(np.array([0.2, 0.4, 0.6]), {0: True, 2: False}).tolist() == [1.0, 0.4, 0.0]
    assert with_judgments(np.array([0.2]), {}).tolist() == [0.2]


@pytest.mark.parametrize("step", [0.1, 0.25, 0.5])
def test_the_weighted_vote_has_theorem_2s_regret_bound(step):
    """M <= ln(runs)/step + m (1 + step) - c (1 - step) for every run, whatever the sequence of pairs.

    M is the expected number of wrong less right votes where a run is followed in proportion to its weight. The bound
    is of this vote, not of the consensus.
    """
    rng = np.random.default_rng(5)
    for trial in range(40):
        n_runs, n_pairs = int(rng.integers(2, 30)), int(rng.integers(1, 80))
        weights, loss = np.ones(n_runs), 0.0
        wrong, right = np.zeros(n_runs), np.zeros(n_runs)
        for _ in range(n_pairs):
            relevant, other = ranks_of_pair(rng, n_runs, weights, adversarial=trial % 2 == 0)
            is_right, is_wrong = relevant < other, relevant > other
            loss += float(weights @ (is_wrong.astype(float) - is_right)) / weights.sum()
            wrong, right = wrong + is_wrong, right + is_right
            weights = weights * preference_factors(relevant, other, step)
        bound = math.log(n_runs) / step + wrong * (1 + step) - right * (1 - step)
        assert loss <= bound.min() + 1e-9


def ranks_of_pair(rng, n_runs, weights, *, adversarial):
    """Ranks of the relevant document and of the other; an adversary lets the heaviest runs err."""
    ranks = np.stack([rng.permutation(2) + 1.0 for _ in range(n_runs)], axis=1)
    if adversarial:
        heavy = weights >= np.median(weights)
        ranks[:, heavy] = [[2.0], [1.0]]
    ranks[:, rng.random(n_runs) < 0.2] = NOT
    return ranks


def test_a_round_without_a_judgment_is_not_made_and_names_what_it_asks_for():
    truth = [[True, False, False, False], [False, True, False]]
    whole = reweighting(pools(), lambda topic, document: truth[topic][document], n_rounds=2)
    assert whole.lacking == ()
    (first_a, second_a), (first_b, second_b) = (list(labels) for labels in whole.judged)

    def known(*pairs):
        return lambda topic, document: truth[topic][document] if (topic, document) in pairs else None

    nothing = reweighting(pools(), known(), n_rounds=2)
    assert nothing.lacking == ((0, first_a), (1, first_b))
    assert nothing.judged == ({}, {})
    assert nothing.weights == pytest.approx(np.ones(3))
    half = reweighting(pools(), known((0, first_a), (1, first_b), (1, second_b)), n_rounds=2)
    assert half.lacking == ((0, second_a),)
    assert [list(labels) for labels in half.judged] == [[first_a], [first_b]]
    every = known((0, first_a), (1, first_b), (0, second_a), (1, second_b))
    assert reweighting(pools(), every, n_rounds=2).weights == pytest.approx(whole.weights)
