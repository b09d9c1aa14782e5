"""Expected average precision: fixtures by hand, the exact form beside enumeration, Theorem 1."""

from itertools import product

import numpy as np
import pytest

from analytics.lowcost.expected import exact_expected_ap, expected_ap, expected_map
from sampling.experts import RankedPool

NOT = np.inf


def enumeration(pool, p):
    """The mean of AP over all 2^n ways the documents may turn out."""
    mean = np.zeros(pool.n_runs)
    for outcome in product((0, 1), repeat=pool.n_documents):
        x = np.array(outcome)
        chance = np.prod(np.where(x == 1, p, 1 - p))
        if x.any():
            mean += chance * np.array([average_precision(ranks, x) for ranks in pool.ranks])
    return mean


def average_precision(ranks, x):
    total = 0.0
    for document in np.flatnonzero(x):
        if np.isfinite(ranks[document]):
            total += np.sum(x[ranks <= ranks[document]]) / ranks[document]
    return total / x.sum()


def random_pool(rng, n_runs, n_documents):
    ranks = np.full((n_runs, n_documents), NOT)
    for run in range(n_runs):
        size = int(rng.integers(1, n_documents + 1))
        ranks[run, rng.permutation(n_documents)[:size]] = np.sort(rng.permutation(2 * size)[:size]) + 1
    return RankedPool.of(ranks)


@pytest.mark.parametrize(
    ("ranks", "p", "printed", "exact"),
    [
        ([1, 2, 3], [0.8, 0.4, 0.6], 0.888889, 0.82),
        ([1, 2, NOT, NOT], [0.8, 0.4, 0.6, 0.7], 0.464, 0.458533),
        ([1, 2, 3], [1, 0, 1], 5 / 6, 5 / 6),  # all judged
        ([2, 1, 3], [0, 0, 0], 0.0, 0.0),
        ([1, 2], [1, 1], 1.0, 1.0),
        ([NOT, 1], [1, 0], 0.0, 0.0),
    ],
)
def test_fixtures(ranks, p, printed, exact):
    pool = RankedPool.of([ranks])
    assert expected_ap(pool, p) == pytest.approx([printed], abs=5e-7)
    assert exact_expected_ap(pool, p) == pytest.approx([exact], abs=5e-7)


@pytest.mark.parametrize("n_documents", range(1, 11))
def test_the_exact_expectation_is_that_of_all_outcomes(n_documents):
    rng = np.random.default_rng(n_documents)
    pool = random_pool(rng, 4, n_documents)
    p = rng.random(n_documents)
    p[rng.random(n_documents) < 0.3] = rng.integers(0, 2)  # some are judged
    assert exact_expected_ap(pool, p) == pytest.approx(enumeration(pool, p), abs=1e-12)


@pytest.mark.parametrize("mass", [0.5, 5, 50, 300, 1500])
def test_the_nodes_are_enough_where_there_are_fewer_than_half_the_documents(mass):
    n_documents = 2000
    rng = np.random.default_rng(3)
    p = rng.random(n_documents)
    p = np.clip(p * mass / p.sum(), 0, 1)
    pool = RankedPool.of([rng.permutation(n_documents) + 1.0])
    # Of R relevant documents 1/R is a mean over t as well: a check by simulation, to 4 standard errors.
    outcomes = rng.random((400, n_documents)) < p
    values = [average_precision(pool.ranks[0], x.astype(int)) if x.any() else 0.0 for x in outcomes]
    error = np.std(values) / 20
    assert exact_expected_ap(pool, p)[0] == pytest.approx(np.mean(values), abs=4 * error + 1e-9)


@pytest.mark.parametrize(("mass", "excess"), [(1, 0.679), (5, 0.101), (50, 0.0136)])
def test_the_printed_form_is_too_high_by_about_one_over_the_mass(mass, excess):
    pool = RankedPool.of([np.arange(1.0, 201)])
    p = np.full(200, mass / 200)
    ratio = expected_ap(pool, p)[0] / exact_expected_ap(pool, p)[0] - 1
    assert ratio == pytest.approx(excess, rel=0.005)


@pytest.mark.parametrize("expectation", [expected_ap, exact_expected_ap])
def test_the_likelier_of_two_documents_first_never_lowers_the_expectation(expectation):
    """Theorem 1: two runs that differ in the places of two documents alone."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        n = int(rng.integers(2, 13))
        p, order = rng.random(n), rng.permutation(n) + 1.0
        first, second = rng.choice(n, 2, replace=False)
        better = order.copy()
        if (p[first] > p[second]) != (order[first] < order[second]):
            better[[first, second]] = order[[second, first]]
        worse = better.copy()
        worse[[first, second]] = better[[second, first]]
        high, low = expectation(RankedPool.of([better, worse]), p)
        assert high >= low - 1e-13


def test_three_documents_have_the_values_of_average_precision_that_they_can_have():
    pool = np.array([1.0, 2.0, 3.0])
    values = {
        round(average_precision(pool, np.array(x)), 9) if any(x) else 0.0 for x in product((0, 1), repeat=3)
    }
    # The paper prints 5/12 in the place of 7/12.
    assert sorted(values) == pytest.approx([0, 1 / 3, 1 / 2, 7 / 12, 5 / 6, 1])


def test_a_gap_of_the_ranks_is_a_document_outside_the_pool():
    pool = RankedPool.of([[2.0, 4.0]])
    assert exact_expected_ap(pool, [1, 1]) == pytest.approx([0.5])
    assert expected_ap(pool, [1, 1]) == pytest.approx([0.5])


def test_the_mean_over_topics():
    assert expected_map([np.array([0.2, 0.4]), np.array([0.4, 0.0])]) == pytest.approx([0.3, 0.2])
    with pytest.raises(ValueError, match="at least 1, got 0"):
        expected_map([])


@pytest.mark.parametrize("p", [[0.5, -0.1], [0.5, 1.5], [0.5, np.nan], [0.5]])
@pytest.mark.parametrize("expectation", [expected_ap, exact_expected_ap])
def test_what_is_no_probability_is_refused(expectation, p):
    with pytest.raises(ValueError, match="probability must"):
        expectation(RankedPool.of([[1, 2]]), p)
