"""Components of the runs against an independent computation, and how the labels choose their number."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from sampling.components import cross_fitted_with_components, run_components
from sampling.leave_out import some_of_each_fold
from sampling.measures.sparse import from_dense
from sampling.prediction import cross_fitted

N_RUNS, N_ITEMS = 24, 600
RNG = np.random.default_rng(11)
RANKS = np.where(RNG.random((N_RUNS, N_ITEMS)) < 0.4, RNG.integers(1, 60, (N_RUNS, N_ITEMS)), 0)


def centred_discounts(ranks):
    """Return [item, run], written with a loop as a textbook would."""
    table = np.zeros(ranks.T.shape)
    for run, item in product(range(ranks.shape[0]), range(ranks.shape[1])):
        if ranks[run, item]:
            table[item, run] = 1 / np.log2(ranks[run, item] + 1)
    return table - table.mean(axis=0)


def test_components_are_those_of_a_singular_value_decomposition_of_the_centred_discounts():
    left, _, _ = np.linalg.svd(centred_discounts(RANKS), full_matrices=False)
    expected = left[:, :20] * np.sqrt(N_ITEMS)
    found = run_components(RANKS).first(20)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-5)


def test_components_are_standardised_and_uncorrelated():
    found = run_components(RANKS).first(20)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.T @ found / N_ITEMS, np.eye(20), atol=1e-6)


def test_components_of_some_items_are_those_of_all_and_of_sparse_ranks_the_same():
    components, items = run_components(RANKS), np.array([5, 77, 5])
    np.testing.assert_array_equal(components.first(10, items), components.first(10)[items])
    np.testing.assert_array_equal(run_components(from_dense(RANKS)).first(10), components.first(10))


def test_few_runs_have_no_components_and_runs_that_agree_have_one():
    assert run_components(RANKS[:9]).counts == [0]
    assert run_components(np.tile(RANKS[:1], (30, 1))).axes.shape == (30, 1)
    assert run_components(np.zeros((30, 7), dtype=np.int64)).counts == [0]
    assert run_components(RANKS).counts == [0, 10, 20]


def given(relevant, n_labels=400, seed=0):
    """Return arguments of the fit: topics, folds, a flat prior, and labels of a random part."""
    rng = np.random.default_rng(seed)
    labelled = rng.choice(N_ITEMS, n_labels, replace=False)
    return {
        "features": rng.normal(size=(N_ITEMS, 1)),
        "topic_index": np.arange(N_ITEMS) % 6,
        "fold": rng.integers(0, 10, N_ITEMS),
        "prior": np.full(N_ITEMS, 0.3),
        "labelled": labelled,
        "label": relevant[labelled].astype(float),
    }


def test_components_that_say_nothing_are_seldom_used():
    components, chosen = run_components(RANKS), []
    for seed in range(10):
        relevant = np.random.default_rng([1, seed]).random(N_ITEMS) < 0.3
        arguments = given(relevant, seed=seed)
        found = cross_fitted_with_components(components=components, **arguments)
        chosen += found.n_components.tolist()
        without = found.n_components[arguments["fold"]] == 0
        np.testing.assert_array_equal(found.share[without], cross_fitted(**arguments)[without])
    assert np.mean(np.array(chosen) == 0) > 0.7


def test_components_that_say_much_are_used_and_make_predictions_better():
    components = run_components(RANKS)
    told = components.first(2).sum(axis=1)
    relevant = np.random.default_rng(2).random(N_ITEMS) < 1 / (1 + np.exp(-1.5 * told))
    arguments = given(relevant)
    found = cross_fitted_with_components(components=components, **arguments)
    assert min(found.n_components) >= 10
    rest = np.setdiff1d(np.arange(N_ITEMS), arguments["labelled"])
    with_them, without = (
        np.square(share[rest] - relevant[rest]).mean() for share in (found.share, cross_fitted(**arguments))
    )
    assert with_them < 0.9 * without


@pytest.mark.parametrize("change", ["labels", "fewer"])
def test_neither_labels_nor_their_number_in_the_own_fold_move_a_prediction_or_the_number_of_components(
    change,
):
    components = run_components(RANKS)
    told = components.first(2).sum(axis=1)
    relevant = np.random.default_rng(2).random(N_ITEMS) < 1 / (1 + np.exp(-0.5 * told))
    arguments = given(relevant, n_labels=150)
    before = cross_fitted_with_components(components=components, **arguments)
    for fold in range(10):
        own = arguments["fold"][arguments["labelled"]] == fold
        if change == "labels":
            other = arguments | {"label": np.where(own, 1 - arguments["label"], arguments["label"])}
        else:
            other = arguments | {name: arguments[name][~own] for name in ("labelled", "label")}
        after = cross_fitted_with_components(components=components, **other)
        here = arguments["fold"] == fold
        assert after.n_components[fold] == before.n_components[fold]
        np.testing.assert_array_equal(after.share[here], before.share[here])
        assert not np.array_equal(after.share[~here], before.share[~here])


SMALL = {
    "features": np.zeros((6, 1)),
    "topic_index": np.zeros(6, dtype=np.int64),
    "fold": np.array([0, 1, 2, 0, 1, 2]),
    "prior": np.array([0.3, 0.4, 0.2, 0.5, 0.25, 0.35]),
    "feature_ridge": 0.5,
}
GAIN, WEIGHT = np.array([1.0, 0.5, 0.0, 1.0, 0.0, 1.0]), np.array([0.7, -0.4, 0.2, 0.5, -0.6, 0.3])
PI = np.array([0.5, 0.4, 0.3, 0.6, 0.25, 0.35])


def expectation(predict):
    """Return the mean of the difference estimator over every sample of six items, with `predict` made for each."""
    mean = 0.0
    for bits in product((False, True), repeat=6):
        drawn = np.array(bits)
        f = predict(np.flatnonzero(drawn))
        value = (WEIGHT * f).sum() + (drawn * WEIGHT * (GAIN - f) / PI).sum()
        mean += float(np.where(drawn, PI, 1 - PI).prod()) * value
    return mean


def test_the_difference_estimator_is_exactly_unbiased_whatever_the_labels_choose(monkeypatch):
    monkeypatch.setattr("sampling.components.COUNTS", (0, 1, 2))
    components = run_components(np.random.default_rng(5).integers(0, 7, (14, 6)))
    chosen = []

    def predict(places):
        found = cross_fitted_with_components(
            components=components, **SMALL, labelled=places, label=GAIN[places]
        )
        chosen.append(tuple(found.n_components.tolist()))
        return found.share

    assert expectation(predict) == pytest.approx(float((WEIGHT * GAIN).sum()), abs=1e-12)
    assert len(set(chosen)) > 3
    assert {count for one in chosen for count in one} > {0}

    def chosen_by_all(places):
        """The control: one number of components for all folds, which every label has a say in."""
        counts = cross_fitted_with_components(
            components=components, **SMALL, labelled=places, label=GAIN[places]
        ).n_components
        features = np.concatenate([SMALL["features"], components.first(int(counts.max()))], axis=1)
        return cross_fitted(**SMALL | {"features": features}, labelled=places, label=GAIN[places])

    assert abs(expectation(chosen_by_all) - float((WEIGHT * GAIN).sum())) > 1e-5


def test_of_a_fold_with_many_labels_every_nth_is_used(monkeypatch):
    monkeypatch.setattr("sampling.components.some_of_each_fold", partial(some_of_each_fold, most=12))
    relevant = np.random.default_rng(3).random(N_ITEMS) < 0.4
    arguments, components = given(relevant, n_labels=350), run_components(RANKS[:9])
    own = arguments["fold"][arguments["labelled"]]
    kept = np.zeros(own.size, dtype=bool)
    for fold in range(10):
        places = np.flatnonzero(own == fold)
        kept[places[:: int(np.ceil(places.size / 12))]] = True
    assert kept.sum() < 150
    few = {name: arguments[name][kept] for name in ("labelled", "label")}
    found = cross_fitted_with_components(components=components, **arguments)
    np.testing.assert_array_equal(found.share, cross_fitted(**arguments | few))


def test_sums_of_components_are_those_of_the_components_themselves():
    components, rng = run_components(RANKS), np.random.default_rng(4)
    coefficients, items, fit = rng.normal(size=(3, 10)), rng.permutation(N_ITEMS)[:50], rng.integers(0, 3, 50)
    expected = (components.first(10)[items] * coefficients[fit]).sum(axis=1)
    np.testing.assert_allclose(components.sums(coefficients, fit, items), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": np.zeros((3, 1))}, "features must have 600 items"),
        ({"label": np.full(400, 2.0)}, "label must be within"),
        ({"prior": np.ones(N_ITEMS)}, "prior must be within"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, words):
    arguments = given(np.zeros(N_ITEMS)) | change
    with pytest.raises(ValueError, match=words):
        cross_fitted_with_components(components=run_components(RANKS), **arguments)
