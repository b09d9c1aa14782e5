"""One judgment more of chosen documents: a preview on the page of adjudications, and the button that opens slots."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from analytics.services.rejudging import open_rejudging, rejudging_plan
from console.forms.rejudging import RejudgingForm
from judging.models import Campaign
from judging.services.access import managers_only
from judging.services.errors import Refused
from touchstone.models import user_of


def again_context(request: HttpRequest, row: Campaign) -> dict[str, Any]:
    """Return the form and, where it was sent, what the choice comes to: computed on request, and stored nowhere."""
    if "policy" not in request.GET:
        return {"again": RejudgingForm(campaign=row)}
    form = RejudgingForm(request.GET, campaign=row)
    return {"again": form, "plan": rejudging_plan(row, form.choice()) if form.is_valid() else None}


@require_POST
@managers_only
def judge_again(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Open one slot more of each document that the choice comes to."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    form = RejudgingForm(request.POST, campaign=row)
    if not form.is_valid():
        messages.error(request, "; ".join(str(error) for errors in form.errors.values() for error in errors))
    else:
        try:
            n = open_rejudging(campaign=row, choice=form.choice(), actor=user_of(request))
        except Refused as refusal:
            messages.error(request, f"Nothing was opened: {refusal}.")
        else:
            words = "1 judgment" if n == 1 else f"{n:,} judgments"
            messages.success(
                request,
                f"{words} more can be made; the next assessors get them among the others."
                if n
                else "Nothing was opened: no document is left for this policy.",
            )
    return redirect(f"{reverse('console:adjudication', args=[campaign_id])}#again")
