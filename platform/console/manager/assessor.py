"""The manager's page of one assessor: grades, comments, rules, and having the judgments made again."""

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.postgres.aggregates import ArrayAgg
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, OuterRef, Subquery, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from analytics.charts import Chart, confusion_heat
from analytics.services.recomputation import latest_computation, queue_recomputation
from console.forms.campaigns import AssessorRulesForm, MessageForm, RequeueForm
from console.manager.assessor_log import log_charts, log_columns, log_context
from console.manager.comments import LOOKED_AT, obstacle_counts, without_grade
from console.manager.stuck import still_stuck_words
from console.researcher.plots import plot_answer
from judging.models import Assessor, Judgment, MachineCall, Message, Topic, TrainingItem
from judging.services import campaigns, leases
from judging.services import messages as letters
from judging.services.access import managers_only
from touchstone.models import user_of

SHOWN_MESSAGES = 20


@managers_only
def assessor(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """One assessor: the confusion matrix with its intervals, speed, flags, rules. A POST saves the rules."""
    person = _assessor(campaign_id, assessor_id)
    if request.method != "POST":
        return _assessor_page(request, person)
    form = AssessorRulesForm(request.POST, assessor=person)
    if not form.is_valid():
        return _assessor_page(request, person, rules=form)
    campaigns.set_assessor_rules(assessor=person, actor=user_of(request), **form.cleaned_data)
    messages.success(
        request,
        "Saved. The quota counts at once, team and first topics apply from the next topic on."
        + still_stuck_words(person.campaign),
    )
    return redirect("console:assessor", campaign_id=campaign_id, assessor_id=assessor_id)


@require_POST
@managers_only
def requeue(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """Set the assessor's judgments aside and let others make them again."""
    person = _assessor(campaign_id, assessor_id)
    form = RequeueForm(request.POST, assessor=person)
    if not form.is_valid():
        return _assessor_page(request, person, confirm=form)
    n = leases.requeue(assessor=person, actor=user_of(request))
    if n:
        queue_recomputation(campaign=person.campaign)
        requested = "1 judgment is" if n == 1 else f"{n:,} judgments are"
        messages.success(
            request,
            f"{requested} requested again from other assessors. Nothing was deleted. The numbers will be recomputed.",
        )
    else:
        messages.info(request, "There was no judgment to request again.")
    return redirect("console:assessor", campaign_id=campaign_id, assessor_id=assessor_id)


@require_POST
@managers_only
def send_message(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    """Send the assessor a message; it stays on their pages until they mark it as read."""
    person = _assessor(campaign_id, assessor_id)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _assessor_page(request, person, message=form)
    letters.send(assessor=person, text=form.cleaned_data["text"], sender=user_of(request))
    messages.success(request, f"Sent: {person.user.get_username()} will see it on the next page they open.")
    back = reverse("console:assessor", args=[campaign_id, assessor_id])
    return redirect(f"{back}#messages")


def _assessor(campaign_id: uuid.UUID, assessor_id: int) -> Any:
    colleagues = (
        Assessor.objects.filter(campaign=OuterRef("campaign")).exclude(team="").order_by().values("campaign")
    )
    first = Topic.objects.filter(
        pk__in=Assessor.first_topics.through.objects.filter(assessor=OuterRef(OuterRef("pk"))).values("topic")
    )
    people = Assessor.objects.select_related("user", "campaign__collection", "campaign__scale").annotate(
        teams=Subquery(colleagues.annotate(found=ArrayAgg("team", distinct=True)).values("found")),
        first_ids=ArraySubquery(first.order_by("topic_id").values("topic_id")),
        needs_training=Exists(TrainingItem.objects.filter(campaign=OuterRef("campaign"))),
        **log_columns(),
    )
    return get_object_or_404(people, pk=assessor_id, campaign_id=campaign_id)


def _assessor_page(
    request: HttpRequest,
    person: Any,
    *,
    rules: AssessorRulesForm | None = None,
    confirm: RequeueForm | None = None,
    message: MessageForm | None = None,
) -> HttpResponse:
    row = person.campaign
    computation = latest_computation(campaign=row)
    confusion = computation.confusions.filter(assessor=person).first() if computation else None
    labels = [f"{grade.value} {grade.label}" for grade in row.scale.grades.all()]
    if "plot" in request.GET:
        of_log = log_charts(person)
        return plot_answer(request, {"grades": lambda: _heat(person, confusion, labels), **of_log})
    activity = (computation.activity if computation else None) or {}
    context = {
        "campaign": row,
        "assessor": person,
        "computation": computation,
        "confusion": confusion,
        "rows": matrix_rows(confusion, labels) if confusion else [],
        "labels": labels,
        "chart": _heat(person, confusion, labels),
        **log_context(person),
        **_work(person, activity),
        "obstacles": _obstacles(person),
        "calls": _machine_calls(person),
        "n_answered": person.n_judged - person.n_failed,
        "rules_form": rules or AssessorRulesForm(assessor=person, initial=_rules(person)),
        "requeue_form": confirm or RequeueForm(assessor=person),
        "message_form": message or MessageForm(),
        "sent": _messages(person),
        "n_requeued": _n_requeueable(person),
        "most": LOOKED_AT,
        "needs_training": person.needs_training,
        "teams": person.teams or [],
    }
    is_wrong = rules or confirm or message
    return render(request, "console/manager/assessor.html", context, status=400 if is_wrong else 200)


def _heat(person: Assessor, confusion: Any, labels: list[str]) -> Chart | None:
    """Return the matrix as a picture; None while no grade has gold."""
    if confusion is None or all(row is None for row in confusion.matrix):
        return None
    matrix, low, high = (
        [row if row is not None else [None] * len(labels) for row in table]
        for table in (confusion.matrix, confusion.low, confusion.high)
    )
    title = f"How {person.user.get_username()} grades"
    return confusion_heat(labels, matrix, low, high, confusion.counts, title)


def _work(person: Assessor, activity: dict[str, Any]) -> dict[str, Any]:
    """Return speed and agreement as the newest computation counted them, beside those of everybody."""
    n, milliseconds = activity.get("assessors", {}).get(str(person.pk), (0, 0))
    share, n_shared = activity.get("agreement", {}).get(str(person.pk), (None, 0))
    others = [pair for pair in activity.get("agreement", {}).values() if pair[1]]
    weight = sum(pair[1] for pair in others)
    speeds = sorted(pair[1] / 1000 / pair[0] for pair in activity.get("assessors", {}).values() if pair[0])
    return {
        "minutes": milliseconds / 60_000,
        "seconds_each": milliseconds / 1000 / n if n else None,
        "seconds_usual": speeds[len(speeds) // 2] if len(speeds) > 1 else None,
        "agreement": share,
        "n_shared": n_shared,
        "agreement_usual": sum(pair[0] * pair[1] for pair in others) / weight if len(others) > 1 else None,
    }


def _rules(person: Any) -> dict[str, Any]:
    return {"quota": person.quota, "team": person.team, "first_topics": " ".join(person.first_ids)}


def _messages(person: Assessor) -> list[Message]:
    if person.kind != Assessor.Kind.HUMAN:  # nobody reads them
        return []
    return list(person.messages.select_related("sender").order_by("-id")[:SHOWN_MESSAGES])


def _n_requeueable(person: Assessor) -> int:
    """Return how many judgments could be made again, by the index of the person's judgments and up to a limit."""
    filled = Judgment.objects.filter(assessor=person, sequence=1, slot__purpose__in=leases.REQUEUED)
    return filled.order_by("-id")[:LOOKED_AT].count()


def _obstacles(person: Assessor) -> list[dict[str, Any]]:
    mine = (
        without_grade(person.campaign)
        .filter(assessor=person)
        .order_by("-id")
        .values_list("obstacle", flat=True)
    )
    return obstacle_counts(mine[:LOOKED_AT])


def _machine_calls(person: Assessor) -> dict[str, Any] | None:
    """Return what a machine's newest requests came to; people make none."""
    if person.kind != Assessor.Kind.MACHINE:
        return None
    newest = MachineCall.objects.filter(assessor=person).order_by("-id").values("pk")[:LOOKED_AT]
    by_status = list(
        MachineCall.objects.filter(pk__in=newest)
        .values("status")
        .annotate(
            n=Count("pk"),
            cost=Sum("cost"),
            prompt=Sum("prompt_tokens"),
            completion=Sum("completion_tokens"),
            models=ArrayAgg("model", distinct=True),
        )
        .order_by("-n", "status")
    )
    sums = {name: sum(row[name] for row in by_status) for name in ("n", "cost", "prompt", "completion")}
    models = sorted({model for row in by_status for model in row["models"]})[:5]
    return {**sums, "by_status": by_status, "models": models, "is_cut": sums["n"] == LOOKED_AT}


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
