"""Scatter and calibration curve: marks where the axes say, names of runs whose places differ, what is refused."""

import numpy as np
import pytest
from chart_samples import calibration, group, marks, parse, place, scatter, texts

from analytics.charts import ProbabilityBin, ScatterPoint, calibration_curve, run_scatter
from analytics.charts.theme import LETTER, LINE_STRONG, name_room

WORDS = {"x_title": "P@10", "y_title": "expected MAP"}


def positions_of(root):
    return np.array([place(mark) for mark in marks(root, "symbol")])


def test_marks_stand_where_the_numbers_say():
    at = positions_of(parse(scatter()))
    numbers = np.array([[0.2, 0.5], [0.4, 0.3], [0.3, 0.4]])
    for axis, sign in ((0, 1), (1, -1)):  # SVG counts downwards
        slopes = sign * np.diff(at[:, axis]) / np.diff(numbers[:, axis])
        assert slopes == pytest.approx(np.full(2, slopes[0]), rel=1e-3)
        assert slopes[0] > 0


def test_the_two_kinds_differ_in_shape_and_have_a_legend_where_both_occur():
    root = parse(scatter())
    shapes = {mark.get("d") for mark in marks(root, "symbol")}
    assert len(shapes) == 2
    assert {"run", "marked run"} <= set(texts(root))
    alone = run_scatter([ScatterPoint("a", 1, 2), ScatterPoint("b", 2, 1)], "One kind", **WORDS)
    assert "marked run" not in texts(parse(alone))


def test_the_runs_whose_places_differ_most_are_named_and_no_others():
    numbers = [(1, 10), (2, 2), (3, 3), (4, 4), (5, 5), (6, 1)]  # by x: last first; a and f change places
    points = [ScatterPoint(name, x, y) for name, (x, y) in zip("abcdef", numbers, strict=True)]
    named = {text for text in texts(parse(run_scatter(points, "Named", **WORDS))) if text in list("abcdef")}
    assert named == {"a", "f"}
    same = [ScatterPoint(name, x, x) for name, x in zip("abc", (1, 2, 3), strict=True)]
    assert not {"a", "b", "c"} & set(texts(parse(run_scatter(same, "Same", **WORDS))))


def test_the_file_of_a_scatter_has_every_run_with_its_kind():
    assert scatter().csv().splitlines() == [
        "run,kind,P@10,expected MAP",
        "run1,run,0.2,0.5",
        "run2,marked run,0.4,0.3",
        "run3,run,0.3,0.4",
    ]
    assert scatter().caption == "Tau -1."


def test_shares_stand_at_the_middle_of_their_bin_beside_the_diagonal():
    root = parse(calibration())
    low, high = positions_of(root)
    [diagonal] = [
        path for path in group(root, "mark-line", "role-mark") if path.get("stroke-dasharray") == "4,3"
    ]
    assert diagonal.get("stroke") == LINE_STRONG
    ends = [tuple(map(float, part.split(","))) for part in diagonal.get("d")[1:].split("L")]
    (x0, y0), (x1, y1) = ends
    x, y = (lambda p: x0 + p * (x1 - x0)), (lambda share: y0 + share * (y1 - y0))
    assert low == pytest.approx([x(0.25), y(0.1)], abs=0.01)
    assert high == pytest.approx([x(0.85), y(0.5)], abs=0.01)
    assert {"1,200", "7"} <= set(texts(root))


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([ScatterPoint("a", 1, 2)], "at least 2, got 1"),
        ([ScatterPoint("a", 1, 2), ScatterPoint("b", float("nan"), 2)], "must be finite, got nan"),
    ],
)
def test_a_scatter_refuses_what_it_cannot_draw(points, reason):
    with pytest.raises(ValueError, match=reason):
        run_scatter(points, "No", **WORDS)


@pytest.mark.parametrize(
    ("bins", "reason"),
    [
        ([], "at least 1"),
        ([ProbabilityBin(0.5, 0.4, 0.1, 2)], "rise within"),
        ([ProbabilityBin(0.1, 0.3, 0.1, 2), ProbabilityBin(0.2, 0.4, 0.1, 2)], "rise within"),
        ([ProbabilityBin(0.9, 1.1, 0.1, 2)], "rise within"),
        ([ProbabilityBin(0.1, 0.2, 1.5, 2)], "share within"),
        ([ProbabilityBin(0.1, 0.2, 0.5, 0)], "of at least 1"),
    ],
)
def test_a_calibration_curve_refuses_what_it_cannot_draw(bins, reason):
    with pytest.raises(ValueError, match=reason):
        calibration_curve(bins, "No", x_title="p", y_title="share")


def test_an_axis_keeps_room_for_the_longest_name_up_to_its_limit():
    assert name_room(["a" * 10, "b"], 190) == round(LETTER * 10) + 6
    assert name_room(["a" * 100], 190) == 196
    assert name_room([], 190) == 6
