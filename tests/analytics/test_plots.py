"""Pictures of plans and of agreement: what is drawn, in words for who does not see it, and what is refused."""

import re

import pytest

from analytics.charts import standalone_svg
from analytics.plots import histogram, money_curve

LINES = {"Best split": [0.1, 0.08, 0.06], "Gold alone": [0.1, 0.09, None]}


def test_a_money_curve_names_its_lines_their_ends_and_what_is_enough():
    drawn = money_curve([0, 50, 100], LINES, "What money buys", wanted=0.07)
    assert "Best split: 0.1 to 0.06; Gold alone: 0.1 to 0.09. Narrow enough at 0.07." in drawn
    assert drawn.count("<svg") == 1
    assert "var(--ink" in drawn  # one picture for light and dark
    assert not re.search(r" style=|<script|href=", drawn)
    assert "var(" not in standalone_svg(drawn)


@pytest.mark.parametrize(
    ("money", "widths", "wanted"),
    [
        ([0], {"a": [0.1]}, None),
        ([1, 1], {"a": [0.1, 0.1]}, None),
        ([-1, 1], {"a": [0.1, 0.1]}, None),
        ([0, 1], {}, None),
        ([0, 1], {"a": [0.1]}, None),
        ([0, 1], {"a": [None, None]}, None),
        ([0, 1], {"a": [0.1, -0.1]}, None),
        ([0, 1], {"a": [0.1, 0.1]}, float("nan")),
        ([0, 1], {str(n): [0.1, 0.1] for n in range(7)}, None),
    ],
)
def test_a_curve_that_cannot_be_drawn_is_refused(money, widths, wanted):
    with pytest.raises(ValueError, match=r"got|no line"):
        money_curve(money, widths, "title", wanted)


def test_bars_of_a_histogram_stand_on_0_and_are_as_many_as_there_are_counts():
    drawn = histogram([-1, 0, 0.5, 1], [0, 3, 1], "Kappa by topic", "Scott's pi", "topics")
    assert "topics by Scott&#x27;s pi: 0 to 0.5: 3; 0.5 to 1: 1." in drawn
    bars = re.findall(r'd="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-', drawn)
    assert {round(float(bar[3])) for bar in bars} >= {150, 50}  # 3 is the picture's height, 1 a third of it
    feet = {round(float(bar[1]) + float(bar[3]), 3) for bar in bars}
    assert len(feet) == 1


@pytest.mark.parametrize(("edges", "counts"), [([0, 1], [1, 2]), ([1, 0], [1]), ([0, 1], [-1]), ([0], [])])
def test_a_histogram_that_cannot_be_drawn_is_refused(edges, counts):
    with pytest.raises(ValueError, match="got"):
        histogram(edges, counts, "title", "x", "y")
