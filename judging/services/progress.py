"""How far a campaign is, in one statement whose cost does not grow with it.

What is done is never counted: what is left is, by the index of unfinished slots, and only up to a limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from judging.models import Campaign, Collection

MOST_COUNTED = 50_000
LEFT = """
(SELECT count(*) FROM (SELECT 1 FROM judging_slot s WHERE s.campaign_id = c.id AND s.purpose = '{purpose}'
                          AND s.state <> 'done' LIMIT %(most)s) u)
"""
PROGRESS = f"""
SELECT {LEFT.format(purpose="judge")}, {LEFT.format(purpose="audit")}, {LEFT.format(purpose="silver")},
       l.n, l.n_expired, l.oldest
  FROM judging_campaign c,
       LATERAL (SELECT count(*) AS n, count(*) FILTER (WHERE lease_until <= clock_timestamp()) AS n_expired,
                       min(leased_at) AS oldest
                  FROM judging_slot WHERE campaign_id = c.id AND state = 'leased') l
 WHERE c.id = %(campaign)s
"""  # noqa: S608 (no word of it comes from outside)
LEFT_OF_SEVERAL = (
    f"SELECT c.id, {LEFT.format(purpose='judge')} FROM judging_campaign c WHERE c.id = ANY(%(campaigns)s)"  # noqa: S608
)

DOCUMENTS = """
SELECT c.id, (SELECT count(*) FROM (SELECT 1 FROM judging_document d WHERE d.collection_id = c.id LIMIT %(most)s) u)
  FROM judging_collection c WHERE c.id = ANY(%(collections)s)
"""


@dataclass(frozen=True)
class Progress:
    """What is not done yet, of judgments and of audits; `is_exact`: no more is left than is counted."""

    left: int
    audits_left: int
    silver_left: int
    leased: int
    expired: int
    oldest_lease: datetime | None

    @property
    def is_exact(self) -> bool:
        return self.left < MOST_COUNTED


def progress(*, campaign: Campaign) -> Progress:
    return Progress(*_rows(PROGRESS, {"campaign": campaign.pk, "most": MOST_COUNTED})[0])


def left_of(campaigns: Sequence[Campaign], most: int = 10_000) -> dict[Any, int]:
    """Return by campaign how many judgments of drawn items are wanted still, counted up to `most`."""
    keys = {"campaigns": [row.pk for row in campaigns], "most": most}
    return dict(_rows(LEFT_OF_SEVERAL, keys)) if campaigns else {}


def documents_of(collections: Sequence[Collection], most: int = 10_000) -> dict[Any, int]:
    """Return by collection how many documents it has, counted up to `most`."""
    keys = {"collections": [row.pk for row in collections], "most": most}
    return dict(_rows(DOCUMENTS, keys)) if collections else {}


def _rows(sql: str, keys: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, keys)
        return list(cursor.fetchall())
