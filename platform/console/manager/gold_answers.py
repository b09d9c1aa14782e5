"""The gold answers of a collection as a list, and the page that corrects or withdraws one."""

import uuid

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe
from rest_framework.exceptions import ValidationError

from console.filtering import ListPage
from console.forms.corrections import GoldForm
from judging.models import Campaign, Collection, GoldAnswer, Item, Slot, TrainingItem
from judging.services.access import managers_only
from judging.services.corrections import correct_gold
from judging.services.errors import CorrectedMeanwhile, Refused
from judging.services.filtered import FilteredRows
from touchstone.models import user_of

LONGEST = 500  # characters of an id
ORDERS = {"topic": "topic_id", "document": "document_id"}
LISTED = ("topic__title", "topic__topic_id", "document__doc_id", "document__title")


@require_safe
@managers_only
def gold_answers(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """The gold answers, withdrawn ones too; `?topic_id=` and `?doc_id=` those about one topic or document."""
    collection = get_object_or_404(Collection, pk=collection_id)
    asked = {name: request.GET.get(name, "").strip() for name in ("topic_id", "doc_id")}
    if any(len(value) > LONGEST for value in asked.values()):
        raise Http404
    rows = GoldAnswer.everything.filter(topic__collection=collection)
    if asked["topic_id"]:
        rows = rows.filter(topic__topic_id=asked["topic_id"])
    if asked["doc_id"]:
        rows = rows.filter(document__doc_id=asked["doc_id"])
    listed = rows.select_related("topic", "document").only("grade", "source", "version", *LISTED)
    try:
        page = ListPage(request, FilteredRows(listed, None), listed, ORDERS, "topic,document")
    except ValidationError:
        raise Http404 from None
    context = {"collection": collection, "page": page, **asked, "is_filtered": any(asked.values())}
    return render(request, "console/manager/gold_answers.html", context)


@managers_only
def gold_answer(request: HttpRequest, collection_id: uuid.UUID, answer_pk: int) -> HttpResponse:
    """A gold answer: its versions, what rests on it, and the form that corrects or withdraws it."""
    rows = GoldAnswer.everything.filter(topic__collection=collection_id).select_related(
        "topic__collection", "document"
    )
    row = get_object_or_404(rows.defer("document__text", "document__html"), pk=answer_pk)
    form = GoldForm(request.POST or None, row=row)
    if request.method == "POST" and form.is_valid():
        sent = form.cleaned_data
        try:
            if sent["version"] != row.version:
                raise CorrectedMeanwhile
            made = correct_gold(answer=row, user=user_of(request), why=sent["why"], grade=sent["grade"])
        except Refused as refusal:
            form.add_error(None, f"{refusal.title}: {refusal}." if str(refusal) else f"{refusal.title}.")
        else:
            told = "Withdrawn" if made.grade is None else f"Saved: the grade is {made.grade}"
            messages.success(request, f"{told}. The old answer is kept, and the next computation follows.")
            return redirect(request.path)
    checks = Q(slots__purpose=Slot.Purpose.CHECK)
    mine = Campaign.objects.visible_to(user_of(request))
    about = {"topic": row.topic_id, "document": row.document_id}
    items = Item.objects.filter(**about, campaign__in=mine).select_related("campaign")
    context = {
        "collection": row.topic.collection,
        "row": row,
        "form": form,
        "versions": list(row.versions.select_related("corrected_by").order_by("number")),
        "items": items.annotate(
            n_checks=Count("slots", filter=checks),
            n_checked=Count("slots", filter=checks & Q(slots__state=Slot.State.DONE)),
        ).order_by("campaign__name"),
        "n_training": TrainingItem.objects.filter(**about).count(),
    }
    return render(request, "console/manager/gold_answer.html", context, status=400 if form.errors else 200)
