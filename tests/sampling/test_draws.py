import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.papers.draws import draw_with_replacement, mixture_probability
from sampling.designs import inclusion_probabilities
from sampling.draws import pareto_draw, permanent_random_numbers, poisson_draw

PI = np.array([0.9, 0.5, 0.25, 1.0])
Y = np.array([1.0, -2.0, 3.0, 0.5])


def cells(pi):
    """Return for every subset of four items random numbers that select it, and its probability."""
    for chosen in itertools.product([True, False], repeat=pi.size):
        low, high = pi / 2, (1 + pi) / 2
        probability = np.prod(np.where(chosen, pi, 1 - pi))
        if probability > 0:
            yield np.where(chosen, low, high), probability, np.flatnonzero(chosen)


def test_a_poisson_draw_selects_exactly_the_items_below_their_probability():
    for numbers, _, chosen in cells(PI):
        assert poisson_draw(PI, numbers).tolist() == chosen.tolist()


def test_over_all_samples_the_expected_number_is_the_budget_and_horvitz_thompson_is_exact():
    expected_count = expected_total = expected_square = all_probability = 0.0
    for numbers, probability, _ in cells(PI):
        drawn = poisson_draw(PI, numbers)
        total = (Y[drawn] / PI[drawn]).sum()
        all_probability += probability
        expected_count += probability * drawn.size
        expected_total += probability * total
        expected_square += probability * total**2
    assert all_probability == pytest.approx(1, abs=1e-12)
    assert expected_count == pytest.approx(PI.sum(), abs=1e-12)
    assert expected_total == pytest.approx(Y.sum(), abs=1e-12)
    # sum (1 - pi)/pi y^2 = 1/9 + 4 + 27 + 0
    assert expected_square - expected_total**2 == pytest.approx(1 / 9 + 31, abs=1e-9)


def test_certain_items_are_always_drawn_and_impossible_ones_never():
    edge = np.array([np.nextafter(0, 1), np.nextafter(1, 0)])
    assert poisson_draw([1.0, 1.0], edge).tolist() == [0, 1]
    assert poisson_draw([0.0, 0.0], edge).tolist() == []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=30), st.integers(0, 2**64 - 1))
def test_a_larger_budget_keeps_every_item_already_drawn(sizes, seed):
    numbers = permanent_random_numbers(["t"] * len(sizes), [str(i) for i in range(len(sizes))], seed)
    small = poisson_draw(inclusion_probabilities(sizes, 0.5), numbers)
    large = poisson_draw(inclusion_probabilities(sizes, 1.5), numbers)
    assert set(small) <= set(large)


def test_two_draws_with_one_seed_are_together_the_draw_with_the_larger_probabilities():
    rng = np.random.default_rng(3)
    numbers = permanent_random_numbers(["t"] * 500, [str(i) for i in range(500)], 9)
    first, second = rng.random(500), rng.random(500)
    union = set(poisson_draw(first, numbers)) | set(poisson_draw(second, numbers))
    assert union == set(poisson_draw(np.maximum(first, second), numbers))


# ---- permanent random numbers


def test_numbers_are_those_that_openssl_computes():
    """K = openssl mac -macopt hexkey:2a00000000000000 -macopt size:16 -macopt custom:draw BLAKE2BMAC (of the topic);
    then openssl mac -macopt hexkey:$K -macopt size:8 SIPHASH (of the document)."""
    topics, docs = ["301", "é", "301"], ["FBIS3-1", "ü", "clueweb09-en0000-00-00000"]
    numbers = permanent_random_numbers(topics, docs, 42)
    macs = [bytes.fromhex(mac) for mac in ("E9DAE26BD2012FC3", "7B5744762251776C", "147B098E1E658E10")]
    assert numbers.tolist() == [((int.from_bytes(mac, "little") >> 12) + 0.5) / 2**52 for mac in macs]


def test_a_pairs_number_does_not_depend_on_its_neighbours():
    topics, docs = ["1", "1", "2", "2"], ["a", "b", "a", "c"]
    numbers = permanent_random_numbers(topics, docs, 7)
    order = [3, 0, 2]
    again = permanent_random_numbers([topics[i] for i in order], [docs[i] for i in order], 7)
    assert again.tolist() == numbers[order].tolist()


def test_no_two_pairs_share_a_number_because_their_ids_run_together():
    topics = ["1", "12", "", "a\x00", "a", "a"]
    docs = ["23", "3", "123", "b", "\x00b", "b"]
    assert len(set(permanent_random_numbers(topics, docs, 0).tolist())) == 6


@pytest.mark.parametrize("other", [(2, "draw"), (1, "folds"), (0, "draw"), (1 + 2**63, "draw")])
def test_seeds_and_purposes_give_independent_numbers(other):
    topics, docs = ["t"] * 4000, [str(i) for i in range(4000)]
    first, second = permanent_random_numbers(topics, docs, 1), permanent_random_numbers(topics, docs, *other)
    # Standard error of a correlation of 4000 independent pairs: .016; of a joint tail of .01 each: .0016.
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.08
    assert np.mean((first < 0.1) & (second < 0.1)) == pytest.approx(0.01, abs=0.007)
    assert np.intersect1d(first, second).size == 0


def test_topics_give_independent_numbers_to_the_same_documents():
    docs = [str(i) for i in range(4000)]
    numbers = permanent_random_numbers(["1"] * 4000 + ["2"] * 4000, docs * 2, 1)
    assert abs(np.corrcoef(numbers[:4000], numbers[4000:])[0, 1]) < 0.08


def test_numbers_of_regular_ids_are_uniform():
    numbers = permanent_random_numbers(["t"] * 20000, [f"doc-{i:05d}" for i in range(20000)], 5)
    assert numbers.min() > 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    # Chi-square of 19 degrees of freedom: 51.9 is passed once in 10^4.
    assert ((counts - 1000) ** 2 / 1000).sum() < 51.9


@pytest.mark.parametrize(("docs", "seed"), [(["a"], -1), (["a"], 2**64), (["a", "b"], 0)])
def test_impossible_seeds_and_lengths_are_refused(docs, seed):
    with pytest.raises(ValueError, match="must"):
        permanent_random_numbers(["1"], docs, seed)


@pytest.mark.parametrize("purpose", ["", "a" * 17, "a\x00"])
def test_a_purpose_that_could_be_taken_for_another_is_refused(purpose):
    with pytest.raises(ValueError, match="purpose must be 1 to 16 bytes without NUL"):
        permanent_random_numbers(["1"], ["a"], 0, purpose)


def test_missing_ids_and_ids_that_are_no_strings_are_refused():
    with pytest.raises(ValueError, match="doc_ids must not be missing, got 1 missing"):
        permanent_random_numbers(["1"], [None], 0)
    with pytest.raises(ValueError, match="topic_ids must be strings"):
        permanent_random_numbers(pl.Series([1]), ["a"], 0)


def test_no_items_have_no_numbers():
    assert permanent_random_numbers([], [], 0).size == 0


def test_ids_from_object_arrays_and_series_give_the_same_numbers_as_lists():
    topics, docs = ["1", "2"], ["a", "b"]
    arrays = permanent_random_numbers(np.array(topics, dtype=object), np.array(docs, dtype=object), 1)
    series = permanent_random_numbers(pl.Series(topics), pl.Series(docs), 1)
    assert arrays.tolist() == series.tolist() == permanent_random_numbers(topics, docs, 1).tolist()


# ---- Pareto


def test_a_pareto_draw_has_its_exact_size_and_keeps_certain_items():
    rng = np.random.default_rng(2)
    pi = inclusion_probabilities([50, 3, 2, 2, 1, 1, 0], 3)
    for _ in range(200):
        drawn = pareto_draw(pi, rng.uniform(0.001, 0.999, 7), 3)
        assert drawn.size == 3
        assert 0 in drawn
        assert 6 not in drawn


def test_pareto_ranks_by_the_odds_of_number_and_probability():
    # Odds ratios: (.5/.5)/(.6/.4) = .667, (.2/.8)/(.2/.8) = 1, (.1/.9)/(.2/.8) = .444.
    assert pareto_draw([0.6, 0.2, 0.2], [0.5, 0.2, 0.1], 1).tolist() == [2]


def test_equal_ranking_numbers_go_to_the_earlier_items():
    assert pareto_draw([0.5] * 6, [0.3, 0.6, 0.3, 0.3, 0.1, 0.3], 3).tolist() == [0, 2, 4]


def test_equal_probabilities_make_pareto_a_simple_random_sample():
    drawn = [
        tuple(pareto_draw([0.5] * 4, np.array(order) / 5, 2))
        for order in itertools.permutations([1, 2, 3, 4])
    ]
    assert all(drawn.count(pair) == 4 for pair in itertools.combinations(range(4), 2))


def test_pareto_inclusion_of_two_items_is_that_of_its_closed_form():
    """X = U/(1 - U) has density (1 + x)^-2, so P(X_1 < r X_2) = r (r - 1 - log r)/(r - 1)^2; here r = 1/4.

    The target 1/3 is missed by .05 when one of two items is drawn: Pareto keeps its probabilities in large draws only.
    """
    grid = (np.arange(60) + 0.5) / 60
    firsts = [pareto_draw([1 / 3, 2 / 3], [a, b], 1)[0] == 0 for a, b in itertools.product(grid, repeat=2)]
    r = 1 / 4
    assert np.mean(firsts) == pytest.approx(r * (r - 1 - math.log(r)) / (r - 1) ** 2, abs=0.003)


def test_pareto_inclusion_is_close_to_its_target():
    rng = np.random.default_rng(8)
    pi = inclusion_probabilities(np.arange(1, 21), 8)
    counts = np.zeros(20)
    for _ in range(4000):
        counts[pareto_draw(pi, rng.uniform(1e-9, 1 - 1e-9, 20), 8)] += 1
    # Four binomial standard errors are .032; Pareto's own departure is far smaller.
    assert np.abs(counts / 4000 - pi).max() < 0.035


@pytest.mark.parametrize(
    ("pi", "count", "reason"),
    [
        ([0.5, 0.5], 3, "count must be at most 2, the items that can be drawn, got 3"),
        ([1.0, 0.0], 2, "count must be at most 1"),
        ([0.5, 0.5], 0, "count must be at least 1, got 0"),
        ([0.5, 0.6], 1, "must sum to count = 1"),
        ([0.5, 1.5], 2, r"within \[0, 1\], got 1.5"),
    ],
)
def test_a_fixed_size_that_the_probabilities_do_not_give_is_refused(pi, count, reason):
    with pytest.raises(ValueError, match=reason):
        pareto_draw(pi, [0.3, 0.4], count)


@pytest.mark.parametrize("bad", [0.0, 1.0, math.nan, -0.1, 2.0])
def test_numbers_outside_the_open_unit_interval_are_refused(bad):
    with pytest.raises(ValueError, match="prn must be within"):
        poisson_draw([0.5, 0.5], [0.5, bad])


def test_probabilities_and_numbers_must_be_of_the_same_items():
    with pytest.raises(ValueError, match="prn must have 2 items, got 1"):
        poisson_draw([0.5, 0.5], [0.5])


# ---- with replacement


def test_draws_with_replacement_follow_the_design_and_never_leave_its_support():
    drawn = draw_with_replacement([0.0, 0.7, 0.3, 0.0], 10_000, np.random.default_rng(4))
    counts = np.bincount(drawn, minlength=4)
    assert counts[[0, 3]].tolist() == [0, 0]
    # Four binomial standard errors: .018.
    assert counts[1] / 10_000 == pytest.approx(0.7, abs=0.019)


def test_the_same_seed_gives_the_same_draws():
    first = draw_with_replacement([0.5, 0.5], 20, np.random.default_rng(4))
    assert first.tolist() == draw_with_replacement([0.5, 0.5], 20, np.random.default_rng(4)).tolist()


@pytest.mark.parametrize(("q", "n"), [([0.5, 0.4], 5), ([0.5, 0.5], 0), ([1.5, -0.5], 5), ([math.nan, 1], 5)])
def test_draws_from_something_that_is_no_distribution_are_refused(q, n):
    with pytest.raises(ValueError, match="must"):
        draw_with_replacement(q, n, np.random.default_rng(0))


def test_the_balance_heuristic_over_batches_of_fixed_designs_is_unbiased_over_all_samples():
    q = np.array([[0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])
    y = np.array([1.0, -2.0, 5.0])
    mixed = mixture_probability(q, [1, 1])
    mean = sum(
        q[0, i] * q[1, j] * (y[i] / mixed[i] + y[j] / mixed[j]) / 2
        for i, j in itertools.product(range(3), repeat=2)
    )
    assert mean == pytest.approx(4, abs=1e-12)


@pytest.mark.parametrize("counts", [[1], [1, 0], [1, 1, 1], [0.5, 0.5], [1, -1]])
def test_a_balance_heuristic_without_a_count_for_every_batch_is_refused(counts):
    with pytest.raises(ValueError, match="counts must be"):
        mixture_probability([[0.5, 0.5], [0.5, 0.5]], counts)
