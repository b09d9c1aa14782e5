import math

import numpy as np
import pytest
from enumeration import poisson_samples
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling.arrays import run_table
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.judged import GoldChecks, Judged, error_variance, question_influence
from sampling.strategies import strategy_keys, strategy_probabilities

KNOWN = {
    "influence": np.array([4.0, 1.0, 0.0, 2.0, 1.0, 0.5]),
    "inclusion_probability": np.array([1.0, 0.5, 0.25, 0.8, 0.1, 1.0]),
    "topic_index": np.array([0, 0, 0, 0, 1, 1]),
    "bronze_grade": np.array([2, 0, 0, 1, 0, 1]),
    "error_variance": np.array([0.1, 0.04, 0.04, 0.25, 0.04, 0.25]),
    "n_grades": 3,
}


def probabilities(strategy, count, even_share=0.2, **changed):
    judged = Judged(**{**KNOWN, **changed})
    return strategy_probabilities(strategy, judged, expected_count=count, even_share=even_share)


# ---- all strategies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", strategy_keys())
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
    judged = Judged(influence, drawn, topic, grade, variance, n_grades=4)
    pi = strategy_probabilities(strategy, judged, expected_count=count, even_share=even)
    assert pi.sum() == pytest.approx(min(count, len(items)), rel=1e-9)
    assert np.all(pi <= 1)
    assert np.all(pi >= min(1.0, even * min(count, len(items)) / len(items)) * (1 - 1e-9))


@pytest.mark.parametrize("strategy", strategy_keys())
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


@pytest.mark.parametrize(
    ("learns_from", "is_biased"), [("bronze grades and checks", False), ("audits", True)]
)
def test_a_later_audit_must_not_learn_from_what_an_earlier_one_found(learns_from, is_biased):
    """One erroneous item, audited if its number is below .5, then again below .9. The mean of error/probability:"""
    mean = 0.0
    for number, chance in ((0.25, 0.5), (0.7, 0.4), (0.95, 0.1)):
        found = poisson_draw([0.5], [number]).size == 1
        second = 0.9 if learns_from != "audits" or found else 0.5  # "more where an error was found"
        together = max(0.5, second)
        mean += chance * poisson_draw([together], [number]).size / together
    assert (abs(mean - 1) > 0.1) == is_biased


@pytest.mark.parametrize("strategy", strategy_keys())
def test_a_larger_audit_leaves_nobody_with_less(strategy):
    rng = np.random.default_rng(5)
    grade = rng.choice(4, 80, p=[0.6, 0.2, 0.15, 0.05])
    judged = Judged(
        influence=rng.pareto(0.7, 80) * (rng.random(80) < 0.5),
        inclusion_probability=rng.uniform(0.01, 1, 80),
        topic_index=rng.integers(0, 6, 80),
        bronze_grade=grade,
        error_variance=rng.random(4)[grade],
        n_grades=4,
    )
    before = np.zeros(80)
    for count in np.linspace(0.5, 80, 20):
        now = strategy_probabilities(strategy, judged, expected_count=float(count))
        assert np.all(now >= before - 1e-9)
        before = now
    assert before == pytest.approx(1)


@pytest.mark.parametrize(("best", "spread_of_influence"), [("risk", 1.0), ("neyman", 0.0)])
def test_each_optimal_strategy_has_the_least_variance_under_its_own_assumption(best, spread_of_influence):
    rng = np.random.default_rng(3)
    n = 60
    influence, drawn = 1 + spread_of_influence * rng.pareto(1.5, n), rng.uniform(0.1, 1, n)
    topic, grade = rng.integers(0, 5, n), rng.integers(0, 3, n)
    judged = Judged(influence, drawn, topic, grade, np.array([0.02, 0.3, 0.1])[grade], n_grades=3)
    variance = {}
    for strategy in strategy_keys():
        pi = strategy_probabilities(strategy, judged, expected_count=20, even_share=0.01)
        terms = (1 / pi - 1) * judged.influence**2 * judged.error_variance
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
        ("simple", 1, {"influence": [1, 2]}, "influence must have 6 items, got 2"),
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


def influence_of(weights, inclusion_probability):
    return question_influence(run_table("weights", weights), np.array(inclusion_probability))


def test_the_influence_on_a_pair_is_proportional_to_the_difference_over_the_drawing_probability():
    influence = influence_of([[0.6, 0.2, 0.1], [0.2, 0.2, 0.3]], [1.0, 0.1, 0.5])
    assert influence / influence[0] == pytest.approx([1, 0, 1])


def test_the_influence_on_one_run_is_its_weight_and_on_many_the_spread():
    assert influence_of([[3, 1]], [1, 0.5]) == pytest.approx([1, 2 / 3])
    # spreads by hand: weights 1, 2, 3 have sqrt 2, weights 0, 0, 3 have sqrt 6
    many = influence_of([[1, 0], [2, 0], [3, 3]], [1, 1])
    assert many == pytest.approx([math.sqrt(2 / 6), 1])


def test_runs_that_weigh_every_judged_item_alike_are_influenced_by_nothing():
    assert influence_of([[1, 2], [1, 2]], [1, 1]).tolist() == [0, 0]
    assert influence_of([[0, 0]], [1, 1]).tolist() == [0, 0]


def test_influence_is_refused_without_a_drawing_probability():
    with pytest.raises(ValueError, match="judged item must be above 0"):
        probabilities("influence", 1, influence=influence_of([[1, 2]], [1, 0]), inclusion_probability=[1, 0])


def test_the_error_variance_is_that_of_the_gain_given_the_bronze_grade():
    counts = 1e12 * np.array([[0.8, 0.2], [0.1, 0.9]])
    got = error_variance([0, 1, 1], GoldChecks(counts, [0, 2], [0.7, 0.3]))
    # P(1 | bronze 0) = .03/.59, P(1 | bronze 1) = .27/.41; gains 0 and 2
    p, q = 0.03 / 0.59, 0.27 / 0.41
    assert got == pytest.approx([4 * p * (1 - p), 4 * q * (1 - q), 4 * q * (1 - q)], rel=1e-9)


def test_few_checks_count_half_a_check_more_in_every_cell():
    got = error_variance([0, 1], GoldChecks([[8, 0], [1, 1]], [0, 1], [0.5, 0.5]))
    # rows (8.5, .5)/9 and (1.5, 1.5)/3
    p, q = (0.5 / (0.5 + 8.5 / 9), 0.5 / (0.5 + 0.5 / 9))
    assert got == pytest.approx([p * (1 - p), q * (1 - q)])


def test_the_prevalence_is_found_from_the_shares_of_the_bronze_grades():
    # 59 % and 41 % bronze grades come from a prevalence of .7 and .3 under this matrix
    bronze = np.repeat([0, 1], [59_000, 41_000])
    counts = 1e12 * np.array([[0.8, 0.2], [0.1, 0.9]])
    given_share = error_variance([0, 1], GoldChecks(counts, [0, 1], [0.7, 0.3]))
    found = error_variance(bronze, GoldChecks(counts, [0, 1]))
    assert found[[0, -1]] == pytest.approx(given_share, rel=1e-3)


def test_without_gold_checks_every_item_errs_alike():
    got = error_variance([0, 1, 2], GoldChecks(np.zeros((3, 3)), [0, 1, 3]))
    assert got == pytest.approx([np.var([0, 1, 3])] * 3)


def test_classes_of_votes_may_be_more_than_grades():
    counts = np.array([[90, 9, 1], [1, 9, 90]])
    low, middle, high = error_variance([0, 1, 2], GoldChecks(counts, [0, 1], [0.5, 0.5]))
    assert low == pytest.approx(high)
    assert middle == pytest.approx(0.25)
    assert low < 0.05


@pytest.mark.parametrize(
    ("bronze", "counts", "gains", "prevalence", "reason"),
    [
        ([2], np.ones((2, 2)), [0, 1], None, "bronze_class must be at most 1, got 2"),
        ([0], [[1, -1], [0, 0]], [0, 1], None, "counts must be within"),
        ([0], np.ones((2, 2)), [0, 1, 2], None, "gains must have 2 items, got 3"),
        ([0], np.ones((2, 2)), [0, 1], [0.5, 0.6], "prevalence must sum to 1"),
        ([0], np.ones((2, 2)), [0, 1], [1.0], "prevalence must have 2 items, got 1"),
        ([], np.ones((2, 2)), [0, 1], None, "bronze_class must be 0 integers"),
    ],
)
def test_impossible_checks_are_refused(bronze, counts, gains, prevalence, reason):
    with pytest.raises(ValueError, match=reason):
        error_variance(bronze, GoldChecks(counts, gains, prevalence))
