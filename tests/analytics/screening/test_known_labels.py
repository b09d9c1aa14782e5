"""Tests against the prior and known answers: fixtures, and sessions beside plain loops."""

import numpy as np
import pytest
from scipy.stats import binom

from analytics.screening.known import auc, auc_variance, false_alarms, misses, session_aucs
from analytics.screening.log import ScreeningLog
from analytics.screening.screens import benjamini_hochberg


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
