"""Buckets: fixtures, probabilities beside an enumeration of every draw and beside many draws, and refusals."""

import math
from collections import Counter, defaultdict
from itertools import combinations, product

import numpy as np
import pytest

from sampling.buckets import Buckets, cut_buckets, rank_prior, run_prior

SIX_DIGITS = 1e-6
RUNS = [[0, 1, 2, 3], [2, 0, 4, 5]]


def test_the_fixtures():
    assert rank_prior(4) == pytest.approx([0.385417, 0.260417, 0.197917, 0.15625], abs=SIX_DIGITS)
    prior = run_prior(RUNS, 6)
    expected = [0.322917, 0.130208, 0.291667, 0.078125, 0.098958, 0.078125]
    assert prior == pytest.approx(expected, abs=SIX_DIGITS)
    buckets = cut_buckets(prior, 2)
    assert buckets.bucket.tolist() == [0, 1, 0, 2, 1, 2]
    assert buckets.bucket_probability == pytest.approx([0.614583, 0.229167, 0.15625], abs=SIX_DIGITS)


def test_the_variance_of_the_number_of_relevant_documents_of_the_fixture():
    """Sum over pairs of x x' / (pi pi') (1 - pi pi' / pi_de), of the Horvitz-Thompson estimate."""
    buckets = Buckets(5, np.array([0, 0, 1, 1, 2]), np.array([0.6, 0.3, 0.1]))
    x, single, joint = np.array([1, 0, 1, 1, 1]), buckets.inclusion_probability, buckets.joint_probability()
    assert single.tolist() == [0.6, 0.6, 0.3, 0.3, 0.1]
    weights = x / single
    dependence = 1 - np.outer(single, single) / joint
    assert weights @ dependence @ weights == pytest.approx(59.444444, abs=SIX_DIGITS)


def every_sample(buckets: Buckets) -> dict[tuple[int, ...], float]:
    """Return the probability of every set of documents, by listing buckets drawn and documents taken."""
    size, chances = buckets.size, buckets.bucket_probability
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for picks in product(range(chances.size), repeat=size):
        probability = math.prod(chances[pick] for pick in picks)
        choices = []
        for bucket, times in Counter(picks).items():
            documents = np.flatnonzero(buckets.bucket == bucket).tolist()
            padded = documents + [-1] * (size - len(documents))
            choices.append(list(combinations(padded, times)))
        share = probability / math.prod(map(len, choices))
        for taken in product(*choices):
            found[tuple(sorted(d for part in taken for d in part if d >= 0))] += share
    return dict(found)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_probabilities_are_those_of_all_draws(size):
    buckets = cut_buckets([0.3, 0.05, 0.25, 0.1, 0.2, 0.07, 0.03], size)
    samples, n = every_sample(buckets), 7
    joint = np.zeros((n, n))
    for documents, probability in samples.items():
        joint[np.ix_(documents, documents)] += probability
    assert sum(samples.values()) == pytest.approx(1, abs=1e-12)
    assert joint == pytest.approx(buckets.joint_probability(), abs=1e-12)
    assert np.diag(joint) == pytest.approx(buckets.inclusion_probability, abs=1e-12)


def test_draws_have_their_probabilities():
    buckets = cut_buckets(run_prior(RUNS, 6), 4)
    samples, rng, n = every_sample(buckets), np.random.default_rng(3), 20_000
    seen = Counter(tuple(buckets.sample(rng).tolist()) for _ in range(n))
    assert set(seen) <= set(samples)
    for documents, probability in samples.items():
        assert abs(seen[documents] - n * probability) < 5 * math.sqrt(n * probability) + 5


def test_as_many_documents_as_buckets_unless_the_last_is_padded():
    full = cut_buckets(np.arange(1, 7), 3)
    rng = np.random.default_rng(1)
    assert {full.sample(rng).size for _ in range(100)} == {3}
    padded = cut_buckets(np.arange(1, 6), 3)
    assert {padded.sample(rng).size for _ in range(200)} == {2, 3}


def test_a_document_without_a_prior_is_never_drawn():
    buckets = cut_buckets([0.5, 0.0, 0.5], 2)
    assert buckets.inclusion_probability.tolist() == [1.0, 0.0, 1.0]
    assert buckets.sample(np.random.default_rng(0)).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rank_prior(0), "length must be at least 1"),
        (lambda: run_prior([[0, 3]], 3), r"documents of run 0 must be within \[0, 2\]"),
        (lambda: run_prior([[0], [1, 1]], 3), "run 1 returns a document twice"),
        (lambda: run_prior([[], []], 3), "at least one of 2 runs must return a document"),
        (lambda: run_prior([], 3), "at least one of 0 runs"),
        (lambda: cut_buckets([1, 2], 0), "size must be at least 1"),
        (lambda: cut_buckets([0, 0], 1), "sum above 0"),
        (lambda: cut_buckets([], 1), "at least 1 item"),
        (lambda: cut_buckets([1, -1], 1), "prior must be"),
        (lambda: cut_buckets([1, np.nan], 1), "prior must be"),
    ],
)
def test_wrong_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
