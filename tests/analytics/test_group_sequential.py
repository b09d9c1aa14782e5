"""Bounds for declared looks: against the classical tables, by simulation, and at sizes that nobody planned."""

import time

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from analytics.estimation.group_sequential import (
    Look,
    bound_at_look,
    crossing_probabilities,
    look_bounds,
    spent_by,
)

SHAPES = {"O'Brien-Fleming": lambda n: np.sqrt(n / np.arange(1, n + 1)), "Pocock": np.ones}


def equal(n):
    return np.arange(1.0, n + 1)


# Jennison and Turnbull (2000), tables 2.1 and 2.3: two-sided, 5 %.
@pytest.mark.parametrize(
    ("shape", "n", "constant"),
    [
        ("O'Brien-Fleming", 5, 2.040),
        ("O'Brien-Fleming", 10, 2.087),
        ("Pocock", 5, 2.413),
        ("Pocock", 10, 2.555),
    ],
)
def test_the_classical_constants_at_equal_information(shape, n, constant):
    def above(c):
        return crossing_probabilities(c * SHAPES[shape](n), equal(n)).sum() - 0.05

    assert optimize.brentq(above, 1.5, 4) == pytest.approx(constant, abs=5e-4)


# DeMets and Lan (1994), table 1: two-sided 5 %, five equal looks.
@pytest.mark.parametrize(
    ("spending", "bounds"),
    [("obrien-fleming", [4.88, 3.36, 2.68, 2.29, 2.03]), ("pocock", [2.44, 2.43, 2.41, 2.40, 2.39])],
)
def test_the_bounds_of_the_spending_functions_at_five_equal_looks(spending, bounds):
    found = look_bounds(equal(5), spent_by(equal(5) / 5, spending=spending))
    assert found == pytest.approx(bounds, abs=5e-3)


def test_two_looks_by_an_integral_of_the_bivariate_normal():
    information, spent = np.array([0.3, 1.0]), np.array([0.01, 0.05])
    first, second = look_bounds(information, spent)
    assert first == pytest.approx(stats.norm.isf(0.005), rel=1e-12)
    slope, rest = np.sqrt(0.3), np.sqrt(0.7)

    def stays(u):
        within = stats.norm.cdf((second - slope * u) / rest) - stats.norm.cdf((-second - slope * u) / rest)
        return stats.norm.pdf(u) * within

    assert 1 - integrate.quad(stays, -first, first, epsabs=1e-13)[0] == pytest.approx(0.05, abs=1e-10)


def paths(information, n, seed=7):
    steps = np.sqrt(np.diff(information, prepend=0.0))
    walk = np.cumsum(np.random.default_rng(seed).normal(size=(n, steps.size)) * steps, axis=1)
    return np.abs(walk) / np.sqrt(information)


@pytest.mark.parametrize("information", [equal(5), np.array([1, 5, 6, 14, 40.0])])
def test_simulated_paths_leave_the_bounds_as_often_as_the_recursion_says_at_every_look(information):
    bounds = np.array([2.6, 2.5, 2.3, 2.2, 2.1])
    n = 200_000
    outside = paths(information, n) > bounds
    first = outside & (np.cumsum(outside, axis=1) == 1)
    expected = crossing_probabilities(bounds, information)
    assert first.mean(axis=0) == pytest.approx(expected, abs=4 * np.sqrt(0.02 / n))
    # a control: looks that were taken for independent
    assert first.mean(axis=0)[-1] != pytest.approx(2 * stats.norm.sf(bounds[-1]), abs=4 * np.sqrt(0.02 / n))


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_any_looks_spend_in_all_what_is_allowed_and_early_ones_do_not_depend_on_later(spending, level):
    rng = np.random.default_rng(3)
    for n in (2, 7, 50):
        information = np.cumsum(rng.uniform(0.5, 3, n))
        spent = spent_by(information / information[-1], spending=spending, level=level)
        bounds = look_bounds(information, spent)
        assert crossing_probabilities(bounds, information).cumsum() == pytest.approx(spent, abs=1e-11)
        assert look_bounds(information[: n // 2 + 1], spent[: n // 2 + 1]) == pytest.approx(
            bounds[: n // 2 + 1], abs=1e-9
        )
    assert spent[-1] == pytest.approx(1 - level, rel=1e-12)


def test_a_look_with_nothing_to_spend_has_no_bound_and_one_with_nothing_new_the_bound_before():
    bounds = look_bounds([1.0, 2.0, 2.0, 2.001, 3.0], [0.01, 0.01, 0.02, 0.03, 0.05])
    assert np.isinf(bounds[1:4]).all()
    assert np.isfinite(bounds[[0, 4]]).all()
    used = crossing_probabilities(bounds, [1.0, 2.0, 2.0, 2.001, 3.0])
    assert used == pytest.approx([0.01, 0, 0, 0, 0.04], abs=1e-11)
    assert np.ptp(look_bounds([1.0, 1.001], [0.01, 0.05])) == 0
    assert np.isinf(look_bounds(equal(2), spent_by([0.01, 0.02]))).all()  # too early to spend


def looks(sizes, declared, planned=200, n_items=10**9):
    return [Look(number, declared, n, planned, n_items) for number, n in enumerate(sizes, 1)]


def test_the_last_declared_look_spends_what_is_left_also_where_less_came_in_than_planned():
    sizes = [40.0, 80.0, 120.0, 160.0, 170.0]
    last = bound_at_look(looks(sizes, 5))
    information = np.array(sizes)
    spent = spent_by(np.append(information[:4] / 200, 1.0))
    bounds = look_bounds(information, spent)
    assert last == pytest.approx(bounds[-1], abs=1e-7)
    assert crossing_probabilities(bounds, information).sum() == pytest.approx(0.05, abs=1e-10)
    assert bound_at_look(looks(sizes, 6)) > last  # the control: the fifth of six leaves some to the sixth


def test_more_than_planned_spends_all_and_later_looks_have_nothing():
    assert bound_at_look(looks([100.0, 250.0], 4)) == pytest.approx(bound_at_look(looks([100.0, 250.0], 2)))
    assert np.isinf(bound_at_look(looks([100.0, 250.0, 300.0], 4)))


def test_information_grows_faster_where_items_run_out_so_looks_hang_together_less():
    few, many = (bound_at_look(looks([100.0, 180.0], 2, n_items=n)) for n in (190, 10**6))
    assert few > many
    assert np.isfinite(bound_at_look(looks([100.0, 200.0], 2, n_items=150)))  # all of it, and more expected


def test_ten_looks_take_less_than_50_ms():
    sizes = np.linspace(20, 200, 10)
    bound_at_look(looks(sizes, 10))
    started = time.process_time()
    bound_at_look(looks(sizes, 10))
    assert time.process_time() - started < 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: spent_by([-0.1]), "share must be at least 0"),
        (lambda: spent_by([np.nan]), "share"),
        (lambda: spent_by([0.5], spending="linear"), "spending must be one of"),
        (lambda: spent_by([0.5], level=1.0), "level must be in"),
        (lambda: look_bounds([], []), "1 to 50 looks"),
        (lambda: look_bounds(equal(51), np.full(51, 0.05)), "1 to 50 looks"),
        (lambda: look_bounds([2, 1], [0.01, 0.05]), "never fall"),
        (lambda: look_bounds([0, 1], [0.01, 0.05]), "above 0"),
        (lambda: look_bounds([1, 2], [0.05, 0.01]), "spent must be"),
        (lambda: look_bounds([1, 2], [0.05]), "spent must be"),
        (lambda: look_bounds([1], [1.0]), "spent must be"),
        (lambda: crossing_probabilities([1.0, 0.0], [1, 2]), "bounds must be above 0"),
        (lambda: crossing_probabilities([1.0], [1, 2]), "bounds must be above 0"),
        (lambda: bound_at_look([]), "numbered 1, 2"),
        (lambda: bound_at_look(looks([10.0, 20.0], 5)[1:]), "numbered 1, 2"),
        (lambda: bound_at_look(looks([20.0, 10.0], 5)), "never fall"),
    ],
)
def test_what_cannot_be_is_an_error(call, words):
    with pytest.raises(ValueError, match=words):
        call()
