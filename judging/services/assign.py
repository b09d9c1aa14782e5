"""Claim and submit: the contract with assessors.

One row per wanted judgment (Slot); a per-assessor advisory lock, alone in its statement; the clock of the database.
Lock order is always assessor, then slot. Measured alternatives and why they fail: the contract's tests.
"""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from judging.models import Assessor, Campaign, Judgment, Lease, Slot
from judging.services.errors import (
    AlreadyJudged,
    AssessorSuspended,
    CampaignNotOpen,
    GradeOffScale,
    LeaseUnknown,
    NotAnAssessor,
    NotYetJudged,
    TokenReused,
)

ASSESSOR_LOCK = 7
_random = random.SystemRandom()

RELEASE_EXPIRED = """
UPDATE judging_slot SET state = 'open', assessor_id = NULL, token = NULL, leased_at = NULL, lease_until = NULL
 WHERE assessor_id = %(assessor)s AND state = 'leased' AND lease_until <= clock_timestamp()
"""

# MATERIALIZED keeps the row lock inside the subquery, so that exactly the row that was locked is leased.
LEASE_ONE = """
WITH pick AS MATERIALIZED (
  SELECT s.id FROM judging_slot s
   WHERE s.campaign_id = %(campaign)s AND s.purpose = %(purpose)s AND s.state <> 'done' AND {topics}
     AND (s.state = 'open' OR s.lease_until < clock_timestamp())
     AND NOT EXISTS (SELECT 1 FROM judging_slot t WHERE t.item_id = s.item_id AND t.assessor_id = %(assessor)s)
     AND NOT EXISTS (SELECT 1 FROM judging_judgment j
                      WHERE j.item_id = s.item_id AND j.assessor_id = %(assessor)s)
   ORDER BY s.topic_id, s.position, s.id LIMIT 1 FOR UPDATE OF s {skip_locked})
UPDATE judging_slot SET state = 'leased', assessor_id = %(assessor)s, token = gen_random_uuid(),
       leased_at = clock_timestamp(), lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
  FROM pick WHERE judging_slot.id = pick.id RETURNING judging_slot.id
"""


@dataclass(frozen=True)
class Claim:
    """What an assessor gets: a leased slot, or the reason for none."""

    slot: Slot | None
    reason: str = ""


def assessor_of(*, user: Any, campaign_id: uuid.UUID) -> Assessor:
    """Return the user as assessor of the campaign; a campaign one is not in looks like one that does not exist."""
    assessor = (
        Assessor.objects.select_related("campaign__scale").filter(campaign_id=campaign_id, user=user).first()
    )
    if assessor is None:
        raise NotAnAssessor
    return assessor


def claim(*, assessor: Assessor) -> Claim:
    """Lease the next slot to the assessor, or give back the lease he holds: two tabs and a reload see the same item."""
    with transaction.atomic():
        _lock(assessor)
        _check_may_judge(assessor)
        held = _held_lease(assessor)
        if held is not None:
            return Claim(held)
        with connection.cursor() as cursor:
            cursor.execute(RELEASE_EXPIRED, {"assessor": assessor.pk})
        slot_id = _lease_next(assessor, skip_locked=True)
        if slot_id is None:
            # A row that another transaction held locked for a moment was skipped: wait for it before saying "no work".
            slot_id = _lease_next(assessor, skip_locked=False)
        if slot_id is None:
            return Claim(None, "no work")
        slot = _with_document(Slot.objects.filter(pk=slot_id)).get()
        Lease.objects.create(token=slot.token, slot=slot, assessor=assessor, leased_at=slot.leased_at)
        return Claim(slot)


def submit(
    *, assessor: Assessor, token: uuid.UUID, client_token: uuid.UUID, grade: int, active_milliseconds: int = 0
) -> Judgment:
    """Store one judgment. The same request twice is one judgment; a late one is kept, counted if a slot is free."""
    with transaction.atomic():
        _lock(assessor)
        known = _answered_before(assessor, token, client_token, grade)
        if known is not None:
            return known
        lease = _lease_of(assessor, token)
        if Judgment.objects.filter(item_id=lease.slot.item_id, assessor=assessor).exists():
            raise AlreadyJudged
        judgment = Judgment(client_token=client_token, grade=grade, active_milliseconds=active_milliseconds)
        _check_grade(assessor.campaign, grade)
        judgment.slot_id = _fill_leased_slot(lease) or _fill_free_slot(lease)
        Assessor.objects.filter(pk=assessor.pk).update(n_judged=F("n_judged") + 1)
        return _store(judgment, lease)


def revise(
    *, assessor: Assessor, token: uuid.UUID, client_token: uuid.UUID, grade: int, active_milliseconds: int = 0
) -> Judgment:
    """Store a change of mind as a new row that takes the place of the assessor's earlier judgment of the item."""
    with transaction.atomic():
        _lock(assessor)
        known = _answered_before(assessor, token, client_token, grade)
        if known is not None:
            return known
        _check_may_judge(
            assessor
        )  # late work is kept, but nobody rewrites what he judged after he was paused
        lease = _lease_of(assessor, token)
        mine = Judgment.objects.filter(item_id=lease.slot.item_id, assessor=assessor)
        latest = mine.order_by("-sequence").first()
        if latest is None:
            raise NotYetJudged
        judgment = Judgment(client_token=client_token, grade=grade, active_milliseconds=active_milliseconds)
        _check_grade(assessor.campaign, grade)
        judgment.sequence, judgment.slot_id = latest.sequence + 1, latest.slot_id
        return _store(judgment, lease)


def _store(judgment: Judgment, lease: Lease) -> Judgment:
    judgment.item_id = lease.slot.item_id
    judgment.assessor_id = lease.assessor_id
    judgment.lease_token = lease.token
    judgment.document_version = lease.slot.item.document.version
    judgment.save(force_insert=True)
    return judgment


def history(*, assessor: Assessor, limit: int = 20) -> list[Judgment]:
    """Return the assessor's last judgments, newest first, each item once with its latest grade."""
    rows = (
        Judgment.objects.filter(assessor=assessor)
        .select_related("item__topic", "item__document")
        .order_by("-id")[: 3 * limit]
    )
    newest: dict[uuid.UUID, Judgment] = {}
    for row in rows:
        newest.setdefault(row.item_id, row)
    return list(newest.values())[:limit]


def release(*, slot: Slot) -> bool:
    """Take a lease back (a manager's button). What its holder still submits is kept."""
    return bool(
        Slot.objects.filter(pk=slot.pk, state=Slot.State.LEASED, token=slot.token).update(
            state=Slot.State.OPEN, assessor=None, token=None, leased_at=None, lease_until=None
        )
    )


def _lock(assessor: Assessor) -> None:
    """One request of an assessor at a time. Alone in its statement: the next one must see what the last one did."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [ASSESSOR_LOCK, assessor.pk])


def _check_may_judge(assessor: Assessor) -> None:
    status, state = Assessor.objects.values_list("status", "campaign__state").get(pk=assessor.pk)
    if status == Assessor.Status.SUSPENDED:
        raise AssessorSuspended
    if state != Campaign.State.OPEN:
        raise CampaignNotOpen


def _with_document(slots: Any) -> Any:
    return slots.select_related("item__topic", "item__document")


def _held_lease(assessor: Assessor) -> Slot | None:
    held = Slot.objects.filter(assessor=assessor, state=Slot.State.LEASED).extra(
        where=["lease_until > clock_timestamp()"]
    )
    return _with_document(held).first()


def _lease_next(assessor: Assessor, *, skip_locked: bool) -> int | None:
    for purpose, topics, parameters in _wishes(assessor):
        sql = LEASE_ONE.format(topics=topics, skip_locked="SKIP LOCKED" if skip_locked else "")
        with connection.cursor() as cursor:
            cursor.execute(
                sql,
                {
                    "campaign": assessor.campaign_id,
                    "assessor": assessor.pk,
                    "purpose": purpose,
                    "seconds": assessor.campaign.lease_seconds,
                    **parameters,
                },
            )
            row = cursor.fetchone()
        if row:
            return int(row[0])
    return None


def _wishes(assessor: Assessor) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield, best first, which slots the assessor should get: his topic as long as it has any, then the next ones.

    A gold check comes only within the topic at hand, at the campaign's rate, and looks like any other item.
    """
    topic = (
        Judgment.objects.filter(assessor=assessor)
        .order_by("-id")
        .values_list("item__topic_id", flat=True)
        .first()
    )
    if assessor.tier == Assessor.Tier.GOLD:
        purpose = Slot.Purpose.AUDIT
    else:
        purpose = Slot.Purpose.JUDGE
        if topic is not None and _random.random() < assessor.campaign.gold_check_rate:
            yield Slot.Purpose.CHECK, "s.topic_id = %(topic)s", {"topic": topic}
    if topic is None:
        # Newcomers start at different topics, so that all topics progress.
        topics = list(assessor.campaign.collection.topics.order_by("id").values_list("id", flat=True))
        topic = topics[assessor.pk % len(topics)] if topics else 0
    yield purpose, "s.topic_id = %(topic)s", {"topic": topic}
    yield purpose, "s.topic_id > %(topic)s", {"topic": topic}
    yield purpose, "s.topic_id < %(topic)s", {"topic": topic}


def _answered_before(
    assessor: Assessor, token: uuid.UUID, client_token: uuid.UUID, grade: int
) -> Judgment | None:
    known = Judgment.objects.filter(client_token=client_token).first()
    if known is None:
        return None
    if (known.assessor_id, known.lease_token, known.grade) != (assessor.pk, token, grade):
        raise TokenReused
    return known


def _lease_of(assessor: Assessor, token: uuid.UUID) -> Lease:
    lease = (
        Lease.objects.select_related("slot__item__document").filter(token=token, assessor=assessor).first()
    )
    if lease is None:
        raise LeaseUnknown
    return lease


def _check_grade(campaign: Campaign, grade: int) -> None:
    values = campaign.scale.values()
    if grade not in values:
        raise GradeOffScale(f"{grade} is not one of {values}")


def _fill_leased_slot(lease: Lease) -> int | None:
    """Fill the slot of this item that the assessor holds: by this lease, expired or not, or by a newer one of his."""
    held = Slot.objects.filter(
        item_id=lease.slot.item_id, assessor_id=lease.assessor_id, state=Slot.State.LEASED
    )
    slot_id = held.values_list("pk", flat=True).first()
    filled = slot_id is not None and held.filter(pk=slot_id).update(state=Slot.State.DONE, lease_until=None)
    return slot_id if filled else None


def _fill_free_slot(lease: Lease) -> int | None:
    """The lease went to somebody else: take another free slot of the item, if there is one and it is not locked."""
    free = (
        Slot.objects.select_for_update(skip_locked=True)
        .filter(item_id=lease.slot.item_id, purpose=lease.slot.purpose, state=Slot.State.OPEN)
        .order_by("number")
        .values_list("pk", flat=True)
        .first()
    )
    if free is None:
        return None
    Slot.objects.filter(pk=free).update(
        state=Slot.State.DONE, assessor=lease.assessor_id, token=lease.token, lease_until=None
    )
    return free
