"""Pictures of a log: what is drawn stands where the numbers say, and what cannot be drawn is refused."""

import numpy as np
import pytest
from chart_samples import grades, marks, parse, positions, quartiles, texts

from analytics import charts
from analytics.screening.log import ScreeningLog
from analytics.screening.profiles import BINS, overview, profiles
from analytics.screening.profiles import quartiles as quartiles_of


def test_a_line_has_a_point_for_every_number_and_a_gap_where_there_is_none():
    assert len(marks(parse(positions()), "symbol")) == 7
    assert positions().rows[2] == (11, None, 11.0)
    assert "bob: 12 at first, 4 at last" in positions().description


def test_of_a_group_without_a_number_there_is_no_mark_and_the_words_say_so():
    root = parse(quartiles())
    assert len(marks(root, "symbol")) == len(marks(root, "rule")) == 2
    assert "new not estimable" in quartiles().description
    assert quartiles().rows[0] == ("bob", 3.0, 4.0, 6.0)


def test_every_grade_has_a_part_of_the_bar_and_a_place_in_the_legend():
    root = parse(grades())
    assert {"0 no", "1 some", "2 all"} <= set(texts(root))
    assert "bob 1" in grades().description


def test_of_many_groups_the_first_are_drawn_and_the_table_has_all():
    names = [f"a{place}" for place in range(60)]
    chart = charts.quartile_bars(names, [[1, 2, 3]] * 60, "Seconds")
    assert len(chart.rows) == 60
    assert chart.caption.endswith("The first 40 of 60 are drawn.")
    assert len(marks(parse(chart), "symbol")) == 40


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: charts.position_lines([], {"a": []}, "t"), "positions must be at least 1"),
        (lambda: charts.position_lines([2, 1], {"a": [1, 2]}, "t"), "rise"),
        (lambda: charts.position_lines([1], {}, "t"), "got 0"),
        (lambda: charts.position_lines([1], {"a": [1, 2]}, "t"), "needs 1 numbers, got 2"),
        (lambda: charts.quartile_bars(["a", "a"], [[1, 2, 3]] * 2, "t"), "different"),
        (lambda: charts.quartile_bars(["a"], [[3, 2, 1]], "t"), "three numbers that rise"),
        (lambda: charts.quartile_bars(["a"], [[1, None, 3]], "t"), "three numbers that rise"),
        (lambda: charts.grade_shares(["a"], [], [[]], "t"), "at least 1"),
        (lambda: charts.grade_shares(["a"], ["0"], [[0.5, 0.5]], "t"), "1 rows of 1"),
        (lambda: charts.grade_shares(["a"], ["0"], [[1.5]], "t"), r"\[0, 1\], got 1.5"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_value(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


# -- the numbers behind them ------------------------------------------------------------------------------------------


def test_quartiles_are_those_of_numpy_group_by_group():
    rng = np.random.default_rng(3)
    values, group = rng.lognormal(size=500), rng.integers(0, 7, 500)
    values[::9] = np.nan
    found = quartiles_of(values, group, 8)
    for one in range(7):
        own = values[group == one]
        own = own[~np.isnan(own)]
        assert [found.low[one], found.median[one], found.high[one]] == pytest.approx(
            np.quantile(own, [0.25, 0.5, 0.75])
        )
        assert found.n[one] == own.size
    assert (found.n[7], np.isnan(found.median[7])) == (0, True)


def test_positions_fall_into_few_bins_and_a_log_without_order_has_none():
    n = 50
    who, order = np.repeat([0, 1], n), np.tile(np.arange(n, dtype=float), 2)
    seconds = np.tile(np.arange(n) + 1.0, 2)
    grade = np.tile(np.arange(n) % 3, 2)
    log = ScreeningLog.of(who, np.zeros(2 * n, int), order, grade >= 1, seconds=seconds)
    shown = overview(log, grade, 3)
    assert shown.first_position.tolist() == list(range(0, n, 3))
    assert shown.first_position.size <= BINS
    assert shown.by_position.median[0] == 2.0
    assert shown.by_assessor.median.tolist() == [25.5, 25.5]
    assert shown.grade_share[0] == pytest.approx([17 / 50, 17 / 50, 16 / 50])
    drawn = profiles(log, np.full(2 * n, np.nan))
    assert drawn.seconds.shape == (2, shown.first_position.size)
    assert np.isnan(drawn.fast).all()
    assert np.isnan(drawn.auc).all()
    unordered = ScreeningLog.of(
        who, np.zeros(2 * n, int), np.full(2 * n, np.nan), grade >= 1, seconds=seconds
    )
    assert not overview(unordered, grade, 3).by_position.n.any()
    assert np.isnan(profiles(unordered, np.full(2 * n, np.nan)).relevant).all()


def test_an_empty_log_has_an_empty_overview():
    empty = np.zeros(0, dtype=int)
    shown = overview(ScreeningLog.of(empty, empty, empty, empty), empty, 4)
    assert shown.by_grade.n.tolist() == [0, 0, 0, 0]
    assert shown.by_assessor.n.size == 0
