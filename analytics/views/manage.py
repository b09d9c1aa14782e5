"""The manager's pages with numbers: a campaign at a glance, its audits."""

import math
import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from analytics.charts import progress_timeline
from analytics.forms import AuditForm
from analytics.services.recomputation import latest_computation, queue_recomputation
from analytics.views.design import draw_context
from judging.forms import AssessorForm
from judging.models import Assessor, Campaign, Judgment, Slot
from judging.views.access import managers_only
from sampling.models import AuditSchedule
from touchstone import jobs
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
        "audits": _audits(row),
        "schedule": AuditSchedule.objects.filter(campaign=row).first(),
        "audit_form": _audit_form(row),
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
        estimates = {estimate.assessor_id: estimate for estimate in computation.confusions.all()}
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


def _audit_form(row: Campaign) -> AuditForm:
    """Return the form with the schedule; without one, with sizes that let the next audit add to those made."""
    schedule = AuditSchedule.objects.filter(campaign=row).first()
    last = row.audits.last()
    if schedule or last is None:
        return AuditForm(instance=schedule)
    each = max(1, round(last.expected_in_total / last.sequence))
    total = math.ceil(last.expected_in_total) + each
    return AuditForm(initial={"items_each_time": each, "items_in_total": total})


def _audits(row: Campaign) -> list[dict[str, Any]]:
    """Return the audits with how many of their items the gold tier has judged; an item has one slot for audits."""
    done = Q(
        entries__selected=True,
        entries__item__slots__purpose=Slot.Purpose.AUDIT,
        entries__item__slots__state=Slot.State.DONE,
    )
    return [
        {"row": made, "n_judged": made.n_judged, "is_complete": made.n_judged == made.n_selected}
        for made in row.audits.annotate(n_judged=Count("entries", filter=done)).order_by("sequence")
    ]


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
def audit_schedule(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Save the schedule; with `now`, audit at once."""
    row = _campaign(campaign_id)
    form = AuditForm(request.POST, instance=AuditSchedule.objects.filter(campaign=row).first())
    if not form.is_valid():
        messages.error(request, "; ".join(error for errors in form.errors.values() for error in errors))
        return redirect("analytics:campaign", campaign_id=campaign_id)
    schedule = form.save(commit=False)
    schedule.campaign = row
    schedule.save()
    if "now" in request.POST:
        payload = {"campaign": str(row.pk)}
        job = jobs.enqueue(kind="audit", payload=payload, active_key=str(row.pk), user=request.user)
        if job is None:
            messages.info(request, "An audit of this campaign is being drawn already.")
            return redirect("analytics:campaign", campaign_id=campaign_id)
        back = reverse("analytics:campaign", args=[row.pk])
        return redirect(f"{reverse('job', args=[job.pk])}?back={back}")
    return redirect("analytics:campaign", campaign_id=campaign_id)


@require_POST
@managers_only
def recompute_now(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    queue_recomputation(campaign=_campaign(campaign_id))
    messages.info(request, "The numbers are being computed anew.")
    return redirect("analytics:campaign", campaign_id=campaign_id)
