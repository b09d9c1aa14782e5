"""Erase who judged in a closed campaign: what is lost is said first, and the campaign's name must be typed."""

import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from analytics.models import Release
from console.campaigns import campaign_of
from judging.services.access import managers_only
from judging.services.errors import Refused
from touchstone.models import user_of
from touchstone.people import erasing_judges


@require_http_methods(["GET", "POST"])
@managers_only
def erase(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The page that says what is lost; a POST with the campaign's name queues the job that does it."""
    row = campaign_of(campaign_id)
    refusal, status = erasing_judges.why_not(row), 200
    is_wrong = request.method == "POST" and request.POST.get("confirmation", "").strip() != row.name.strip()
    if request.method == "POST" and not is_wrong:
        try:
            job = erasing_judges.queue_erasing(campaign=row, actor=user_of(request))
            messages.info(request, "Who judged is being erased. The job says when it is done.")
            return redirect(
                reverse("job", args=[job.pk]) + f"?back={reverse('console:campaign', args=[row.pk])}"
            )
        except Refused as fault:
            refusal, status = str(fault), 409
    context = {
        "campaign": row,
        "refusal": refusal,
        "is_wrong": is_wrong,
        "n_people": erasing_judges.judges_of(row).count(),
        "n_releases": row.releases.filter(state=Release.State.READY).exclude(pseudonym_key="").count(),
    }
    return render(request, "console/manager/erase_judges.html", context, status=400 if is_wrong else status)
