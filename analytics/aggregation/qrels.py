"""The grade of an item in the qrels: adjudicated, audited, or what the assessors say together."""

import polars as pl

from analytics.aggregation.grade_tables import NO_GRADE, Ints
from judging.kinds import ITEM_COLUMNS
from judging.label_aggregation import LOWER_MEDIAN


def qrels_rule(joint: str = LOWER_MEDIAN, *, prefers_gold: bool = True) -> str:
    """Return in words how several judgments of an item become one grade, for headings and data sheets.

    `joint` says in words what the assessors' grades become. Counted are the k judgments an item wants, each assessor's
    latest. Gold checks, audits of the silver tier and surplus are not counted.
    """
    if not prefers_gold:
        return joint
    return f"what a manager decided, where one has; else the gold tier's audit grade where there is one; else {joint}"


def qrels_grades(
    items: pl.DataFrame, joint: Ints, gold: Ints, adjudicated: pl.DataFrame, *, prefers_gold: bool
) -> pl.DataFrame:
    """Return the grade of every item in the qrels, by topic and document id, byte by byte.

    With gold preferred it is the adjudicated grade, else the audit's, else the assessors' together; otherwise the
    latter alone. An item without any of them is there, with a null.

    Parameters
    ----------
    items
        topic_id, doc_id.
    joint, gold
        Of each of these items the grade that the assessors gave together, and the audits' of the gold tier; or
        `NO_GRADE`.
    adjudicated
        topic_id, doc_id, adjudicated_grade: a manager's decision, also for items without other grades.

    Returns
    -------
    DataFrame
        topic_id, doc_id, joint_grade, adjudicated_grade, grade.

    Examples
    --------
    >>> import numpy as np
    >>> items = pl.DataFrame({"topic_id": ["1", "1"], "doc_id": ["b", "c"]})
    >>> decided = pl.DataFrame({"topic_id": ["1"], "doc_id": ["a"], "adjudicated_grade": [3]})
    >>> joint, gold = np.array([0, 1]), np.array([2, NO_GRADE])
    >>> qrels_grades(items, joint, gold, decided, prefers_gold=True)["grade"].to_list()
    [3, 2, 1]
    >>> qrels_grades(items, joint, gold, decided, prefers_gold=False)["grade"].to_list()
    [None, 0, 1]
    """
    graded = items.with_columns(joint_grade=_nullable(joint), gold_grade=_nullable(gold))
    together = graded.join(adjudicated, on=ITEM_COLUMNS, how="full", coalesce=True)
    first = ["adjudicated_grade", "gold_grade", "joint_grade"] if prefers_gold else ["joint_grade"]
    columns = (*ITEM_COLUMNS, "joint_grade", "adjudicated_grade")
    return together.select(*columns, grade=pl.coalesce(first)).sort(ITEM_COLUMNS)


def _nullable(grades: Ints) -> pl.Series:
    return pl.Series(grades, dtype=pl.Int16).replace(NO_GRADE, None)
