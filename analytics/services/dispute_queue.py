"""The items in question now: of the newest computation, stuck ones, and those that somebody asks about."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Q, QuerySet

from analytics.estimation.questioned import ASKED, DOUBTFUL, STUCK, Reason, reason
from analytics.models import Computation, DisputedItem
from analytics.services.disputed import open_disputes
from judging.models import Adjudication, Campaign, Item, Judgment, StuckItem

MOST_BESIDE = 200  # stuck items, and items asked about


@dataclass(frozen=True)
class Dispute:
    """One item in question: its place in the queue, from 1, why, and what the computation says of its grade, if any."""

    item: uuid.UUID
    position: int
    reasons: tuple[Reason, ...]
    place: DisputedItem | None


def dispute_queue(campaign: Campaign, computation: Computation | None) -> list[Dispute]:
    """Return what no manager's word is in force on: by the grades, the worst first; then stuck ones, then questions."""
    places = {one.item_id: one for one in open_disputes().filter(computation=computation)}
    stuck, asked = stuck_items(campaign), items_asked_about(campaign)
    more = _undecided([item for item in (*stuck, *asked) if item not in places])
    last = max((one.position for one in places.values()), default=0)
    keys = {ASKED.key: set(asked), STUCK.key: set(stuck)}
    return [
        *(Dispute(item, one.position, _reasons(item, one, keys), one) for item, one in places.items()),
        *(Dispute(item, last + n, _reasons(item, None, keys), None) for n, item in enumerate(more, start=1)),
    ]


def _reasons(
    item: uuid.UUID, place: DisputedItem | None, keys: dict[str, set[uuid.UUID]]
) -> tuple[Reason, ...]:
    # What was stored before rules were named was listed for its influence and its probability of error.
    own = [reason(key) for key in place.reasons] or [DOUBTFUL] if place is not None else []
    return (*own, *(reason(key) for key in (STUCK.key, ASKED.key) if item in keys[key]))


def _undecided(items: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Return the items without a word in force, each once, in their order."""
    asked = list(dict.fromkeys(items))
    if not asked:
        return []
    decided = set(Adjudication.objects.in_force().filter(item__in=asked).values_list("item_id", flat=True))
    return [item for item in asked if item not in decided]


def stuck_items(campaign: Campaign) -> list[uuid.UUID]:
    """Return the stuck items that the newest look at the places names."""
    return list(stuck_in(campaign)[:MOST_BESIDE])


def stuck_in(campaign: Campaign) -> QuerySet[Any]:
    return StuckItem.objects.filter(campaign=campaign).order_by("item").values_list("item_id", flat=True)


def items_asked_about(campaign: Campaign) -> list[uuid.UUID]:
    """Return the items that somebody asks about, the newest first."""
    return list(asked_about(campaign)[:MOST_BESIDE])


def asked_about(campaign: Campaign) -> QuerySet[Any]:
    """Return the items whose topic is unclear to somebody who has not graded them since, the newest first."""
    later = Judgment.objects.filter(
        item=OuterRef("item"), assessor=OuterRef("assessor"), sequence__gt=OuterRef("sequence")
    )
    unclear = Judgment.objects.filter(
        ~Exists(later), item__campaign=campaign, grade=None, obstacle=Judgment.Obstacle.TOPIC
    )
    return unclear.order_by("-id").values_list("item_id", flat=True)


def n_in_question(newest: Any) -> int:
    """Return how many items are in question, by what `with_disputes` found beside the newest computation."""
    more = {*newest.stuck, *newest.asked} - set(newest.undisputed)
    return len(more | set(newest.disputed))


def with_disputes(newest: QuerySet[Any], row: Any) -> QuerySet[Any]:
    """Return computations with the items in question: no statement of its own, so that the overview is read quickly."""
    disputed = open_disputes().filter(computation=OuterRef("pk")).order_by().values("item_id")
    stuck, asked = stuck_in(row)[:MOST_BESIDE], asked_about(row)[:MOST_BESIDE]
    decided = Adjudication.objects.in_force().filter(Q(item__in=stuck) | Q(item__in=asked))
    found: QuerySet[Any] = newest.annotate(
        disputed=ArraySubquery(disputed),
        stuck=ArraySubquery(stuck),
        asked=ArraySubquery(asked),
        undisputed=ArraySubquery(decided.values("item_id")),
    )
    return found


def item_of_dispute(dispute: Dispute) -> Item:
    """Return the item with its topic and document, without their texts."""
    rows = Item.objects.select_related("topic", "document")
    return rows.defer("document__text", "document__html").get(pk=dispute.item)
