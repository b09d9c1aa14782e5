"""The fit behind the predictions: it ends at the optimum, and damping is what brings it there."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sampling.logistic import LogisticProblem, gradient, logits, loss, minimise


def example(seed=0, n_labels=300, ridge=0.7, group_ridge=1.3):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(4, n_labels))
    return LogisticProblem(
        columns=columns,
        target=np.clip(0.4 + 0.3 * columns[1] + 0.2 * rng.normal(size=n_labels), 0, 1),
        offset=rng.normal(size=n_labels) - 1.0,
        group=rng.integers(0, 6, n_labels),
        n_groups=7,  # one has no labels
        ridge=np.full(4, ridge),
        group_ridge=group_ridge,
    )


def test_the_fit_is_the_optimum_that_a_general_minimiser_finds():
    problem = example()
    fit = minimise(problem)
    found = minimize(
        lambda x: loss(problem, x[:4], x[4:]), np.zeros(11), method="BFGS", options={"gtol": 1e-7}
    )
    assert np.concatenate([fit.coefficients, fit.effects]) == pytest.approx(found.x, abs=1e-5)
    assert loss(problem, fit.coefficients, fit.effects) <= found.fun + 1e-12


def test_the_gradient_is_zero_at_the_fit_and_is_that_of_the_loss():
    problem = example()
    fit = minimise(problem)
    by_column, by_group, _ = gradient(problem, fit.coefficients, fit.effects)
    assert np.abs(by_column).max() < 1e-7
    assert np.abs(by_group).max() < 1e-7
    assert fit.steepness == max(np.abs(by_column).max(), np.abs(by_group).max())
    b, a = np.array([0.3, -0.2, 0.1, 0.5]), np.linspace(-1, 1, 7)
    by_column, by_group, _ = gradient(problem, b, a)
    step = 1e-6
    numeric = [
        (loss(problem, b + step * unit, a) - loss(problem, b - step * unit, a)) / (2 * step)
        for unit in np.eye(4)
    ]
    assert by_column == pytest.approx(numeric, rel=1e-6, abs=1e-5)
    numeric = [
        (loss(problem, b, a + step * unit) - loss(problem, b, a - step * unit)) / (2 * step)
        for unit in np.eye(7)
    ]
    assert by_group == pytest.approx(numeric, rel=1e-6, abs=1e-5)


def test_the_fit_is_the_same_wherever_it_starts_and_takes_no_step_from_its_own_end():
    problem = example()
    fit = minimise(problem)
    far = minimise(problem, start=(np.full(4, 3.0), np.full(7, -2.0)))
    assert far.coefficients == pytest.approx(fit.coefficients, abs=1e-9)
    assert far.effects == pytest.approx(fit.effects, abs=1e-9)
    assert minimise(problem, start=(fit.coefficients, fit.effects)).steps == 0 < far.steps


def test_groups_without_labels_and_fits_without_labels_stay_at_zero():
    problem = example()
    assert minimise(problem).effects[6] == 0.0
    nothing = LogisticProblem(
        np.zeros((2, 0)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), 3, np.ones(2), 1.0
    )
    fit = minimise(nothing)
    assert fit.steps == 0
    assert not fit.coefficients.any()
    assert not fit.effects.any()


def one_column(ridge):
    """Return labels of 1 that the offset believed nearly impossible: the loss is almost flat where the fit starts."""
    return LogisticProblem(
        columns=np.ones((1, 20)),
        target=np.concatenate([np.ones(19), [0.0]]),
        offset=np.full(20, -9.0),
        group=np.zeros(20, dtype=np.int64),
        n_groups=1,
        ridge=np.array([ridge]),
        group_ridge=1e6,
    )


def test_full_newton_steps_run_away_where_damped_ones_arrive():
    problem = one_column(ridge=1e-3)
    arrived, away = minimise(problem), minimise(problem, damped=False)
    assert arrived.steepness < 1e-8
    # At the optimum 19 of 20 labels are 1: logit(.95) = 2.94 from an offset of -9, less what the ridge takes.
    assert arrived.coefficients[0] == pytest.approx(9 + np.log(19), abs=0.05)
    assert away.steepness > 1e-3
    assert loss(problem, away.coefficients, away.effects) > 5 * loss(
        problem, arrived.coefficients, arrived.effects
    )


def test_separable_labels_end_at_a_finite_optimum():
    column = np.linspace(-1, 1, 50)
    problem = LogisticProblem(
        columns=np.stack([np.ones(50), column]),
        target=(column > 0).astype(float),
        offset=np.zeros(50),
        group=np.arange(50) % 3,
        n_groups=3,
        ridge=np.full(2, 1e-6),
        group_ridge=1e-6,
    )
    fit = minimise(problem)
    assert fit.steepness < 1e-7
    assert 10 < fit.coefficients[1] < 1e4
    assert np.isfinite(logits(problem, fit.coefficients, fit.effects)).all()
