"""Charts as files (SVG, PNG, CSV), long and hostile names, and refusals of what cannot be drawn."""

import csv
import datetime
import io
import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from chart_samples import (
    ROWS,
    SVG,
    curve,
    differences,
    forest,
    heat_map,
    histogram,
    marks,
    parse,
    place,
    ranks,
    texts,
    throughput,
    topics,
)

from analytics import charts
from analytics.charts import ForestRow
from analytics.charts.files import Sheet, plot_format
from analytics.charts.matrices import SHOWN_RUNS
from analytics.charts.theme import DARK, LIGHT, WIDTH, Notes, labels_of, shorten, text_width


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
    light, dark = (plot_format("png").write(picture, Sheet(theme)) for theme in ("light", "dark"))
    assert light.startswith(b"\x89PNG\r\n")
    assert light != dark


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
    assert "not estimable: no known documents of this grade yet" in texts(
        parse(heat_map(matrix=(None, (0.25, 0.75))))
    )
    assert "?" in texts(parse(charts.rank_matrix(["a", "b"], [[None, None], [0.25, 0.75]], "Ranks")))
    assert texts(parse(differences(value=float("nan")))).count("?") == 3


def test_long_names_stand_whole_in_footnotes_and_names_that_look_alike_stay_apart():
    names = ["x" * 200 + "a", "x" * 200 + "b", "x" * 100 + "y" * 90 + "b"]
    notes = Notes()
    labels = labels_of(names, notes)
    assert len(set(labels.values())) == 3
    assert max(map(text_width, labels.values())) <= 24
    assert [label[-3:] for label in labels.values()] == ["[1]", "[2]", "[3]"]
    assert notes.texts == names
    assert shorten("run-of-monday-2026-11-02", 14) == "run-of…-11-02"
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
    assert "1 of 3 pairs are significant" in root[1].text
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
    picture = charts.curve([0, 50, 100], lines, "Money", x_title="spent", target=0.07, is_logarithmic=False)
    said = parse(picture)[1].text
    assert (
        "Best split 0.1 to 0.06; Gold alone 0.1 to 0.09, then no more can be reached. Target: 0.07." in said
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


@pytest.mark.slow
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
        (lambda: charts.dots([], {"a": []}, "t"), "at least 1 name"),
        (lambda: charts.dots(["r"], {}, "t"), "got 0"),
        (lambda: charts.dots(["r", "s"], {"a": [1.0, float("nan")]}, "t"), "2 finite numbers"),
        (lambda: charts.dots(["r"], {"a": [1.0, 2.0]}, "t"), "1 finite numbers, got 2"),
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
