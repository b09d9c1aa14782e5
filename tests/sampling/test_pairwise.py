"""Pairs of documents as the parts of a measure, against direct counts, scipy's tau and ir_measures' AP."""

import itertools

import ir_measures
import numpy as np
import pytest
from scipy.stats import kendalltau

from analytics.estimation.estimators import difference_estimator
from sampling.measures.families import grade_gains
from sampling.measures.kinds import MAX_PAIRS
from sampling.measures.pairwise import pair_utility, pair_weights, ranked_pairs
from sampling.measures.registry import parse_pairs, parse_ratio

SWAPS, WEIGHTED, PRECISION = (parse_pairs(name) for name in ("Swaps", "wSwaps", "AP"))


def values(measure, ranks, topic, gains, n_topics, **given):
    """Return the measure of every run, all pairs judged."""
    pairs = ranked_pairs(measure, ranks, topic)
    weights = pair_weights(measure, ranks, topic, pairs, n_topics, **given)
    utility = pair_utility(measure, np.asarray(gains)[pairs.above], np.asarray(gains)[pairs.below])
    return (weights * utility).sum(axis=1)


def test_swaps_is_the_share_of_pairs_in_the_wrong_order():
    # rank order a b c d with gains 1 3 0 3: wrong are ab, ad, cd of 6 pairs
    assert values(SWAPS, [[1, 2, 3, 4]], [0] * 4, [1, 3, 0, 3], 1) == pytest.approx([3 / 6])


def test_without_equal_gains_the_share_of_swaps_is_half_of_one_minus_kendalls_tau():
    rng = np.random.default_rng(3)
    for _ in range(5):
        ranks = rng.permutation(12) + 1
        gains = rng.permutation(12).astype(float)
        tau = kendalltau(-ranks, gains).statistic
        assert values(SWAPS, ranks, np.zeros(12, dtype=int), gains, 1)[0] == pytest.approx((1 - tau) / 2)


def test_weighted_swaps_divides_by_both_ranks():
    # wrong pairs stand at ranks (1,2), (1,4), (3,4)
    expected = (1 / 2 + 1 / 4 + 1 / 12) / 6
    assert values(WEIGHTED, [[1, 2, 3, 4]], [0] * 4, [1, 3, 0, 3], 1) == pytest.approx([expected])


def test_a_topics_share_counts_the_pairs_the_run_returns_and_topics_are_averaged():
    ranks = [1, 2, 0, 2, 1, 3]  # topic 0: two documents, topic 1: three
    topic, gains = [0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 1, 1]
    # topic 0: its one pair is wrong; topic 1 ranks 1, 0, 1: one of three is wrong
    assert values(SWAPS, ranks, topic, gains, 2) == pytest.approx([(1 + 1 / 3) / 2])


def test_ap_with_known_r_is_what_trec_eval_prints():
    rng = np.random.default_rng(5)
    grade = rng.integers(0, 2, size=20)
    topic = np.repeat([0, 1], 10)
    ranks = np.concatenate([rng.permutation(10) + 1, rng.permutation(10) + 1])
    qrels = {str(t): {str(i): int(grade[i]) for i in np.flatnonzero(topic == t)} for t in (0, 1)}
    run = {str(t): {str(i): float(-ranks[i]) for i in np.flatnonzero(topic == t)} for t in (0, 1)}
    for name in ("AP", "AP@4"):
        reference = ir_measures.calc_aggregate([ir_measures.parse_measure(name)], qrels, run)
        found = values(
            parse_pairs(name),
            ranks,
            topic,
            grade,
            2,
            relevant_by_topic=np.bincount(topic, weights=grade),
        )
        assert found[0] == pytest.approx(next(iter(reference.values())))


def test_without_r_the_sum_is_the_numerator_of_the_fixture():
    # relevance 1 0 1 1, R = 3: AP is .805556
    assert values(PRECISION, [[1, 2, 3, 4]], [0] * 4, [1, 0, 1, 1], 1)[0] / 3 == pytest.approx(
        0.805556, abs=5e-7
    )


@pytest.mark.parametrize("measure", [SWAPS, WEIGHTED, PRECISION])
def test_a_sample_of_pairs_estimates_the_difference_of_two_runs_without_bias(measure):
    """Over all 2^n samples of pairs the Horvitz-Thompson estimates average to the truth."""
    ranks, topic, gains = np.array([[1, 2, 3, 0], [3, 0, 2, 1]]), [0] * 4, np.array([1.0, 0, 1, 1])
    pairs = ranked_pairs(measure, ranks, topic)
    assert pairs.above.size <= 10
    weights = pair_weights(measure, ranks, topic, pairs, 1)
    difference = weights[0] - weights[1]
    utility = pair_utility(measure, gains[pairs.above], gains[pairs.below])
    pi = np.random.default_rng(2).uniform(0.2, 0.9, size=utility.size)
    mean = 0.0
    for drawn in itertools.product([False, True], repeat=utility.size):
        chosen = np.array(drawn)
        chance = np.prod(np.where(chosen, pi, 1 - pi))
        if chosen.any():
            found = difference_estimator(difference[chosen], utility[chosen], pi[chosen], fewest=0)[0]
            mean += chance * found.value
    assert mean == pytest.approx((difference * utility).sum())


def test_pairs_are_found_within_the_cutoff_only_and_runs_share_them():
    pairs = ranked_pairs(parse_pairs("Swaps@2"), [[1, 2, 3], [1, 2, 3], [2, 1, 0]], [0, 0, 0])
    assert list(zip(pairs.above, pairs.below, strict=True)) == [(0, 1), (1, 0)]
    weights = pair_weights(parse_pairs("Swaps@2"), [[1, 2, 3], [2, 1, 0]], [0, 0, 0], pairs, 1)
    assert weights.tolist() == [[1, 0], [0, 1]]


def test_pairs_never_join_topics_and_empty_rankings_weigh_nothing():
    pairs = ranked_pairs(SWAPS, [[1, 1, 2, 0], [0, 0, 0, 0]], [0, 1, 1, 1])
    assert (pairs.above.tolist(), pairs.below.tolist()) == ([1], [2])
    assert pair_weights(SWAPS, [[0, 0, 0, 0]], [0, 1, 1, 1], pairs, 2).tolist() == [[0.0]]
    assert ranked_pairs(SWAPS, [[0, 0]], [0, 0]).above.size == 0


def test_aps_gains_are_those_of_the_binary_measure():
    gains = grade_gains(parse_ratio("AP(rel=2)"), [0, 1, 3], 1)
    assert pair_utility(PRECISION, gains[[2, 1]], gains[[2, 2]]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nDCG", "is a ratio, not a sum over pairs of documents"),
        ("Swaps(rel=1)", "takes the parameters"),
        ("AP(rel=0)", "rel must"),
        ("x y", "spelled"),
    ],
)
def test_a_name_that_is_not_a_pairwise_measure_is_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        parse_pairs(name)


@pytest.mark.parametrize(
    ("ranks", "topic", "reason"),
    [
        ([[1.0]], [0], "ranks must be integers"),
        ([[-1]], [0], "ranks must be at least 0, got -1"),
        ([[1]], [-1], "topic_index must be at least 0"),
        ([[1, 2]], [0], r"ranks must have shape \(runs, 1\), got \(1, 2\)"),
    ],
)
def test_impossible_frames_are_refused(ranks, topic, reason):
    with pytest.raises(ValueError, match=reason):
        ranked_pairs(SWAPS, ranks, topic)


def test_more_pairs_than_fit_are_refused_before_they_are_made():
    n = 6400
    assert n * (n + 1) // 2 > MAX_PAIRS
    with pytest.raises(ValueError, match="at most 20000000 pairs"):
        ranked_pairs(SWAPS, np.arange(1, n + 1), np.zeros(n, dtype=int))


def test_impossible_utilities_and_counts_are_refused():
    pairs = ranked_pairs(PRECISION, [[1, 2]], [0, 0])
    with pytest.raises(ValueError, match="AP needs gains of 0 and 1, got 2"):
        pair_utility(PRECISION, [2], [1])
    with pytest.raises(ValueError, match="finite"):
        pair_utility(SWAPS, [np.nan], [1])
    with pytest.raises(ValueError, match="counts of at least 1"):
        pair_weights(PRECISION, [[1, 2]], [0, 0], pairs, 1, relevant_by_topic=[0])
    with pytest.raises(ValueError, match="belongs to AP"):
        pair_weights(SWAPS, [[1, 2]], [0, 0], pairs, 1, relevant_by_topic=[1])
    with pytest.raises(ValueError, match="n_topics must be"):
        pair_weights(SWAPS, [[1, 2]], [0, 1], pairs, 1)
