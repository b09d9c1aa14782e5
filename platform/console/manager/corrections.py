"""The manager's pages that correct the words of a topic or a document, and request what was judged on old ones."""

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from analytics.models import Release
from analytics.services.recomputation import queue_recomputation
from console.forms.corrections import DocumentWordsForm, OldWordsForm, TopicWordsForm
from judging.models import Campaign, Document, GoldAnswer, Topic, TrainingItem
from judging.services.access import managers_only
from judging.services.corrections import correct_document, correct_topic
from judging.services.errors import CorrectedMeanwhile, Refused
from judging.services.old_words import CampaignUse, campaign_uses, requeue_old_words
from touchstone.models import user_of

WordsForm = TopicWordsForm | DocumentWordsForm


@managers_only
def correct_topic_words(request: HttpRequest, collection_id: uuid.UUID, topic_pk: int) -> HttpResponse:
    """A topic's words before and now, what rests on them, and the form that corrects them."""
    rows = Topic.objects.select_related("collection")
    row = get_object_or_404(rows, pk=topic_pk, collection_id=collection_id)

    def correct(form: Any) -> Any:
        return correct_topic(topic=row, user=user_of(request), why=form.cleaned_data["why"], **form.words())

    return _page(request, row, TopicWordsForm, correct)


@managers_only
def correct_document_words(request: HttpRequest, collection_id: uuid.UUID, document_pk: int) -> HttpResponse:
    """The same for a document."""
    rows = Document.objects.select_related("collection")
    row = get_object_or_404(rows, pk=document_pk, collection_id=collection_id)

    def correct(form: Any) -> Any:
        return correct_document(
            document=row, user=user_of(request), why=form.cleaned_data["why"], **form.words()
        )

    return _page(request, row, DocumentWordsForm, correct)


def _page(
    request: HttpRequest, row: Topic | Document, kind: Any, correct: Callable[[Any], Any]
) -> HttpResponse:
    uses = campaign_uses(row, user_of(request))
    if "requeue" in request.POST:
        return _requeue(request, row, uses)
    form = kind(request.POST or None, row=row)
    to_come = OldWordsForm(request.POST or None, uses=uses, is_corrected=False)
    if request.method == "POST" and form.is_valid() & to_come.is_valid():
        try:
            if form.cleaned_data["version"] != row.version:
                raise CorrectedMeanwhile
            made = correct(form)
        except Refused as refusal:
            form.add_error(None, _words_of(refusal))
        else:
            messages.success(request, f"Saved as version {made.number}. The old words are kept.")
            row.version = made.number
            _ask(request, row, to_come)
            return redirect(request.path)
    return _render_form(request, row, uses, form, to_come)


def _words_of(refusal: Refused) -> str:
    return f"{refusal.title}: {refusal}." if str(refusal) else f"{refusal.title}."


def _requeue(request: HttpRequest, row: Topic | Document, uses: list[CampaignUse]) -> HttpResponse:
    form = OldWordsForm(request.POST, uses=uses, is_corrected=True)
    if not form.is_valid() or not form.cleaned_data["again"]:
        messages.error(request, "Nothing was requested: choose a campaign.")
    else:
        _ask(request, row, form)
    return redirect(request.path)


def _ask(request: HttpRequest, row: Topic | Document, form: OldWordsForm) -> None:
    """Ask for the judgments again in the campaigns that were chosen, and have their numbers computed anew."""
    chosen = [uuid.UUID(key) for key in form.cleaned_data["again"]]
    if not chosen:
        return
    n = requeue_old_words(row=row, campaigns=chosen, actor=user_of(request))
    if not n:
        messages.info(request, "There was no judgment to request again.")
        return
    for campaign in Campaign.objects.filter(pk__in=chosen):
        queue_recomputation(campaign=campaign)
    requested = "1 judgment is" if n == 1 else f"{n:,} judgments are"
    messages.success(
        request,
        f"{requested} requested again from other assessors. Nothing was deleted. The numbers will be recomputed.",
    )


def _render_form(
    request: HttpRequest,
    row: Topic | Document,
    uses: list[CampaignUse],
    form: WordsForm,
    to_come: OldWordsForm,
) -> HttpResponse:
    is_topic = isinstance(row, Topic)
    rows: Any = row.versions.select_related("corrected_by").order_by("number")
    versions = list(rows if is_topic else rows.defer("text", "html"))
    older = [version for version in versions if version.number != row.version]
    asked = request.GET.get("version", "")
    before = next((one for one in older if str(one.number) == asked), older[-1] if older else None)
    published = dict(
        Release.objects.filter(campaign__in=[use.campaign for use in uses])
        .order_by()
        .values_list("campaign")
        .annotate(n=Count("pk"))
    )
    is_wrong = bool(form.errors or to_come.errors)
    context = {
        "collection": row.collection,
        "is_wrong": is_wrong,
        "row": row,
        "is_topic": is_topic,
        "name": row.topic_id if isinstance(row, Topic) else row.doc_id,
        "form": form,
        "to_come": to_come,
        "old_words": OldWordsForm(uses=uses, is_corrected=True, auto_id="old_%s"),
        "uses": [(use, published.get(use.campaign.pk, 0)) for use in uses],
        "has_closed": any(use.is_closed and use.n_judgments for use in uses),
        "before": before,
        "now": versions[-1] if versions else None,
        "older": older,
        "n_gold": GoldAnswer.objects.filter(**_about(row)).count(),
        "n_training": TrainingItem.objects.filter(**_about(row)).count(),
        **({} if is_topic else _frames(row, before)),
    }
    return render(request, "console/manager/correct_words.html", context, status=400 if is_wrong else 200)


def _about(row: Topic | Document) -> dict[str, Any]:
    return {"topic": row} if isinstance(row, Topic) else {"document": row}


def _frames(row: Any, before: Any) -> dict[str, str]:
    """Return where the texts before and now are shown, as assessors see them."""
    frame = reverse("console:document-frame", args=[row.collection_id, row.pk])
    old = f"{frame}?{urlencode({'version': before.number})}" if before else ""
    return {"frame_url": frame, "old_frame_url": old}
