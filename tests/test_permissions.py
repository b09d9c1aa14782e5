"""Every address x every kind of person x what is their own, somebody else's, or nowhere.

The addresses are those of the resolver: one that `AUDIENCE` does not name fails. What belongs to others must look like
what does not exist, to the letter; so must everything to those whose role has no business there.
"""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from worlds import Route, World, absent, make_user, make_world, routes

from touchstone.models import User
from touchstone.rights import WEB

pytestmark = pytest.mark.xdist_group("permissions")

NOBODY, ASSESSOR, RESEARCHER, MANAGER = "nobody", "assessor", "researcher", "manager"
EVERYBODY = {NOBODY, ASSESSOR, RESEARCHER, MANAGER}
PEOPLE = {ASSESSOR, RESEARCHER, MANAGER}
RESEARCH = {RESEARCHER, MANAGER}

# Whom an address is for, by the beginning of its name: the longest that fits decides.
AUDIENCE: dict[str, set[str]] = {
    "home": EVERYBODY,
    "login": EVERYBODY,
    "forgotten": EVERYBODY,
    "link-": EVERYBODY,  # who holds such a link is meant
    "company": set(),  # without a provider; with one: tests/touchstone/accounts/
    "company-": set(),
    "account": PEOPLE,
    "logout": EVERYBODY,
    "language": EVERYBODY,
    "livez": EVERYBODY,
    "readyz": EVERYBODY,
    "api-guide": EVERYBODY,
    "api-schema": EVERYBODY,
    "api-me": PEOPLE,
    "api-webhook": {MANAGER},  # this one is the manager's
    "api-webhook-": {MANAGER},
    "api-webhooks": RESEARCH,
    "account-tokens": PEOPLE,
    "account-token-revoke": {MANAGER},  # the key is the manager's
    "account-letters": PEOPLE,
    "letters-off": EVERYBODY,  # who holds the link of a letter
    "account-webhooks": RESEARCH,
    "account-webhook-": {MANAGER},
    "job": {MANAGER},  # this one is a recomputation; researchers see those that they may ask for
    "cancel-job": {MANAGER},
    "judging:home": PEOPLE,
    "judging:judge": {ASSESSOR},
    "judging:my-data": {ASSESSOR},
    "judging:message-read": {ASSESSOR},
    "judging:frame": {ASSESSOR},
    "judging:claim": {ASSESSOR},
    "judging:submit": {ASSESSOR},
    "judging:revise": {ASSESSOR},
    "judging:heartbeat": {ASSESSOR},
    "judging:history": {ASSESSOR},
    "judging:questions": {ASSESSOR},
    "judging:batch": {ASSESSOR},
    "judging:instructions": {ASSESSOR},  # and of them only machines
    "judging:consent": {ASSESSOR},
    "judging:training": {ASSESSOR},
    "judging:training-frame": {ASSESSOR},
    "judging:complete": {ASSESSOR},
    "judging:join": EVERYBODY,  # who holds the link may come in; that is what it is for
    "judging:hit": EVERYBODY,
    "judging:hit-start": EVERYBODY,
    "judging:study": EVERYBODY,
    "console:manage": {MANAGER},
    "console:manage-": {MANAGER},
    "console:entry-": {MANAGER},
    "console:api-": {MANAGER},
    "console:api-my-": {ASSESSOR},
    "console:api-my-campaigns": PEOPLE,
    "console:api-my-messages": PEOPLE,
    **dict.fromkeys(
        [
            "console:api-collections",
            "console:api-collection",
            "console:api-topics",
            "console:api-documents",
            "console:api-document",
            "console:api-document-versions",
            "console:api-topic-versions",
            "console:api-runs",
            "console:api-run",
            "console:api-scores",
            "console:api-campaigns",
            "console:api-campaign",
            "console:api-scale",
            "console:api-items",
            "console:api-item",
            "console:api-judgment-log",
            "console:api-judgment-file",
            "console:api-qrels",
            "console:api-qrels_jg",
            "console:api-prels",
            "console:api-crowd",
            "console:api-adjudications",
            "console:api-jobs",
            "console:api-looks",
            "console:api-measures",
            "console:api-estimates",
            "console:api-shares",
            "console:api-comparisons",
            "console:api-comparison",
            "console:api-ranking",
            "console:api-computations",
            "console:api-computation",
            "console:api-confusions",
            "console:api-plots",
            "console:api-plot",
            "console:api-table",
            "console:api-run-uploads",
            "console:api-run-estimate",
            "console:api-releases",
            "console:api-release",
            "console:api-release-download",
            "console:api-release-citation",
            "console:api-release-changes",
            "console:api-analyses",
            "console:api-conditions",
            "console:api-families",
            "console:api-planner",
            "console:api-reuse",
            "console:api-rounds",
            "console:api-rounds-result",
        ],
        RESEARCH,
    ),
    "console:": {MANAGER},
    "console:release-cancel": RESEARCH,
    "console:public-": EVERYBODY,  # published releases; of all others nothing is there
    "console:api-flags": {MANAGER},
    "console:api-audit-forecasts": {MANAGER},
    "console:api-disputed-items": {MANAGER},
    "console:api-release-withdraw": {MANAGER},
    "console:api-release-forget-key": {MANAGER},
    **dict.fromkeys(
        [
            "console:results",
            "console:documents",
            "console:document",
            "console:document-frame",
            "console:collection-topics",
            "console:topic",
            "console:campaign-results",
            "console:pair",
            "console:pairs",
            "console:ranking",
            "console:topics",
            "console:sensitivity",
            "console:no-judgments",
            "console:papers",
            "console:agreement",
            "console:planner-simulate",
            "console:analyse",
            "console:planner",
            "console:reuse",
            "console:rounds",
            "console:rounds-compute",
            "console:plot",
            "console:export",
            "console:run-upload",
            "console:releases",
            "console:release",
            "console:release-download",
            "console:release-new",
        ],
        RESEARCH,
    ),
}
# Addresses of crowd markets and invitations name a secret link, not a campaign: whoever has it is meant.
SECRET_LINKS = {"judging:join", "judging:hit", "judging:hit-start", "judging:study"}
# Accounts are no collection's: every manager sees all of them.
OF_ALL_COLLECTIONS = (
    "console:manage-user",
    "console:manage-invitation-revoke",
    "console:manage-letter-again",
)
# An assessor who is no machine is told so.
FOR_MACHINES = {"judging:batch", "judging:instructions"}
# What a request must bring to be about something.
QUERIES: dict[str, dict[str, str]] = {"console:pair": {"run": "run0", "against": "run2"}}
FORMS: dict[str, dict[str, str]] = {
    "account-webhook-switch": {"is_active": "no"},
    "console:manage-user-open": {"is_open": "no"},
    "console:manage-user-role": {"role": "researcher"},
}
REFUSED = {302, 401, 403, 404, 405}


@pytest.fixture(scope="module")
def scene(
    made_roles: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Two worlds and their people, in one transaction that is taken back at the end.

    What follows has the rights of the product's web processes alone: where one is missing, an answer is 500.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        mine = [make_user("mia", "manager"), make_user("rhea", "researcher")]
        theirs = [make_user("otto", "manager")]
        made = {
            "own": make_world(tmp_path_factory.mktemp("own"), mine, "bob"),
            "foreign": make_world(tmp_path_factory.mktemp("foreign"), theirs, "eve"),
            "clients": {NOBODY: Client()} | {user.role: _client(user) for user in [*mine, _bob()]},
        }
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL ROLE {WEB}")
        yield made
        transaction.set_rollback(True)


def _bob() -> User:
    return User.objects.get(username="bob")


def _client(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def audience(route: Route) -> set[str] | None:
    fits = [name for name in AUDIENCE if _fits(route, name)]
    return AUDIENCE[max(fits, key=len)] if fits else None


def ask(client: Client, method: str, route: Route, arguments: dict[str, Any]) -> Any:
    """Ask, and take back what came of it: in the database, and in the cookies (one address logs out)."""
    cookies, client = client.cookies, Client()
    client.cookies.update(cookies)
    address = reverse(route.name, kwargs=arguments)
    query = QUERIES.get(route.name, {})
    with transaction.atomic():
        if method == "GET":
            answer: Any = client.get(address, query)
        elif route.name in FORMS:
            answer = client.post(address, FORMS[route.name])
        else:
            answer = client.generic(method, address, b"{}", content_type="application/json")
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return answer.status_code, _plain(content.decode(errors="replace"), arguments)


def _plain(text: str, arguments: dict[str, Any]) -> str:
    """Return the body without what differs between any two requests: address, id, token of forms, nonce."""
    for value in arguments.values():
        if not isinstance(value, int):
            text = text.replace(str(value), "…")
    text = re.sub(r"<code>[0-9a-f]{32}</code>", "", text)  # the request's id on an error page
    text = re.sub(r'(csrfmiddlewaretoken" value|nonce|data-csrf)="[^"]*"', r"\1", text)
    return re.sub(r'"?csrf[a-z_-]*"?:\s*"[^"]*"', "", text, flags=re.IGNORECASE)


METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def methods(route: Route) -> list[str]:
    """Return the methods worth asking: of a program's address those it has, of a page the two a browser knows."""
    view = getattr(route.view, "cls", None)
    if view is None:
        return ["GET", "POST"]
    return [method for method in METHODS if hasattr(view, method.lower())]


ROUTES = routes()


@pytest.mark.django_db  # no query here: pytest-django makes the test database when some test of a run says so
def test_every_address_says_whom_it_is_for():
    assert [route.name for route in ROUTES if audience(route) is None] == []
    assert [name for name in AUDIENCE if not any(_fits(route, name) for route in ROUTES)] == []


def _fits(route: Route, name: str) -> bool:
    return route.name == name or (name[-1] in "-:" and route.name.startswith(name))


def test_an_address_that_nobody_decided_about_is_noticed():
    """The positive control of the test above."""
    assert audience(Route("admin:index", "admin/", {}, None)) is None


@pytest.mark.parametrize("role", [NOBODY, ASSESSOR, RESEARCHER, MANAGER])
def test_what_one_may_see_is_there_and_what_one_may_not_see_looks_absent(scene, role, django_db_blocker):
    with django_db_blocker.unblock():
        faults = [fault for route in ROUTES for fault in _faults(scene, role, route)]
    assert not faults, "\n".join(faults)


def _faults(scene: dict[str, Any], role: str, route: Route) -> Iterator[str]:
    client, may = scene["clients"][role], role in (audience(route) or set())
    own, foreign = (scene[name].arguments(route) for name in ("own", "foreign"))
    gone, is_public = absent(route, own), route.name in SECRET_LINKS or audience(route) == EVERYBODY
    answers = {method: ask(client, method, route, own) for method in methods(route)}
    statuses = {method: answer[0] for method, answer in answers.items()}
    if any(status >= 500 for status in statuses.values()):
        yield f"{role} {route}: {statuses}"
    if is_public:
        return
    if (
        may
        and route.name not in FOR_MACHINES
        and all(status in REFUSED - {302} for status in statuses.values())
    ):
        yield f"{role} should see {route}: {statuses}"
    if gone == own:  # nothing that could be absent
        if not may and any(status not in REFUSED for status in statuses.values()):
            yield f"{role} should not see {route}: {statuses}"
        return
    for method, answer in answers.items():
        nowhere = ask(client, method, route, gone)
        # To who has no business here the guard says no before it looks: one method shows it.
        theirs = ask(client, method, route, foreign) if may or method == methods(route)[0] else nowhere
        if not may and answer != nowhere:
            yield f"{role} {method} {route}: what is there ({answer[0]}) differs from what is not ({nowhere[0]})"
        if theirs != nowhere and not (may and route.name.startswith(OF_ALL_COLLECTIONS)):
            yield f"{role} {method} {route}: what is others' ({theirs[0]}) differs from what is not ({nowhere[0]})"
        if method == "GET" and nowhere[0] not in REFUSED:
            yield f"{role} {route}: reads what does not exist ({nowhere[0]})"


def test_what_is_open_to_all_shows_that_the_comparison_can_fail(scene, django_db_blocker):
    """Without its members the foreign collection is everybody's: then the same requests do differ."""
    route = next(route for route in ROUTES if route.name == "console:manage-collection")
    with django_db_blocker.unblock(), transaction.atomic():
        collection = scene["foreign"].campaign.collection
        type(collection).objects.filter(pk=collection.pk).update(is_restricted=False)
        theirs = ask(scene["clients"][MANAGER], "GET", route, scene["foreign"].arguments(route))
        nowhere = ask(scene["clients"][MANAGER], "GET", route, {"collection_id": uuid.uuid4()})
        transaction.set_rollback(True)
    assert theirs[0] == 200
    assert nowhere[0] == 404


def test_what_was_deleted_is_absent_to_everybody(scene: dict[str, Any], django_db_blocker: Any) -> None:
    world: World = scene["own"]
    with django_db_blocker.unblock(), transaction.atomic():
        type(world.campaign).objects.filter(pk=world.campaign.pk).update(
            state="closed", deleted_at=world.campaign.created_at
        )
        for name in ("console:campaign", "console:campaign-results", "console:manage-campaign-edit"):
            route = next(route for route in ROUTES if route.name == name)
            assert ask(scene["clients"][MANAGER], "GET", route, world.arguments(route))[0] == 404
        transaction.set_rollback(True)
