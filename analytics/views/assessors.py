"""The manager's page of one assessor: how he grades, what he said, under which rules, and having it all made again."""

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from analytics.charts import confusion_heat_map
from analytics.services.recomputation import latest_computation, queue_recomputation
from analytics.views.manage import obstacle_counts, without_grade
from judging.forms import AssessorRulesForm, RequeueForm
from judging.models import Assessor, MachineCall, Slot
from judging.services import campaigns, leases
from judging.views.access import managers_only


@managers_only
def assessor(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """One assessor: the confusion matrix with its intervals, speed, flags, rules. A POST saves the rules."""
    person = _assessor(campaign_id, assessor_id)
    if request.method != "POST":
        return _assessor_page(request, person)
    form = AssessorRulesForm(request.POST, assessor=person)
    if not form.is_valid():
        return _assessor_page(request, person, rules=form)
    campaigns.set_assessor_rules(assessor=person, actor=request.user, **form.cleaned_data)
    messages.success(
        request,
        "Saved. The quota counts at once, team and first topics from the next topic on.",
    )
    return redirect("analytics:assessor", campaign_id=campaign_id, assessor_id=assessor_id)


@require_POST
@managers_only
def requeue(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """Set the assessor's judgments aside and let others make them again."""
    person = _assessor(campaign_id, assessor_id)
    form = RequeueForm(request.POST, assessor=person)
    if not form.is_valid():
        return _assessor_page(request, person, confirm=form)
    n = leases.requeue(assessor=person, actor=request.user)
    if n:
        queue_recomputation(campaign=person.campaign)
        wanted = "1 judgment is" if n == 1 else f"{n:,} judgments are"
        messages.success(
            request, f"{wanted} wanted again, from others. Nothing was deleted; the numbers follow."
        )
    else:
        messages.info(request, "There was nothing to make again.")
    return redirect("analytics:assessor", campaign_id=campaign_id, assessor_id=assessor_id)


def _assessor(campaign_id: uuid.UUID, assessor_id: int) -> Assessor:
    people = Assessor.objects.select_related("user", "campaign__collection", "campaign__scale")
    return get_object_or_404(people, pk=assessor_id, campaign_id=campaign_id)


def _assessor_page(
    request: HttpRequest,
    person: Assessor,
    *,
    rules: AssessorRulesForm | None = None,
    confirm: RequeueForm | None = None,
) -> HttpResponse:
    row = person.campaign
    computation = latest_computation(campaign=row)
    confusion = computation.confusions.filter(assessor=person).first() if computation else None
    labels = [f"{grade.value} {grade.label}" for grade in row.scale.grades.all()]
    heat_map = ""
    if confusion is not None and None not in confusion.matrix:  # a grade without gold has no row to draw
        title = f"How {person.user.username} grades"
        heat_map = mark_safe(
            confusion_heat_map(confusion.matrix, confusion.low, confusion.high, labels, title)
        )
    sums = person.judgments.aggregate(
        active=Sum("active_milliseconds"), comments=Count("pk", filter=~Q(comment=""))
    )
    context = {
        "campaign": row,
        "assessor": person,
        "confusion": confusion,
        "rows": matrix_rows(confusion, labels) if confusion else [],
        "labels": labels,
        "heat_map": heat_map,
        "flags": person.flags.order_by("-id")[:5],
        "minutes": (sums["active"] or 0) / 60_000,
        "n_comments": sums["comments"],
        "obstacles": obstacle_counts(without_grade(row).filter(assessor=person)),
        "calls": _machine_calls(person),
        "rules_form": rules or AssessorRulesForm(assessor=person, initial=_rules(person)),
        "requeue_form": confirm or RequeueForm(assessor=person),
        "n_requeued": person.slots.filter(state=Slot.State.DONE, purpose__in=leases.REQUEUED).count(),
        "needs_training": row.training_items.exists(),
        "teams": sorted({*row.assessors.exclude(team="").values_list("team", flat=True)}),
    }
    return render(request, "analytics/assessor.html", context, status=400 if rules or confirm else 200)


def _rules(person: Assessor) -> dict[str, Any]:
    first = person.first_topics.order_by("topic_id").values_list("topic_id", flat=True)
    return {"quota": person.quota, "team": person.team, "first_topics": " ".join(first)}


def _machine_calls(person: Assessor) -> dict[str, Any] | None:
    """Return what a machine's requests came to; people make none."""
    if person.kind != Assessor.Kind.MACHINE:
        return None
    calls = MachineCall.objects.filter(assessor=person)
    sums = calls.aggregate(
        n=Count("pk"), cost=Sum("cost"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    by_status = calls.values("status").annotate(n=Count("pk")).order_by("-n", "status")
    models = calls.values_list("model", flat=True).distinct().order_by("model")[:5]
    return {**sums, "by_status": list(by_status), "models": list(models)}


def matrix_rows(confusion: Any, labels: list[str]) -> list[dict[str, Any]]:
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
