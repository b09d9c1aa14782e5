"""The manager's pages with numbers: a campaign at a glance, its design, its assessors, its audits."""

import math
import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count, Max, Min, Q, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from analytics.charts import confusion_heat_map, half_width_curve, progress_timeline
from analytics.forms import AuditForm, DesignForm
from analytics.services.recomputation import latest_computation, queue_recomputation
from judging.forms import AssessorForm
from judging.models import Assessor, Campaign, Slot
from judging.views.access import managers_only
from sampling.frames import FrameRefused
from sampling.models import AuditSchedule
from sampling.services.drawing import Preview, preview
from touchstone import jobs
from touchstone.models import Event, Job

DESIGN_NAMES = {"pair": "Pair design", "pool": "Even pool", "naive": "Naive"}


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
    draw = getattr(row, "draw", None)
    context = {
        "campaign": row,
        "draw": draw,
        "draw_job": None if draw else _last_draw_job(row),
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
        "events": Event.objects.filter(subject=f"campaign:{row.pk}")
        .select_related("actor")
        .order_by("-id")[:12],
    }
    return render(request, "analytics/campaign.html", context)


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign.objects.select_related("collection", "scale", "draw"), pk=campaign_id)


def _last_draw_job(row: Campaign) -> Job | None:
    """Return the draw that runs, or that failed; a page without items says which."""
    return Job.objects.filter(kind="draw", payload__campaign=str(row.pk)).order_by("-created_at").first()


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


@managers_only
def assessor(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """One assessor: the confusion matrix with its intervals, speed, flags."""
    row = _campaign(campaign_id)
    person = get_object_or_404(Assessor.objects.select_related("user"), pk=assessor_id, campaign=row)
    computation = latest_computation(campaign=row)
    confusion = computation.confusions.filter(assessor=person).first() if computation else None
    labels = [f"{grade.value} {grade.label}" for grade in row.scale.grades.all()]
    heat_map = ""
    if confusion is not None and None not in confusion.matrix:  # a grade without gold has no row to draw
        title = f"How {person.user.username} grades"
        heat_map = mark_safe(
            confusion_heat_map(confusion.matrix, confusion.low, confusion.high, labels, title)
        )
    context = {
        "campaign": row,
        "assessor": person,
        "confusion": confusion,
        "rows": _matrix_rows(confusion, labels) if confusion else [],
        "labels": labels,
        "heat_map": heat_map,
        "flags": person.flags.order_by("-id")[:5],
        "minutes": (person.judgments.aggregate(total=Sum("active_milliseconds"))["total"] or 0) / 60_000,
    }
    return render(request, "analytics/assessor.html", context)


def _matrix_rows(confusion: Any, labels: list[str]) -> list[dict[str, Any]]:
    """Return one row a true grade: its cells with intervals, or none where that grade has no gold yet."""
    rows = []
    for true, (label, counts) in enumerate(zip(labels, confusion.counts, strict=True)):
        cells = []
        if confusion.matrix[true] is not None:
            ends = zip(confusion.matrix[true], confusion.low[true], confusion.high[true], strict=True)
            cells = [
                {
                    "share": share,
                    "low": low,
                    "high": high,
                    "tenths": round(10 * share),
                    "right": given == true,
                }
                for given, (share, low, high) in enumerate(ends)
            ]
        rows.append({"label": label, "n": sum(counts), "cells": cells})
    return rows


@managers_only
def design(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Choose what to judge. The expected interval is shown before a judgment is spent; a POST draws."""
    row = _campaign(campaign_id)
    if hasattr(row, "draw"):
        return redirect("analytics:campaign", campaign_id=campaign_id)
    asked = request.POST or (request.GET if "kind" in request.GET else None)
    form = DesignForm(asked, campaign=row)
    shown, refusal = None, ""
    if asked and form.is_valid():
        if request.method == "POST":
            payload = {"campaign": str(row.pk), "design": _design_payload(form)}
            job = jobs.enqueue(kind="draw", payload=payload, active_key=str(row.pk), user=request.user)
            if job is None:
                messages.error(request, "A draw of this campaign is running already.")
                return redirect("analytics:campaign", campaign_id=campaign_id)
            back = reverse("analytics:campaign", args=[row.pk])
            return redirect(f"{reverse('job', args=[job.pk])}?back={back}")
        try:
            shown = preview(campaign=row, design=form.design())
        except FrameRefused as error:
            refusal = str(error)
        if shown and not shown.budgets:
            shown, refusal = None, f"the pool holds {shown.n_frame} pairs only: judge them all"
    context = {
        "campaign": row,
        "form": form,
        "preview": shown,
        "refusal": refusal,
        "curve": _curve(shown) if shown else "",
        "budgets": _by_budget(shown) if shown else [],
        "at_budget": _at_budget(shown, form.cleaned_data["budget"]) if shown else [],
        "runs": row.collection.runs.count(),
    }
    return render(request, "analytics/design.html", context, status=400 if form.errors else 200)


def _design_payload(form: DesignForm) -> dict[str, Any]:
    return dict(form.cleaned_data)


def _curve(shown: Preview) -> str:
    widths = {
        DESIGN_NAMES[name]: shown.designs[name] for name in ("naive", "pair", "pool")
    }  # soft, bold, dashed
    if len(shown.budgets) < 2 or not all(math.isfinite(width) for line in widths.values() for width in line):
        return ""  # the table says it
    return mark_safe(half_width_curve(shown.budgets, widths, "Expected half-width of the 95 % interval"))


def _at_budget(shown: Preview, budget: int) -> list[dict[str, Any]]:
    place = shown.budgets.index(min(shown.budgets, key=lambda n: abs(n - budget)))
    return [
        {"design": DESIGN_NAMES[name], "half_width": values[place]} for name, values in shown.designs.items()
    ]


def _by_budget(shown: Preview) -> list[dict[str, Any]]:
    """Return the numbers behind the curve: a row a budget, a half-width a design."""
    columns = list(shown.designs.values())
    return [
        {"budget": budget, "widths": [column[place] for column in columns]}
        for place, budget in enumerate(shown.budgets)
    ]


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
