"""Judgments on words of a document or topic that were corrected since: counted by campaign, and asked for again."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from judging.models import Campaign, Collection, Document, Item, Judgment, Slot, Topic
from judging.services.errors import NotFound
from judging.services.leases import REQUEUED, lock_requests_of, set_aside
from touchstone.models import User, record

MOST_ITEMS = 10_000  # of a topic or document are counted; all are asked for again


@dataclass(frozen=True)
class CampaignUse:
    """What a campaign has of a topic or document: its items, their judgments, and which of these are on old words."""

    campaign: Campaign
    n_items: int
    n_judged_items: int
    n_judgments: int
    n_old_items: int
    n_old: int

    @property
    def is_cut(self) -> bool:
        """Whether there are more items than were counted."""
        return self.n_items >= MOST_ITEMS

    @property
    def is_closed(self) -> bool:
        """Whether nobody would judge again what is asked for."""
        return self.campaign.state == Campaign.State.CLOSED


def campaign_uses(row: Topic | Document, user: User) -> list[CampaignUse]:
    """Return what the campaigns that the user may see have of the topic or document, by name."""
    items = _items_of(row, user)[:MOST_ITEMS].values("pk")
    by_campaign = Item.objects.filter(pk__in=items).order_by("campaign__name", "campaign")
    counted = list(by_campaign.values_list("campaign").annotate(n=Count("pk")))
    is_old = Q(Exists(_on_old_words(row)))
    judged = (
        _done_slots()
        .filter(item__in=items)
        .order_by()
        .values("campaign")
        .annotate(
            items=Count("item", distinct=True),
            n=Count("pk"),
            old_items=Count("item", distinct=True, filter=is_old),
            old=Count("pk", filter=is_old),
        )
    )
    of: dict[Any, Any] = {found["campaign"]: found for found in judged}
    campaigns = Campaign.objects.in_bulk([pk for pk, _ in counted])
    names = ("items", "n", "old_items", "old")
    return [
        CampaignUse(campaigns[pk], n, *(of.get(pk, {}).get(name, 0) for name in names)) for pk, n in counted
    ]


def requeue_old_words(*, row: Topic | Document, campaigns: Sequence[uuid.UUID], actor: User) -> int:
    """Have judgments on old words made again by others in these campaigns, closed ones apart; return how many.

    The rows stay; the slots become void, and others want the judgments. Answers on gold checks count no longer: they
    were given on other words. Whoever holds an item goes on seeing the words they were given.

    Raises
    ------
    NotFound
        If the user is no manager, or may not see the collection.
    """
    if not actor.may_manage or not _sees(row, actor):
        raise NotFound
    of = "document" if isinstance(row, Document) else "topic"
    about = {of: row.doc_id if isinstance(row, Document) else row.topic_id, "version": row.version}
    items = (
        _items_of(row, actor).filter(campaign__in=campaigns).exclude(campaign__state=Campaign.State.CLOSED)
    )
    with transaction.atomic():
        done = _done_slots().filter(Exists(_on_old_words(row)), item__in=items)
        lock_requests_of(done.values_list("assessor__user", flat=True))
        found = list(done.values_list("pk", "campaign", "assessor__user").order_by("campaign", "assessor"))
        n = set_aside(Slot.objects.filter(pk__in=[pk for pk, _, _ in found]))
        asked: dict[tuple[Any, int], int] = {}
        for _, campaign, person in found:
            asked[campaign, person] = asked.get((campaign, person), 0) + 1
        rows = Campaign.objects.in_bulk({campaign for campaign, _ in asked})
        for (campaign, person), n_slots in asked.items():
            record("requeued", rows[campaign], actor=actor, assessor=person, n_slots=n_slots, **about)
    return n


def _sees(row: Topic | Document, user: User) -> bool:
    return Collection.objects.visible_to(user).filter(pk=row.collection_id).exists()


def _items_of(row: Topic | Document, user: User) -> QuerySet[Item]:
    of = "document" if isinstance(row, Document) else "topic"
    return Item.objects.filter(**{of: row}, campaign__in=Campaign.objects.visible_to(user))


def _done_slots() -> QuerySet[Slot]:
    """Return the slots whose judgment counts."""
    return Slot.objects.filter(state=Slot.State.DONE, purpose__in=REQUEUED)


def _on_old_words(row: Topic | Document) -> QuerySet[Judgment]:
    """Return the judgments of a slot that name an older version than the one in force."""
    of = "document" if isinstance(row, Document) else "topic"
    # By its item, as an index has them.
    mine = Judgment.objects.filter(item=OuterRef("item"), slot=OuterRef("pk"))
    return mine.filter(**{f"{of}_version__lt": row.version})
