"""Gold of judged documents, imported into a campaign whose judgments are all there is, with how it was chosen."""

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from console.forms.samples import GoldForm
from console.manager.samples import upload_page
from judging.gold_choices import GOLD_CHOICES
from judging.models import Campaign
from judging.services.access import managers_only
from judging.services.complete_files import has_all
from judging.services.gold_files import NOT_COMPLETE


@managers_only
def gold(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Upload gold grades and say how their documents were chosen; a POST queues the import."""
    row = get_object_or_404(Campaign.objects.select_related("collection", "scale"), pk=campaign_id)
    form = GoldForm(request.POST, request.FILES) if request.method == "POST" else GoldForm()
    obstacle = "" if has_all(row) else NOT_COMPLETE
    declared = row.audits.exclude(declaration="").first()
    shown = {"choices": GOLD_CHOICES, "declared": declared}
    return upload_page(request, "console/manager/gold.html", row, form, obstacle, shown)
