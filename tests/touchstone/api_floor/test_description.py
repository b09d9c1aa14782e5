"""The API's description, as generators of clients read it: valid, typed, and no default that is refused when sent."""

from collections.abc import Iterator
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from rest_framework import serializers

from judging.serializers.strict import Word
from touchstone.api.schema import description

JSON = ("application/json", "application/problem+json")


def parts_of(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object in the description with its place."""
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    if isinstance(part, dict):
        yield place, part
    for name, one in inner:
        yield from parts_of(one, f"{place}/{name}")


def refused_defaults(described: dict[str, Any]) -> list[str]:
    """Return where a schema has a default that is not valid in it."""
    schemas = ((place, one) for place, one in parts_of(described) if "/example" not in place)
    return [
        f"{place}: {fault.message}"
        for place, one in schemas
        if "default" in one and not place.endswith(("/properties", "/responses"))
        for fault in OAS31Validator({**one, "components": described["components"]}).iter_errors(
            one["default"]
        )
    ]


def operations(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in described["paths"].values():
        yield from methods.values()


def test_the_description_is_valid_openapi():
    described = description()
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) == []
    described = {**described, "paths": {**described["paths"], "no-slash": {}}}
    assert list(OpenAPIV31SpecValidator(described).iter_errors()) != []


def test_no_default_is_refused_by_its_own_schema():
    described = description()
    n_defaults = sum("default" in one for _, one in parts_of(described))
    assert n_defaults > 100
    assert refused_defaults(described) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 1, "default": ""},
        {"type": "integer", "maximum": 3, "default": 4},
        {"$ref": "#/components/schemas/Problem", "default": {"type": "x"}},
    ],
)
def test_a_default_that_is_refused_is_noticed(schema: dict[str, Any]) -> None:
    planted = {**description(), "paths": {"planted": {"schema": schema}}}
    assert [fault.partition(":")[0] for fault in refused_defaults(planted)] == ["/paths/planted/schema"] * (
        3 if "$ref" in schema else 1
    )


def test_what_may_be_left_out_may_be_sent_empty():
    assert Word(default="").run_validation("") == ""
    with pytest.raises(serializers.ValidationError):
        Word(max_length=9).run_validation("")
    with pytest.raises(serializers.ValidationError):
        Word(default="", allow_blank=False).run_validation("")


def test_files_are_binary_both_ways():
    n_files = 0
    for operation in operations(description()):
        for status, answer in operation["responses"].items():
            for kind, content in answer.get("content", {}).items():
                if kind not in JSON and not kind.endswith("+json"):
                    assert content["schema"] == {"type": "string", "format": "binary"}, (operation, status)
                    n_files += 1
    assert n_files > 15
    schemas = description()["components"]["schemas"]
    assert schemas["UploadRequest"]["properties"]["file"]["format"] == "binary"
    assert schemas["ImportRequest"]["properties"]["files"]["items"]["format"] == "binary"


def test_judgments_that_are_sent_together_are_described_one_by_one():
    schemas = description()["components"]["schemas"]
    batch = schemas["BatchRequest"]["properties"]
    assert batch["judgments"]["items"] == {"$ref": "#/components/schemas/SubmissionRequest"}
    assert batch["calls"]["items"] == {"$ref": "#/components/schemas/CallRowRequest"}
    judgment = schemas["SubmissionRequest"]
    assert judgment["required"] == ["client_token", "token"]
    assert judgment["properties"]["grade"]["type"] == ["integer", "null"]


def test_answers_have_what_requests_may_leave_out():
    schemas = description()["components"]["schemas"]
    for name in ("ReleaseAnswer", "JudgmentAnswer", "PairAnswer", "EstimateClaimAnswer"):
        assert schemas[name]["required"] == sorted(schemas[name]["properties"]), name
    assert "licence" not in schemas["ReleaseRequest"]["required"]
    assert "detail" not in schemas["CallOutcome"]["required"]
