"""One sample of every chart, and how the elements of its SVG are read."""

import datetime
import re
import xml.etree.ElementTree as ET

from analytics import charts
from analytics.charts import Chart, ForestRow

SVG = "{http://www.w3.org/2000/svg}"

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


def dots(name="run2"):
    return charts.dots(
        ["run1", name],
        {"gold": [0.2, 0.3], "silver": [0.25, 0.28], "bronze": [0.1, 0.4]},
        "Tiers",
        x_title="infAP",
    )


def scatter(name="run2"):
    points = [
        charts.ScatterPoint("run1", 0.2, 0.5),
        charts.ScatterPoint(name, 0.4, 0.3, is_marked=True),
        charts.ScatterPoint("run3", 0.3, 0.4),
    ]
    return charts.run_scatter(points, "Runs", x_title="P@10", y_title="expected MAP", caption="Tau -1.")


def calibration(name="p"):
    bins = [charts.ProbabilityBin(0.2, 0.3, 0.1, 1200), charts.ProbabilityBin(0.8, 0.9, 0.5, 7)]
    return charts.calibration_curve(bins, "Calibration", x_title=name, y_title="share relevant")


def positions(name="bob"):
    lines = {name: [12.0, 9.0, None, 4.0], "all assessors": [12.0, 11.0, 11.0, 10.0]}
    return charts.position_lines([1, 6, 11, 16], lines, "Speed", y_title="median seconds")


def quartiles(name="bob"):
    return charts.quartile_bars(
        [name, "dora", "new"],
        [[3, 4, 6], [9, 12, 15], [None] * 3],
        "Seconds",
        x_title="seconds",
        group="assessor",
    )


def grades(name="bob"):
    shares = [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [None] * 3]
    return charts.grade_shares(
        [name, "dora", "new"], ["0 no", "1 some", "2 all"], shares, "Grades", group="assessor"
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
