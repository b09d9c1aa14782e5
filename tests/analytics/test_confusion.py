"""Confusion matrices: counts, weighted audits, intervals, shrinkage, and rows nobody has gold for."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from analytics.estimation.confusion import (
    assessor_counts,
    audit_counts,
    confusion_from_counts,
    confusions_from_counts,
    drift_p_values,
    grouped_audit_counts,
    shrink,
)
from analytics.estimation.estimate import Refusal


def gold_check_counts(true_grade, given_grade, n_grades):
    """Return counts[true_grade, given_grade] of one assessor's gold checks."""
    return assessor_counts(np.zeros(len(true_grade), dtype=int), true_grade, given_grade, 1, n_grades)[0]


def test_gold_checks_are_counted_with_the_true_grade_in_rows():
    counts = gold_check_counts([0, 0, 2, 2, 2], [0, 1, 2, 2, 0], 3)
    assert counts.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 2]]


def test_a_grade_without_gold_is_absent_and_not_a_row_of_zeros():
    found = confusion_from_counts([[3, 1, 0], [0, 0, 0], [0, 0, 5]])
    assert found.absent_grades == (1,)
    assert found.matrix[1] is None
    assert found.low[1] is None
    assert found.matrix[0] == (0.75, 0.25, 0.0)
    with pytest.raises(ValueError, match=r"grades \[1\]"):
        found.as_array()


def test_intervals_hold_the_middle_of_the_jeffreys_posterior():
    found = confusion_from_counts([[13, 7], [4, 26]])
    low, high = found.low[0][0], found.high[0][0]

    def density(p):
        return p**12.5 * (1 - p) ** 6.5

    whole = integrate.quad(density, 0, 1)[0]
    assert integrate.quad(density, 0, low)[0] / whole == pytest.approx(0.025, abs=1e-6)
    assert integrate.quad(density, high, 1)[0] / whole == pytest.approx(0.025, abs=1e-6)


def test_a_row_without_errors_still_allows_for_errors():
    found = confusion_from_counts([[20, 0], [0, 20]])
    assert (found.low[0][1], found.high[0][0]) == (0.0, 1.0)
    # one minus the 2.5 % point of Beta(20.5, .5), by integration of the posterior
    whole = integrate.quad(lambda t: 2 * (1 - t * t) ** 19.5, 0, 1)[0]  # p = t^2 removes the pole at 0
    end = np.sqrt(found.high[0][1])
    assert integrate.quad(lambda t: 2 * (1 - t * t) ** 19.5, 0, end)[0] / whole == pytest.approx(
        0.975, abs=1e-6
    )


def test_equal_audit_probabilities_give_the_plain_counts():
    gold, given = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    assert audit_counts(gold, given, np.full(5, 0.2), 2) == pytest.approx(gold_check_counts(gold, given, 2))


def test_weighted_rows_by_hand():
    # row 0: weights 2 (given 0) and 10 (given 1): shares 1/6, 5/6; effective number 144/104
    counts = audit_counts([0, 0], [0, 1], [0.5, 0.1], 2)
    assert counts[0] == pytest.approx(np.array([1 / 6, 5 / 6]) * 144 / 104)
    assert counts[1].tolist() == [0, 0]


def test_the_weighted_audit_recovers_a_matrix_that_plain_counts_miss():
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 2, 200_000)
    given = np.where(rng.random(gold.size) < np.where(gold == 1, 0.8, 0.3), 1, 0)
    probability = np.where(given == 1, 0.5, 0.1)
    audited = rng.random(gold.size) < probability
    weighted = confusion_from_counts(audit_counts(gold[audited], given[audited], probability[audited], 2))
    plain = confusion_from_counts(gold_check_counts(gold[audited], given[audited], 2))
    assert weighted.matrix[0][1] == pytest.approx(0.3, abs=0.01)
    # plain: .3 * .5 / (.3 * .5 + .7 * .1)
    assert plain.matrix[0][1] == pytest.approx(15 / 22, abs=0.01)


def test_the_counts_of_assessors_add_up_to_one_matrix():
    counts = assessor_counts([0, 0, 1], [0, 1, 1], [0, 1, 0], 2, 2)
    assert counts[0].tolist() == [[1, 0], [0, 1]]
    assert confusion_from_counts(counts.sum(axis=0)).matrix == ((1.0, 0.0), (0.5, 0.5))


def test_shrinkage_is_the_weighted_mean_of_own_and_common_row():
    counts = np.array([[[8, 2], [1, 3]], [[5, 5], [0, 2]], [[0, 0], [2, 0]]])
    found = shrink(counts)
    # pooled counts with one half added: (13.5, 7.5) / 21 and (3.5, 5.5) / 9
    assert found.common == pytest.approx(np.array([[13.5 / 21, 7.5 / 21], [3.5 / 9, 5.5 / 9]]))
    k = found.strength[0]
    assert found.matrices[0, 0] == pytest.approx((np.array([8, 2]) + k * found.common[0]) / (10 + k))
    assert found.matrices[2, 0] == pytest.approx(found.common[0])  # no gold of one's own: the common row
    # three assessors lean on 20 gold labels of grade 0: no row is worth more than n + k, nor all together than those
    worth = 1 / (1 / (10 + k) + 3 * (k / (10 + k)) ** 2 / 20)
    assert found.n_per_grade[:, 0] == pytest.approx([worth, worth, 1 / (1 / k + 3 / 20)])


def test_shrunk_rows_of_equal_assessors_are_worth_no_more_than_their_gold_together():
    found = shrink(np.tile([[8, 2], [3, 7]], (6, 1, 1)))  # six assessors alike: k reaches its upper end
    assert found.strength.min() > 900
    # the mean over six independent rows has variance tau/(6 worth); the 60 labels behind it give no less than tau/60
    assert (6 * found.n_per_grade <= 60 / 0.97).all()


def test_the_strength_maximises_the_beta_binomial_likelihood():
    x, n = np.array([1, 9, 5, 2, 8, 6]), 10
    counts = np.stack([np.stack([x, n - x], axis=1), np.full((6, 2), 5)], axis=1)
    found = shrink(counts)
    mu = (x.sum() + 0.5) / (60 + 1)

    def likelihood(k):
        return stats.betabinom.logpmf(x, n, k * mu, k * (1 - mu)).sum()

    grid = np.linspace(0.1, 50, 500)
    assert likelihood(found.strength[0]) >= max(likelihood(k) for k in grid) - 1e-6
    assert 1 < found.strength[0] < 10


def test_assessors_who_are_alike_are_pooled_almost_fully():
    assert shrink(np.tile([[8, 2], [3, 7]], (12, 1, 1))).strength.min() > 100


def test_shrinkage_without_gold_of_a_grade_is_refused_by_name():
    found = shrink([[[3, 1], [0, 0]], [[2, 0], [0, 0]]])
    assert isinstance(found, Refusal)
    assert "grade 1" in found.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 3], [0, 0], 3), "true_grade must be in 0..2, got 3"),
        (([0, -1], [0, 0], 3), "true_grade must be in 0..2, got -1"),
        (([0, 1], [0], 2), "equally long, got 2 and 1"),
        (([0.5], [0], 2), "integers"),
        (([0], [0], 1), "n_grades must be at least 2, got 1"),
    ],
)
def test_impossible_grades_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        gold_check_counts(*arguments)


def test_impossible_counts_and_probabilities_are_named():
    with pytest.raises(ValueError, match="counts must be >= 0, got -1"):
        confusion_from_counts([[1, -1], [0, 1]])
    with pytest.raises(ValueError, match="counts must be finite"):
        confusion_from_counts([[1, np.nan], [0, 1]])
    with pytest.raises(ValueError, match=r"audit_probability must be in \(0, 1\], got 0"):
        audit_counts([0], [0], [0.0], 2)


def test_nobody_checked_means_every_row_is_absent():
    assert confusion_from_counts(gold_check_counts([], [], 2)).absent_grades == (0, 1)


# -- groups and drift ---------------------------------------------------------------------------------------


def test_audit_counts_of_groups_are_those_of_each_group_alone():
    rng = np.random.default_rng(5)
    group, gold, given = rng.integers(0, 4, 200), rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    pi = rng.uniform(0.05, 1, 200)
    together = grouped_audit_counts(group, gold, given, pi, 4, 3)
    for g in range(4):
        mine = group == g
        assert np.allclose(together[g], audit_counts(gold[mine], given[mine], pi[mine], 3), rtol=1e-12)


def test_matrices_of_many_tables_are_those_of_each_table_alone():
    tables = np.array([[[9.0, 1], [0, 0]], [[0, 0], [2, 5]], [[4, 0], [0, 4]]])
    assert confusions_from_counts(tables) == [confusion_from_counts(table) for table in tables]


def test_drift_has_the_permutation_distribution_of_a_small_case():
    """Exact: the covariance over all orders of time of the two sums, by enumeration."""
    true, given = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 1, 0])
    right = (true == given).astype(float)
    sums = []
    for first in itertools.permutations(range(3)):
        for second in itertools.permutations(range(3)):
            time = np.array([*first, *second], dtype=float)
            centred = time - 1
            sums.append([(centred * given).sum(), (centred * right).sum()])
    exact = np.cov(np.array(sums).T, bias=True)
    # time 0..5 in order: ranks 1..6; within each grade they are 1 apart, as above
    observed = np.array(
        [(np.array([-1, 0, 1, -1, 0, 1]) * given).sum(), (np.array([-1, 0, 1, -1, 0, 1]) * right).sum()]
    )
    statistic = observed @ np.linalg.pinv(exact) @ observed
    expected = stats.chi2.sf(statistic, np.linalg.matrix_rank(exact))
    # ten answers are the least: a second grade pair of one kind each adds nothing to either sum
    more_true, more_given = np.full(4, 2), np.full(4, 2)
    p = drift_p_values(
        np.zeros(10, dtype=int),
        np.append(true, more_true),
        np.append(given, more_given),
        np.arange(10.0),
        1,
        3,
    )
    assert p[0] == pytest.approx(expected, rel=1e-9)


def test_drift_is_rarely_seen_where_there_is_none_and_often_where_errors_grow():
    rng = np.random.default_rng(7)
    n_assessors, n = 400, 60
    assessor = np.repeat(np.arange(n_assessors), n)
    true = rng.integers(0, 2, assessor.size)
    time = rng.random(assessor.size)
    steady = np.where(rng.random(assessor.size) < 0.8, true, 1 - true)
    worse = np.where(rng.random(assessor.size) < 1 - 0.6 * time, true, 1 - true)
    assert (drift_p_values(assessor, true, steady, time, n_assessors, 2) < 0.05).mean() < 0.08
    assert (drift_p_values(assessor, true, worse, time, n_assessors, 2) < 0.05).mean() > 0.6


def test_drift_is_not_told_from_few_answers_or_from_answers_that_are_all_alike():
    few = drift_p_values([0] * 9, [1] * 9, [1, 0, 1, 0, 1, 0, 1, 0, 1], np.arange(9.0), 1, 2)
    alike = drift_p_values([0] * 20, [1] * 20, [1] * 20, np.arange(20.0), 1, 2)
    assert np.isnan([few[0], alike[0]]).all()


def test_drift_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="assessor_index must have length 2, got 1"):
        drift_p_values([0], [0, 1], [0, 1], [1.0, 2.0], 1, 2)
    with pytest.raises(ValueError, match="time"):
        drift_p_values([0, 0], [0, 1], [0, 1], [1.0, np.nan], 1, 2)
