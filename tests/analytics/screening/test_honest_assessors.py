"""Honest assessors on collections like the Million Query track's: screening leaves them alone, other tests do not.

benchmarks/screening.py in small, with its controls.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from analytics.screening.screens import SCREENS, screen
from experiments.papers.carterette import pooled_serial, two_proportion_z, unbroken_runs, zero_drift
from experiments.papers.track_collection import make_collection
from judging.erring_assessors import BEHAVIOURS, erring_assessor

# For these lines alone: benchmarks/judging.py is not the package of that name, benchmarks/coverage.py not the tool.
sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
import screening
from parts.screening_sessions import HONEST, session_log

sys.path.pop()

N_ASSESSORS = 120


@pytest.fixture(scope="module")
def topics():
    return make_collection(100, 3)


@pytest.fixture(scope="module")
def logs(topics):
    """The log by judgments and order."""
    return {
        (n_judgments, by_priority): session_log(
            [HONEST] * N_ASSESSORS, topics, n_judgments, [3, n_judgments], by_priority=by_priority
        )
        for n_judgments in (100, 300)
        for by_priority in (False, True)
    }


def rejected(p):
    return float(np.nanmean(p <= 0.05))


def test_the_two_proportions_of_the_fixture():
    assert two_proportion_z(44, 200, 150, 800) == pytest.approx(1.039621, abs=5e-7)
    # .22 against .18 at the stationary rate: significant at 2,401 transitions
    n = 2401 * np.array([0.1875, 0.8125])
    assert two_proportion_z(0.22 * n[0], n[0], 0.18 * n[1], n[1]) == pytest.approx(1.96, abs=5e-7)
    assert two_proportion_z(0, 10, 0, 10) == 0


@pytest.mark.parametrize("by_priority", [False, True])
@pytest.mark.parametrize("n_judgments", [100, 300])
def test_honest_assessors_are_left_alone_in_either_order(logs, n_judgments, by_priority):
    result = screen(logs[n_judgments, by_priority])
    assert screening.is_found(result).mean() <= 0.13  # .08 of 400, and what chance adds with 120
    assert screening.flagged(result, N_ASSESSORS).mean() <= 0.03


def test_the_two_proportions_of_all_topics_together_accuse_the_honest(logs):
    assert rejected(pooled_serial(logs[100, False])) > 0.15
    assert rejected(pooled_serial(logs[300, False])) > 0.4


def test_runs_without_blocks_and_drift_against_none_accuse_whoever_judges_in_order_of_priority(logs):
    for test in (unbroken_runs, zero_drift):
        assert rejected(test(logs[300, True])) > 0.5
        assert rejected(test(logs[300, False])) < 0.25


def test_a_session_in_order_of_priority_begins_with_the_likely_documents(logs):
    log = logs[100, True]
    same = np.diff(log.session) == 0
    assert (np.diff(log.prior)[same] <= 0).all()
    assert log.n_judgments.tolist() == [100] * N_ASSESSORS


def test_a_goal_that_is_missed_is_said():
    row = {"judgments": 100, "order": "random", "known": 0.2, "accused": 0.2, "controls": {"drift": 0.01}}
    results = {
        "honest": [row],
        "power": [{"behaviour": "pattern:0", "found": 0.5, "goal": 0.98}],
        "scale": [{"processor_seconds": 1.0}, {"processor_seconds": 20.0}],
    }
    sentences = screening.missed(results)
    assert len(sentences) == 4
    assert "0.200 of the honest accused" in sentences[0]
    assert "the control drift rejects only 0.010" in sentences[1]
    fine = {"honest": [row | {"accused": 0.02, "controls": {"drift": 0.9}}]}
    assert screening.missed(fine) == []


def test_the_page_about_assessors_has_a_row_for_every_test_and_behaviour():
    page = (Path(__file__).parents[3] / "docs" / "methods" / "assessors.md").read_text()
    assert [one.kind.label for one in SCREENS if f"\n| {one.kind.label} |" not in page] == []
    assert [one.key for one in BEHAVIOURS if f"| `{one.key}:" not in page] == []
    for behaviour in screening.GOALS:
        erring_assessor(behaviour)
