"""Many results in columns, as a sequence and as rows to store: what is NULL, what is tested, what goes before what."""

import math

import numpy as np
import pytest
from scipy import stats

from analytics.estimation.comparison import compare
from analytics.estimation.estimate import (
    Estimate,
    Estimates,
    Refusal,
    all_refused,
    estimate,
    estimates,
    in_columns,
)
from analytics.estimation.estimators import difference_estimator
from analytics.estimation.sequences import always_valid_factor
from analytics.numbers.columns import columns

PAIRS = (np.array([0, 0, 1]), np.array([1, 2, 2]))
N = np.array([40, 150, 8, 40, 15, 30])
DF = np.array([39.0, np.inf, 7.0, 39.0, 14.0, 29.0])
VALUE = np.array([0.5, 0.25, 0.0, 0.25, 1e-14, -0.3])
DRAWING = np.array([0.01, 0.02, 0.0, 0.0, 0.0, 0.01])
GOLD = np.array([0.04, 0.0, 0.0, 0.09, 0.0, 0.03])


def found():
    few = {2: Refusal("8 audited items with non-zero weight; at least 10 are needed", 2)}
    return estimates(VALUE, {"drawing": DRAWING, "gold": GOLD}, degrees_of_freedom=DF, n=N, refusals=few)


def table(results=None, settled=None, **options):
    return columns("P@10", "corrected", PAIRS, results or found(), settled=settled or {}, **options)


def test_columns_read_as_a_sequence_are_the_estimates_made_one_at_a_time():
    together = found()
    assert len(together) == 6
    assert isinstance(together[2], Refusal)
    for place in (0, 1, 3, 4, 5):
        df = None if math.isinf(DF[place]) else DF[place]
        parts = (("drawing", DRAWING[place]), ("gold", GOLD[place]))
        alone = estimate(
            VALUE[place],
            DRAWING[place] + GOLD[place],
            degrees_of_freedom=df,
            n=N[place],
            sources=("drawing", "gold"),
            components=parts,
            warning=together.warnings[place],
        )
        assert together[place] == alone
    assert together[-1] == together[5]
    assert together[3:] == list(together)[3:]
    assert together == list(together)
    assert together != all_refused(6, Refusal("no"))
    with pytest.raises(IndexError):
        together[6]
    assert in_columns(list(together)) == together


def test_numbers_that_are_not_finite_and_negative_variances_are_errors_unless_refused():
    one = np.ones(1)
    for value, variance in ((np.array([np.nan]), one), (one, -one), (one, one * np.inf)):
        with pytest.raises(ValueError, match="must be finite and variance finite and >= 0"):
            estimates(value, {"drawing": variance}, degrees_of_freedom=9, n=N[:1], refusals={})
        made = estimates(
            value, {"drawing": variance}, degrees_of_freedom=9, n=N[:1], refusals={0: Refusal("no")}
        )
        assert made[0] == Refusal("no")


def test_rows_hold_runs_then_pairs_and_a_refused_row_holds_nothing_but_its_reason():
    rows = table(planned=200, tested=True)
    assert (rows.run.tolist(), rows.run_b.tolist()) == ([0, 1, 2, 0, 0, 1], [-1, -1, -1, 1, 2, 2])
    assert rows.refusal[2].endswith("(about 2 more needed)")
    assert [bool(reason) for reason in rows.refusal] == [False, False, True, False, False, False]
    assert all(np.isnan(column[2]) for column in (*rows.numbers.values(), *rows.components.values()))
    assert (rows.n[2], rows.sources[2], rows.warning[2]) == (0, (), "")
    assert rows.numbers["degrees_of_freedom"][[0, 3]].tolist() == [39, 39]
    assert np.isnan(rows.numbers["degrees_of_freedom"][1])
    assert rows.components["gold"][0] == 0.04
    assert not any(np.isinf(column).any() for column in rows.numbers.values())


def test_only_differences_are_tested_with_their_t_and_what_rounding_leaves_of_0_is_0():
    rows = table(tested=True)
    p = rows.numbers["p_value"]
    assert np.isnan(p[:3]).all()
    assert p[3] == pytest.approx(2 * stats.t.sf(0.25 / 0.3, 39), rel=1e-9)
    assert p[5] == pytest.approx(compare(found()[5]).p_value, rel=1e-12)
    # no error is left: the difference is certain
    assert (rows.numbers["value"][4], p[4]) == (0.0, 1.0)
    certain = estimates(VALUE, {"drawing": 0 * DRAWING}, degrees_of_freedom=DF, n=N, refusals={})
    assert table(certain, tested=True).numbers["p_value"][3:].tolist() == [0.0, 1.0, 0.0]
    assert "p_value" not in table().numbers


def test_limits_for_every_look_are_the_factor_times_the_error_and_none_while_there_is_no_sequence():
    rows = table(planned=100)
    half = always_valid_factor(40, 100) * 0.3
    assert rows.numbers["always_low"][3] == pytest.approx(0.25 - half)
    assert rows.numbers["always_high"][3] == pytest.approx(0.25 + half)
    few = estimates(VALUE, {"drawing": GOLD + 1}, degrees_of_freedom=DF, n=N, refusals={})
    assert np.isnan(table(few, planned=100).numbers["always_low"][4])  # 15 audited items
    assert rows.numbers["always_low"][4] == rows.numbers["always_high"][4] == 0.0


def test_what_is_settled_goes_before_what_a_method_says():
    same = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same")
    late = Refusal("run 1 came late")
    topics = in_columns([estimate(0.1, 1.0, degrees_of_freedom=9, n=10, sources=("topics",))] * 6)
    rows = table(settled={2: same, 4: same, 5: late}, tested=True, planned=200, over_topics=topics)
    for place in (2, 4):
        assert [rows.numbers[name][place] for name in ("value", "standard_error", "low", "high")] == [0.0] * 4
        assert (rows.warning[place], rows.refusal[place], rows.sources[place]) == (same.warning, "", ())
        assert np.isnan(rows.components["gold"][place])
        assert np.isnan(rows.numbers["topics_low"][place])
        assert rows.topics_refusal[place] == ""
    assert rows.numbers["p_value"][4] == 1.0
    assert rows.refusal[5] == "run 1 came late"
    assert np.isnan(rows.numbers["value"][5])
    assert rows.numbers["topics_standard_error"][3] == 1.0


def test_a_refusal_over_topics_stands_beside_a_number_for_these_topics():
    none = all_refused(6, Refusal("1 topic says nothing about others; at least 2 are needed", 1))
    rows = table(over_topics=none)
    assert rows.topics_refusal[0].startswith("1 topic says nothing")
    assert rows.topics_refusal[2] == ""  # refused already
    assert np.isnan(rows.numbers["topics_low"]).all()
    assert not np.isnan(rows.numbers["value"][0])


def test_more_words_of_warning_are_added_to_those_that_are_there():
    made = difference_estimator(np.ones(12), np.arange(12.0), np.full(12, 0.5))
    assert isinstance(made, Estimates)
    assert made.with_warning("and more").warnings[0] == f"{made.warnings[0]}; and more"
    assert made.with_warning([""]).warnings == made.warnings
