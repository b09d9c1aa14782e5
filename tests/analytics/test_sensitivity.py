"""Sensitivity ranges: docs/methods/derivations/real-judges.md, section 2.

Drift: docs/methods/derivations/noise-correction.md, section 2.3.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

from analytics.estimation.estimate import Refusal
from analytics.papers.sensitivity import (
    cautious_residual_variance,
    drift_that_changes,
    drift_variance,
    sensitivity_range,
)
from experiments.papers.sensitivity import p_value_with_drift

EBAY_V = 0.414**2 / 10278 + 0.402**2 / 20604
EBAY_M = (0.804698 + 0.828442) / 2
RATES = {"sensitivity": 43 / 59, "specificity": 67 / 84}


def test_without_audit_probabilities_there_are_two_ends_with_their_assumptions_and_no_interval():
    found = sensitivity_range(0.10, 0.18, n_items=1000, residual_variance=1e-6, half_width=0.1)
    assert (found.low, found.high, found.raw, found.inverse) == (0.10, 0.18, 0.10, 0.18)
    assert found.sign_known
    # N^2 S^2 q/(1 + N S^2 q), q = (1.96/.1)^2 = 384.1: 277.5
    assert found.local_gold == 278
    assert "no errors" in found.raw_assumes
    assert "alike on all documents of one grade" in found.inverse_assumes
    assert not hasattr(found, "standard_error")
    assert not sensitivity_range(0.02, -0.01, n_items=1000, residual_variance=1e-6).sign_known


def test_the_wanted_half_width_is_half_the_range_if_none_is_said():
    found = sensitivity_range(0.3, 0.1, n_items=500, residual_variance=1e-6)
    assert found.half_width == pytest.approx(0.1)
    q = (1.959964 / 0.1) ** 2
    assert found.local_gold == math.ceil(500**2 * 1e-6 * q / (1 + 500 * 1e-6 * q))


def test_a_refused_inverse_leaves_the_raw_number_without_a_statement():
    found = sensitivity_range(
        0.3, Refusal("no gold label of true grade 1", 10), n_items=9, residual_variance=1
    )
    assert isinstance(found, Refusal)
    assert found.reason.endswith("no gold label of true grade 1")
    assert found.needed == 10


def test_the_cautious_variance_is_never_below_that_of_real_residuals():
    rng = np.random.default_rng(1)
    w = rng.exponential(1, 400) / 400
    gain = (rng.random(400) < 0.3).astype(float)
    residual = gain - gain.mean()
    assert cautious_residual_variance(w, [0, 1]) > (w * residual).var()
    assert cautious_residual_variance([1, 1], [0, 1, 3]) == pytest.approx(9 / 4)


# -- drift --------------------------------------------------------------------------------------------------


def test_ebays_p_under_drift():
    # 0.2: .105 at an SD of .005, .330 at .01
    for sd, p in ((0.0, 0.011590), (0.005, 0.105), (0.01, 0.330)):
        assert p_value_with_drift(-0.0125, EBAY_V, EBAY_M, sd) == pytest.approx(p, abs=5e-4)
    assert drift_variance(EBAY_M, 0.01) == pytest.approx(2e-4 * (EBAY_M**2 + (1 - EBAY_M) ** 2))


def test_the_drift_that_changes_the_verdict_is_where_p_is_the_level():
    found = drift_that_changes(-0.0125, EBAY_V, EBAY_M, **RATES)
    assert found.significant
    assert found.p_value == pytest.approx(0.011590, abs=6e-7)
    assert p_value_with_drift(-0.0125, EBAY_V, EBAY_M, found.changing_sd) == pytest.approx(0.05, abs=1e-9)
    # mR moving by .0153 explains the whole difference
    assert found.explaining_sensitivity == pytest.approx(0.0153, abs=5e-5)
    left = 0.0125 - EBAY_M * found.changing_sensitivity
    assert 2 * norm.sf(left / math.sqrt(EBAY_V)) == pytest.approx(0.05, abs=1e-9)
    assert f"{found.changing_sd:.4f}" in found.words


def test_a_difference_that_is_not_significant_has_no_such_spread_but_a_shift_that_makes_it_so():
    found = drift_that_changes(0.005, EBAY_V, EBAY_M, **RATES)
    assert not found.significant
    assert found.changing_sd is None
    more = 0.005 + EBAY_M * found.changing_sensitivity
    assert 2 * norm.sf(more / math.sqrt(EBAY_V)) == pytest.approx(0.05, abs=1e-9)
    assert found.words.startswith("Not significant without drift")


def test_a_change_that_no_rate_can_make_is_none():
    found = drift_that_changes(0.5, EBAY_V, 0.02, **RATES)
    assert found.explaining_sensitivity is None
    assert found.explaining_specificity == pytest.approx(0.5 / 0.98)
    assert drift_that_changes(0.1, EBAY_V, 0.0, **RATES).explaining_sensitivity is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sensitivity_range(math.nan, 0.1, n_items=5, residual_variance=1), "finite"),
        (lambda: sensitivity_range(0.0, 0.0, n_items=5, residual_variance=1), "half_width must be above 0"),
        (lambda: sensitivity_range(0.1, 0.2, n_items=0, residual_variance=1), "n_items must be >= 1"),
        (lambda: cautious_residual_variance([], [0, 1]), "not empty"),
        (lambda: drift_variance(1.5, 0.1), "relevant_share"),
        (lambda: drift_variance(0.5, -0.1), "drift_sd must be >= 0"),
        (lambda: p_value_with_drift(2, 0.1, 0.5, 0.1), r"difference must be in \[-1, 1\]"),
        (lambda: drift_that_changes(0.1, 0.0, 0.5, **RATES), "difference_variance must be above 0"),
        (lambda: drift_that_changes(0.1, 0.1, 0.5, **RATES, level=0), "level"),
    ],
)
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
