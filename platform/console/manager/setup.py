"""Setting a campaign up, a page a step: from nothing to open, resumable; each step says what is missing."""

import uuid
from collections.abc import Callable
from copy import copy
from typing import Any

from django.contrib import messages
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from console.forms.audits import AuditPlanForm
from console.forms.campaigns import (
    AssessorForm,
    CampaignEditForm,
    CampaignForm,
    CollectionForm,
)
from console.forms.uploads import FilesForm
from console.manager.campaigns import save_assessor, save_campaign
from console.manager.check_grades import check_grades_shown
from console.manager.collections import save_collection
from console.manager.imports import look_at_upload, recent_imports
from console.manager.setup_steps import (
    OF_CAMPAIGN,
    OF_COLLECTION,
    campaign_facts,
    collection_facts,
    rail,
    steps,
)
from judging.models import Assessor, Campaign, Collection
from judging.services import campaigns
from judging.services.access import managers_only
from judging.services.collections import create_collection
from judging.services.opening import opening
from sampling.models import AuditSchedule
from sampling.services.audit_schedules import save_schedule, schedule_words
from sampling.services.auditable import AuditRefused
from touchstone.models import user_of

SHOWN_COLLECTIONS = 50
SHOWN_PEOPLE = 20


class NewCollectionForm(CollectionForm):
    """The name is enough to begin with; the rest has a page of its own."""

    class Meta(CollectionForm.Meta):
        fields = ["name", "description"]


# -- where one is ---------------------------------------------------------------------------------------------


@managers_only
def new(request: HttpRequest) -> HttpResponse:
    """Step 1: make a collection, or choose one."""
    form = NewCollectionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = create_collection(user=user_of(request), **form.cleaned_data)
        return redirect("console:setup-collection", collection_id=made.pk, step="documents")
    visible = Collection.objects.visible_to(user_of(request)).order_by("-created_at")
    context = {
        "form": form,
        "collections": collection_facts(visible)[:SHOWN_COLLECTIONS],
        "drafts": Campaign.objects.visible_to(user_of(request))
        .filter(state=Campaign.State.DRAFT)
        .select_related("collection")[:SHOWN_COLLECTIONS],
        **rail(steps(None, None), "collection"),
    }
    return render(request, "console/manager/setup/new.html", context, status=400 if form.errors else 200)


@managers_only
def of_collection(request: HttpRequest, collection_id: uuid.UUID, step: str) -> HttpResponse:
    """A step before there is a campaign."""
    if step not in OF_COLLECTION:
        raise Http404
    row = get_object_or_404(collection_facts(Collection.objects), pk=collection_id)
    return HANDLERS[step](request, row, None)


@managers_only
def of_campaign(request: HttpRequest, campaign_id: uuid.UUID, step: str = "open") -> HttpResponse:
    """A step of a campaign; without one, how far it is and what is missing."""
    if step not in OF_CAMPAIGN:
        raise Http404
    if step == "design":
        return redirect("console:design", campaign_id=campaign_id)
    known = campaign_facts(Campaign.objects.select_related("scale"))
    campaign = get_object_or_404(known, pk=campaign_id)
    collection = campaign.collection = collection_facts(Collection.objects).get(pk=campaign.collection_id)
    return HANDLERS[step](request, collection, campaign)


def _page(
    request: HttpRequest,
    step: str,
    collection: Any,
    campaign: Any,
    context: dict[str, Any],
    *,
    is_wrong: bool = False,
) -> HttpResponse:
    shown = {
        "collection": collection,
        "campaign": campaign,
        **rail(steps(collection, campaign), step),
        **context,
    }
    return render(request, f"console/manager/setup/{step}.html", shown, status=400 if is_wrong else 200)


def _redirect_to(step: str, collection: Any, campaign: Any) -> HttpResponse:
    if campaign is not None:
        return redirect("console:setup-step", campaign_id=campaign.pk, step=step)
    return redirect("console:setup-collection", collection_id=collection.pk, step=step)


# -- the steps ------------------------------------------------------------------------------------------------


def _collection(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
    form = CollectionForm(request.POST or None, instance=Collection.objects.get(pk=row.pk))
    if request.method == "POST" and form.is_valid():
        save_collection(form, user_of(request))
        messages.success(request, "Saved.")
        return _redirect_to("documents", row, campaign)
    return _page(request, "collection", row, campaign, {"form": form}, is_wrong=bool(form.errors))


def _upload(step: str) -> Callable[[HttpRequest, Any, Any], HttpResponse]:
    def handler(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
        form = FilesForm(request.POST, request.FILES) if request.method == "POST" else FilesForm()
        if form.is_valid():
            return look_at_upload(request, row, form)
        context = {
            "form": form,
            "runs": row.runs.all()[:100] if step == "runs" else [],
            **recent_imports(row),
        }
        return _page(request, step, row, campaign, context, is_wrong=bool(form.errors))

    return handler


def _scale(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
    """Make the campaign; one that is made can be changed as far as nothing rests on it."""
    if campaign is not None:
        prefetch_related_objects([campaign], "scale__grades", "draws")
        edit = CampaignEditForm(request.POST or None, instance=copy(campaign))  # validation writes to it
        if request.method == "POST" and edit.is_valid():
            save_campaign(edit, campaign, user_of(request))
            messages.success(request, "Saved.")
            return redirect("console:design", campaign_id=campaign.pk)
        shown = check_grades_shown(row, campaign)
        context = {"form": edit, "grades": campaign.scale.grades.all(), **shown}
        return _page(request, "scale", row, campaign, context, is_wrong=bool(edit.errors))
    if not (row.n_topics and row.has_documents):
        return _redirect_to("documents", row, None)
    sent = request.POST.copy() if request.method == "POST" else None
    if sent is not None:
        sent["collection"] = str(row.pk)
    initial = {"collection": row.pk, "name": row.name}
    form = CampaignForm(sent, initial=initial, user=user_of(request))
    if sent is not None and form.is_valid():
        made = campaigns.create_campaign(user=user_of(request), **form.cleaned_data)
        return redirect("console:design", campaign_id=made.pk)
    context = {"form": form, **check_grades_shown(row)}
    return _page(request, "scale", row, None, context, is_wrong=bool(form.errors))


def _people(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
    form = AssessorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        save_assessor(request, campaign, form)
        return _redirect_to("people", row, campaign)
    people = Assessor.objects.filter(campaign=campaign).select_related("user").order_by("-pk")
    context = {
        "form": form,
        "people": people[:SHOWN_PEOPLE],
        "n_people": people.count(),
        "n_invitations": campaign.invitations.filter(revoked_at=None).count(),
    }
    return _page(request, "people", row, campaign, context, is_wrong=bool(form.errors))


def _gold(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
    schedule = AuditSchedule.objects.filter(campaign=campaign).first() or AuditSchedule()
    form = AuditPlanForm(request.POST or None, campaign=campaign, schedule=schedule)
    if request.method == "POST" and form.is_valid():
        try:
            saved = save_schedule(campaign=campaign, actor=user_of(request), **form.fields_of_schedule())
        except AuditRefused as refusal:
            form.add_error(None, f"{refusal}")
        else:
            when = f"audits run {schedule_words(saved)}" if saved.is_active else "audits are started manually"
            if campaign.has_no_audits:
                when = "the plan is switched off"
            messages.success(request, f"Saved: {when}.")
            return redirect("console:setup", campaign_id=campaign.pk)
    rules = campaign.topic_rules.order_by("-check_rate").values_list("check_rate", flat=True)
    context = {
        "form": form,
        "schedule": schedule if schedule.pk else None,
        "check_percent": round(100 * (rules.first() or 0.0), 1) if campaign.has_draw else None,
    }
    return _page(request, "gold", row, campaign, context, is_wrong=bool(form.errors))


def _open(request: HttpRequest, row: Any, campaign: Any) -> HttpResponse:
    return _page(request, "open", row, campaign, {"opening": opening(campaign)})


HANDLERS: dict[str, Callable[[HttpRequest, Any, Any], HttpResponse]] = {
    "collection": _collection,
    "documents": _upload("documents"),
    "runs": _upload("runs"),
    "scale": _scale,
    "people": _people,
    "gold": _gold,
    "open": _open,
}
