"""The grade of every item in a release's qrels, and the table of all items."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics.aggregation.grade_tables import NO_GRADE, Ints, grade_table, lower_medians
from analytics.aggregation.rules import Labels, aggregation_rule_of
from analytics.estimation.estimators import Refusal
from analytics.releases.services.judgments import Said
from analytics.releases.tables import ITEMS
from judging.models import Campaign
from judging.services.exports import adjudicated_grades

N_GRADES = 10  # a grade is one digit
PAIR = ["topic_id", "doc_id"]


class GradesRefused(ValueError):
    """The grades cannot be joined in the way that was asked for, for a reason the user can act on."""


@dataclass(frozen=True)
class Rule:
    """How several grades of an item become one."""

    aggregation: str
    prefers_gold: bool
    n_assessors: int


def graded_items(campaign: Campaign, said: Said, pairs: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """Return items.jsonl: every pair of the frame and every other item, by topic and document as bytes."""
    joint = _joint(said, rule)
    of_audit = lower_medians(_table(said, said.is_audit))
    told = said.items.with_columns(joint_grade=_nullable(joint), gold=_nullable(of_audit))
    adjudicated = pl.DataFrame(
        [(topic, doc, grade) for _, topic, doc, grade in adjudicated_grades(campaign)],
        schema={"topic_id": pl.String, "doc_id": pl.String, "adjudicated_grade": pl.Int16},
        orient="row",
    )
    everything = pl.concat([pairs.select(PAIR), said.items, adjudicated.select(PAIR)]).unique().sort(PAIR)
    table = everything.join(pairs, on=PAIR, how="left").join(told, on=PAIR, how="left")
    table = table.join(adjudicated, on=PAIR, how="left").sort(PAIR)
    first = ["adjudicated_grade", "gold", "joint_grade"] if rule.prefers_gold else ["joint_grade"]
    table = table.with_columns(
        pl.col("in_frame", "judged", "audited").fill_null(value=False), grade=pl.coalesce(first)
    )
    rest = [name for name in pairs.columns if name not in ITEMS]
    return table.select([*ITEMS, *rest])


def _table(said: Said, chosen: np.ndarray) -> np.ndarray:
    return grade_table(said.item[chosen], said.grade[chosen], said.items.height, N_GRADES)


def _nullable(grades: np.ndarray) -> pl.Series:
    return pl.Series(grades, dtype=pl.Int16).replace(NO_GRADE, None)


def _joint(said: Said, rule: Rule) -> Ints:
    """Return by item the grade of its ordinary judgments together."""
    ordinary = ~said.is_audit
    labels = Labels(
        said.item[ordinary].astype(np.int64),
        said.assessor[ordinary].astype(np.int64),
        said.grade[ordinary].astype(np.int64),
        n_items=said.items.height,
        n_assessors=rule.n_assessors,
        n_grades=max(2, int(said.grade.max(initial=0)) + 1),
    )
    grades = aggregation_rule_of(rule.aggregation).grades(labels)
    if isinstance(grades, Refusal):
        raise GradesRefused(grades.reason)
    return grades
