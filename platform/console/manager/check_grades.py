"""What the ways to choose the grades of checks would tell and measure, as the settings of a campaign show it."""

from dataclasses import replace
from typing import Any

from judging.check_grades import told_by_grade
from judging.models import Campaign, Collection
from judging.services.check_gold import check_choices, gold_grades

PER = 100  # checks: how many there will be is known with the draw


def check_grades_shown(collection: Collection, campaign: Campaign | None = None) -> dict[str, Any]:
    """Return the choices with their figures; without a gold answer there are none.

    The shares among ordinary items, and the checks, are those that the newest draw recorded: what a page costs does not
    grow with what is judged. Before that they are of the gold answers.
    """
    grades = list(campaign.scale.grades.all()) if campaign else []
    known = gold_grades(collection, [grade.value for grade in grades])
    if known is None:
        return {"check_choices": []}
    batch, recorded = _newest_record(campaign)
    checks: list[int] = recorded.get("checks", [])
    if batch:
        known = replace(known, shares=recorded["ordinary"], are_labels=recorded["ordinary_of"] == "labels")
    n_checks = sum(checks)
    choices = check_choices(known, n_checks or PER)
    rarest = choices[0].rarest
    label = grades[rarest].label if grades else ""
    return {
        "check_choices": choices,
        "check_known": known,
        "check_batch": batch,
        "check_rarest": f"{rarest} {label}".strip(),
        "check_total": n_checks or PER,
        "check_told": told_by_grade(known.shares, [n / n_checks for n in checks]) if n_checks else None,
    }


def _newest_record(campaign: Campaign | None) -> tuple[int, dict[str, Any]]:
    """Return the newest batch whose draw recorded grades of checks, and what it recorded; 0 where none did."""
    draws = campaign.draws.all() if campaign else []
    found = [(one.batch, one.parameters["check_grades"]) for one in draws if "check_grades" in one.parameters]
    return max(found, key=lambda one: one[0], default=(0, {}))
