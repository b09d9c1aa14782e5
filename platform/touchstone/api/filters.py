"""Which rows, in which order: only by what a view lists. Everything else in a query is refused.

A view says `filter_fields = {"state": "state", "since": "created_at__gte"}`: the name in the query and the path of the
column with its lookup. What may be sent follows from the column. `(path, serializer field)` says it otherwise; with an
empty path it is no filter, and the view reads it. `old_filters = {"run_b": "against"}` are names that filters had
before: they are understood, and described as deprecated.
A view says `order_fields = ("name", "created_at")`: `?order=-created_at,name`. Without `?order=` it is
`default_order`, or else the first of these. The primary key, or a view's `tie`, ends every order:
pages need one that is total.
"""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.filters import BaseFilterBackend
from rest_framework.request import Request

LONGEST = 200
MOST_AT_ONCE = 50  # values of one `__in`
LOOKUPS = {"exact", "gt", "gte", "lt", "lte", "icontains", "istartswith", "startswith", "isnull", "in"}


class ListedFilters(BaseFilterBackend):
    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        faults: dict[str, Any] = _named_twice(request, view)
        conditions = {}
        for name, (path, field) in filters_of(view, queryset.model).items():
            if name in request.query_params:
                try:
                    value = field.run_validation(request.query_params[name])
                    if path:
                        conditions[path] = value
                except (serializers.ValidationError, OverflowError) as fault:
                    faults[name] = getattr(fault, "detail", ["is out of range"])
        if faults:
            raise ValidationError(faults)
        return queryset.filter(**conditions) if conditions else queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        model = getattr(getattr(view, "queryset", None), "model", None) or view.get_queryset().model
        old = getattr(view, "old_filters", {})
        return [
            {
                "name": name,
                "in": "query",
                "required": False,
                "description": field.help_text or f"Only rows of this {name.replace('_', ' ')}.",
                "schema": _schema_of(field),
            }
            | ({"description": f"Deprecated: {old[name]}", "deprecated": True} if name in old else {})
            for name, (_, field) in filters_of(view, model).items()
        ]


def _named_twice(request: Request, view: Any) -> dict[str, list[str]]:
    """Return what is wrong where a filter is given under its name and under the one that it had before."""
    both = getattr(view, "old_filters", {}).items()
    return {
        old: [f"is the same as {name}: give one of them"]
        for old, name in both
        if {old, name} <= request.query_params.keys()
    }


class ListedOrder(BaseFilterBackend):
    """The order is applied by the pages; here it is described, and checked before anything is read."""

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        ordered_by(request, view)
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        names = list(_paths(view))
        if not names:
            return []
        some = "|".join(f"-?{name}" for name in names)
        return [
            {
                "name": "order",
                "in": "query",
                "required": False,
                "description": f"By {', '.join(names)}; several with commas, the largest first with a minus.",
                "schema": {"type": "string", "pattern": f"^({some})(,({some}))*$", "maxLength": LONGEST},
            }
        ]


AnyField = serializers.Field[Any, Any, Any, Any]


def filters_of(view: Any, model: Any) -> dict[str, tuple[str, AnyField]]:
    found: dict[str, tuple[str, AnyField]] = {}
    for name, wanted in getattr(view, "filter_fields", {}).items():
        path, field = wanted if isinstance(wanted, tuple) else (wanted, None)
        found[name] = (path, field or field_of(model, path))
    return found | {old: found[name] for old, name in getattr(view, "old_filters", {}).items()}


def field_of(model: Any, path: str) -> AnyField:
    """Return what may be sent for a path: the kind of its column, or of its lookup."""
    *parts, last = path.split("__")
    lookup = last if last in LOOKUPS else "exact"
    if lookup == "exact" and last != "exact":
        parts.append(last)
    if lookup == "isnull":
        return serializers.BooleanField()
    options: Any = model._meta
    column: Any = None
    for part in parts:
        try:
            column = options.pk if part == "pk" else options.get_field(part)
        except FieldDoesNotExist:
            raise LookupError(f"{model.__name__} has no {path}: give a serializer field with it") from None
        options = column.related_model._meta if column.related_model else options
    while column.related_model:
        column = column.target_field if hasattr(column, "target_field") else column.related_model._meta.pk
    field = (
        _field_of_column(column) if "contains" not in lookup else serializers.CharField(max_length=LONGEST)
    )
    return _CommaList(child=field) if lookup == "in" else field


def _field_of_column(column: Any) -> AnyField:
    if column.choices:
        return serializers.ChoiceField([value for value, _ in column.flatchoices])
    kinds: tuple[tuple[Any, AnyField], ...] = (
        (models.UUIDField, serializers.UUIDField()),
        (models.BooleanField, serializers.BooleanField()),
        (models.IntegerField, serializers.IntegerField(min_value=-(2**63), max_value=2**63 - 1)),
        (models.FloatField, serializers.FloatField(min_value=-1e300, max_value=1e300)),
        (models.DateTimeField, serializers.DateTimeField()),
        (models.DateField, serializers.DateField()),
    )
    for kind, field in kinds:
        if isinstance(column, kind):
            return field
    return serializers.CharField(max_length=LONGEST)


class _CommaList(AnyField):
    def __init__(self, child: AnyField) -> None:
        super().__init__()
        self.child = child

    def to_internal_value(self, data: Any) -> list[Any]:
        given = str(data).split(",")
        if len(given) > MOST_AT_ONCE:
            raise serializers.ValidationError(f"no more than {MOST_AT_ONCE} values")
        return [self.child.run_validation(value) for value in given]


def _schema_of(field: AnyField) -> dict[str, Any]:
    if isinstance(field, serializers.ChoiceField):
        return {"type": "string", "enum": list(field.choices)}
    if isinstance(field, serializers.IntegerField | serializers.FloatField):
        kind = "integer" if isinstance(field, serializers.IntegerField) else "number"
        bounds = {"minimum": field.min_value, "maximum": field.max_value}
        return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
    formats: dict[type[AnyField], dict[str, Any]] = {
        serializers.UUIDField: {"type": "string", "format": "uuid"},
        serializers.BooleanField: {"type": "boolean"},
        serializers.DateTimeField: {"type": "string", "format": "date-time"},
        serializers.DateField: {"type": "string", "format": "date"},
    }
    for kind_of_field, described in formats.items():
        if isinstance(field, kind_of_field):
            return described
    longest = getattr(field, "max_length", None)
    return {"type": "string", "minLength": 1, **({"maxLength": longest} if longest else {})}


def _paths(view: Any) -> dict[str, str]:
    """Return the order fields: names in the query and paths in the database."""
    fields = getattr(view, "order_fields", ())
    return dict(fields) if isinstance(fields, Mapping) else {name: name for name in fields}


def ordered_by(request: Request, view: Any) -> list[tuple[str, bool]]:
    """Return the paths to order by, each with whether the largest comes first; the primary key is the last."""
    paths = _paths(view)
    usual = getattr(view, "default_order", next(iter(paths), "pk"))
    given = request.query_params.get("order")
    keys: dict[str, bool] = {}
    for word in (usual if given is None else given).split(","):
        name, descending = word.removeprefix("-"), word.startswith("-")
        path = paths.get(name, name if given is None else None)
        if path is None or path in keys:
            reason = f"must be of {', '.join(paths)}" if paths else "this list has one order only"
            raise ValidationError({"order": [reason]})
        keys[path] = descending
    if not {"pk", "id"} & keys.keys():
        tie = getattr(view, "tie", "pk")
        # A key of the same index goes the way of the one before, else the index would not have them in this order.
        keys[tie] = tie != "pk" and descending
    return list(keys.items())
