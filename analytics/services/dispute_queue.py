"""The items in question now: of the newest computation, stuck ones, and those that somebody asks about."""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from analytics.estimation.questioned import ASKED, DOUBTFUL, STUCK, Reason, reason
from analytics.models import Computation, ConfusionEstimate, DisputedItem
from analytics.services.disputed import open_disputes
from judging.models import Adjudication, Campaign, Item, StuckItem
from judging.services.messages import open_questions

MOST_BESIDE = 200  # stuck items, and items asked about


@dataclass(frozen=True)
class Dispute:
    """One item in question: its place in the queue, from 1, and why."""

    item: uuid.UUID
    position: int
    reasons: tuple[Reason, ...]


def dispute_queue(newest: Any) -> list[Dispute]:
    """Return what no manager's word is in force on, of a computation from `with_disputes`.

    By the grades, the worst first; then stuck ones, then those that somebody asks about.
    """
    places = {uuid.UUID(one["item"]): one for one in newest.disputed}
    more = dict.fromkeys(item for item in (*newest.stuck, *newest.asked) if item not in places)
    undecided = [item for item in more if item not in newest.undisputed]
    last = max((one["position"] for one in places.values()), default=0)
    beside = {STUCK.key: set(newest.stuck), ASKED.key: set(newest.asked)}
    return [
        *(
            # What was stored before rules were named was listed for its influence and its probability of error.
            Dispute(item, one["position"], _reasons(item, one["reasons"] or [DOUBTFUL.key], beside))
            for item, one in places.items()
        ),
        *(Dispute(item, last + n, _reasons(item, [], beside)) for n, item in enumerate(undecided, start=1)),
    ]


def _reasons(item: uuid.UUID, own: list[str], beside: dict[str, set[uuid.UUID]]) -> tuple[Reason, ...]:
    return tuple(reason(key) for key in (*own, *(key for key, items in beside.items() if item in items)))


def stuck_in(campaign: Campaign) -> QuerySet[Any]:
    return StuckItem.objects.filter(campaign=campaign).order_by("item").values_list("item_id", flat=True)


def asked_about(campaign: Campaign) -> QuerySet[Any]:
    """Return the items of questions that nobody has answered or closed, the oldest question first."""
    asked = open_questions(campaign).filter(item__isnull=False)
    return asked.select_related(None).values_list("item_id", flat=True)


def with_disputes(newest: QuerySet[Any], row: Any) -> QuerySet[Any]:
    """Return computations with the items in question: no statement of its own, so that pages are read quickly."""
    place = JSONObject(item="item_id", position="position", reasons="reasons")
    disputed = open_disputes().filter(computation=OuterRef("pk")).values(place=place)
    stuck, asked = stuck_in(row)[:MOST_BESIDE], asked_about(row)[:MOST_BESIDE]
    decided = Adjudication.objects.in_force().filter(Q(item__in=stuck) | Q(item__in=asked))
    found: QuerySet[Any] = newest.annotate(
        disputed=ArraySubquery(disputed),
        stuck=ArraySubquery(stuck),
        asked=ArraySubquery(asked),
        undisputed=ArraySubquery(decided.values("item_id")),
    )
    return found


def newest_with_disputes(campaign: Campaign) -> Any:
    """Return the newest computation with the items in question and everybody's pooled counts; None if there is none."""
    pooled = ConfusionEstimate.objects.filter(
        computation=OuterRef("pk"), scope=ConfusionEstimate.Scope.POOLED
    ).order_by("pk")
    found = with_disputes(campaign.computations.order_by("-id"), campaign)
    return found.annotate(pooled_counts=Subquery(pooled.values("counts")[:1])).first()


def place_of(dispute: Dispute, computation: Computation) -> tuple[DisputedItem | None, Item]:
    """Return what the computation says of the item, if anything, and the item with topic and document, no texts."""
    rows = DisputedItem.objects.select_related("item__topic", "item__document")
    place = rows.defer("item__document__text", "item__document__html").filter(
        computation=computation, item=dispute.item
    )
    found = place.first()
    if found is not None:
        return found, found.item
    items = Item.objects.select_related("topic", "document")
    return None, items.defer("document__text", "document__html").get(pk=dispute.item)
