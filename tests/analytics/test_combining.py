"""More labels than grades, several assessors: docs/methods/derivations/noise-correction.md, sections 3 and 5."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom

from analytics.estimation.estimate import Refusal
from analytics.papers.combining import least_variance_scores, true_mix
from analytics.papers.inverse import label_scores, score_variance
from experiments.papers.combining import (
    inverse_variance_mean,
    judge_weights,
    majority_matrix,
    pattern_matrix,
    pattern_scores,
    second_order_bias,
)

# three grades, and a fourth label "cannot tell"
WIDE = np.array([[0.7, 0.15, 0.05, 0.1], [0.2, 0.5, 0.1, 0.2], [0.05, 0.1, 0.8, 0.05]])
GAINS = np.array([1.0, 0.5, 0.0])


# -- more labels than grades --------------------------------------------------------------------------------


def test_scores_of_a_wide_matrix_are_unbiased_in_every_grade_by_enumeration():
    h = np.array([0.3, 0.25, 0.35, 0.1])
    c = least_variance_scores(WIDE, h, GAINS)
    for grade in range(3):
        assert sum(WIDE[grade, label] * c[label] for label in range(4)) == pytest.approx(
            GAINS[grade], abs=1e-12
        )


def test_no_other_unbiased_scores_vary_less():
    mix = np.array([0.4, 0.3, 0.3])
    h = mix @ WIDE
    c = least_variance_scores(WIDE, h, GAINS)
    null = np.linalg.svd(WIDE)[2][-1]
    assert np.abs(WIDE @ null).max() < 1e-12
    for step in (-0.5, -0.01, 0.01, 0.5):
        other = c + step * null
        assert pytest.approx(GAINS) == WIDE @ other
        assert h @ other**2 > h @ c**2
    # ignoring "cannot tell" gives scores that are wrong
    dropped = label_scores(WIDE[:, :3] / WIDE[:, :3].sum(axis=1, keepdims=True), GAINS)
    assert np.abs(WIDE[:, :3] @ dropped - GAINS).max() > 0.05


def test_as_many_labels_as_grades_is_the_inverse_whatever_the_shares():
    j = np.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]])
    for h in ([1, 1, 1], [0.9, 0.05, 0.05]):
        assert least_variance_scores(j, h, GAINS) == pytest.approx(np.linalg.solve(j, GAINS))
        assert true_mix(j, h, [0.3, 0.3, 0.4]) == pytest.approx([0.266667, 0.333333, 0.4], abs=6e-7)


def test_the_mix_behind_wide_labels_is_recovered_and_gives_the_same_value():
    mix, w = np.array([0.4, 0.25, 0.35]), np.array([0.2, 0.2, 0.4, 0.2])
    h = mix @ WIDE
    assert true_mix(WIDE, w, h) == pytest.approx(mix)
    seen = np.array([0.33, 0.27, 0.3, 0.1])
    assert true_mix(WIDE, w, seen) @ GAINS == pytest.approx(seen @ least_variance_scores(WIDE, w, GAINS))


def test_an_error_of_a_wide_matrix_moves_the_value_by_minus_pi_dJ_c():
    mix, w = np.array([0.4, 0.25, 0.35]), np.array([0.2, 0.2, 0.4, 0.2])
    h, step = mix @ WIDE, 1e-6
    change = np.zeros_like(WIDE)
    change[1] = [1, -2, 0.5, 0.5]
    values = [h @ least_variance_scores(WIDE + sign * step * change, w, GAINS) for sign in (1, -1)]
    c = least_variance_scores(WIDE, w, GAINS)
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(-mix @ change @ c, rel=1e-6)


# -- bias ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [60, 120])
def test_the_second_order_bias_is_that_of_all_audits(n):
    m_r, m_n, share = 0.9, 0.8, 0.4
    j = share * m_r + (1 - share) * (1 - m_n)
    x, y = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    p = binom.pmf(x, n, m_r) * binom.pmf(y, n, m_n)
    d = x / n + y / n - 1
    usable = d > 0.05  # all but about 1e-20 of the audits
    mean = (p[usable] * (j - 1 + y[usable] / n) / d[usable]).sum() / p[usable].sum()
    bias = second_order_bias([[m_n, 1 - m_n], [1 - m_r, m_r]], [n, n], [1 - share, share], [0, 1])
    assert mean - share == pytest.approx(bias, rel=6 / n)
    assert abs(mean - share - bias) < 0.1 * abs(bias)


# -- several judges on an item (3.4) ------------------------------------------------------------------------

GOOD, POOR = (0.9, 0.9), (0.65, 0.75)
JUDGES = [np.array([[n, 1 - n], [1 - r, r]]) for r, n in [GOOD] * 5 + [POOR] * 5]
PREVALENCE = np.array([0.4, 0.6])


def corrected(mean, matrix):
    return (mean - 1 + matrix[0, 0]) / (matrix[1, 1] + matrix[0, 0] - 1)


def over_triples(judges):
    """Return the mean majority, and the matrices of all triples' majorities."""
    majorities = [majority_matrix(triple) for triple in combinations(judges, 3)]
    return np.mean([PREVALENCE @ m[:, 1] for m in majorities]), majorities


def test_a_majority_needs_the_majoritys_matrix():
    raw, majorities = over_triples(JUDGES)
    single, pooled = np.mean(JUDGES, axis=0), np.mean(majorities, axis=0)
    assert raw == pytest.approx(0.5562, abs=5e-5)
    assert corrected(raw, single) == pytest.approx(0.6354, abs=5e-5)
    assert corrected(raw, pooled) == pytest.approx(0.6, abs=1e-9)
    # the same matrices where only the poor judges judged
    poor, theirs = over_triples(JUDGES[5:])
    assert poor == pytest.approx(0.4934, abs=5e-5)
    assert corrected(poor, single) == pytest.approx(0.5307, abs=5e-5)
    assert corrected(poor, pooled) == pytest.approx(0.5209, abs=5e-5)
    assert corrected(poor, theirs[0]) == pytest.approx(0.6, abs=1e-9)


def item_moments(triple, scores):
    """Return mean and second moment of a score of the triple's pattern, over both grades, by enumeration."""
    p = PREVALENCE @ pattern_matrix(triple)
    return p @ scores, p @ scores**2


@pytest.mark.parametrize(
    ("judges", "majority_sd", "mean_sd", "pattern_sd"),
    [(JUDGES, 0.644, 0.696, 0.590), (JUDGES[5:], None, 0.825, 0.814)],
)
def test_scores_of_triples_are_unbiased_and_as_noisy_as_the_table_says(
    judges, majority_sd, mean_sd, pattern_sd
):
    moments = {"majority": [], "mean": [], "pattern": []}
    for triple in combinations(judges, 3):
        patterns = list(product((0, 1), repeat=3))
        own = label_scores(majority_matrix(triple), [0, 1])
        c = [label_scores(j, [0, 1]) for j in triple]
        scores = {
            "majority": [own[int(sum(p) >= 2)] for p in patterns],
            "mean": [np.mean([c[k][label] for k, label in enumerate(p)]) for p in patterns],
            # the table's noise is that of a prior prevalence of one half
            "pattern": pattern_scores(triple, [0.5, 0.5], [0, 1]),
        }
        for name, values in scores.items():
            moments[name].append(item_moments(triple, np.asarray(values)))
    spread = {}
    for name, pairs in moments.items():
        mean, square = np.mean(pairs, axis=0)
        assert mean == pytest.approx(0.6, abs=1e-9)
        spread[name] = np.sqrt(square - mean**2)
    assert spread["mean"] == pytest.approx(mean_sd, abs=5e-4)
    assert spread["pattern"] == pytest.approx(pattern_sd, abs=5e-4)
    if majority_sd is not None:
        assert spread["majority"] == pytest.approx(majority_sd, abs=5e-4)


def test_weights_by_precision_are_unbiased_and_less_noisy_than_equal_ones():
    triple = [JUDGES[0], JUDGES[5], JUDGES[6]]
    weight = judge_weights(triple, [0, 1])
    assert weight.sum() == pytest.approx(1)
    tau = [score_variance(j, label_scores(j, [0, 1])).mean() for j in triple]
    assert weight == pytest.approx(1 / np.array(tau) / sum(1 / np.array(tau)))
    c = [label_scores(j, [0, 1]) for j in triple]

    def moments(shares):
        values = [sum(w * c[k][x] for k, (w, x) in enumerate(zip(shares, p, strict=True)))
                  for p in product((0, 1), repeat=3)]  # fmt: skip
        return item_moments(triple, np.array(values))

    ours, equal = moments(weight), moments(np.full(3, 1 / 3))
    assert ours[0] == pytest.approx(0.6)
    assert ours[1] < equal[1]


def test_a_pattern_matrix_has_the_judges_as_its_margins():
    triple = [WIDE, WIDE[:, ::-1], WIDE]
    table = pattern_matrix(triple)
    assert table.shape == (3, 64)
    assert table.sum(axis=1) == pytest.approx(np.ones(3))
    for judge in range(3):
        axes = tuple(axis + 1 for axis in range(3) if axis != judge)
        assert pytest.approx(triple[judge]) == table.reshape(3, 4, 4, 4).sum(axis=axes)


# -- several assessors --------------------------------------------------------------------------------------


def test_the_mean_by_precision_is_refused_unless_assignment_was_random():
    found = inverse_variance_mean([0.5, 0.7, 0.6], [0.01, 0.04, 0.02], random_assignment=True)
    assert found.value == pytest.approx((50 + 17.5 + 30) / 175)
    assert found.standard_error**2 == pytest.approx(1 / 175)
    refused = inverse_variance_mean([0.5, 0.7], [0.01, 0.04], random_assignment=False)
    assert isinstance(refused, Refusal)
    assert "not recorded as random" in refused.reason


def test_the_mean_by_precision_is_biased_when_assignment_follows_the_grade():
    # two assessors of different accuracy; the better one gets the relevant documents
    better, worse = (0.95, 0.95), (0.7, 0.7)
    shares = {better: 0.9, worse: 0.3}
    variances = [0.0004, 0.0025]
    per_assessor = inverse_variance_mean(list(shares.values()), variances, random_assignment=True)
    truth = 0.6  # half the items each
    assert abs(per_assessor.value - truth) > 4 * per_assessor.standard_error


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: least_variance_scores(WIDE, [0.5, 0.5, 0, 0], GAINS), "above 0"),
        (lambda: least_variance_scores(WIDE[:, :3], [1, 1, 1], GAINS), "sum to 1"),
        (lambda: least_variance_scores(WIDE, np.ones(4), [0, 1]), "gains must have length 3"),
        (lambda: least_variance_scores([[0.5, 0.5], [0.5, 0.5]], [1, 1], [0, 1]), "do not tell them apart"),
        (lambda: least_variance_scores(np.ones((3, 2)) / 2, [1, 1], GAINS), "given >= true"),
        (lambda: true_mix(WIDE, [1, 1, 1], [0, 0, 0, 1]), "4 numbers above 0"),
        (lambda: second_order_bias(WIDE, [9] * 3, [1, 0, 0], GAINS), "square"),
        (lambda: second_order_bias(np.eye(2), [9, 0], [1, 0], [0, 1]), "gold_per_grade must be above 0"),
        (lambda: majority_matrix(JUDGES[:2]), "odd number"),
        (lambda: pattern_matrix(np.array(JUDGES * 2)), "at most 100000 patterns"),
        (lambda: pattern_scores(JUDGES[:3], [0.5, 0.6], [0, 1]), "sum to 1"),
        (lambda: judge_weights([np.eye(2)], [0, 1]), "must have errors"),
        (lambda: inverse_variance_mean([0.5], [0.0], random_assignment=True), "above 0"),
        (lambda: inverse_variance_mean([], [], random_assignment=True), "at least 1 assessor"),
    ],
)
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
