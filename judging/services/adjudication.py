"""A manager's last word on an item's grade. It stands in the qrels; no estimate uses it: it was not drawn at random."""

from django.db import transaction

from judging.models import Adjudication, Campaign, Item, Reservation
from judging.services.errors import GradeOffScale, NewerWord, NotFound
from touchstone.models import User, record

Verdict = Adjudication.Verdict
EVENTS = {Verdict.DECIDED: "adjudicated", Verdict.STANDS: "let stand", Verdict.WITHDRAWN: "withdrew decision"}


def adjudicate(
    *, item: Item, grade: int | None, reason: str, actor: User, verdict: str = Verdict.DECIDED
) -> Adjudication:
    """Store a manager's word on an item; the newest counts. The same word pressed twice is one."""
    with transaction.atomic():
        row = _lock_item(item, actor)
        if verdict == Verdict.DECIDED and grade not in row.campaign.scale.values():
            raise GradeOffScale(f"{grade} is not one of the grades")
        newest = row.adjudications.order_by("-id").first()
        same = (verdict, grade, reason, actor.pk)
        if newest is not None and (newest.verdict, newest.grade, newest.reason, newest.decided_by_id) == same:
            return newest
        return _store(row, verdict, grade, reason, actor)


def undo(*, adjudication: Adjudication, actor: User) -> Adjudication:
    """Take the newest word on an item back, so that the one before it counts again; return the row that says so.

    Raises
    ------
    NewerWord
        If another word has come since, or it is one that was taken back itself.
    """
    with transaction.atomic():
        row = _lock_item(adjudication.item, actor)
        words = list(row.adjudications.order_by("-id")[:2])
        if words[0].pk != adjudication.pk or words[0].verdict == Verdict.WITHDRAWN:
            raise NewerWord
        before = words[1] if len(words) > 1 else None
        if before is None or before.verdict == Verdict.WITHDRAWN:
            return _store(row, Verdict.WITHDRAWN, None, "", actor)
        return _store(row, before.verdict, before.grade, before.reason, actor)


def _lock_item(item: Item, actor: User) -> Item:
    """Return the item, locked: of two words at the same moment the one that waits here is the newer one."""
    locked = Item.objects.select_for_update(no_key=True, of=["self"]).select_related("campaign__scale")
    row = locked.filter(pk=item.pk, campaign__in=Campaign.objects.visible_to(actor)).first()
    if row is None or not actor.may_manage:
        raise NotFound
    return row


def _store(row: Item, verdict: str, grade: int | None, reason: str, actor: User) -> Adjudication:
    made = Adjudication.objects.create(
        item=row, verdict=verdict, grade=grade, reason=reason, decided_by=actor
    )
    Reservation.objects.filter(item=row).delete()
    about = {"item": str(row.pk)} if grade is None else {"item": str(row.pk), "grade": grade}
    record(EVENTS[Verdict(verdict)], row.campaign, actor=actor, **about)
    return made
