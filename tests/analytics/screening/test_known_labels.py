"""Tests against the prior and known answers: fixtures, and sessions beside plain loops."""

import numpy as np
import pytest

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
