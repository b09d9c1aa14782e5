"""Items in question before managers' eyes: of two who ask at the same moment, each gets another one."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from judging.models import Campaign
from touchstone.models import User

RESERVED_FOR = timedelta(minutes=10)
# Whoever comes second waits for the first one's transaction, and then finds that the row is not theirs.
_TAKE = """
WITH chosen AS (
  SELECT a.item FROM unnest(%(items)s::uuid[]) WITH ORDINALITY AS a (item, place)
    LEFT JOIN judging_reservation r ON r.item_id = a.item
   WHERE r.item_id IS NULL OR r.manager_id = %(manager)s OR r.until <= clock_timestamp()
   ORDER BY a.place LIMIT 1),
gone AS (
  DELETE FROM judging_reservation r USING judging_item i
   WHERE i.id = r.item_id AND i.campaign_id = %(campaign)s AND r.manager_id = %(manager)s
     AND r.item_id NOT IN (SELECT item FROM chosen))
INSERT INTO judging_reservation AS r (item_id, manager_id, until)
SELECT item, %(manager)s, clock_timestamp() + make_interval(secs => %(seconds)s) FROM chosen
ON CONFLICT (item_id) DO UPDATE SET manager_id = EXCLUDED.manager_id, until = EXCLUDED.until
 WHERE r.manager_id = EXCLUDED.manager_id OR r.until <= clock_timestamp()
RETURNING item_id, until
"""
_FREE = """
SELECT EXISTS (SELECT FROM unnest(%(items)s::uuid[]) AS a (item)
  LEFT JOIN judging_reservation r ON r.item_id = a.item
 WHERE r.item_id IS NULL OR r.manager_id = %(manager)s OR r.until <= clock_timestamp())
"""


def reserve_first(
    *, campaign: Campaign, items: Sequence[uuid.UUID], manager: User
) -> tuple[uuid.UUID, datetime] | None:
    """Reserve the first of the items that no other manager looks at; return it and until when, None if there is none.

    What the manager had reserved of the campaign before is free again.
    """
    keys: dict[str, Any] = {"items": list(items), "manager": manager.pk, "campaign": campaign.pk}
    keys["seconds"] = RESERVED_FOR.total_seconds()
    with connection.cursor() as cursor:
        while True:
            cursor.execute(_TAKE, keys)
            if taken := cursor.fetchone():
                return taken[0], taken[1]
            cursor.execute(_FREE, keys)  # somebody else was first: look again, as long as anything is free
            if not cursor.fetchone()[0]:
                return None
