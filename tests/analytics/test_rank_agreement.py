import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau, wilcoxon

from analytics.agreement.rankings import (
    RankAgreement,
    SignedRanks,
    compare_tiers,
    rank_agreement,
    scores_by_topic,
    signed_ranks,
    tau_ap,
)
from analytics.estimation.estimate import Refusal

# docs/methods/derivations/bailey.md, section 4: B7 and B8
B7_A = (0.50, 0.42, 0.31, 0.65, 0.28, 0.77, 0.40, 0.55, 0.36, 0.61)
B7_B = (0.45, 0.40, 0.35, 0.57, 0.28, 0.70, 0.41, 0.49, 0.33, 0.50)


def six(values):
    return pytest.approx(values, abs=5e-7)


# ---- signed ranks ---------------------------------------------------------------------------------------------


def test_b7_the_exact_and_the_normal_p_of_signed_ranks():
    got = signed_ranks(B7_A, B7_B)
    assert (got.n, got.w_plus, got.w_minus) == (9, 40, 5)
    assert got.exact_p == 20 / 512
    assert (got.z, got.normal_p) == six((-2.073221, 0.038152))
    assert got.p_value == got.exact_p


def test_the_two_tiers_may_change_places():
    first, second = signed_ranks(B7_A, B7_B), signed_ranks(B7_B, B7_A)
    assert (second.w_plus, second.w_minus, second.p_value) == (first.w_minus, first.w_plus, first.p_value)


def test_equal_differences_share_their_rank_and_the_exact_p_counts_all_signs():
    a = np.array([0.5, 0.6, 0.4, 0.9, 0.1, 0.8])
    difference = np.array([0.1, 0.1, -0.1, 0.3, 0.0, 0.2])  # .6 - .5 and .5 - .4 differ in the last bit
    got = signed_ranks(a, a - difference)
    ranks = np.array([2, 2, 2, 5, 4])
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product([0, 1], repeat=5)
    ]
    assert (got.n, got.w_plus, got.w_minus) == (5, 13, 2)
    assert got.exact_p == pytest.approx(min(1, 2 * np.mean(np.array(sums) <= 2)))


def test_exact_and_normal_p_are_scipys():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 19))
    assert signed_ranks(a, b).exact_p == pytest.approx(wilcoxon(a, b, method="exact").pvalue, rel=1e-9)
    a, b = rng.integers(0, 12, (2, 60))
    got = signed_ranks(a / 10, b / 10)  # the ties must not be lost in the last bit
    assert got.exact_p is None
    assert got.p_value == pytest.approx(wilcoxon(a, b, method="asymptotic").pvalue, rel=1e-6)


def test_tiers_with_the_same_scores_or_without_topics_are_refused():
    assert "all 2 topics have the same score" in signed_ranks([0.1, 0.2], [0.1, 0.2]).reason
    assert signed_ranks([], []) == Refusal("no topic has a score from both tiers", 1)
    assert signed_ranks([0.2], [0.1]).p_value == 1


@pytest.mark.parametrize(("a", "b"), [([0.1], [0.1, 0.2]), ([np.nan], [0.1]), ([[0.1]], [[0.2]])])
def test_impossible_scores_are_refused(a, b):
    with pytest.raises(ValueError, match="must"):
        signed_ranks(a, b)


# ---- rankings -------------------------------------------------------------------------------------------------


def test_b8_tau_and_tau_b():
    x, y = [0.61, 0.58, 0.52, 0.49, 0.33], [0.55, 0.60, 0.50, 0.41, 0.44]
    got = rank_agreement(x, y)
    assert (got.tau, got.tau_b) == six((0.6, 0.6))
    assert got.flipped == ((0, 1), (3, 4))
    x[3] = 0.52
    tied = rank_agreement(x, y)
    assert tied.tau_b == six(0.527046)
    assert tied.tau == 0.5
    assert tied.tied_pairs == 1


def test_tau_b_is_scipys_and_tau_follows_from_the_flipped_pairs():
    rng = np.random.default_rng(9)
    x, y = rng.integers(0, 8, (2, 15)) / 10
    assert rank_agreement(x, y).tau_b == pytest.approx(kendalltau(x, y).statistic, rel=1e-12)
    x, y = rng.random((2, 15))
    got = rank_agreement(x, y)
    assert got.tau == pytest.approx(1 - 4 * len(got.flipped) / (15 * 14), rel=1e-12)
    assert got.tau == pytest.approx(got.tau_b)
    assert all(x[better] > x[worse] and y[better] < y[worse] for better, worse in got.flipped)


def tau_ap_of_orders(reference, other):
    """The definition, for two lists of systems from best to worst."""
    total = 0.0
    for i in range(1, len(other)):
        above = [system for system in other[:i] if reference.index(system) < reference.index(other[i])]
        total += len(above) / i
    return 2 * total / (len(other) - 1) - 1


def all_orders(scores):
    """Every order from best to worst that breaks the ties of the scores."""
    groups = [
        [system for system, score in enumerate(scores) if score == value]
        for value in sorted(set(scores), reverse=True)
    ]
    for choice in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [system for group in choice for system in group]


@pytest.mark.parametrize(
    ("reference", "other"),
    [
        ([5, 4, 3, 2, 1], [5, 3, 4, 1, 2]),
        ([5, 4, 3, 2, 1], [4, 5, 3, 2, 1]),
        ([5, 4, 3, 2, 1], [5, 4, 4, 4, 1]),
        ([5, 5, 3, 3, 1], [1, 4, 2, 5, 3]),
        ([5, 5, 3, 3, 3], [2, 2, 2, 1, 1]),
        ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
    ],
)
def test_tau_ap_is_the_mean_over_all_ways_to_break_the_ties_of_both(reference, other):
    every = [tau_ap_of_orders(r, o) for r in all_orders(reference) for o in all_orders(other)]
    assert tau_ap(reference, other) == pytest.approx(np.mean(every), abs=1e-12)


def test_an_exchange_at_the_top_costs_more_than_one_at_the_bottom():
    order = [5, 4, 3, 2, 1]
    top, bottom = rank_agreement(order, [4, 5, 3, 2, 1]), rank_agreement(order, [5, 4, 3, 1, 2])
    assert top.tau == bottom.tau
    assert top.tau_ap == pytest.approx(1 - 2 / 4)
    assert bottom.tau_ap == pytest.approx(1 - 2 / 16)


def test_rankings_that_are_no_rankings_are_refused():
    assert rank_agreement([0.1], [0.2]) == Refusal("1 systems; at least 2 are needed for an order", 1)
    tied = rank_agreement([0.1, 0.1], [0.1, 0.2])
    assert isinstance(tied, RankAgreement)
    assert tied.tau_b == Refusal("one of the two rankings ties all systems")
    assert (tied.tau, tied.tau_ap, tied.flipped) == (0, 0, ())
    assert rank_agreement([1, 2, 3], [3, 2, 1]).tau == -1


@pytest.mark.parametrize(("reference", "other"), [([1, 2], [1]), ([1, np.inf], [1, 2]), ([[1, 2]], [[1, 2]])])
def test_impossible_rankings_are_refused(reference, other):
    with pytest.raises(ValueError, match="must"):
        rank_agreement(reference, other)


# ---- two tiers ------------------------------------------------------------------------------------------------

TOPIC = np.array([0, 0, 0, 1, 1, 1, 2])
RANKS = np.array([[1, 2, 3, 1, 2, 3, 1], [3, 2, 1, 0, 2, 1, 1]])
GOLD = np.array([1, 0, 0, 1, 1, 0, 0])
BRONZE = np.array([0, 0, 1, 1, 1, 0, 1])


def scored(grade, measure="infAP", **settings):
    return scores_by_topic(measure, TOPIC, RANKS, grade, np.zeros(7, dtype=int), 3, **settings)


def test_complete_judgments_give_average_precision_topic_by_topic():
    got = scored(GOLD)
    assert got.topics.tolist() == [0, 1]
    # by hand: run 0 has the relevant documents at ranks 1; 1, 2 - run 1 at 3; 2 with one relevant never returned
    assert got.values == pytest.approx(np.array([[1, 1], [1 / 3, (1 / 2) / 2]]))
    assert "nothing to divide by" in got.refused[2].reason


def test_complete_judgments_give_ndcg_topic_by_topic():
    got = scored(GOLD, "infNDCG")
    discount = 1 / np.log2([2, 3, 4])
    ideal = discount[0] + discount[1]
    assert got.values[1] == pytest.approx([discount[2], discount[1] / ideal])


def test_tiers_are_compared_over_the_topics_that_both_can_score():
    reference, other = scored(GOLD), scored(BRONZE)
    got = compare_tiers(reference, other)
    assert got.n_topics == 2
    assert got.mean_reference == pytest.approx((1, (1 / 3 + 1 / 4) / 2))
    assert got.mean_other == pytest.approx(((1 / 3 + 1) / 2, (1 + 1 / 4) / 2))
    assert isinstance(got.tests[0], SignedRanks)
    assert (got.ranking.tau, got.ranking.flipped) == (1, ())


def test_tiers_without_a_common_topic_are_refused():
    nobody = scored(np.full(7, -1))
    assert {refusal.reason for refusal in nobody.refused.values()} == {"no document of the topic was judged"}
    assert nobody.values.shape == (2, 0)
    assert compare_tiers(scored(GOLD), nobody) == Refusal("no topic has scores from both tiers", 1)


def test_a_topic_without_documents_is_refused_and_the_others_are_scored():
    got = scores_by_topic("infAP", TOPIC, RANKS, GOLD, np.zeros(7, dtype=int), 5)
    assert got.topics.tolist() == [0, 1]
    assert sorted(got.refused) == [2, 3, 4]


def test_scores_outside_their_range_are_said_and_not_clipped():
    """One of a stratum of three is judged, highly relevant and at the top: it stands for three documents there."""
    got = scores_by_topic("infNDCG", [0] * 4, [[1, 0, 0, 2]], [2, -1, -1, 0], [0, 0, 0, 1], 1)
    assert got.values[0, 0] == pytest.approx(3 / (1 + 1 / np.log2(3) + 1 / 2))
    assert got.values[0, 0] > 1
    assert got.warnings == ("topic 0: 1 of 1 scores lie outside [0, 1], 1.408 to 1.408",)
    assert scored(GOLD).warnings == ()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"measure": "P"}, "measure must be infNDCG or infAP"),
        ({"n_topics": 2}, "topic_index must be at most 1, got 2"),
        ({"ranks": [[1, 2]]}, "ranks must have 7 documents"),
        ({"grade": [1]}, "grade must have 7 documents"),
        ({"inclusion_probability": [0.5]}, "inclusion_probability must have 7 documents"),
        ({"form": "best"}, "form must be one of"),
    ],
)
def test_impossible_scores_by_topic_are_refused(changed, reason):
    given = {"measure": "infAP", "topic_index": TOPIC, "ranks": RANKS, "grade": GOLD, "n_topics": 3}
    with pytest.raises(ValueError, match=reason):
        scores_by_topic(**{**given, "stratum": np.zeros(7, dtype=int), **changed})


def test_tables_of_different_runs_are_not_compared():
    one = scores_by_topic("infAP", TOPIC, RANKS[:1], GOLD, np.zeros(7, dtype=int), 3)
    with pytest.raises(ValueError, match="other must have 2 runs, got 1"):
        compare_tiers(scored(GOLD), one)
