"""The API against its own description: schemathesis asks what it allows and what it forbids, as each kind of person.

No answer of 500 or more, none that the description does not have, nothing given to a wrong key; and every operation is
reached with a success. `make nightly` asks for many more (SCHEMATHESIS_EXAMPLES); the seed is fixed.
"""

import contextlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connection, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from worlds import World, make_user, make_world, routes

from judging.models import Import
from judging.services.files import import_topics
from judging.services.machines import add_machine
from touchstone.api.schema import description
from touchstone.authentication import make_token
from touchstone.files import store
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db
EXAMPLES = float(os.environ.get("SCHEMATHESIS_EXAMPLES", "1"))
# How many requests each operation gets: of the kind that is allowed, and of the kind that is not.
OF_ROLE = {"manager": 4, "researcher": 2, "assessor": 1, "nobody": 1}
# A wrong row of these has its own 400 within an answer of 200.
ONE_BY_ONE = {"batch_create"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    ignored_auth,
]


@dataclass(frozen=True)
class Asker:
    """Who asks, with which key, in which world."""

    role: str
    headers: dict[str, str]


@pytest.fixture(scope="module")
def schema() -> Any:
    """The description, read before any transaction begins: it takes seconds."""
    loaded = schemathesis.openapi.from_dict(json.loads(json.dumps(description())))
    loaded.app, loaded.location = served(get_wsgi_application()), "/api/v1/schema"
    return loaded


def served(application: Callable[..., Any]) -> Callable[..., list[bytes]]:
    """Close every answer when its body is read, as servers do and the client here does not: some are files."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        with contextlib.closing(application(environ, start_response)) as body:
            return [b"".join(body)]

    return answer


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """What Django's own test client does, too: the test's transaction outlives a request."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture(autouse=True)
def no_limits(settings):
    """How often one may ask is tested elsewhere; plain names of static files need no collecting."""
    settings.JUDGING_REQUESTS = settings.API_REQUESTS = settings.API_REQUESTS_PER_ADDRESS = (
        settings.API_WRONG_KEYS
    ) = 10**9
    settings.WEBHOOK_HOSTS = ["https://hooks.example"]


@pytest.fixture
def people(db):
    with connection.cursor() as cursor:  # thinking up requests may take longer than a web process may idle
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    return {role: make_user(f"the {role}", role) for role in ("manager", "researcher", "assessor")}


@pytest.fixture
def world(people, tmp_path) -> World:
    return make_world(tmp_path, [people["manager"], people["researcher"]], people["assessor"].username)


def asker(people: dict[str, User], role: str) -> Asker:
    if role == "nobody":
        return Asker(role, {})
    return Asker(
        role, {"Authorization": f"Bearer {make_token(user=people[role], name='schemathesis', days=1)[1]}"}
    )


def route_of() -> dict[str, Any]:
    """Return the product's routes by their addresses as the description writes them."""
    return {"/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route.pattern): route for route in routes()}


def operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


def ask(operation: Any, mode: GenerationMode, n: int, who: Asker, path: dict[str, Any] | None) -> list[int]:
    """Send so many generated requests, each undone afterwards; return the statuses."""
    statuses: list[int] = []

    @seed(6)
    @settings(
        max_examples=max(1, round(n * EXAMPLES)),
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=path))
    def one(case: Any) -> None:
        with transaction.atomic():
            answer = case.call(headers=who.headers)
            statuses.append(answer.status_code)
            # That a body is too long is said before it is looked at; an empty list in a query is not sent at all.
            is_unseen = answer.status_code == 413 or any(
                value in ([], {}, None) for value in dict(case.query or {}).values()
            )
            is_unseen |= operation.definition.raw["operationId"] in ONE_BY_ONE
            checks = [check for check in CHECKS if not is_unseen or check != negative_data_rejection]
            case.validate_response(answer, checks=checks, headers=who.headers)
            transaction.set_rollback(True)

    with contextlib.suppress(Unsatisfiable):  # of an operation without parameters nothing is forbidden
        one()
    return statuses


@pytest.mark.parametrize("role", sorted(OF_ROLE))
def test_the_api_answers_as_it_is_described_whoever_asks_whatever(role, schema, people, world):
    who, paths = asker(people, role), route_of()
    asked, faults = 0, []
    for operation in operations(schema):
        here = {name: str(value) for name, value in world.arguments(paths[operation.path]).items()}
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            try:
                asked += len(ask(operation, mode, OF_ROLE[role], who, here or None))
            except BaseException as fault:  # all of them, not the first alone
                if isinstance(fault, KeyboardInterrupt):
                    raise
                faults.append(f"{operation.label} {mode}: {fault}")
    assert not faults, f"{len(faults)} faults:\n" + "\n\n".join(faults)
    assert asked >= len(description()["paths"])


# -- every operation is reached ----------------------------------------------------------------------------------

DESIGN = {"question": "pair", "runs": ["run0", "run1"], "measure": "DCG@10", "depth": 10, "budget": 42}
# What is asked where the description itself gives no example; words in braces are filled in.
BODIES: dict[str, Any] = {
    "analyses_create": {"what": "agreement"},
    "audits_create": {"items": 3},
    "topic_checks_create": {"n_bad_good": 0, "n_bad_limit": 2},
    "topic_findings_create": {"topic_id": "{next_topic}", "is_bad": False},
    "audit_schedule_update": {"every_seconds": 3600},
    "conditions_create": {"same_judges": True, "same_period": True, "blind_to_system": True},
    "families_create": {"family": "all"},
    "draws_create": DESIGN,
    "import_keep": {"files": [{"name": "documents.jsonl", "kind": "documents"}]},
    "forecasts_create": DESIGN,
    "items_claim": {},
    "batch_create": {"judgments": []},
    "leases_extend": {"tokens": ["{held}"]},
    "judgments_create": {"token": "{held}", "client_token": "{new_token}", "grade": 1},
    "revisions_create": {"token": "{judged}", "client_token": "{new_token}", "grade": 2},
    "rounds_create": {
        "first": {"campaign": "{campaign_id}", "run": "run0", "until": "2026-01-01"},
        "second": {"campaign": "{campaign_id}", "run": "run0", "since": "2026-01-01"},
        "measure": "P@10",
    },
    "webhooks_update": {"is_active": False},
    "releases_withdraw": {"reason": "A topic was read wrongly."},
}
QUERIES: dict[str, dict[str, str]] = {
    "analyses_retrieve": {"what": "agreement"},
    "reuse_retrieve": {"run": "run0"},
    "comparison_retrieve": {"run": "run0", "against": "run1"},
    "run_estimate_retrieve": {"run": "run0"},
}
# What has to happen before: what is restored was deleted.
BEFORE = {"campaign_restore": ["campaign_delete"], "collection_restore": ["collection_delete"]}


def filled(value: Any, words: dict[str, str]) -> Any:
    """Return the example with what the world has in the place of words in braces."""
    if isinstance(value, dict):
        return {name: filled(inner, words) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, words) for inner in value]
    return words.get(value[1:-1], value) if isinstance(value, str) and value.startswith("{") else value


def example(operation: dict[str, Any]) -> Any:
    """Return the body that the description gives as an example, or None."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for one in content.get("examples", {}).values():
            return one["value"]
    return None


def files_of(operation_id: str) -> dict[str, Any]:
    """Return the form of an upload."""
    run = "".join(f"t0 Q0 t0d{n:02d} {n + 1} {20 - n} new\n" for n in range(10))
    forms: dict[str, dict[str, Any]] = {
        "import_create": {"kind": "topics", "files": SimpleUploadedFile("more.tsv", b"t9\tA new topic\n")},
        "campaign_runs_create": {"file": SimpleUploadedFile("new.run", run.encode())},
    }
    return forms[operation_id]


class Reach:
    """Sends one usual request of each operation, as whoever may; each in a savepoint that is undone."""

    def __init__(self, people: dict[str, User], world: World) -> None:
        machine = add_machine(campaign=world.campaign, username="the machine")
        everybody = {
            **people,
            "machine": machine.user,
            "participant": world.campaign.participants.get().assessor.user,
        }
        self.clients = {
            name: Client(
                headers={"Authorization": f"Bearer {make_token(user=user, name='reach', days=1)[1]}"}
            )
            for name, user in everybody.items()
        }
        self.world, self.paths = world, route_of()
        self.described = {
            one["operationId"]: (path, method, one)
            for path, methods in description()["paths"].items()
            for method, one in methods.items()
        }
        bob = world.campaign.assessors.get(pk=world.names["assessor_id"])
        self.words = {
            **{name: str(value) for name, value in world.names.items() if " " not in name},
            "campaign_name": world.campaign.name,
            "collection_name": world.campaign.collection.name,
            "assessor_name": bob.user.username,
            "held": str(world.names["judging:frame token"]),
            "judged": str(bob.judgments.order_by("-id").first().lease_token),
            "new_token": str(uuid.uuid4()),
            "webhook_url": "https://hooks.example/new",
        }

    def send(self, operation_id: str, client: Client) -> Any:
        path, method, one = self.described[operation_id]
        arguments = self.world.arguments(self.paths[path])
        address = path.format(**arguments)
        if query := QUERIES.get(operation_id):
            address += f"?{urlencode(query)}"
        kinds = one.get("requestBody", {}).get("content", {})
        if "multipart/form-data" in kinds:
            return client.post(address, files_of(operation_id))
        body = filled(BODIES.get(operation_id, example(one)), self.words)
        if body is None:
            return getattr(client, method)(address)
        return getattr(client, method)(address, json.dumps(body), content_type="application/json")

    def reached(self, operation_id: str) -> str:
        """Return "" if somebody was answered with a success, else what everybody was answered."""
        answers = []
        for name, client in self.clients.items():
            with transaction.atomic():
                for before in BEFORE.get(operation_id, ()):
                    self.send(before, client)
                answer = self.send(operation_id, client)
                transaction.set_rollback(True)
            # Read to its end, so that a file behind it is closed.
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            if 200 <= answer.status_code < 300:
                return ""
            answers.append(f"{name}: {answer.status_code} {content[:300].decode()}")
        return f"{operation_id}:\n    " + "\n    ".join(answers)


def import_something_unused(world: World, folder: Path) -> None:
    """Let the import that is named be one on which nothing rests."""
    (folder / "unused.tsv").write_text("unused\tA topic that nobody needs\n")
    collection = world.campaign.collection
    import_topics(collection=collection, source=folder / "unused.tsv", name="unused.tsv")
    world.names["console:api-import-remove import_id"] = (
        Event.objects.filter(verb="imported topics").latest("id").pk
    )
    world.names["console:api-import-take-back import_id"] = (
        collection.imports.exclude(state="looked-at").first().pk
    )
    stored = store("uploads", ContentFile(b"id,title\nq1,A need\n", name="q.csv"))
    replaceable = Import.objects.create(
        collection=collection,
        state=Import.State.KEPT,
        kept_at=timezone.now(),
        files=[{"name": "q.csv", "upload": "q.csv", "path": stored, "n_bytes": 21, "kind": "topics"}],
    )
    world.names["console:api-import-replace import_id"] = replaceable.pk


def test_every_operation_is_reached_with_a_success(people, world, schema, tmp_path):
    import_something_unused(world, tmp_path)
    reach = Reach(people, world)
    missed = [said for operation_id in reach.described if (said := reach.reached(operation_id))]
    assert not missed, f"{len(missed)} of {len(reach.described)}:\n" + "\n".join(missed)
    assert len(reach.described) >= 100
