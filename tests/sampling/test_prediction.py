"""Cross-fitted predictions: what they may use, and what they become with few labels and with many."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

from sampling.draws import permanent_random_numbers
from sampling.measures.sparse import from_dense
from sampling.prediction import (
    cross_fitted,
    folds,
    posterior_prior,
    rank_features,
    standardise,
)
from sampling.questions import prior_of_runs

# ---- folds -----------------------------------------------------------------------------------------


def identifiers(n_items):
    return [str(index % 7) for index in range(n_items)], [f"d{index}" for index in range(n_items)]


def test_the_fold_of_a_pair_depends_on_its_ids_and_the_seed_only():
    topics, docs = identifiers(500)
    all_at_once = folds(topics, docs, seed=3)
    assert folds(topics[::-1], docs[::-1], seed=3).tolist() == all_at_once[::-1].tolist()
    assert folds(topics[100:101], docs[100:101], seed=3)[0] == all_at_once[100]
    assert folds(topics, docs, seed=4).tolist() != all_at_once.tolist()


def test_folds_are_even_and_independent_of_the_numbers_that_decide_the_draw():
    topics, docs = identifiers(20_000)
    fold, number = folds(topics, docs, seed=3), permanent_random_numbers(topics, docs, 3)
    assert set(fold.tolist()) == set(range(10))
    # 2,000 expected a fold with standard deviation 42; a mean of 2,000 uniform numbers has .0065
    assert np.abs(np.bincount(fold) - 2000).max() < 200
    means = np.bincount(fold, number) / np.bincount(fold)
    assert np.abs(means - 0.5).max() < 0.03


def test_fewer_than_two_folds_and_seeds_out_of_range_are_refused():
    with pytest.raises(ValueError, match="n_folds must be at least 2, got 1"):
        folds(["1"], ["a"], seed=1, n_folds=1)
    with pytest.raises(ValueError, match="seed"):
        folds(["1"], ["a"], seed=-1)


# ---- features --------------------------------------------------------------------------------------

RANKS = np.array([[1, 2, 0, 40, 11], [3, 0, 0, 90, 1], [2, 12, 5, 0, 0]])


def test_rank_features_are_counts_and_mean_reciprocal_ranks_of_all_runs():
    within_10, within_depth = np.array([3, 1, 1, 0, 1]), np.array([3, 2, 1, 1, 2])
    returned = np.array([3, 2, 1, 2, 2])
    reciprocal = np.array([1 + 1 / 3 + 1 / 2, 1 / 2 + 1 / 12, 1 / 5, 1 / 40 + 1 / 90, 1 / 11 + 1])
    fused = np.array([1 / 61 + 1 / 63 + 1 / 62, 1 / 62 + 1 / 72, 1 / 65, 1 / 100 + 1 / 150, 1 / 71 + 1 / 61])
    expected = [np.log((count + 0.5) / (3.5 - count)) for count in (within_10, within_depth, returned)]
    expected += [reciprocal / 3, fused / 3, np.log([1, 2, 5, 40, 1])]
    columns = np.stack([(values - values.mean()) / values.std() for values in expected], axis=1)
    np.testing.assert_allclose(rank_features(RANKS, 50), columns, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_rank_features_are_the_same_for_any_integer_type_and_for_sparse_ranks(dtype):
    expected = rank_features(RANKS, 50)
    assert rank_features(RANKS.astype(dtype), 50).tobytes() == expected.tobytes()
    assert rank_features(from_dense(RANKS.astype(dtype)), 50).tobytes() == expected.tobytes()


def test_rank_features_do_not_depend_on_the_order_of_the_runs():
    np.testing.assert_allclose(rank_features(RANKS[::-1], 50), rank_features(RANKS, 50), atol=1e-12)


def test_a_column_that_says_nothing_becomes_zero():
    assert not standardise(np.full((4, 2), 0.1 + 0.2)).any()
    assert not rank_features(np.array([[1, 1, 1]]), 10).any()


@pytest.mark.parametrize("ranks", [np.ones((2, 3)), np.array([1, 2]), np.array([[-1, 2]])])
def test_ranks_of_another_kind_are_refused(ranks):
    with pytest.raises(ValueError, match="ranks must"):
        rank_features(ranks, 10)


def test_bayes_rule_holds_for_sure_and_for_unsure_machine_judges():
    prior = np.array([0.2, 0.2, 0.2, 0.2])
    said = posterior_prior(prior, [1.0, 0.0, 0.5, 0.75], sensitivity=0.8, specificity=0.9)
    unsure = 0.2 * (0.75 * 0.8 + 0.25 * 0.2)
    expected = [0.16 / 0.24, 0.04 / 0.76, 0.2, unsure / (unsure + 0.8 * (0.75 * 0.1 + 0.25 * 0.9))]
    assert said == pytest.approx(expected, abs=1e-15)


def test_an_infallible_machine_judge_is_refused():
    with pytest.raises(ValueError, match="sensitivity must be within"):
        posterior_prior([0.5], [1.0], sensitivity=1.0, specificity=0.9)


# ---- predictions -----------------------------------------------------------------------------------


def problem(seed=0, n_items=400, n_labels=150):
    """Return arguments of `cross_fitted`, the prior being too high and too flat, and the truth behind the labels."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=n_items)
    topic = rng.integers(0, 8, n_items)
    chance = expit(2.0 * signal - 2.0 + np.linspace(-1, 1, 8)[topic])
    gain = (rng.random(n_items) < chance).astype(float)
    labelled = np.sort(rng.choice(n_items, n_labels, replace=False))
    return {
        "features": np.stack([signal + 0.3 * rng.normal(size=n_items), rng.normal(size=n_items)], axis=1),
        "topic_index": topic,
        "fold": rng.integers(0, 5, n_items),
        "prior": expit(0.3 * signal),
        "labelled": labelled,
        "label": gain[labelled],
    }, chance


def test_without_labels_the_prediction_is_the_prior():
    given, _ = problem()
    none = given | {"labelled": np.array([], dtype=np.int64), "label": np.array([])}
    np.testing.assert_allclose(cross_fitted(**none), given["prior"], rtol=1e-14)
    np.testing.assert_allclose(
        cross_fitted(**none | {"labelled": [], "label": []}), given["prior"], rtol=1e-14
    )


def test_a_prediction_never_uses_a_label_of_its_own_fold():
    given, _ = problem()
    before = cross_fitted(**given)
    mine = given["fold"] == 2
    changed = np.where(mine[given["labelled"]], 1.0 - given["label"], given["label"])
    after = cross_fitted(**given | {"label": changed})
    assert after[mine].tobytes() == before[mine].tobytes()
    assert (after[~mine] != before[~mine]).all()
    # Nor whether an item of its own fold was drawn at all.
    kept = ~mine[given["labelled"]]
    without = cross_fitted(**given | {"labelled": given["labelled"][kept], "label": given["label"][kept]})
    assert without[mine].tobytes() == before[mine].tobytes()


def test_more_labels_bring_the_prediction_nearer_to_the_truth():
    errors = []
    for n_labels in (0, 10, 100, 2000):
        given, chance = problem(n_items=4000, n_labels=n_labels)
        errors.append(float(np.square(cross_fitted(**given) - chance).mean()))
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[0] > 0.05 > 0.01 > errors[3]


def test_graded_labels_are_predicted_as_shares_of_the_largest_gain():
    given, chance = problem(n_items=2000, n_labels=1500)
    share = chance[given["labelled"]]
    predicted = cross_fitted(**given | {"label": share})
    assert float(np.abs(predicted - chance).mean()) < 0.08
    assert predicted.mean() == pytest.approx(chance.mean(), abs=0.02)


def test_predictions_move_with_their_items_when_the_frame_is_put_in_another_order():
    given, _ = problem()
    rng = np.random.default_rng(1)
    order = rng.permutation(given["prior"].size)
    place = np.argsort(order)
    shuffled = {name: given[name][order] for name in ("features", "topic_index", "fold", "prior")}
    labels = rng.permutation(given["labelled"].size)
    shuffled |= {"labelled": place[given["labelled"]][labels], "label": given["label"][labels]}
    np.testing.assert_allclose(cross_fitted(**shuffled), cross_fitted(**given)[order], atol=1e-9)


def test_a_topic_whose_labels_are_high_lifts_the_predictions_of_its_other_items():
    # Two topics alike in all but their labels: 40 of 50 relevant, and 10 of 50.
    topic, fold = np.repeat([0, 1], 100), np.tile(np.arange(5), 40)
    labelled = np.flatnonzero(np.arange(200) % 2)
    label = np.concatenate([np.arange(50) < 40, np.arange(50) < 10]).astype(float)
    predicted = cross_fitted(
        features=np.zeros((200, 0)),
        topic_index=topic,
        fold=fold,
        prior=np.full(200, 0.5),
        labelled=labelled,
        label=label,
    )
    assert predicted[topic == 0] == pytest.approx(np.full(100, 0.8), abs=0.06)
    assert predicted[topic == 1] == pytest.approx(np.full(100, 0.2), abs=0.06)


def test_topics_without_labels_and_topic_numbers_with_gaps_are_predicted():
    given, _ = problem()
    renamed = given | {"topic_index": given["topic_index"].astype(np.uint8) * 30}
    np.testing.assert_allclose(cross_fitted(**renamed), cross_fitted(**given), atol=1e-12)
    silent = given["topic_index"][given["labelled"]] != 3
    given |= {"labelled": given["labelled"][silent], "label": given["label"][silent]}
    assert np.isfinite(cross_fitted(**given)).all()


@pytest.mark.parametrize(
    "change",
    [
        {"label": np.zeros(150)},
        {"label": np.ones(150)},
        {"topic_index": np.zeros(400, dtype=np.int64)},
        {"topic_index": np.arange(400)},
        {"features": np.full((400, 3), 7.0)},
        {"features": np.zeros((400, 0))},
        {"features": rank_features(np.arange(1, 401)[None, :], 100)},
        {"prior": np.full(400, 0.5)},
        {"prior": np.where(np.arange(400) % 2, 1e-15, 1 - 1e-15)},
        {"fold": np.zeros(400, dtype=np.uint8)},
        {"feature_ridge": 1e-6, "topic_ridge": 1e-6},
        {"features": np.outer(np.arange(400), [1e250, 1e-250])},
    ],
)
def test_predictions_are_probabilities_whatever_the_labels_and_features(change):
    given, _ = problem()
    predicted = cross_fitted(**given | change)
    assert predicted.shape == (400,)
    assert ((predicted > 0) & (predicted < 1)).all()


def test_labels_that_a_feature_separates_are_predicted_without_running_away():
    given, _ = problem(n_labels=400)
    sides = (given["features"][:, 0] > 0).astype(float)
    predicted = cross_fitted(**given | {"label": sides, "feature_ridge": 1e-4})
    assert ((predicted > 0.5) == (sides > 0.5)).mean() > 0.97
    assert ((predicted > 0) & (predicted < 1)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": np.zeros(400)}, "prior must be within"),
        ({"label": np.full(150, 1.5)}, "label must be within"),
        ({"label": np.full(150, np.nan)}, "label must be within"),
        ({"label": np.zeros(3)}, "label must have one value"),
        ({"labelled": np.full(150, 400)}, "labelled must be below 400"),
        ({"labelled": np.full(150, -1)}, "labelled must be at least 0"),
        ({"fold": np.zeros(3, dtype=int)}, "fold must have 400 items"),
        ({"topic_index": np.zeros(400)}, "topic_index must be integers"),
        ({"features": np.full((400, 1), np.inf)}, "features must be finite"),
        ({"feature_ridge": 0.0}, "ridges must be positive"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(change, message):
    given, _ = problem()
    with pytest.raises(ValueError, match=message):
        cross_fitted(**given | change)


def test_inputs_are_not_changed():
    given, _ = problem()
    before = {name: value.tobytes() for name, value in given.items()}
    cross_fitted(**given)
    assert {name: value.tobytes() for name, value in given.items()} == before


PROGRAM = """
import hashlib, numpy as np
from sampling.prediction import cross_fitted, rank_features
rng = np.random.default_rng(0)
ranks = rng.integers(0, 101, (30, 5000))
drawn = rng.choice(5000, 2000, replace=False)
f = cross_fitted(features=np.column_stack([rank_features(ranks, 100), rng.normal(size=(5000, 14))]),
    topic_index=rng.integers(0, 200, 5000), fold=rng.integers(0, 10, 5000), prior=rng.uniform(.01, .5, 5000),
    labelled=drawn, label=rng.random(2000))
print(hashlib.sha256(f.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_the_bits_are_the_same_under_another_number_of_threads():
    digests = set()
    for threads in ("1", "2"):
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | counts,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


def test_the_prior_from_ranks_serves_in_cross_fitting():
    given, _ = problem()
    ranks = np.random.default_rng(2).integers(0, 101, (3, 400))
    given |= {"prior": prior_of_runs(ranks, 100), "features": rank_features(ranks, 100)}
    assert ((cross_fitted(**given) > 0) & (cross_fitted(**given) < 1)).all()
