import itertools
import math

import numpy as np
import pytest
from enumeration import poisson_samples
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.label_samples import (
    label_counts,
    label_probabilities,
    label_shares,
    nested_sample,
    whole_counts,
)
from sampling.strategies import (
    STRATEGIES,
    error_variance,
    question_influence,
    strategy_probabilities,
)

KNOWN = {
    "influence": np.array([4.0, 1.0, 0.0, 2.0, 1.0, 0.5]),
    "inclusion_probability": np.array([1.0, 0.5, 0.25, 0.8, 0.1, 1.0]),
    "topic_index": np.array([0, 0, 0, 0, 1, 1]),
    "bronze_grade": np.array([2, 0, 0, 1, 0, 1]),
    "error_variance": np.array([0.1, 0.04, 0.04, 0.25, 0.04, 0.25]),
}
# Bailey et al. (2008), Table 2, with "not" (grade 0) first: topics A and B
POOL = np.array([[70, 20, 10], [100, 50, 50]])
SHARES = [0.1, 0.3, 0.6]


def probabilities(strategy, count, **changed):
    return strategy_probabilities(strategy, expected_count=count, **{**KNOWN, **changed})


# ---- all strategies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e6), st.floats(1e-6, 1), st.integers(0, 3), st.integers(0, 3), st.floats(0, 9)
        ),
        min_size=1,
        max_size=40,
    ),
    st.floats(0.01, 60),
    st.floats(0.01, 1),
)
def test_probabilities_sum_to_the_count_and_leave_nobody_out(strategy, items, count, even):
    influence, drawn, topic, grade, variance = (np.array(column) for column in zip(*items, strict=True))
    pi = strategy_probabilities(
        strategy,
        expected_count=count,
        influence=influence,
        inclusion_probability=drawn,
        topic_index=topic,
        bronze_grade=grade,
        error_variance=variance,
        even_share=even,
    )
    assert pi.sum() == pytest.approx(min(count, len(items)), rel=1e-9)
    assert np.all(pi <= 1)
    assert np.all(pi >= min(1.0, even * min(count, len(items)) / len(items)) * (1 - 1e-9))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_over_all_audits_of_a_strategy_the_errors_sum_without_bias(strategy):
    error = KNOWN["influence"] * np.array([1.0, -1.0, 1.0, 0.0, 1.0, -1.0]) + 0.3
    pi = probabilities(strategy, 2.5)
    right = sum(chance * (error[s] / pi[s]).sum() for s, chance in poisson_samples(pi))
    assert right == pytest.approx(error.sum(), abs=1e-12)
    # the control: whoever divides by the average probability is biased, unless the audit was a simple one
    wrong = sum(chance * (error[s] / (2.5 / 6)).sum() for s, chance in poisson_samples(pi))
    assert (abs(wrong - error.sum()) > 0.05) == (strategy != "simple")


@pytest.mark.parametrize(
    ("first", "second"), [("influence", "simple"), ("topic", "effort"), ("rare", "full"), ("risk", "neyman")]
)
def test_two_audits_with_shared_numbers_are_the_audit_with_the_larger_probabilities(first, second):
    one, two = probabilities(first, 2.0), probabilities(second, 3.5)
    for seed in range(20):
        numbers = permanent_random_numbers(["t"] * 6, list("abcdef"), seed, "audit")
        both = np.union1d(poisson_draw(one, numbers), poisson_draw(two, numbers))
        assert poisson_draw(np.maximum(one, two), numbers).tolist() == both.tolist()


@pytest.mark.parametrize(("best", "spread_of_influence"), [("risk", 1.0), ("neyman", 0.0)])
def test_each_optimal_strategy_has_the_least_variance_under_its_own_assumption(best, spread_of_influence):
    rng = np.random.default_rng(3)
    n = 60
    arrays = {
        "influence": 1 + spread_of_influence * rng.pareto(1.5, n),
        "inclusion_probability": rng.uniform(0.1, 1, n),
        "topic_index": rng.integers(0, 5, n),
        "bronze_grade": rng.integers(0, 3, n),
    }
    arrays["error_variance"] = np.array([0.02, 0.3, 0.1])[arrays["bronze_grade"]]
    variance = {}
    for strategy in STRATEGIES:
        pi = strategy_probabilities(strategy, expected_count=20, even_share=0.01, **arrays)
        terms = (1 / pi - 1) * arrays["influence"] ** 2 * arrays["error_variance"]
        variance[strategy] = terms.sum()
    others = min(value for strategy, value in variance.items() if strategy not in ("risk", "neyman"))
    assert variance[best] < others
    assert variance[best] <= min(variance.values()) * (1 + 1e-9)


# ---- one by one -----------------------------------------------------------------------------------------------


def test_an_influence_audit_is_even_and_proportional_parts_added():
    sizes = KNOWN["influence"] / 8.5
    assert probabilities("influence", 1.0) == pytest.approx(0.2 / 6 + 0.8 * sizes)


def test_a_risk_audit_weighs_influence_with_the_standard_deviation_of_the_error():
    sizes = KNOWN["influence"] * np.sqrt(KNOWN["error_variance"])
    assert probabilities("risk", 1.0) == pytest.approx(0.2 / 6 + 0.8 * sizes / sizes.sum())


def test_a_neyman_audit_gives_every_grade_documents_times_standard_deviation():
    # N S of the grades: 3 x .2, 2 x .5, 1 x sqrt .1
    parts = np.array([0.6, 1.0, math.sqrt(0.1)])
    pi = probabilities("neyman", 1.0, even_share=1e-9)
    by_grade = [pi[KNOWN["bronze_grade"] == grade].sum() for grade in range(3)]
    assert by_grade == pytest.approx(parts / parts.sum(), abs=1e-8)


def test_an_audit_of_the_rare_goes_by_one_over_the_inclusion_probability():
    sizes = np.array([1, 2, 4, 1.25, 10, 1])
    assert probabilities("rare", 1.0) == pytest.approx(0.2 / 6 + 0.8 * sizes / sizes.sum())


def test_a_simple_audit_favours_no_item():
    assert probabilities("simple", 3.0) == pytest.approx([0.5] * 6)


@pytest.mark.parametrize(
    ("strategy", "nothing"), [("influence", "influence"), ("risk", "influence"), ("neyman", "error_variance")]
)
def test_a_strategy_that_has_nothing_to_go_by_is_simple(strategy, nothing):
    assert probabilities(strategy, 3.0, **{nothing: np.zeros(6)}) == pytest.approx([0.5] * 6)


def test_what_certain_items_cannot_use_goes_to_the_others():
    pi = probabilities("influence", 3.0, influence=np.array([1e9, 0, 0, 0, 0, 0]))
    assert pi == pytest.approx([1, 0.4, 0.4, 0.4, 0.4, 0.4])


def test_the_share_of_grades_that_nobody_gave_falls_to_the_highest_that_somebody_did():
    three, five = (probabilities("effort", 1.0, n_grades=n) for n in (3, 5))
    # shares 1 : 3 : 6, and 1 : 3 : 6 : 10 : 15 of which the last two are free; grade 2 has one item
    assert three[0] == pytest.approx(0.8 * 6 / 10 + 0.2 / 6)
    assert five[0] == pytest.approx(0.8 * 31 / 35 + 0.2 / 6)
    assert five.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("strategy", "count", "changed", "reason"),
    [
        ("best", 1, {}, "strategy must be one of .*, got 'best'"),
        ("simple", 0, {}, "expected_count must be positive and finite, got 0"),
        ("simple", math.nan, {}, "expected_count must be positive and finite, got nan"),
        ("simple", 1, {"even_share": 0}, r"even_share must be within \(0, 1\], got 0"),
        ("simple", 1, {"influence": [1, 2]}, "must have 2 items, got 6"),
        ("simple", 1, {"influence": [1, 2, 3, 4, 5, -6]}, "influence must be within .*, got -6"),
        ("simple", 1, {"influence": []}, "influence must have 1 axes and at least 1 item"),
        ("simple", 1, {"error_variance": [0, 0, 0, 0, 0, math.inf]}, "error_variance must be within"),
        ("simple", 1, {"inclusion_probability": [1, 1, 1, 1, 1, 0]}, "judged item must be above 0, got 0.0"),
        ("simple", 1, {"topic_index": [0, 0, 0, 0, 0, -1]}, "topic_index must be at least 0, got -1"),
        ("simple", 1, {"topic_index": np.zeros(6)}, "topic_index must be 6 integers, got float64"),
        ("simple", 1, {"bronze_grade": [0, 1, 2]}, "bronze_grade must be 6 integers"),
        ("topic", 1, {"n_grades": 2}, "n_grades must be above every bronze grade, 2, got 2"),
    ],
)
def test_an_impossible_audit_is_refused_with_bound_and_value(strategy, count, changed, reason):
    with pytest.raises(ValueError, match=reason):
        probabilities(strategy, count, **changed)


# ---- influence and error variance -----------------------------------------------------------------------------


def test_the_influence_on_a_pair_is_proportional_to_the_difference_over_the_drawing_probability():
    influence = question_influence([[0.6, 0.2, 0.1], [0.2, 0.2, 0.3]], [1.0, 0.1, 0.5])
    assert influence / influence[0] == pytest.approx([1, 0, 1])


def test_the_influence_on_one_run_is_its_weight_and_on_many_the_spread():
    assert question_influence([[3, 1]], [1, 0.5]) == pytest.approx([1, 2 / 3])
    # spreads by hand: weights 1, 2, 3 have sqrt 2, weights 0, 0, 3 have sqrt 6
    many = question_influence([[1, 0], [2, 0], [3, 3]], [1, 1])
    assert many == pytest.approx([math.sqrt(2 / 6), 1])


def test_runs_that_weigh_every_judged_item_alike_are_influenced_by_nothing():
    assert question_influence([[1, 2], [1, 2]], [1, 1]).tolist() == [0, 0]
    assert question_influence([[0, 0]], [1, 1]).tolist() == [0, 0]


def test_influence_is_refused_without_a_drawing_probability():
    with pytest.raises(ValueError, match="judged item must be above 0"):
        question_influence([[1, 2]], [1, 0])


def test_the_error_variance_is_that_of_the_gain_given_the_bronze_grade():
    counts = 1e12 * np.array([[0.8, 0.2], [0.1, 0.9]])
    got = error_variance([0, 1, 1], counts, [0, 2], prevalence=[0.7, 0.3])
    # P(1 | bronze 0) = .03/.59, P(1 | bronze 1) = .27/.41; gains 0 and 2
    p, q = 0.03 / 0.59, 0.27 / 0.41
    assert got == pytest.approx([4 * p * (1 - p), 4 * q * (1 - q), 4 * q * (1 - q)], rel=1e-9)


def test_the_prevalence_is_found_from_the_shares_of_the_bronze_grades():
    # 59 % and 41 % bronze grades come from a prevalence of .7 and .3 under this matrix
    bronze = np.repeat([0, 1], [59_000, 41_000])
    counts = 1e12 * np.array([[0.8, 0.2], [0.1, 0.9]])
    given_share = error_variance([0, 1], counts, [0, 1], prevalence=[0.7, 0.3])
    found = error_variance(bronze, counts, [0, 1])
    assert found[[0, -1]] == pytest.approx(given_share, rel=1e-3)


def test_without_gold_checks_every_item_errs_alike():
    got = error_variance([0, 1, 2], np.zeros((3, 3)), [0, 1, 3])
    assert got == pytest.approx([np.var([0, 1, 3])] * 3)


def test_classes_of_votes_may_be_more_than_grades():
    counts = np.array([[90, 9, 1], [1, 9, 90]])
    low, middle, high = error_variance([0, 1, 2], counts, [0, 1], prevalence=[0.5, 0.5])
    assert low == pytest.approx(high)
    assert middle == pytest.approx(0.25)
    assert low < 0.05


@pytest.mark.parametrize(
    ("bronze", "counts", "gains", "prevalence", "reason"),
    [
        ([2], np.ones((2, 2)), [0, 1], None, "bronze_class must be at most 1, got 2"),
        ([0], [[1, -1], [0, 0]], [0, 1], None, "counts must be within"),
        ([0], np.ones((2, 2)), [0, 1, 2], None, "gains must end in an axis of 2"),
        ([0], np.ones((2, 2)), [0, 1], [0.5, 0.6], "prevalence must sum to 1"),
        ([0], np.ones((2, 2)), [0, 1], [1.0], "prevalence must have 2 items, got 1"),
        ([], np.ones((2, 2)), [0, 1], None, "bronze_class must be 0 integers|at least 1"),
    ],
)
def test_impossible_checks_are_refused(bronze, counts, gains, prevalence, reason):
    with pytest.raises(ValueError, match=reason):
        error_variance(bronze, counts, gains, prevalence)


# ---- Bailey's samples -----------------------------------------------------------------------------------------


def test_shares_are_the_papers_for_three_grades_and_go_on_from_there():
    assert label_shares(3) == pytest.approx(SHARES)
    assert label_shares(2) == pytest.approx([1 / 4, 3 / 4])
    assert label_shares(4) == pytest.approx([0.05, 0.15, 0.3, 0.5])
    with pytest.raises(ValueError, match="n_grades must be at least 1, got 0"):
        label_shares(0)


def test_b9_a_grade_with_too_few_documents_is_made_up_for_from_the_top():
    # methods/noise-correction.md, B9, there with the highest grade first
    assert label_counts([70, 20, 1], 9, [1, 3, 5]).tolist() == [1, 7, 1]


def test_the_topic_based_sample_of_table_2_comes_out():
    counts = label_counts(POOL, [10, 20], SHARES)
    assert counts == pytest.approx(np.array([[1, 3, 6], [2, 6, 12]]))
    items = np.repeat(np.arange(6), POOL.ravel())
    pi = label_probabilities("topic", items // 3, items % 3, 3, 30.0)
    assert np.bincount(items, pi) == pytest.approx([1, 3, 6, 2, 6, 12])


def test_the_effort_based_sample_of_table_2_has_the_papers_margins_and_one_rate_a_label():
    items = np.repeat(np.arange(6), POOL.ravel())
    pi = label_probabilities("effort", items // 3, items % 3, 3, 30.0)
    assert np.bincount(items % 3, pi) == pytest.approx([3, 9, 18])
    assert pi[items % 3 == 2] == pytest.approx(18 / 60)
    # noise-correction.md 5.2, item 3: topic A's ten highly relevant documents are 3 in expectation
    assert np.bincount(items, pi)[2] == pytest.approx(3)


def test_the_full_sample_of_nested_samples_is_the_cellwise_larger_and_of_separate_ones_larger_still():
    cell = np.repeat(np.arange(6), POOL.ravel())
    topic, effort = (
        np.array([1, 3, 6, 2, 6, 12]),
        np.array([2, 1, 10, 1, 8, 8]),
    )  # the paper's cells, grade 0 first
    full = np.maximum(topic, effort)
    assert full.tolist() == [2, 3, 10, 2, 8, 12]
    rng = np.random.default_rng(8)
    numbers = rng.random(300)
    union = np.union1d(nested_sample(numbers, cell, topic), nested_sample(numbers, cell, effort))
    assert union.tolist() == nested_sample(numbers, cell, full).tolist()
    assert union.size == 37
    separate = np.union1d(nested_sample(numbers, cell, topic), nested_sample(rng.random(300), cell, effort))
    assert separate.size > 37


def test_the_full_strategy_is_the_larger_of_a_topic_and_an_effort_audit_of_one_size():
    items = np.repeat(np.arange(6), POOL.ravel())
    topic, grade = items // 3, items % 3
    full = label_probabilities("full", topic, grade, 3, 30.0)
    # No cell runs out, so both parts are proportional to their size.
    larger = np.maximum(*(label_probabilities(one, topic, grade, 3, 30.0) for one in ("topic", "effort")))
    assert full == pytest.approx(larger * 30 / larger.sum())
    assert full.sum() == pytest.approx(30)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_larger_audit_leaves_nobody_with_less(strategy):
    rng = np.random.default_rng(5)
    grade = rng.choice(4, 80, p=[0.6, 0.2, 0.15, 0.05])
    known = {
        "influence": rng.pareto(0.7, 80) * (rng.random(80) < 0.5),
        "inclusion_probability": rng.uniform(0.01, 1, 80),
        "topic_index": rng.integers(0, 6, 80),
        "bronze_grade": grade,
        "error_variance": rng.random(4)[grade],
    }
    before = np.zeros(80)
    for count in np.linspace(0.5, 80, 20):
        now = strategy_probabilities(strategy, expected_count=float(count), **known)
        assert np.all(now >= before - 1e-9)
        before = now
    assert before == pytest.approx(1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=2, max_size=5).filter(any), st.integers(0, 100))
def test_counts_by_label_fit_the_pool_and_the_sample(available, count):
    counts = label_counts(available, count, label_shares(len(available)))
    assert counts.sum() == pytest.approx(min(count, sum(available)))
    assert np.all(counts <= np.array(available) + 1e-9)
    whole = whole_counts(counts)
    assert whole.sum() == min(count, sum(available))
    assert np.all(whole <= available)
    assert np.all(np.abs(whole - counts) < 1)


def test_fractions_are_settled_by_the_largest_remainder_ties_to_the_higher_grade():
    assert whole_counts([[0.2, 0.7, 0.1], [1.5, 0.5, 2.0]]).tolist() == [[0, 1, 0], [1, 1, 2]]
    with pytest.raises(ValueError, match="counts must be an array"):
        whole_counts([-1.0])


@pytest.mark.parametrize(
    ("available", "count", "shares", "reason"),
    [
        ([1, 2], 1, [1, 1, 1], r"shape \(\*count, 3\)"),
        ([1, -2], 1, [1, 1], "must not be negative"),
        ([1, 2], -1, [1, 1], "must not be negative"),
        ([1, 2], 1, [0, 0], "a share must be positive"),
        ([1, 2], 1, [1, -1], "shares must be within"),
    ],
)
def test_impossible_counts_are_refused(available, count, shares, reason):
    with pytest.raises(ValueError, match=reason):
        label_counts(available, count, shares)


@pytest.mark.parametrize(
    ("stratum", "counts", "reason"),
    [
        ([0, 0, 1], [3, 1], "counts must be at most 2 in stratum 0, got 3"),
        ([0, 0, 2], [1, 0], "one number a stratum, 3, got 2"),
        ([0, 0], [1], "stratum must be 3 integers"),
        ([0, 0, 1], [-1, 0], "counts must be at least 0, got -1"),
    ],
)
def test_impossible_samples_are_refused(stratum, counts, reason):
    with pytest.raises(ValueError, match=reason):
        nested_sample([0.1, 0.2, 0.3], stratum, counts)


def test_every_sample_of_a_stratum_is_equally_likely():
    """All orders of four documents: each of the six pairs is drawn by as many of the 24."""
    drawn = [
        tuple(nested_sample(np.array(order) / 5, [0] * 4, [2])) for order in itertools.permutations(range(4))
    ]
    assert {drawn.count(pair) for pair in itertools.combinations(range(4), 2)} == {4}
