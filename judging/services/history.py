"""What an assessor has judged, as their review shows it."""

import uuid

from django.db.models import Exists, OuterRef, QuerySet

from judging.models import Assessor, Judgment

SHOWN = 20


def history(*, assessor: Assessor, limit: int = SHOWN) -> list[Judgment]:
    """Return the newest judgment of each of the assessor's last items, newest first; then what they gave back before.

    What was given back can be looked at again whatever its age: perhaps nobody else is left to judge it.
    """
    rows = _without_texts(Judgment.objects.filter(assessor=assessor))
    newest: dict[uuid.UUID, Judgment] = {}
    # Revisions fill up places: twice as many rows hold the newest of `limit` items nearly always.
    for row in rows[: 2 * limit]:
        newest.setdefault(row.item_id, row)
    last = list(newest.values())[:limit]
    known = {row.item_id for row in last}
    later = Judgment.objects.filter(
        item=OuterRef("item"), assessor=OuterRef("assessor"), sequence__gt=OuterRef("sequence")
    )
    given_back = _without_texts(Judgment.objects.filter(~Exists(later), assessor=assessor, grade=None))
    return [*last, *(row for row in given_back[:limit] if row.item_id not in known)]


def _without_texts(rows: QuerySet[Judgment]) -> QuerySet[Judgment]:
    joined = rows.select_related("item__topic", "item__document").order_by("-id")
    return joined.defer("item__document__text", "item__document__html")
