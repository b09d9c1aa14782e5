"""Two rounds as formulas: fixtures by hand, every audit of three items enumerated, and the ends that are known."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from analytics.estimation.comparison import compare, welch
from analytics.estimation.estimate import Estimate, Refusal, estimate
from analytics.estimation.rounds import (
    CLAIMS,
    AuditedItems,
    audit_covariance,
    by_claim,
    for_these_topics,
    over_two_samples,
)
from analytics.estimation.topics import over_topics

LEVER_A, LEVER_B = np.array([0.10, 0.05, 0.08]), np.array([0.08, 0.05, 0.02])
RESIDUAL_A, RESIDUAL_B = np.array([0.6, -0.3, 0.4]), np.array([0.5, -0.2, -0.5])
CHANCE_A, CHANCE_B = np.array([0.5, 0.2, 0.4]), np.array([0.25, 0.4, 0.4])


def items(lever, residual, chance, places=slice(None)):
    """Return audited items with the terms of their variances."""
    lever, residual, chance = lever[places], residual[places], chance[places]
    return AuditedItems(lever, residual, chance, (lever * residual) ** 2 * (1 - chance) / chance**2)


def both(places=slice(None)):
    return items(LEVER_A, RESIDUAL_A, CHANCE_A, places), items(LEVER_B, RESIDUAL_B, CHANCE_B, places)


def every_audit():
    """Yield the chance of each audit of both rounds by one random number an item, and who was audited in either."""
    larger, smaller = np.maximum(CHANCE_A, CHANCE_B), np.minimum(CHANCE_A, CHANCE_B)
    for outcome in itertools.product(range(3), repeat=3):  # in neither, in the likelier one, in both
        chance = math.prod(
            (1 - more, more - less, less)[way]
            for way, more, less in zip(outcome, larger, smaller, strict=True)
        )
        way = np.array(outcome)
        in_a = (way == 2) | ((way == 1) & (CHANCE_A > CHANCE_B))
        in_b = (way == 2) | ((way == 1) & (CHANCE_B > CHANCE_A))
        yield chance, in_a, in_b


def test_variance_and_covariance_are_right_in_the_mean_over_all_audits():
    means, first, second = np.zeros(3), 0.0, 0.0
    for chance, in_a, in_b in every_audit():
        both_ways = both(in_a & in_b)
        found = (
            items(LEVER_A, RESIDUAL_A, CHANCE_A, in_a).term.sum(),
            items(LEVER_B, RESIDUAL_B, CHANCE_B, in_b).term.sum(),
            audit_covariance(*both_ways, one_audit=True),
        )
        means += chance * np.array(found)
        error = (LEVER_A * RESIDUAL_A / CHANCE_A)[in_a].sum() - (LEVER_B * RESIDUAL_B / CHANCE_B)[in_b].sum()
        first, second = first + chance * error, second + chance * error**2
    assert means.round(6).tolist() == [0.006036, 0.0051, 0.002145]
    assert round(means[0] + means[1] - 2 * means[2], 6) == 0.006846
    assert round(second - first**2, 6) == 0.006846  # the variance of the difference itself
    # The control: without C the mean is not the variance.
    assert means[0] + means[1] > 1.5 * (second - first**2)


def test_an_audit_of_all_three_by_hand():
    a, b = both()
    assert round(float(a.term.sum()), 6) == 0.01554
    assert round(float(b.term.sum()), 6) == 0.01995
    assert round(audit_covariance(a, b, one_audit=True), 6) == 0.009525
    assert audit_covariance(a, b, one_audit=False) == 0.0
    these = for_these_topics(number(0.5, a), number(0.4, b), (a, b), one_audit=True)
    assert these.value == pytest.approx(0.1)
    assert these.standard_error**2 == pytest.approx(0.01554 + 0.01995 - 2 * 0.009525)


def number(value, audited: AuditedItems) -> Estimate:
    """Return a run's number of which the audit is the only error."""
    variance = float(audited.term.sum())
    df = 2 * variance**2 / float(((1 - audited.audit_probability) * audited.term**2).sum())
    return estimate(value, variance, degrees_of_freedom=df, n=audited.term.size, sources=("gold",))


def test_two_audits_add_their_variances_and_satterthwaites_degrees_of_freedom():
    a, b = both()
    first, second = number(0.5, a), number(0.4, b)
    these = for_these_topics(first, second, (a, b), one_audit=False)
    v, w = first.standard_error**2, second.standard_error**2
    assert these.standard_error**2 == pytest.approx(v + w)
    welch_df = (v + w) ** 2 / (v**2 / first.degrees_of_freedom + w**2 / second.degrees_of_freedom)
    assert these.degrees_of_freedom == pytest.approx(max(1.0, welch_df))


def test_the_same_audit_of_the_same_items_leaves_no_error_and_no_variance_is_too_small():
    a, _ = both()
    same = for_these_topics(number(0.5, a), number(0.4, a), (a, a), one_audit=True)
    assert same.standard_error == pytest.approx(0.0, abs=1e-9)
    # Residuals of one sign and very unlike levers: 2 C is more than what two such variances allow.
    wild = AuditedItems(a.lever, a.residual, a.audit_probability, a.term / 9)
    small = estimate(0.4, float(wild.term.sum()), degrees_of_freedom=None, n=3, sources=("gold",))
    first = number(0.5, a)
    found = for_these_topics(first, small, (a, a), one_audit=True)
    assert found.standard_error == pytest.approx(first.standard_error - small.standard_error)


def test_topics_that_are_partly_shared_by_hand():
    first, second = [0.2, 0.5, 0.4, 0.6, 0.3, 0.7], [0.5, 0.35, 0.8, 0.1, 0.45]
    found = over_two_samples(first, second, [3, 4, 5], [0, 1, 2])
    assert isinstance(found, Estimate)
    assert round(found.standard_error, 6) == 0.101156
    assert round(found.degrees_of_freedom, 6) == 4.390543
    assert round(compare(found).p_value, 6) == 0.925603


def test_no_shared_topic_is_welchs_t_and_all_shared_the_paired_t():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=9), rng.normal(size=6)
    apart = over_two_samples(a, b)
    known = welch(a.mean(), a.var(ddof=1), 9, b.mean(), b.var(ddof=1), 6)
    assert (apart.standard_error, apart.degrees_of_freedom) == pytest.approx(
        (known.difference.standard_error, known.difference.degrees_of_freedom)
    )
    assert compare(apart).p_value == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    order = np.array([4, 2, 0, 1, 5, 3])
    paired = over_two_samples(a[:6], b[order], np.arange(6), np.argsort(order))
    assert paired.standard_error == pytest.approx(over_topics((a[:6] - b) / 6).standard_error)
    assert paired.degrees_of_freedom == pytest.approx(5)
    assert compare(paired).p_value == pytest.approx(stats.ttest_rel(a[:6], b).pvalue)


def test_two_shared_topics_have_no_correlation():
    a, b = [0.1, 0.5, 0.2, 0.9], [0.15, 0.55, 0.4]
    found = over_two_samples(a, b, [0, 1], [0, 1])
    assert found.standard_error == pytest.approx(over_two_samples(a, b).standard_error)
    assert found.degrees_of_freedom < over_two_samples(a, b).degrees_of_freedom
    # Constant shared values have none either, and the other topics speak.
    assert isinstance(over_two_samples([1.0, 1, 1, 2], [1.0, 1, 1, 3], [0, 1, 2], [0, 1, 2]), Estimate)


def test_the_rounds_of_goldberg_section_6():
    counts = ([2393, 1451, 1451, 4983], [4239, 3210, 3208, 9947])
    first, second = (np.repeat([0, 1 / 3, 2 / 3, 1], one) for one in counts)
    found = compare(over_two_samples(first, second))
    assert round(found.statistic, 6) == -2.525054
    assert round(found.difference.degrees_of_freedom, 4) == 20009.7566
    assert round(found.p_value, 6) == 0.011576


def test_what_cannot_be_estimated_is_refused():
    one = over_two_samples([1.0], [0.5, 0.7])
    assert isinstance(one, Refusal)
    assert one.reason.startswith("1 topic in one round")
    alike = over_two_samples([0.5, 0.5, 0.5], [0.2, 0.2])
    assert isinstance(alike, Refusal)
    assert "spread cannot be estimated" in alike.reason
    shifted = over_two_samples([0.1, 0.4, 0.3], [0.2, 0.5, 0.4], [0, 1, 2], [0, 1, 2])
    assert isinstance(shifted, Refusal)
    for given in (([0], []), ([0, 0], [0, 1]), ([0], [7])):
        with pytest.raises(ValueError, match="shared"):
            over_two_samples([0.1, 0.2, 0.4], [0.2, 0.3], *given)
    with pytest.raises(ValueError, match="flat"):
        over_two_samples(np.ones((2, 2)), [1.0, 2.0])
    with pytest.raises(ValueError, match="audit_probability"):
        AuditedItems(LEVER_A, RESIDUAL_A, np.array([0.5, 0.0, 0.4]), LEVER_A)
    with pytest.raises(ValueError, match="the same items"):
        audit_covariance(*both()[:1], both([0])[1], one_audit=True)


# -- both claims --------------------------------------------------------------------------------------------


def made(value, error, df):
    return estimate(value, error**2, degrees_of_freedom=df, n=10, sources=("topics",))


def test_topics_like_these_are_never_better_known_than_these_topics():
    like, these = by_claim(made(0.4, 0.1, 30), made(0.4, 0.2, 9))
    assert (like.claim, these.claim) == CLAIMS
    assert (like.high - like.low) == pytest.approx(2 * stats.t.ppf(0.975, 9) * 0.2)
    assert like.p_value == pytest.approx(2 * stats.t.sf(2, 9))
    assert (like.limited_by, like.degrees_of_freedom) == ("topics", 9)
    assert these.p_value == pytest.approx(2 * stats.t.sf(4, 30))
    narrow, _ = by_claim(made(0.4, 0.2, 9), made(0.4, 0.1, 30))
    assert (narrow.high - narrow.low) == pytest.approx(2 * stats.t.ppf(0.975, 9) * 0.2)
    assert narrow.p_value == pytest.approx(2 * stats.t.sf(2, 9))
    assert narrow.limited_by == "judging"


def test_without_any_error_of_judging_there_is_no_test_for_these_topics():
    like, these = by_claim(made(0.4, 0.0, None), made(0.4, 0.2, 9))
    assert (these.low, these.high, these.p_value) == (0.4, 0.4, None)
    assert like.p_value == pytest.approx(2 * stats.t.sf(2, 9))
    refused, these = by_claim(made(0.4, 0.1, 30), Refusal("1 topic"))
    assert refused == Refusal("1 topic")
    assert these.p_value is not None
