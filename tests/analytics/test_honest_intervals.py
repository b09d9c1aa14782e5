"""Two honesties, by simulation: topics as a sample are never surer than these topics, and few relevant items are said.

And where numbers end: at the range of their measure.
"""

import math

import numpy as np
import pytest

from analytics.estimation.estimate import (
    FEWEST_POSITIVE,
    Estimates,
    estimates,
    few_positive_warning,
    quantiles95,
)
from analytics.estimation.judged_share import judged_share
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import never_narrower, over_topics_of
from analytics.estimation.two_phase import two_phase
from analytics.numbers.columns import columns
from sampling.measures.families import grade_gains, largest_value
from sampling.measures.registry import parse_measure
from sampling.measures.sparse import from_dense

ALONE = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


# -- topics as a sample -------------------------------------------------------------------------------------------


def few_gold_labels(rng, n_topics=20, n_items=15):
    """Return a run's estimate for these topics and over topics, of topics that are alike, from few gold labels."""
    topic = np.repeat(np.arange(n_topics), n_items)
    n = topic.size
    gold, after = (rng.random((2, n)) < 0.4).astype(np.float64)
    a = np.full(n, 0.06)
    audited = rng.random(n) < a
    h = 0.2 + 0.6 * after
    gold = np.where(rng.random(n) < 0.85, after, gold)
    weights = from_dense(np.full((1, n), 1 / n))
    found = two_phase(
        TargetWeights(weights),
        draw_probability=np.ones(n),
        audited=audited,
        gold=gold,
        audit_probability=a,
        before=np.zeros(n),
        after=h,
        spread=h * (1 - h),
        before_total=[0.0],
    )
    parts = np.bincount(topic, found.item_corrections / n, n_topics)[None]
    return found.estimates, over_topics_of(TargetWeights(weights), parts)


def test_over_many_draws_the_interval_over_topics_is_never_narrower_and_one_by_t_alone_often_is():
    rng = np.random.default_rng(17)
    narrower_before = kept = 0
    for _ in range(300):
        these, topics = few_gold_labels(rng)
        if these.refusals or topics.refusals:
            continue
        kept += 1
        # the control: t over topics alone
        half_before = quantiles95(topics.degrees_of_freedom) * topics.standard_error
        narrower_before += int(half_before[0] < (these.high - these.low)[0] / 2 - 1e-12)
        rows = columns("P@10", "corrected", ALONE, these, settled={}, over_topics=topics).numbers
        assert rows["topics_low"][0] <= rows["low"][0]
        assert rows["topics_high"][0] >= rows["high"][0]
        by_topics = rows["topics_degrees_of_freedom"][0] == 19
        error = (topics if by_topics else these).standard_error[0]
        assert rows["topics_standard_error"][0] == error
    assert kept > 200
    assert narrower_before > 0.3 * kept


def test_the_larger_half_width_is_taken_whichever_it_is():
    def one(value, error, df):
        return estimates(
            np.array([value]),
            {"a": np.array([error**2])},
            degrees_of_freedom=df,
            n=np.array([40]),
            refusals={},
        )

    def of(over, standard_error, low, high, df):
        found = never_narrower(over, *(np.array([number]) for number in (standard_error, low, high, df)))
        columns = (found.standard_error, found.low, found.high, found.degrees_of_freedom)
        return [float(column[0]) for column in columns]

    t4 = 2.7764451051977987
    ends = [0.3 - t4 * 0.1, 0.3 + t4 * 0.1]
    assert of(one(0.3, 0.05, 49), 0.1, *ends, 4.0) == pytest.approx([0.1, *ends, 4])
    assert of(one(0.3, 0.1, 4), 0.05, 0.2, 0.4, 49.0) == pytest.approx([0.1, *ends, 4])
    # few topics that lie close together: the judging is wider, and its error and degrees of freedom stand
    assert of(one(0.3, 0.01, 49), 0.1, 0.2, 0.4, math.inf) == pytest.approx([0.1, 0.2, 0.4, math.inf])
    # fewer degrees of freedom make the topics wider, though their error is the smaller one
    assert of(one(0.3, 0.08, 4), 0.1, 0.104, 0.496, math.inf) == pytest.approx(
        [0.08, 0.3 - t4 * 0.08, 0.3 + t4 * 0.08, 4]
    )


# -- few items of positive gain -----------------------------------------------------------------------------------


def two_runs(relevant, n_judged, rng, repetitions=600, n=1000):
    """Return whether each draw's interval of a difference holds it, and how many relevant items carried that."""
    weights = np.repeat([2 / n, -2 / n], n // 2)
    truth = float(weights @ relevant)
    pi = np.full(n, n_judged / n)
    share = relevant.mean()
    covered, carried = [], []
    for _ in range(repetitions):
        drawn = rng.random(n) < pi
        size = int(drawn.sum())
        found = two_phase(
            weights[None, drawn],
            draw_probability=pi[drawn],
            audited=np.ones(size, dtype=bool),
            gold=relevant[drawn],
            audit_probability=np.ones(size),
            before=np.full(size, share),
            after=relevant[drawn],
            spread=np.zeros(size),
            before_total=[0.0],
        ).estimates
        covered.append(bool(found.low[0] <= truth <= found.high[0]))
        carried.append(int(relevant[drawn].sum()))
    return np.array(covered), np.array(carried)


@pytest.mark.parametrize(("n_judged", "most"), [(100, 0.85), (50, 0.75)])
def test_with_14_relevant_of_1000_intervals_miss_too_often_and_nearly_all_are_warned_of(n_judged, most):
    relevant = np.zeros(1000)
    relevant[:11] = relevant[500:503] = 1.0
    covered, carried = two_runs(relevant, n_judged, np.random.default_rng(3))
    assert covered.mean() < most
    assert (carried < FEWEST_POSITIVE).mean() > 0.99
    assert all(few_positive_warning(int(one)) for one in carried[carried < FEWEST_POSITIVE])


def test_where_many_relevant_items_carry_a_pair_there_is_no_warning_and_intervals_hold():
    relevant = np.zeros(1000)
    relevant[:200] = relevant[500:620] = 1.0
    covered, carried = two_runs(relevant, 100, np.random.default_rng(4))
    assert covered.mean() > 0.93
    assert not any(few_positive_warning(int(one)) for one in carried)


def test_the_warning_stands_beside_a_number_that_has_an_error_and_counts_what_has_weight():
    found = estimates(
        np.array([0.4, 0.3, 0.1]),
        {"drawing": np.array([0.01, 0.0, 0.01])},
        degrees_of_freedom=30,
        n=np.array([60, 60, 60]),
        refusals={},
    )
    pairs = (np.array([0]), np.array([1]))
    rows = columns("P@10", "corrected", pairs, found, settled={}, n_positive=np.array([9, 9, 10]))
    assert rows.warning[0] == few_positive_warning(9)
    assert "only 9 judged documents with a gain above 0" in rows.warning[0]
    assert rows.warning[1:] == ["", ""]  # exact; and carried by ten
    assert rows.numbers["n_positive"].tolist() == [9, 9, 10]
    assert few_positive_warning(1).startswith("only 1 judged document with")


# -- where numbers end --------------------------------------------------------------------------------------------


def in_one(value, error):
    return estimates(
        np.array(value),
        {"drawing": np.array(error) ** 2},
        degrees_of_freedom=np.inf,
        n=np.full(len(value), 60),
        refusals={},
    )


def shown(found: Estimates, **options):
    pairs = (np.array([0]), np.array([1]))
    return columns("P@10", "corrected", pairs, found, settled={}, planned=200, **options).numbers


def test_values_and_ends_stop_at_the_range_and_what_they_were_stands_beside():
    before = shown(in_one([1.2, 0.02, 1.18], [0.3, 0.2, 0.36]))
    after = shown(in_one([1.2, 0.02, 1.18], [0.3, 0.2, 0.36]), largest=1.0)
    assert after["range_low"].tolist() == [0, 0, -1]
    assert after["range_high"].tolist() == [1, 1, 1]
    assert after["value"].tolist() == [1.0, 0.02, 1.0]
    for name in ("value", "low", "high"):
        assert after[f"unbounded_{name}"].tolist() == before[name].tolist()
    for name in ("value", "low", "high", "always_low", "always_high"):
        assert (after[name] >= after["range_low"]).all(), name
        assert (after[name] <= after["range_high"]).all(), name
    # the control: without a range, they lie outside it
    assert before["value"][0] > 1
    assert before["low"][1] < 0
    assert before["always_high"][2] > 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("P@10", 1.0),
        ("Gain@10", 3.0),
        ("DCG@3", 3 * (1 + 1 / math.log2(3) + 0.5)),
        ("RBP(p=0.5)@3", 0.5 + 0.25 + 0.125),
        ("nDCG@10", 1.0),
        ("micro AP", 1.0),
        ("statAP", 1.0),
        ("ERR@2", 7 / 8 + 1 / 8 * 7 / 8 / 2),
        ("Swaps@10", None),
    ],
)
def test_the_range_of_a_measure(name, expected):
    measure = parse_measure(name)
    found = largest_value(measure, grade_gains(measure, [0.0, 1.0, 2.0, 3.0], 1))
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-12))


def test_judged_at_k_is_that_of_the_evaluator_and_an_empty_topic_counts_nothing():
    ranks = from_dense(np.array([[1, 2, 3, 0, 1, 2], [3, 2, 1, 1, 0, 0]]))
    topic = np.array([0, 0, 0, 1, 1, 1])
    is_judged = np.array([True, False, True, False, True, False])
    shares = judged_share(ranks, 2, topic, 2, is_judged)
    assert shares.tolist() == [0.5, 0.25]
    assert judged_share(ranks, 1, topic, 3, is_judged).tolist() == pytest.approx([2 / 3, 1 / 3])
