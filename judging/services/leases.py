"""Leases from outside: what a manager takes back, what a page extends, what is to be judged again."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import BooleanField, DateTimeField, ExpressionWrapper, F, Func, Q, QuerySet

from judging.models import Assessor, Campaign, Slot
from judging.services import statements
from touchstone.models import User, record

ASSESSOR_LOCK = 7
OPEN = {
    "state": Slot.State.OPEN,
    "assessor": None,
    "token": None,
    "leased_at": None,
    "lease_until": None,
}
# Everything that is done is made again, checks and decoys too: else whoever compares notes with those who judge in the
# person's place knows that what never came back was a check.
REQUEUED = [Slot.Purpose.JUDGE, Slot.Purpose.CHECK, Slot.Purpose.AUDIT, Slot.Purpose.SILVER]
EXTEND = """
UPDATE judging_slot s SET lease_until = clock_timestamp() + make_interval(secs => c.lease_seconds)
  FROM judging_campaign c
 WHERE c.id = s.campaign_id AND s.assessor_id = %s AND s.state = 'leased' AND s.token = ANY(%s) RETURNING s.token
"""


def lock_requests(assessor: Assessor) -> None:
    """Wait for the person's request in flight, and let the next one wait: always before their rows are locked."""
    with connection.cursor() as cursor:
        cursor.execute(statements.LOCK, {"kind": ASSESSOR_LOCK, "user": assessor.user_id})


def lock_requests_of(users: Iterable[int]) -> None:
    """The same for several people: in the order of their ids, so that two managers never wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_advisory_xact_lock(%s::int, u::int)) FROM unnest(%s::int[]) u",
            [ASSESSOR_LOCK, sorted(set(users))],
        )


_IS_OVER = Q(lease_until__lte=Func(function="clock_timestamp", output_field=DateTimeField()))


def held_leases(*, campaign: Campaign) -> QuerySet[Slot]:
    """Return the leased slots with whom and what they are about, the oldest lease first."""
    leased = Slot.objects.filter(campaign=campaign, state=Slot.State.LEASED)
    return leased.select_related("assessor__user", "item__topic", "item__document").order_by(
        "leased_at", "pk"
    )


def with_expiry(held: QuerySet[Slot]) -> QuerySet[Slot]:
    """Add whether the lease is over, by the clock that leases go by: the database's."""
    return held.annotate(is_expired=ExpressionWrapper(_IS_OVER, BooleanField()))


def release_expired(*, campaign: Campaign, actor: User | None) -> int:
    """Take back all leases that are over; return how many."""
    expired = list(held_leases(campaign=campaign).filter(_IS_OVER))
    return sum(release(slot=slot, actor=actor) for slot in expired)


def release(*, slot: Slot, actor: User | None = None) -> bool:
    """Take a lease back (a manager's button). What its holder still submits is kept."""
    with transaction.atomic():
        freed = Slot.objects.filter(pk=slot.pk, state=Slot.State.LEASED, token=slot.token).update(**OPEN)
        if freed:
            holder = slot.assessor.user_id if slot.assessor else None
            record("released", slot.campaign, actor=actor, assessor=holder, n_slots=freed)
    return bool(freed)


def release_all(*, assessor: Assessor) -> int:
    """Take back everything the assessor holds."""
    return int(Slot.objects.filter(assessor=assessor, state=Slot.State.LEASED).update(**OPEN))


def extend(*, assessor: Assessor, tokens: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Make these leases last as long as new ones; return those that are still the assessor's."""
    with connection.cursor() as cursor:
        cursor.execute(EXTEND, [assessor.pk, list(tokens)])
        return [row[0] for row in cursor.fetchall()]


def requeue(*, assessor: Assessor, actor: User | None) -> int:
    """Have the assessor's judgments made again by others; return how many.

    Their rows stay. The slots they filled become void and remember what they were for; new ones of the same purpose and
    number want the judgments. What they answered on gold checks stays in force: it says how they judge.
    """
    with transaction.atomic():
        lock_requests(assessor)
        done = Slot.objects.filter(
            assessor=assessor,
            state=Slot.State.DONE,
            purpose__in=REQUEUED,
        )
        n = set_aside(done, was=F("purpose"))
        if n:
            record("requeued", assessor.campaign, actor=actor, assessor=assessor.user_id, n_slots=n)
    return n


def set_aside(done: QuerySet[Slot], was: F | str = "") -> int:
    """Make filled slots void and open one in the place of each; `was` is what the void ones remember to be for."""
    slots: list[Any] = list(done.select_for_update().order_by("pk"))
    Slot.objects.filter(pk__in=[slot.pk for slot in slots]).update(purpose=Slot.Purpose.VOID, was=was)
    Slot.objects.bulk_create(
        (
            Slot(
                item_id=slot.item_id,
                purpose=slot.purpose,
                number=slot.number,
                campaign_id=slot.campaign_id,
                topic_id=slot.topic_id,
                position=slot.position,
            )
            for slot in slots
        ),
        batch_size=2000,
    )
    return len(slots)
