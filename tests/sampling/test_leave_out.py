"""A fit for every fold from the labels of the others: the optimum, to the bit without the fold, and never run away."""

from dataclasses import replace

import numpy as np
import pytest

import sampling.leave_out
from sampling.leave_out import fits_without_each_fold
from sampling.logistic import LogisticProblem, minimise

N_FOLDS = 4


def example(n_labels=3000, n_groups=30, steep=1.0, seed=0):
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.ones((1, n_labels)), rng.normal(size=(3, n_labels))])
    group = rng.integers(0, n_groups, n_labels)
    chance = 1 / (1 + np.exp(-steep * (columns[1] - 0.5 * columns[2] + rng.normal(size=n_groups)[group])))
    problem = LogisticProblem(
        columns=columns,
        target=np.where(rng.random(n_labels) < 0.2, 1 / 3, rng.random(n_labels) < chance),
        offset=rng.normal(size=n_labels) - 1.0,
        group=group,
        n_groups=n_groups + 1,  # one has no labels
        ridge=np.array([0.3, 1.0, 1.0, 10.0]),
        group_ridge=1.0,
    )
    return problem, rng.integers(0, N_FOLDS, n_labels)


def some(problem, kept):
    return replace(
        problem,
        columns=problem.columns[:, kept],
        target=problem.target[kept],
        offset=problem.offset[kept],
        group=problem.group[kept],
    )


@pytest.fixture
def many(monkeypatch):
    """Take 500 labels for many."""
    monkeypatch.setattr(sampling.leave_out, "FEW_LABELS", 500)
    monkeypatch.setattr(sampling.leave_out, "FIRST_PARTS", (16, 4))


def alone(monkeypatch):
    """Notice every fit that is made by itself, with its number of labels."""
    made = []

    def noticed(problem, **options):
        made.append(problem.target.size)
        return minimise(problem, **options)

    monkeypatch.setattr(sampling.leave_out, "minimise", noticed)
    return made


def test_fits_made_together_are_the_optima_of_the_folds_others(many, monkeypatch):
    problem, fold = example()
    made = alone(monkeypatch)
    b, a = fits_without_each_fold(problem, fold, N_FOLDS)
    assert max(made) < 300  # the starts on every 16th label, and no other
    for k in range(N_FOLDS):
        fit = minimise(some(problem, fold != k))
        assert b[k] == pytest.approx(fit.coefficients, abs=1e-7)
        assert a[k] == pytest.approx(fit.effects, abs=1e-7)
    assert not a[:, -1].any()


@pytest.mark.parametrize("few", [500, 20_000])
def test_every_fit_can_have_labels_of_its_own(few, monkeypatch):
    monkeypatch.setattr(sampling.leave_out, "FEW_LABELS", few)
    problem, fold = example()
    targets = np.random.default_rng(5).random((N_FOLDS, fold.size))
    b, a = fits_without_each_fold(replace(problem, target=targets), fold, N_FOLDS)
    for k in range(N_FOLDS):
        fit = minimise(some(replace(problem, target=targets[k]), fold != k))
        assert b[k] == pytest.approx(fit.coefficients, abs=1e-7)
        assert a[k] == pytest.approx(fit.effects, abs=1e-7)


def test_few_labels_are_fitted_one_fold_at_a_time_to_the_last_bit():
    problem, fold = example()
    b, a = fits_without_each_fold(problem, fold, N_FOLDS)
    for k in range(N_FOLDS):
        fit = minimise(some(problem, np.flatnonzero(fold != k)))
        assert b[k].tobytes() == fit.coefficients.tobytes()
        assert a[k].tobytes() == fit.effects.tobytes()


def test_no_bit_of_a_fit_depends_on_its_own_fold_but_those_of_the_others_do(many):
    problem, fold = example()
    mine = fold == 2
    b, a = fits_without_each_fold(problem, fold, N_FOLDS)
    flipped = replace(problem, target=np.where(mine, 1 - problem.target, problem.target))
    without = some(problem, ~mine)
    for changed, folds in ((flipped, fold), (without, fold[~mine])):
        new_b, new_a = fits_without_each_fold(changed, folds, N_FOLDS)
        assert new_b[2].tobytes() == b[2].tobytes()
        assert new_a[2].tobytes() == a[2].tobytes()
        assert (new_b[[0, 1, 3]] != b[[0, 1, 3]]).all()


def test_where_full_steps_run_away_the_fit_is_made_by_itself(many, monkeypatch):
    # what the starts say is turned round, and far off: a full step from there goes further away
    problem, fold = example(steep=6.0)
    monkeypatch.setattr(sampling.leave_out, "FIRST_PARTS", (16,))
    made = []

    def far_off(given, **options):
        made.append(given.target.size)
        fit = minimise(given, **options)
        return fit if given.target.size > 500 else replace(fit, coefficients=-40 * fit.coefficients)

    monkeypatch.setattr(sampling.leave_out, "minimise", far_off)
    b, _ = fits_without_each_fold(problem, fold, N_FOLDS)
    assert sum(size > 500 for size in made) == N_FOLDS
    for k in range(N_FOLDS):
        assert b[k] == pytest.approx(minimise(some(problem, fold != k)).coefficients, abs=1e-7)


def test_folds_without_labels_and_a_single_fold_are_served(many):
    problem, fold = example()
    b, _ = fits_without_each_fold(problem, fold, N_FOLDS + 1)
    assert b[N_FOLDS] == pytest.approx(minimise(problem).coefficients, abs=1e-7)
    only, _ = fits_without_each_fold(problem, np.zeros_like(fold), 1)
    assert not only.any()


def test_a_first_column_that_is_not_1_is_refused():
    problem, fold = example(n_labels=20)
    with pytest.raises(ValueError, match="first column must be 1 throughout, got 0"):
        fits_without_each_fold(replace(problem, columns=problem.columns * 0), fold, N_FOLDS)
