"""Imported scores calibrated on another campaign or collection: where there are gold and scores of the same name.

Gold counts that was there before the first draw of the campaign that uses it. So the coefficients are fixed before
anything is drawn, whatever the two have in common, and a top-up has those of the batch before.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import Exists, OuterRef, Q

from judging.kinds import ITEM_COLUMNS
from judging.models import Assessor, Campaign, Collection, GoldAnswer, ScoreList, Slot
from judging.rankings import rankings_frame, read_rankings
from sampling.frames import FrameRefused, returned_in_frame
from sampling.measures.families import Measure
from sampling.questions import Design, parse_designed, prior_of_runs
from sampling.score_calibration import Calibration, fit_calibration, is_binary, log_popularity
from touchstone.files import local
from touchstone.models import User

# The newest grade that every gold assessor gave an item by then.
GOLD_OF_CAMPAIGN = """
SELECT t.topic_id, d.doc_id, g.grade
  FROM (SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
          FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
                                  JOIN judging_assessor a ON a.id = j.assessor_id
         WHERE s.campaign_id = %s AND (s.purpose = 'audit' OR a.tier = 'gold' AND s.purpose IN ('judge', 'check'))
           AND (%s::timestamptz IS NULL OR j.created_at < %s)
         ORDER BY j.item_id, j.assessor_id, j.sequence DESC) g
  JOIN judging_item i ON i.id = g.item_id
  JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
 WHERE g.grade IS NOT NULL
"""
GOLD_OF_COLLECTION = """
SELECT t.topic_id, d.doc_id, g.grade
  FROM judging_goldanswer g JOIN judging_topic t ON t.id = g.topic_id JOIN judging_document d ON d.id = g.document_id
 WHERE t.collection_id = %s AND g.grade IS NOT NULL AND (%s::timestamptz IS NULL OR g.created_at < %s)
"""


class CalibrationRefused(FrameRefused):
    """The scores cannot be calibrated there, for a reason the user can act on."""

    title = "The scores cannot be calibrated there"


@dataclass(frozen=True)
class GoldSource:
    """A campaign, with the gold that its audits or gold assessors gave, or a collection with its gold answers."""

    collection: Collection
    campaign: Campaign | None = None

    @property
    def id(self) -> str:
        return str((self.campaign or self.collection).pk)

    @property
    def noun(self) -> str:
        return "campaign" if self.campaign else "collection"

    @property
    def words(self) -> str:
        """Return what it is, with its name."""
        return f"{self.noun} {(self.campaign or self.collection).name}"


# -- which sources there are --------------------------------------------------------------------------------


def gold_sources(campaign: Campaign, user: User | None) -> list[GoldSource]:
    """Return what scores of the campaign's collection may be calibrated on, collections first, each by name.

    Only what the user may see; None is the command line, which sees all that is not deleted.
    """
    names = campaign.collection.score_lists.values("name")
    collections, campaigns = _visible(user)
    of_collection = GoldAnswer.objects.filter(topic__collection=OuterRef("pk"))
    has_scores = ScoreList.objects.filter(name__in=names)
    audited = Slot.objects.filter(campaign=OuterRef("pk"), purpose=Slot.Purpose.AUDIT, state=Slot.State.DONE)
    gold_judges = Assessor.objects.filter(campaign=OuterRef("pk"), tier=Assessor.Tier.GOLD, n_judged__gt=0)
    return [
        *(
            GoldSource(found)
            for found in collections.filter(
                Exists(has_scores.filter(collection=OuterRef("pk"))), Exists(of_collection)
            ).order_by("name")
        ),
        *(
            GoldSource(found.collection, found)
            for found in campaigns.exclude(pk=campaign.pk)
            .filter(Exists(has_scores.filter(collection=OuterRef("collection"))))
            .filter(Exists(audited) | Exists(gold_judges))
            .select_related("collection")
            .order_by("name")
        ),
    ]


def find_source(campaign: Campaign, reference: str, user: User | None) -> GoldSource:
    """Return the campaign or collection of that id or name; what the user may not see is not there."""
    collections, campaigns = _visible(user)
    try:
        wanted = Q(pk=uuid.UUID(reference))
    except ValueError:
        wanted = Q(name=reference)
    found = [GoldSource(one) for one in collections.filter(wanted)]
    found += [
        GoldSource(one.collection, one) for one in campaigns.filter(wanted).select_related("collection")
    ]
    if not found:
        raise CalibrationRefused(f"there is no campaign or collection {reference!r}")
    if len(found) > 1:
        raise CalibrationRefused(f"both a campaign and a collection are named {reference!r}: give the id")
    if found[0].campaign == campaign:
        raise CalibrationRefused(
            "a campaign's scores are calibrated elsewhere: its own gold comes after its draw"
        )
    return found[0]


def with_source(campaign: Campaign, design: Design, user: User | None) -> Design:
    """Return the design with the id of what it is calibrated on, if that is there for the user.

    Also where an earlier batch recorded these very coefficients: then nothing is read there.
    """
    if not design.calibrated_on or recorded_calibration(campaign, design) is not None:
        return design
    return replace(design, calibrated_on=find_source(campaign, design.calibrated_on, user).id)


def _visible(user: User | None) -> tuple[Any, Any]:
    if user is not None:
        return Collection.objects.visible_to(user), Campaign.objects.visible_to(user)
    collections = Collection.objects.filter(deleted_at=None)
    return collections, Campaign.objects.filter(deleted_at=None, collection__in=collections)


# -- what they say ------------------------------------------------------------------------------------------


def calibration_of(campaign: Campaign, design: Design, measure: Measure[Any]) -> Calibration | None:
    """Return what the design's scores are worth by gold elsewhere; None for a design that assumes it.

    The coefficients of an earlier batch of the campaign that was calibrated alike; else a fit to the gold that was
    there before its first batch.
    """
    if not design.calibrated_on:
        return None
    recorded = recorded_calibration(campaign, design)
    return _fit_there(campaign, design, measure) if recorded is None else recorded


def recorded_calibration(campaign: Campaign, design: Design) -> Calibration | None:
    """Return the coefficients that an earlier batch recorded for these scores, this source, depth and relevance."""
    relevant = parse_designed(design.measure, design.topic_selection).relevant_grade
    for draw in campaign.draws.order_by("batch"):
        before = draw.parameters
        if (
            before.get("calibrated_on") == design.calibrated_on
            and (before["scores"], before["depth"]) == (design.scores, design.depth)
            and parse_designed(before["measure"], before["topic_selection"]).relevant_grade == relevant
        ):
            return Calibration(**before["calibration"])
    return None


def n_gold_there(campaign: Campaign, design: Design) -> int | None:
    """Return how much gold a fit would read now, whether or not it has a score; None where nothing is fitted."""
    if not design.calibrated_on or recorded_calibration(campaign, design) is not None:
        return None
    try:
        return len(_gold(find_source(campaign, design.calibrated_on, user=None), _cutoff(campaign)))
    except CalibrationRefused:  # what it says is for the forecast itself to say
        return 0


def stored_scores(score_list: ScoreList) -> pl.DataFrame:
    """Return topic_id, doc_id and score of every line of imported scores."""
    return rankings_frame(read_rankings(local(score_list.scores))).select(*ITEM_COLUMNS, "score")


def _fit_there(campaign: Campaign, design: Design, measure: Measure[Any]) -> Calibration:
    source = find_source(campaign, design.calibrated_on, user=None)
    where = f"the {source.noun} to calibrate on"  # unnamed: others may read it, too
    there = source.collection.score_lists.filter(name=design.scores).first()
    if there is None:
        raise CalibrationRefused(f"{where} has no scores named {design.scores!r}")
    scores = stored_scores(there)
    own = stored_scores(campaign.collection.score_lists.get(name=design.scores))
    if is_binary(scores["score"]) != is_binary(own["score"]):
        one, other = ("yes or no", "graded") if is_binary(scores["score"]) else ("graded", "yes or no")
        raise CalibrationRefused(
            f"the scores {design.scores!r} are on another scale there: {one} in {where}, {other} here"
        )
    runs = list(source.collection.runs.all())
    if not runs:
        raise CalibrationRefused(f"{where} has no runs: how popular a document is cannot be said there")
    scale = (source.campaign or campaign).scale
    relevant = _relevant_gold(source, measure.relevant_grade or scale.relevant_grade, _cutoff(campaign))
    known = relevant.join(scores, on=ITEM_COLUMNS, how="inner", maintain_order="left")
    returned = returned_in_frame(known, runs, design.depth)
    is_pooled = returned.item_sums(np.ones(returned.value.size)) > 0
    try:
        return fit_calibration(
            prior_of_runs(returned, design.depth)[is_pooled],
            known["score"].to_numpy()[is_pooled],
            log_popularity(returned, design.depth)[is_pooled],
            known["relevant"].to_numpy()[is_pooled],
        )
    except ValueError as error:
        raise CalibrationRefused(
            f"{where} does not say what {design.scores!r} is worth: among what its runs return within rank "
            f"{design.depth}, {error}"
        ) from error


def _cutoff(campaign: Campaign) -> datetime | None:
    first = campaign.draws.order_by("batch").first()
    return first.created_at if first else None


def _relevant_gold(source: GoldSource, relevant_grade: int, before: datetime | None) -> pl.DataFrame:
    """Return topic_id, doc_id and how relevant gold says it is: 0, 1, or the share of gold judges who say so."""
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevant": pl.Float64}
    frame = pl.DataFrame(
        [
            (topic, document, float(grade >= relevant_grade))
            for topic, document, grade in _gold(source, before)
        ],
        schema,
        orient="row",
    )
    return frame.group_by(ITEM_COLUMNS).agg(pl.col("relevant").mean()).sort(ITEM_COLUMNS)


def _gold(source: GoldSource, before: datetime | None) -> list[tuple[str, str, int]]:
    """Return topic, document and grade of all gold that was there before that moment."""
    sql = GOLD_OF_CAMPAIGN if source.campaign else GOLD_OF_COLLECTION
    with connection.cursor() as cursor:
        cursor.execute(sql, [source.id, before, before])
        return list(cursor.fetchall())
