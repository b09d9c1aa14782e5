"""nDCG and AP: what few judgments cannot answer is refused by name, and every other answer is finite."""

import numpy as np
import pytest
from audits import corrected_labels, plain_labels
from hypothesis import given, settings
from hypothesis import strategies as st
from ratio_samples import AP, GAINS, NDCG, sampled

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.one_step_limits import AuditSize, refusal_by_size
from analytics.estimation.pseudolabels import census
from analytics.estimation.ratios import ratio_estimates
from sampling.measures.registry import parse_ratio


def test_a_mean_over_topics_from_few_judgments_is_refused_with_the_ratio_of_sums_instead():
    rng = np.random.default_rng(16)
    ranks, labels, _ = sampled(rng, 12, 300, 0.1)
    refused = ratio_estimates(parse_ratio("nDCG@50"), labels, ranks, seed=1)
    micro = ratio_estimates(parse_ratio("micro nDCG@50"), labels, ranks, seed=1)
    for no, instead in zip(refused, micro, strict=True):
        assert isinstance(no, Refusal)
        assert isinstance(instead, Estimate)
        assert "about 100 a topic or 20% of the pool are needed, and some in every topic" in no.reason
        assert f"the ratio of the sums over topics, is {instead.value:.4f} [{instead.low:.4f}" in no.reason
    n = labels.judged.size
    assert refused[0].needed == 720 - n


def test_a_topic_of_which_nothing_is_known_has_no_mean():
    rng = np.random.default_rng(17)
    topic = np.repeat(np.arange(5), 20)
    judged = np.flatnonzero(topic != 3)
    labels = plain_labels(
        prediction=np.full(100, 0.3),
        topic_index=topic,
        n_topics=5,
        judged=judged,
        draw_probability=np.full(80, 0.8),
        label=rng.integers(0, 2, size=80),
    )
    ranks = np.tile(np.arange(1, 21), 5)
    refused = ratio_estimates(AP, labels, ranks, seed=1)[0]
    assert isinstance(refused, Refusal)
    assert refused.needed == 1
    assert isinstance(ratio_estimates(parse_ratio("micro AP"), labels, ranks, seed=1)[0], Estimate)


def test_a_mean_over_topics_without_a_prediction_is_refused():
    rng = np.random.default_rng(23)
    ranks, labels, _ = sampled(rng, 6, 60, 0.8, f=np.zeros(360))
    refused = ratio_estimates(AP, labels, ranks, seed=1)
    micro = ratio_estimates(parse_ratio("micro AP"), labels, ranks, seed=1)
    for no, instead in zip(refused, micro, strict=True):
        assert isinstance(no, Refusal)
        assert "the mean of AP over topics needs a prediction of what nobody judged" in no.reason
        assert f"is {instead.value:.4f} [" in no.reason


@pytest.mark.parametrize(("prediction", "enough"), [(0.1, 8), (0.0, 30)])
def test_a_ratio_of_sums_needs_more_when_nothing_is_predicted(prediction, enough):
    topic = np.repeat(np.arange(4), 1000)
    ranks = np.tile(np.arange(1, 1001), 4)
    for per_topic in (enough - 2, enough):
        judged = np.flatnonzero(ranks <= per_topic)
        labels = plain_labels(
            prediction=np.full(4000, prediction),
            topic_index=topic,
            n_topics=4,
            judged=judged,
            draw_probability=np.full(judged.size, 0.5),
            label=np.arange(judged.size) % 2,
        )
        found = ratio_estimates(parse_ratio("micro AP"), labels, ranks, seed=1, replicates=100)[0]
        assert isinstance(found, Estimate) == (per_topic == enough)
        if isinstance(found, Refusal):
            assert f"about {enough} a topic" in found.reason
            assert found.needed == 8


def test_few_judged_items_that_a_run_ranks_are_refused_and_below_50_warned_of():
    rng = np.random.default_rng(18)
    topic = np.repeat(np.arange(2), 40)
    judged = np.arange(80)
    labels = plain_labels(
        prediction=np.full(80, 0.3),
        topic_index=topic,
        n_topics=2,
        judged=judged,
        draw_probability=np.full(80, 0.9),
        label=rng.integers(0, 2, size=80),
    )
    within = np.tile(np.arange(1, 41), 2)
    nine = np.where(np.arange(80) < 9, within, 0)
    few, many, nothing = ratio_estimates(
        AP, labels, [nine, within, np.zeros(80, dtype=int)], seed=1, pairs=[]
    )
    assert few.reason == "9 judged items with non-zero weight; at least 10 are needed"
    assert (nothing.reason, nothing.needed) == (
        "0 judged items with non-zero weight; at least 10 are needed",
        10,
    )
    assert (many.n, "coverage" in many.warning) == (80, False)
    ten = ratio_estimates(parse_ratio("AP@20"), labels, within, seed=1)[0]
    assert (ten.n, "only 40 judged items" in ten.warning) == (40, True)


def test_where_nothing_relevant_is_known_there_is_nothing_to_divide_by():
    topic = np.repeat(np.arange(2), 20)
    labels = census(topic_index=topic, n_topics=2, grades=np.zeros(40, dtype=int), gains=[0, 1])
    ranks = np.tile(np.arange(1, 21), 2)
    assert "nothing relevant" in ratio_estimates(parse_ratio("micro nDCG"), labels, ranks, seed=1)[0].reason
    assert ratio_estimates(NDCG, labels, ranks, seed=1)[0].value == 0


def test_runs_that_are_the_same_inside_the_cutoff_differ_by_exactly_nothing():
    rng = np.random.default_rng(19)
    ranks, labels, _ = sampled(rng, 6, 40, 0.5)
    ranks[1] = np.where(ranks[0] <= 10, ranks[0], 51 - ranks[0])
    same = ratio_estimates(parse_ratio("nDCG@10"), labels, ranks, seed=1)[2]
    assert (same.value, same.standard_error, same.low, same.high) == (0, 0, 0, 0)
    assert "the same inside the cutoff" in same.warning
    assert ratio_estimates(parse_ratio("nDCG@20"), labels, ranks, seed=1)[2].standard_error > 0


@pytest.mark.parametrize(
    ("ranks", "changed", "reason"),
    [
        ([[1.0, 2.0]], {}, "ranks must be integers"),
        ([[1, 2, 3]], {}, r"ranks must have shape \(runs, 2\), got \(1, 3\)"),
        (np.zeros((0, 2), dtype=int), {}, r"ranks must have shape \(runs, 2\), got \(0, 2\)"),
        ([[-1, 2]], {}, "ranks must be at least 0"),
        ([[1, 1]], {}, "one item at a rank of a topic, got two at rank 1"),
        ([[1, 2]], {"replicates": 50}, "replicates must be at least 100, got 50"),
        ([[1, 2]], {"pairs": [(0, 1)]}, r"pairs must name runs within \[0, 0\]"),
    ],
)
def test_impossible_input_is_refused_by_name(ranks, changed, reason):
    labels = census(topic_index=[0, 0], n_topics=1, grades=[1, 0], gains=[0, 1])
    with pytest.raises(ValueError, match=reason):
        ratio_estimates(AP, labels, ranks, seed=1, **changed)


def test_ap_of_graded_labels_is_refused():
    labels = census(topic_index=[0, 0], n_topics=1, grades=[2, 0], gains=GAINS)
    with pytest.raises(ValueError, match=r"AP needs labels of one stair of step 1, got steps \[1.0, 2.0\]"):
        ratio_estimates(AP, labels, [[1, 2]], seed=1)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_is_judged_the_answer_is_a_finite_number_or_words(data):
    n_topics = data.draw(st.integers(1, 4))
    topic = np.array(data.draw(st.lists(st.integers(0, n_topics - 1), min_size=1, max_size=30)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    judged = np.flatnonzero(rng.random(topic.size) < data.draw(st.sampled_from([0.0, 0.5, 1.0])))
    ranks = np.zeros((2, topic.size), dtype=np.int64)
    for row in ranks:
        for t in range(n_topics):
            mine = np.flatnonzero(topic == t)
            row[mine] = (rng.permutation(mine.size) + 1) * (rng.random() < 0.8)
    labels = plain_labels(
        prediction=rng.uniform(size=topic.size) * data.draw(st.sampled_from([0.0, 1.0])),
        topic_index=topic,
        n_topics=n_topics,
        judged=judged,
        draw_probability=rng.uniform(0.05, 1, size=judged.size),
        label=rng.integers(0, 2, size=judged.size) * data.draw(st.integers(0, 1)),
    )
    name = data.draw(st.sampled_from(["AP", "micro AP@3", "nDCG@2", "micro nDCG"]))
    for one in ratio_estimates(parse_ratio(name), labels, ranks, seed=1, replicates=100):
        if isinstance(one, Refusal):
            assert one.reason
        else:
            assert np.isfinite([one.value, one.standard_error, one.low, one.high]).all()


def test_a_share_of_a_small_pool_is_not_enough():
    rng = np.random.default_rng(20)
    ranks, labels, _ = sampled(rng, 12, 10, 0.3)
    assert labels.counted.sum() > 0.2 * 120
    for name in ("nDCG@10", "micro nDCG@10"):
        refused = ratio_estimates(parse_ratio(name), labels, ranks, seed=1)[0]
        assert isinstance(refused, Refusal)
        assert "about 8 a topic or 50% of the pool are needed" in refused.reason
        assert refused.needed >= 60 - labels.counted.sum()


def test_below_100_known_items_the_interval_is_wider_than_the_normal_one():
    rng = np.random.default_rng(21)
    ranks, labels, _ = sampled(rng, 4, 60, 0.6)
    found = ratio_estimates(parse_ratio("AP@20"), labels, ranks, seed=1)[0]
    assert found.n < 100
    assert found.degrees_of_freedom == found.n - 1
    everything = ratio_estimates(AP, labels, ranks, seed=1)[0]
    assert everything.n >= 100
    assert everything.high - everything.value == pytest.approx(1.959964 * everything.standard_error, rel=1e-6)


def audited_in_part(chance, *, with_prediction=True, spared=0):
    """Return labels of a whole pool, 8 topics of 100 documents, audited with these chances, but the first ones not."""
    rng = np.random.default_rng(31)
    n = 800
    grade, audited = rng.integers(0, 2, size=n), (rng.random(n) < chance) & (np.arange(n) >= spared)
    after = {"after": np.full((1, n), 0.4)} if with_prediction else {}
    return corrected_labels(
        prediction=np.full(n, 0.4),
        topic_index=np.repeat(np.arange(8), 100),
        n_topics=8,
        judged=np.arange(n),
        draw_probability=np.ones(n),
        bronze_class=grade,
        audited=audited,
        gold_grade=grade,
        audit_probability=chance,
        gains=[0, 1],
        **after,
    )


def test_an_audit_of_few_documents_and_many_ranks_counts_as_evenly_spread_labels():
    even, uneven = np.full(800, 0.25), np.tile(np.r_[np.full(25, 0.85), np.full(75, 0.05)], 8)
    assert uneven.mean() == pytest.approx(even.mean())
    ranks = np.tile(np.r_[np.arange(1, 26), np.zeros(75, dtype=np.int64)], (2, 8))
    assert audited_in_part(even).spread_evenly == pytest.approx(200)
    assert audited_in_part(uneven).spread_evenly == pytest.approx(800 / (0.25 / 0.85 + 0.75 / 0.05))
    given = ratio_estimates(parse_ratio("nDCG@10"), audited_in_part(even), ranks, seed=1)[0]
    refused = ratio_estimates(parse_ratio("nDCG@10"), audited_in_part(uneven), ranks, seed=1)[0]
    assert isinstance(given, Estimate)
    assert isinstance(refused, Refusal)
    assert "spread too unevenly for the mean of nDCG@10 over topics" in refused.reason
    assert "they count as 6.5% of it, and 20% are needed; audit evenly" in refused.reason
    # The control: a release without predictions knows no such limit.
    before = audited_in_part(uneven, with_prediction=False)
    assert isinstance(ratio_estimates(parse_ratio("nDCG@10"), before, ranks, seed=1)[0], Estimate)


def test_gold_that_is_enough_by_number_and_unevenly_spread_is_said_to_be_so():
    uneven = np.tile(np.r_[np.full(25, 0.85), np.full(75, 0.05)], 8)
    ranks = np.tile(np.r_[np.arange(1, 26), np.zeros(75, dtype=np.int64)], (2, 8))
    measure, labels = parse_ratio("nDCG@10"), audited_in_part(uneven)
    in_advance = refusal_by_size(measure, AuditSize(float(uneven.sum()), 800, 8, 320))
    assert in_advance.needed == 0
    found = ratio_estimates(measure, labels, ranks, seed=1, few_labels=[in_advance] * 3)
    for refused in found[:2]:
        assert refused.reason.startswith("nDCG@10 in one step needs 50 topics, got 8; from 20% of the pool")
        assert "there are enough by their number, so audit evenly" in refused.reason
        assert "Here: audited items that are spread too unevenly for the mean of nDCG@10" in refused.reason
        assert "0 gold labels" not in refused.reason
        assert refused.needed > 0
    # The control: where labels are missing in advance, their number is all that is said.
    few = refusal_by_size(measure, AuditSize(100, 800, 8, 320))
    told = ratio_estimates(measure, labels, ranks, seed=1, few_labels=[few] * 3)[0]
    assert "60 gold labels are missing" in told.reason
    assert "Here:" not in told.reason
    assert told.needed == 60


def test_a_topic_without_gold_is_named_as_what_is_missing():
    even = np.full(800, 0.25)
    ranks = np.tile(np.r_[np.arange(1, 26), np.zeros(75, dtype=np.int64)], (2, 8))
    labels = audited_in_part(even, spared=100)
    refused = ratio_estimates(parse_ratio("nDCG@10"), labels, ranks, seed=1)[0]
    assert refused.reason.startswith(
        "1 of 8 topics have no audited item: the mean of nDCG@10 over topics needs some in each. Its micro form"
    )
    assert refused.needed == 1
