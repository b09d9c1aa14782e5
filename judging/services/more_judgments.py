"""One judgment more of chosen items, beyond those that every item wants."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Value
from django.db.models.functions import Coalesce

from judging.models import Assessor, Campaign, Item, Slot
from judging.services.campaigns import open_numbered_slots
from judging.services.errors import Refused
from touchstone.models import User, record

WANTED = [Slot.Purpose.JUDGE, Slot.Purpose.CHECK]


class MoreJudgmentsRefused(Refused):
    """No further judgments can be asked for, for a reason the user can act on."""

    status = 409
    title = "No further judgments can be asked for"


def complete_items(campaign: Campaign, among: Sequence[uuid.UUID] | None = None) -> set[uuid.UUID]:
    """Return the items, checks apart, whose wanted judgments are all in, and of which none beyond them is wanted.

    Of all, or `among` a few.
    """
    k = Coalesce("judgments_wanted", Value(campaign.judgments_per_item))
    numbers = Count("slots", filter=Q(slots__purpose__in=WANTED, slots__state=Slot.State.DONE))
    is_check_alone = ~Exists(Slot.objects.filter(item=OuterRef("pk"), purpose=Slot.Purpose.JUDGE))
    rows = campaign.items.filter(judgments_more=0).exclude(is_check_alone)
    if among is not None:
        rows = rows.filter(pk__in=among)
    rows = rows.annotate(n_done=numbers).filter(n_done__gte=k)
    return set(rows.order_by().values_list("pk", flat=True))


def labels_in_file(campaign: Campaign) -> str:
    """Return how many labels a document has in a file that is all there is, as "5 to 113"; empty where each wants k."""
    # All items of a campaign want a number of their own, or none does: the first says which.
    if not any(campaign.items.order_by().values_list("judgments_wanted", flat=True)[:1]):
        return ""
    found = campaign.items.aggregate(fewest=Min("judgments_wanted"), most=Max("judgments_wanted"))
    fewest, most = found["fewest"], found["most"]
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def why_nobody_could(campaign: Campaign) -> str:
    """Return why a slot more would stay open for ever; empty where it would not."""
    if campaign.state != Campaign.State.OPEN:
        return "the campaign is not open: open it first"
    active = campaign.assessors.filter(status=Assessor.Status.ACTIVE).judges().count()
    if active <= campaign.judgments_per_item:
        return (
            f"{active} active assessors have judged {campaign.judgments_per_item} times each item: "
            "nobody judges an item twice, so add an assessor first"
        )
    return ""


def open_one_more(
    *, campaign: Campaign, items: Sequence[uuid.UUID], seed: int, about: Mapping[str, Any], actor: User | None
) -> int:
    """Open one slot more of each of these items that are complete and have none; return how many.

    A claim looks for open slots by topic and position and knows of no other, so it costs what it cost before. Pressed
    twice, the second finds a slot beyond k everywhere and opens nothing. `about` goes into the event.
    """
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if reason := why_nobody_could(locked):
            raise MoreJudgmentsRefused(reason)
        known = complete_items(locked, among=items)
        chosen = [item for item in items if item in known]
        Item.objects.filter(pk__in=chosen).update(judgments_more=1)
        rows = Item.objects.select_related("topic").filter(pk__in=chosen).order_by("pk")
        k = locked.judgments_per_item
        open_numbered_slots(items=[(item, (item.judgments_wanted or k) + 1) for item in rows], seed=seed)
        if chosen:
            record("opened more judgments", locked, actor=actor, n_slots=len(chosen), **about)
    return len(chosen)
