"""Proof by enumeration: over all samples of a tiny population each estimator has the truth as its mean, and each
variance estimator has as its mean the variance that the enumeration finds.

Samples (and labels, where they are noisy) are enumerated with their chances, so there is no simulation error.
Pareto samples have no simple chances: theirs are integrated numerically. Every proof has beside it a breach that
the same enumeration notices.
"""

from itertools import combinations, product

import numpy as np
import pytest

from analytics.estimators import difference_estimator, hajek_ratio, horvitz_thompson
from analytics.fixed_size import fixed_size, fixed_size_forecast, fixed_size_variance
from analytics.importance import (
    adaptive_batches,
    balance_heuristic,
    distinct_inclusion,
    distinct_items,
    distinct_variances,
    importance_sampling,
)
from analytics.topics import over_topics, topic_parts
from sampling.draws import pareto_draw, permanent_random_numbers

W = np.array([0.7, -0.4, 0.2, 1.0])
U = np.array([2.0, 1.0, 3.0, 0.5])
PI = np.array([0.9, 0.3, 0.5, 0.2])
PRIOR = np.array([1.5, 0.5, 1.0, 1.0])
TRUTH = float((W * U).sum())

# labels of sensitivity .8 and specificity .9: corrected scores and their noise (methods/sampling.md, section 8)
SCORE, NOISE = np.array([-1 / 7, 9 / 7]), np.array([8 / 49, 18 / 49])
GRADE, CHANCE_OF_ONE = np.array([1, 0, 1]), np.array([0.1, 0.8])

exactly = {"abs": 1e-12, "rel": 1e-12}


def poisson_samples(pi):
    """Yield every sample of a Poisson draw with its chance."""
    for taken in product([False, True], repeat=len(pi)):
        mask = np.array(taken)
        yield mask, float(np.prod(np.where(mask, pi, 1 - pi)))


def labellings():
    """Yield every set of labels of three items of grades 1, 0, 1 with its chance."""
    for given in product([0, 1], repeat=3):
        label = np.array(given)
        one = CHANCE_OF_ONE[GRADE]
        yield label, float(np.prod(np.where(label == 1, one, 1 - one)))


def summary(outcomes):
    """Return mean and variance of the values, and the mean of the estimated variances.

    `outcomes` are (estimate, chance) or (value, estimated variance, chance).
    """
    rows = [o if len(o) == 3 else (o[0].value, o[0].standard_error ** 2, o[1]) for o in outcomes]
    value, variance, chance = np.array(rows).T
    assert chance.sum() == pytest.approx(1, **exactly)
    mean = float((value * chance).sum())
    return mean, float(((value - mean) ** 2 * chance).sum()), float((variance * chance).sum())


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
        (horvitz_thompson(W[m], U[m], np.minimum(1, PI[m] * 1.01), fewest=0)[0], p)
        for m, p in poisson_samples(PI)
    )
    assert abs(mean - TRUTH) > 1e-3


def noisy_poisson(with_noise_term):
    w, pi = W[:3], PI[:3]
    for m, p in poisson_samples(pi):
        for label, q in labellings():
            nu = NOISE[label][m] if with_noise_term else None
            yield horvitz_thompson(w[m], SCORE[label][m], pi[m], label_variance=nu, fewest=0)[0], p * q


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
    plain = summary((horvitz_thompson(w[m], u[m], pi[m], fewest=0)[0], p) for m, p in poisson_samples(pi))
    assert ratio[0] == pytest.approx((w * u).sum(), rel=0.01)
    assert ratio[1] < 0.2 * plain[1]
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


def draws(n, *designs):
    """Yield every sequence of n draws with its chance, from one design or one design per draw."""
    for drawn in product(range(len(designs[0])), repeat=n):
        places = np.array(drawn)
        yield places, float(np.prod([designs[min(t, len(designs) - 1)][i] for t, i in enumerate(drawn)]))


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
    pooled = designs.mean(axis=0)
    _, _, equation_6 = summary(
        (importance_sampling(W[d], U[d], pooled[d], fewest=0)[0], p) for d, p in found if p > 0
    )
    assert equation_6 > 1.05 * variance


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
    return adaptive_batches(w, value, own, [0, 0, 1, 1], fewest=0, **options)[0]


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


def distinct_outcomes(design, n_draws, score=None):
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


def test_counting_distinct_items_beats_the_mean_over_draws_once_items_repeat():
    w, n = np.abs(W), 5
    outcomes = [(o, q, c, p) for o, q, c, p in distinct_outcomes(Q, n)]
    _, distinct, _ = summary(
        ((w[o] * U[o] / distinct_inclusion(q, c)).sum(), 0.0, p) for o, q, c, p in outcomes
    )
    with_replacement = (((w * U) ** 2 / Q).sum() - (w * U).sum() ** 2) / n
    assert distinct < 0.8 * with_replacement


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


# -- fixed size ----------------------------------------------------------------------------------------------


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
    strata = [range(0, 4), range(4, 7), range(7, 12)]
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


def test_a_pareto_sample_has_nearly_the_wanted_chances_and_a_bias_far_below_its_error():
    chances = list(pareto_chances(PARETO_PI, 4))
    assert sum(p for _, p in chances) == pytest.approx(1, abs=1e-10)
    inclusion = np.zeros(8)
    for d, p in chances:
        inclusion[d] += p
    assert np.abs(inclusion / PARETO_PI - 1).max() < 0.015

    rng = np.random.default_rng(2)
    for _ in range(5):
        e = rng.normal(1, 1, 8) * PARETO_PI
        mean, variance, estimated = summary(
            ((e[d] / PARETO_PI[d]).sum(), fixed_size_variance(e[d], PARETO_PI[d]), p) for d, p in chances
        )
        assert abs(mean - e.sum()) < 0.02 * np.sqrt(variance)
        assert 0.9 < estimated / variance < 1.2
        assert 0.8 < fixed_size_forecast(e, PARETO_PI) / variance < 1.1


def test_the_integrated_chances_are_those_of_the_draw():
    chances = {tuple(d): p for d, p in pareto_chances(PARETO_PI, 4)}
    n, topic = 4000, ["t"] * 8
    drawn = [
        tuple(pareto_draw(PARETO_PI, permanent_random_numbers(topic, list("abcdefgh"), seed), 4))
        for seed in range(n)
    ]
    frequent = max(chances, key=chances.get)
    p = chances[frequent]
    assert abs(drawn.count(frequent) / n - p) < 4 * np.sqrt(p * (1 - p) / n)
    share = sum(0 in d for d in drawn) / n
    expected = sum(q for d, q in chances.items() if 0 in d)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


# -- topics as a sample --------------------------------------------------------------------------------------

KINDS_U = np.array([[2.0, 1.0], [0.0, 3.0], [4.0, 4.0]])  # utilities of the two pairs of each kind of topic
KINDS_CHANCE = np.array([0.5, 0.3, 0.2])


def campaigns(n_topics):
    """Yield every choice of topics from the population and every Poisson sample of their pairs."""
    pi = np.tile([0.5, 0.8], n_topics)
    for kinds in product(range(3), repeat=n_topics):
        u = KINDS_U[list(kinds)].ravel()
        for m, p in poisson_samples(pi):
            yield u, pi, m, p * float(np.prod(KINDS_CHANCE[list(kinds)]))


def test_the_interval_over_topics_holds_drawing_and_topics_and_that_of_these_topics_does_not():
    n = 2
    w, topic = np.tile([1.0, 0.5], n) / n, np.repeat(np.arange(n), 2)
    f = np.ones(2 * n)
    whole, these = [], []
    for u, pi, m, p in campaigns(n):
        known = np.bincount(topic, w * f)
        parts = topic_parts(
            w[m], u[m], pi[m], topic_index=topic[m], n_topics=n, prior=f[m], prior_total_by_topic=known
        )[0]
        found = over_topics(parts)
        # all topics alike: no estimate, whose spread is 0
        value, spread = (
            (found.value, found.standard_error**2) if hasattr(found, "value") else (parts.sum(), 0.0)
        )
        whole.append((value, spread, p))
        same = difference_estimator(w[m], u[m], pi[m], prior=f[m], prior_total=[known.sum()], fewest=0)[0]
        assert same.value == pytest.approx(value, abs=1e-12)
        these.append((same, p))
    mean, variance, estimated = summary(whole)
    assert mean == pytest.approx((KINDS_CHANCE * (KINDS_U * [1.0, 0.5]).sum(axis=1)).sum(), **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    assert summary(these)[2] < 0.7 * variance


def test_a_topic_that_stands_twice_doubles_the_weight_of_its_pairs_which_are_judged_once():
    # topics x, x, y: the mean over three; the pairs of x are in the frame once, with 2/3 instead of 1/3
    lam, u, pi = np.array([1.0, 0.5]), np.array([2.0, 1.0, 3.0, 1.0]), np.array([0.5, 0.4, 0.6, 0.7])
    w = np.concatenate([2 * lam, lam]) / 3
    value = (2 * (lam * u[:2]).sum() + (lam * u[2:]).sum()) / 3
    mean, variance, estimated = summary(
        (horvitz_thompson(w[m], u[m], pi[m], fewest=0)[0], p) for m, p in poisson_samples(pi)
    )
    assert mean == pytest.approx(value, **exactly)
    assert estimated == pytest.approx(variance, **exactly)
    # as two pairs that share their label: the same value, half the variance of x
    two = np.array([0, 1, 0, 1, 2, 3])
    apart = np.concatenate([lam, lam, lam]) / 3
    _, _, wrong = summary(
        (
            horvitz_thompson(apart[m[two]], u[two][m[two]], pi[two][m[two]], fewest=0)[0],
            p,
        )
        for m, p in poisson_samples(pi)
    )
    assert wrong < 0.7 * variance
