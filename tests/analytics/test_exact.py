"""Proof by enumeration: over all samples of a tiny population each estimator has the truth as its mean, and each
variance estimator has as its mean the variance that the enumeration finds.

Here are Poisson draws (also cross-fitted and adaptive) and draws with replacement. Every proof has beside it a
breach that the same enumeration notices.
"""

from itertools import product

import numpy as np
import pytest
from enumeration import (
    CHANCE_OF_ONE,
    GRADE,
    NOISE,
    SCORE,
    draws,
    exactly,
    labellings,
    poisson_samples,
    summary,
)
from reference_formulas import distinct_variances

from analytics.estimation.estimators import difference_estimator, hajek_ratio
from analytics.estimation.importance import (
    balance_heuristic,
    distinct_inclusion,
    distinct_items,
    importance_sampling,
)

W = np.array([0.7, -0.4, 0.2, 1.0])
U = np.array([2.0, 1.0, 3.0, 0.5])
PI = np.array([0.9, 0.3, 0.5, 0.2])
PRIOR = np.array([1.5, 0.5, 1.0, 1.0])
TRUTH = float((W * U).sum())


# -- Poisson -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, PRIOR])
def test_horvitz_thompson_and_the_difference_are_unbiased_and_so_is_their_variance(prior):
    known = {} if prior is None else {"prior_total": [(PRIOR * W).sum()]}
    mean, variance, estimated = summary(
        (
            difference_estimator(
                W[m], U[m], PI[m], prior=None if prior is None else prior[m], fewest=0, **known
            )[0],
            p,
        )
        for m, p in poisson_samples(PI)
    )
    assert mean == pytest.approx(TRUTH, **exactly)
    error = W * (U if prior is None else U - PRIOR)
    assert variance == pytest.approx(((1 - PI) / PI * error**2).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def test_with_wrong_inclusion_probabilities_the_enumeration_notices_the_bias():
    mean, _, _ = summary(
        (difference_estimator(W[m], U[m], np.minimum(1, PI[m] * 1.01), fewest=0)[0], p)
        for m, p in poisson_samples(PI)
    )
    assert abs(mean - TRUTH) > 1e-3


def noisy_poisson(with_noise_term):
    w, pi = W[:3], PI[:3]
    for m, p in poisson_samples(pi):
        for label, q in labellings():
            nu = NOISE[label][m] if with_noise_term else None
            yield difference_estimator(w[m], SCORE[label][m], pi[m], label_variance=nu, fewest=0)[0], p * q


def test_the_noise_term_makes_the_variance_of_corrected_labels_unbiased_and_without_it_it_is_too_small():
    mean, variance, estimated = summary(noisy_poisson(with_noise_term=True))
    assert mean == pytest.approx((W[:3] * GRADE).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    _, _, without = summary(noisy_poisson(with_noise_term=False))
    noise = (SCORE[1] - SCORE[0]) ** 2 * CHANCE_OF_ONE[GRADE] * (1 - CHANCE_OF_ONE[GRADE])
    # what is missing is the variance of the sum of all labels that would be given, not a part of the drawing
    assert variance - without == pytest.approx((noise * W[:3] ** 2).sum(), **exactly)


def test_the_ratio_is_nearly_unbiased_and_has_less_variance_than_horvitz_thompson_for_a_runs_own_value():
    rng = np.random.default_rng(3)
    w, u, pi = rng.uniform(0.5, 1, 12), rng.uniform(2, 4, 12), rng.uniform(0.4, 0.8, 12)
    samples = [(m, p) for m, p in poisson_samples(pi) if m.sum() >= 2]
    kept = sum(p for _, p in samples)
    ratio = summary(
        (hajek_ratio(w[m], u[m], pi[m], weight_total=[w.sum()], fewest=0)[0], p / kept) for m, p in samples
    )
    plain = ((1 - pi) / pi * (w * u) ** 2).sum()
    assert ratio[0] == pytest.approx((w * u).sum(), rel=0.01)
    assert ratio[1] < 0.2 * plain
    # a linearised variance at 7 expected items
    assert 0.8 < ratio[2] / ratio[1] < 1.1


# -- cross-fitted and adaptive -------------------------------------------------------------------------------

FOLD = np.array([0, 0, 1, 1])
RELEVANT = np.array([1.0, 0.0, 1.0, 1.0])
SHARES = np.array([0.6, 0.3, 0.8, 0.5])
TOTAL = float((SHARES * RELEVANT).sum())


def learned(labelled, *, whole_frame=False):
    """Return f: the share of relevant among the labels of the other fold (with `whole_frame`: of both)."""
    f = np.empty(4)
    for fold in (0, 1):
        seen = labelled & (whole_frame | (fold != FOLD))
        f[fold == FOLD] = (RELEVANT[seen].sum() + 0.5) / (seen.sum() + 1)
    return f


def cross_fitted(pi, **options):
    for m, p in poisson_samples(pi):
        f = learned(m, **options)
        yield (
            difference_estimator(
                SHARES[m], RELEVANT[m], pi[m], prior=f[m], prior_total=[(f * SHARES).sum()], fewest=0
            )[0],
            p,
        )


def test_a_cross_fitted_prediction_leaves_the_estimate_exactly_unbiased_and_one_from_all_labels_does_not():
    pi = np.array([0.5, 0.4, 0.7, 0.6])
    assert summary(cross_fitted(pi))[0] == pytest.approx(TOTAL, **exactly)
    assert abs(summary(cross_fitted(pi, whole_frame=True))[0] - TOTAL) > 0.01


def test_the_variance_of_a_cross_fitted_estimate_is_the_mean_variance_of_a_fold_given_the_other_one():
    pi = np.array([0.5, 0.4, 0.7, 0.6])
    _, total, estimated = summary(cross_fitted(pi))
    given_others = 0.0
    for m, p in poisson_samples(pi):
        error = SHARES * (RELEVANT - learned(m))
        given_others += p * float(((1 - pi) / pi * error**2).sum())
    assert estimated == pytest.approx(given_others, **exactly)
    # the covariance of the folds, which no estimator here holds: with four items a part, of order 1/n
    assert 0.8 < estimated / total < 1.25


def adaptive(*, second_sees="other folds", refit=False):
    """Yield all outcomes of two nested Poisson batches: 4 pairs, permanent random numbers on a grid of quarters."""
    first = np.full(4, 0.5)
    for cell in product([0.125, 0.375, 0.625, 0.875], repeat=4):
        v = np.array(cell)
        one = v < first
        second = np.empty(4)
        for fold in (0, 1):
            seen = one & ((fold != FOLD) if second_sees == "other folds" else True)
            hopeful = (RELEVANT[seen].sum() + 0.5) / (seen.sum() + 1) > 0.5
            second[fold == FOLD] = 0.75 if hopeful else 0.25
        pi = np.maximum(first, second)
        drawn = v < pi
        f = learned(drawn if refit else one)
        estimate = difference_estimator(
            SHARES[drawn],
            RELEVANT[drawn],
            pi[drawn],
            prior=f[drawn],
            prior_total=[(f * SHARES).sum()],
            fewest=0,
        )[0]
        yield estimate, 0.25**4


def test_an_adaptive_second_batch_that_looks_at_other_folds_first_batch_only_is_exactly_unbiased():
    assert summary(adaptive())[0] == pytest.approx(TOTAL, **exactly)


def test_an_adaptive_batch_that_looks_at_its_own_fold_or_a_prediction_refitted_on_it_is_biased():
    assert abs(summary(adaptive(second_sees="everything"))[0] - TOTAL) > 0.01
    assert abs(summary(adaptive(refit=True))[0] - TOTAL) > 1e-4


# -- with replacement ----------------------------------------------------------------------------------------

Q = np.array([0.4, 0.3, 0.2, 0.1])


def test_importance_sampling_and_the_variance_of_equation_6_are_unbiased_over_all_draws():
    mean, variance, estimated = summary(
        (importance_sampling(W[d], U[d], Q[d], fewest=0)[0], p) for d, p in draws(3, Q)
    )
    assert mean == pytest.approx(TRUTH, **exactly)
    assert variance == pytest.approx((((W * U) ** 2 / Q).sum() - TRUTH**2) / 3, **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def repeated_labels(with_noise_term, n=3):
    w, q = W[:3], np.array([0.6, 0.3, 0.1])
    for d, p in draws(n, q):
        for label, chance in labellings():
            options = {"item": d, "label_variance": NOISE[label][d]} if with_noise_term else {}
            yield importance_sampling(w[d], SCORE[label][d], q[d], fewest=0, **options)[0], p * chance


def test_one_noisy_label_for_all_draws_of_a_pair_needs_the_noise_term_and_equation_6_alone_is_too_small():
    mean, variance, estimated = summary(repeated_labels(with_noise_term=True))
    assert mean == pytest.approx((W[:3] * GRADE).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    _, _, printed = summary(repeated_labels(with_noise_term=False))
    noise = (SCORE[1] - SCORE[0]) ** 2 * CHANCE_OF_ONE[GRADE] * (1 - CHANCE_OF_ONE[GRADE])
    assert variance - printed == pytest.approx((noise * W[:3] ** 2).sum(), **exactly)
    assert printed < 0.8 * variance


def test_a_pair_judged_again_at_every_draw_needs_no_noise_term():
    w, q = W[:3], np.array([0.6, 0.3, 0.1])
    outcomes = []
    for d, p in draws(2, q):
        for given in product([0, 1], repeat=2):
            label, one = np.array(given), CHANCE_OF_ONE[GRADE][d]
            chance = p * float(np.prod(np.where(label == 1, one, 1 - one)))
            outcomes.append((importance_sampling(w[d], SCORE[label], q[d], fewest=0)[0], chance))
    mean, variance, estimated = summary(outcomes)
    assert mean == pytest.approx((w * GRADE).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def test_the_balance_heuristic_and_its_variance_within_batches_are_unbiased_and_the_pooled_one_is_too_large():
    designs = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.3, 0.4]])
    batch, sequence = [0, 0, 1, 1], [designs[0], designs[0], designs[1], designs[1]]
    found = list(draws(4, *sequence))
    mean, variance, estimated = summary(
        (balance_heuristic(W[d], U[d], designs[:, d], batch, fewest=0)[0], p) for d, p in found if p > 0
    )
    assert mean == pytest.approx(TRUTH, **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    # Eq 6 adds the distance of the batches' means from the truth: sum_b n_b (mean_b - U)^2 / (n (n-1))
    pooled = designs.mean(axis=0)
    means = (designs * W * U / pooled).sum(axis=1)
    _, _, equation_6 = summary(
        (importance_sampling(W[d], U[d], pooled[d], fewest=0)[0], p) for d, p in found if p > 0
    )
    assert equation_6 - variance == pytest.approx(2 * ((means - TRUTH) ** 2).sum() / 12, abs=1e-12)
    assert equation_6 > variance + 1e-3


SECOND = np.array([[0.6, 0.2, 0.2], [0.1, 0.45, 0.45], [0.2, 0.2, 0.6]])


def adaptive_with_replacement(estimator, *, noisy=False):
    """Yield all outcomes of two draws from thirds, then two from a design chosen by item and label of the first."""
    third = np.full(3, 1 / 3)
    for label, chance in labellings() if noisy else [(GRADE, 1.0)]:
        value = SCORE[label] if noisy else label.astype(float)
        for i, j, k, m in product(range(3), repeat=4):
            second = SECOND[(i + label[i]) % 3]
            d = np.array([i, j, k, m])
            p = float(chance * third[i] * third[j] * second[k] * second[m])
            yield estimator(W[d], value[d], third, second, d, NOISE[label] if noisy else None), p


def by_batch(w, value, first, second, d, nu):
    own = np.concatenate([first[d[:2]], second[d[2:]]])
    options = {} if nu is None else {"item": d, "label_variance": nu[d]}
    return importance_sampling(w, value, own, batch=[0, 0, 1, 1], fewest=0, **options)[0]


def by_balance(w, value, first, second, d, nu):
    return balance_heuristic(w, value, np.array([first, second])[:, d], [0, 0, 1, 1], fewest=0)[0]


@pytest.mark.parametrize("noisy", [False, True])
def test_batches_whose_design_saw_labels_are_unbiased_one_by_one_with_their_variance(noisy):
    mean, variance, estimated = summary(adaptive_with_replacement(by_batch, noisy=noisy))
    assert mean == pytest.approx((W[:3] * GRADE).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def test_the_balance_heuristic_over_a_design_that_saw_labels_is_biased():
    mean, _, _ = summary(adaptive_with_replacement(by_balance))
    assert abs(mean - (W[:3] * GRADE).sum()) > 0.01


BATCHES = [(Q, 3), (np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]]), [2, 2])]


def distinct_outcomes(design, n_draws):
    designs, count = np.atleast_2d(design), np.atleast_1d(n_draws)
    sequence = [row for row, n in zip(designs, count, strict=True) for _ in range(n)]
    for d, p in draws(int(count.sum()), *sequence):
        once = np.unique(d)
        yield once, designs[:, once], count, p


@pytest.mark.parametrize(("design", "n_draws"), BATCHES)
def test_each_distinct_item_counted_once_is_unbiased_and_so_is_its_variance(design, n_draws):
    outcomes = []
    for once, q, count, p in distinct_outcomes(design, n_draws):
        value = (W[once] * U[once] / distinct_inclusion(q, count)).sum()
        outcomes.append((value, distinct_variances(W[once] * U[once], q, count)[0], p))
    mean, variance, estimated = summary(outcomes)
    assert mean == pytest.approx(TRUTH, **exactly)
    assert estimated == pytest.approx(variance, **exactly)


def exact_distinct_variance(error, q, n):
    """Return the variance of sum e/pi over distinct items, from all joint chances of the frame."""
    never = (1 - q) ** n
    pi = 1 - never
    covariance = np.maximum(0, 1 - q[:, None] - q[None, :]) ** n - never[:, None] * never[None, :]
    np.fill_diagonal(covariance, pi * never)
    return float((error / pi) @ covariance @ (error / pi))


@pytest.mark.parametrize(("n_draws", "most"), [(30, 0.95), (100, 0.75), (400, 0.35)])
def test_counting_distinct_items_beats_the_mean_over_draws_the_more_the_more_items_repeat(n_draws, most):
    rng = np.random.default_rng(4)
    p = rng.beta(0.3, 2, 300).clip(0.01, 0.95)
    u, g = (rng.random(300) < p).astype(float), rng.normal(size=300)
    q = np.abs(g) * np.sqrt(p)
    q /= q.sum()
    with_replacement = (((u * g) ** 2 / q).sum() - (u * g).sum() ** 2) / n_draws
    distinct = exact_distinct_variance(u * g, q, n_draws)
    assert distinct < most * with_replacement
    assert exact_distinct_variance((u - p) * g, q, n_draws) < distinct


def test_the_noise_term_of_distinct_items_completes_the_variance():
    w, q = W[:3], np.array([0.5, 0.3, 0.2])
    outcomes, without = [], 0.0
    for once, design, count, p in distinct_outcomes(q, 3):
        for label, chance in labellings():
            e, pi = w[once] * SCORE[label][once], distinct_inclusion(design, count)
            drawing = distinct_variances(e, design, count)[0]
            noise = (NOISE[label][once] * w[once] ** 2 / pi).sum()
            estimate = distinct_items(w[once], SCORE[label][once], design, count, fewest=0)[0]
            assert estimate.value == pytest.approx((e / pi).sum(), **exactly)
            outcomes.append((estimate.value, drawing + noise, p * chance))
            without += drawing * p * chance
    mean, variance, estimated = summary(outcomes)
    assert mean == pytest.approx((w * GRADE).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    assert without < 0.95 * variance
