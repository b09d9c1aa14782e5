"""What was judged elsewhere, a sample or all there is, imported into a campaign that has nothing yet."""

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from console.forms.samples import GoldForm, SampleForm
from judging.models import Campaign
from judging.services.access import managers_only
from judging.services.errors import ImportRefused
from judging.services.files import queue_import
from judging.services.judgment_formats import FORMATS
from judging.services.sample_files import NOT_EMPTY
from touchstone.models import user_of


@managers_only
def sample(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Upload a sample or all labels; a POST queues its import, which refuses what is wrong by its line."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    form = SampleForm(request.POST, request.FILES) if request.method == "POST" else SampleForm()
    obstacle = NOT_EMPTY if row.items.exists() else ""
    formats = [one for one in FORMATS if one.sample is not None or one.names_assessors]
    return upload_page(request, "console/manager/sample.html", row, form, obstacle, {"formats": formats})


def upload_page(
    request: HttpRequest,
    template: str,
    row: Campaign,
    form: SampleForm | GoldForm,
    obstacle: str,
    shown: dict[str, Any],
) -> HttpResponse:
    """Show the form of a file of judgments for a campaign; a POST queues its import and leads to the job.

    `obstacle` says why nothing can be imported; `shown` is what else the page needs.
    """
    if request.method == "POST" and not obstacle and form.is_valid():
        try:
            job = queue_import(
                kind="judgments",
                files=[form.cleaned_data["file"]],
                collection=row.collection,
                campaign=row,
                options=form.import_options(),
                user=user_of(request),
            )
        except ImportRefused as refusal:
            form.add_error("file", str(refusal))
        else:
            back = urlencode({"back": reverse("console:campaign", args=[row.pk])})
            return redirect(f"{reverse('job', args=[job.pk])}?{back}")
    context = {"campaign": row, "form": form, "obstacle": obstacle, "grades": row.scale.grades.all()} | shown
    is_refused = request.method == "POST" and (obstacle or form.errors)
    return render(request, template, context, status=400 if is_refused else 200)
