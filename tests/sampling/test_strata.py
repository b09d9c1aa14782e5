import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling.draws import permanent_random_numbers
from sampling.strata import stratified_pareto_draw, stratified_probabilities, topic_counts

TOPIC = np.repeat([0, 1, 2], [6, 4, 5])


def counts_by_scaling(totals, lower, upper, count):
    """Return the exact real shares min(upper, max(lower, c total)) in rational arithmetic, by trying every bend."""
    totals = [Fraction(float(total)) for total in totals]
    bends = sorted(
        {
            Fraction(b) / t
            for t, ends in zip(totals, zip(lower, upper, strict=True), strict=True)
            for b in ends
        }
    )

    def shares(c):
        return [
            min(Fraction(u), max(Fraction(b), c * t)) for t, b, u in zip(totals, lower, upper, strict=True)
        ]

    for left, right in itertools.pairwise(bends):
        low, high = sum(shares(left)), sum(shares(right))
        if low <= count <= high:
            c = left if low == high else left + (count - low) / (high - low) * (right - left)
            return shares(c)
    return shares(bends[0])


def test_counts_are_in_proportion_to_the_summed_sizes_of_the_topics():
    # Totals 12, 6, 6: of 8 judgments 4, 2 and 2.
    assert topic_counts([2.0] * 6 + [1.5] * 4 + [1.2] * 5, TOPIC, 8).tolist() == [4, 2, 2]


def test_fractions_are_settled_by_largest_remainder_and_ties_by_the_earlier_topic():
    # Totals 6, 4, 5 of 15: 9 judgments are 3.6, 2.4, 3.0.
    assert topic_counts(np.ones(15), TOPIC, 9).tolist() == [4, 2, 3]
    # Three equal topics, 7 judgments: 2.33 each.
    assert topic_counts(np.ones(12), np.repeat([0, 1, 2], 4), 7).tolist() == [3, 2, 2]


def test_no_topic_gets_fewer_than_two_nor_more_than_its_items_with_a_size():
    sizes = np.array([100.0] * 6 + [1e-9] * 4 + [1.0, 0, 0, 0, 0])
    assert topic_counts(sizes, TOPIC, 8).tolist() == [5, 2, 1]
    assert topic_counts(sizes, TOPIC, 10).tolist() == [6, 3, 1]
    assert topic_counts(sizes, TOPIC, 8, least=1).tolist() == [6, 1, 1]


def test_a_topic_without_sizes_is_not_judged():
    assert topic_counts([1.0, 1.0, 0.0, 1.0, 1.0], [0, 0, 1, 3, 3], 4).tolist() == [2, 0, 0, 2]


def test_a_budget_larger_than_the_pool_judges_every_item_that_matters():
    sizes = [1.0, 2.0, 0.0, 5.0]
    assert topic_counts(sizes, [0, 0, 0, 1], 1000).tolist() == [2, 1]
    assert stratified_probabilities(sizes, [0, 0, 0, 1], 1000).tolist() == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("sizes", "topic", "count", "options", "reason"),
    [
        (
            np.ones(15),
            TOPIC,
            5,
            {},
            r"at least 6, 2 judgments \(or all there are\) in each of 3 topics, got 5",
        ),
        (np.ones(15), TOPIC, 0, {}, "at least 6"),
        (np.ones(15), TOPIC, 9.5, {}, "count must be a whole number, got 9.5"),
        (np.zeros(15), TOPIC, 9, {}, "at least 1 size must be positive"),
        (np.full(15, np.nan), TOPIC, 9, {}, r"sizes must be within \[0, 1e\+100\], got nan"),
        (-np.ones(15), TOPIC, 9, {}, "got -1"),
        (np.ones(15), TOPIC[:3], 9, {}, "topic_index must be 15 integers"),
        (np.ones(15), TOPIC * 1.0, 9, {}, "topic_index must be 15 integers, got float64"),
        (np.ones(15), TOPIC - 1, 9, {}, "topic_index must be at least 0, got -1"),
        (np.ones(15), TOPIC, 9, {"least": 0}, "least must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_shared_out_is_refused_by_name(sizes, topic, count, options, reason):
    with pytest.raises(ValueError, match=reason):
        topic_counts(sizes, topic, count, **options)


ITEMS = st.lists(
    st.tuples(st.integers(0, 4), st.one_of(st.just(0.0), st.floats(1e-12, 1e12))), min_size=1, max_size=40
).filter(lambda items: any(size for _, size in items))


@settings(max_examples=200, deadline=None)
@given(ITEMS, st.integers(0, 60))
def test_counts_are_the_exact_bounded_shares_rounded_by_less_than_one(items, more):
    topic, sizes = (np.array(column) for column in zip(*items, strict=True))
    n_topics = topic.max() + 1
    most = np.bincount(topic[sizes > 0], minlength=n_topics)
    lower = np.minimum(2, most)
    count = int(lower.sum()) + more
    counts = topic_counts(sizes, topic, count)
    assert counts.sum() == min(count, most.sum())
    assert np.all((counts >= lower) & (counts <= most))
    if count < most.sum():
        known = most > 0
        totals = np.bincount(topic, weights=sizes, minlength=n_topics)
        exact = counts_by_scaling(totals[known], lower[known].tolist(), most[known].tolist(), count)
        assert np.all(np.abs(counts[known] - np.array([float(share) for share in exact])) < 1 + 1e-6)


@settings(max_examples=100, deadline=None)
@given(ITEMS, st.integers(0, 30), st.integers(0, 2**32))
def test_the_draw_has_exactly_the_counts_of_the_topics_and_certain_items_are_in(items, more, seed):
    topic, sizes = (np.array(column) for column in zip(*items, strict=True))
    n_topics = topic.max() + 1
    count = int(np.minimum(2, np.bincount(topic[sizes > 0])).sum()) + more
    pi = stratified_probabilities(sizes, topic, count)
    counts = topic_counts(sizes, topic, count)
    assert np.bincount(topic, weights=pi, minlength=n_topics) == pytest.approx(counts, abs=1e-7)
    numbers = permanent_random_numbers([str(t) for t in topic], [str(i) for i in range(topic.size)], seed)
    drawn = stratified_pareto_draw(pi, numbers, topic)
    assert np.bincount(topic[drawn], minlength=n_topics).tolist() == counts.tolist()
    assert drawn.tolist() == sorted(set(drawn.tolist()))
    assert set(np.flatnonzero(pi == 1.0)) <= set(drawn.tolist())
    assert np.all(pi[drawn] > 0)


def test_items_of_a_topic_need_not_stand_together():
    topic, sizes = np.array([1, 0, 1, 0, 1, 0]), np.array([1.0, 2, 3, 4, 5, 6])
    order = np.argsort(topic, kind="stable")
    apart, together = (
        stratified_probabilities(sizes, topic, 4),
        stratified_probabilities(sizes[order], topic[order], 4),
    )
    assert apart[order].tolist() == together.tolist()


def test_equal_sizes_make_a_simple_random_sample_within_each_topic():
    topic, pi = np.array([0, 0, 0, 1, 1, 1]), np.full(6, 2 / 3)
    drawn = [
        tuple(stratified_pareto_draw(pi, np.array([*first, *second]) / 4, topic))
        for first in itertools.permutations([1, 2, 3])
        for second in itertools.permutations([1, 2, 3])
    ]
    pairs = list(itertools.combinations(range(3), 2))
    samples = [
        (*first, *(3 + item for item in second)) for first, second in itertools.product(pairs, repeat=2)
    ]
    assert [drawn.count(sample) for sample in samples] == [4] * 9


def test_stratifying_an_absolute_value_by_topic_takes_out_the_variance_between_topics():
    """Two topics whose items are worth 1 and 3: by topic every sample gives the same total, without it none does."""
    value, topic = np.array([1.0] * 4 + [3.0] * 4), np.repeat([0, 1], 4)
    rng = np.random.default_rng(1)
    totals, unstratified = [], []
    for _ in range(50):
        numbers = rng.uniform(0.001, 0.999, 8)
        by_topic = stratified_pareto_draw(np.full(8, 0.5), numbers, topic)
        in_all = stratified_pareto_draw(np.full(8, 0.5), numbers, np.zeros(8, dtype=np.int64))
        totals.append((value[by_topic] / 0.5).sum())
        unstratified.append((value[in_all] / 0.5).sum())
    assert set(totals) == {16.0}
    assert len(set(unstratified)) > 1


def test_probabilities_that_are_no_whole_number_in_a_topic_are_refused():
    with pytest.raises(ValueError, match=r"of topic 1 must sum to a whole number, got 0\.75"):
        stratified_pareto_draw([1.0, 0.5, 0.25], [0.1, 0.2, 0.3], [0, 1, 1])
    with pytest.raises(ValueError, match="prn must have 3 items, got 2"):
        stratified_pareto_draw([1.0, 0.5, 0.5], [0.1, 0.2], [0, 1, 1])


def test_a_topic_with_nothing_to_draw_is_passed_over():
    assert stratified_pareto_draw([0.0, 0.0, 1.0], [0.1, 0.2, 0.3], [0, 0, 1]).tolist() == [2]
    assert stratified_pareto_draw([0.0], [0.1], [0]).tolist() == []
