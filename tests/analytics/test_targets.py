import numpy as np
import pytest

import analytics.targets
from analytics.comparison import pairs_of_runs
from analytics.estimators import unsupported_share
from analytics.targets import TargetWeights
from sampling.sparse import from_dense

RNG = np.random.default_rng(4)
WEIGHTS = np.where(RNG.random((5, 60)) < 0.25, RNG.random((5, 60)), 0.0)
WEIGHTS[3] = WEIGHTS[1]  # two runs that are alike
PAIRS, DIFFERENCES = pairs_of_runs(WEIGHTS)
TABLE = np.concatenate([WEIGHTS, DIFFERENCES])
TOPIC = np.sort(RNG.integers(0, 4, 60))


@pytest.fixture(params=[1, 100, 4_000_000])
def targets(request, monkeypatch):
    monkeypatch.setattr(analytics.targets, "BLOCK", request.param)
    return TargetWeights(from_dense(WEIGHTS))


def test_targets_are_the_runs_and_then_their_pairs(targets):
    assert targets.targets == [*((run, None) for run in range(5)), *PAIRS]
    assert len(targets) == 15


def test_weights_at_some_items_are_those_columns_of_the_whole_table(targets):
    places = [7, 3, 3, 59, 0]
    assert targets.at(places).tolist() == TABLE[:, places].tolist()
    assert targets.at([]).shape == (15, 0)


def test_totals_are_those_of_the_whole_table(targets):
    values = RNG.random(60)
    assert targets.totals(values) == pytest.approx(TABLE @ values, abs=1e-12)
    by_topic = [np.bincount(TOPIC, row * values, 4) for row in TABLE]
    assert targets.totals_by_topic(values, TOPIC, 4) == pytest.approx(np.stack(by_topic), abs=1e-12)


def test_runs_that_are_alike_have_no_items_that_tell_them_apart(targets):
    counts = targets.n_weighed()
    assert counts.tolist() == np.count_nonzero(TABLE, axis=1).tolist()
    assert targets.is_zero().tolist() == (counts == 0).tolist()
    assert np.flatnonzero(targets.is_zero()).tolist() == [targets.targets.index((1, 3))]


def test_a_run_that_returns_the_same_items_with_other_weights_is_not_alike():
    weights = np.array([[0.5, 0.25, 0.0], [0.25, 0.5, 0.0], [0.5, 0.25, 0.0], [0.0, 0.5, 0.25]])
    targets = TargetWeights(from_dense(weights))
    assert [pair for pair, same in zip(targets.targets, targets.is_zero(), strict=True) if same] == [(0, 2)]


def test_the_share_that_no_draw_can_reach_is_that_of_the_whole_table(targets):
    probability = np.where(RNG.random(60) < 0.3, 0.0, 0.5)
    assert targets.unsupported_share(probability) == pytest.approx(
        unsupported_share(TABLE, probability), abs=1e-12
    )
    assert targets.unsupported_share(np.full(60, 0.5)).tolist() == [0.0] * 15


def test_runs_that_return_nothing_have_targets_of_weight_zero():
    empty = TargetWeights(from_dense(np.zeros((2, 3))))
    assert empty.n_weighed().tolist() == [0, 0, 0]
    assert empty.is_zero().tolist() == [True, True, True]
    assert empty.totals([1.0, 1.0, 1.0]).tolist() == [0, 0, 0]
    assert empty.unsupported_share([0.0, 0.0, 0.0]).tolist() == [0, 0, 0]
