"""Lists come in pages, each found by the last row of the one before: the thousandth costs what the first does.

A cursor holds the order and the values of a row's order fields. It opens nothing: it only says where to go on in what
the request may see anyway, so it needs no signature, only care when it is read.
"""

import base64
import binascii
import json
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.core.exceptions import ValidationError as FieldError
from django.db.models import Q
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from touchstone.api.filters import ordered_by

USUAL, MOST = 50, 200
LOOKED_AT = 10_000  # rows at most that a page looks at for what no index finds
LONGEST_CURSOR = 2000
FORWARDS, BACKWARDS = "after", "before"
NOTHING = Q(pk__in=[])
# First keys of long lists; those of digests are asked for where they are known.
NEVER_NULL = {"pk", "id", "topic_id", "created_at", "active_milliseconds"} | {
    f"digest__{name}" for name in ("newest", "spread", "influence", "milliseconds", "item_id")
}


class Pages(BasePagination):
    """`?page_size=` up to 200 rows, `?cursor=` as the answer before named it.

    A view with `rest`, a condition that no index serves, has it asked of so many rows a page; the next page goes on
    from the last of them. So a page may have few rows, or none, and yet name a next one.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request = request
        self.keys = ordered_by(request, view)
        size = _page_size(request.query_params.get("page_size"), getattr(view, "page_size", USUAL))
        way, values = self._cursor(queryset)
        backwards = way == BACKWARDS
        keys = [(path, descending != backwards) for path, descending in self.keys]
        if values is not None:
            queryset = queryset.filter(_rows_after(queryset, keys, values), _up_to(keys, values))
        order = [f"-{path}" if descending else path for path, descending in keys]
        rows, self.edge = self._looked_through(queryset.order_by(*order), keys, view, size + 1)
        there_is_more = len(rows) > size
        rows = rows[:size]
        ahead = rows[-1] if there_is_more else self.edge  # where this way goes on
        behind = (rows[0] if rows else self.edge) if values is not None else None
        if backwards:
            rows.reverse()
        self.next_row: Any
        self.previous_row: Any
        self.next_row, self.previous_row = (behind, ahead) if backwards else (ahead, behind)
        return rows

    def _looked_through(
        self, queryset: Any, keys: list[tuple[str, bool]], view: Any, n: int
    ) -> tuple[list[Any], Any]:
        """Return the first rows that meet the view's further condition, and where looking ended before all was seen."""
        if not hasattr(view, "rest"):
            return list(queryset[:n]), None
        if view.rest is None:
            return _with_joins(queryset, queryset, n), None
        # Its keys alone: so many rows with all that is joined to each would cost ten times as much.
        bare = queryset.select_related(None).values(*(path for path, _ in keys))
        edge = bare[LOOKED_AT - 1 : LOOKED_AT].first()
        if edge is not None:
            values = [_value(edge, path) for path, _ in keys]
            flipped = [(path, not descending) for path, descending in keys]
            is_edge = Q(**{path: value for (path, _), value in zip(keys, values, strict=True)})
            queryset = queryset.filter(
                _rows_after(queryset, flipped, values) | is_edge, _up_to(flipped, values)
            )
        rows = _with_joins(queryset, queryset.filter(view.rest), n)
        return rows, None if len(rows) == n else edge

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "next": self._link(FORWARDS, self.next_row),
                "previous": self._link(BACKWARDS, self.previous_row),
                "results": data,
            }
        )

    def _order_name(self) -> str:
        return ",".join(f"-{path}" if descending else path for path, descending in self.keys)

    def _link(self, way: str, row: Any) -> str | None:
        if row is None:
            return None
        values = [_cursor_value(_value(row, path)) for path, _ in self.keys]
        text = json.dumps([way, self._order_name(), values], separators=(",", ":"))
        cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return str(replace_query_param(self.request.build_absolute_uri(), "cursor", cursor))

    def _cursor(self, queryset: Any) -> tuple[str, list[Any] | None]:
        given = self.request.query_params.get("cursor")
        if given is None:
            return FORWARDS, None
        try:
            if len(given) > LONGEST_CURSOR:
                raise ValueError("too long")
            text = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
            way, order, values = json.loads(text)
            if way not in (FORWARDS, BACKWARDS) or order != self._order_name():
                raise ValueError("of another list")
            if "\\u0000" in json.dumps(values) or len(values) != len(self.keys):
                raise ValueError("not ours")
            json.dumps(values, ensure_ascii=False).encode()  # half characters cannot be compared
            read = [_read(queryset, path, value) for (path, _), value in zip(self.keys, values, strict=True)]
        except (ValueError, TypeError, RecursionError, OverflowError, binascii.Error, FieldError):
            raise ValidationError({"cursor": ["this is no cursor of this list in this order"]}) from None
        return way, read

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": "cursor",
                "in": "query",
                "required": False,
                "description": "Where to go on: taken from `next` or `previous` of an answer.",
                "schema": {"type": "string", "maxLength": LONGEST_CURSOR},
            },
            {
                "name": "page_size",
                "in": "query",
                "required": False,
                "description": "How many rows a page has at most.",
                "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
            },
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
            "additionalProperties": False,
        }


def _with_joins(queryset: Any, found: Any, n: int) -> list[Any]:
    """Return the first rows found with all that the list joins to each: their keys first, so that only they are joined.

    What is put into order would else have it all, and the plan of a join is made for a length that nobody knows.
    A list with a further condition has no annotations: they would be lost here.
    """
    keys = list(found.select_related(None).values_list("pk", flat=True)[:n])
    joined = queryset.model._base_manager.filter(pk__in=keys)
    joined.query.select_related = queryset.query.select_related
    joined.query.deferred_loading = queryset.query.deferred_loading
    rows = {row.pk: row for row in joined}
    return [rows[key] for key in keys if key in rows]


def _page_size(given: str | None, usual: int) -> int:
    if given is None:
        return usual
    if not given.isascii() or not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= MOST:
        raise ValidationError({"page_size": [f"must be a whole number from 1 to {MOST}"]})
    return int(given)


def _rows_after(queryset: Any, keys: list[tuple[str, bool]], values: list[Any]) -> Q:
    """Return the rows that come later in this order than a row with these values; NULL is the largest of all."""
    beyond, same = NOTHING, Q()
    for (path, descending), value in zip(keys, values, strict=True):
        if value is None:
            later = Q(**{f"{path}__isnull": False}) if descending else NOTHING
        elif descending:
            later = Q(**{f"{path}__lt": value})
        else:
            later = Q(**{f"{path}__gt": value})
            if _may_be_null(queryset, path):
                later |= Q(**{f"{path}__isnull": True})
        beyond |= same & later
        same &= Q(**{f"{path}__isnull": True}) if value is None else Q(**{path: value})
    return beyond


def _up_to(keys: list[tuple[str, bool]], values: list[Any]) -> Q:
    """Return the same for the first key alone, where it is never null: an index goes by it, but by no alternatives."""
    (path, descending), value = keys[0], values[0]
    is_plain = value is not None and path in NEVER_NULL
    return Q(**{f"{path}__{'lte' if descending else 'gte'}": value}) if is_plain else Q()


def _may_be_null(queryset: Any, path: str) -> bool:
    if path in NEVER_NULL:
        return False
    return bool(getattr(_field(queryset, path), "null", True)) or "__" in path


def _field(queryset: Any, path: str) -> Any:
    """Return the model's field or the annotation that a path ends in."""
    annotation = queryset.query.annotations.get(path)
    if annotation is not None:
        return annotation.output_field
    options, field = queryset.model._meta, None
    for part in path.split("__"):
        try:
            field = options.pk if part == "pk" else options.get_field(part)
        except FieldDoesNotExist:
            return None
        options = field.related_model._meta if field.related_model else options
    return field


def _value(row: Any, path: str) -> Any:
    if isinstance(row, dict):
        return row.get(path)
    for part in path.split("__"):
        row = getattr(row, part)
        if row is None:
            return None
    return row.pk if hasattr(row, "_meta") else row


def _cursor_value(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, uuid.UUID | Decimal) else value


def _read(queryset: Any, path: str, value: Any) -> Any:
    if value is None:
        return None
    field = _field(queryset, path)
    if isinstance(value, list | dict):
        raise ValueError("a value is one value")
    return value if field is None else getattr(field, "target_field", field).to_python(value)
