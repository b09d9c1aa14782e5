"""The manager's pages about facts: collections, uploads, campaigns and their assessors."""

import secrets
import uuid

from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging.forms import AssessorForm, CampaignForm, CollectionForm, UploadForm
from judging.models import Assessor, Campaign, Collection, Slot
from judging.services import campaigns
from judging.services.errors import ImportRefused
from judging.services.files import queue_import
from judging.views.access import managers_only
from touchstone.models import Job, User


@managers_only
def overview(request: HttpRequest) -> HttpResponse:
    """All collections and campaigns."""
    rows = (
        Campaign.objects.select_related("collection")
        .annotate(
            n_slots=Count("slots", filter=Q(slots__purpose=Slot.Purpose.JUDGE)),
            n_done=Count("slots", filter=Q(slots__purpose=Slot.Purpose.JUDGE, slots__state=Slot.State.DONE)),
        )
        .order_by("-created_at")
    )  # Meta.ordering does not survive the grouping
    collections = [
        {
            "row": row,
            "n_topics": row.topics.count(),
            "n_runs": row.runs.count(),
            "n_documents": row.documents.count(),
        }
        for row in Collection.objects.order_by("name")
    ]
    context = {"campaigns": rows, "collections": collections, "form": CollectionForm()}
    return render(request, "judging/manage.html", context)


@managers_only
def new_collection(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return redirect("judging:manage")
    form = CollectionForm(request.POST)
    if not form.is_valid():
        return render(request, "judging/collection_new.html", {"form": form}, status=400)
    return redirect("judging:manage-collection", collection_id=form.save().pk)


@managers_only
def collection(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """A collection: what is in it, and the upload form. A POST queues an import."""
    row = get_object_or_404(Collection, pk=collection_id)
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            job = queue_import(
                kind=form.cleaned_data["kind"],
                collection=row,
                files=form.cleaned_data["files"],
                user=request.user,
                options=form.import_options(),
            )
        except ImportRefused as refusal:
            form.add_error("files", str(refusal))
        else:
            back = reverse("judging:manage-collection", args=[row.pk])
            return redirect(f"{reverse('job', args=[job.pk])}?back={back}")
    context = {
        "collection": row,
        "form": form,
        "n_topics": row.topics.count(),
        "n_documents": row.documents.count(),
        "n_gold": row.topics.aggregate(n=Count("gold_answers"))["n"],
        "topics": row.topics.order_by("topic_id")[:200],
        "runs": row.runs.all(),
        "campaigns": row.campaigns.all(),
        "jobs": Job.objects.filter(kind="import", payload__collection=str(row.pk)).order_by("-created_at")[
            :8
        ],
    }
    return render(request, "judging/collection.html", context, status=400 if form.errors else 200)


@managers_only
def new_campaign(request: HttpRequest) -> HttpResponse:
    form = CampaignForm(request.POST or None, initial={"collection": request.GET.get("collection")})
    if request.method == "POST" and form.is_valid():
        fields = {**form.cleaned_data}
        made = campaigns.create_campaign(user=request.user, **fields)
        return redirect("analytics:design", campaign_id=made.pk)
    return render(request, "judging/campaign_new.html", {"form": form}, status=400 if form.errors else 200)


@require_POST
@managers_only
def add_assessor(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Add a user as assessor; a name nobody has yet becomes an account whose password is shown once."""
    campaign = get_object_or_404(Campaign, pk=campaign_id)
    form = AssessorForm(request.POST)
    if not form.is_valid():
        messages.error(request, "; ".join(error for errors in form.errors.values() for error in errors))
        return redirect("analytics:campaign", campaign_id=campaign_id)
    with transaction.atomic():
        user, is_new = User.objects.get_or_create(username=form.cleaned_data["username"])
        if Assessor.objects.filter(campaign=campaign, user=user).exists():
            messages.error(request, f"{user.username} is an assessor of this campaign already.")
            return redirect("analytics:campaign", campaign_id=campaign_id)
        if is_new:
            password = secrets.token_urlsafe(12)
            user.set_password(password)
            user.save()
            messages.success(
                request, f"New account {user.username}; its password, shown only now: {password}"
            )
        campaigns.add_assessor(
            campaign=campaign, user=user, tier=form.cleaned_data["tier"], actor=request.user
        )
    messages.success(request, f"{user.username} is an assessor of this campaign now.")
    return redirect("analytics:campaign", campaign_id=campaign_id)


@require_POST
@managers_only
def set_assessor_status(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    assessor = get_object_or_404(Assessor, pk=assessor_id, campaign_id=campaign_id)
    status = request.POST.get("status", "")
    if status in Assessor.Status.values:
        campaigns.set_status(assessor=assessor, status=status, actor=request.user)
        messages.success(request, f"{assessor.user.username} is {status} now. No judgment was deleted.")
    return redirect("analytics:campaign", campaign_id=campaign_id)


@require_POST
@managers_only
def set_campaign_state(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign = get_object_or_404(Campaign, pk=campaign_id)
    state = request.POST.get("state")
    if state not in (Campaign.State.OPEN, Campaign.State.CLOSED):
        raise SuspiciousOperation(f"a campaign is opened or closed, not {state!r}")
    if state == Campaign.State.CLOSED:
        campaigns.close_campaign(campaign=campaign, actor=request.user)
        messages.success(request, "Closed: nobody is given items any more. No judgment was deleted.")
        return redirect("analytics:campaign", campaign_id=campaign_id)
    try:
        campaigns.open_campaign(campaign=campaign, actor=request.user)
        messages.success(request, "Open: its assessors can judge now.")
    except campaigns.CampaignNotReady as refusal:
        messages.error(request, f"{refusal.title}: {refusal}.")
    return redirect("analytics:campaign", campaign_id=campaign_id)
