"""The API's description of itself, OpenAPI 3.1: made from the views and their serializers, never by hand."""

import functools
import json
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers
from rest_framework.fields import empty

from touchstone.api.plain_bytes import with_plain_bytes
from touchstone.api.scopes import scope_of

PROBLEM = "application/problem+json"
# What every operation may answer beside what it declares: why, in words for the reader of the description.
PROBLEMS = {
    "400": "Something in the request is not valid; `errors` names the fields",
    "401": "The key is not valid, or there is none",
    "403": "The key lacks the scope, or nobody is logged in",
    "404": "There is no such thing, or none that you may see",
    "409": "It cannot be done as things stand, or the idempotency key was used for another request",
    "413": "The request is too long",
    "415": "The body is of a type that is not accepted here",
    "429": "Too many requests; `Retry-After` says when to come again",
    "503": "The database cannot answer now; `Retry-After` says when to come again",
}
WITH_BODY = {"413", "415"}
RETRY_AFTER = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer", "minimum": 0}}}
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {
            "type": "string",
            "description": "The type of the problem, for API clients: /problems/<name>",
        },
        "title": {"type": "string", "description": "Which problem it is, for people"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What is special about this case; may be empty"},
        "errors": {"description": "The faults, by the names of the fields that were sent"},
    },
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A name of your own for this request: sent again with it within a day, the request is not carried "
    "out again, and the first answer is given again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


class Schema(AutoSchema):
    """One operation. Views say what they answer; scopes, queries and closed objects are written down here."""

    def get_tags(self) -> list[str]:
        """Return what it is about: the last word of the address that is no parameter's."""
        words = [word for word in self.path.split("/") if word and not word.startswith("{")][2:]
        return [
            "campaigns" if words[:1] == ["campaigns"] and len(words) == 1 else words[min(1, len(words) - 1)]
        ]

    def get_override_parameters(self) -> list[Any]:
        asked = getattr(self.view, "query_serializer", None)
        return [asked] if asked is not None and self.method == "GET" else []

    def get_extensions(self) -> dict[str, Any]:
        return {"x-scope": scope_of(self.view, self.method)}

    def _get_serializer_name(self, serializer: Any, direction: str, bypass_extensions: bool = False) -> str:
        """Name the body of a request once: no generator shall make a class whose name ends with Request twice."""
        name = str(super()._get_serializer_name(serializer, direction, bypass_extensions))
        return name.removesuffix("Request") if name.endswith("RequestRequest") else name

    def _map_serializer(self, serializer: Any, direction: str, bypass_extensions: bool = False) -> Any:
        """Answers have just the fields that are described; requests too, where the serializer refuses others."""
        described = super()._map_serializer(serializer, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # of drf_spectacular
        is_closed = direction == "response" or getattr(serializer, "is_strict", False)
        if is_closed and described.get("type") == "object":
            described.setdefault("additionalProperties", False)
        if direction == "response":
            properties = described.get("properties", {})
            if always := {name for name in properties if _is_always_there(serializer, name)}:
                described["required"] = sorted({*described.get("required", ()), *always})
            for part in properties.values():  # an address that nobody has set is empty
                if part.get("format") == "uri":
                    del part["format"]
        return described

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> Any:
        """Say of answers what can really stand in them: a column that may be empty may be so, whatever its kind."""
        described = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # of drf_spectacular
        if direction != "response":
            return described
        if (
            isinstance(field, serializers.ChoiceField)
            and "" not in described.get("enum", [""])
            and _may_be_blank(field)
        ):
            described = {**described, "enum": [*described["enum"], ""]}
        return described


def _is_always_there(serializer: Any, name: str) -> bool:
    """Return whether answers have a field that requests may leave out: a column is, and what has a default."""
    return isinstance(serializer, serializers.ModelSerializer) or serializer.fields[name].default is not empty


def _may_be_blank(field: Any) -> bool:
    model = getattr(getattr(field.parent, "Meta", None), "model", None)
    try:
        return bool(model._meta.get_field(field.source).blank) if model else False
    except FieldDoesNotExist:
        return False


class KeyScheme(OpenApiAuthenticationExtension):
    target_class = "touchstone.authentication.TokenAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of yours, made on the page of your account",
        }


def with_problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add to every operation what any may answer, so that views declare only how they succeed."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components["responses"] = {
        f"Problem{status}": _problem(status, words) for status, words in PROBLEMS.items()
    }
    for methods in result["paths"].values():
        for method, operation in methods.items():
            _complete(method, operation)
    described: dict[str, Any] = _without_marks(result)
    return described


def _problem(status: str, words: str) -> dict[str, Any]:
    body = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    headers = {"headers": RETRY_AFTER} if status in ("429", "503") else {}
    return {"description": words, "content": body, **headers}


def _complete(method: str, operation: dict[str, Any]) -> None:
    is_open = not operation.get("security")
    for answer in operation["responses"].values():
        if "content" in answer:
            answer["content"] = with_plain_bytes(answer["content"])
    for status in PROBLEMS:
        if (status in WITH_BODY and "requestBody" not in operation) or (is_open and status in ("401", "403")):
            continue
        operation["responses"].setdefault(status, {"$ref": f"#/components/responses/Problem{status}"})
    if method == "post":
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)


def _without_marks(part: Any) -> Any:
    """Return the description without the generator's marks for its own use."""
    if isinstance(part, dict):
        if {} in (part.get("oneOf") or []):  # anything, or nothing: anything
            part = {name: inner for name, inner in part.items() if name != "oneOf"}
        return {name: _without_marks(inner) for name, inner in part.items() if name != "x-spec-enum-id"}
    return [_without_marks(inner) for inner in part] if isinstance(part, list) else part


@functools.cache
def description() -> dict[str, Any]:
    """Return the description; it is the same for everybody, and as long as this process lives."""
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    described: dict[str, Any] = json.loads(json.dumps(made, default=str))
    return described
