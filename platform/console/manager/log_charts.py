"""Pictures of a campaign's log, from what its newest screening stored: of all assessors, and of one."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from analytics.charts import Chart, grade_shares, histogram, position_lines, quartile_bars
from analytics.models import Screening
from analytics.screening.kinds import FlagKind
from judging.models import Campaign

ChartMaker = Callable[[], Chart | None]
MEDIAN, QUARTILES = 2, slice(1, 4)  # of what is stored of a group: n, low, median, high
EDGES = [place / 10 for place in range(11)]
CHANCE = 0.5  # of an AUC


# -- all assessors -------------------------------------------------------------------------------------------


def overview_charts(
    screening: Screening | None, campaign: Campaign, names: Mapping[str, str]
) -> dict[str, ChartMaker]:
    """Return the pictures by name, after Figure 1 of Carterette and Soboroff (2010); `names` of assessors by key."""
    if screening is None or not screening.overview.get("assessors"):
        return {}
    shown = screening.overview
    grades = [f"{grade.value} {grade.label}" for grade in campaign.scale.grades.all()]
    people = sorted(
        ((names[key], of) for key, of in shown["assessors"].items() if key in names),
        key=lambda pair: (pair[1]["seconds"][MEDIAN] is None, pair[1]["seconds"][MEDIAN] or 0.0, pair[0]),
    )
    return {
        "seconds-by-position": partial(_by_position, shown),
        "seconds-by-grade": partial(_by_grade, shown, grades),
        "seconds-by-assessor": partial(_by_assessor, people),
        "grades-by-assessor": partial(_grades_of, people, grades),
    }


def _by_position(shown: dict[str, Any]) -> Chart | None:
    rows = shown["by_position"]
    if not any(row[0] for row in rows):
        return None
    lines = {
        name: [row[place] for row in rows]
        for place, name in ((MEDIAN, "median"), (1, "lower quartile"), (3, "upper quartile"))
    }
    return position_lines(_from_one(shown), lines, "Seconds by position", y_title="seconds")


def _from_one(shown: dict[str, Any]) -> list[int]:
    return [position + 1 for position in shown["first_position"]]


def _by_grade(shown: dict[str, Any], grades: list[str]) -> Chart | None:
    rows = shown["by_grade"]
    if not any(row[0] for row in rows) or len(rows) != len(grades):
        return None
    quartiles = [row[QUARTILES] for row in rows]
    return quartile_bars(grades, quartiles, "Seconds by grade", x_title="seconds", group="grade")


def _by_assessor(people: list[tuple[str, dict[str, Any]]]) -> Chart | None:
    timed = [(name, of["seconds"][QUARTILES]) for name, of in people if of["seconds"][0]]
    if not timed:
        return None
    names, quartiles = zip(*timed, strict=True)
    return quartile_bars(names, quartiles, "Seconds by assessor", x_title="seconds", group="assessor")


def _grades_of(people: list[tuple[str, dict[str, Any]]], grades: list[str]) -> Chart | None:
    rows = [(name, of["shares"]) for name, of in people if len(of["shares"]) == len(grades)]
    if not rows:
        return None
    names, shares = zip(*rows, strict=True)
    return grade_shares(names, grades, shares, "Grades by assessor", group="assessor")


# -- one assessor ---------------------------------------------------------------------------------------------


def flag_chart(kind: FlagKind, log: dict[str, Any] | None, name: str) -> Chart | None:
    """Return the picture that shows what a flag of this kind says; None where there is none.

    `log` is what a screening stored of the assessor: profile, and overview of all.
    """
    if not log or not kind.picture:
        return None
    return PICTURES[kind.picture](log, name, f"{kind.label}: {name}")


def _seconds_picture(log: dict[str, Any], name: str, title: str) -> Chart | None:
    shown = log["overview"]
    lines = {name: log["profile"]["seconds"], "all assessors": [one[MEDIAN] for one in shown["by_position"]]}
    if not any(value is not None for value in log["profile"]["seconds"]):
        return None
    return position_lines(_from_one(shown), lines, title, y_title="median seconds")


def _labels_picture(log: dict[str, Any], name: str, title: str) -> Chart | None:
    lines = {name: log["profile"]["relevant"]}
    if not any(value is not None for value in log["profile"]["relevant"]):
        return None
    positions = _from_one(log["overview"])
    return position_lines(positions, lines, title, y_title="share of relevant labels", is_share=True)


def _topics_picture(
    place: int, x_title: str, reference: float | None, log: dict[str, Any], name: str, title: str
) -> Chart | None:
    values = [topic[place] for topic in log["profile"]["topics"] if topic[place] is not None]
    if not values:
        return None
    counts = [0] * (len(EDGES) - 1)
    for value in values:
        counts[min(int(value * 10), len(counts) - 1)] += 1
    return histogram(EDGES, counts, title, x_title=x_title, y_title="topics", reference=reference)


PICTURES: dict[str, Callable[[dict[str, Any], str, str], Chart | None]] = {
    "seconds": _seconds_picture,
    "labels": _labels_picture,
    "fast": partial(_topics_picture, 3, "share of judgments faster than usual", None),
    "auc": partial(_topics_picture, 4, "AUC of the labels against the prior", CHANCE),
}
