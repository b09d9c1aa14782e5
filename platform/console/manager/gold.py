"""Gold of judged documents, imported into a campaign whose judgments are all there is, with how it was chosen."""

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from console.forms.samples import GoldForm
from judging.gold_choices import GOLD_CHOICES
from judging.models import Campaign
from judging.services.access import managers_only
from judging.services.complete_files import has_all
from judging.services.errors import ImportRefused
from judging.services.files import queue_import
from judging.services.gold_files import NOT_COMPLETE
from touchstone.models import user_of


@managers_only
def gold(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Upload gold grades and say how their documents were chosen; a POST queues the import."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    form = GoldForm(request.POST, request.FILES) if request.method == "POST" else GoldForm()
    obstacle = "" if has_all(row) else NOT_COMPLETE
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
    context = {
        "campaign": row,
        "form": form,
        "obstacle": obstacle,
        "choices": GOLD_CHOICES,
        "declared": row.audits.exclude(declaration="").first(),
        "grades": row.scale.grades.all(),
    }
    is_refused = request.method == "POST" and (obstacle or form.errors)
    return render(request, "console/manager/gold.html", context, status=400 if is_refused else 200)
