"""The manager's pages that put a collection right: an import taken back, a run set aside."""

import uuid

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging.models import Import, Run
from judging.services.access import managers_only
from judging.services.collections import set_run_aside, take_run_in
from judging.services.errors import NameTaken, Refused
from touchstone.ledger.take_back import LONGEST_WHY, Rest, take_back, what_rests_on
from touchstone.models import user_of

# By what rests on an import: the page of the campaign that shows it.
REST_PAGES = {
    "items": "console:items",
    "checks": "console:items",
    "places for judgments": "console:items",
    "draws": "console:campaign",
    "draws calibrated on this gold": "console:campaign",
    "audits": "console:audits",
    "forecasts of audits": "console:audits",
    "computations": "console:campaign-results",
    "declared families of comparisons": "console:pairs",
    "releases": "console:releases",
    "training items": "console:manage-entry",
    "topics of campaigns": "console:manage-topics",
    "topics given to assessors first": "console:assessors",
    "checks of topics": "console:topic-checks",
}


class WhyForm(forms.Form):
    why = forms.CharField(label="Why", max_length=LONGEST_WHY, widget=forms.TextInput)


@managers_only
def take_import_back(request: HttpRequest, collection_id: uuid.UUID, import_id: uuid.UUID) -> HttpResponse:
    """What rests on an import, and, if nothing does, the button that takes it back."""
    rows = Import.objects.select_related("collection", "user", "taken_back_by")
    made = get_object_or_404(rows, pk=import_id, collection_id=collection_id)
    form, refusal = WhyForm(request.POST or None), ""
    if request.method == "POST" and form.is_valid():
        try:
            take_back(made=made, why=form.cleaned_data["why"], actor=user_of(request))
        except Refused as error:
            refusal = f"{error.title}. {error}".strip()
        else:
            messages.success(request, "Taken back: what the import brought is gone.")
            return redirect("console:manage-collection", collection_id=collection_id)
    context = {
        "made": made,
        "collection": made.collection,
        "rests": [(rest, _page_of(rest)) for rest in what_rests_on(made)],
        "form": form,
        "refusal": refusal,
        "status": made.get_state_display().lower(),
    }
    is_wrong = bool(refusal or form.errors)
    return render(request, "console/manager/import_back.html", context, status=400 if is_wrong else 200)


def _page_of(rest: Rest) -> str:
    """Return the address of the page that shows what rests on an import; empty where no page does."""
    name = REST_PAGES.get(rest.what)
    if name is None or rest.campaign is None or rest.is_deleted:
        return ""
    address = reverse(name, args=[rest.campaign.pk])
    return f"{address}#draw" if name == "console:campaign" else address


@require_POST
@managers_only
def switch_run(request: HttpRequest, collection_id: uuid.UUID, run_id: int) -> HttpResponse:
    """Set a run aside, or take it in again, as the button says."""
    rows = Run.everything.select_related("collection")
    row, actor = get_object_or_404(rows, pk=run_id, collection_id=collection_id), user_of(request)
    try:
        if row.set_aside_at is None:
            set_run_aside(run=row, why=request.POST.get("why", ""), actor=actor)
            messages.success(request, f"Set aside: {row.run_id}. Its tag is free.")
        else:
            take_run_in(run=row, actor=actor)
            messages.success(request, f"{row.run_id} is pooled and compared again.")
    except NameTaken:
        messages.error(request, f"Another run is called {row.run_id} now: set that one aside first.")
    except Refused as error:
        messages.error(request, f"{error.title}: {error}.")
    return redirect("console:manage-collection", collection_id=collection_id)
