"""Published and hand-checked numbers: docs/methods/derivations/noise-correction.md, section 7."""

import numpy as np
import pytest

from analytics.estimation.comparison import welch
from analytics.estimation.confusion import audit_counts, confusion_from_counts
from analytics.estimation.estimate import Refusal
from analytics.papers.goldberg import corrected_value, corrected_variance, shared_audit_difference
from analytics.papers.intervals import fieller
from analytics.papers.inverse import label_scores, score_variance
from experiments.papers.goldberg import proportion_error
from experiments.papers.inverse import matrix_inverse_with_replacement


def six(value):
    """Compare to the six printed digits."""
    return pytest.approx(np.asarray(value) if isinstance(value, list) else value, abs=6e-7)


# -- noise correction ----------------------------------------------------------------------------------------

EBAY_R, EBAY_N = 43 / 59, 67 / 84
EBAY_VR, EBAY_VN = EBAY_R * (1 - EBAY_R) / 59, EBAY_N * (1 - EBAY_N) / 84


def test_f1_corrected_value():
    assert corrected_value(0.48, 0.9, 0.8) == six(0.4)


def test_f2_corrected_variance():
    variance = corrected_variance(0.48, 0.0005, 0.9, 0.09 / 250, 0.8, 0.16 / 250)
    assert variance == six(0.001608)
    assert np.sqrt(variance) == six(0.040102)


def test_f3_binomial_error():
    assert proportion_error(0.626, 10278) == six(0.004773)


def test_f4_welch_of_ebay_with_the_right_degrees_of_freedom():
    result = welch(0.6260, 0.414**2, 10278, 0.6385, 0.402**2, 20604)
    assert result.statistic == six(-2.524385)
    assert result.difference.degrees_of_freedom == pytest.approx(20009.754021, abs=1e-5)
    assert result.p_value == six(0.011598)


def test_f5_ebay_difference_with_one_shared_audit():
    a, b = 0.414**2 / 10278, 0.402**2 / 20604
    found = shared_audit_difference((0.6260, 0.6385), a + b, EBAY_R, EBAY_VR, EBAY_N, EBAY_VN, (a, b))
    assert found.standard_error**2 == pytest.approx(9.920040e-05, abs=6e-12)
    assert (found.z, found.p_value) == (six(-2.384023), six(0.017125))
    assert found.score_p_value == six(0.011590)
    assert (found.fieller.low, found.fieller.high) == (six(-0.045979), six(-0.005254))
    assert (found.eq10_standard_error, found.eq10_p_value) == (six(0.129153), six(0.854131))


def test_ebay_corrected_values_and_errors_of_the_paper():
    variances = (0.414**2 / 10278, 0.402**2 / 20604)
    values = [corrected_value(j, EBAY_R, EBAY_N) for j in (0.6260, 0.6385)]
    errors = [
        np.sqrt(corrected_variance(j, v, EBAY_R, EBAY_VR, EBAY_N, EBAY_VN))
        for j, v in zip((0.6260, 0.6385), variances, strict=True)
    ]
    assert values == six([0.804698, 0.828442])
    assert errors == six([0.090288, 0.092350])


def test_f6_fieller_bounded_and_unbounded():
    found = fieller(0.28, 0.00114, 0.7, 0.001, 0.00064)
    assert (found.low, found.high) == (six(0.319173), six(0.477035))
    assert isinstance(fieller(0.05, 0.01, 0.1, 0.01, 0.005), Refusal)


def test_f7_three_grades_one_assessor():
    matrix, v = [[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.05, 0.15, 0.8]], [1, 0.5, 0]
    c = label_scores(matrix, v)
    assert c == six([1.166667, 0.5, -0.166667])
    assert score_variance(matrix, c) == six([0.127778, 0.177778, 0.127778])
    result = matrix_inverse_with_replacement(
        np.ones(10),
        label_assessor=np.zeros(10, dtype=int),
        label_grade=[0] * 3 + [1] * 3 + [2] * 4,
        matrices=[matrix],
        gold_per_grade=[[40, 50, 60]],
        gains=v,
        pseudo_count=0,
    )
    assert result.value == six(0.433333)
    parts = dict(result.components)
    assert parts["drawing"] * 9 == six(0.306667)  # the sample variance divides by n - 1
    assert parts["confusion matrices"] == six(0.000963)


def test_f8_two_assessors_with_weights():
    draws = [(0, 0, 2), (0, 1, 0.5), (1, 0, 1), (1, 1, 1.5), (0, 0, 0.25), (1, 0, 0.75)]
    matrices = [[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.25, 0.75]]]
    assert label_scores(matrices[0], [1, 0]) == six([1.142857, -0.285714])
    assert label_scores(matrices[1], [1, 0]) == six([1.666667, -0.555556])
    result = matrix_inverse_with_replacement(
        [w for _, _, w in draws],
        label_assessor=[a for a, _, _ in draws],
        label_grade=[label for _, label, _ in draws],
        matrices=matrices,
        gold_per_grade=[[30, 30], [20, 25]],
        gains=[1, 0],
        pseudo_count=0,
        fewest=2,
    )
    assert result.value == six(0.751984)
    parts = dict(result.components)
    assert parts["drawing"] == six(0.232279)
    assert parts["confusion matrices"] == six(0.008686)
    assert result.standard_error == six(0.490882)


def as_pairs(counts):
    """Return the flat gold and given grades of a table of counts."""
    cells = [(g, given) for g, row in enumerate(counts) for given, n in enumerate(row) for _ in range(n)]
    return np.array(cells).T


def test_f9_audit_stratified_on_the_bronze_label():
    counts = [[40, 4, 1], [12, 20, 6], [8, 6, 13]]
    gold, given = as_pairs(counts)
    probability = np.array([60 / 600, 30 / 300, 20 / 2000])[given]
    assert np.array(confusion_from_counts(counts).matrix) == six(
        [[0.888889, 0.088889, 0.022222], [0.315789, 0.526316, 0.157895], [0.296296, 0.222222, 0.481481]]
    )
    weighted = audit_counts(gold, given, probability, 3)
    assert np.array(confusion_from_counts(weighted).matrix) == six(
        [[0.740741, 0.074074, 0.185185], [0.130435, 0.217391, 0.652174], [0.055556, 0.041667, 0.902778]]
    )


@pytest.mark.parametrize(
    ("j", "sensitivity", "specificity", "value"),
    [(0.6260, 0.861547, 0.629924, 0.520730), (0.6385, 0.867837, 0.617305, 0.527278)],
)
def test_f12_reweighted_matrix_makes_the_inverse_the_calibration_estimator(
    j, sensitivity, specificity, value
):
    gold, given = as_pairs([[67, 17], [16, 43]])
    # 83 bronze-negative and 60 bronze-positive audited of populations in the ratio (1 - j) : j
    share = np.array([83 / (1 - j), 60 / j]) / 1000
    matrix = confusion_from_counts(audit_counts(gold, given, share[given], 2)).as_array()
    assert (matrix[1, 1], matrix[0, 0]) == (six(sensitivity), six(specificity))
    assert corrected_value(j, matrix[1, 1], matrix[0, 0]) == six(value)
    assert j * 43 / 60 + (1 - j) * 16 / 83 == six(value)
