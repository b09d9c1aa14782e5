"""What few rows meet: filters are looked up by an index each, so many keys at most, before a list is read in its order.

A list that is read in its order would look long for a grade that nobody gave. Here such a grade costs one look at an
index. Each answer has all that meets its filter, and maybe more: whoever reads the rows asks them for all conditions.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from judging.models.collections import LONGEST_INDEXED

FEW = 5000  # rows at most that are found so, and then put into order
# Whose judgments are asked for.
_JUDGES = """
WITH judges AS MATERIALIZED (
  SELECT a.id FROM judging_assessor a
   WHERE a.campaign_id = %(campaign)s AND (a.id = %(who)s OR NOT %(is_named)s)
     AND a.tier = coalesce(%(tier)s, a.tier) AND a.kind = coalesce(%(kind)s, a.kind))
"""
# One after the other, by an index that begins with them: a plan for all at once may be a walk through the table.
_OF_JUDGES = """ARRAY(
SELECT j.{key} FROM judges a CROSS JOIN LATERAL (
  SELECT j.id, j.item_id FROM judging_judgment j WHERE j.assessor_id = a.id AND {condition} LIMIT %(most)s) j
 LIMIT %(most)s)
"""
# Judgments by a filter, or by what is asked of their assessors.
_JUDGMENTS: dict[str, str] = {
    "assessor": _OF_JUDGES.format(key="id", condition="TRUE"),
    "grade": _OF_JUDGES.format(key="id", condition="j.grade = %(grade)s"),
    "obstacle": _OF_JUDGES.format(
        key="id", condition="j.grade IS NULL AND (j.obstacle = %(obstacle)s OR %(obstacle)s = 'any')"
    ),
    "seconds_below": _OF_JUDGES.format(key="id", condition="j.active_milliseconds < %(seconds_below)s"),
    "seconds_above": _OF_JUDGES.format(key="id", condition="j.active_milliseconds > %(seconds_above)s"),
    "comment": """ARRAY(
SELECT j.id FROM judging_judgment j
 WHERE j.comment <> '' AND j.assessor_id = ANY(ARRAY(SELECT a.id FROM judges a)) ORDER BY j.id DESC LIMIT %(most)s)
""",
    # A slot that is done has one judgment at least. The ordinary purpose is never rare in what is not small.
    "purpose": """ARRAY(
SELECT j.id FROM (
  SELECT s.id, s.item_id FROM judging_slot s
   WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s AND s.state = 'done' LIMIT %(most)s) s
 CROSS JOIN LATERAL (
  SELECT j.id FROM judging_judgment j WHERE j.item_id = s.item_id AND j.slot_id = s.id LIMIT %(most)s) j
 LIMIT %(most)s)
""",
    # Whose they are is not asked: in a time with few judgments there are few of everybody's.
    "time": """ARRAY(
SELECT j.id FROM judging_judgment j
 WHERE j.created_at >= coalesce(%(since)s::timestamptz, '-infinity')
   AND j.created_at < coalesce(%(before)s::timestamptz, 'infinity')
 ORDER BY j.created_at, j.id LIMIT %(most)s)
""",
}
_WANTING = """ARRAY(
SELECT s.item_id FROM judging_slot s
 WHERE s.campaign_id = %(campaign)s AND s.purpose IN ('judge', 'check') AND s.state <> 'done' LIMIT %(most)s)
"""
_BEGUN = _OF_JUDGES.format(key="item_id", condition="TRUE")
# Items by their state: those that lack a judgment, or that have one.
_ITEMS: dict[str, tuple[str, ...]] = {
    "open": (_WANTING,),
    "partly": (_WANTING, _BEGUN),
    "complete": (_BEGUN,),
    "decided": (
        """ARRAY(
SELECT d.item_id FROM judging_adjudication d JOIN judging_item i ON i.id = d.item_id
 WHERE i.campaign_id = %(campaign)s LIMIT %(most)s)
""",
    ),
    "stuck": (
        "ARRAY(SELECT s.item_id FROM judging_stuckitem s WHERE s.campaign_id = %(campaign)s LIMIT %(most)s)",
    ),
}
# Items whose document or topic has all the words in its title; NULL where many documents or topics do.
_TITLED = """(
WITH d AS MATERIALIZED ({documents} LIMIT %(most)s), t AS MATERIALIZED ({topics} LIMIT %(most)s)
SELECT CASE WHEN (SELECT count(*) FROM d) < %(most)s AND (SELECT count(*) FROM t) < %(most)s THEN
  ARRAY(SELECT i.id FROM judging_item i
         WHERE i.campaign_id = %(campaign)s AND i.document_id = ANY(ARRAY(SELECT d.id FROM d)) LIMIT %(most)s)
  || ARRAY(SELECT i.id FROM judging_item i
            WHERE i.campaign_id = %(campaign)s AND i.topic_id = ANY(ARRAY(SELECT t.id FROM t)) LIMIT %(most)s)
  END)
"""
# The words as the index has them: judging.models.collections.words_of.
_WORDS = f"to_tsvector('simple'::regconfig, coalesce(left(r.title, {LONGEST_INDEXED}), ''))"
_OF_COLLECTION = """
SELECT r.id FROM {table} r
 WHERE r.collection_id = (SELECT c.collection_id FROM judging_campaign c WHERE c.id = %(campaign)s)
   AND {words} @@ plainto_tsquery('simple', %(q)s)
"""


@dataclass(frozen=True)
class FewRows:
    """The keys among which all judgments, and all items, are that filters ask for; None: they are not few."""

    judgments: frozenset[int] | None
    items: frozenset[uuid.UUID] | None


def few_rows(campaign_id: uuid.UUID, asked: Mapping[str, Any], assessor: int | None) -> FewRows:
    """Return what few rows meet of what is asked; `assessor`: whom the filter of that name means."""
    by_judgment = [_JUDGMENTS[name] for name in _names(asked)]
    by_item = [*_ITEMS.get(asked.get("state", ""), ())]
    if "q" in asked:
        tables = {"documents": "judging_document", "topics": "judging_topic"}
        titled = {name: _OF_COLLECTION.format(table=table, words=_WORDS) for name, table in tables.items()}
        by_item.append(_TITLED.format(**titled))
    if not by_judgment and not by_item:
        return FewRows(None, None)
    keys = {"since": None, "before": None, "tier": None, "kind": None, **asked, "campaign": campaign_id}
    keys |= {"who": assessor, "is_named": "assessor" in asked, "most": FEW + 1}
    with connection.cursor() as cursor:
        cursor.execute(f"{_JUDGES} SELECT {', '.join([*by_judgment, *by_item])}", keys)
        found = cursor.fetchone()
    return FewRows(_smallest(found[: len(by_judgment)]), _smallest(found[len(by_judgment) :]))


def _names(asked: Mapping[str, Any]) -> Iterable[str]:
    for name in _JUDGMENTS:
        if name in asked and (name, asked[name]) != ("purpose", "judge"):
            yield name
    if "comment_words" in asked and "comment" not in asked:
        yield "comment"
    if {"tier", "kind"} & asked.keys() and "assessor" not in asked:
        yield "assessor"
    if {"since", "before"} & asked.keys():
        yield "time"


def _smallest(found: Iterable[Sequence[Any] | None]) -> frozenset[Any] | None:
    """Return what is in all that are few."""
    few = [frozenset(keys) for keys in found if keys is not None and len(keys) <= FEW]
    return frozenset.intersection(*few) if few else None


def keys_of_few(rows: QuerySet[Any]) -> list[Any] | None:
    """Return the keys of the rows; None where they are not few."""
    keys = list(rows.order_by().values_list("pk", flat=True)[: FEW + 1])
    return keys if len(keys) <= FEW else None
