"""The items and the judgments of a campaign as lists with filters, and one item with its history."""

import secrets
import uuid
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import F, OuterRef, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe
from rest_framework.exceptions import ValidationError

from analytics.services.digests import ORDERS as DIGEST_ORDERS
from analytics.services.digests import newest_digests_at
from analytics.services.judgment_log import LOG_FORMATS, file_name, log_bytes
from console.filtering import ITEM_ORDERS, ListPage, item_order, items_asked, judgments_asked
from console.manager.adjudication import PURPOSES, done_notice
from console.manager.item_history import history_of, with_places
from console.manager.messages import threads_context
from judging.judgment_filters import ITEMS, JUDGMENTS, Filter, filters_of
from judging.models import Assessor, Campaign, GoldAnswer, Item, Slot
from judging.services import messages as letters
from judging.services.access import managers_only
from judging.services.errors import Refused
from judging.services.filtered import FilteredRows, places_of, without_texts
from judging.services.item_frame import title_of
from judging.services.more_judgments import open_one_more
from touchstone.models import user_of

MOST_OF_TITLE = 100
ORDERS_OF_ITEMS = {
    "-newest": "newest judgment first",
    "-spread": "grades furthest apart first",
    "-influence": "most influence first",
    "-seconds": "longest judged first",
}
ORDERS = {"-id": "newest first", "seconds": "fastest first", "-seconds": "slowest first"}
JUDGMENT_ORDERS = {"id": "id", "time": "created_at", "seconds": "active_milliseconds"}


@require_safe
@managers_only
def items(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """The items that the filters ask for, topic by topic."""
    row = _campaign(campaign_id)
    faults: dict[str, Any] = {}
    page = None
    try:
        found = items_asked(request, row.pk)
        page = ListPage(request, found, without_texts(found.rows, ""), ITEM_ORDERS, item_order(request))
    except ValidationError as fault:
        faults = fault.detail  # type: ignore[assignment]
    by = item_order(request).removeprefix("-") if page else ""
    context = {
        "campaign": row,
        "page": page,
        "rows": list(places_of(page.rows).values()) if page else [],
        "by": by,
        "orders": ORDERS_OF_ITEMS,
        "order": request.GET.get("order", ""),
        **_as_of(row, request, bool(request.GET.get("spread")) or by in DIGEST_ORDERS),
        **_filter_context(request, ITEMS, faults),
    }
    return render(request, "console/manager/items.html", context, status=400 if faults else 200)


@require_safe
@managers_only
def judgments(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponseBase:
    """The judgments that the filters ask for; with `?format=` all of them as a file."""
    row = _campaign(campaign_id)
    faults: dict[str, Any] = {}
    page = None
    try:
        found = judgments_asked(request, row.pk)
        if request.GET.get("format") in LOG_FORMATS:
            return _file(row, found, request.GET["format"])
        timed = {"since", "before"} & {name for name, value in request.GET.items() if value}
        usual = request.GET.get("order") or ("-time" if timed else "-id")
        rows = without_texts(found.rows).select_related("slot", "assessor__user")
        page = ListPage(request, found, rows, JUDGMENT_ORDERS, usual)
    except ValidationError as fault:
        faults = fault.detail  # type: ignore[assignment]
    context = {
        "campaign": row,
        "page": page,
        "rows": [_judgment(one) for one in page.rows] if page else [],
        "orders": ORDERS,
        "order": request.GET.get("order", ""),
        **_as_of(row, request, bool(request.GET.get("spread"))),
        **_filter_context(request, JUDGMENTS, faults),
    }
    return render(request, "console/manager/judgments.html", context, status=400 if faults else 200)


def _campaign(campaign_id: uuid.UUID) -> Any:
    """Return the campaign with as of when computations and the look at open places found what lists read of them."""
    rows = Campaign.objects.select_related("collection").annotate(
        digested_at=newest_digests_at(OuterRef("pk")), places_at=F("places_left__computed_at")
    )
    return get_object_or_404(rows, pk=campaign_id)


def _as_of(row: Any, request: HttpRequest, is_by_digest: bool) -> dict[str, Any]:
    """Return as of when the list is right in what computations and the look at open places found."""
    return {
        "is_by_digest": is_by_digest,
        "digested_at": row.digested_at and datetime.fromisoformat(row.digested_at),
        "is_by_places": request.GET.get("state") == "stuck",
        "places_at": row.places_at,
    }


def _judgment(row: Any) -> dict[str, Any]:
    return {
        "row": row,
        "seconds": row.active_milliseconds / 1000,
        "purpose": PURPOSES[Slot.Purpose(row.slot.purpose)] if row.slot else _purpose_without_slot(row),
    }


def _purpose_without_slot(row: Any) -> str:
    return "given back" if row.grade is None else "surplus"


def _filter_context(request: HttpRequest, which: str, faults: dict[str, Any]) -> dict[str, Any]:
    """Return the form of the filters as sent, what is wrong with them, and the query that keeps them."""
    sent = {one.name: request.GET.get(one.name, "") for one in filters_of(which, is_manager=True)}
    kept = {name: value for name, value in sent.items() if value}
    labels = {one.name: one.label for one in filters_of(which, is_manager=True)}
    labels |= {"order": "Order", "cursor": "Page", "page_size": "Rows"}
    return {
        "filters": [_field(one, sent[one.name]) for one in filters_of(which, is_manager=True)],
        "kept": urlencode(kept),
        "is_filtered": bool(kept),
        "faults": [f"{labels.get(name, name)}: {text}" for name, found in faults.items() for text in found],
    }


def _field(one: Filter, value: str) -> dict[str, Any]:
    is_date = one.kind == "time" and len(value) in (0, 10)
    kinds = {"grade": "number", "seconds": "number", "time": "date" if is_date else "text"}
    return {"filter": one, "value": value, "type": kinds.get(one.kind, "text")}


def _file(row: Campaign, found: FilteredRows, file_format: str) -> StreamingHttpResponse:
    kind = LOG_FORMATS[file_format]
    answer = StreamingHttpResponse(log_bytes(row, found.complete(), file_format), content_type=kind)
    answer["Content-Disposition"] = f'attachment; filename="{file_name(row, file_format)}"'
    return answer


# -- one item -------------------------------------------------------------------------------------------------


@require_safe
@managers_only
def item(request: HttpRequest, campaign_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """The document as assessors see it, and all that happened with it."""
    gold = GoldAnswer.everything.filter(topic=OuterRef("topic"), document=OuterRef("document"))
    joined = with_places(Item.objects.annotate(gold_answer=Subquery(gold.values("pk")))).select_related(
        "topic", "document", "campaign__collection", "campaign__scale"
    )
    found = get_object_or_404(
        joined.defer("document__text", "document__html"), pk=item_id, campaign_id=campaign_id
    )
    row = found.campaign
    grades = list(row.scale.grades.all())
    labels = {grade.value: str(grade) for grade in grades}
    history = history_of(found, labels)
    newest, title = history["newest_word"], title_of(found, row) or found.document.doc_id
    context = {
        "campaign": row,
        "item": found,
        "title": title,
        "frame_url": reverse("console:adjudication-document", args=[row.pk, found.pk]),
        "grades": grades,
        "done": done_notice(request, newest, title),
        **history,
        **threads_context(found),
    }
    return render(request, "console/manager/item.html", context)


@require_POST
@managers_only
def write(request: HttpRequest, campaign_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """Tell somebody who had the document something about it."""
    found = get_object_or_404(
        Item.objects.select_related("topic", "document", "campaign").defer(
            "document__text", "document__html"
        ),
        pk=item_id,
        campaign_id=campaign_id,
    )
    people = Assessor.objects.filter(judgments__item=found, kind=Assessor.Kind.HUMAN)
    named = request.POST.get("assessor", "")
    to = people.select_related("user", "campaign").filter(pk=named).first() if named.isdecimal() else None
    text = request.POST.get("text", "").strip()
    if to is None or not text:
        messages.error(request, "Not sent: choose somebody who had the document, and write something.")
        return redirect("console:item", campaign_id=campaign_id, item_id=item_id)
    title = (title_of(found, found.campaign) or found.document.doc_id)[:MOST_OF_TITLE]
    try:
        letters.send(assessor=to, text=f"About “{title}”: {text}", sender=user_of(request), item=found)
    except Refused as refusal:
        messages.error(request, f"Not sent: {refusal.title} {refusal}".strip())
    else:
        messages.success(request, f"Sent: {to.user.get_username()} will see it on the next page they open.")
    return redirect(f"{reverse('console:item', args=[campaign_id, item_id])}#questions")


@require_POST
@managers_only
def ask_others(request: HttpRequest, campaign_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """Want one judgment more of an item whose judgments are all in."""
    found = get_object_or_404(Item.objects.select_related("campaign"), pk=item_id, campaign_id=campaign_id)
    try:
        n = open_one_more(
            campaign=found.campaign,
            items=[found.pk],
            seed=secrets.randbits(62),
            about={"item": str(found.pk)},
            actor=user_of(request),
        )
    except Refused as refusal:
        messages.error(request, f"Nobody was asked: {refusal}.")
    else:
        if n:
            messages.success(request, "One more judgment is wanted; the next assessor gets the document.")
        else:
            messages.error(
                request, "Nobody was asked: judgments are still missing, or one more was wanted before."
            )
    return redirect("console:item", campaign_id=campaign_id, item_id=item_id)
