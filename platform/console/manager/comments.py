"""What assessors say: why documents could not be judged, which were given back most, and their comments."""

import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from judging.models import Campaign, Item, Judgment
from judging.services.access import managers_only

SHOWN_COMMENTS = 25
SHOWN_HARD_ITEMS = 10
LOOKED_AT = 5000  # of what could not be judged: more than that tells no more


@managers_only
def comments(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Campaign.objects.select_related("collection"), pk=campaign_id)
    looked_at = list(without_grade(row).order_by().values_list("item", "obstacle")[:LOOKED_AT])
    context = {
        "campaign": row,
        "obstacles": obstacle_counts(obstacle for _, obstacle in looked_at),
        "hard_items": _hard_items(Counter(item for item, _ in looked_at)),
        "comments": _comments(row),
        "shown_comments": SHOWN_COMMENTS,
        "looked_at": LOOKED_AT if len(looked_at) == LOOKED_AT else None,
    }
    return render(request, "console/manager/comments.html", context)


def without_grade(row: Campaign) -> QuerySet[Judgment]:
    """Return what could not be judged and still stands: nobody gave a grade afterwards."""
    later = Judgment.objects.filter(
        item=OuterRef("item"), assessor=OuterRef("assessor"), sequence__gt=OuterRef("sequence")
    )
    return Judgment.objects.filter(item__campaign=row, grade=None).filter(~Exists(later))


def obstacle_counts(obstacles: Iterable[str]) -> list[dict[str, Any]]:
    """Return how often each reason was given, the most frequent first."""
    counts = sorted(Counter(obstacles).items(), key=lambda one: (-one[1], one[0]))
    return [{"label": Judgment.Obstacle(obstacle).label, "n": n} for obstacle, n in counts]


def _hard_items(counts: Counter[uuid.UUID]) -> list[dict[str, Any]]:
    """Return the items that were given back most."""
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:SHOWN_HARD_ITEMS]
    names = ("topic", "topic__title", "document__title", "document__doc_id")
    rows = {pk: row for pk, *row in Item.objects.filter(pk__in=dict(most)).values_list("pk", *names)}
    found = []
    for item, n in most:
        topic_pk, topic, title, doc_id = rows[item]
        found.append(
            {"item": item, "topic": topic, "topic_pk": topic_pk, "document": title or doc_id, "n": n}
        )
    return found


def _comments(row: Campaign) -> QuerySet[Judgment]:
    """Return the newest comments with what is named beside them."""
    return (
        Judgment.objects.filter(item__campaign=row)
        .exclude(comment="")
        .select_related("assessor__user", "item__topic", "item__document")
        .defer("item__document__text", "item__document__html")
        .order_by("-id")[:SHOWN_COMMENTS]
    )
