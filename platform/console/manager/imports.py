"""The page of an import: what was read in each file, before anything is kept; then what became of it."""

import uuid
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from console.forms.imports import CardForm
from console.forms.uploads import FilesForm
from console.manager.setup_steps import collection_facts, next_missing, steps
from judging.import_choices import LABELS
from judging.kinds import Passage
from judging.models import Collection, Import
from judging.services.access import managers_only
from judging.services.errors import ImportRefused, ImportStateWrong, Refused
from judging.services.item_frame import preview_response
from judging.services.keeping import queue_keep
from judging.services.looking import discard, job_of, look_again, queue_look
from touchstone.ledger.replacing import queue_replace, read_again
from touchstone.models import Job, User, user_of

COUNTS = (
    ("topics", "Topics"),
    ("documents", "Documents"),
    ("runs", "Runs"),
    ("scores", "Lists of scores"),
    ("gold", "Gold answers"),
    ("images", "Images"),
)
MOST_CAMPAIGNS = 20
SHOWN_RECENT, SHOWN_JOBS = 8, 3


def look_at_upload(request: HttpRequest, row: Collection, form: FilesForm) -> HttpResponse:
    """Queue a look at uploaded files and lead to its page."""
    made = queue_look(collection=row, files=form.cleaned_data["files"], user=user_of(request))
    return redirect("console:manage-import", row.pk, made.pk)


def recent_imports(row: Collection) -> dict[str, Any]:
    """Return what pages list of a collection's uploads: the newest imports, and jobs that brought none."""
    jobs = Job.objects.filter(kind="import", payload__collection=str(row.pk)).exclude(state=Job.State.DONE)
    return {
        "imports": Import.objects.filter(collection=row)[:SHOWN_RECENT],
        "jobs": jobs.order_by("-created_at")[:SHOWN_JOBS],
    }


@managers_only
def one_import(request: HttpRequest, collection_id: uuid.UUID, import_id: uuid.UUID) -> HttpResponse:
    """Show what was found; a POST looks again, with what was chosen for each file, or keeps what was looked at."""
    made = _import(collection_id, import_id)
    job = job_of(made)
    if job is not None and job.state in Job.ACTIVE:
        return _page(request, made, job, [])
    campaigns = list(made.collection.campaigns.filter(deleted_at=None).order_by("name")[:MOST_CAMPAIGNS])
    sent = request.POST if request.method == "POST" else None
    cards = [
        (card, CardForm(sent, card=card, campaigns=campaigns, prefix=f"file{number}"))
        for number, card in enumerate(made.report.get("files", []))
    ]
    if sent is None:
        return _page(request, made, job, cards)
    if not [form for _, form in cards if not form.is_valid()]:  # each is asked: the page shows all errors
        return _change(request, made, cards)
    return _page(request, made, job, cards, status=400)


def _change(request: HttpRequest, made: Import, cards: list[Any]) -> HttpResponse:
    """Keep what was looked at; where something else was chosen, look at that first."""
    choices = {card["name"]: form.choices() for card, form in cards}
    is_changed = any(choices[card["name"]] != card["choices"] for card, _ in cards)
    try:
        if "keep" in request.POST and not is_changed:
            _queue(made, user_of(request))
        else:
            look_again(made=made, choices=choices, user=user_of(request))
            if "keep" in request.POST:
                messages.info(request, "Something was changed, so the files are looked at again first.")
    except (ImportRefused, ImportStateWrong) as refusal:
        messages.error(request, str(refusal))
    return redirect("console:manage-import", made.collection_id, made.pk)


def _queue(made: Import, user: User) -> None:
    """Queue that it is kept; where it was read to replace another one, in the place of that."""
    if "replaces" not in made.options:
        queue_keep(made=made, user=user)
        return
    replaced = get_object_or_404(Import, pk=made.options["replaces"], collection=made.collection)
    queue_replace(made=replaced, other=made, actor=user)


@require_POST
@managers_only
def replace_import(request: HttpRequest, collection_id: uuid.UUID, import_id: uuid.UUID) -> HttpResponse:
    """Read the files of a kept import again, as something else perhaps, and lead to what was read."""
    made = _import(collection_id, import_id)
    try:
        again = read_again(made=made, actor=user_of(request))
    except Refused as refusal:
        messages.error(request, f"{refusal.title}: {refusal}.")
        return redirect("console:manage-import", collection_id, made.pk)
    return redirect("console:manage-import", collection_id, again.pk)


@require_POST
@managers_only
def discard_import(request: HttpRequest, collection_id: uuid.UUID, import_id: uuid.UUID) -> HttpResponse:
    """Forget an upload that was looked at."""
    discard(made=_import(collection_id, import_id), actor=user_of(request))
    messages.success(request, "The upload is discarded. Nothing was imported.")
    return redirect("console:manage-collection", collection_id)


@managers_only
def preview(
    request: HttpRequest, collection_id: uuid.UUID, import_id: uuid.UUID, file: int, document: int
) -> HttpResponse:
    """One of the first documents of a file, alone in its sandbox, as assessors would see it."""
    cards = _import(collection_id, import_id).report.get("files", [])
    try:
        shown = cards[file]["documents"][document]
    except (IndexError, KeyError):
        raise Http404 from None
    passage = Passage(shown["title"], shown["text"], shown["html"], len(shown["text"]))
    return preview_response(request, passage, doc_id=shown["doc_id"])


def _import(collection_id: uuid.UUID, import_id: uuid.UUID) -> Import:
    rows = Import.objects.select_related("collection", "user")
    return get_object_or_404(rows, pk=import_id, collection_id=collection_id)


def _page(
    request: HttpRequest, made: Import, job: Job | None, cards: list[Any], status: int = 200
) -> HttpResponse:
    report = made.report
    facts = collection_facts(Collection.objects.filter(pk=made.collection_id)).get()
    is_kept = made.state in (Import.State.KEPT, Import.State.TAKEN_BACK)
    obstacles = report.get("obstacles", [])
    context = {
        "made": made,
        "collection": made.collection,
        "job": job,
        "is_working": job is not None and job.state in Job.ACTIVE,
        "cards": [_card_context(card, form, number) for number, (card, form) in enumerate(cards)],
        "obstacles": obstacles,
        # What is there already may be what is taken back: then the reading itself is what refuses.
        "can_keep": bool(cards)
        and (not obstacles or "replaces" in made.options)
        and made.state == Import.State.LOOKED_AT,
        "counts": _counts(report) if is_kept else [],
        "next": next_missing(steps(facts, None)),
    }
    return render(request, "console/manager/import.html", context, status=status)


def _card_context(card: dict[str, Any], form: CardForm, number: int) -> dict[str, Any]:
    """Return what the page says of a file, with its form and its place."""
    fields = [form[name] for name in form.fields]
    return {
        **card,
        "number": number,
        "form": form,
        "label": LABELS.get(card["kind"], card["kind"]),
        "kind_field": form["kind"],
        "encoding_field": form["encoding"] if "encoding" in form.fields else None,
        "column_fields": [one for one in fields if one.name.startswith("column_")],
        "grade_fields": [one for one in fields if one.name.startswith("grade_")],
        "boxes": [
            one for one in fields if one.name in ("joins_ids", "is_html", "is_manual", "skips_unknown")
        ],
        "words": [
            one
            for one in fields
            if one.name in ("file_format", "campaign", "source_name", "list_name", "group")
        ],
    }


def _counts(report: dict[str, Any]) -> list[dict[str, Any]]:
    before, after = report.get("before", {}), report.get("after", {})
    rows = [
        {"label": label, "before": before.get(key, 0), "after": after.get(key, 0)} for key, label in COUNTS
    ]
    return [row for row in rows if row["before"] or row["after"]]
