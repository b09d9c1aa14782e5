"""Charts: what a page may hold, and whether the ink stands where the numbers say."""

import csv
import datetime
import io
import itertools
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from analytics import charts
from analytics.charts import Chart, ForestRow
from analytics.charts.forests import METHOD_SHAPE
from analytics.charts.matrices import SHOWN_RUNS
from analytics.charts.theme import DARK, LIGHT, SURFACE, WIDTH, labels_of, shortened

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
    return charts.forest(rows, "P@10", "Runs compared", "P@10", **arguments).svg()


def heat_map(labels=("no", "yes"), matrix=((0.9, 0.1), (0.25, 0.75))):
    return charts.confusion_heat(labels, matrix, [[0.8, 0], [0.2, 0.7]], [[1, 0.2], [0.3, 0.8]], None, "Bob")


def timeline():
    days = [datetime.date(2026, 11, day) for day in (1, 2, 4)]
    return charts.timeline(days, [10, 0, 20])


def curve():
    return charts.curve([100, 200, 400], {"naive": [0.1, 0.07, 0.05], "pair": [0.06, 0.04, 0.03]}, "Budget")


def throughput(name="gold"):
    hours = [datetime.datetime(2026, 11, 1, hour) for hour in range(4)]
    return charts.throughput(hours, {name: [1, 2, None, 4], "silver": [4, 3, 2, 1]}, "An hour")


def ranks(name="a"):
    return charts.rank_matrix([name, "b"], [[0.75, 0.25], [0.25, 0.75]], "Ranks")


def differences(names=("a", "b", "c"), value=0.25):
    n = len(names)
    values = [[value * (i - j) for j in range(n)] for i in range(n)]
    low = [[number - 0.1 for number in row] for row in values]
    high = [[number + 0.1 for number in row] for row in values]
    p = [[0.01 if i - j == 2 else 0.5 for j in range(n)] for i in range(n)]
    return charts.difference_matrix(names, values, low, high, p, "Pairs", measure="P@10")


def topics(name="t1"):
    return charts.topic_differences(
        [name, "t2", "t3", "t4"],
        [0.2, None, -0.3, 0.01],
        [0.1, None, -0.4, -0.1],
        [0.3, None, -0.2, 0.1],
        "By topic",
    )


def histogram(name="kappa"):
    return charts.histogram(
        [-1, 0, 0.5, 1], [0, 3, 1], "Kappa", x_title=name, y_title="topics", reference=0.0
    )


def parse(picture):
    return ET.fromstring(picture.svg() if isinstance(picture, Chart) else picture)  # noqa: S314 (our own output)


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
    "forest": lambda: charts.forest(ROWS, "P@10", "", "P@10", reference=0.5),
    "heat map": heat_map,
    "timeline": timeline,
    "curve": curve,
    "throughput": throughput,
    "ranks": ranks,
    "differences": differences,
    "topics": topics,
    "histogram": histogram,
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
    root = parse(forest([ForestRow("a", method, 0.4, 0.3, 0.5) for method in METHOD_SHAPE]))
    looks = {(m.get("d"), m.get("fill") == SURFACE) for m in marks(root, "symbol")}
    assert len(looks) == len(METHOD_SHAPE)


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


def test_a_timeline_has_a_bar_a_day_whose_height_is_its_count():
    root = parse(timeline().svg())
    heights = [float(re.search(r"v([-\d.e]+)h-", m.get("d")).group(1)) for m in marks(root, "rect")]
    assert heights == pytest.approx([heights[2] / 2, 0, heights[2]], abs=0.01)
    assert heights[2] > 50
    assert "30 judgments from 2026-11-01 to 2026-11-04, at most 20 a day." in root[1].text


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
    assert "then it cannot reach more" in parse(text)[1].text
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


def test_two_pictures_on_one_page_do_not_share_ids():
    assert parse(forest())[0].get("id") != parse(curve().svg())[0].get("id")


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_a_file_for_download_has_a_size_a_ground_and_the_colours_of_one_theme(theme, palette):
    alone = charts.forest(ROWS, "P@10").standalone_svg(theme)
    root = parse(alone)
    assert "var(" not in alone
    assert float(root.get("width")) >= WIDTH
    assert (root[2].tag, root[2].get("fill")) == (f"{SVG}rect", palette["surface"])
    colours = {e.get(k) for e in root.iter() for k in ("fill", "stroke")} - {None, "none", "transparent"}
    assert colours <= set(palette.values())


def test_a_png_is_a_png_and_differs_by_theme():
    picture = curve()
    assert picture.png("light").startswith(b"\x89PNG\r\n")
    assert picture.png("light") != picture.png("dark")


def test_a_csv_holds_every_number_unrounded_and_nothing_where_nothing_is_estimable():
    third = 1 / 3
    rows = [ForestRow("bm25", "naive", third, 0.25, 0.5), ForestRow("bm25", "corrected", float("nan"))]
    found = list(csv.DictReader(io.StringIO(charts.forest(rows, "P@10").csv())))
    assert float(found[0]["value"]) == third
    assert [found[1][name] for name in ("value", "low", "high")] == ["", "", ""]
    assert found[1]["note"] == "not estimable"


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_a_run_whose_name_is_a_formula_stays_text_in_a_spreadsheet(start):
    name = f'{start}HYPERLINK("x")'
    found = list(
        csv.reader(io.StringIO(charts.forest([ForestRow(name, "naive", -0.5, -0.75, 0)], "P@10").csv()))
    )
    assert found[1][0] == f"'{name}"
    assert found[1][2] == "-0.5"  # a number is none


def test_what_is_not_estimable_is_said_in_words():
    rows = [
        ForestRow("a", "naive", None),
        ForestRow("b", "naive", np.inf),
        ForestRow("c", "naive", 0.5, None, 0.6),
    ]
    root = parse(charts.forest(rows, "P@10"))
    assert texts(root).count("naive: not estimable") == 2
    assert len(marks(root, "symbol")) == 1  # c: a point without a line
    assert marks(root, "rule") == []
    assert "a, naive: not estimable" in root[1].text
    assert "not estimable" in texts(parse(topics()))
    assert "not estimable: no gold of this grade yet" in texts(parse(heat_map(matrix=(None, (0.25, 0.75)))))
    assert "?" in texts(parse(charts.rank_matrix(["a", "b"], [[None, None], [0.25, 0.75]], "Ranks")))
    assert texts(parse(differences(value=float("nan")))).count("?") == 3


def test_long_names_are_cut_in_the_middle_and_names_that_look_alike_stay_apart():
    names = ["x" * 200 + "a", "x" * 200 + "b", "x" * 100 + "y" * 90 + "b"]
    labels = labels_of(names)
    assert len(set(labels.values())) == 3
    assert max(map(len, labels.values())) <= 32
    assert shortened("run-of-monday-2026-11-02", 13) == "run-of…-11-02"
    drawn = parse(charts.forest([ForestRow(name, "naive", 0.5, 0.4, 0.6) for name in names], "P@10"))
    assert len({place(mark)[1] for mark in marks(drawn, "symbol")}) == 3


def test_a_name_cannot_turn_the_direction_of_what_stands_after_it():
    drawn = charts.forest([ForestRow("\u202eevil\u2066 ריצה 🙂", "naive", 0.5, 0.4, 0.6)], "P@10").svg()
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", drawn)
    assert "evil ריצה 🙂" in texts(parse(drawn))


def test_a_matrix_of_differences_prints_its_numbers_and_marks_those_told_apart():
    root = parse(differences())
    assert len(marks(root, "rect")) == 3
    assert sorted(t for t in texts(root) if t.startswith("+")) == ["+0.250", "+0.250", "+0.500"]
    assert texts(root).count("▲") == 1  # one pair of three has p below 0.05
    assert "1 of 3 pairs are told apart" in root[1].text
    assert texts(parse(differences(value=-0.25))).count("▼") == 1


def test_of_many_runs_the_first_are_drawn_and_the_table_has_all():
    n = SHOWN_RUNS + 5
    picture = differences(tuple(f"run{i}" for i in range(n)))
    assert len(marks(parse(picture), "rect")) == SHOWN_RUNS * (SHOWN_RUNS - 1) // 2
    assert len(picture.rows) == n * (n - 1) // 2
    assert f"The first {SHOWN_RUNS} of {n} runs are drawn." in picture.caption


def test_a_hundred_runs_have_a_readable_lane_each():
    rows = [ForestRow(f"run{i:03d}", "corrected", i / 100, i / 100 - 0.1, i / 100 + 0.1) for i in range(100)]
    root = parse(charts.forest(rows, "P@10", measure="P@10"))
    heights = sorted(place(mark)[1] for mark in marks(root, "symbol"))
    assert len(heights) == 100
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 13  # a letter of 13 units has room
    assert {f"run{i:03d}" for i in range(100)} <= set(texts(root))


def test_ranks_are_printed_in_per_cent():
    assert texts(parse(ranks())).count("75") == 2
    assert ranks().rows[1] == ("a", 2, 0.25)


def test_a_topic_says_by_its_shape_on_which_side_of_0_its_interval_lies():
    points = marks(parse(topics()), "symbol")
    assert len({point.get("d") for point in points}) == 3


def test_lines_of_tiers_differ_in_dash_and_shape_and_break_where_nothing_is_known():
    root = parse(throughput())
    gold, silver = marks(root, "line")
    assert gold.get("stroke-dasharray") != silver.get("stroke-dasharray")
    assert gold.get("d").count("M") == 2
    assert throughput().rows[2] == ("2026-11-01T02:00:00Z", None, 2.0)


def test_a_money_curve_names_its_lines_their_ends_and_what_is_enough():
    lines = {"Best split": [0.1, 0.08, 0.06], "Gold alone": [0.1, 0.09, None]}
    picture = charts.curve([0, 50, 100], lines, "Money", x_title="spent", wanted=0.07, is_logarithmic=False)
    said = parse(picture)[1].text
    assert (
        "Best split 0.1 to 0.06; Gold alone 0.1 to 0.09, then it cannot reach more. Narrow enough at 0.07."
        in said
    )
    assert len(marks(parse(picture), "rule")) == 1


def test_bars_of_a_histogram_stand_on_0_and_are_as_many_as_there_are_counts():
    drawn = histogram().svg()
    assert "topics by kappa: 0 to 0.5: 3; 0.5 to 1: 1." in drawn
    bars = re.findall(r'd="M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-', drawn)
    assert {round(float(bar[3])) for bar in bars} >= {150, 50}  # 3 is the picture's height, 1 a third of it
    assert len({round(float(bar[1]) + float(bar[3]), 3) for bar in bars}) == 1


@pytest.mark.parametrize(("palette", "part"), [(LIGHT, 0), (DARK, 1)])
def test_the_colours_are_those_of_the_pages(palette, part):
    """The first block of style.css is the light theme, the one that asks for dark the other."""
    css = (Path(__file__).parents[2] / "platform/touchstone/static/touchstone/style.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    named = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", (light, dark.split("@media")[0])[part]))
    assert palette == {name: named[name] for name in palette}


def test_naming_the_charts_imports_neither_altair_nor_the_renderer():
    program = "import sys, analytics.charts; print(sorted({'altair', 'vl_convert'} & set(sys.modules)))"
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert child.stdout.strip() == "[]"


def test_a_picture_is_the_same_to_the_byte_in_another_process_with_another_hash_seed():
    program = (
        "from analytics.charts import *; "
        "rows = [ForestRow('a', 'naive', .4, .3, .5), ForestRow('b', 'corrected', .5, .4, .6)]; "
        "print(forest(rows, 'P').svg(), end='')"
    )
    made = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            timeout=60,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert made[0].startswith(b"<svg")
    assert made[0] == made[1]


def test_the_same_picture_is_drawn_once():
    rows = [ForestRow(f"run{i}", "corrected", i / 60, i / 60 - 0.1, i / 60 + 0.1) for i in range(60)]
    begun = time.perf_counter()
    first = charts.forest(rows, "Sixty").svg()
    drawn = time.perf_counter()
    again = charts.forest(list(rows), "Sixty").svg()
    assert again == first
    assert time.perf_counter() - drawn < (drawn - begun) / 2


@pytest.mark.parametrize(("edges", "counts"), [([0, 1], [1, 2]), ([1, 0], [1]), ([0, 1], [-1]), ([0], [])])
def test_a_histogram_that_cannot_be_drawn_is_refused(edges, counts):
    with pytest.raises(ValueError, match="got"):
        charts.histogram(edges, counts, "title")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: charts.difference_matrix(["a"], [[0]], [[0]], [[0]], [[0]], "t"), "at least 2"),
        (lambda: charts.difference_matrix(["a", "b"], [[0, 0]], [[0]], [[0]], [[0]], "t"), "2 rows of 2"),
        (lambda: charts.rank_matrix(["a", "a"], [[1, 0], [0, 1]], "t"), "all different"),
        (lambda: charts.rank_matrix(["a"], [[1.5]], "t"), "got 1.5"),
        (lambda: charts.topic_differences([], [], [], [], "t"), "at least 1"),
        (lambda: charts.topic_differences(["a", "a"], [1, 1], [0, 0], [2, 2], "t"), "different"),
        (lambda: charts.topic_differences(["a"], [1], [2], [3], "t"), "low <= value <= high"),
        (lambda: charts.throughput([], {"a": []}, "t"), "at least 1"),
        (lambda: charts.throughput([datetime.date(2026, 1, 1)], {}, "t"), "got 0"),
        (lambda: charts.throughput([datetime.date(2026, 1, 1)], {"a": [-1]}, "t"), "at least 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least 1 row, got 0"),
        ([ForestRow("a", "guess", 1, 1, 1)], "got 'guess'"),
        ([ForestRow("a", "naive", 1, 1, 1)] * 2, "twice"),
        ([ForestRow("a", "naive", 2, 0, 1)], "low <= value <= high"),
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
        ([[1, 0]], ["a", "b"], r"2 rows of 2, got \[2\]"),
        ([[1.2, 0], [0, 1]], ["a", "b"], "got 1.2"),
        ([[1, 0], [0, 1]], ["a", "a"], "all different"),
    ],
)
def test_a_heat_map_refuses_what_is_no_confusion_matrix(matrix, labels, message):
    with pytest.raises(ValueError, match=message):
        charts.confusion_heat(labels, matrix, np.eye(2), np.eye(2), None, "Bob")


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
        charts.timeline([datetime.date(2026, 11, day) for day in days], counts)


@pytest.mark.parametrize(
    ("budgets", "widths", "message"),
    [
        ([1, 2], {}, "between 1 and 6 lines can be drawn, got 0"),
        ([2, 1], {"a": [1, 1]}, "rise"),
        ([1], {"a": [1]}, "at least 2"),
        ([0, 2], {"a": [1, 1]}, "positive"),
        ([1, 2], {"a": [None, None]}, "no line has a half-width"),
        ([1, 2], {"a": [1]}, "needs 2 widths, got 1"),
        ([1, 2], {"a": [1, -1]}, "at least 0"),
    ],
)
def test_a_curve_refuses_budgets_and_widths_that_do_not_match(budgets, widths, message):
    with pytest.raises(ValueError, match=message):
        charts.curve(budgets, widths, "Budget")
