"""Rebuild the eBay example of Goldberg et al. (2017), section 6, beside what the product computes.

    python experiments/goldberg_ebay.py            # text
    python experiments/goldberg_ebay.py --json     # one object: naive ... budget

Two rounds of P@3, one audit of 143 documents. The paper takes the two corrected values as independent and calls the
difference illusory (p = .841); with the audit they share it is p = .017. Each number is checked; the program ends
with status 1, and says why, when one is not.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.estimation.comparison import Comparison, welch
from analytics.estimation.estimate import Estimate, Refusal
from analytics.papers.algorithms import parametric_bootstrap
from analytics.papers.calibration import label_informativeness
from analytics.papers.goldberg import (
    SharedAuditDifference,
    corrected_value,
    corrected_variance,
    separate_audits_difference,
    shared_audit_difference,
)
from analytics.papers.intervals import Interval
from analytics.papers.sensitivity import drift_that_changes
from analytics.planning.planner import audit_spread, difference_plans, evaluation_plans, split
from experiments.papers.calibration import calibration, hajek_matrix
from experiments.papers.planning import topics_for_test
from experiments.papers.printed import largest_eq10_statistic, printed_welch_degrees_of_freedom
from experiments.papers.refusals import label_mix_refusal
from experiments.papers.sensitivity import p_value_with_drift
from experiments.parts.goldberg import (
    EBAY,
    EBAY_MEANS,
    EBAY_SPREADS,
    EBAY_TOPICS,
    EBAY_VARIANCES,
    refused,
    run,
    simulated,
    six,
)
from experiments.parts.rows import Report, Row, row

HEADINGS = {
    "naive": "The naive test, Eq 9",
    "corrected": "Corrected P@3, Eq 5 and 7",
    "eq10": "Eq 10 and 11: as if each round had an audit of its own",
    "shared_audit": "The same audit for both rounds",
    "algorithm1": "Algorithm 1: the error by drawing j, mR and mN anew",
    "audit": "The audit is not mixed as the population",
    "drift": "If the judges changed between the rounds",
    "budget": "What a power of .8 costs: 9 per query, 20 per gold document",
}
Z95 = 1.959963984540054


def report(draws: int, seed: int) -> Report:
    """Return all rows; `draws` and `seed` concern Algorithm 1 alone."""
    rates = EBAY.with_variances()
    values = [corrected_value(j, rates[0], rates[2]) for j in EBAY_MEANS]
    variances = [corrected_variance(j, v, *rates) for j, v in zip(EBAY_MEANS, EBAY_VARIANCES, strict=True)]
    both = (EBAY_VARIANCES[0], EBAY_VARIANCES[1])
    shared = shared_audit_difference(EBAY_MEANS, sum(both), *rates, both)
    return {
        "naive": _naive(),
        "corrected": [
            six("mR", 0.729, rates[0], 43 / 59),
            six("mN", 0.798, rates[2], 67 / 84),
            six("G_a", 0.805, values[0], 0.804698),
            six("G_b", 0.828, values[1], 0.828442),
            six("sigma_a", 0.0903, float(np.sqrt(variances[0])), 0.090288),
            six("sigma_b", 0.0923, float(np.sqrt(variances[1])), 0.092350),
        ],
        "eq10": _eq10(values, variances),
        "shared_audit": _shared(shared),
        "algorithm1": _algorithm1(draws, seed),
        "audit": _audit(),
        "drift": _drift(sum(both), float(np.mean(values))),
        "budget": _budget(float(np.mean(values))),
    }


def _naive() -> list[Row]:
    a, b = (spread**2 for spread in EBAY_SPREADS)
    test = welch(EBAY_MEANS[0], a, EBAY_TOPICS[0], EBAY_MEANS[1], b, EBAY_TOPICS[1])
    assert isinstance(test, Comparison)
    assert test.statistic is not None
    df = test.difference.degrees_of_freedom or 0.0
    misprinted = printed_welch_degrees_of_freedom(a, EBAY_TOPICS[0], b, EBAY_TOPICS[1])
    return [
        six("t", None, test.statistic, -2.524385),
        row("df", None, df, expected=20009.754021, tolerance=1e-5),
        row(
            "df as printed",
            None,
            misprinted,
            expected=36472.98,
            tolerance=0.005,
            note="n_b - 1 printed twice",
        ),
        six("p", 0.011, test.p_value, 0.011598, "the printed inputs allow .0108 to .0124"),
    ]


def _eq10(values: list[float], variances: list[float]) -> list[Row]:
    difference = separate_audits_difference(values[0], variances[0], values[1], variances[1])
    return [
        six("SE", None, difference.standard_error, 0.129153),
        six("z", None, difference.z, -0.183850),
        six("p", 0.841, difference.p_value, 0.854131, ".841 is what z rounded to 0.2 gives"),
        six(
            "max |t| with any number of queries",
            None,
            largest_eq10_statistic(EBAY_MEANS, EBAY.relevant, EBAY.not_relevant),
            0.184340,
            "the paper: grows with the root of n",
        ),
        six("95 % low", None, difference.value - Z95 * difference.standard_error, -0.276879),
        six("95 % high", None, difference.value + Z95 * difference.standard_error, 0.229390),
    ]


def _shared(difference: SharedAuditDifference) -> list[Row]:
    assert isinstance(difference.fieller, Interval)
    return [
        six("covariance", None, difference.covariance, 0.008291, "the paper: 0"),
        six("correlation", None, difference.correlation, 0.994306, "the paper: 0"),
        six("SE", None, difference.standard_error, 0.009960),
        six("z", None, difference.z, -2.384023),
        six("p Wald", 0.841, difference.p_value, 0.017125),
        six("p score, Fieller", 0.841, difference.score_p_value, 0.011590),
        six("95 % low, Fieller", None, difference.fieller.low, -0.045979),
        six("95 % high, Fieller", None, difference.fieller.high, -0.005254),
        six("95 % low, Wald", None, difference.value - Z95 * difference.standard_error, -0.043266),
        six("95 % high, Wald", None, difference.value + Z95 * difference.standard_error, -0.004224),
    ]


def _algorithm1(draws: int, seed: int) -> list[Row]:
    rows = []
    by_system = ((0.0903, 0.0971), (0.0923, 0.0995))
    for system, (paper, expected) in enumerate(by_system):
        bootstrap = parametric_bootstrap(
            EBAY_MEANS[system],
            j_variance=EBAY_VARIANCES[system],
            relevant=EBAY.relevant,
            not_relevant=EBAY.not_relevant,
            rng=np.random.default_rng([seed, system]),
            draws=draws,
        )
        if isinstance(bootstrap, Refusal):
            raise ValueError(f"Algorithm 1 was refused: {bootstrap.reason}")
        name = "ab"[system]
        rows.append(
            simulated(
                f"SE {name}",
                paper,
                bootstrap.standard_deviation,
                expected,
                0.0005,
                (draws, 400_000),
                "paper: Eq 7",
            )
        )
        if system == 0:
            rows.append(
                simulated(
                    "mean a", None, bootstrap.mean, 0.8137, 0.0005, (draws, 400_000), "ratio bias +.009"
                )
            )
    return rows


def _audit() -> list[Row]:
    n = sum(EBAY_TOPICS)
    share = sum(j * size for j, size in zip(EBAY_MEANS, EBAY_TOPICS, strict=True)) / n
    z = (60 / 143 - share) / np.sqrt(share * (1 - share) / 143)
    rows = [
        row("share of bronze-positives, population", None, share, expected=0.634, tolerance=5e-4),
        row("share of bronze-positives, audit", None, 60 / 143, expected=0.420, tolerance=5e-4),
        row("z", None, float(z), expected=-5.33, tolerance=0.005),
        refused(
            "the product refuses such an audit without probabilities",
            label_mix_refusal([83, 60], [1 - share, share]),
        ),
    ]
    counts = [[67, 17], [16, 43]]
    expected = ((0.861547, 0.629924, 0.520730), (0.867837, 0.617305, 0.527278))
    for system, (sensitivity, specificity, value) in enumerate(expected):
        totals = np.array([1 - EBAY_MEANS[system], EBAY_MEANS[system]]) * EBAY_TOPICS[system]
        matrix, calibrated = hajek_matrix(counts, totals), calibration(counts, totals, [0, 1])
        assert isinstance(matrix, np.ndarray)
        assert isinstance(calibrated, Estimate)
        name = "ab"[system]
        rows += [
            six(f"mR {name}, if stratified on the label", None, float(matrix[1, 1]), sensitivity),
            six(f"mN {name}, if stratified on the label", None, float(matrix[0, 0]), specificity),
            six(f"G_{name} by Eq 5, if stratified", (0.805, 0.828)[system],
                corrected_value(EBAY_MEANS[system], float(matrix[1, 1]), float(matrix[0, 0])), value),
            six(f"G_{name} by calibration", None, calibrated.value, value, "the same number: an identity"),
        ]  # fmt: skip
    return rows


def _drift(variance: float, relevant_share: float) -> list[Row]:
    difference = EBAY_MEANS[0] - EBAY_MEANS[1]
    drift = drift_that_changes(difference, variance, relevant_share, sensitivity=43 / 59, specificity=67 / 84)
    assert drift.explaining_sensitivity is not None
    assert drift.changing_sd is not None
    rows = [
        row(f"p if mR, mN drift with SD {sd}", None, p_value_with_drift(difference, variance, relevant_share, sd),
            expected=expected, tolerance=5e-4)
        for sd, expected in ((0.005, 0.105), (0.01, 0.330))
    ]  # fmt: skip
    rows.append(
        row(
            "change of mR that explains all",
            None,
            drift.explaining_sensitivity,
            expected=0.0153,
            tolerance=5e-5,
        )
    )
    at = p_value_with_drift(difference, variance, relevant_share, drift.changing_sd)
    rows.append(row("drift SD that changes the verdict", None, drift.changing_sd, note=drift.words))
    return [*rows, row("p at that drift", None, at, expected=0.05, tolerance=1e-9)]


def _budget(relevant_share: float) -> list[Row]:
    m_r, _, m_n, _ = EBAY.with_variances()
    audit = {"prevalence": relevant_share, "sensitivity": m_r, "specificity": m_n}
    spread = sum(s**2 for s in EBAY_SPREADS) / 2
    plans = difference_plans(
        0.0125 / EBAY.separation, **audit, topic_variance=spread, cost_bronze=9, cost_gold=20
    )
    apart, shared = plans["independent audits"], plans["shared audit"]
    same = split(
        EBAY_SPREADS[0] ** 2,
        audit_spread(**audit),
        separation=EBAY.separation,
        cost_bronze=9,
        cost_gold=20,
        budget=10278 * 9 + 143 * 20,
    )
    k = label_informativeness(**audit)
    rows = [
        row("cost of a system, audits of their own", None, apart.cost / 2, expected=1_015_065, tolerance=1),
        row("queries a system, audits of their own", None, apart.bronze, expected=43_435, tolerance=0.5),
        row("gold a system, audits of their own", None, apart.gold, expected=31_207, tolerance=0.5),
        row("cost, one shared audit", None, shared.cost, expected=329_399, tolerance=1),
        row("queries a system, one shared audit", None, shared.bronze, expected=17_496, tolerance=0.5),
        row("gold, one shared audit", None, shared.gold, expected=723, tolerance=0.5),
        row("queries a system, test alone, no gold", None, topics_for_test(0.0125, 2 * spread),
            expected=16_727.5, tolerance=0.5),
        row("queries for round a's money", 10_278, same.bronze, expected=4_117, tolerance=0.5),
        row("gold for round a's money", 143, same.gold, expected=2_915, tolerance=0.5),
        row("SE for round a's money", 0.0903, same.standard_error, expected=0.0196, tolerance=1e-4),
        row("K = corr^2(gold, bronze)", None, k, expected=0.1785, tolerance=5e-5),
    ]  # fmt: skip
    costs = {20: (53_561, 7_502, 7_489), 100: (212_420, 33_696, 37_446)}
    for cost_gold, expected in costs.items():
        evaluations = evaluation_plans(**audit, cost_bronze=1, cost_gold=cost_gold, standard_error=0.02)
        for name, cost in zip(("inverse", "calibration", "gold only"), expected, strict=True):
            rows.append(
                row(
                    f"SE .02, gold at {cost_gold}: {name}",
                    None,
                    evaluations[name].cost,
                    expected=cost,
                    tolerance=0.5,
                )
            )
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every number is what it must be, else 1."""
    return run(__doc__, HEADINGS, report, 400_000, arguments)


if __name__ == "__main__":
    sys.exit(main())
