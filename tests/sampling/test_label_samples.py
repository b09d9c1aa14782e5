import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.label_samples import nested_sample, whole_counts
from sampling.label_samples import (
    effort_probabilities,
    full_probabilities,
    label_counts,
    label_shares,
    topic_probabilities,
)

# Bailey et al. (2008), Table 2, with "not" (grade 0) first: topics A and B
POOL = np.array([[70, 20, 10], [100, 50, 50]])
SHARES = [0.1, 0.3, 0.6]


def test_shares_are_the_papers_for_three_grades_and_go_on_from_there():
    assert label_shares(3) == pytest.approx(SHARES)
    assert label_shares(2) == pytest.approx([1 / 4, 3 / 4])
    assert label_shares(4) == pytest.approx([0.05, 0.15, 0.3, 0.5])
    with pytest.raises(ValueError, match="n_grades must be at least 1, got 0"):
        label_shares(0)


def test_b9_a_grade_with_too_few_documents_is_made_up_for_from_the_top():
    # docs/methods/derivations/bailey.md, section 4: B9, there with the highest grade first
    assert label_counts([70, 20, 1], 9, [1, 3, 5]).tolist() == [1, 7, 1]


def test_the_topic_based_sample_of_table_2_comes_out():
    counts = label_counts(POOL, [10, 20], SHARES)
    assert counts == pytest.approx(np.array([[1, 3, 6], [2, 6, 12]]))
    items = np.repeat(np.arange(6), POOL.ravel())
    pi = topic_probabilities(items // 3, items % 3, 3, 30.0)
    assert np.bincount(items, pi) == pytest.approx([1, 3, 6, 2, 6, 12])


def test_the_effort_based_sample_of_table_2_has_the_papers_margins_and_one_rate_a_label():
    items = np.repeat(np.arange(6), POOL.ravel())
    pi = effort_probabilities(items // 3, items % 3, 3, 30.0)
    assert np.bincount(items % 3, pi) == pytest.approx([3, 9, 18])
    assert pi[items % 3 == 2] == pytest.approx(18 / 60)
    # docs/methods/derivations/bailey.md, section 3, erratum 3: 3 of topic A's ten highly relevant are expected
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
    full = full_probabilities(topic, grade, 3, 30.0)
    # No cell runs out, so both parts are proportional to their size.
    larger = np.maximum(
        topic_probabilities(topic, grade, 3, 30.0), effort_probabilities(topic, grade, 3, 30.0)
    )
    assert full == pytest.approx(larger * 30 / larger.sum())
    assert full.sum() == pytest.approx(30)


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
