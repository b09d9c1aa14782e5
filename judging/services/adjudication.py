"""A manager's last word on an item's grade. It stands in the qrels; no estimate uses it: it was not drawn at random."""

from django.db import transaction

from judging.models import Adjudication, Campaign, Item
from judging.services.errors import GradeOffScale, NotFound
from touchstone.models import User, record


def adjudicate(*, item: Item, grade: int, reason: str, actor: User) -> Adjudication:
    """Decide an item's grade; the newest decision counts. The same decision pressed twice is one."""
    with transaction.atomic():
        # Two decisions at the same moment: the one that waits here is the newer one.
        locked = Item.objects.select_for_update(no_key=True, of=["self"]).select_related("campaign__scale")
        row = locked.filter(pk=item.pk, campaign__in=Campaign.objects.visible_to(actor)).first()
        if row is None or not actor.may_manage:
            raise NotFound
        if grade not in row.campaign.scale.values():
            raise GradeOffScale(f"{grade} is not one of the grades")
        newest = row.adjudications.order_by("-id").first()
        same = (grade, reason, actor.pk)
        if newest is not None and (newest.grade, newest.reason, newest.decided_by_id) == same:
            return newest
        made = Adjudication.objects.create(item=row, grade=grade, reason=reason, decided_by=actor)
        record("adjudicated", row.campaign, actor=actor, item=str(row.pk), grade=grade)
    return made
