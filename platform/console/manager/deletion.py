"""Deleting collections and campaigns, and bringing them back. Deleted is hidden, never removed."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from console.forms.campaigns import ConfirmationForm
from judging.models import Campaign, Collection
from judging.services import deletion
from judging.services.access import managers_only
from judging.services.errors import NameTaken, Refused
from touchstone.models import user_of

SHOWN = 200


@managers_only
def delete_campaign(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Campaign.objects.select_related("collection"), pk=campaign_id)
    form = ConfirmationForm(request.POST or None, name=row.name)
    if request.method == "POST" and form.is_valid():
        deletion.delete_campaign(
            campaign=row, confirmation=form.cleaned_data["confirmation"], actor=user_of(request)
        )
        messages.success(request, f"Deleted: {row.name}. It can be restored here.")
        return redirect("console:manage-deleted")
    context = {"campaign": row, "form": form}
    return render(request, "console/manager/delete.html", context, status=400 if form.errors else 200)


@managers_only
def delete_collection(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Collection, pk=collection_id)
    form = ConfirmationForm(request.POST or None, name=row.name)
    if request.method == "POST" and form.is_valid():
        deletion.delete_collection(
            collection=row, confirmation=form.cleaned_data["confirmation"], actor=user_of(request)
        )
        messages.success(request, f"Deleted: {row.name}. It can be restored here, with its campaigns.")
        return redirect("console:manage-deleted")
    context = {"collection": row, "form": form, "campaigns": row.campaigns.filter(deleted_at=None)[:SHOWN]}
    return render(request, "console/manager/delete.html", context, status=400 if form.errors else 200)


class RestoreForm(forms.Form):
    kind = forms.ChoiceField(choices=[("campaign", "campaign"), ("collection", "collection")])
    key = forms.UUIDField()
    name = forms.CharField(max_length=100, required=False)


@managers_only
def deleted_items(request: HttpRequest) -> HttpResponse:
    """What was deleted of what one may see; a POST restores."""
    open_to_me = Collection.objects.open_to(user_of(request))
    collections = open_to_me.exclude(deleted_at=None).order_by("-deleted_at")
    campaigns = (
        Campaign.objects.exclude(deleted_at=None)
        .filter(collection__in=open_to_me)
        .select_related("collection")
        .order_by("-deleted_at")
    )
    if request.method == "POST":
        return _restore(request, {"campaign": campaigns, "collection": collections})
    context = {
        "collections": collections.annotate(is_taken=_other(Collection))[:SHOWN],
        "campaigns": campaigns.annotate(is_taken=_other(Campaign))[:SHOWN],
    }
    return render(request, "console/manager/deleted.html", context)


def _other(model: type[Collection] | type[Campaign]) -> Exists:
    """Return whether another one that is not deleted has the name now."""
    return Exists(model._default_manager.filter(name=OuterRef("name"), deleted_at=None))


def _restore(request: HttpRequest, rows: dict[str, Any]) -> HttpResponse:
    form = RestoreForm(request.POST)
    if not form.is_valid():
        raise Http404
    kind = form.cleaned_data["kind"]
    row, name = get_object_or_404(rows[kind], pk=form.cleaned_data["key"]), form.cleaned_data["name"]
    try:
        if kind == "campaign":
            deletion.restore_campaign(campaign=row, actor=user_of(request), name=name)
        else:
            deletion.restore_collection(collection=row, actor=user_of(request), name=name)
    except NameTaken:
        messages.error(
            request,
            f"Another {kind} is called “{name or row.name}” now. Restore this one under another name.",
        )
    except Refused as refusal:
        messages.error(request, f"{refusal.title}.")
    else:
        messages.success(request, f"Restored: {name or row.name}.")
    return redirect("console:manage-deleted")
