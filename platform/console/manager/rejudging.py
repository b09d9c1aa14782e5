"""One judgment more of chosen documents: a preview that a job makes, and the button that opens its slots."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from analytics.services.rejudging import RejudgingChoice, ask_rejudging, open_rejudging, preview_job
from console.forms.rejudging import RejudgingForm
from judging.models import Campaign
from judging.services.access import managers_only
from judging.services.errors import Refused
from sampling.rejudging_policies import rejudging_policy_of
from touchstone.models import Job, user_of


def again_context(request: HttpRequest, row: Campaign) -> dict[str, Any]:
    """Return the form and, where its job is named, what the choice comes to."""
    if "plan" not in request.GET:
        return {"again": RejudgingForm(campaign=row)}
    job = _preview(row, request.GET["plan"])
    if job is None:
        raise Http404("There is no such preview.")
    made = job.result or {}
    return {
        "again": RejudgingForm(campaign=row, initial=job.payload["choice"]),
        "plan": made["plan"],
        "plan_job": job,
        "plan_policy": rejudging_policy_of(job.payload["choice"]["policy"]),
        "gains": _gains(row, made.get("gains")),
        "no_gains": made.get("no_gains", ""),
    }


def _gains(row: Campaign, gains: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the table of policies: what each costs and gains."""
    if gains is None:
        return None
    cost = row.cost_per_judgment
    rows = [
        {
            **one,
            "label": rejudging_policy_of(one["policy"]).label,
            "cost": None if cost is None else cost * one["n_judgments"],
            "gain": one["tau"] - gains["tau"],
        }
        for one in gains["policies"]
    ]
    percents = {name: 100 * gains[name] for name in ("false_alarm", "miss")}
    return {**gains, **percents, "policies": rows, "has_cost": cost is not None}


def _preview(row: Campaign, name: str) -> Job | None:
    try:
        return preview_job(row, uuid.UUID(name))
    except ValueError:
        return None


@require_POST
@managers_only
def preview_again(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Have a job work out what a choice comes to."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    here = reverse("console:adjudication", args=[campaign_id])
    form = RejudgingForm(request.POST, campaign=row)
    if not form.is_valid():
        messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
        return redirect(f"{here}#again")
    job = ask_rejudging(campaign=row, choice=form.choice(), user=user_of(request))
    return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': f'{here}?plan={job.pk}#again'})}")


@require_POST
@managers_only
def judge_again(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Open one slot more of each document that a preview came to."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    job = _preview(row, request.POST.get("plan", ""))
    here = redirect(f"{reverse('console:adjudication', args=[campaign_id])}#again")
    if job is None or not job.result:
        messages.error(request, "Nothing was opened: there is no such preview. Make a new one.")
        return here
    items = [uuid.UUID(item) for item in job.result["plan"]["items"]]
    choice = RejudgingChoice(**job.payload["choice"])
    try:
        n = open_rejudging(campaign=row, items=items, choice=choice, actor=user_of(request))
    except Refused as refusal:
        messages.error(request, f"Nothing was opened: {refusal}.")
    else:
        messages.success(request, _success_words(n))
    return here


def _success_words(n: int) -> str:
    if not n:
        return "Nothing was opened: these documents have their additional judgment already."
    words = "1 more judgment can be made" if n == 1 else f"{n:,} more judgments can be made"
    return f"{words}; the next assessors get them among the others."
