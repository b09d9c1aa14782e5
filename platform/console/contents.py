"""The documents and topics of a collection, as lists and one by one: for managers and researchers who may see it."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe
from rest_framework.exceptions import ValidationError

from console.filtering import ListPage
from judging.models import (
    Campaign,
    Collection,
    Document,
    DocumentVersion,
    GoldAnswer,
    Item,
    Topic,
    TopicVersion,
)
from judging.services import browsing
from judging.services.access import researchers_only
from judging.services.filtered import FilteredRows, places_of
from judging.services.item_frame import frame_response
from touchstone.models import user_of

LONGEST = 200  # characters of what is asked for
SHOWN_GOLD = 20


@require_safe
@researchers_only
def documents(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """The collection's documents by their ids; `?q=` those with an id or with words in the title."""
    return _list(request, collection_id, "documents", browsing.documents_found, "doc_id")


@require_safe
@researchers_only
def topics(request: HttpRequest, collection_id: uuid.UUID) -> HttpResponse:
    """The collection's topics by their ids; `?q=` those with an id or with words in the title."""
    return _list(request, collection_id, "topics", browsing.topics_found, "topic_id")


def _list(request: HttpRequest, collection_id: uuid.UUID, what: str, find: Any, order: str) -> HttpResponse:
    collection = get_object_or_404(Collection, pk=collection_id)
    asked = request.GET.get("q", "").strip()
    fault, page = "", None
    if len(asked) > LONGEST:
        fault = f"At most {LONGEST} characters can be looked for."
    else:
        rows = find(collection, asked)
        try:
            page = ListPage(request, FilteredRows(rows, None), rows, {order: order}, order)
        except ValidationError:
            raise Http404 from None
    context = {
        "collection": collection,
        "q": asked,
        "fault": fault,
        "page": page,
        "most": browsing.MOST_FOUND,
    }
    return render(request, f"console/collections/{what}.html", context, status=400 if fault else 200)


# -- one document ---------------------------------------------------------------------------------------------


@require_safe
@researchers_only
def document(request: HttpRequest, collection_id: uuid.UUID, document_pk: int) -> HttpResponse:
    """A document: its text in a sandbox, its versions, its ranks in runs, its items in campaigns."""
    row = _document(collection_id, document_pk)
    versions = list(row.versions.select_related("corrected_by").defer("text", "html").order_by("number"))
    shown = _number(request, versions)
    found = browsing.ranks_in_runs(row, _after(request))
    topics_here = browsing.topics_called(collection_id, {name for _, ranks in found.rows for name in ranks})
    items = browsing.items_of_document(row, user_of(request))
    places = places_of(items)
    frame = reverse("console:document-frame", args=[collection_id, row.pk])
    context = {
        "collection": row.collection,
        "gold": _gold_of(row) if user_of(request).may_manage else [],
        "most_gold": SHOWN_GOLD,
        "document": row,
        "versions": versions,
        "shown": shown,
        "frame_url": f"{frame}?{urlencode({'version': shown})}" if shown else frame,
        "runs": [
            {
                "run": run,
                "ranks": [
                    {"topic_id": name, "pk": topics_here.get(name), "rank": rank}
                    for name, rank in ranks.items()
                ],
            }
            for run, ranks in found.rows
            if ranks
        ],
        "n_runs": len(found.rows),
        "more_after": found.more_after,
        "places": list(places.values()),
        "is_cut": len(items) == browsing.SHOWN_ITEMS,
    }
    return render(request, "console/collections/document.html", context)


@require_safe
@researchers_only
def document_frame(request: HttpRequest, collection_id: uuid.UUID, document_pk: int) -> HttpResponse:
    """The document alone in its sandbox, as assessors see it; `?version=` as it was in force."""
    row = _document(collection_id, document_pk)
    versions = list(row.versions.defer("title", "text", "html"))
    shown = _number(request, versions)
    # An item without a topic: no words are marked.
    item = Item(document=row, topic=Topic(topic_id="", title=""))
    campaign = Campaign(collection=row.collection, highlights_terms=False)
    return frame_response(request, item, campaign, _time_of(versions, shown))


def _gold_of(row: Document) -> list[GoldAnswer]:
    """Return the document's gold answers, some of them if many: they are for managers."""
    found = GoldAnswer.objects.filter(document=row).select_related("topic").order_by("topic__topic_id")
    return list(found[:SHOWN_GOLD])


def _document(collection_id: uuid.UUID, document_pk: int) -> Document:
    rows = Document.objects.select_related("collection").defer("text", "html")
    return get_object_or_404(rows, pk=document_pk, collection_id=collection_id)


def _number(request: HttpRequest, versions: list[Any]) -> int | None:
    """Return the version that is asked for; None for the one in force."""
    asked = request.GET.get("version", "")
    if not asked:
        return None
    known: dict[str, int] = {str(version.number): version.number for version in versions}
    if asked not in known:
        raise Http404
    return known[asked]


def _time_of(versions: list[DocumentVersion], number: int | None) -> datetime | None:
    """Return when the version was in force; the first was so before there was any other."""
    if number is None:
        return None
    if number == 1:
        second = min((one.created_at for one in versions if one.number > 1), default=None)
        return second and second - timedelta(microseconds=1)
    return next(one.created_at for one in versions if one.number == number)


# -- one topic ------------------------------------------------------------------------------------------------


@require_safe
@researchers_only
def topic(request: HttpRequest, collection_id: uuid.UUID, topic_pk: int) -> HttpResponse:
    """A topic: its words, its versions, the first documents of each run, the campaigns that judge for it."""
    row = get_object_or_404(
        Topic.objects.select_related("collection"), pk=topic_pk, collection_id=collection_id
    )
    versions: list[TopicVersion] = list(row.versions.select_related("corrected_by").order_by("number"))
    found = browsing.first_in_runs(row, _after(request))
    named = browsing.documents_called(collection_id, {name for _, first in found.rows for name in first})
    context = {
        "collection": row.collection,
        "topic": row,
        "versions": versions,
        "runs": [
            {"run": run, "first": [{"doc_id": name, "pk": named.get(name)} for name in first]}
            for run, first in found.rows
            if first
        ],
        "n_runs": len(found.rows),
        "more_after": found.more_after,
        "n_first": browsing.FIRST_DOCUMENTS,
        "campaigns": list(browsing.campaigns_of_topic(row, user_of(request))),
    }
    return render(request, "console/collections/topic.html", context)


def _after(request: HttpRequest) -> str:
    """Return the run after which to read on."""
    return request.GET.get("after", "")[:LONGEST]
