"""Measures of completely judged ranks, with reciprocal rank as the example: by hand, and over all judgments."""

import itertools

import numpy as np
import pytest
from reciprocal_rank import RR, verified

from analytics.estimation.complete import complete_estimates, first_documents
from analytics.estimation.estimate import Estimate, Refusal
from analytics.releases.verify_measures import COMPLETE, FirstRanks
from sampling.measures.families import Measure
from sampling.measures.kinds import Complete
from sampling.measures.registry import FAMILIES
from sampling.measures.sparse import from_dense

RR_AT_3 = Measure("PlantedRR@3", RR, RR.kind, 3, {"rel": None})
#                 t0 a  b  c  d   t1 e  f  g
TOPIC = np.array([0, 0, 0, 0, 1, 1, 1])
RANKS = np.array([[1, 2, 3, 4, 1, 2, 0], [2, 1, 0, 3, 0, 1, 2]])
GAIN = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
ALL = np.ones(7, dtype=bool)


def numbers(gain=GAIN, judged=ALL, ranks=RANKS):
    documents = first_documents(RR_AT_3, from_dense(np.asarray(ranks)))
    return complete_estimates(RR_AT_3, documents, np.asarray(gain), np.asarray(judged), TOPIC, 2)


def test_values_and_intervals_by_hand():
    """Run 0 finds b at rank 2 of t0 and nothing in t1: .5 and 0. Run 1: b at rank 1, g at rank 2 of t1: 1 and .5."""
    these, topics = numbers()
    assert [one.value for one in these] == pytest.approx([0.25, 0.75, -0.5])
    assert all((one.standard_error, one.low, one.high) == (0.0, one.value, one.value) for one in these)
    # parts .25 and 0: their sum varies by 2 Var = 2 * .03125; t of one degree of freedom is 12.706205
    assert topics[0].standard_error == pytest.approx(0.25)
    assert topics[0].high - topics[0].value == pytest.approx(12.706205 * 0.25, rel=1e-6)
    # the pair differs by .5 in both topics: no spread to estimate an interval from
    assert "all topics have the same value" in topics[2].reason


def test_n_counts_the_documents_within_the_cutoff_and_of_a_pair_those_at_other_ranks():
    assert [one.n for one in numbers()[0]] == [5, 5, 7]


def test_a_document_beyond_the_cutoff_need_not_be_judged_and_one_within_must():
    judged = ALL.copy()
    judged[2] = False  # c: rank 3 of run 0; run 1 does not return it
    these, topics = numbers(judged=judged)
    reason = "PlantedRR@3 needs a judgment of every document of the first 3 ranks: 1 of 5 have none, in 1 of 2 topics"
    for found in (these, topics):
        assert found[0] == found[2] == Refusal(reason, 1)
        assert isinstance(found[1], Estimate)
    judged = ALL.copy()
    judged[3] = False  # d: rank 4 of run 0, 3 of run 1
    assert isinstance(numbers(judged=judged)[0][0], Estimate)
    assert isinstance(numbers(judged=judged)[0][1], Refusal)


def test_the_worse_of_two_runs_says_what_a_pair_lacks():
    judged = np.array([True, True, False, True, False, False, False])
    these = numbers(judged=judged)[0]
    assert [one.needed for one in these] == [3, 2, 3]
    assert "3 of 5 have none, in 2 of 2 topics" in these[2].reason


def test_the_gain_of_what_is_not_judged_is_never_read():
    judged = ALL.copy()
    judged[2] = False
    gain = GAIN.copy()
    gain[2] = np.nan
    assert numbers(gain=gain, judged=judged)[0][1].value == pytest.approx(0.75)


def test_a_mean_gain_gives_the_mean_over_which_judgment_is_taken():
    """Two judgments an item, of which one is taken at random: over all 2^7 choices the values average to ours."""
    first, second = np.array([0, 1, 0, 1, 0, 1, 1.0]), np.array([1, 0, 0, 1, 0, 0, 1.0])
    chosen = [np.where(pick, first, second) for pick in itertools.product([True, False], repeat=7)]
    values = np.array([[one.value for one in numbers(gain=gain)[0]] for gain in chosen])
    ours = [one.value for one in numbers(gain=(first + second) / 2)[0]]
    assert values.mean(axis=0) == pytest.approx(ours, rel=1e-12)


@pytest.mark.parametrize(
    "family",
    [family for family in (*FAMILIES, RR) if isinstance(family.kind, Complete)],
    ids=lambda one: one.key,
)
def test_every_such_measure_is_linear_in_each_gain_in_the_product_and_in_the_verifier(family, monkeypatch):
    """A mean gain of several judgments then stands for any one of them."""
    monkeypatch.setitem(COMPLETE, RR.key, FirstRanks(None, verified, binary=True))
    measure = Measure(f"{family.key}@4", family, family.kind, 4, {"rel": None})
    again = COMPLETE[family.key].of_topic
    gains = np.random.default_rng(1).random(4)
    for place, share in itertools.product(range(4), (0.25, 0.5)):
        low, high = gains.copy(), gains.copy()
        low[place], high[place] = 0.0, 1.0
        between = (1 - share) * low + share * high
        for of_topic in (lambda one: family.kind.of_topic(measure, one), again):
            expected = (1 - share) * of_topic(low) + share * of_topic(high)
            assert of_topic(between) == pytest.approx(expected, rel=1e-12)
        assert again(between) == pytest.approx(family.kind.of_topic(measure, between), rel=1e-12)


def test_a_run_that_returns_nothing_has_the_value_0():
    these, topics = numbers(ranks=[[0] * 7, RANKS[1]])
    assert these[0].value == 0
    assert these[0].n == 0
    assert these[2].value == pytest.approx(-0.75)
    assert isinstance(topics[0], Refusal)
