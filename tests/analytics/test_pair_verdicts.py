"""The sentence about a pair of runs: what it says of one comparison, and what is left of it among many."""

import pytest

from analytics.models import Estimate
from analytics.services.verdicts import AdjustedPValues, judged_pair, reverse_difference, verdict
from judging.models import Run
from sampling.gold_samples import declaration_words

ALPHA, BETA = Run(pk=1, run_id="alpha"), Run(pk=2, run_id="beta")


def difference(value, half, p=0.02, **fields):
    return Estimate(
        pk=7, run=ALPHA, run_b=BETA, measure="P@5", method="corrected", value=value, low=value - half,
        high=value + half, p_value=p, n=60, refusal="", warning="", **fields,
    )  # fmt: skip


def said(estimate, adjusted=None):
    return verdict(estimate, "P@5", ALPHA, BETA, adjusted)


def test_the_better_run_comes_first_with_the_numbers_turned():
    words = said(difference(-0.2, 0.1, topics_low=-0.4, topics_high=0.1))
    assert words.startswith(
        "beta is better than alpha in P@5: difference +0.200 (95 % confidence interval +0.100 to +0.300"
    )
    assert "95 % confidence interval -0.100 to +0.400, which includes 0." in words


def test_among_many_pairs_the_sentence_adds_what_holms_adjustment_leaves():
    three = {7: 0.04, 8: 0.5, 9: 0.6}
    kept = said(difference(0.2, 0.1), AdjustedPValues(three))
    assert kept.endswith("Among all 3 pairs compared, p = 0.040 by Holm's adjustment.")
    lost = said(difference(0.2, 0.1), AdjustedPValues(three | {7: 0.06}))
    assert lost.endswith("p = 0.060 by Holm's adjustment: not significant among so many comparisons.")


@pytest.mark.parametrize(
    "adjusted", [None, AdjustedPValues({}), AdjustedPValues({7: 0.02}), AdjustedPValues({8: 0.1, 9: 0.2})]
)
def test_of_a_single_comparison_or_one_that_was_not_tested_nothing_is_added(adjusted):
    assert "Holm" not in said(difference(0.2, 0.1), adjusted)


def test_what_is_not_told_apart_alone_needs_no_adjustment_to_say_so():
    words = said(difference(0.05, 0.1, p=0.4), AdjustedPValues({7: 1.0, 8: 1.0}))
    assert words.startswith("alpha and beta do not differ significantly in P@5: difference +0.050")
    assert "Holm" not in words


def test_turning_changes_signs_and_ends_and_twice_is_as_before():
    once = reverse_difference(difference(0.2, 0.05, always_low=-0.1, always_high=0.5))
    assert (once.run, once.run_b) == (BETA, ALPHA)
    assert (once.value, once.always_low, once.always_high) == (-0.2, -0.5, 0.1)
    assert (once.low, once.high) == (pytest.approx(-0.25), pytest.approx(-0.15))
    twice = reverse_difference(once)
    assert (twice.value, twice.run, twice.always_low) == (0.2, ALPHA, -0.1)


def test_a_refused_difference_is_turned_without_numbers():
    refused = Estimate(run=ALPHA, run_b=BETA, method="corrected", n=0, refusal="no audit is complete yet")
    assert reverse_difference(refused).value is None
    assert said(refused) == "No corrected number: no audit is complete yet."
    assert said(None) == ""


@pytest.mark.parametrize(
    ("value", "p", "better"), [(0.2, 0.01, ALPHA), (-0.2, 0.01, BETA), (0.2, 0.05, None), (0.2, None, None)]
)
def test_the_better_run_is_named_below_the_level_only(value, p, better):
    pair = judged_pair(difference(value, 0.1), AdjustedPValues({} if p is None else {7: p}))
    assert (pair.better, pair.holm) == (better, p)


def test_a_significant_difference_that_few_documents_carry_says_so():
    few = said(difference(0.2, 0.1, n_positive=4, standard_error=0.05))
    assert "p = 0.020). Only 4 judged documents with a gain above 0 carry this number" in few
    for enough in ({"n_positive": 10, "standard_error": 0.05}, {"n_positive": 4, "standard_error": 0.0}, {}):
        assert "carry this number" not in said(difference(0.2, 0.1, **enough))


def test_declared_gold_says_what_it_assumes_whether_the_difference_is_significant_or_not():
    assumed = declaration_words("uniform", 290, 2165)
    sure = difference(0.2, 0.1)
    sure.warning = f"other words; {assumed}"
    assert said(sure).endswith(
        "p = 0.020). Assumes that the 290 documents with a gold grade are a random part of the 2,165."
    )
    unsure = difference(0.05, 0.1, p=0.4)
    unsure.warning = assumed
    assert said(unsure).count("assumes that the 290 documents") == 1
    assert "ssumes" not in said(difference(0.2, 0.1))
    exact = difference(0.2, 0.1)
    exact.warning = declaration_words("uniform", 12, 12)
    assert "Exact: all 12 documents in the file have a gold grade." in said(exact)
