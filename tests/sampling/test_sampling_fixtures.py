"""The worked example of the verified method: two queries, documents a to d, three systems, DCG@3 with ln.

S1: abc | abc. S2: bad | abd. S3: cab | dab. Utilities 2 1 0 3 | 1 0 2 4. Expected values were computed by an
independent program when the method was verified, and are given to six digits.
"""

import itertools

import numpy as np
import pytest
from reference_formulas import fixed_size_forecast

from analytics.estimation.estimators import difference_estimator
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.importance import balance_heuristic, importance_sampling
from analytics.papers.inverse import label_scores
from experiments.papers.designs import (
    baseline_design,
    naive_design,
    pair_design,
    ranking_design,
    single_design,
)
from experiments.papers.draws import mixture_probability
from experiments.papers.forecasts import design_variance, poisson_variance
from experiments.papers.inverse import label_noise
from experiments.papers.sizes import corrected_second_moments
from sampling.designs import inclusion_probabilities, mixture, normalise, uniform_design
from sampling.measures.families import grade_gains, rank_weights, run_weights
from sampling.measures.registry import parse_linear
from sampling.pooling import prior_utility

MEASURE = parse_linear("DCG(dcg='ln')@3")
#                    1a 1b 1c 1d 2a 2b 2c 2d
RANKS = np.array([[1, 2, 3, 0, 1, 2, 3, 0], [2, 1, 0, 3, 1, 2, 0, 3], [2, 3, 1, 0, 2, 3, 0, 1]])
U = np.array([2.0, 1, 0, 3, 1, 0, 2, 4])
W = run_weights(MEASURE, RANKS, n_topics=2)
G = W[0] - W[1]


def prior(*systems):
    return prior_utility(RANKS[list(systems)], depth=3, numerator=4, offset=1)


def eq9():
    return pair_design(W[0], W[1], prior(0, 1))


def near(values):
    return pytest.approx(np.array(values), abs=5e-7)


def test_the_weights_of_one_query_sum_to_lambda():
    assert rank_weights(MEASURE, 3).sum() == pytest.approx(3.074282, abs=5e-7)


@pytest.mark.parametrize(
    ("system", "weights", "utility"),
    [
        (0, [0.721348, 0.455120, 0.360674, 0, 0.721348, 0.455120, 0.360674, 0], 3.340510),
        (1, [0.455120, 0.721348, 0, 0.360674, 0.721348, 0.455120, 0, 0.360674], 4.877651),
        (2, [0.455120, 0.360674, 0.721348, 0, 0.455120, 0.360674, 0, 0.721348], 4.611423),
    ],
)
def test_weights_are_those_of_the_example_and_their_sum_with_utilities_is_the_measure(
    system, weights, utility
):
    assert near(weights) == W[system]
    assert W[system] @ U == pytest.approx(utility, abs=5e-7)


def test_scale_gains_of_a_graded_measure_are_the_gains():
    assert grade_gains(MEASURE, [0, 1, 2, 3, 4], 1).tolist() == [0, 1, 2, 3, 4]


DESIGNS = {
    "eq4": [0.299290, 0.125887, 0.074823, 0, 0.299290, 0.125887, 0.074823, 0],
    "eq9": [0.202993, 0.202993, 0.148503, 0.148503, 0, 0, 0.148503, 0.148503],
    "naive": [0.210406, 0.210406, 0.034833, 0.034833, 0.309624, 0.130234, 0.034833, 0.034833],
    "eq11": [0.092990, 0.120924, 0.229381, 0.070188, 0.150294, 0.036656, 0.070188, 0.229381],
    "eq13": [0.112581, 0.127204, 0.215111, 0.084975, 0.128664, 0.031380, 0.084975, 0.215111],
    "eq9+10%": [0.195194, 0.195194, 0.146153, 0.146153, 0.0125, 0.0125, 0.146153, 0.146153],
}


def design(name):
    return {
        "eq4": lambda: single_design(W[0], prior(0)),
        "eq9": eq9,
        "naive": lambda: naive_design(W[:2], prior(0, 1)),
        "eq11": lambda: baseline_design(W[:2], W[2], prior(0, 1, 2)),
        "eq13": lambda: ranking_design(W, prior(0, 1, 2)),
        "eq9+10%": lambda: mixture(eq9(), [uniform_design(8)], [0.1]),
    }[name]()


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_gives_the_probabilities_of_the_example(name):
    assert design(name) == near(DESIGNS[name])
    assert design(name).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("naive", 107.624503),
        ("eq9", 24.786339),
        ("eq11", 34.440128),
        ("eq13", 30.289747),
        ("eq9+10%", 25.264616),
    ],
)
def test_exact_variance_of_the_difference_is_that_of_the_example(name, variance):
    assert pytest.approx(-1.537141, abs=5e-7) == G @ U
    assert design_variance(design(name), U, G) == pytest.approx(variance, abs=1e-6)


def test_the_pair_design_with_true_utilities_still_has_variance():
    q = pair_design(W[0], W[1], U)
    assert design_variance(q, U, G) == pytest.approx(13.997181, abs=1e-6)


def test_stratifying_the_pair_design_by_the_sign_of_the_difference_removes_two_thirds_of_the_variance():
    q, total = eq9(), 0.0
    for stratum in (G > 0, G < 0):
        share = q[stratum].sum()
        total += design_variance(q[stratum] / share, U[stratum], G[stratum]) / share
    assert total == pytest.approx(8.426356, abs=1e-6)


def test_exact_variance_of_one_system_under_its_own_design():
    assert design_variance(design("eq4"), U, W[0]) == pytest.approx(6.133679, abs=1e-6)


def test_five_draws_from_the_pair_design_have_the_terms_estimate_and_interval_of_the_example():
    drawn = [0, 3, 6, 7, 0]
    assert (U * G)[drawn] / eq9()[drawn] == near([2.623022, -7.286173, 4.857449, -9.714897, 2.623022])
    result = importance_sampling(G[drawn], U[drawn], eq9()[drawn], fewest=2)[0]
    assert result.value == pytest.approx(-1.379515, abs=5e-7)
    assert result.standard_error * np.sqrt(5) == pytest.approx(6.620188, abs=1e-6)
    assert (result.low, result.high) == near([-7.182366, 4.423335])


def test_the_balance_heuristic_of_two_batches_is_that_of_the_example():
    designs = np.array([design("eq4"), eq9()])
    mixed = [0.260771, 0.156730, 0.104295, 0.059401, 0.179574, 0.075532, 0.104295, 0.059401]
    assert mixture_probability(designs, [3, 2]) == near(mixed)
    drawn, batch = [0, 1, 4, 3, 6], [0, 0, 0, 1, 1]
    rows = np.array([W[0], G])[:, drawn]
    one, pair = balance_heuristic(rows, U[drawn], designs[:, drawn], batch, fewest=2)
    assert one.value == pytest.approx(3.873936, abs=1e-6)
    assert pair.value == pytest.approx(-2.191161, abs=1e-6)


SAMPLE = [0, 3, 6]


def test_inclusion_probabilities_of_three_expected_judgments_are_those_of_the_example():
    pi = inclusion_probabilities(eq9(), 3)
    assert pi == near([0.608980, 0.608980, 0.445510, 0.445510, 0, 0, 0.445510, 0.445510])


def test_horvitz_thompson_of_the_sample_and_its_two_variances_are_those_of_the_example():
    pi = inclusion_probabilities(eq9(), 3)[SAMPLE]
    poisson = difference_estimator(G[SAMPLE], U[SAMPLE], pi, fewest=3)[0]
    assert poisson.value == pytest.approx(0.064766, abs=5e-7)
    assert poisson.standard_error**2 == pytest.approx(5.023370, abs=1e-6)
    fixed = fixed_size(G[SAMPLE], U[SAMPLE], pi, fewest=3)[0]
    assert fixed.value == poisson.value
    assert fixed.standard_error**2 == pytest.approx(7.523603, abs=1e-6)
    assert fixed.degrees_of_freedom == pytest.approx(2)


def test_the_difference_from_prior_utilities_is_that_of_the_example():
    pi, f = inclusion_probabilities(eq9(), 3)[SAMPLE], prior(0, 1)
    known = (f * G).sum()
    assert known == pytest.approx(0, abs=1e-12)
    result = difference_estimator(G[SAMPLE], U[SAMPLE], pi, prior=f[SAMPLE], prior_total=[known], fewest=3)[0]
    assert result.value == pytest.approx(-0.663851, abs=5e-7)
    assert result.standard_error**2 == pytest.approx(2.050718, abs=1e-6)


@pytest.mark.parametrize(("utility", "variance"), [(np.zeros(8), 4.922846), (prior(0, 1), 2.622268)])
def test_over_all_samples_of_the_example_the_difference_has_the_exact_variance_and_estimates_it(
    utility, variance
):
    support = np.flatnonzero(eq9())
    pi, values, estimated, chances = inclusion_probabilities(eq9(), 3), [], [], []
    for taken in itertools.product([False, True], repeat=support.size):
        drawn = support[list(taken)]
        found = difference_estimator(
            G[drawn], U[drawn], pi[drawn], prior=utility[drawn], prior_total=[(utility * G).sum()], fewest=0
        )[0]
        values.append(found.value)
        estimated.append(found.standard_error**2)
        chances.append(np.prod(np.where(taken, pi[support], 1 - pi[support])))
    values, chances = np.array(values), np.array(chances)
    assert (values * chances).sum() == pytest.approx(-1.537141, abs=5e-7)
    assert ((values + 1.537141) ** 2 * chances).sum() == pytest.approx(variance, abs=1e-6)
    assert (np.array(estimated) * chances).sum() == pytest.approx(variance, abs=1e-6)


def test_over_all_three_draws_with_replacement_the_variance_is_that_of_the_example():
    q, values, chances = eq9(), [], []
    for drawn in itertools.product(np.flatnonzero(q), repeat=3):
        places = list(drawn)
        values.append(importance_sampling(G[places], U[places], q[places], fewest=0)[0].value)
        chances.append(np.prod(q[places]))
    values, chances = np.array(values), np.array(chances)
    assert (values * chances).sum() == pytest.approx(-1.537141, abs=5e-7)
    assert ((values + 1.537141) ** 2 * chances).sum() == pytest.approx(8.262113, abs=1e-6)


def test_exact_variances_of_three_expected_judgments_are_those_of_the_example():
    pi = inclusion_probabilities(eq9(), 3)
    assert poisson_variance(pi, G, U**2) == pytest.approx(4.922846, abs=1e-6)
    assert poisson_variance(pi, G, (U - prior(0, 1)) ** 2) == pytest.approx(2.622268, abs=1e-6)
    assert fixed_size_forecast(U * G, pi) == pytest.approx(4.374798, abs=1e-6)
    assert design_variance(eq9(), U, G) / 3 == pytest.approx(8.262113, abs=1e-6)


def test_scores_noise_and_second_moments_of_labels_are_those_of_the_example():
    """Sensitivity .8, specificity .9."""
    confusion = [[0.9, 0.1], [0.2, 0.8]]
    assert label_scores(confusion, [0, 1]) == near([-0.142857, 1.285714])
    assert label_noise(confusion, [0, 1]) == near([0.163265, 0.367347])
    assert corrected_second_moments(confusion, [0, 1]) == near([0.183673, 1.326531])


def test_the_balance_heuristic_is_biased_when_the_second_design_saw_the_first_labels():
    """Labels 1, 0, 1 (truth 2); one draw from 1/3 each, one from a design that depends on the first."""
    y = np.array([1.0, 0, 1])
    first = np.full(3, 1 / 3)
    second = np.array([[0.6, 0.2, 0.2], [0.1, 0.45, 0.45], [0.2, 0.2, 0.6]])
    pooled = separate = 0.0
    for i, j in itertools.product(range(3), repeat=2):
        probability = first[i] * second[i, j]
        q = mixture_probability([first, second[i]], [1, 1])
        drawn, own = [i, j], np.array([first[i], second[i, j]])
        pooled += probability * importance_sampling([1, 1], y[drawn], q[drawn], fewest=0)[0].value
        separate += probability * importance_sampling([1, 1], y[drawn], own, fewest=0)[0].value
    assert pooled == pytest.approx(1.661270, abs=5e-7)
    assert separate == pytest.approx(2, abs=1e-12)


def test_normalising_the_weights_by_lambda_gives_the_same_probabilities():
    assert single_design(W[0] / W[0].sum(), prior(0)) == pytest.approx(design("eq4"), abs=1e-12)
    assert normalise(W[0]) == pytest.approx(normalise(3 * W[0]), abs=1e-12)
