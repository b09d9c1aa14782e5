"""Calibration and the weighted matrix: docs/methods/derivations/noise-correction.md, sections 1.3 to 1.5, 4 and 7."""

from itertools import combinations, product

import numpy as np
import pytest

from analytics.estimation.estimate import Refusal
from analytics.papers.calibration import informativeness, label_informativeness
from analytics.papers.goldberg import corrected_value, corrected_variance
from experiments.papers.calibration import (
    calibration,
    calibration_variance,
    hajek_inverse,
    hajek_matrix,
    inside_audit_variance,
    neyman_allocation,
    neyman_shares,
)

F9 = [[40, 4, 1], [12, 20, 6], [8, 6, 13]]
J = np.array([[0.70, 0.20, 0.10], [0.30, 0.45, 0.25], [0.05, 0.12, 0.83]])
PREVALENCE, GAINS = np.array([0.15, 0.15, 0.70]), np.array([1.0, 0.5, 0.0])
TARGET = np.array([0.4, 0.25, 0.35]) @ J  # labels of a target whose truth is .5250


def six(value):
    """Compare to the six printed digits."""
    return pytest.approx(value, abs=6e-7)


# -- the weighted matrix ------------------------------------------------------------------------------------


def test_f9_hajek_matrix():
    found = hajek_matrix(F9, [600, 300, 2000])
    wanted = [[0.740741, 0.074074, 0.185185], [0.130435, 0.217391, 0.652174], [0.055556, 0.041667, 0.902778]]
    assert found == six(np.array(wanted))


@pytest.mark.parametrize(
    ("j", "sensitivity", "specificity", "value"),
    [(0.6260, 0.861547, 0.629924, 0.520730), (0.6385, 0.867837, 0.617305, 0.527278)],
)
def test_f12_the_inverse_with_the_weighted_matrix_is_calibration(j, sensitivity, specificity, value):
    counts, totals = [[67, 17], [16, 43]], np.array([1 - j, j]) * 10_000
    matrix = hajek_matrix(counts, totals)
    assert (matrix[1, 1], matrix[0, 0]) == (six(sensitivity), six(specificity))
    assert corrected_value(j, matrix[1, 1], matrix[0, 0]) == six(value)
    assert calibration(counts, totals, [0, 1]).value == six(value)
    assert hajek_inverse(counts, totals, [0, 1]).value == six(value)
    # asked for the same labels as if they were another system's: the same number again
    assert hajek_inverse(counts, totals, [0, 1], label_shares=[1 - j, j]).value == six(value)


def test_the_identity_holds_for_three_grades():
    totals = np.array([600.0, 300, 2000])
    # ten times the audit: F9 itself hardly separates three grades, and is refused
    assert "hardly separate" in hajek_inverse(F9, totals, GAINS, label_shares=totals / 2900).reason
    counts = np.array(F9) * 10
    wanted = calibration(counts, totals, GAINS).value
    assert hajek_inverse(counts, totals, GAINS, label_shares=totals / 2900).value == pytest.approx(
        wanted, abs=1e-12
    )
    assert totals / 2900 @ np.linalg.solve(hajek_matrix(counts, totals), GAINS) == pytest.approx(
        wanted, abs=1e-12
    )
    # the unweighted rows give something else
    plain = np.array(F9) / np.sum(F9, axis=1, keepdims=True)
    assert abs(totals / 2900 @ np.linalg.solve(plain, GAINS) - wanted) > 0.05


# -- exact enumeration --------------------------------------------------------------------------------------

POOLS = [np.array([0, 0, 1, 2, 0, 1]), np.array([2, 2, 1, 2, 0])]  # true grades of the items, by label
ENUMERATED = np.array([0.0, 1.0, 3.0])  # gains


def every_audit():
    """Yield the counts of all audits of 3 of 6 and 2 of 5 items."""
    for first, second in product(combinations(POOLS[0], 3), combinations(POOLS[1], 2)):
        yield np.stack([np.bincount(chosen, minlength=3) for chosen in (first, second)], axis=1)


def test_over_all_audits_calibration_has_the_pools_mean_and_its_variance_is_the_true_one():
    found = [
        calibration(counts, [6, 5], ENUMERATED, items_are_sample=False, smoothed=False)
        for counts in every_audit()
    ]
    values = np.array([one.value for one in found])
    truth = ENUMERATED[np.concatenate(POOLS)].mean()
    assert values.mean() == pytest.approx(truth, abs=1e-12)
    estimated = np.mean([one.standard_error**2 for one in found])
    assert estimated == pytest.approx(values.var(), rel=1e-9)
    # a variance without the finite pool would be too large
    unlimited = np.mean(
        [
            sum(
                (n / 11) ** 2
                * ENUMERATED[np.repeat(np.arange(3), counts[:, k])].var(ddof=1)
                / counts[:, k].sum()
                for k, n in enumerate((6, 5))
            )
            for counts in every_audit()
        ]
    )
    assert unlimited > 1.5 * values.var()


def test_smoothing_gives_a_label_without_disagreement_an_error():
    counts, totals = [[30, 0], [0, 30]], [500, 500]
    assert calibration(counts, totals, [0, 1], items_are_sample=False, smoothed=False).standard_error == 0
    assert calibration(counts, totals, [0, 1], items_are_sample=False).standard_error > 0.005


# -- the two-phase variance ---------------------------------------------------------------------------------


def test_the_two_phase_variance_is_the_delta_method_by_numerical_derivatives():
    counts, totals = np.array([[40.0, 14, 11], [12, 20, 16], [8, 6, 43]]), np.array([600.0, 300, 2000])
    sizes = counts.sum(axis=0)
    p, step = counts / sizes, 1e-6

    def value(shares):
        joint = totals * shares
        return TARGET @ np.linalg.solve(joint / joint.sum(axis=1, keepdims=True), GAINS)

    variance = 0.0
    for label in range(3):
        gradient = np.zeros(3)
        for grade in range(3):
            change = np.zeros((3, 3))
            change[grade, label] = step
            gradient[grade] = (value(p + change) - value(p - change)) / (2 * step)
        spread = p[:, label] @ gradient**2 - (p[:, label] @ gradient) ** 2
        variance += (1 / sizes[label] - 1 / totals[label]) * sizes[label] / (sizes[label] - 1) * spread
    joint = totals * p
    j = joint / joint.sum(axis=1, keepdims=True)
    c, mix = np.linalg.solve(j, GAINS), np.linalg.solve(j.T, TARGET)
    variance += (mix**2 * (j @ c**2 - GAINS**2) / joint.sum(axis=1)).sum()
    found = hajek_inverse(counts, totals, GAINS, label_shares=TARGET, smoothed=False)
    assert found.standard_error**2 == pytest.approx(variance, rel=1e-6)
    assert found.value == pytest.approx(value(p), abs=1e-12)


def test_audits_stratified_on_the_label_hold_with_weights_and_fail_without():
    rng, runs, n = np.random.default_rng(1), 250, 2000
    held, plain = [], []
    for _ in range(runs):
        cells = rng.multinomial(6000, (PREVALENCE[:, None] * J).ravel()).reshape(3, 3)
        totals = cells.sum(axis=0)
        audited = np.minimum([360, 180, 60], totals)
        counts = np.stack(
            [rng.multivariate_hypergeometric(cells[:, k], audited[k]) for k in range(3)], axis=1
        )
        h = rng.multinomial(n, TARGET) / n
        c = np.linalg.solve(hajek_matrix(counts, totals), GAINS)
        sampling = (h @ c**2 - (h @ c) ** 2) / n
        found = hajek_inverse(
            counts, totals, GAINS, label_shares=h, sampling_variance=sampling, rng=np.random.default_rng(0)
        )
        if isinstance(found, Refusal):
            continue
        held.append(abs(found.value - 0.525) < 1.96 * found.standard_error)
        rows = counts / counts.sum(axis=1, keepdims=True)
        plain.append(h @ np.linalg.solve(rows, GAINS))
    assert len(held) > 0.97 * runs
    # table of 3.2: .946 with smoothed cells
    assert np.mean(held) == pytest.approx(0.946, abs=0.04)
    # the unweighted matrix: -.0112 for a truth of .525 in the limit
    assert np.median(plain) < 0.15


def test_the_example_of_3_2_in_the_limit():
    joint = 6000 * PREVALENCE[:, None] * J
    audited = joint * (np.array([360, 180, 60]) / joint.sum(axis=0))
    rows = audited / audited.sum(axis=1, keepdims=True)
    assert rows == pytest.approx(
        np.array([[0.868, 0.126, 0.006], [0.554, 0.424, 0.023], [0.330, 0.404, 0.267]]), abs=6e-4
    )
    assert pytest.approx(0.4898, abs=6e-5) == TARGET @ GAINS
    assert TARGET @ np.linalg.solve(rows, GAINS) == pytest.approx(-0.0112, abs=5e-5)
    assert pytest.approx(J) == hajek_matrix(audited, joint.sum(axis=0))
    found = hajek_inverse(audited * 10, joint.sum(axis=0) * 10, GAINS, label_shares=TARGET)
    assert found.value == pytest.approx(0.525, abs=1e-12)


# -- allocation ---------------------------------------------------------------------------------------------


def test_neyman_shares_of_the_example_and_that_no_other_allocation_is_better():
    joint = 6000 * PREVALENCE[:, None] * J
    shares = neyman_shares(joint, GAINS, label_shares=TARGET)
    assert shares == pytest.approx([0.10, 0.27, 0.63], abs=0.005)
    totals = joint.sum(axis=0)
    p = joint / totals

    def error(allocation):
        audited = p * allocation * 600
        return hajek_inverse(audited, totals, GAINS, label_shares=TARGET, smoothed=False).standard_error

    best = error(shares)
    assert error(np.array([0.6, 0.3, 0.1])) > 1.5 * best
    for i, k in product(range(3), repeat=2):
        if i != k:
            shifted = shares.copy()
            shifted[i], shifted[k] = shifted[i] + 0.03, shifted[k] - 0.03
            assert error(shifted) > best


def test_allocation_keeps_to_the_size_and_to_what_there_is():
    found = neyman_allocation([0.1, 0.27, 0.63], [1000, 1000, 50], 300)
    assert found.sum() == 300
    assert found[2] == 50
    assert found.min() >= 30
    assert found.tolist() == [68, 182, 50]  # 250 as .10 : .27
    assert neyman_allocation([0.0, 1.0], [20, 1000], 100).tolist() == [20, 80]
    assert neyman_allocation([0.0, 1.0], [1000, 50], 100).tolist() == [50, 50]


# -- what bronze is worth -----------------------------------------------------------------------------------


def test_the_variances_of_section_1_2():
    m_r, m_n, share, n, audited = 0.73, 0.80, 0.8, 4000, 400
    j = share * m_r + (1 - share) * (1 - m_n)
    # Eq 7 as if independent: 320 relevant and 80 other gold labels
    independent = corrected_variance(
        j,
        j * (1 - j) / n,
        m_r,
        m_r * (1 - m_r) / (share * audited),
        m_n,
        m_n * (1 - m_n) / ((1 - share) * audited),
    )
    assert round(independent * 1e6) == 1897
    assert round(inside_audit_variance(share, m_r, m_n, n, audited) * 1e6) == 1559
    assert round(calibration_variance(share, m_r, m_n, n, audited) * 1e6, 1) == 331.0
    for variance in (inside_audit_variance, calibration_variance):
        assert variance(share, m_r, m_n, n, n) == pytest.approx(share * (1 - share) / n)


def test_k_is_the_squared_correlation_of_gold_and_bronze():
    m_r, m_n, share = 0.73, 0.80, 0.8
    cells = np.array([[(1 - share) * m_n, (1 - share) * (1 - m_n)], [share * (1 - m_r), share * m_r]])
    gold, bronze = np.meshgrid([0, 1], [0, 1], indexing="ij")
    covariance = (cells * gold * bronze).sum() - share * cells[:, 1].sum()
    squared = covariance**2 / (share * (1 - share) * cells[:, 1].sum() * cells[:, 0].sum())
    assert label_informativeness(share, m_r, m_n) == pytest.approx(squared, rel=1e-12)
    audit = cells * 400
    assert informativeness(audit, cells.sum(axis=0) * 4000, [0, 1]) == pytest.approx(squared, rel=1e-12)
    found = calibration(audit, cells.sum(axis=0) * 4000, [0, 1], smoothed=False)
    assert found.standard_error**2 == pytest.approx(
        calibration_variance(share, m_r, m_n, 4000, 400), rel=0.01
    )


# -- refusals, warnings, bad input --------------------------------------------------------------------------


def test_labels_without_enough_audit_are_refused_or_warned_about():
    none = calibration([[10, 0], [10, 0]], [100, 50], [0, 1])
    assert isinstance(none, Refusal)
    assert "0 audited items with label 1, which 50 items have" in none.reason
    assert none.needed == 2
    assert isinstance(hajek_matrix([[10, 0], [10, 0]], [100, 50]), Refusal)
    few = calibration([[40, 3], [10, 9]], [100, 50], [0, 1])
    assert few.warning == "fewer than 30 audited items (12 of label 1): the interval may be too short"
    # a label whose items are all audited needs no more
    assert calibration([[40, 3], [10, 9]], [100, 12], [0, 1]).warning == ""
    # a label that nobody gave is no problem
    assert calibration([[40, 0], [10, 0]], [100, 0], [0, 1]).value == pytest.approx(0.2)


def test_grades_without_gold_and_labels_that_do_not_separate_are_refused():
    h = [0.5, 0.5]
    assert "grade 1" in hajek_inverse([[40, 40], [0, 0]], [100, 100], [0, 1], label_shares=h).reason
    assert hajek_matrix([[40, 40], [0, 0]], [100, 100]).reason == "no gold label of true grade 1"
    alike = hajek_inverse([[20, 20], [20, 20]], [100, 100], [0, 1], label_shares=h)
    assert "determinant is 0" in alike.reason
    hardly = hajek_inverse([[21, 19], [19, 21]], [1000, 1000], [0, 1], label_shares=h)
    assert "1.96 standard errors" in hardly.reason
    assert isinstance(informativeness([[20, 20], [0, 0]], [100, 100], [0, 1]), Refusal)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: calibration([[10, 5], [1, 9]], [10, 20], [0, 1]), "at least the audited numbers"),
        (lambda: calibration([[10, -5], [1, 9]], [10, 20], [0, 1]), ">= 0"),
        (lambda: calibration([10, 5], [10, 20], [0, 1]), r"\[true, label\]"),
        (lambda: calibration([[10, 5], [1, 9]], [20, 20], [0, 1, 2]), "gains must have shape"),
        (lambda: hajek_inverse([[10, 5, 1], [1, 9, 1]], [90] * 3, [0, 1], label_shares=[0, 0, 1]), "square"),
        (
            lambda: hajek_inverse(
                [[10, 5], [1, 9]], [90] * 2, [0, 1], label_shares=[0, 1], sampling_variance=-1
            ),
            "sampling_variance must be >= 0",
        ),
        (lambda: neyman_shares([[1, 2], [0, 0]], [0, 1]), "without empty grades"),
        (lambda: neyman_allocation([0.5, 0.5], [100, 100], 10), r"n must be in 60..200, got 10"),
        (lambda: neyman_allocation([0.0, 0.0], [100, 100], 100), ">= 0"),
        (lambda: calibration_variance(0.5, 0.8, 0.8, 100, 200), "n_audited"),
        (lambda: inside_audit_variance(0.5, 0.5, 0.5, 100, 50), "differ from 1"),
        (lambda: label_informativeness(1.0, 1.0, 0.5), "must vary"),
    ],
)
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
