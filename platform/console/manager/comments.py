"""What assessors say: why documents could not be judged, which were given back most, and their comments."""

import uuid
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from judging.models import Campaign, Judgment
from judging.services.access import managers_only

SHOWN_COMMENTS = 25
SHOWN_HARD_ITEMS = 10
LOOKED_AT = 5000  # of what could not be judged: more than that tells no more


@managers_only
def comments(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Campaign.objects.select_related("collection"), pk=campaign_id)
    looked_at = list(without_grade(row).order_by().values_list("pk", flat=True)[:LOOKED_AT])
    obstacles = Judgment.objects.filter(pk__in=looked_at)
    context = {
        "campaign": row,
        "obstacles": obstacle_counts(obstacles),
        "hard_items": _hard_items(obstacles),
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


def obstacle_counts(judgments: QuerySet[Judgment]) -> list[dict[str, Any]]:
    """Return how often each reason was given, the most frequent first."""
    counts = judgments.values("obstacle").annotate(n=Count("pk")).order_by("-n", "obstacle")
    return [{"label": Judgment.Obstacle(row["obstacle"]).label, "n": row["n"]} for row in counts]


def _hard_items(obstacles: QuerySet[Judgment]) -> list[dict[str, Any]]:
    names = ("item__topic", "item__topic__title", "item__document__title", "item__document__doc_id")
    counts = obstacles.values("item", *names).annotate(n=Count("pk")).order_by("-n", "item")
    return [
        {
            "item": found["item"],
            "topic": found["item__topic__title"],
            "topic_pk": found["item__topic"],
            "document": found["item__document__title"] or found["item__document__doc_id"],
            "n": found["n"],
        }
        for found in counts[:SHOWN_HARD_ITEMS]
    ]


def _comments(row: Campaign) -> QuerySet[Judgment]:
    """Return the newest comments with what is named beside them."""
    return (
        Judgment.objects.filter(item__campaign=row)
        .exclude(comment="")
        .select_related("assessor__user", "item__topic", "item__document")
        .defer("item__document__text", "item__document__html")
        .order_by("-id")[:SHOWN_COMMENTS]
    )
