"""The planner, F11, and what to buy next: docs/methods/derivations/planning.md, sections 1 to 4."""

import math

import numpy as np
import pytest
from audits import greg_label

from analytics.estimation.estimate import Refusal
from analytics.papers.calibration import label_informativeness
from analytics.papers.goldberg import corrected_variance
from analytics.planning.planner import (
    PLANS,
    audit_spread,
    bronze_worth,
    difference_plans,
    error_for_power,
    evaluation_plans,
    split,
)
from analytics.planning.purchases import next_purchase
from experiments.papers.calibration import calibration_variance
from experiments.papers.planning import topics_for_test

M_R, M_N = 43 / 59, 67 / 84
D = M_R + M_N - 1
DELTA = 0.0125 / D
M = ((0.6260 - 1 + M_N) / D + (0.6385 - 1 + M_N) / D) / 2
S2 = (0.414**2 + 0.402**2) / 2
EBAY = {"prevalence": M, "sensitivity": M_R, "specificity": M_N}


def ebay_plans():
    return difference_plans(DELTA, **EBAY, topic_variance=S2, cost_bronze=9, cost_gold=20)


# -- split --------------------------------------------------------------------------------------------------


def test_f11_split():
    plan = split(0.16, 0.19, separation=0.5, cost_bronze=9, cost_gold=20, standard_error=0.02)
    assert plan.cost == pytest.approx(99184.612855, abs=6e-7)
    assert plan.bronze == pytest.approx(4199.145159, abs=6e-7)
    assert plan.gold == pytest.approx(3069.615321, abs=6e-7)
    assert plan.half_width == pytest.approx(1.959964 * 0.02, abs=1e-7)
    back = split(0.16, 0.19, separation=0.5, cost_bronze=9, cost_gold=20, budget=plan.cost)
    assert (back.bronze, back.gold, back.standard_error) == pytest.approx((plan.bronze, plan.gold, 0.02))


def test_no_other_split_of_the_same_money_is_better():
    plan = split(0.16, 0.19, separation=0.5, cost_bronze=9, cost_gold=20, budget=50_000)
    for share in (0.5, 0.9, 0.99, 1.01, 1.1, 1.5):
        n = plan.bronze * share
        gold = (50_000 - 9 * n) / 20
        if gold > 0:
            assert (0.16 / n + 0.19 / gold) / 0.25 > plan.standard_error**2


def test_the_same_money_as_ebays_round_a():
    plan = split(
        0.414**2, audit_spread(**EBAY), separation=D, cost_bronze=9, cost_gold=20, budget=10278 * 9 + 143 * 20
    )
    assert (round(plan.bronze), round(plan.gold)) == (4117, 2915)
    assert plan.standard_error == pytest.approx(0.0196, abs=1e-4)  # .01966; section 4 cuts it off
    # what Eq 7 says to these numbers, the gold falling on the grades at random
    j, n = M * M_R + (1 - M) * (1 - M_N), plan.gold
    variance = corrected_variance(
        j, 0.414**2 / plan.bronze, M_R, M_R * (1 - M_R) / (M * n), M_N, M_N * (1 - M_N) / ((1 - M) * n)
    )
    assert variance == pytest.approx(plan.standard_error**2, rel=1e-9)


# -- differences --------------------------------------------------------------------------------------------


def test_ebays_independent_audits_and_its_shared_audit():
    plans = ebay_plans()
    assert list(plans) == list(PLANS)
    assert error_for_power(DELTA) == pytest.approx(0.008475, abs=6e-7)
    apart, shared = plans["independent audits"], plans["shared audit"]
    assert apart.cost / 2 == pytest.approx(1_015_065, abs=1)
    assert (round(apart.bronze), round(apart.gold)) == (43_435, 31_207)
    assert 9 * apart.bronze / (9 * apart.bronze + 20 * apart.gold) == pytest.approx(0.385115, abs=6e-7)
    assert shared.cost == pytest.approx(329_399, abs=1)
    assert (round(shared.bronze), round(shared.gold)) == (17_496, 723)
    assert apart.cost / shared.cost == pytest.approx(6.2, abs=0.05)


def test_the_test_alone_needs_no_audit():
    assert math.ceil(topics_for_test(0.0125, 2 * S2)) == 16_728
    # TREC, power one half: 2450 instead of 569,154
    assert round(topics_for_test(0.014, 0.24**2 + 0.2596**2, power=0.5)) == 2450


@pytest.mark.parametrize("name", ["calibration", "gold only"])
def test_plans_of_precision_at_1_reach_their_error(name):
    plan = difference_plans(0.1, **EBAY, topic_variance=0.2, cost_bronze=1, cost_gold=100)[name]
    if name == "gold only":
        variance = M * (1 - M) / plan.gold
    else:
        variance = calibration_variance(M, M_R, M_N, plan.bronze, plan.gold)
    assert 2 * variance == pytest.approx(plan.standard_error**2, rel=1e-9)
    assert plan.cost == pytest.approx(2 * (plan.bronze + 100 * plan.gold))


# -- is bronze worth it? ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost_gold", "inverse", "calibration", "gold_only", "best"),
    [(20, 53_561, 7_502, 7_489, "gold only"), (100, 212_420, 33_696, 37_446, "calibration")],
)
def test_what_one_evaluation_costs_at_ebay(cost_gold, inverse, calibration, gold_only, best):
    plans = evaluation_plans(**EBAY, cost_bronze=1, cost_gold=cost_gold, standard_error=0.02)
    assert round(plans["inverse"].cost) == inverse
    assert round(plans["calibration"].cost) == calibration
    assert round(plans["gold only"].cost) == gold_only
    k = label_informativeness(**EBAY)
    assert k == pytest.approx(0.1785, abs=5e-5)
    worth = bronze_worth(k, cost_bronze=1, cost_gold=cost_gold)
    assert worth.best == best
    assert worth.words.startswith(
        "Bronze labels are not worth" if best == "gold only" else "Bronze labels are worth"
    )
    pq = M * (1 - M) / 0.02**2
    assert worth.inverse_cost * pq == pytest.approx(plans["inverse"].cost)


def test_equation_7_never_beats_gold_alone_below_one_half_and_can_above():
    for k in np.linspace(0.01, 0.4999, 60):
        assert bronze_worth(float(k), cost_bronze=1e-9, cost_gold=1).inverse_cost >= 1
    assert bronze_worth(0.9, cost_bronze=0.01, cost_gold=1).inverse_cost < 1


# -- what to buy next ---------------------------------------------------------------------------------------


def variance_after(drawing, gold, n, m, frame, items, more_gold):
    """The model of the module, for simple random samples: A (1/n - 1/F) + B (1/m - 1/n)."""
    a, b = drawing / (1 / n - 1 / frame), gold / (1 / m - 1 / n)
    return a * (1 / (n + items) - 1 / frame) + b * (1 / (m + more_gold) - 1 / (n + items))


CASES = [
    (4e-4, 6e-4, 100, 30, 1.0, 20.0, 260),
    (4e-4, 6e-4, 100, 30, 20.0, 1.0, 260),
    (40e-4, 1e-4, 120, 20, 3.0, 4.0, 200),
    (9e-4, 1e-4, 60, 50, 5.0, 7.0, math.inf),
]


@pytest.mark.parametrize("case", CASES)
def test_the_cheapest_purchase_is_that_of_a_search_over_all(case):
    drawing, gold, n, m, cost_item, cost_gold, frame = case
    half_width = 0.7 * 1.959964 * math.sqrt(drawing + gold)
    found = next_purchase(*case[:6], half_width=half_width, frame_size=None if frame == math.inf else frame)
    best = math.inf
    for items in range(401 if frame == math.inf else frame - n + 1):
        for more in range(n + items - m + 1):
            cost = items * cost_item + more * cost_gold
            if cost >= best:
                break
            if 1.959964 * math.sqrt(max(0, variance_after(*case[:4], frame, items, more))) <= half_width:
                best = cost
    assert found.half_width <= half_width * (1 + 1e-9)
    assert best <= found.cost <= best + 2 * max(cost_item, cost_gold)
    assert found.cost == pytest.approx(found.items * cost_item + found.gold * cost_gold)
    promised = variance_after(*case[:4], frame, found.items, found.gold)
    assert found.half_width == pytest.approx(1.959964 * math.sqrt(promised), rel=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("budget", [25.0, 300.0, 1000.0])
def test_a_budget_buys_the_narrowest_half_width_of_a_search_over_all(case, budget):
    _, _, n, m, cost_item, cost_gold, frame = case
    found = next_purchase(*case[:6], budget=budget, frame_size=None if frame == math.inf else frame)
    best = math.inf
    for items in range(int(min(frame - n, budget // cost_item)) + 1):
        more = min(int((budget - items * cost_item) // cost_gold), n + items - m)
        best = min(best, variance_after(*case[:4], frame, items, more))
    assert found.cost <= budget + 1e-9
    assert found.half_width == pytest.approx(1.959964 * math.sqrt(max(best, 0)), rel=0.01)
    assert found.half_width < found.half_width_now


def test_judgments_are_worth_nothing_where_bronze_explains_nothing():
    # the residual varies as much as the gain: A = B
    drawing, gold = 1e-3 * (1 / 100), 1e-3 * (1 / 40 - 1 / 100)
    found = next_purchase(drawing, gold, 100, 40, 0.01, 5.0, budget=200)
    assert (found.items, found.gold) == (0, 40)
    assert found.words.startswith("40 gold labels for 200: a half-width of about")


def test_everything_audited_means_judgments_together_with_gold():
    found = next_purchase(1e-3, 0.0, 100, 100, 1, 9, half_width=0.04)
    assert found.items == found.gold > 0
    # A/n <= (h/z)^2
    assert found.items == math.ceil(0.1 / (0.04 / 1.959964) ** 2) - 100


def test_a_wholly_judged_frame_leaves_gold_alone():
    found = next_purchase(0.0, 1e-3, 500, 50, 1, 9, half_width=0.05, frame_size=500)
    assert found.items == 0
    assert found.gold > 0
    assert found.judgments == 0


def test_several_judgments_an_item_and_what_is_reached_already():
    one = next_purchase(4e-4, 1e-5, 1000, 500, 3, 50, budget=3000)
    three = next_purchase(4e-4, 1e-5, 1000, 500, 1, 50, budget=3000, judgments_per_item=3)
    assert three.items == one.items > 0
    assert three.judgments == 3 * one.items
    reached = next_purchase(4e-4, 1e-5, 1000, 500, 3, 50, half_width=0.5)
    assert (reached.items, reached.gold, reached.cost) == (0, 0, 0)
    assert reached.words.startswith("Nothing")


def test_what_cannot_be_reached_is_refused_with_what_would_be_left():
    found = next_purchase(4e-4, 6e-4, 100, 30, 1, 20, half_width=0.01, frame_size=260, fixed_variance=1e-3)
    assert isinstance(found, Refusal)
    assert "cannot be reached" in found.reason
    assert f"{1.959964 * math.sqrt(1e-3):.4g} would remain" in found.reason
    without_end = next_purchase(4e-4, 6e-4, 100, 30, 1, 20, half_width=0.01, fixed_variance=1e-3)
    assert isinstance(without_end, Refusal)
    assert next_purchase(4e-4, 6e-4, 100, 5, 1, 20, budget=100).needed == 5
    poor = next_purchase(4e-4, 6e-4, 100, 30, 10, 20, budget=5)
    assert "does not pay for one unit" in poor.reason


def reported(rng, relevant, label, n, m):
    """Return the mean of GREG-label's components over 40 campaigns that judge n and audit m items at random."""
    frame, parts = relevant.size, []
    for _ in range(40):
        judged = rng.choice(frame, n, replace=False)
        audited = np.zeros(n, dtype=bool)
        audited[rng.choice(n, m, replace=False)] = True
        found = greg_label(
            np.full((1, n), 1 / frame),
            draw_probability=np.full(n, n / frame),
            bronze_class=label[judged],
            audited=audited,
            gold_grade=relevant[judged],
            audit_probability=np.full(n, m / n),
            gains=[0, 1],
        )[0]
        of = dict(found.components)
        parts.append((of["drawing"], of["gold"]))
    return np.mean(parts, axis=0)


def test_the_forecast_is_what_the_reported_number_then_has():
    rng = np.random.default_rng(5)
    relevant = (rng.random(4000) < 0.4).astype(int)
    label = np.where(rng.random(4000) < 0.85, relevant, 1 - relevant)
    drawing, gold = reported(rng, relevant, label, 800, 150)
    for bought in (800, 0):
        found = next_purchase(
            drawing, gold, 800, 150, 1, 1e9 if bought else 4, budget=float(bought or 600), frame_size=4000
        )
        after = sum(reported(rng, relevant, label, 800 + found.items, 150 + found.gold))
        assert found.items + found.gold >= 150
        assert found.half_width == pytest.approx(1.959964 * math.sqrt(after), rel=0.04)


# -- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split(0.1, 0.1, cost_bronze=1, cost_gold=1), "exactly one of"),
        (lambda: split(0.1, 0.1, cost_bronze=0, cost_gold=1, budget=5), "cost_bronze must be above 0"),
        (lambda: split(-0.1, 0.1, cost_bronze=1, cost_gold=1, budget=5), "bronze_variance must be >= 0"),
        (lambda: split(0, 0, cost_bronze=1, cost_gold=1, budget=5), "not both be 0"),
        (lambda: split(1, 1, cost_bronze=1, cost_gold=1, budget=5, separation=0), "separation"),
        (lambda: bronze_worth(0.0, cost_bronze=1, cost_gold=1), r"informativeness must be in \(0, 1\]"),
        (lambda: error_for_power(0.0), "difference must be above 0"),
        (lambda: error_for_power(0.1, power=0.3), "power in"),
        (lambda: topics_for_test(0.1, 0.0), "difference_variance"),
        (lambda: evaluation_plans(0.5, 0.5, 0.5, cost_bronze=1, cost_gold=1, standard_error=0.1), "be informative"),
        (
            lambda: difference_plans(0.1, prevalence=0.5, sensitivity=0.4, specificity=0.4, topic_variance=1,
                                     cost_bronze=1, cost_gold=1),
            "separation must be above 0",
        ),
        (lambda: next_purchase(1, 1, 100, 50, 1, 1), "exactly one of half_width and budget"),
        (lambda: next_purchase(1, 1, 100, 150, 1, 1, budget=5), "n_audited must be in 0..n_judged"),
        (lambda: next_purchase(-1, 1, 100, 50, 1, 1, budget=5), "variances must be finite and >= 0"),
        (lambda: next_purchase(1, 1, 100, 50, 0, 1, budget=5), "costs must be above 0"),
        (lambda: next_purchase(1, 1, 100, 50, 1, 1, budget=5, frame_size=60), "frame_size must be at least"),
        (lambda: next_purchase(1, 1, 100, 50, 1, 1, half_width=0), "must be above 0"),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
