"""Tests against the prior and known answers: fixtures, and sessions beside plain loops."""

import numpy as np
import pytest
from scipy.stats import beta, binom, hypergeom, norm

from analytics.estimation.comparison import holm
from analytics.screening.known import auc, auc_variance, false_alarms, less_accurate, misses, session_aucs
from analytics.screening.log import ScreeningLog
from analytics.screening.screens import benjamini_hochberg
from touchstone.demo.simulated import simulated_grades


def test_auc_and_its_variance():
    assert auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]) == 0.75
    assert float(auc_variance(0.8, 10, 30)) == pytest.approx(0.008207, abs=5e-7)


def test_benjamini_hochberg_rejects_as_in_the_fixture():
    adjusted = benjamini_hochberg([0.001, 0.2, 0.012, 0.04, 0.5])
    assert (adjusted <= 0.05).tolist() == [True, False, True, False, False]
    assert np.isnan(benjamini_hochberg([np.nan, 0.01])).tolist() == [True, False]
    assert benjamini_hochberg([np.nan, 0.01])[1] == 0.01


def test_sessions_have_the_auc_of_their_own_rows():
    rng = np.random.default_rng(2)
    n = 400
    who, topic = rng.integers(0, 4, n), rng.integers(0, 3, n)
    label, prior = rng.integers(0, 2, n), rng.integers(0, 8, n).astype(float)  # many ties
    prior[rng.random(n) < 0.1] = np.nan
    log = ScreeningLog.of(who, topic, np.arange(n), label, prior=prior)
    values, variances = session_aucs(log)
    for session, start in enumerate(log.starts):
        rows = (who == log.assessor[start]) & (topic == log.topic[start]) & ~np.isnan(prior)
        expected = auc(prior[rows], label[rows])
        assert values[session] == pytest.approx(expected)
        n_relevant = int(label[rows].sum())
        assert variances[session] == pytest.approx(
            float(auc_variance(expected, n_relevant, rows.sum() - n_relevant))
        )


def test_error_rates_are_compared_with_those_of_the_others():
    """Six assessors, ten known answers of each kind; the last errs on nine of ten that are not relevant."""
    who = np.repeat(np.arange(6), 20)
    truth = np.tile(np.repeat([0, 1], 10), 6)
    label = truth.copy()
    label[100:109] = 1
    log = ScreeningLog.of(who, np.zeros(120, int), np.arange(120), label, truth=truth)
    alarms, missed = false_alarms(log), misses(log)
    assert alarms.effect[5] == 0.9
    assert alarms.p[5] < 1e-12
    assert alarms.p[:5] == pytest.approx(np.ones(5))
    assert missed.p == pytest.approx(np.ones(6))
    assert alarms.topics == {5: (0,)}


def test_where_the_peers_spread_an_error_rate_must_stand_out_from_their_spread_too():
    """Twelve assessors with 100 known answers each; every one has met topics of another difficulty."""
    wrong = np.array([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24])
    who = np.repeat(np.arange(12), 100)
    truth = np.zeros(1200, int)
    label = np.concatenate([np.arange(100) < k for k in wrong]).astype(int)
    log = ScreeningLog.of(who, np.zeros(1200, int), np.arange(1200), label, truth=truth)
    found = false_alarms(log)
    # The others' rate is (132 + 1) / (1100 + 2): 24 of 100 would be improbable, did all topics have that rate.
    assert binom.sf(23, 100, 133 / 1102) < 0.001
    assert found.p[11] > 0.02
    alone = ScreeningLog.of(who, np.zeros(1200, int), np.arange(1200), label * (who == 11), truth=truth)
    assert false_alarms(alone).p[11] < 1e-12


# -- less accurate than the others ----------------------------------------------------------------------------


def test_the_p_is_that_of_mantel_and_haenszel_with_the_true_grades_as_strata():
    rng = np.random.default_rng(6)
    counts = rng.integers(0, 12, size=(6, 3, 3)).astype(float)
    for one, p in enumerate(less_accurate(counts)):
        k = mean = variance = 0.0
        for grade in range(3):
            n_right, n_all = int(counts[:, grade, grade].sum()), int(counts[:, grade].sum())
            law = hypergeom(n_all, n_right, int(counts[one, grade].sum()))
            k, mean, variance = k + counts[one, grade, grade], mean + law.mean(), variance + law.var()
        assert p == pytest.approx(norm.cdf((k - mean + 0.5) / np.sqrt(variance)), rel=1e-12)


def right_of_110(n_right):
    """Return the table of 110 known answers of two grades, so many of them right."""
    return np.array([[n_right - 20.0, 75 - n_right], [35, 20]])


def test_a_guesser_whose_interval_reaches_above_one_half_is_less_accurate_than_seven_others():
    counts = np.stack([right_of_110(k) for k in (66, 70, 64, 68, 62, 67, 65, 47)])
    k = counts[7].trace()
    ends = beta.ppf([0.025, 0.975], k + 0.5, 110 - k + 0.5)
    assert ends == pytest.approx([0.337, 0.519], abs=2e-3)  # so the rule of one half says nothing
    p = holm(less_accurate(counts))
    assert p[7] < 0.05
    assert p[:7].min() > 0.5


def test_with_too_few_answers_or_others_nobody_is_tested():
    counts = np.stack([right_of_110(k) for k in (66, 70, 64, 68, 47)])
    assert not np.isnan(less_accurate(counts)).any()
    assert np.isnan(less_accurate(counts[1:])).all()
    counts[0] /= 6  # 18.3 answers
    assert np.isnan(less_accurate(counts)).all()
    with pytest.raises(ValueError, match="got an array of shape"):
        less_accurate(np.ones((2, 3)))


def simulated_counts(skills, n, rng):
    """Return the tables of assessors with these skills, on documents that are alike popular ten in a row."""
    tables = np.zeros((len(skills), 4, 4))
    for table, skill in zip(tables, skills, strict=True):
        true = rng.choice(4, size=n, p=[0.55, 0.2, 0.15, 0.1])
        shares = np.repeat(rng.random(n // 10 + 1), 10)[:n]
        np.add.at(table, (true, simulated_grades(rng, true, shares, skill)), 1)
    return tables


def test_among_equals_few_are_flagged_and_who_guesses_nearly_always():
    rng, n = np.random.default_rng(8), 500
    equals = sum((holm(less_accurate(simulated_counts([0.95] * 10, 65, rng))) < 0.05).any() for _ in range(n))
    assert equals / n <= 0.06 + 2 * np.sqrt(0.06 * 0.94 / n)
    skills = [1, 0.95, 0.95, 0.9, 0.85, 0.6, 0.5, 0.1]  # the demo's
    flags = np.array([holm(less_accurate(simulated_counts(skills, 110, rng))) < 0.05 for _ in range(n)])
    assert flags[:, 7].mean() > 0.9
    assert flags[:, :5].any(axis=1).mean() < 0.02
