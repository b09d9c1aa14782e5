"""The manager's pages of a collection: what is in it, uploads, its words, its runs, who may see it."""

import uuid
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.forms.campaigns import CollectionForm, MembersForm
from console.forms.uploads import MANUAL_HELP, FilesForm, RunForm
from console.manager.imports import SHOWN_RECENT, look_at_upload, recent_imports
from judging.models import Collection, GoldAnswer, Import, Run
from judging.services.access import managers_only
from judging.services.collections import change_collection, change_run, create_collection
from judging.services.errors import Refused
from judging.services.members import set_members
from judging.services.progress import documents_of
from touchstone.models import User, user_of

MOST_DOCUMENTS = 100_000  # counted up to here
SHOWN_IMPORTS = 50
NOT_KEPT = (Import.State.LOOKED_AT, Import.State.DISCARDED)


@managers_only
def new_collection(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return redirect("console:manage")
    form = CollectionForm(request.POST)
    if not form.is_valid():
        return render(request, "console/manager/collection_new.html", {"form": form}, status=400)
    made = create_collection(user=user_of(request), **form.cleaned_data)
    return redirect("console:manage-collection", collection_id=made.pk)


@managers_only
def collection(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """A collection: what is in it, and the upload form. A POST queues a look at the files."""
    row = get_object_or_404(Collection.objects.annotate(n_topics=Count("topics")), pk=collection_id)
    if request.method != "POST":
        return _collection_page(request, row)
    form = FilesForm(request.POST, request.FILES)
    if form.is_valid():
        return look_at_upload(request, row, form)
    return _collection_page(request, row, upload=form, status=400)


def _collection_page(
    request: HttpRequest,
    row: Any,
    *,
    upload: FilesForm | None = None,
    edit: CollectionForm | None = None,
    status: int = 200,
) -> HttpResponse:
    runs = list(Run.everything.filter(collection=row).order_by("run_id", "pk"))
    imports = list(row.imports.select_related("user")[:SHOWN_IMPORTS])
    context = {
        "n_topics": row.n_topics,
        "n_documents": documents_of([row], MOST_DOCUMENTS)[row.pk],
        "n_gold": GoldAnswer.objects.filter(topic__collection=row)[:MOST_DOCUMENTS].count(),
        "collection": row,
        "form": upload or FilesForm(),
        "edit_form": edit or CollectionForm(instance=row),
        "most_documents": MOST_DOCUMENTS,
        "runs": [one for one in runs if one.set_aside_at is None],
        "score_lists": row.score_lists.all(),
        "campaigns": row.campaigns.filter(deleted_at=None),
        **recent_imports(row),
        "imports": imports[:SHOWN_RECENT],
        "set_aside": [one for one in runs if one.set_aside_at is not None],
        "kept": [one for one in imports if one.state not in NOT_KEPT],
    }
    return render(request, "console/manager/collection.html", context, status=status)


@require_POST
@managers_only
def edit_collection(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    row = get_object_or_404(Collection.objects.annotate(n_topics=Count("topics")), pk=collection_id)
    form = CollectionForm(
        request.POST, instance=Collection.objects.get(pk=row.pk)
    )  # validation writes to its own
    if not form.is_valid():
        return _collection_page(request, row, edit=form, status=400)
    save_collection(form, user_of(request))
    messages.success(request, "Saved.")
    return redirect("console:manage-collection", collection_id=collection_id)


def save_collection(form: CollectionForm, actor: User) -> None:
    """Store what was changed, with an event if anything was."""
    row = Collection.objects.get(pk=form.instance.pk)  # validation has written to the form's own
    change_collection(collection=row, changes=form.cleaned_data, actor=actor)


# -- runs -----------------------------------------------------------------------------------------------------


@managers_only
def run(request: HttpRequest, collection_id: uuid.UUID, run_id: int) -> HttpResponse:
    """The words of a run, and whether releases may carry it."""
    row = get_object_or_404(Run.objects.select_related("collection"), pk=run_id, collection_id=collection_id)
    form = RunForm(request.POST or None, instance=Run.objects.get(pk=row.pk))
    if request.method == "POST" and form.is_valid():
        change_run(run=row, changes=form.cleaned_data, actor=user_of(request))
        messages.success(request, f"Saved: {row.run_id}.")
        return redirect(f"{reverse('console:manage-collection', args=[collection_id])}#runs")
    context = {"collection": row.collection, "run": row, "form": form, "manual_help": MANUAL_HELP}
    return render(request, "console/manager/run.html", context, status=400 if form.errors else 200)


# -- members --------------------------------------------------------------------------------------------------


@managers_only
def members(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """Who may see the collection: everybody who manages or researches here, or the members alone."""
    row = get_object_or_404(Collection, pk=collection_id)
    named = list(row.members.order_by("user__username").values_list("user__username", flat=True))
    initial = {"is_restricted": row.is_restricted, "members": "\n".join(named)}
    form = MembersForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        sent = form.cleaned_data
        try:
            there = set_members(
                collection=row,
                is_restricted=sent["is_restricted"],
                users=sent["members"],
                actor=user_of(request),
            )
        except Refused as refusal:
            form.add_error("members", f"{refusal.title} {refusal}".strip())
        else:
            n = len(there)
            audience = (
                f"only {n} member{'s see' if n != 1 else ' sees'} it"
                if sent["is_restricted"]
                else "every manager and researcher sees it"
            )
            messages.success(request, f"Saved: {audience}.")
            return redirect("console:manage-members", collection_id=collection_id)
    context = {"collection": row, "form": form, "members": named, "others": _possible_members()}
    return render(request, "console/manager/members.html", context, status=400 if form.errors else 200)


def _possible_members() -> list[User]:
    """Return who could be a member: managers and researchers."""
    return list(
        User.objects.filter(role__in=["manager", "researcher"], is_active=True).order_by("username")[:500]
    )
