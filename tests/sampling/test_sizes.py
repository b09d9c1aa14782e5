import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.designs import naive_design, ranking_design
from experiments.papers.sizes import (
    baseline_contrast,
    ranking_contrast,
    require_support,
)
from sampling.designs import average_run_design, depth_pool, inclusion_probabilities
from sampling.measures.sparse import from_dense
from sampling.sizes import (
    IdenticalSystemsError,
    UnsupportedWeightError,
    distance_from_mean,
)

# ---- runs as entries


def some_weights(seed=1, n_runs=5, n_items=40):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_runs, n_items)) < 0.3, rng.random((n_runs, n_items)), 0.0)


def test_contrasts_and_designs_of_entries_are_those_of_the_whole_table():
    w, u = some_weights(), np.linspace(0.1, 0.9, 40)
    runs = from_dense(w)
    mean = w.mean(axis=0)
    assert ranking_contrast(runs) == pytest.approx(np.sqrt(((w - mean) ** 2).sum(axis=0)), rel=1e-13)
    assert baseline_contrast(runs.rows([0, 3]), w[1]) == pytest.approx(
        np.sqrt((w[0] - w[1]) ** 2 + (w[3] - w[1]) ** 2), rel=1e-13
    )
    assert naive_design(runs, u) == pytest.approx(u * w.sum(axis=0) / (u * w.sum(axis=0)).sum(), rel=1e-13)
    assert average_run_design(runs) == pytest.approx(
        (w / w.sum(axis=1, keepdims=True)).mean(axis=0), rel=1e-13
    )
    assert ranking_design(runs, u).tolist() == ranking_design(w, u).tolist()


def test_support_of_runs_given_as_entries_is_checked_and_its_share_named():
    runs = from_dense(np.array([[0.5, 0.25, 0], [0.5, 0, 0.25]]))
    require_support([1, 0.1, 0.1], runs)
    with pytest.raises(UnsupportedWeightError, match=r"must be 0, got 0.25, 16.667% of all weight"):
        require_support([1, 0.1, 0], runs)
    with pytest.raises(ValueError, match="weights must have 2 items, got 3"):
        require_support([1, 1], runs)


def test_runs_that_are_alike_on_an_item_have_no_contrast_there_although_sums_of_squares_would_find_one():
    w = np.tile([0.1, 0.3, 0.7, 0.9], (7, 1))
    w[0, 3] = 0.8
    one_pass = (w**2).sum(axis=0) - 7 * w.mean(axis=0) ** 2
    assert np.any(one_pass[:3] != 0), "the trap: the shortcut formula calls equal runs different"
    contrast = ranking_contrast(w)
    assert contrast[:3].tolist() == [0, 0, 0]
    # Six at .9 and one at .8: deviations .1/7 six times and .6/7 once.
    assert contrast[3] == pytest.approx(math.sqrt(6 * (0.1 / 7) ** 2 + (0.6 / 7) ** 2), rel=1e-13)


def test_contrasts_of_weights_near_the_smallest_and_the_largest_double_are_neither_lost_nor_infinite():
    w = np.array([[1e-300, 1e100, 1.0], [2e-300, 0.0, 1.0]])
    assert ranking_contrast(w) == pytest.approx(
        [math.sqrt(0.5) * 1e-300, math.sqrt(0.5) * 1e100, 0], rel=1e-12
    )
    assert distance_from_mean(from_dense(w[:, 2:] * 3), squared=True).tolist() == [0]


def test_a_table_of_weights_that_are_no_weights_is_refused():
    with pytest.raises(ValueError, match=r"weights must be within \[0, 1e\+100\], got -1"):
        ranking_contrast([[-1.0], [2.0]])
    with pytest.raises(ValueError, match="at least 1 item"):
        ranking_contrast(np.zeros((2, 0)))
    with pytest.raises(IdenticalSystemsError):
        ranking_contrast(from_dense(np.zeros((2, 3))))


# ---- inclusion probabilities, exactly


def exact_probabilities(sizes, count):
    """Return min(1, c a) in rational arithmetic: certainties out, rest rescaled, until nobody exceeds 1."""
    sizes = [Fraction(size) for size in sizes]
    certain = set()
    while True:
        rest = sum(size for i, size in enumerate(sizes) if i not in certain)
        more = {i for i, s in enumerate(sizes) if i not in certain and (count - len(certain)) * s > rest}
        if not more:
            break
        certain |= more
    return [1.0 if i in certain else float((count - len(certain)) * s / rest) for i, s in enumerate(sizes)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=30), st.data())
def test_probabilities_are_the_exact_ones(sizes, data):
    count = data.draw(st.integers(1, len(sizes) - 1))
    assert inclusion_probabilities(sizes, count) == pytest.approx(
        exact_probabilities(sizes, count), rel=1e-11
    )


def test_certain_items_have_probability_one_to_the_last_bit():
    rng = np.random.default_rng(2)
    for sizes in (
        rng.pareto(0.7, 5000),
        rng.integers(1, 4, 5000).astype(float),
        np.exp(rng.normal(0, 4, 5000)),
    ):
        for count in (3, 700, 2500.5, 4999):
            pi = inclusion_probabilities(sizes, count)
            assert pi.sum() == pytest.approx(count, rel=1e-12)
            assert np.all((pi <= 1) & (pi > 0))
            # Nobody is just below 1 who exceeds a certain item in size.
            assert sizes[pi < 1].max(initial=0) <= sizes[pi == 1].min(initial=np.inf)


# ---- depth pools


#                items 0  1  2  3  4
RANKS = np.array([[1, 2, 3, 0, 0], [2, 0, 1, 3, 0], [0, 0, 4, 0, 1]])
WEIGHTS = np.where(RANKS > 0, 1 / np.maximum(RANKS, 1), 0.0)


def test_a_depth_pool_judges_what_some_run_ranks_within_the_depth_and_says_what_it_leaves_out():
    found = depth_pool(RANKS, WEIGHTS, depth=2)
    assert found.inclusion_probability.tolist() == [1, 1, 1, 0, 1]
    assert found.n_items == 4
    # Run 1 has 1/2 + 1 + 1/3 in all and its third document outside.
    assert found.left_out == pytest.approx([0, (1 / 3) / (11 / 6), 0])


def test_a_depth_pool_leaves_out_what_no_run_returns():
    assert depth_pool([[1, 0]], [[1.0, 0.0]], depth=5).inclusion_probability.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("budget", "depth", "n_items"), [(3, 1, 3), (3.9, 1, 3), (4, 2, 4), (5, 3, 5), (99, 3, 5)]
)
def test_a_budget_buys_the_largest_depth_that_costs_no_more(budget, depth, n_items):
    # Best ranks 1, 2, 1, 3, 1: depth 1 costs 3, depth 2 costs 4, depth 3 all 5.
    found = depth_pool(from_dense(RANKS), from_dense(WEIGHTS), budget=budget)
    assert (found.depth, found.n_items) == (depth, n_items)
    assert found.inclusion_probability.sum() == n_items


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"budget": 2}, "budget must be at least 3, the cost of depth 1, got 2"),
        ({"budget": math.nan}, "budget must be at least 3"),
        ({"depth": 0}, "depth must be at least 1, got 0"),
        ({}, "either a budget or a depth"),
        ({"budget": 3, "depth": 1}, "either a budget or a depth, got 3 and 1"),
    ],
)
def test_a_depth_pool_that_cannot_be_had_is_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        depth_pool(RANKS, WEIGHTS, **options)


@pytest.mark.parametrize(
    ("ranks", "weights", "reason"),
    [
        (-RANKS, WEIGHTS, "ranks must be at least 0"),
        (RANKS * 1.0, WEIGHTS, "ranks must be integers"),
        (RANKS, np.where(WEIGHTS == 1, np.nan, WEIGHTS), "weights must be within"),
        (RANKS, -WEIGHTS, "weights must be within"),
    ],
)
def test_a_depth_pool_of_what_is_no_rank_or_no_weight_is_refused(ranks, weights, reason):
    with pytest.raises(ValueError, match=reason):
        depth_pool(ranks, weights, depth=1)


def test_a_depth_pool_of_other_weights_is_refused_and_an_empty_run_leaves_nothing_out():
    with pytest.raises(ValueError, match=r"shape of ranks, \(3, 5\), got \(2, 5\)"):
        depth_pool(RANKS, WEIGHTS[:2], depth=1)
    assert depth_pool(RANKS, np.zeros((3, 5)), depth=1).left_out.tolist() == [0, 0, 0]
