"""Files out: qrels, qrels_jg and prels of a campaign, line by line, in an order that no host or locale changes.

Each is one query, so one snapshot, read through a cursor on the server: memory does not grow with the campaign.
"""

import hashlib
import heapq
import hmac
import uuid
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models.functions import Collate

from judging.label_aggregation import LOWER_MEDIAN
from judging.models import Adjudication, Campaign, Judgment, Slot
from judging.trec import (
    JudgmentRecord,
    PrelRecord,
    QrelRecord,
    write_prels,
    write_qrels,
    write_qrels_jg,
)

CHUNK = 5000
DRAWN_METHOD = 1  # the prels code of a pair drawn with the probability on its line


class _Counted(NamedTuple):
    item_id: uuid.UUID
    topic_id: str
    doc_id: str
    assessor: int
    purpose: str
    grade: int


def export_qrels(*, campaign: Campaign, prefer_gold: bool = True) -> Iterator[str]:
    """Return the lines ``topic 0 document grade``, one a judged item, ordered by topic and document id.

    The grade is what `qrels_rule` says.
    """
    grades = _item_grades(campaign, prefer_gold)
    return write_qrels(QrelRecord(topic_id, doc_id, grade) for _, topic_id, doc_id, grade in grades)


def qrels_rule(*, prefer_gold: bool = True, rule: str = LOWER_MEDIAN) -> str:
    """Return in words how several judgments of an item become one grade, for headings and data sheets.

    Counted are the k wanted judgments, each assessor's latest. Gold checks, audits of the silver tier and surplus are
    not counted.
    """
    if not prefer_gold:
        return rule
    return f"what a manager decided, where one has; else the gold tier's audit grade where there is one; else {rule}"


def adjudicated_grades(campaign: Campaign) -> list[tuple[uuid.UUID, str, str, int]]:
    """Return item, topic id, document id and grade of every item that a manager decided: the newest word counts.

    By topic and document id, byte by byte.
    """
    newest = (
        Adjudication.objects.filter(item__campaign=campaign)
        .order_by("item_id", "-id")
        .distinct("item_id")
        .values_list("item_id", "item__topic__topic_id", "item__document__doc_id", "grade")
    )
    return sorted(newest, key=lambda row: (row[1].encode(), row[2].encode()))


def export_qrels_jg(*, campaign: Campaign) -> Iterator[str]:
    """Return the lines ``topic assessor document grade`` of every counted judgment and every audit judgment.

    Assessors are `pseudonym`s; within an item they are in that order, which tells nothing about who came first.
    """

    def lines() -> Iterator[JudgmentRecord]:
        for _, rows in groupby(_counted(campaign), attrgetter("item_id")):
            named = sorted((pseudonym(campaign, row.assessor), row) for row in rows)
            for name, row in named:
                yield JudgmentRecord(row.topic_id, row.doc_id, name, row.grade)

    return write_qrels_jg(lines())


def export_prels(
    *,
    campaign: Campaign,
    probabilities: Mapping[uuid.UUID, float] | Iterable[tuple[uuid.UUID, float]],
    prefer_gold: bool = True,
) -> Iterator[str]:
    """Return the lines ``topic document grade method probability`` of the judged items that were drawn.

    `probabilities` are the items' inclusion probabilities; an item without one was not drawn and is left out.
    """
    known = dict(probabilities)
    grades = _item_grades(campaign, prefer_gold)
    return write_prels(
        PrelRecord(topic_id, doc_id, grade, DRAWN_METHOD, known[item_id])
        for item_id, topic_id, doc_id, grade in grades
        if item_id in known
    )


def pseudonym(campaign: Campaign, assessor_id: int) -> str:
    """Return the assessor's name in files: stable within the campaign, unrelated across campaigns, no way back."""
    key = hmac.digest(settings.SECRET_KEY.encode(), f"assessors of {campaign.pk}".encode(), hashlib.sha256)
    return hmac.new(key, str(assessor_id).encode(), hashlib.sha256).hexdigest()[:12]


def _item_grades(campaign: Campaign, prefer_gold: bool) -> Iterator[tuple[uuid.UUID, str, str, int]]:
    judged = _judged_grades(campaign, prefer_gold)
    if not prefer_gold:
        yield from judged
        return
    decided = adjudicated_grades(campaign)
    known = {row[0] for row in decided}
    others = (row for row in judged if row[0] not in known)
    yield from heapq.merge(decided, others, key=lambda row: (row[1].encode(), row[2].encode()))


def _judged_grades(campaign: Campaign, prefer_gold: bool) -> Iterator[tuple[uuid.UUID, str, str, int]]:
    for item_id, group in groupby(_counted(campaign), attrgetter("item_id")):
        rows = list(group)
        audited = [row for row in rows if row.purpose == Slot.Purpose.AUDIT]
        judged = [row for row in rows if row.purpose == Slot.Purpose.JUDGE]
        chosen = audited if prefer_gold and audited else judged
        if chosen:
            yield item_id, chosen[0].topic_id, chosen[0].doc_id, _lower_median([row.grade for row in chosen])


def _lower_median(grades: list[int]) -> int:
    return sorted(grades)[(len(grades) - 1) // 2]


def _counted(campaign: Campaign) -> Iterator[_Counted]:
    """Return the latest grade of every filled slot but gold checks; items by topic and document id, byte by byte."""
    rows: Any = (
        Judgment.objects.filter(
            item__campaign=campaign,
            slot__purpose__in=[Slot.Purpose.JUDGE, Slot.Purpose.AUDIT, Slot.Purpose.SILVER],
        )
        .order_by(
            Collate("item__topic__topic_id", "C"),
            Collate("item__document__doc_id", "C"),
            "assessor_id",
            "-sequence",
        )
        .values_list(
            "item_id",
            "item__topic__topic_id",
            "item__document__doc_id",
            "assessor_id",
            "slot__purpose",
            "grade",
        )
    )
    newest = None
    for row in map(_Counted._make, rows.iterator(chunk_size=CHUNK)):
        if (row.item_id, row.assessor) != newest:
            newest = (row.item_id, row.assessor)
            yield row
