"""What the stored row of a pair says: both claims, in a family, with what is assumed; and the row turned round."""

import numpy as np
import pytest

from analytics.estimation.claims import LIKE_THESE, THESE, Family
from analytics.estimation.wording import sentence
from analytics.models import Estimate
from analytics.services.claim_intervals import OLDER
from analytics.services.comparisons import AdjustmentRefused, Comparisons, _TestedPairs
from analytics.services.verdicts import reverse_difference
from judging.models import Run
from sampling.gold_samples import declaration_words

ALPHA, BETA = Run(pk=1, run_id="alpha"), Run(pk=2, run_id="beta")
PAIR = Family("question", ("alpha", "beta"))


def difference(value, half, p=0.02, **fields):
    given = {
        "topics_low": value - 2 * half, "topics_high": value + 2 * half, "topics_p_value": max(p, 0.03),
        "topics_standard_error": half, "topics_degrees_of_freedom": 9.0, "standard_error": half / 2,
    }  # fmt: skip
    return Estimate(
        pk=7, run=ALPHA, run_b=BETA, measure="P@5", method="corrected", value=value, low=value - half,
        high=value + half, p_value=p, n=60, refusal="", warning="", **given | fields,
    )  # fmt: skip


def among(adjusted, claim=THESE):
    """Return comparisons with these adjusted p, by key, whatever the claim."""
    made = Comparisons(None, "P@5", PAIR, claim)
    made._adjusted = {LIKE_THESE.key: adjusted, THESE.key: adjusted}
    return made


def said(estimate, adjusted=None, claim=THESE):
    return sentence(among({7: 0.02} if adjusted is None else adjusted, claim).of(estimate))


def test_the_higher_run_comes_first_with_the_numbers_turned():
    words = said(difference(-0.2, 0.1), claim=LIKE_THESE)
    assert words.startswith(
        "beta has a higher P@5 than alpha: mean difference +0.200 (95 % confidence interval 0.000 to 0.400; paired "
        "t-test over topics, t(9) = 2.00, p = .030), significant at .05."
    )
    assert words.endswith("For these topics alone: 0.100 to 0.300, p = .020.")


def test_among_many_pairs_the_sentence_says_what_the_adjustment_leaves():
    three = {7: 0.04, 8: 0.5, 9: 0.6}
    kept = said(difference(0.2, 0.1), three)
    assert "significant at .05 among 3 declared comparisons (p = .040 adjusted by Holm). For topics" in kept
    lost = said(difference(0.2, 0.1), three | {7: 0.06})
    assert "is not significant at .05 among 3 declared comparisons (p = .060 adjusted by Holm)." in lost
    assert "higher" not in lost


def test_a_row_that_belongs_to_no_family_is_not_adjusted():
    outside = among({8: 0.1, 9: 0.2}).of(difference(0.2, 0.1))
    assert (outside.test.p, outside.test.p_adjusted, outside.higher) == (0.02, None, None)
    unsaved = difference(0.2, 0.1)
    unsaved.pk = None
    elsewhere = Comparisons(None, "P@5", Family("runs:alpha,gamma", ("alpha", "gamma")), THESE)
    assert "is not among the declared comparisons" in sentence(elsewhere.of(unsaved))
    # of a family of one there is nothing to wait for
    alone = Comparisons(None, "P@5", PAIR, THESE).of(unsaved)
    assert (alone.test.p_adjusted, alone.n_family, alone.higher) == (0.02, 1, "alpha")


def test_a_row_from_before_topics_were_tested_says_compute_again():
    older = difference(0.2, 0.1, topics_p_value=None, topics_degrees_of_freedom=None)
    words = said(older, claim=LIKE_THESE)
    assert (
        f"for topics like these there is no number: {OLDER}. For these topics alone: 0.100 to 0.300" in words
    )
    assert "higher" not in words
    assert said(older).startswith("alpha has a higher P@5 than beta")  # the claim for these topics stays


def test_the_side_that_is_wider_has_the_test():
    by_topics = among({7: 0.03}, LIKE_THESE).of(difference(0.2, 0.1)).test
    assert (by_topics.t, by_topics.degrees_of_freedom) == (pytest.approx(2.0), 9)
    same = {"topics_standard_error": 0.05, "topics_degrees_of_freedom": None}
    limited = among({7: 0.03}, LIKE_THESE).of(difference(0.2, 0.1, **same))
    assert limited.test.t is None
    assert "limited by the judging, not by the topics" in sentence(limited)


def test_the_claim_for_these_topics_has_no_random_signs_and_is_not_stepped_down():
    with pytest.raises(AdjustmentRefused, match="max-t by random signs is for topics like these"):
        Comparisons(None, "P@5", PAIR, THESE, "max-t")
    assert Comparisons(None, "P@5", PAIR).n_family == 0


def test_of_one_topic_equal_runs_keep_their_p_however_it_is_adjusted():
    for n_topics, expected in ((1, 1.0), (3, 1.0)):
        made = Comparisons(None, "P@5", PAIR, LIKE_THESE, "max-t")
        same = {key: [1.0] for key in (LIKE_THESE.key, THESE.key)}
        made.__dict__["_tested_pairs"] = _TestedPairs([7], [(1, 2)], same)
        made.__dict__["_values"] = {1: np.full(n_topics, 0.5), 2: np.full(n_topics, 0.5)}
        assert made.adjusted_p(LIKE_THESE) == {7: expected}


def test_where_documents_outside_could_not_be_judged_t_belongs_to_the_largest_p():
    known = {"topics_standard_error": 0.1, "standard_error": 0.05, "outside_low": 0.05, "outside_high": 0.0}
    made = among({7: 0.03}, LIKE_THESE)
    made.__dict__["_values"] = {1: np.array([0.1, 0.3, 0.5]), 2: np.array([0.0, 0.1, 0.2])}
    wider = made.of(difference(0.2, 0.1, **known))
    assert (wider.test.t, wider.other.t) == (pytest.approx(1.5), pytest.approx(3.0))
    assert wider.test.p_randomisation is None  # it knows nothing of these documents
    below = made.of(difference(-0.2, 0.1, **known | {"outside_high": 0.3}))
    assert (below.test.t, below.other.t) == (0, 0)
    whole = made.of(difference(0.2, 0.1, **known | {"outside_low": None, "outside_high": None}))
    assert (whole.test.t, whole.other.t) == (pytest.approx(2.0), pytest.approx(4.0))
    assert whole.test.p_randomisation == pytest.approx(0.25, abs=0.02)  # 2 of 8 assignments of signs
    turned = reverse_difference(difference(0.2, 0.1, **known))
    assert (turned.outside_low, turned.outside_high) == (0.0, 0.05)


def test_a_p_that_is_not_of_t_is_said_to_be_the_other_one():
    made = among({7: 0.6}, LIKE_THESE)
    made.__dict__["_values"] = {1: np.arange(30) / 30, 2: np.arange(30)[::-1] / 40}
    larger = made.of(difference(0.05, 0.1, p=0.6, topics_p_value=0.6))
    assert "P is the one for these topics, which is larger than that of t." in sentence(larger)
    usual = made.of(difference(0.05, 0.1, p=0.6, topics_p_value=0.7))
    assert "which is larger" not in sentence(usual)


def test_a_standardised_difference_without_a_spread_over_topics_is_refused_by_name():
    made = among({7: 0.03}, LIKE_THESE)
    made.__dict__["_values"] = {1: np.array([0.19, 0.2, 0.21]), 2: np.zeros(3)}
    # S^2 = .0001 is less than n V_F = 3 * .05^2
    none = made.of(difference(0.2, 0.1)).test
    assert (none.effect_size, none.between_topics) == (None, 0)
    assert none.effect_size_refusal == "the errors of judging explain all of the spread over topics"
    made.__dict__["_values"] = {1: np.array([0.1, 0.2, 0.3]), 2: np.zeros(3)}
    # S^2 = .01: d / sqrt(.01 - .0075)
    some = made.of(difference(0.2, 0.1)).test
    assert (some.effect_size, some.effect_size_refusal) == (pytest.approx(4.0), "")


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


@pytest.mark.parametrize(
    ("value", "p", "higher"),
    [(0.2, 0.01, "alpha"), (-0.2, 0.01, "beta"), (0.2, 0.05, None), (0.2, None, None)],
)
def test_the_higher_run_is_named_below_the_level_only(value, p, higher):
    pair = among({} if p is None else {7: p}).of(difference(value, 0.1))
    assert (pair.higher, pair.test.p_adjusted) == (higher, p)


def test_a_difference_that_few_documents_carry_says_so():
    few = said(difference(0.2, 0.1, n_positive=4))
    assert "Only 4 judged documents with a gain above 0 carry this number" in few
    for enough in ({"n_positive": 10}, {"n_positive": 4, "standard_error": 0.0}, {}):
        assert "carry this number" not in said(difference(0.2, 0.1, **enough))


def test_declared_gold_says_what_it_assumes_whether_the_difference_is_significant_or_not():
    assumed = declaration_words("uniform", 290, 2165)
    sure = difference(0.2, 0.1)
    sure.warning = f"other words; {assumed}"
    assert said(sure).endswith(
        "Assumes that the 290 documents with a gold grade are a random part of the 2,165."
    )
    assert "other words" not in said(sure)
    unsure = difference(0.05, 0.1, p=0.4)
    unsure.warning = assumed
    for claim in (THESE, LIKE_THESE):
        assert said(unsure, {7: 0.4}, claim).lower().count("assumes that the 290 documents") == 1
    assert "ssumes" not in said(difference(0.2, 0.1))
    exact = difference(0.2, 0.1)
    exact.warning = declaration_words("uniform", 12, 12)
    assert "Exact: all 12 documents in the file have a gold grade." in said(exact)


def test_advice_on_gold_labels_stands_beside_the_claim_that_they_decide():
    unsure = difference(0.05, 0.1, p=0.4)
    unsure.warning = "about 200 more gold labels needed"
    assert "About 200 more gold labels needed." in said(unsure, {7: 0.4})
    assert "gold labels" not in said(unsure, {7: 0.4}, LIKE_THESE)
