"""Values of every kind of measure topic by topic, by hand; what is needed; what is expected before judging."""

import numpy as np
import pytest

from sampling.measures.registry import parse_measure
from sampling.measures.sparse import from_dense
from sampling.topic_runs import N_WORLDS, SEED, TopicRuns, topic_outlook

# Two topics of three and two documents; ranks [run, item].
RANKS = np.array([[1, 2, 3, 1, 0], [3, 0, 1, 2, 1]])
TOPIC = np.array([0, 0, 0, 1, 1])
RUNS = TopicRuns.of(from_dense(RANKS), TOPIC, 3)
GAIN = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
LOG3 = 1 / np.log2(3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("P@2", [[0.5, 0.0, 0], [0.5, 0.5, 0]]),
        ("DCG@2", [[LOG3, 0.0, 0], [1.0, 1.0, 0]]),
        ("AP@3", [[(1 / 2 + 2 / 3) / 2, 0.0, 0], [1 / 2, 1.0, 0]]),
        ("nDCG@2", [[LOG3 / (1 + LOG3), 0.0, 0], [1 / (1 + LOG3), 1.0, 0]]),
    ],
)
def test_values_of_topics_by_hand(name, expected):
    assert RUNS.values(parse_measure(name), GAIN) == pytest.approx(np.array(expected), abs=1e-12)


def test_err_of_topics_by_hand():
    """R of .5 at rank 2 and .25 at rank 3 gives .5/2 + .5 x .25/3; the other run has .25 at 1 and nothing at 3."""
    stops = np.array([0.0, 0.5, 0.25, 0.0, 0.0])
    found = RUNS.values(parse_measure("ERR@3"), stops)
    assert found[:, 0] == pytest.approx([0.25 + 0.125 / 3, 0.25], abs=1e-12)


def test_a_ratio_of_sums_and_gains_that_are_no_gains_are_refused():
    with pytest.raises(ValueError, match="ratio of sums"):
        RUNS.values(parse_measure("micro nDCG@2"), GAIN)
    with pytest.raises(ValueError, match="gain"):
        RUNS.values(parse_measure("P@2"), [0, -1, 0, 0, 0])


def test_first_ranks_of_the_questions_runs_are_needed_and_for_a_ratio_the_pool():
    assert RUNS.is_needed(parse_measure("ERR@1"), [0]).tolist() == [True, False, False, True, False]
    assert RUNS.is_needed(parse_measure("P@1"), [0, 1]).tolist() == [True, False, True, True, True]
    assert RUNS.is_needed(parse_measure("nDCG@1"), [0]).all()


def test_agreement_by_hand():
    """Topic 1: 5 returned, 4 of them documents of both runs; topic 2: 3 returned, 2 of both; topic 3: nothing."""
    assert RUNS.agreement().tolist() == pytest.approx([4 / 5, 2 / 3, 0])
    assert TopicRuns.of(from_dense(RANKS[:1]), TOPIC, 3).agreement().tolist() == [0, 0, 0]


def test_the_expected_value_is_that_of_certain_labels_and_their_spread_is_0():
    seen = topic_outlook(RUNS, parse_measure("nDCG@2"), GAIN, 1.0)
    assert seen.expected == pytest.approx(RUNS.values(parse_measure("nDCG@2"), GAIN))
    assert seen.spread("pair", [0, 1]).tolist() == [0, 0, 0]


def test_expected_values_and_spreads_of_many_topics_are_those_of_the_binomial():
    """P@2 of documents relevant with .3: mean .3, sd sqrt(.21/2); a difference of two runs without a document in common
    has variance .21. Topics are alike, so that their mean is known well."""
    n = 4000
    ranks = np.zeros((2, 4 * n), dtype=int)
    ranks[0, 0::4], ranks[0, 1::4], ranks[1, 2::4], ranks[1, 3::4] = 1, 2, 1, 2
    runs = TopicRuns.of(from_dense(ranks), np.repeat(np.arange(n), 4), n)
    seen = topic_outlook(runs, parse_measure("P@2"), np.full(4 * n, 0.3), 1.0)
    assert seen.expected.mean() == pytest.approx(0.3, abs=0.005)
    assert np.square(seen.spread("system", [0])).mean() == pytest.approx(0.105, rel=0.02)
    assert np.square(seen.spread("pair", [0, 1])).mean() == pytest.approx(0.21, rel=0.02)
    again = topic_outlook(runs, parse_measure("P@2"), np.full(4 * n, 0.3), 1.0)
    assert (again.expected == seen.expected).all()


@pytest.mark.parametrize("name", ["P@2", "ERR@3", "nDCG@2", "AP@3"])
def test_the_outlook_is_the_mean_of_worlds_whose_values_are_computed_one_by_one(name):
    prior, gain, measure = np.array([0.3, 0.8, 0.5, 0.1, 0.6]), 0.5, parse_measure(name)
    rng = np.random.default_rng(SEED)
    worlds = [RUNS.values(measure, gain * (rng.random(5) < prior)) for _ in range(N_WORLDS)]
    seen = topic_outlook(RUNS, measure, prior, gain)
    assert seen.expected == pytest.approx(np.mean(worlds, axis=0), abs=1e-12)
    assert seen.deviations + seen.expected == pytest.approx(np.stack(worlds), abs=1e-12)
    assert np.ptp(worlds, axis=0).max() > 0.1  # the worlds differ


def test_the_outlook_takes_gains_that_are_gains():
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="relevant_gain"):
            topic_outlook(RUNS, parse_measure("P@2"), np.full(5, 0.5), bad)
