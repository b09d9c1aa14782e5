"""The API's description as a page for people, made here: no script, nothing from elsewhere."""

import functools
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from touchstone.api.schema import PROBLEMS, description

METHODS = ("get", "post", "put", "patch", "delete")
MOST_CHOICES = 12


@login_not_required
@require_GET
def guide(request: HttpRequest) -> HttpResponse:
    """What can be asked of the API, by subject."""
    return render(request, "api_guide.html", {"groups": groups(), "problems": PROBLEMS})


@functools.cache
def groups() -> list[dict[str, Any]]:
    """Return the operations by what they are about, as the page shows them."""
    described = description()
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in described["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = _operation(described, path, method, methods[method])
                found.setdefault(methods[method]["tags"][0], []).append(operation)
    return [{"name": name, "operations": found[name]} for name in sorted(found)]


def _operation(
    described: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> dict[str, Any]:
    parameters = operation.get("parameters", [])
    body = operation.get("requestBody", {}).get("content", {})
    answers = [
        {
            "status": status,
            "kinds": list(answer.get("content", {})) or ["nothing"],
            "fields": _content(described, answer),
        }
        for status, answer in sorted(operation["responses"].items())
        if status < "300"
    ]
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "words": operation.get("description", ""),
        "scope": operation.get("x-scope", "read") if operation.get("security") else "",
        "query": [
            _row(described, p["name"], p["schema"], p.get("required"), p)
            for p in parameters
            if p["in"] == "query"
        ],
        "body_kinds": list(body),
        "body": _fields(described, next(iter(body.values()))["schema"]) if body else [],
        "answers": answers,
    }


def _content(described: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    content = answer.get("content", {})
    return _fields(described, content["application/json"]["schema"]) if "application/json" in content else []


def _fields(described: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of an object, or of the objects in a list or on a page."""
    schema = _resolve(described, schema)
    if "results" in schema.get("properties", {}):
        schema = schema["properties"]["results"]
    if schema.get("type") == "array":
        schema = _resolve(described, schema["items"])
    required = schema.get("required", [])
    return [
        _row(described, name, part, name in required) for name, part in schema.get("properties", {}).items()
    ]


def _row(
    described: dict[str, Any],
    name: str,
    schema: dict[str, Any],
    required: Any,
    said: dict[str, Any] | None = None,
) -> dict[str, Any]:
    words = (said or {}).get("description") or schema.get("description", "")
    return {"name": name, "kind": _kind(described, schema), "required": bool(required), "words": words}


def _resolve(described: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kind(described: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return what a value is, in a few words."""
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_kind(described, part) for part in schema[several]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    kinds = schema.get("type", "any value")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if "enum" in schema:
        choices = [str(choice) for choice in schema["enum"] if choice not in ("", None)]
        more = ", …" if len(choices) > MOST_CHOICES else ""
        return "one of " + ", ".join(choices[:MOST_CHOICES]) + more
    words = [
        "list of " + _kind(described, schema.get("items", {})) if kind == "array" else kind for kind in kinds
    ]
    limits = [
        f"{word} {schema[name]:,}" if isinstance(schema[name], int) else f"{word} {schema[name]}"
        for name, word in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("maxLength", "up to"),
            ("maxItems", "up to"),
        )
        if name in schema and abs(schema[name]) < 2**53
    ]
    shape = f" ({schema['format']})" if "format" in schema else ""
    return " or ".join(words) + shape + (f", {', '.join(limits)}" if limits else "")
