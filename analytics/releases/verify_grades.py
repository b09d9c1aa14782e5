"""What the judgments of one item say together, by every rule of aggregation that needs no model.

Part of every release, beside verify.py. A new rule is an entry in RULES, a new score in CLASSES.
"""

from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]
STEPS = 12  # classes a grade


def lower_median(grades: Sequence[int]) -> int:
    """Return the median, between two grades the lower one."""
    return sorted(grades)[(len(grades) - 1) // 2]


def most_frequent(grades: Sequence[int]) -> int:
    """Return the grade given most often, of several the lowest."""
    return min(grades, key=lambda grade: (-grades.count(grade), grade))


def more_than_two_thirds(grades: Sequence[int], relevant_grade: int) -> int:
    """Return the lower median of the relevant grades where these are more than two thirds, else of the others."""
    relevant = [grade for grade in grades if grade >= relevant_grade]
    if 3 * len(relevant) > 2 * len(grades):
        return lower_median(relevant)
    return lower_median([grade for grade in grades if grade < relevant_grade])


Rule = Callable[[Sequence[int], int], int]
RULES: dict[str, Rule] = {
    "median": lambda grades, _: lower_median(grades),
    "majority": lambda grades, _: most_frequent(grades),
    "supermajority": more_than_two_thirds,
}
CLASSES: dict[str, Rule] = {
    "vote-share": lambda grades, _: round(STEPS * (sum(grades) / len(grades))),
    "supermajority": lambda grades, relevant: STEPS * more_than_two_thirds(grades, relevant),
}


def grades_of(
    rows: Sequence[Row], item: Row, manifest: Row, relevant_grade: int
) -> tuple[int | None, int | None]:
    """Return what the assessors say together, and the grade of qrels: adjudicated, else audited, else that.

    With `prefers_gold` the grade of an adjudication stands before that of an audit, and both before the others. What a
    rule with a model says is taken as it stands.
    """
    judged = [row["grade"] for row in rows if row["purpose"] == "judge"]
    audited = [row["grade"] for row in rows if row["purpose"] == "audit"]
    rule = RULES.get(manifest["aggregation"])
    joint = item["joint_grade"] if rule is None else rule(judged, relevant_grade) if judged else None
    if manifest["prefers_gold"] and item["adjudicated_grade"] is not None:
        return joint, item["adjudicated_grade"]
    if manifest["prefers_gold"] and audited:
        return joint, lower_median(audited)
    return joint, joint
