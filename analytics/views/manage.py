"""The manager's overview of a campaign, with its numbers."""

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from analytics.charts import progress_timeline
from analytics.services.recomputation import latest_computation, queue_recomputation
from analytics.views.audits import audit_summary
from analytics.views.design import draw_context
from judging.forms import AssessorForm
from judging.models import Assessor, Campaign, Judgment, Slot
from judging.views.access import managers_only
from touchstone.models import Event

SHOWN_COMMENTS = 50
SHOWN_HARD_ITEMS = 10
SHOWN_EVENTS = 12
EVENT_WORDS = {
    "batch": "batch {}",
    "n_drawn": "{} items",
    "n_selected": "{} selected",
    "n_slots": "{} places",
    "n_topics": "{} topics",
    "sequence": "number {}",
    "quota": "quota {}",
    "strategy": "by {}",
    "cost_per_judgment": "{} a judgment",
    "cost_per_gold": "{} a gold label",
    "team": "team {}",
}


@managers_only
def campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """A campaign at a glance: what is done, who does it, how well, what the audits say."""
    row = _campaign(campaign_id)
    computation = latest_computation(campaign=row)
    days = (
        row.items.filter(judgments__isnull=False)
        .annotate(day=TruncDate("judgments__created_at"))
        .values("day")
        .annotate(n=Count("judgments"))
        .order_by("day")
    )
    days = [day for day in days if day["day"] is not None][-60:]
    context = draw_context(row) | {
        "campaign": row,
        "computation": computation,
        "progress": _progress(row),
        "timeline": _timeline(days),
        "days": days,
        "assessors": _assessors(row, computation),
        "n_flags": computation.flags.count() if computation else 0,
        "tiers": set(row.assessors.filter(status=Assessor.Status.ACTIVE).values_list("tier", flat=True)),
        "judges_here": row.assessors.filter(user=request.user, status=Assessor.Status.ACTIVE).exists(),
        **audit_summary(row),
        "assessor_form": AssessorForm(),
        "obstacles": obstacle_counts(without_grade(row)),
        "hard_items": _hard_items(row),
        "comments": _comments(row),
        "events": _events(row),
    }
    return render(request, "analytics/campaign.html", context)


def _events(row: Campaign) -> list[dict[str, Any]]:
    events = Event.objects.filter(subject=f"campaign:{row.pk}").select_related("actor").order_by("-id")
    return [{"row": event, "words": _event_words(event.detail)} for event in events[:SHOWN_EVENTS]]


def _event_words(detail: dict[str, Any]) -> str:
    """Return what an event says besides its verb, in words.

    >>> _event_words({"assessor": "bob", "n_slots": 2, "quota": None, "team": ""})
    'bob, 2 places'
    """
    words = []
    for key, value in sorted(detail.items(), key=lambda pair: pair[0] != "assessor"):  # whom, then what
        if value in (None, "", []):
            continue
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(EVENT_WORDS.get(key, "{}").format(text))
    return ", ".join(words)


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)


def _timeline(days: list[dict[str, Any]]) -> str:
    if len(days) < 2:  # one bar says nothing about the pace
        return ""
    return mark_safe(progress_timeline([d["day"] for d in days], [d["n"] for d in days]))


def _progress(row: Campaign) -> dict[str, Any]:
    wanted = Q(purpose=Slot.Purpose.JUDGE)
    counts = row.slots.aggregate(
        total=Count("pk", filter=wanted),
        done=Count("pk", filter=wanted & Q(state="done")),
        leased=Count("pk", filter=Q(state="leased")),
        oldest_lease=Min("leased_at", filter=Q(state="leased")),
    )
    counts["percent"] = 100 * counts["done"] // counts["total"] if counts["total"] else 0
    return counts


def _assessors(row: Campaign, computation: Any) -> list[dict[str, Any]]:
    """Return the assessors with what is known of each, the flagged first; flags of the newest computation only."""
    estimates = {}
    flags = {}
    if computation is not None:
        estimates = {
            estimate.assessor_id: estimate for estimate in computation.confusions.filter(scope="assessor")
        }
        flags = {flag.assessor_id: flag for flag in computation.flags.all()}
    people = (
        row.assessors.select_related("user")
        .annotate(active=Sum("judgments__active_milliseconds"), last=Max("judgments__created_at"))
        .order_by("id")
    )
    rows = [
        {
            "row": person,
            "seconds_each": (person.active or 0) / 1000 / person.n_judged if person.n_judged else None,
            "last": person.last,
            "confusion": estimates.get(person.pk),
            "flag": flags.get(person.pk),
        }
        for person in people
    ]
    return sorted(rows, key=lambda row: row["flag"] is None)  # what is wrong comes first


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


def _hard_items(row: Campaign) -> list[dict[str, Any]]:
    names = ("item__topic__title", "item__document__title", "item__document__doc_id")
    counts = without_grade(row).values("item", *names).annotate(n=Count("pk")).order_by("-n", "item")
    return [
        {
            "topic": found["item__topic__title"],
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
        .order_by("-id")[:SHOWN_COMMENTS]
    )


@require_POST
@managers_only
def recompute_now(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    queue_recomputation(campaign=_campaign(campaign_id))
    messages.info(request, "The numbers are being computed anew.")
    return redirect("analytics:campaign", campaign_id=campaign_id)
