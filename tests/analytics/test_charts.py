"""Charts: what a page may hold, and whether the ink stands where the numbers say."""

import datetime
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from analytics import charts, curves
from analytics.charts import ForestRow

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('run')</script>\" onload=\"x\x00&"

ROWS = [
    ForestRow("bm25", "naive", 0.40, 0.35, 0.45),
    ForestRow("bm25", "corrected", 0.50, 0.42, 0.58),
    ForestRow("bm25", "matrix inverse", 0.0, 0.0, 0.0, refused="fewer than 20 audited items"),
    ForestRow("dense", "naive", 0.45, 0.41, 0.49),
    ForestRow("dense", "corrected", 0.55, 0.47, 0.63),
    ForestRow("dense", "true value", 0.53, 0.53, 0.53),
]


def forest(rows=ROWS, **arguments):
    return charts.forest_plot(rows, "P@10", "Runs compared", "P@10", **arguments)


def heat_map(labels=("no", "yes")):
    matrix = [[0.9, 0.1], [0.25, 0.75]]
    return charts.confusion_heat_map(matrix, [[0.8, 0], [0.2, 0.7]], [[1, 0.2], [0.3, 0.8]], labels, "Bob")


def timeline():
    days = [datetime.date(2026, 11, day) for day in (1, 2, 4)]
    return charts.progress_timeline(days, [10, 0, 20])


def curve():
    return curves.half_width_curve([100, 200, 400], {"naive": [0.1, 0.07, 0.05], "pair": [0.06, 0.04, 0.03]})


def parse(text):
    return ET.fromstring(text)  # noqa: S314 (our own output)


def group(root, *words):
    """The elements drawn in groups whose class has all the words."""
    found = []
    for element in root.iter(f"{SVG}g"):
        if set(words) <= set(element.get("class", "").split()):
            found.extend(element)
    return found


def marks(root, kind):
    return group(root, f"mark-{kind}", "role-mark")


def texts(root):
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def place(element):
    x, y = re.match(r"translate\(([-\d.e]+),([-\d.e]+)\)", element.get("transform")).groups()
    return float(x), float(y)


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
    "forest": lambda: forest(reference=0.5),
    "heat map": heat_map,
    "timeline": timeline,
    "curve": curve,
    "hostile forest": lambda: forest([ForestRow(HOSTILE, "naive", 0.4, 0.3, 0.5, refused="")]),
    "hostile refusal": lambda: forest([ForestRow("a", "naive", 0, 0, 0, refused=HOSTILE)]),
    "hostile grades": lambda: heat_map((HOSTILE, "yes")),
    "hostile design": lambda: curves.half_width_curve([1, 2], {HOSTILE: [2, 1]}, HOSTILE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_well_formed_named_and_harmless_under_the_content_security_policy(name):
    text = PICTURES[name]()
    root = parse(text)
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
    root = parse(PICTURES[name]())
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
    text = charts.forest_plot(ROWS, HOSTILE, HOSTILE, HOSTILE)
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
    root = parse(forest([ForestRow("a", method, 0.4, 0.3, 0.5) for method in charts.METHOD_SHAPE]))
    looks = {(m.get("d"), m.get("fill") == charts.SURFACE) for m in marks(root, "symbol")}
    assert len(looks) == len(charts.METHOD_SHAPE)


def test_a_refused_row_is_shown_as_its_reason():
    assert "matrix inverse: fewer than 20 audited items" in texts(parse(forest()))


def test_a_plot_of_refusals_only_has_words_and_no_marks():
    root = parse(forest([ForestRow("bm25", "corrected", np.nan, np.nan, np.nan, refused="no audit")]))
    assert "corrected: no audit" in texts(root)
    assert marks(root, "symbol") == []


def test_a_heat_map_says_percentages_and_intervals_of_every_cell():
    root = parse(heat_map())
    assert len(marks(root, "rect")) == 4
    assert {"90 %", "10 %", "25 %", "75 %", "80 to 100", "0 to 20", "20 to 30", "70 to 80"} <= set(
        texts(root)
    )


def test_a_heat_map_has_true_grades_as_rows():
    root = parse(heat_map())
    cells = {t.text: place(t) for t in root.iter(f"{SVG}text") if t.text.endswith("%")}
    assert cells["90 %"][1] == cells["10 %"][1] < cells["25 %"][1] == cells["75 %"][1]
    assert cells["90 %"][0] == cells["25 %"][0] < cells["10 %"][0] == cells["75 %"][0]


def test_a_timeline_has_a_bar_a_day_whose_height_is_its_count():
    root = parse(timeline())
    heights = [float(re.search(r"v([-\d.e]+)h-", m.get("d")).group(1)) for m in marks(root, "rect")]
    assert heights == pytest.approx([heights[2] / 2, 0, heights[2]], abs=0.01)
    assert heights[2] > 50
    assert "30 judgments from 2026-11-01 to 2026-11-04, at most 20 a day." in root[1].text


def test_a_curve_has_one_line_a_design_with_a_dash_of_its_own():
    root = parse(curve())
    lines = marks(root, "line")
    assert len(lines) == 2
    assert len({line.get("stroke-dasharray") for line in lines}) == 2
    assert {"naive", "pair"} <= set(texts(root))


def test_a_budget_out_of_reach_is_a_gap_and_never_a_point():
    text = curves.half_width_curve([10, 20, 40, 80], {"a": [4, 3, 2, 1], "b": [5, 4, None, None]})
    whole, broken = (line.get("d") for line in marks(parse(text), "line"))
    assert whole.count("L") == 3
    assert broken.count("L") == 1
    assert "then it cannot reach more" in parse(text)[1].text
    inner = curves.half_width_curve([10, 20, 40, 80, 160], {"a": [5, 4, None, 2, 1]})
    assert marks(parse(inner), "line")[0].get("d").count("M") == 2


def test_a_line_that_would_press_the_first_flat_is_cut_where_it_passes_the_ceiling():
    text = curves.half_width_curve([10, 100, 1000], {"a": [1, 0.5, 0.1], "b": [12, 9, 1]})
    _, cut = (line.get("d") for line in marks(parse(text), "line"))
    heights = [float(y) for y in re.findall(r"[-\d.]+,([-\d.]+)", cut)]
    assert min(heights) == pytest.approx(0, abs=0.01)  # begins at the upper end of the axis, not outside
    assert len(heights) == 2


def test_the_chosen_budget_is_a_dot_on_the_first_line():
    budgets = [10, 100, 1000]
    root = parse(curves.half_width_curve(budgets, {"a": [3, 2, 1], "b": [3.5, 3, 2]}, chosen=100))
    (dot,) = marks(root, "symbol")
    line = marks(root, "line")[0].get("d")
    middle = re.findall(r"([-\d.]+),([-\d.]+)", line)[1]
    assert place(dot) == pytest.approx(tuple(map(float, middle)), abs=0.01)
    assert marks(parse(curve()), "symbol") == []
    with pytest.raises(ValueError, match="must be one of"):
        curves.half_width_curve(budgets, {"a": [3, 2, 1]}, chosen=50)


def test_two_pictures_on_one_page_do_not_share_ids():
    assert parse(forest())[0].get("id") != parse(curve())[0].get("id")


def test_a_file_for_download_has_a_size_and_no_variables():
    alone = charts.standalone_svg(forest())
    assert "var(" not in alone
    assert float(parse(alone).get("width")) >= charts.WIDTH


def test_a_png_is_a_png():
    assert charts.png(curve()).startswith(b"\x89PNG\r\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least 1 row, got 0"),
        ([ForestRow("a", "guess", 1, 1, 1)], "got 'guess'"),
        ([ForestRow("a", "naive", 1, 1, 1)] * 2, "twice"),
        ([ForestRow("a", "naive", np.nan, 0, 1)], "finite"),
        ([ForestRow("a", "naive", 2, 0, 1)], "low <= value <= high"),
        ([ForestRow("a", "naive", 0, -np.inf, 1)], "finite"),
    ],
)
def test_a_forest_plot_refuses_what_it_cannot_draw_truthfully(rows, message):
    with pytest.raises(ValueError, match=message):
        forest(rows)


def test_a_forest_plot_refuses_a_reference_that_is_no_number():
    with pytest.raises(ValueError, match="reference must be finite, got nan"):
        forest(reference=float("nan"))


@pytest.mark.parametrize(
    ("matrix", "labels", "message"),
    [
        ([[1, 0]], ["a", "b"], r"shape \(2, 2\), got \(1, 2\)"),
        ([[1.2, 0], [0, 1]], ["a", "b"], "got 1.2"),
        ([[np.nan, 0], [0, 1]], ["a", "b"], "got nan"),
        ([[1, 0], [0, 1]], ["a", "a"], "all different"),
    ],
)
def test_a_heat_map_refuses_what_is_no_confusion_matrix(matrix, labels, message):
    with pytest.raises(ValueError, match=message):
        charts.confusion_heat_map(matrix, np.eye(2), np.eye(2), labels, "Bob")


@pytest.mark.parametrize(
    ("days", "counts", "message"),
    [
        ([], [], "at least 1"),
        ([1, 1], [2, 2], "twice"),
        ([1], [-1], "at least 0, got -1"),
        ([1], [1, 2], "got 1 and 2"),
    ],
)
def test_a_timeline_refuses_days_without_counts(days, counts, message):
    with pytest.raises(ValueError, match=message):
        charts.progress_timeline([datetime.date(2026, 11, day) for day in days], counts)


@pytest.mark.parametrize(
    ("budgets", "widths", "message"),
    [
        ([1, 2], {}, "between 1 and 6 designs can be drawn, got 0"),
        ([2, 1], {"a": [1, 1]}, "rise"),
        ([1], {"a": [1]}, "at least 2"),
        ([0, 2], {"a": [1, 1]}, "positive"),
        ([1, 2], {"a": [None, None]}, "no design has a half-width"),
        ([1, 2], {"a": [1, float("nan")]}, "finite"),
        ([1, 2], {"a": [1]}, "needs 2 widths, got 1"),
        ([1, 2], {"a": [1, -1]}, "at least 0"),
    ],
)
def test_a_curve_refuses_budgets_and_widths_that_do_not_match(budgets, widths, message):
    with pytest.raises(ValueError, match=message):
        curves.half_width_curve(budgets, widths)
