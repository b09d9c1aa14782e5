"""Refusals, Fieller with one more, and Dirichlet draws: docs/methods/derivations/noise-correction.md, section 6."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from analytics.estimation.estimate import Refusal
from analytics.papers.goldberg import corrected_value, corrected_variance
from analytics.papers.intervals import Interval, corrected_interval, dirichlet_interval
from analytics.papers.refusals import audit_refusal, gold_to_bound, missing_gold_refusal, separation_refusal
from experiments.papers.goldberg import accuracy, expected_mean
from experiments.papers.intervals import corrected_interval_of_shares
from experiments.papers.refusals import feasibility_z, label_mix_refusal

YORK_R, YORK_N = (14, 50), (230, 285)
YORK_V = 0.2596**2 / 50


# -- refusals -----------------------------------------------------------------------------------------------


def test_trec_york_lies_outside_what_its_judges_can_give_and_is_refused():
    assert feasibility_z(0.513, YORK_V, YORK_R, YORK_N, pseudo_count=0) == pytest.approx(3.18, abs=0.005)
    found = corrected_interval(0.513, YORK_V, YORK_R, YORK_N)
    assert isinstance(found, Refusal)
    assert "j = 0.513 lies above the sensitivity" in found.reason
    # nor would more gold of the same kind help
    certain = corrected_interval(0.513, YORK_V, (1400, 5000), (23000, 28500))
    assert isinstance(certain, Refusal)
    assert "j = 0.513 lies above the sensitivity" in certain.reason


def test_one_system_that_is_refused_refuses_the_difference():
    fine = (0.25, 0.24**2 / 50)
    assert audit_refusal([fine], (1400, 5000), (23000, 28500)) is None
    found = audit_refusal([fine, (0.513, YORK_V)], (1400, 5000), (23000, 28500))
    assert "j = 0.513 lies above the sensitivity" in found.reason
    assert "1.96 standard errors" in audit_refusal([(0.5, 0.01)], (6, 10), (6, 10)).reason
    assert audit_refusal([fine], (0, 0), (6, 10)).reason == "no gold label that is relevant"
    # each system alone says the same
    for j, variance in (fine, (0.513, YORK_V)):
        alone = corrected_interval(j, variance, (1400, 5000), (23000, 28500))
        assert isinstance(alone, Refusal) == (
            audit_refusal([(j, variance)], (1400, 5000), (23000, 28500)) is not None
        )


def test_j_below_what_the_specificity_allows_is_refused():
    found = corrected_interval(0.05, 1e-5, (90, 100), (80, 100))
    assert isinstance(found, Refusal)
    assert "below 1 - specificity" in found.reason
    assert feasibility_z(0.05, 1e-5, (90, 100), (80, 100)) < -1.96
    assert feasibility_z(0.5, 1e-5, (90, 100), (80, 100)) == 0


def test_the_gold_that_is_missing_for_a_symmetric_judge():
    assert [gold_to_bound(0.5 + d / 2, 0.5 + d / 2) for d in (0.6, 0.3, 0.2, 0.1)] == [4, 20, 47, 191]
    found = separation_refusal([[6, 4], [4, 6]])
    assert isinstance(found, Refusal)
    # (x+1)/(n+2) = 7/12: z^2 * 2 * (7/12)(5/12) / (1/6)^2 = 67.2 of each grade
    assert "about 68 gold labels of each grade" in found.reason
    assert found.needed == 2 * (68 - 10)
    assert separation_refusal([[60, 40], [40, 60]]) is None


def test_labels_no_better_than_chance_have_no_amount_of_gold():
    found = separation_refusal([[4, 6], [6, 4]])
    assert isinstance(found, Refusal)
    assert "no better than chance" in found.reason
    assert found.needed is None
    with pytest.raises(ValueError, match="above 1"):
        gold_to_bound(0.5, 0.5)


def test_a_grade_without_gold_is_named():
    assert missing_gold_refusal([[5, 5], [0, 0]]).reason == "no gold label of true grade 1"
    assert corrected_interval(0.5, 0.001, (0, 0), (8, 10)).reason == "no gold label that is relevant"
    assert dirichlet_interval([[9, 1], [0, 0]], [5, 5], [0, 1], rng=np.random.default_rng(1)).reason.endswith(
        "grade 1"
    )


def test_near_singular_three_grades_are_refused_with_the_gold_that_is_missing():
    close = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.2, 0.3, 0.5]])
    found = separation_refusal(close * 60)
    assert isinstance(found, Refusal)
    assert "Pr(det J > 0)" in found.reason
    assert found.needed > 60
    assert separation_refusal(np.eye(3) * 60 + 5) is None


def test_the_ebay_audit_is_not_mixed_as_its_population():
    share = (10278 * 0.6260 + 20604 * 0.6385) / 30882
    found = label_mix_refusal([83, 60], [1 - share, share])
    assert isinstance(found, Refusal)
    assert "z = -5.33" in found.reason
    assert label_mix_refusal([52, 91], [1 - share, share]) is None
    assert label_mix_refusal([0, 0], [0.5, 0.5]).reason == "no audited item"
    assert "another population" in label_mix_refusal([5, 5, 1], [0.5, 0.5, 0.0]).reason


def test_the_mix_of_simple_random_audits_is_refused_in_one_of_twenty():
    rng, shares = np.random.default_rng(6), np.array([0.5, 0.3, 0.2])
    refused = [label_mix_refusal(rng.multinomial(200, shares), shares) is not None for _ in range(1000)]
    assert np.mean(refused) == pytest.approx(0.05, abs=0.02)


# -- Fieller ------------------------------------------------------------------------------------------------


def exact_coverage(n_gold, m_r, m_n, share, interval):
    """Return the coverage over all audits of n_gold labels a grade, j being known."""
    j, total = expected_mean(share, m_r, m_n), 0.0
    for x in range(n_gold + 1):
        for y in range(n_gold + 1):
            low, high = interval(j, (x, n_gold), (y, n_gold))
            total += binom.pmf(x, n_gold, m_r) * binom.pmf(y, n_gold, m_n) * (low <= share <= high)
    return total


def fieller_with_one_more(j, relevant, not_relevant):
    found = corrected_interval(j, 1e-6, relevant, not_relevant, refuse=False)
    return found.low, found.high


def wald(j, relevant, not_relevant):
    """Wald on Eq 7 where the product does not refuse; a refusal covers."""
    if isinstance(corrected_interval(j, 1e-6, relevant, not_relevant), Refusal):
        return 0.0, 1.0
    rates = (*accuracy(*relevant), *accuracy(*not_relevant))
    value, error = corrected_value(j, rates[0], rates[2]), math.sqrt(corrected_variance(j, 1e-6, *rates))
    return value - 1.96 * error, value + 1.96 * error


@pytest.mark.parametrize(("m_r", "m_n", "share"), [(0.9, 0.8, 0.4), (0.729, 0.798, 0.805), (0.45, 0.82, 0.1)])
def test_fieller_with_one_more_holds_over_all_audits_of_ten_and_wald_does_not_always(m_r, m_n, share):
    assert exact_coverage(10, m_r, m_n, share, fieller_with_one_more) >= 0.94
    if share == 0.1:
        # section 3.3: .532 of those not refused, 78 % are refused
        assert exact_coverage(10, m_r, m_n, share, wald) < 0.93


def test_an_interval_can_be_had_in_spite_of_the_refusal_with_its_reason():
    assert isinstance(corrected_interval(0.5, 0.001, (6, 10), (6, 10)), Refusal)
    shown = corrected_interval(0.5, 0.001, (6, 10), (6, 10), refuse=False)
    assert (shown.low, shown.high) == (0.0, 1.0)
    assert "unbounded" in shown.warning
    outside = corrected_interval(0.513, YORK_V, (1400, 5000), (23000, 28500), refuse=False)
    assert 0 <= outside.low <= outside.high <= 1
    assert outside.warning


def test_vote_shares_use_their_own_variance():
    single = corrected_interval(0.5, 0.001, (40, 50), (40, 50))
    votes = corrected_interval_of_shares(0.5, 0.001, [1.0] * 40 + [0.0] * 10, [1.0] * 40 + [0.0] * 10)
    assert (votes.low, votes.high) == (pytest.approx(single.low), pytest.approx(single.high))
    # five votes a document with the same mean that differ less between documents
    even = corrected_interval_of_shares(0.5, 0.001, [0.8] * 50, [0.8] * 50)
    assert even.high - even.low < single.high - single.low
    # ... by hand: (40 + 1)/52 and (50 * .64 + 1)/52 - m^2
    m = 41 / 52
    v = ((50 * 0.64 + 1) / 52 - m**2) / 52
    direct = math.sqrt(v)
    assert direct < math.sqrt(m * (1 - m) / 52) / 3
    assert isinstance(corrected_interval_of_shares(0.5, 0.001, [], [1.0]), Refusal)
    assert isinstance(corrected_interval_of_shares(0.5, 0.001, [0.5] * 9, [0.5] * 9), Refusal)


# -- Dirichlet ----------------------------------------------------------------------------------------------

SQUARE = np.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]])
GAINS = np.array([1, 0.5, 0])


def test_with_much_gold_the_dirichlet_interval_is_the_delta_methods():
    mix = np.array([0.3, 0.3, 0.4])
    h, n, gold = mix @ SQUARE, 4000, 2000
    found = dirichlet_interval(SQUARE * gold, h * n, GAINS, rng=np.random.default_rng(7))
    c = np.linalg.solve(SQUARE, GAINS)
    tau = SQUARE @ c**2 - GAINS**2
    error = math.sqrt((h @ c**2 - (h @ c) ** 2) / n + (mix**2 * tau / gold).sum())
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.06)
    assert (found.high + found.low) / 2 == pytest.approx(mix @ GAINS, abs=error / 5)
    assert found.accepted == 1.0


def test_a_hardly_separating_matrix_is_refused_and_its_interval_says_so():
    close = np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.2, 0.3, 0.5]])
    counts, labels = np.round(close * 30), [300, 300, 400]
    assert isinstance(dirichlet_interval(counts, labels, GAINS, rng=np.random.default_rng(8)), Refusal)
    shown = dirichlet_interval(counts, labels, GAINS, rng=np.random.default_rng(8), refuse=False)
    assert isinstance(shown, Interval)
    assert 0 <= shown.low < shown.high <= 1
    assert "hardly separate" in shown.warning
    assert 0 < shown.accepted < 0.975


def test_impossible_labels_leave_too_few_draws():
    found = dirichlet_interval([[900, 100], [100, 900]], [9990, 10], [0, 1], rng=np.random.default_rng(9))
    assert isinstance(found, Refusal)
    assert "not the audit of these labels" in found.reason


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: corrected_interval(0.5, -1, (9, 10), (9, 10)), "j_variance must be >= 0"),
        (lambda: corrected_interval(0.5, 0.1, (11, 10), (9, 10)), "0 <= hits <= n"),
        (lambda: corrected_interval_of_shares(0.5, 0.1, [1.1], [1]), r"flat array in \[0, 1\]"),
        (lambda: feasibility_z(0.5, 0.1, (0, 0), (1, 2), pseudo_count=0), "at least 1 gold label"),
        (lambda: label_mix_refusal([1, 2], [0.5, 0.6]), "sum to 1"),
        (lambda: separation_refusal([[1, -2], [3, 4]]), ">= 0"),
        (lambda: separation_refusal([[1], [3]]), "given >= true"),
    ],
)
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
