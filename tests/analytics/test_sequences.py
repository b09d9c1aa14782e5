"""Confidence sequences: against the mixture they come from, by enumeration of nested audits, and over whole paths."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from analytics.estimation.estimators import difference_estimator
from analytics.estimation.sequences import FEWEST_WATCHED, always_valid_factor, always_valid_p_value

ALPHA = 0.05


def as_normal(factor, n):
    """Return the normal quantile that has the tail of the t quantile `factor`."""
    return stats.norm.isf(stats.t.sf(factor, np.asarray(n) - 1))


def boundary(information, rho):
    """Return Robbins' boundary of Brownian motion at a time, over its standard deviation then."""
    return np.sqrt((information + rho) * np.log((information + rho) / (rho * ALPHA**2)) / information)


def tightest(planned):
    """Return the rho whose boundary at `planned` is least, found by trying."""
    found = optimize.minimize_scalar(
        lambda log_rho: boundary(planned, np.exp(log_rho)), bounds=(-3, 8), method="bounded"
    )
    return np.exp(found.x)


@pytest.mark.parametrize("planned", [20, 100, 450])
def test_the_factor_is_robbins_boundary_tuned_to_the_planned_number(planned):
    n = np.array([20, 50, 100, 400, 3000])
    found = as_normal(always_valid_factor(n, planned), n)
    assert found == pytest.approx(boundary(n, tightest(planned)), rel=1e-5)


def test_the_p_value_is_one_over_the_mixture_of_likelihood_ratios():
    n, planned, t = 120, 200, 3.3
    rho = tightest(planned)
    score = as_normal(t, n) * np.sqrt(n)  # of Brownian motion at time n

    def ratio(drift):
        return np.exp(drift * score - drift**2 * n / 2) * stats.norm.pdf(drift, scale=rho**-0.5)

    mixture, _ = integrate.quad(ratio, -2, 2, points=[score / n])
    assert always_valid_p_value(t, n, planned) == pytest.approx(1 / mixture, rel=1e-5)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n_items", [None, 700])
def test_p_equals_one_minus_the_level_exactly_at_the_end_of_the_interval(level, n_items):
    n = np.array([20, 60, 200, 650])
    factor = always_valid_factor(n, 200, level=level, n_items=n_items)
    for sign in (1, -1):
        p = always_valid_p_value(sign * factor, n, 200, level=level, n_items=n_items)
        assert p == pytest.approx(1 - level, rel=1e-6)
    assert (always_valid_p_value(1.01 * factor, n, 200, level=level, n_items=n_items) < 1 - level).all()


def test_a_sequence_is_wider_than_one_interval_and_narrowest_in_quantiles_where_planned():
    n = np.arange(FEWEST_WATCHED, 2000)
    normal = as_normal(always_valid_factor(n, 300), n)
    assert abs(n[np.argmin(normal)] - 300) <= 1
    assert normal.min() == pytest.approx(3.0351, abs=1e-4)  # by hand: sqrt(1 + x), x = log(1 + x) + 5.991
    assert (always_valid_factor(n, 300) > stats.t.isf(0.025, n - 1)).all()


def test_below_twenty_items_there_is_no_sequence():
    assert np.isinf(always_valid_factor([0, 1, 19], 200)).all()
    assert always_valid_p_value([0.0, 5.0, 100.0], [0, 1, 19], 200).tolist() == [1.0, 1.0, 1.0]
    assert np.isfinite(always_valid_factor(20, [1, 20, 10**9])).all()  # however much is planned
    assert always_valid_p_value(0.0, 20, 10**9) == 1.0


def test_few_items_of_many_are_watched_as_if_there_were_no_end():
    n = np.array([20, 100, 400])
    endless = always_valid_factor(n, 200)
    assert always_valid_factor(n, 200, n_items=10**9) == pytest.approx(endless, rel=1e-5)
    # half of the items and the double of the information: as 400 of many where 2 x 200 were planned ...
    near = as_normal(always_valid_factor(300, 300, n_items=600), 300)
    assert near == pytest.approx(as_normal(always_valid_factor(600, 600), 600))
    # ... and a complete audit still has a number
    assert np.isfinite(always_valid_factor(600, 5000, n_items=600))


def test_looks_at_nested_audits_move_as_brownian_motion_in_information():
    """Cov(U, U') = Var(U'), U' the later look: by every outcome of two nested audits of four items."""
    w, gain, prior = np.array([0.5, -0.3, 0.2, 0.1]), np.array([1, 0, 2, 1]), np.full(4, 0.4)
    first, later = np.array([0.2, 0.5, 0.1, 0.3]), np.array([0.4, 0.5, 0.9, 0.35])
    chances, values = [], []
    for state in product(
        range(3), repeat=4
    ):  # 0: never audited, 1: at the later look only, 2: from the first on
        of_state = np.stack([1 - later, later - first, first])
        chances.append(np.prod(of_state[list(state), range(4)]))
        looks = []
        for pi, least in ((first, 2), (later, 1)):
            seen = np.array(state) >= least
            given = (w[seen], gain[seen], pi[seen])
            known = difference_estimator(*given, prior=prior[seen], prior_total=[w @ prior], fewest=0)[0]
            looks.append(known.value)
        values.append(looks)
    chance, value = np.array(chances), np.array(values)
    centred = value - chance @ value
    covariance = centred.T @ (chance[:, None] * centred)
    assert chance.sum() == pytest.approx(1)
    assert chance @ value == pytest.approx(w @ gain)
    assert covariance[0, 1] == pytest.approx(covariance[1, 1])
    assert covariance[1, 1] == pytest.approx((w**2 * (gain - prior) ** 2 * (1 / later - 1)).sum())
    assert covariance[0, 0] > 1.5 * covariance[1, 1]


def watched_paths(paths, n_items, last):
    """Return |t| of the mean error after every audit of random items, [path, look], and the numbers audited."""
    rng = np.random.default_rng(5)
    error = rng.normal(1, 2, n_items)
    order = rng.permuted(np.tile(np.arange(n_items), (paths, 1)), axis=1)[:, :last]
    seen = error[order]
    n = np.arange(1, last + 1)
    mean = np.cumsum(seen, axis=1) / n
    variance = np.maximum(np.cumsum(seen**2, axis=1) / n - mean**2, 1e-9) / np.maximum(n - 1, 1)
    looked = n >= FEWEST_WATCHED
    t = np.abs(mean - error.mean()) / np.sqrt(variance * (1 - n / n_items))
    return t[:, looked], n[looked]


def test_the_truth_is_inside_at_every_look_while_the_fixed_interval_loses_it():
    t, n = watched_paths(paths=1000, n_items=900, last=600)
    watched = np.mean((t > always_valid_factor(n, 200, n_items=900)).any(axis=1))
    fixed = np.mean((t > stats.t.isf(0.025, n - 1)).any(axis=1))
    assert watched <= 0.05
    assert fixed > 0.3  # the control: 95 % for one look is far less for 581
    assert np.mean(t[:, -1] > 1.96) == pytest.approx(0.05, abs=0.02)  # and is right for one look


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([-1], 100), "n must be at least 0, got -1"),
        (([30], 0), "planned must be above 0, got 0"),
        (([30], float("nan")), "planned must be finite"),
        (([float("inf")], 100), "n must be finite"),
    ],
)
def test_bad_input_names_the_bound_and_the_value(arguments, words):
    with pytest.raises(ValueError, match=words):
        always_valid_factor(*arguments)
    with pytest.raises(ValueError, match=words):
        always_valid_p_value(2.0, *arguments)


def test_a_level_or_a_number_of_items_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1"):
        always_valid_factor(30, 100, level=1)
    with pytest.raises(ValueError, match=r"n_items must be above 0 and at least n, got 20\.0 for n = 30\.0"):
        always_valid_factor(30, 100, n_items=20)
    with pytest.raises(ValueError, match="statistic must be finite"):
        always_valid_p_value(float("nan"), 30, 100)
