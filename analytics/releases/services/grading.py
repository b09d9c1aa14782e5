"""The grade of every item in a release's qrels, and the table of all items."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics.aggregation.grade_tables import lower_medians
from analytics.aggregation.qrels import qrels_grades
from analytics.aggregation.rules import AggregationRule
from analytics.estimation.estimate import Refusal
from analytics.estimation.samples import Labels
from analytics.releases.services.judgments import JudgmentSummary
from analytics.releases.tables import ITEMS
from analytics.services.judgment_rows import adjudicated_grades
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign
from judging.services.errors import Refused


class GradesRefused(Refused):
    """The grades cannot be aggregated by the rule that was asked for, for a reason the user can act on."""

    status = 409
    title = "These grades cannot be aggregated by this rule"


@dataclass(frozen=True)
class Grading:
    """How several grades of an item become one."""

    rule: AggregationRule
    prefers_gold: bool
    n_assessors: int
    relevant_grade: int


def graded_items(
    campaign: Campaign, judged: JudgmentSummary, pairs: pl.DataFrame, grading: Grading
) -> pl.DataFrame:
    """Return items.jsonl: every pair of the frame and every other item, by topic and document as bytes."""
    joint = grading.rule.grades(_labels(judged, ~judged.is_audit, grading))
    if isinstance(joint, Refusal):
        raise GradesRefused(joint.reason)
    gold = lower_medians(_labels(judged, judged.is_audit, grading).table())
    decided = adjudicated_grades(campaign)
    graded = qrels_grades(judged.items, joint, gold, decided, prefers_gold=grading.prefers_gold)
    everything = (
        pl.concat([pairs.select(ITEM_COLUMNS), graded.select(ITEM_COLUMNS)]).unique().sort(ITEM_COLUMNS)
    )
    table = (
        everything.join(pairs, on=ITEM_COLUMNS, how="left")
        .join(graded, on=ITEM_COLUMNS, how="left")
        .sort(ITEM_COLUMNS)
    )
    table = table.with_columns(pl.col("in_frame", "judged", "audited").fill_null(value=False))
    rest = [name for name in pairs.columns if name not in ITEMS]
    return table.select([*ITEMS, *rest])


def _labels(judged: JudgmentSummary, chosen: np.ndarray, grading: Grading) -> Labels:
    item, assessor, grade = (
        column[chosen].astype(np.int64) for column in (judged.item, judged.assessor, judged.grade)
    )
    n_grades = max(2, int(judged.grade.max(initial=0)) + 1)
    n_items = judged.items.height
    return Labels(item, assessor, grade, n_items, grading.n_assessors, n_grades, grading.relevant_grade)
