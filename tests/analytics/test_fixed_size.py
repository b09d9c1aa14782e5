"""Draws of fixed size, plain and in strata: exact enumeration, Pareto by integration, refusals."""

from itertools import combinations, product

import numpy as np
import pytest
from enumeration import exactly, summary
from reference_formulas import fixed_size_forecast, fixed_size_variance

from analytics.estimation.estimate import Refusal
from analytics.estimation.fixed_size import fixed_size
from sampling.draws import pareto_draw

# -- enumeration ---------------------------------------------------------------------------------------------


def test_a_simple_random_sample_is_unbiased_with_its_variance():
    e = np.array([3.0, 1.0, -2.0, 5.0, 0.5])
    outcomes = []
    for taken in combinations(range(5), 3):
        d, pi = np.array(taken), np.full(3, 0.6)
        outcomes.append(((e[d] / pi).sum(), fixed_size_variance(e[d], pi), 1 / 10))
    mean, variance, estimated = summary(outcomes)
    assert mean == pytest.approx(e.sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def strata_samples(sizes):
    """Yield every sample that takes sizes[h] of stratum h at random; strata 0 to 3, 4 to 6, 7 to 11."""
    strata = [range(4), range(4, 7), range(7, 12)]
    parts = [list(combinations(stratum, m)) for stratum, m in zip(strata, sizes, strict=True)]
    for taken in product(*parts):
        yield np.array([i for part in taken for i in part]), 1 / np.prod([len(part) for part in parts])


def test_strata_are_unbiased_with_the_sum_of_their_variances_and_ignoring_them_gives_another_number():
    rng = np.random.default_rng(5)
    w, u, f = rng.uniform(0.2, 1, 12), rng.uniform(0, 3, 12), rng.uniform(0, 3, 12)
    stratum = np.array([0] * 4 + [1] * 3 + [2] * 5)
    u[stratum == 2] += 5
    pi = np.array([2 / 4, 2 / 3, 3 / 5])[stratum]

    def outcomes(**options):
        for d, p in strata_samples((2, 2, 3)):
            kept = {key: value[d] for key, value in options.items()}
            yield (
                fixed_size(w[d], u[d], pi[d], prior=f[d], prior_total=[(f * w).sum()], fewest=0, **kept)[0],
                p,
            )

    mean, variance, estimated = summary(outcomes(strata=stratum))
    assert mean == pytest.approx((w * u).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    assert summary(outcomes())[2] > 1.5 * variance


def test_joining_strata_of_one_item_overstates_the_variance_by_the_difference_of_their_totals():
    e = np.array([2.0, 3.0, 1.0, 4.0, 6.0])
    chance = np.array([0.5, 0.3, 0.2, 0.25, 0.75])
    outcomes = []
    for i, j in product([0, 1, 2], [3, 4]):
        d = np.array([i, j])
        found = fixed_size(np.ones(2), e[d], chance[d], strata=[7, 8], join_strata=True, fewest=0)[0]
        outcomes.append((found, chance[i] * chance[j]))
    mean, variance, estimated = summary(outcomes)
    assert mean == pytest.approx(16, **exactly)
    assert estimated == pytest.approx(variance + (6 - 10) ** 2, **exactly)


# -- Pareto: chances of samples by integration ---------------------------------------------------------------


def pareto_chances(pi, m):
    """Return every sample of m items with its chance, by Gauss-Legendre quadrature.

    An item's ranking number is below q with chance q o/(1 + q o), o = pi/(1 - pi). A sample is drawn if one of its
    items has the largest number t of the sample and all others outside exceed t. Substituted: q = x/(1 - x).
    """
    node, weight = np.polynomial.legendre.leggauss(80)
    x, weight = (node + 1) / 2, weight / 2
    odds = pi / (1 - pi)
    below = odds[:, None] * x / (1 - x + odds[:, None] * x)
    density = odds[:, None] / (1 - x + odds[:, None] * x) ** 2
    for taken in combinations(range(pi.size), m):
        inside, outside = np.array(taken), np.setdiff1d(np.arange(pi.size), taken)
        last = sum(density[i] * below[np.setdiff1d(inside, i)].prod(axis=0) for i in inside)
        yield inside, float((weight * last * (1 - below[outside]).prod(axis=0)).sum())


PARETO_PI = np.array([0.8, 0.35, 0.6, 0.45, 0.2, 0.5, 0.7, 0.4])  # sums to 4


@pytest.mark.parametrize(
    ("pi", "m", "inclusion_error", "variance_error"),
    [(PARETO_PI, 4, 0.015, 0.16), (np.linspace(0.3, 0.7, 12), 6, 0.008, 0.12)],
)
def test_a_pareto_sample_has_nearly_the_wanted_chances_and_a_bias_far_below_its_error(
    pi, m, inclusion_error, variance_error
):
    """Approximate by construction: chances within 1.5 %, bias below 2 % of the standard error already at 4 of 8."""
    chances = list(pareto_chances(pi, m))
    assert sum(p for _, p in chances) == pytest.approx(1, abs=1e-10)
    inclusion = np.zeros(pi.size)
    for d, p in chances:
        inclusion[d] += p
    assert 1e-6 < np.abs(inclusion / pi - 1).max() < inclusion_error

    rng = np.random.default_rng(2)
    for _ in range(3):
        e = rng.normal(1, 1, pi.size) * pi
        mean, variance, estimated = summary(
            ((e[d] / pi[d]).sum(), fixed_size_variance(e[d], pi[d]), p) for d, p in chances
        )
        assert abs(mean - e.sum()) < 0.02 * np.sqrt(variance)
        assert abs(estimated / variance - 1) < variance_error
        assert abs(fixed_size_forecast(e, pi) / variance - 1) < variance_error
        # without the probabilities there is a bias, and the same integration shows it
        assert abs(m * sum(p * e[d].mean() for d, p in chances) - e.sum()) > 0.02 * np.sqrt(variance)


def test_the_integrated_chances_are_those_of_the_draw():
    chances = {tuple(d): p for d, p in pareto_chances(PARETO_PI, 4)}
    n, rng = 2000, np.random.default_rng(11)
    drawn = [tuple(pareto_draw(PARETO_PI, rng.random(8), 4)) for _ in range(n)]
    frequent = max(chances, key=chances.get)
    p = chances[frequent]
    assert abs(drawn.count(frequent) / n - p) < 4 * np.sqrt(p * (1 - p) / n)
    share = sum(0 in d for d in drawn) / n
    expected = sum(q for d, q in chances.items() if 0 in d)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


# -- what is refused -----------------------------------------------------------------------------------------


def test_fixed_size_variance_of_a_simple_random_sample_is_the_textbook_one():
    # N = 10, m = 4 of equal chance: N^2 (1 - m/N) s^2 / m
    e = np.array([1.0, 4.0, 2.0, 5.0])
    assert fixed_size_variance(e, np.full(4, 0.4)) == pytest.approx(100 * 0.6 * e.var(ddof=1) / 4)


def test_certain_items_are_left_out_of_the_variance():
    pi = np.array([1.0] * 6 + [0.5] * 6)
    u = np.array([9.0] * 6 + [2.0, 3.0] * 3)
    result = fixed_size(np.ones(12), u, pi)[0]
    assert result.value == 84.0
    assert result.standard_error**2 == pytest.approx(fixed_size_variance(u[6:], pi[6:]))
    assert result.degrees_of_freedom == pytest.approx(5)


def test_a_sample_whose_items_are_all_alike_has_no_interval_of_width_zero():
    for utility in (0.0, 2.0):
        result = fixed_size(np.ones(12), np.full(12, utility), np.full(12, 0.5))[0]
        assert isinstance(result, Refusal)
        assert "all alike" in result.reason
    whole = fixed_size(np.ones(12), np.zeros(12), np.ones(12))[0]
    assert (whole.value, whole.standard_error) == (0.0, 0.0)


def test_one_uncertain_item_has_no_variance():
    with pytest.raises(ValueError, match="got 1"):
        fixed_size_variance([1.0, 2.0], [0.5, 1.0])
    assert isinstance(fixed_size(np.ones(12), np.ones(12), [0.5] + [1.0] * 11)[0], Refusal)


def test_strata_of_one_uncertain_item_are_named_unless_they_are_joined():
    rng = np.random.default_rng(1)
    u, pi = rng.random(20), np.full(20, 0.5)
    pi[19] = 1.0
    strata = np.array([4] * 9 + [7] + [11] * 8 + [30, 30])
    refused = fixed_size(np.ones(20), u, pi, strata=strata)[0]
    assert isinstance(refused, Refusal)
    assert "7, 30;" in refused.reason
    assert refused.needed == 2
    joined = fixed_size(np.ones(20), u, pi, strata=strata, join_strata=True)[0]
    z = 2 * u[9:19]
    expected = fixed_size_variance(u[:9], pi[:9]) + 10 / 9 * ((z - z.mean()) ** 2).sum()
    assert joined.standard_error**2 == pytest.approx(expected)


def test_two_single_strata_are_joined_backwards_at_the_end():
    u, pi = np.array([1.0, 2.0, 4.0, 3.0]), np.full(4, 0.5)
    joined = fixed_size(np.ones(4), u, pi, strata=[1, 1, 2, 3], join_strata=True, fewest=4)[0]
    separate = fixed_size_variance(u[:2], pi[:2]) + 2 * ((2 * u[2:] - 7.0) ** 2).sum()
    assert joined.standard_error**2 == pytest.approx(separate)
    last = fixed_size(np.ones(3), u[:3], pi[:3], strata=[1, 1, 2], join_strata=True, fewest=3)[0]
    z = 2 * u[:3]
    assert last.standard_error**2 == pytest.approx(3 / 2 * ((z - z.mean()) ** 2).sum())


def test_a_single_item_in_all_cannot_be_joined_to_anything():
    result = fixed_size(
        np.ones(12), np.arange(12.0), [0.5] + [1.0] * 11, strata=np.arange(12), join_strata=True
    )[0]
    assert isinstance(result, Refusal)


def test_many_single_strata_are_counted_rather_than_listed():
    result = fixed_size(np.ones(12), np.arange(12.0), np.full(12, 0.5), strata=np.arange(12))[0]
    assert "0, 1, 2, 3, 4 and 7 more" in result.reason


def test_degrees_of_freedom_are_satterthwaites_over_strata():
    u, pi, strata = np.array([1.0, 3, 2, 5, 4]), np.full(5, 0.5), np.array([0, 0, 1, 1, 1])
    first, second = fixed_size_variance(u[:2], pi[:2]), fixed_size_variance(u[2:], pi[2:])
    result = fixed_size(np.ones(5), u, pi, strata=strata, fewest=5)[0]
    assert result.degrees_of_freedom == pytest.approx((first + second) ** 2 / (first**2 + second**2 / 2))


def test_the_noise_term_and_the_prior_are_those_of_the_difference():
    rng = np.random.default_rng(2)
    w, u, pi, nu = rng.random((4, 12)) + 0.1
    pi = np.minimum(pi, 0.9)
    result = fixed_size(w, u, pi, prior=u / 2, prior_total=[3.0], label_variance=nu)[0]
    assert result.value == pytest.approx(3 + (w * u / 2 / pi).sum())
    assert dict(result.components)["label noise"] == pytest.approx((nu * w**2 / pi).sum())
    assert result.sources == ("drawing", "label noise")


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda: fixed_size([1.0, 1], [1, 2], [0.5, 0.5], strata=[1]), "strata must have length 2, got 1"),
        (
            lambda: fixed_size([1.0, 1], [1, 2], [0.5, 0.5], strata=[0.5, 1]),
            "strata must be a flat array of integers",
        ),
        (lambda: fixed_size([1.0], [np.nan], [0.5]), "utility must be finite, got nan"),
        (lambda: fixed_size_forecast([1.0], [0.0]), "must be 0 where inclusion_probability is 0"),
        (lambda: fixed_size_forecast([1.0], [1.5]), r"in \[0, 1\], got 1.5"),
    ],
)
def test_impossible_input_is_refused_with_bound_and_value(attempt, reason):
    with pytest.raises(ValueError, match=reason):
        attempt()


def test_a_census_has_no_forecast_variance():
    assert fixed_size_forecast([1.0, 2.0], [1.0, 1.0]) == 0.0
