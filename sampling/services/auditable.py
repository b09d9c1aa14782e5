"""What an audit can select, read from the rows: completely judged items, with the input of the strategies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import QuerySet

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Item
from judging.services.errors import Refused
from sampling.arrays import run_table
from sampling.audit_plan import Auditable, middle_grades
from sampling.contrasts import contrast_among
from sampling.design_options import TOPIC_SELECTIONS
from sampling.frames import item_probabilities, load_frame, returned_in_frame, tags_of_then
from sampling.judged import judged_items
from sampling.measures.design_weights import PriorGrades, design_weights
from sampling.measures.families import FloatArray, Measure, grade_gains, weights_of_runs
from sampling.measures.sparse import SparseRuns
from sampling.models import Audit, AuditEntry, AuditTier, Draw
from sampling.prediction import folds
from sampling.questions import parse_designed
from sampling.selections import FOREIGN, NOT_AUDITED


class AuditRefused(Refused):
    """The audit cannot be made, for a reason the user can act on."""

    title = "The audit cannot be made"


def draws_without_audits() -> QuerySet[Draw]:
    """Return the draws whose campaigns have no audits: imported samples."""
    return Draw.objects.filter(selection=FOREIGN.key)


def refuse_foreign(campaign: Campaign) -> None:
    """Raise AuditRefused where no audit can be planned or made, as the sample was imported."""
    if draws_without_audits().filter(campaign=campaign).exists():
        raise AuditRefused(NOT_AUDITED)


def refuse_gold_judges(campaign: Campaign) -> None:
    """Raise AuditRefused where all assessors are gold judges: they judge the drawn items themselves."""
    tiers = set(campaign.assessors.values_list("tier", flat=True).distinct())
    if tiers == {AuditTier.GOLD.value}:
        raise AuditRefused(JUDGED_BY_GOLD)


JUDGED_BY_GOLD = (
    "all assessors of this campaign are gold assessors and judge the drawn documents themselves: "
    "nothing is left to audit"
)
NOT_DRAWN = "the campaign has no draw: nothing can be audited"
# The newest grade of every assessor and item, as it stands now.
GRADES = """
SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
  FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
 WHERE s.campaign_id = %s AND s.purpose IN ('judge', 'check')
 ORDER BY j.item_id, j.assessor_id, j.sequence DESC
"""
# Answers on gold checks, by true and given grade: never an audit's, or later probabilities would depend on it.
CHECK_COUNTS = """
SELECT a.grade, g.grade, count(*)
  FROM (SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
          FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
         WHERE s.campaign_id = %s AND (s.purpose = 'check' OR s.was = 'check')
         ORDER BY j.item_id, j.assessor_id, j.sequence DESC) g
  JOIN judging_item i ON i.id = g.item_id
  JOIN judging_goldanswer a ON a.topic_id = i.topic_id AND a.document_id = i.document_id AND a.grade IS NOT NULL
 GROUP BY 1, 2
"""


def auditable(
    campaign: Campaign,
    newest: Draw,
    items: list[Item],
    tier: str,
    *,
    measure: Measure[Any],
    gold_spread: FloatArray | None = None,
    has_learned: bool = False,
    of_runs: Sequence[str] = (),
) -> Auditable:
    """Return the input of every strategy at these items, for an audit by the tier. `newest` is the last batch.

    `measure` is that of `audit_measure`; influence is that on the question of the newest draw, or on `of_runs`.

    `gold_spread` is what gold of other folds predicts; `has_learned`: earlier probabilities say it, too.
    """
    drawn = item_probabilities(campaign)
    place = {item.pk: index for index, item in enumerate(items)}
    topics = {topic: index for index, topic in enumerate(sorted({item.topic_id for item in items}))}
    scale = campaign.scale
    relevant = measure.relevant_grade or scale.relevant_grade
    gains = grade_gains(measure, scale.gains(), relevant)
    judged = judged_items(
        _weights(campaign, newest, measure, items, gains[relevant:], of_runs),
        inclusion_probability=np.array([drawn[item.pk] for item in items]),
        topic_index=np.array([topics[item.topic_id] for item in items], dtype=np.int64),
        bronze_grade=bronze_grades(campaign, place),
        check_counts=check_counts(campaign),
        gains=gains,
        fold=_folds(items, newest.seed) if has_learned or gold_spread is not None else None,
        gold_spread=gold_spread,
    )
    return Auditable(judged, earlier_probabilities(campaign, tier, place), has_learned)


def audit_measure(campaign: Campaign, newest: Draw, asked: str = "") -> Measure[Any]:
    """Return the measure that an audit goes by: what is asked for, else that of the newest draw.

    AuditRefused where no audit can be designed for it.
    """
    try:
        measure = parse_designed(asked or newest.parameters["measure"], TOPIC_SELECTIONS[0].key)
        gains = grade_gains(
            measure, campaign.scale.gains(), measure.relevant_grade or campaign.scale.relevant_grade
        )
    except ValueError as error:
        raise AuditRefused(str(error)) from error
    if measure.last_rank > newest.parameters["depth"]:
        raise AuditRefused(
            f"{measure.name} looks deeper than rank {newest.parameters['depth']}, to which documents were pooled"
        )
    if not measure.kind.is_sum:
        if not campaign.collection.runs.exists():
            raise AuditRefused(f"an audit for {measure.name} goes by runs, and the collection has none")
        if not gains[campaign.scale.relevant_grade :].any():
            raise AuditRefused(f"no relevant grade has a gain above 0 in {measure.name}")
    return measure


def _folds(items: list[Item], seed: int) -> np.ndarray:
    """Return the fold of every item, as the frame of its draw has it."""
    return folds([item.key.topic for item in items], [item.key.document for item in items], seed)


def asked_runs(draw: Draw, run_ids: list[str]) -> list[int]:
    """Return the places of the runs that the draw's question is about: all of them where it names none."""
    places = [index for index, run_id in enumerate(run_ids) if run_id in draw.parameters["runs"]]
    is_pool = draw.question == "pool"
    return list(range(len(run_ids))) if is_pool or not places else places


def bronze_grades(campaign: Campaign, place: dict[Any, int]) -> np.ndarray:
    """Return the median grade, between two the lower one, of the items that `place` numbers from 0."""
    labels = [(place[item], grade) for item, grade in _query(GRADES, campaign) if item in place]
    columns = np.array(labels, dtype=np.int64).reshape(-1, 2)
    return middle_grades(columns[:, 0], columns[:, 1], len(place))


def _weights(
    campaign: Campaign,
    newest: Draw,
    measure: Measure[Any],
    items: list[Item],
    relevant_gains: FloatArray,
    of_runs: Sequence[str],
) -> SparseRuns:
    """Return the weights of the question's runs at the items; of a ratio one row, their contrast.

    A ratio's weights depend on the whole frame, and on what was predicted of it before anything was judged.
    """
    runs = list(campaign.collection.runs.all())
    pairs = pl.DataFrame([item.key[:2] for item in items], schema=list(ITEM_COLUMNS), orient="row")
    run_ids = [run.run_id for run in runs]
    rows = [run_ids.index(name) for name in of_runs] or asked_runs(newest, tags_of_then(newest, runs))
    asked, depth = [runs[run] for run in rows], newest.parameters["depth"]
    n_topics = len(newest.parameters["topics"])
    if measure.kind.is_sum:
        return weights_of_runs(measure, returned_in_frame(pairs, asked, depth), n_topics)
    frame = load_frame(newest)
    topic = frame["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1
    prior = PriorGrades(topic, frame["prior"].to_numpy(), relevant_gains)
    contrast = contrast_among(
        design_weights(measure, returned_in_frame(frame, asked, depth), n_topics, prior)
    )
    numbered = frame.select(*ITEM_COLUMNS).with_row_index("place")
    places = pairs.join(numbered, on=ITEM_COLUMNS, how="left", maintain_order="left")["place"]
    return run_table("contrast", contrast[places.to_numpy()][None])


def check_counts(campaign: Campaign) -> np.ndarray:
    """Return how often each grade was given for each true grade, on gold checks."""
    n_grades = len(campaign.scale.values())
    counts = np.zeros((n_grades, n_grades))
    for true, given, n in _query(CHECK_COUNTS, campaign):
        if 0 <= true < n_grades:  # a gold answer may be off this campaign's scale
            counts[true, given] += n
    return counts


def earlier_probabilities(campaign: Campaign, tier: str, place: dict[Any, int]) -> np.ndarray:
    """Return by item the largest probability that an audit of the tier gave it, 0 for none."""
    best = np.zeros(len(place))
    rows = AuditEntry.objects.filter(
        audit__in=Audit.objects.filter(campaign=campaign, tier=tier, declaration="")
    )
    for item_id, probability in rows.values_list("item_id", "inclusion_probability").iterator():
        if item_id in place:
            best[place[item_id]] = max(best[place[item_id]], probability)
    return best


def _query(sql: str, campaign: Campaign) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [campaign.pk])
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
