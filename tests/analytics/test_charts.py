"""Charts: what a page may hold, and whether the ink stands where the numbers say."""

import re

import numpy as np
import pytest
from chart_samples import (
    ROWS,
    SVG,
    calibration,
    curve,
    differences,
    dots,
    forest,
    grades,
    group,
    heat_map,
    histogram,
    marks,
    parse,
    place,
    positions,
    quartiles,
    ranks,
    scatter,
    texts,
    throughput,
    topics,
)

from analytics import charts
from analytics.charts import ForestRow
from analytics.charts.theme import SURFACE
from analytics.methods import METHODS

HOSTILE = "<script>alert('run')</script>\" onload=\"x\x00&"


def scale_of_x_axis(root):
    """Number to position, read off the axis' own first and last labels."""
    labels = [
        (float(t.text.replace("\u2212", "-")), place(t))
        for t in group(root, "role-axis-label")
        if re.fullmatch(r"[\u2212-]?[\d.]+", t.text)
    ]
    (first, (x0, _)), (last, (x1, _)) = labels[0], labels[-1]
    return lambda number: x0 + (number - first) * (x1 - x0) / (last - first)


PICTURES = {
    "forest": lambda: charts.forest(ROWS, "P@10", "", "P@10", reference=0.5),
    "heat map": heat_map,
    "curve": curve,
    "throughput": throughput,
    "ranks": ranks,
    "differences": differences,
    "topics": topics,
    "histogram": histogram,
    "dots": dots,
    "positions": positions,
    "quartiles": quartiles,
    "grades": grades,
    "hostile positions": lambda: positions(HOSTILE),
    "hostile quartiles": lambda: quartiles(HOSTILE),
    "hostile grades of a group": lambda: grades(HOSTILE),
    "hostile forest": lambda: charts.forest(
        [ForestRow(HOSTILE, "naive", 0.4, 0.3, 0.5)], HOSTILE, HOSTILE, HOSTILE
    ),
    "hostile refusal": lambda: charts.forest([ForestRow("a", "naive", refused=HOSTILE)], "P@10"),
    "hostile grades": lambda: heat_map((HOSTILE, "yes")),
    "hostile design": lambda: charts.curve([1, 2], {HOSTILE: [2, 1]}, HOSTILE),
    "hostile tier": lambda: throughput(HOSTILE),
    "hostile ranks": lambda: ranks(HOSTILE),
    "hostile pair": lambda: differences((HOSTILE, "b", "c")),
    "hostile topic": lambda: topics(HOSTILE),
    "hostile axis": lambda: histogram(HOSTILE),
    "hostile run": lambda: dots(HOSTILE),
    "scatter": scatter,
    "hostile point": lambda: scatter(HOSTILE),
    "calibration": calibration,
    "hostile probability": lambda: calibration(HOSTILE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_named_and_harmless_under_the_content_security_policy(name):
    root = parse(PICTURES[name]().svg())
    allowed = {"svg", "title", "desc", "g", "path", "line", "text", "rect"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    for element in root.iter():
        for attribute, value in element.attrib.items():
            assert attribute != "style"
            assert "href" not in attribute
            assert not attribute.startswith("on")
            assert "url(" not in value
    assert root.get("role") == "img"
    named = root.get("aria-labelledby").split()
    assert [root[0].get("id"), root[1].get("id")] == named
    assert root[0].tag == f"{SVG}title"
    assert root[0].text
    assert root[1].tag == f"{SVG}desc"
    assert root[1].text


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_takes_the_width_of_its_place_and_only_colours_of_the_theme(name):
    root = parse(PICTURES[name]().svg())
    assert root.get("width") == "100%"
    assert root.get("height") is None
    assert root.get("viewBox").startswith("0 0 ")
    colours = {e.get(k) for e in root.iter() for k in ("fill", "stroke")} - {None, "none", "transparent"}
    assert colours
    assert all(re.fullmatch(r"var\(--[a-z-]+, #[0-9a-f]{6}\)", colour) for colour in colours)


def test_a_hostile_run_name_comes_out_escaped():
    text = forest([ForestRow(HOSTILE, "naive", 0.4, 0.3, 0.5)])
    assert "<script" not in text
    assert any(t.startswith("<script>") for t in texts(parse(text)))


def test_a_hostile_title_and_description_come_out_escaped():
    text = charts.forest(ROWS, HOSTILE, HOSTILE, HOSTILE).svg()
    root = parse(text)
    assert "<script" not in text
    assert root[0].text == HOSTILE.replace("\x00", "\ufffd")
    assert root[1].text == HOSTILE.replace("\x00", "\ufffd")


def test_every_row_with_a_number_gets_one_point_and_one_interval():
    root = parse(forest())
    assert len(marks(root, "symbol")) == 5
    assert len(marks(root, "rule")) == 5


def test_intervals_and_points_stand_where_the_axis_says():
    root = parse(forest())
    at = scale_of_x_axis(root)
    rules = sorted((place(m)[0], place(m)[0] + float(m.get("x2", 0))) for m in marks(root, "rule"))
    wanted = sorted((at(row.low), at(row.high)) for row in ROWS if not row.refused)
    np.testing.assert_allclose(rules, wanted, atol=0.01)
    points = sorted(place(m)[0] for m in marks(root, "symbol"))
    np.testing.assert_allclose(points, sorted(at(row.value) for row in ROWS if not row.refused), atol=0.01)


def test_negative_numbers_and_the_reference_line_stand_where_the_axis_says():
    root = parse(forest([ForestRow("a - b", "corrected", -0.05, -0.09, -0.01)], reference=0.0))
    at = scale_of_x_axis(root)
    reference, interval = marks(root, "rule")
    assert place(reference)[0] == pytest.approx(at(0), abs=0.01)
    assert place(interval)[0] == pytest.approx(at(-0.09), abs=0.01)


def test_every_method_of_a_run_has_a_lane_of_its_own():
    root = parse(forest())
    heights = {place(m)[1] for m in marks(root, "symbol")}
    assert len(heights) == 5


def test_methods_differ_in_shape_or_filling_and_not_in_colour_alone():
    root = parse(forest([ForestRow("a", method.short, 0.4, 0.3, 0.5) for method in METHODS]))
    looks = {(m.get("d"), m.get("fill") == SURFACE) for m in marks(root, "symbol")}
    assert len(looks) == len(METHODS)


def test_a_refused_row_is_shown_as_its_reason():
    assert "matrix inverse: fewer than 20 audited items" in texts(parse(forest()))


def test_a_plot_of_refusals_only_has_words_and_no_marks():
    root = parse(forest([ForestRow("bm25", "corrected", np.nan, np.nan, np.nan, refused="no audit")]))
    assert "corrected: no audit" in texts(root)
    assert marks(root, "symbol") == []


def test_a_heat_map_says_percentages_and_intervals_of_every_cell():
    root = parse(heat_map().svg())
    assert len(marks(root, "rect")) == 4
    assert {"90 %", "10 %", "25 %", "75 %", "80 to 100", "0 to 20", "20 to 30", "70 to 80"} <= set(
        texts(root)
    )


def test_a_heat_map_has_true_grades_as_rows():
    root = parse(heat_map().svg())
    cells = {t.text: place(t) for t in root.iter(f"{SVG}text") if t.text.endswith("%")}
    assert cells["90 %"][1] == cells["10 %"][1] < cells["25 %"][1] == cells["75 %"][1]
    assert cells["90 %"][0] == cells["25 %"][0] < cells["10 %"][0] == cells["75 %"][0]


def test_a_curve_has_one_line_a_design_with_a_dash_of_its_own():
    root = parse(curve().svg())
    lines = marks(root, "line")
    assert len(lines) == 2
    assert len({line.get("stroke-dasharray") for line in lines}) == 2
    assert {"naive", "pair"} <= set(texts(root))


def test_a_budget_out_of_reach_is_a_gap_and_never_a_point():
    text = charts.curve([10, 20, 40, 80], {"a": [4, 3, 2, 1], "b": [5, 4, None, None]}, "Budget")
    whole, broken = (line.get("d") for line in marks(parse(text), "line"))
    assert whole.count("L") == 3
    assert broken.count("L") == 1
    assert "then no more can be reached" in parse(text)[1].text
    inner = charts.curve([10, 20, 40, 80, 160], {"a": [5, 4, None, 2, 1]}, "Budget")
    assert marks(parse(inner), "line")[0].get("d").count("M") == 2


def test_a_line_that_would_press_the_first_flat_is_cut_where_it_passes_the_ceiling():
    text = charts.curve([10, 100, 1000], {"a": [1, 0.5, 0.1], "b": [12, 9, 1]}, "Budget")
    _, cut = (line.get("d") for line in marks(parse(text), "line"))
    heights = [float(y) for y in re.findall(r"[-\d.]+,([-\d.]+)", cut)]
    assert min(heights) == pytest.approx(0, abs=0.01)  # begins at the upper end of the axis, not outside
    assert len(heights) == 2


def test_the_chosen_budget_is_a_dot_on_the_first_line():
    budgets = [10, 100, 1000]
    root = parse(charts.curve(budgets, {"a": [3, 2, 1], "b": [3.5, 3, 2]}, "Budget", chosen=100))
    (dot,) = marks(root, "symbol")
    line = marks(root, "line")[0].get("d")
    middle = re.findall(r"([-\d.]+),([-\d.]+)", line)[1]
    assert place(dot) == pytest.approx(tuple(map(float, middle)), abs=0.01)
    assert marks(parse(curve().svg()), "symbol") == []
    with pytest.raises(ValueError, match="must be one of"):
        charts.curve(budgets, {"a": [3, 2, 1]}, "Budget", chosen=50)
