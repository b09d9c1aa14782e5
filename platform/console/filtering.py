"""The filters of judgments and items in a request, for pages and API alike: read, resolved, described."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from analytics.releases.pseudonyms import pseudonym
from analytics.services.digests import ORDERS as DIGEST_ORDERS
from analytics.services.digests import items_by_digest, judgments_by_digest
from analytics.services.exports import pseudonym_key
from judging.judgment_filters import FILTERS, ITEMS, JUDGMENTS, FilterFaults, filters_of, read_filters
from judging.models import Assessor
from judging.services.filtered import FilteredRows, filtered_items, filtered_judgments
from touchstone.api.pagination import Pages
from touchstone.models import User, user_of

OF_KIND: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "minLength": 1, "maxLength": 200},
    "grade": {"type": "integer", "minimum": 0, "maximum": 9},
    "spread": {"type": "integer", "minimum": 1, "maximum": 9},
    "seconds": {"type": "number", "minimum": 0, "maximum": 1e6},
    "time": {"type": "string", "format": "date-time"},
}


# What lists of items are ordered by: their keys, or what computations found.
ITEM_ORDERS = {"topic": "topic_id", "document": "document_id", **DIGEST_ORDERS}


def filter_names(which: str) -> tuple[str, ...]:
    """Return the names that a list of the API knows in its query."""
    return tuple(one.name for one in FILTERS if which in one.lists)


def parameters(which: str) -> list[OpenApiParameter]:
    """Return the filters as the API's description has them."""
    return [
        OpenApiParameter(
            one.name,
            {"type": "string", "enum": list(one.choices)} if one.choices else OF_KIND[one.kind],
            description=one.help + (" For managers." if one.is_managers else ""),
        )
        for one in FILTERS
        if which in one.lists
    ]


def assessor_called(name: str, user: User, campaign_id: uuid.UUID) -> int | None:
    """Return the assessor whom rows of this campaign call so: managers by user name, researchers by pseudonym."""
    mine = Assessor.objects.filter(campaign_id=campaign_id)
    if user.may_manage:
        return mine.filter(user__username=name).values_list("pk", flat=True).first()
    key = pseudonym_key(campaign_id)
    return next((pk for pk in mine.values_list("pk", flat=True) if pseudonym(key, pk) == name), None)


def _filters_of(request: Request | HttpRequest, which: str) -> dict[str, Any]:
    """Return the filters in a query, or raise the answer that names what is wrong with them."""
    query, user = request.GET, user_of(request)
    allowed = {one.name for one in filters_of(which, user.may_manage)}
    faults = {
        one.name: ["is for managers"]
        for one in FILTERS
        if which in one.lists and one.name not in allowed and query.get(one.name)
    }
    if faults:
        raise ValidationError(faults)
    # A form of a page sends the filters that nobody filled in; a program that sends an empty one has made a mistake.
    is_program = isinstance(request, Request)
    empty = {one.name for one in FILTERS if is_program and query.get(one.name) == ""}
    if empty:
        raise ValidationError({name: ["must not be empty"] for name in empty})
    try:
        return read_filters(query, which, user.may_manage)
    except FilterFaults as found:
        raise ValidationError({name: [fault] for name, fault in found.faults.items()}) from None


def judgments_asked(request: Request | HttpRequest, campaign_id: uuid.UUID) -> FilteredRows:
    """Return the judgments that a request asks for. By seconds only what an index narrows is ordered."""
    asked = _filters_of(request, JUDGMENTS)
    order = request.GET.get("order", "")
    if "seconds" in order and not {"assessor", "topic_id", "doc_id"} & asked.keys():
        raise ValidationError({"order": ["by seconds: name an assessor, a topic or a document as well"]})
    # Where a time is asked for, that is the usual order.
    found = filtered_judgments(
        campaign_id,
        asked,
        _assessor(asked, request, campaign_id),
        is_by_time=not order or "time" in order,
    )
    return judgments_by_digest(found, campaign_id, asked.get("spread"))


def items_asked(request: Request | HttpRequest, campaign_id: uuid.UUID) -> FilteredRows:
    """Return the items that a request asks for."""
    asked = _filters_of(request, ITEMS)
    found = filtered_items(campaign_id, asked, _assessor(asked, request, campaign_id))
    order = item_order(request).removeprefix("-")
    return items_by_digest(found, campaign_id, asked.get("spread"), order if order in DIGEST_ORDERS else None)


def item_order(request: Request | HttpRequest) -> str:
    """Return the order of a list of items. One by digests stands alone: their indexes have no other."""
    given = request.GET.get("order")
    words = (given or "").split(",")
    if len(words) > 1 and any(word.removeprefix("-") in DIGEST_ORDERS for word in words):
        raise ValidationError({"order": [f"by {', '.join(DIGEST_ORDERS)} items have one order alone"]})
    if given:
        return given
    return "-spread" if request.GET.get("spread") else "topic,document"


def _assessor(asked: Mapping[str, Any], request: Request | HttpRequest, campaign_id: uuid.UUID) -> int | None:
    return assessor_called(asked["assessor"], user_of(request), campaign_id) if "assessor" in asked else None


class ListPage:
    """A page of a list, cut as the API cuts it: its rows, and the addresses of the next and the previous one."""

    page_size = 25  # what a screen or two show

    def __init__(
        self, request: HttpRequest, found: FilteredRows, rows: Any, orders: Mapping[str, str], usual: str
    ):
        self.rest, self.order_fields, self.default_order, self.tie = found.rest, orders, usual, found.tie
        pages = Pages()
        if not request.GET.get("order"):  # a form sends an order that nobody chose as an empty one
            asked = request.GET.copy()
            asked.pop("order", None)
            request.GET = asked  # type: ignore[assignment]  # as Django's own forms of a request take it
        self.rows = pages.paginate_queryset(rows, Request(request), self)
        links = pages.get_paginated_response([]).data
        self.next, self.previous = (_query_of(links[name]) for name in ("next", "previous"))
        self.looked_up_to = pages.edge


def _query_of(link: str | None) -> str:
    return link.partition("?")[2] if link else ""
