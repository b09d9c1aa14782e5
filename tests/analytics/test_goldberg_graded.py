"""Eq 15-18 for any number of grades, their closed variance, differences, and the bootstrap."""

import numpy as np
import pytest

from analytics.estimation.estimate import Refusal
from analytics.papers.goldberg import corrected_value, corrected_variance, shared_audit_difference
from analytics.papers.graded import (
    bootstrap_over_topics,
    corrected_difference,
    corrected_system,
    grade_shares,
    system_labels,
)
from experiments.papers.goldberg import accuracy
from experiments.papers.graded import label_table, ranked_labels

J7 = np.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]])
GAINS = np.array([1.0, 0.5, 0.0])
DISCOUNTS = 1 / np.log2(np.arange(2, 7))
SEE = 6e-7


def six(value):
    """Compare to the six printed digits."""
    return pytest.approx(value, abs=SEE)


def simulated(rng, n_topics, matrix=J7, shift=0.0):
    """Return given labels [topic, rank] with a topic effect; grade 0 is the best one here."""
    easy = np.clip(rng.normal(0.3 + shift, 0.15, n_topics), 0.02, 0.9)
    u = rng.random((n_topics, 5))
    true = np.where(u < easy[:, None], 0, np.where(u < easy[:, None] + 0.25, 1, 2))
    edges = matrix.cumsum(axis=1)
    return (rng.random(true.shape)[..., None] > edges[true]).sum(axis=2).clip(0, 2)


# -- Eq 17 and 18 -------------------------------------------------------------------------------------------


def test_f10_equation_18_on_figure_1():
    # figure 1: query 1 not, highly; query 2 partly, not. Labels: 0 highly, 1 partly, 2 not
    labels = ranked_labels([[2, 0], [1, 2]], 1 / np.log2([2, 3]))
    # a row of J without errors has no variance of its own, so cells get a count
    perfect = corrected_system(
        labels, matrices=[np.eye(3)], gold_per_grade=[[1000] * 3], gains=GAINS, pseudo_count=0.5
    )
    assert perfect.value == six(0.565465)
    noisy = corrected_system(labels, matrices=[J7], gold_per_grade=[[1000] * 3], gains=GAINS)
    assert noisy.value == six(0.482132)


def test_f7_equation_17_and_its_closed_variance():
    assert grade_shares([0.3, 0.3, 0.4], J7) == six([0.266667, 0.333333, 0.4])
    labels = ranked_labels([[0]] * 3 + [[1]] * 3 + [[2]] * 4, [1.0])
    found = corrected_system(
        labels, matrices=[J7], gold_per_grade=[[40, 50, 60]], gains=GAINS, pseudo_count=0
    )
    parts = dict(found.components)
    assert found.value == six(0.433333)
    assert parts["topics"] * 9 == six(0.306667)
    assert parts["confusion matrices"] == six(0.000963)


def test_f8_two_assessors_with_weights():
    draws = [(0, 0, 2), (0, 1, 0.5), (1, 0, 1), (1, 1, 1.5), (0, 0, 0.25), (1, 0, 0.75)]
    labels = system_labels(
        np.arange(6), [a for a, _, _ in draws], [g for _, g, _ in draws], [w for _, _, w in draws], 6
    )
    matrices = [[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.25, 0.75]]]
    found = corrected_system(
        labels, matrices=matrices, gold_per_grade=[[30, 30], [20, 25]], gains=[1, 0], pseudo_count=0
    )
    parts = dict(found.components)
    assert found.value == six(0.751984)
    assert (parts["topics"], parts["confusion matrices"]) == (six(0.232279), six(0.008686))
    assert found.standard_error == six(0.490882)


def test_two_grades_are_equation_5_and_7():
    rng = np.random.default_rng(1)
    given = (rng.random((60, 10)) < 0.48).astype(int)
    (m_r, v_r), (m_n, v_n) = accuracy(45, 50), accuracy(48, 60)
    matrix = [[m_n, 1 - m_n], [1 - m_r, m_r]]
    found = corrected_system(
        ranked_labels(given, np.full(10, 0.1)), matrices=[matrix], gold_per_grade=[[60, 50]], gains=[0, 1],
        pseudo_count=0,
    )  # fmt: skip
    topic = given.mean(axis=1)
    wanted = corrected_variance(topic.mean(), topic.var(ddof=1) / 60, m_r, v_r, m_n, v_n)
    assert found.value == pytest.approx(corrected_value(topic.mean(), m_r, m_n), abs=1e-12)
    assert found.standard_error**2 == pytest.approx(wanted, rel=1e-9)


def test_the_matrix_part_is_the_delta_method_by_numerical_derivatives():
    labels = ranked_labels(simulated(np.random.default_rng(2), 40), DISCOUNTS)
    gold, step = np.array([40.0, 50.0, 60.0]), 1e-6

    def value(j):
        table = label_table(labels, 1, 3)[:, 0].mean(axis=0)
        return table @ np.linalg.solve(j, GAINS)

    variance = 0.0
    for g in range(3):
        gradient = np.zeros(3)
        for given in range(3):
            change = np.zeros((3, 3))
            change[g, given] = step
            gradient[given] = (value(J7 + change) - value(J7 - change)) / (2 * step)
        covariance = (np.diag(J7[g]) - np.outer(J7[g], J7[g])) / gold[g]
        variance += gradient @ covariance @ gradient
    found = corrected_system(labels, matrices=[J7], gold_per_grade=[gold], gains=GAINS, pseudo_count=0)
    assert dict(found.components)["confusion matrices"] == pytest.approx(variance, rel=1e-6)


def test_the_closed_interval_holds_and_without_the_audits_part_it_does_not():
    rng, runs, held, narrow = np.random.default_rng(3), 400, 0, 0
    exact = np.clip(rng.normal(0.3, 0.15, 400_000), 0.02, 0.9)
    # the best two grades take u < easy + .25 <= 1
    truth = (np.minimum(exact, 1) + 0.5 * (np.minimum(exact + 0.25, 1) - exact)).mean() * DISCOUNTS.sum()
    for _ in range(runs):
        audit = np.stack([rng.multinomial(60, row) for row in J7]) / 60
        found = corrected_system(
            ranked_labels(simulated(rng, 100), DISCOUNTS), matrices=[audit], gold_per_grade=[[60] * 3],
            gains=GAINS, rng=np.random.default_rng(0),
        )  # fmt: skip
        held += found.low < truth < found.high
        narrow += abs(found.value - truth) < 1.96 * np.sqrt(dict(found.components)["topics"])
    # section 1: coverage .961 with, .839 without the J term
    assert held / runs == pytest.approx(0.955, abs=0.03)
    assert narrow / runs < 0.90


# -- differences: one formula for all sharing ---------------------------------------------------------------

EBAY_R, EBAY_N = (43, 59), (67, 84)
BINARY = np.array([[67 / 84, 17 / 84], [16 / 59, 43 / 59]])


def two_systems(rng, n=200):
    return (rng.random((n, 3)) < 0.63).astype(int), (rng.random((n, 3)) < 0.55).astype(int)


@pytest.mark.parametrize("same_topics", [True, False])
def test_all_labels_by_one_assessor_is_the_shared_audit(same_topics):
    a, b = two_systems(np.random.default_rng(4))
    thirds = np.full(3, 1 / 3)
    found = corrected_difference(
        ranked_labels(a, thirds), ranked_labels(b, thirds), same_topics=same_topics, matrices=[BINARY],
        gold_per_grade=[[84, 59]], gains=[0, 1], pseudo_count=0,
    )  # fmt: skip
    ya, yb = a.mean(axis=1), b.mean(axis=1)
    apart = (ya.var(ddof=1) / 200, yb.var(ddof=1) / 200)
    of_difference = (ya - yb).var(ddof=1) / 200 if same_topics else sum(apart)
    wanted = shared_audit_difference(
        (ya.mean(), yb.mean()), of_difference, *accuracy(*EBAY_R), *accuracy(*EBAY_N), apart
    )
    assert found.value == pytest.approx(wanted.value, abs=1e-12)
    assert found.standard_error == pytest.approx(wanted.standard_error, rel=1e-9)


def test_no_assessor_in_common_is_equation_10_and_some_in_common_lies_between():
    a, b = two_systems(np.random.default_rng(5))
    thirds = np.full(3, 1 / 3)
    both = {"matrices": [BINARY] * 2, "gold_per_grade": [[84, 59]] * 2, "gains": [0, 1], "pseudo_count": 0}

    def difference(of_b):
        first = ranked_labels(a, thirds)
        second = ranked_labels(b, thirds)
        second = system_labels(second.topic, of_b, second.grade, second.weight, second.n_topics)
        return corrected_difference(first, second, same_topics=False, **both)

    shared, separate = difference(np.zeros(600, dtype=int)), difference(np.ones(600, dtype=int))
    half = difference(np.arange(600) % 2)
    rates = (*accuracy(*EBAY_R), *accuracy(*EBAY_N))
    eq10 = sum(
        corrected_variance(y.mean(), y.var(ddof=1) / 200, *rates) for y in (a.mean(axis=1), b.mean(axis=1))
    )
    assert separate.standard_error**2 == pytest.approx(eq10, rel=1e-9)
    assert shared.value == pytest.approx(half.value) == pytest.approx(separate.value)
    assert 1.2 * shared.standard_error < half.standard_error < separate.standard_error / 1.2


# -- bootstrap ----------------------------------------------------------------------------------------------


def test_the_bootstrap_with_the_audit_has_the_closed_error_and_without_it_the_topics_alone():
    rng = np.random.default_rng(6)
    labels = ranked_labels(simulated(rng, 100), DISCOUNTS)
    counts = np.round(J7 * 60)
    closed = corrected_system(labels, matrices=[counts / 60], gold_per_grade=[[60] * 3], gains=GAINS)
    table = label_table(labels, 1, 3)
    given = {"audit_counts": counts[None], "gains": GAINS, "draws": 4000}
    full = bootstrap_over_topics(table, **given, rng=np.random.default_rng(7))
    alone = bootstrap_over_topics(table, **given, rng=np.random.default_rng(7), resample_audit=False)
    assert full.value == pytest.approx(closed.value, abs=1e-12)
    assert full.standard_error == pytest.approx(closed.standard_error, rel=0.08)
    assert alone.standard_error == pytest.approx(np.sqrt(dict(closed.components)["topics"]), rel=0.05)
    assert full.low < full.value < full.high
    assert full.usable == 1.0
    again = bootstrap_over_topics(table, **given, rng=np.random.default_rng(7))
    assert again == full


def test_the_bootstrap_of_a_difference_shares_the_audit():
    rng = np.random.default_rng(8)
    tables = [label_table(ranked_labels(simulated(rng, 80, shift=s), DISCOUNTS), 1, 3) for s in (0.1, 0.0)]
    given = {"audit_counts": np.round(J7 * 60)[None], "gains": GAINS, "rng": np.random.default_rng(9)}
    paired = bootstrap_over_topics(tables[0] - tables[1], **given)
    apart = bootstrap_over_topics(tables[0], **given, other=tables[1])
    single = [bootstrap_over_topics(table, **given).standard_error for table in tables]
    assert paired.value == pytest.approx(apart.value, abs=1e-12)
    # two intervals of their own would have the audit's error twice
    assert max(paired.standard_error, apart.standard_error) < 0.9 * np.hypot(*single)


def test_the_bootstrap_refuses_what_it_cannot_invert():
    table = label_table(ranked_labels(simulated(np.random.default_rng(10), 20), DISCOUNTS), 1, 3)
    given = {"gains": GAINS, "rng": np.random.default_rng(11)}
    close = np.round(np.array([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.2, 0.3, 0.5]]) * 20)
    hardly = bootstrap_over_topics(table, audit_counts=close[None], **given)
    assert "can be inverted" in hardly.reason
    without = np.round(J7 * 20)
    without[2] = 0
    assert "no gold label" in bootstrap_over_topics(table, audit_counts=without[None], **given).reason
    singular = np.full((1, 3, 3), 4.0)
    assert "determinant is 0" in bootstrap_over_topics(table, audit_counts=singular, **given).reason
    assert isinstance(
        bootstrap_over_topics(table[:1], audit_counts=np.round(J7 * 20)[None], **given), Refusal
    )


def test_the_bootstrap_refuses_labels_worse_than_chance():
    rng = np.random.default_rng(12)
    table = rng.multinomial(10, [0.4, 0.6], size=(30, 1)) / 10
    given = {"gains": [0.0, 1.0], "rng": rng}
    worse = bootstrap_over_topics(table, audit_counts=[[[20, 80], [85, 15]]], **given)
    assert isinstance(worse, Refusal)
    assert "no better than chance" in worse.reason
    right = bootstrap_over_topics(table, audit_counts=[[[80, 20], [15, 85]]], **given)  # the control
    assert not isinstance(right, Refusal)


# -- refusals and bad input ---------------------------------------------------------------------------------


def test_refusals_name_the_reason():
    labels = ranked_labels([[0, 1], [1, 2], [2, 0]], [1, 1])
    given = {"gains": GAINS}
    none = corrected_system(labels, matrices=[J7], gold_per_grade=[[10, 0, 10]], **given)
    assert none.reason == "no gold label of true grade 1"
    near = [[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.2, 0.3, 0.5]]
    hardly = corrected_system(labels, matrices=[near], gold_per_grade=[[10] * 3], **given)
    assert "hardly separate" in hardly.reason
    one = corrected_system(ranked_labels([[0, 1]], [1, 1]), matrices=[J7], gold_per_grade=[[50] * 3], **given)
    assert "at least 2 are needed" in one.reason
    alike = corrected_system(
        ranked_labels([[0], [0]], [1.0]),
        matrices=[np.eye(3)],
        gold_per_grade=[[50] * 3],
        pseudo_count=0,
        **given,
    )
    assert "cannot be estimated" in alike.reason


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ranked_labels([0, 1], [1]), "one discount a rank"),
        (lambda: system_labels([0], [0], [0, 1], [1], 1), "equally long"),
        (lambda: system_labels([0], [0], [0], [1], 0), "n_topics must be at least 1"),
        (lambda: grade_shares([0.5, 0.5], [[0.9, 0.1], [0.2, 0.7]]), "sum to 1"),
        (
            lambda: corrected_system(
                ranked_labels([[3], [0]], [1]), matrices=[J7], gold_per_grade=[[9] * 3], gains=GAINS
            ),
            "labels below 3",
        ),
        (
            lambda: corrected_system(
                ranked_labels([[2], [0]], [1]), matrices=[J7], gold_per_grade=[[9, 9, -1]], gains=GAINS
            ),
            "gold_per_grade must be >= 0",
        ),
        (
            lambda: corrected_difference(
                ranked_labels([[2], [0]], [1]), ranked_labels([[2]], [1]), same_topics=True, matrices=[J7],
                gold_per_grade=[[9] * 3], gains=GAINS,
            ),
            "same topics must be equally many, got 2 and 1",
        ),
        (
            lambda: bootstrap_over_topics(
                np.zeros((3, 1, 2)), audit_counts=np.ones((1, 3, 3)), gains=GAINS, rng=np.random.default_rng(1)
            ),
            "table must be",
        ),
        (
            lambda: bootstrap_over_topics(
                np.zeros((3, 1, 3)), audit_counts=np.ones((1, 3, 3)), gains=GAINS, rng=np.random.default_rng(1),
                draws=10,
            ),
            "draws must be >= 200",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
