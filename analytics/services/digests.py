"""Digests of items: what lists filter and order by and no index of facts serves, written with a computation.

Only items are written that were judged since the computation before, and all of them where judgments were set aside
meanwhile. The counts of a computation (`activity`) say up to which judgment all is written, and as of when.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.utils import timezone

from analytics.frames import CampaignArrays
from analytics.models import Computation, ItemDigest
from analytics.services.confusions import ConfusionCounts
from analytics.services.disputed import doubtful_labels
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Item
from judging.services.few import keys_of_few
from judging.services.filtered import FilteredRows
from judging.services.imports import TOOK_BACK
from judging.services.queries import about_items, with_keys
from touchstone.models import Event

AT_ONCE = 5000
# What makes judgments count no longer, without one that comes: an event that begins so.
SET_ASIDE = ("requeued", "set aside", TOOK_BACK)
COMMIT_MAY_TAKE = timedelta(seconds=5)
# The orders of items that digests serve, as pages, API and commands name them, and the columns they stand for.
ORDERS = {
    "newest": "digest__newest",
    "spread": "digest__spread",
    "influence": "digest__influence",
    "seconds": "digest__milliseconds",
}
# A change of mind counts as its newest grade; what was set aside or is surplus does not count.
_FOUND = """
WITH changed AS (
  SELECT DISTINCT j.item_id FROM judging_judgment j
    JOIN judging_assessor a ON a.id = j.assessor_id
   WHERE a.campaign_id = %(campaign)s AND j.id > %(after)s),
standing AS (
  SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id,
         CASE WHEN s.purpose <> 'void' THEN j.grade END AS grade,
         max(j.active_milliseconds) OVER w AS milliseconds, max(j.id) OVER w AS newest
    FROM changed c JOIN judging_judgment j ON j.item_id = c.item_id LEFT JOIN judging_slot s ON s.id = j.slot_id
  WINDOW w AS (PARTITION BY j.item_id, j.assessor_id)
   ORDER BY j.item_id, j.assessor_id, j.sequence DESC)
SELECT i.id, t.topic_id, d.doc_id, max(s.grade) - min(s.grade), max(s.milliseconds), max(s.newest)
  FROM standing s JOIN judging_item i ON i.id = s.item_id
  JOIN judging_topic t ON t.id = i.topic_id JOIN judging_document d ON d.id = i.document_id
 GROUP BY 1, 2, 3 ORDER BY 1
"""
_STORE = """
INSERT INTO analytics_itemdigest (item_id, spread, milliseconds, newest, influence, campaign_id, computation)
SELECT f.*, %s::uuid, %s FROM unnest(%s::uuid[], %s::smallint[], %s::integer[], %s::bigint[], %s::float8[]) f
    ON CONFLICT (item_id) DO UPDATE SET spread = excluded.spread, milliseconds = excluded.milliseconds,
       newest = excluded.newest, influence = excluded.influence, computation = excluded.computation
"""


def digests_until(activity: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a computation's counts say of digests: up to which judgment all are written, and as of when."""
    return {"until": activity["until"], "at": timezone.now().isoformat()}


def store_digests(
    computation: Computation, arrays: CampaignArrays, counts: ConfusionCounts, before: Mapping[str, Any]
) -> int:
    """Write the digests of the items judged since `before`, as the computation before says; return how many."""
    campaign = computation.campaign
    known = before.get("until", 0)
    is_known = known <= computation.activity["until"] and not _were_set_aside(campaign, before)
    after = known if is_known else 0
    with connection.cursor() as cursor:
        cursor.execute(_FOUND, {"campaign": campaign.pk, "after": after})
        rows = cursor.fetchall()
    if not rows:
        return 0
    found = pl.DataFrame(
        rows,
        schema={
            "item": pl.Object,
            **dict.fromkeys(ITEM_COLUMNS, pl.String),
            **dict.fromkeys(("spread", "milliseconds", "newest"), pl.Int64),
        },
        orient="row",
    )
    influences = _influences(found, arrays, campaign, counts)
    columns = [found[name].to_list() for name in ("item", "spread", "milliseconds", "newest")]
    with connection.cursor() as cursor:
        for start in range(0, len(rows), AT_ONCE):
            part = [column[start : start + AT_ONCE] for column in (*columns, influences)]
            cursor.execute(_STORE, [campaign.pk, computation.pk, *part])
    return len(rows)


def _influences(
    found: pl.DataFrame, arrays: CampaignArrays, campaign: Campaign, counts: ConfusionCounts
) -> list[float | None]:
    """Return of each item what a wrong joint grade would move; None where no judgment of it counts."""
    if not arrays.judged.size:
        return [None] * found.height
    doubtful = doubtful_labels(arrays, campaign, counts, np.ones(arrays.judged.size, dtype=bool))
    judged = arrays.frame[arrays.judged].select(pl.col(ITEM_COLUMNS).cast(pl.String))
    known = judged.with_columns(influence=pl.Series(doubtful.influence, dtype=pl.Float64))
    keys = found.select(ITEM_COLUMNS)
    joined = keys.join(known, on=ITEM_COLUMNS, how="left", maintain_order="left")
    return list(joined["influence"].to_list())


def _were_set_aside(campaign: Campaign, before: Mapping[str, Any]) -> bool:
    if "at" not in before:
        return True
    verbs = Q()
    for verb in SET_ASIDE:
        verbs |= Q(verb__startswith=verb)
    since = datetime.fromisoformat(before["at"]) - COMMIT_MAY_TAKE
    return Event.objects.filter(verbs, subject=f"campaign:{campaign.pk}", at__gte=since).exists()


# -- what lists read ------------------------------------------------------------------------------------------


def items_by_digest(
    found: FilteredRows, campaign_id: uuid.UUID, spread: int | None, order: str | None
) -> FilteredRows:
    """Return the items that are `spread` grades apart or more, so that `order`, one of ORDERS, costs no sorting.

    Only items that were judged have a place in such an order.
    """
    if order is not None:
        asked = {"digest__campaign": campaign_id, f"{ORDERS[order]}__isnull": False}
        rows = found.rows.filter(**asked).select_related("digest")
        found = FilteredRows(rows, found.rest, "digest__item_id")
    if spread is None:
        return found
    if order == "spread":
        return replace(found, rows=found.rows.filter(digest__spread__gte=spread))
    few = keys_of_few(_apart(spread).filter(campaign=campaign_id))
    return _besides(found, Q(digest__spread__gte=spread)) if few is None else found.of_keys(few)


def judgments_by_digest(found: FilteredRows, campaign_id: uuid.UUID, spread: int | None) -> FilteredRows:
    """Return the judgments of items that are `spread` grades apart or more."""
    if spread is None:
        return found
    few = keys_of_few(_apart(spread).filter(campaign=campaign_id))
    if few is None:
        return _besides(found, Q(Exists(_apart(spread).filter(item=OuterRef("item")))))
    return FilteredRows(about_items(found.complete(), with_keys(Item.objects.all(), few)), None)


def _apart(spread: int) -> QuerySet[ItemDigest]:
    return ItemDigest.objects.filter(spread__gte=spread)


def _besides(found: FilteredRows, condition: Q) -> FilteredRows:
    return replace(found, rest=condition if found.rest is None else found.rest & condition)


def newest_digests_at(campaign: OuterRef) -> Subquery:
    """Return as of when the digests of a query's campaign are, as they were stored; None where there are none yet."""
    newest = Computation.objects.filter(campaign=campaign).order_by("-id")
    return Subquery(newest.values(at=KT("activity__digests__at"))[:1])
