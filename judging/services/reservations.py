"""Items in question before managers' eyes: of two who ask at the same moment, each gets another one."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from judging.models import Campaign, Reservation
from touchstone.models import User

RESERVED_FOR = timedelta(minutes=10)
# Whoever comes second waits for the first one's transaction, and then finds that the row is not theirs.
_TAKE = """
INSERT INTO judging_reservation AS r (item_id, manager_id, until)
VALUES (%(item)s, %(manager)s, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (item_id) DO UPDATE SET manager_id = EXCLUDED.manager_id, until = EXCLUDED.until
 WHERE r.manager_id = EXCLUDED.manager_id OR r.until <= clock_timestamp()
RETURNING until
"""
_HELD = """
SELECT item_id FROM judging_reservation
 WHERE item_id = ANY(%(items)s) AND manager_id <> %(manager)s AND until > clock_timestamp()
"""


def reserve_first(
    *, campaign: Campaign, items: Sequence[uuid.UUID], manager: User
) -> tuple[uuid.UUID, datetime] | None:
    """Reserve the first of the items that no other manager looks at; return it and until when, None if there is none.

    What the manager had reserved of the campaign before is free again.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"items": list(items), "manager": manager.pk})
        held = {item for (item,) in cursor.fetchall()}
        for item in items:
            if item in held:
                continue
            cursor.execute(
                _TAKE, {"item": item, "manager": manager.pk, "seconds": RESERVED_FOR.total_seconds()}
            )
            if taken := cursor.fetchone():
                release(campaign=campaign, manager=manager, but=item)
                return item, taken[0]
    release(campaign=campaign, manager=manager)
    return None


def release(*, campaign: Campaign, manager: User, but: uuid.UUID | None = None) -> None:
    """Give back what the manager has reserved of the campaign, but for one item."""
    mine = Reservation.objects.filter(manager=manager, item__campaign=campaign)
    (mine.exclude(item=but) if but else mine).delete()
