"""What every request of a program goes through: scopes, queries, pages, idempotency, problems, the description."""

import io
import json
import shlex
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.models import F
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from rest_framework import generics, serializers
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIRequestFactory

from touchstone.api.filters import field_of
from touchstone.api.once import KEPT, prune_requests
from touchstone.api.schema import description
from touchstone.authentication import make_token
from touchstone.models import ApiToken, Event, IdempotentRequest, Job, User, Webhook, record

WEBHOOKS, HOST = "/api/v1/webhooks", "https://hooks.example"


@pytest.fixture(scope="module", autouse=True)
def views_are_loaded() -> None:
    """The first request of a process loads every view: not within a test's transaction, which may idle for 15 s."""
    resolve("/livez")


@pytest.fixture(autouse=True)
def one_host(settings):
    settings.WEBHOOK_HOSTS = [HOST]
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def mara(db):
    return User.objects.create(username="mara", role="manager")


def client_of(user, *scopes, name="key", **headers):
    _, key = make_token(user=user, name=name, days=1, scopes=scopes or None)
    return Client(headers={"Authorization": f"Bearer {key}", **headers}, enforce_csrf_checks=True)


def post(client, key=None, path=WEBHOOKS, body=None):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post(
        path, {"url": f"{HOST}/a"} if body is None else body, "application/json", headers=headers
    )


# -- scopes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scopes", "reads", "writes", "judges"),
    [
        (("read",), 200, 403, 403),
        (("write",), 403, 201, 403),
        (("judge",), 403, 403, 404),  # it may judge, and there is no such campaign
        (("read", "judge", "write"), 200, 201, 404),
    ],
)
def test_a_key_does_what_its_scopes_say_and_nothing_else(scopes, reads, writes, judges, mara):
    client = client_of(mara, *scopes)
    claim = f"/api/v1/campaigns/{uuid.uuid4()}/claim"
    assert client.get("/api/v1/me").status_code == reads
    assert post(client).status_code == writes
    answer = post(client, path=claim, body={})
    assert answer.status_code == judges
    if judges == 403:
        assert answer.json()["type"] == "/problems/ScopeMissing"
        assert "judge" in answer.json()["title"]
    assert Webhook.objects.count() == (1 if writes == 201 else 0)


def test_the_page_of_keys_gives_what_was_ticked_and_at_least_something(mara):
    client = Client()
    client.force_login(mara)
    sent = {"name": "reader", "days": 5, "scopes": ["read"]}
    assert client.post("/account/tokens/", {**sent, "scopes": []}).status_code == 400
    assert client.post("/account/tokens/", {**sent, "scopes": ["all"]}).status_code == 400
    assert client.post("/account/tokens/", sent).status_code == 201
    assert ApiToken.objects.get().scopes == ["read"]


def test_me_says_who_asks_with_which_key(mara):
    answer = client_of(mara, "read", name="mine").get("/api/v1/me").json()
    assert (answer["username"], answer["role"]) == ("mara", "manager")
    assert (answer["key"]["name"], answer["key"]["scopes"]) == ("mine", ["read"])
    session = Client()
    session.force_login(mara)
    assert session.get("/api/v1/me").json()["key"] is None
    assert Client().get("/api/v1/me").status_code == 403


# -- queries, filters, order, pages -------------------------------------------------------------------------------


class EventRow(serializers.ModelSerializer):
    class Meta:
        model = Event
        fields = ("id", "verb")


class Events(generics.ListAPIView):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    serializer_class = EventRow
    filter_fields = {
        "verb": "verb",
        "verbs": "verb__in",
        "after": "at__gte",
        "by_somebody": "actor__isnull",
        "number": ("number", serializers.IntegerField(min_value=0)),
    }
    order_fields = ("verb", "actor")

    def get_queryset(self):
        return Event.objects.annotate(number=F("id") * 1)


class Jobs(generics.ListAPIView):
    authentication_classes = permission_classes = throttle_classes = ()
    serializer_class = type(
        "JobRow",
        (serializers.ModelSerializer,),
        {"Meta": type("Meta", (), {"model": Job, "fields": ("id",)})},
    )
    filter_fields = {
        "state": "state",
        "id": "id",
        "attempts": "attempts__gte",
        "cancelled": "cancel_requested",
    }
    order_fields = {"newest": "created_at", "finished": "finished_at"}
    default_order = "-created_at"
    queryset = Job.objects.all()


def ask(view, query=""):
    answer = view.as_view()(APIRequestFactory().get(f"/list{query}"))
    answer.render()
    return answer.status_code, answer.data


def walk(view, query=""):
    """Return what all pages have, each page's rows in a list, following `next`; and back again by `previous`."""
    pages, status_and_data = [], ask(view, query)
    while True:
        status, data = status_and_data
        assert status == 200, data
        pages.append([row["id"] for row in data["results"]])
        if data["next"] is None:
            break
        assert len(pages) < 50
        status_and_data = ask(view, "?" + data["next"].partition("?")[2])
    back = []
    while data["previous"] is not None:
        status, data = ask(view, "?" + data["previous"].partition("?")[2])
        assert status == 200, data
        back.append([row["id"] for row in data["results"]])
    return pages, back


@pytest.mark.django_db
@pytest.mark.parametrize("order", ["verb", "-verb", "actor", "-actor", "verb,-actor", "-actor,verb"])
@pytest.mark.parametrize("size", [1, 3, 7, 200])
def test_pages_have_every_row_once_in_order_both_ways_however_many_are_equal(order, size, mara):
    other = User.objects.create(username="max")
    Event.objects.bulk_create(
        Event(verb=f"verb {n % 3}", subject="x", actor=[None, mara, other][n % 5 % 3]) for n in range(22)
    )
    path = [name.replace("actor", "actor_id") for name in order.split(",")]
    expected = list(
        Event.objects.order_by(
            *[F(p[1:]).desc() if p[0] == "-" else F(p).asc() for p in path], "pk"
        ).values_list("pk", flat=True)
    )
    pages, back = walk(Events, f"?order={order}&page_size={size}")
    assert [one for page in pages for one in page] == expected
    assert all(len(page) == size for page in pages[:-1])
    assert back == pages[-2::-1]


@pytest.mark.django_db
def test_rows_that_come_meanwhile_neither_repeat_nor_hide_others():
    events = [record(f"v{n}", SimpleNamespace(_meta=SimpleNamespace(model_name="x"), pk=n)) for n in range(6)]
    _, first = ask(Events, "?order=verb&page_size=3")
    record("v0 again", SimpleNamespace(_meta=SimpleNamespace(model_name="x"), pk=9))
    _, second = ask(Events, "?" + first["next"].partition("?")[2])
    assert [row["id"] for row in first["results"] + second["results"]] == [event.pk for event in events]


@pytest.mark.django_db
def test_lists_are_filtered_by_what_the_view_lists(mara):
    for verb in ("opened", "closed", "drawn"):
        Event.objects.create(verb=verb, subject="x", actor=mara if verb == "drawn" else None)

    def verbs(query):
        return sorted(row["verb"] for row in ask(Events, query)[1]["results"])

    assert verbs("?verb=opened") == ["opened"]
    assert verbs("?verbs=opened,closed") == ["closed", "opened"]
    assert verbs("?by_somebody=false") == ["drawn"]
    assert verbs("?by_somebody=true&verb=closed") == ["closed"]
    assert verbs("?after=2099-01-01T00:00:00Z") == []
    assert len(verbs("?number=" + str(Event.objects.get(verb="drawn").pk))) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        "?nope=1",
        "?verb__startswith=o",
        "?actor__password=x",
        "?verb=a&verb=b",
        "?after=yesterday",
        "?after=9999-12-31T23:59:59-23:59",
        "?by_somebody=perhaps",
        "?number=-1",
        "?number=1e3",
        "?verb=" + "v" * 201,
        "?verbs=" + ",".join("v" * 51),
        "?order=id",
        "?order=actor__password",
        "?order=verb,verb",
        "?order=",
        "?order=--verb",
        "?page_size=0",
        "?page_size=201",
        "?page_size=%C2%B2",
        "?page_size=1e1",
        "?page_size=99999999999999999999",
        "?cursor=",
        "?cursor=%00",
        "?cursor=bm9wZQ",
        "?cursor=" + "A" * 3000,
        "?cursor=WyJhZnRlciIsInBrIixbMV1d",
    ],
)
def test_what_a_list_does_not_know_is_refused_and_not_passed_over(query):
    view = type("Checked", (Events,), {"throttle_classes": [_known_query()]})
    status, data = ask(view, query)
    assert status == 400, data
    assert data["type"] == "/problems/Invalid"
    assert len(data["errors"]) == 1


def _known_query():
    from touchstone.api.queries import KnownQuery

    return KnownQuery


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values", [["x", None], [{"a": 1}, 1], ["\ud800", 1], ["a\0", 1], ["a", "b"], ["a"], "ab", 7]
)
def test_a_cursor_that_somebody_made_is_refused_or_harmless(values):
    import base64

    Event.objects.create(verb="v", subject="x")
    text = json.dumps(["after", "verb,pk", values])
    status, data = ask(Events, "?cursor=" + base64.urlsafe_b64encode(text.encode()).decode())
    assert status == (200 if values == ["x", None] else 400), data


@pytest.mark.django_db
def test_columns_say_what_may_be_sent_for_them():
    assert isinstance(field_of(Job, "state"), serializers.ChoiceField)
    assert isinstance(field_of(Job, "id"), serializers.UUIDField)
    assert isinstance(field_of(Job, "attempts__gte"), serializers.IntegerField)
    assert isinstance(field_of(Job, "requested_by__username__icontains"), serializers.CharField)
    with pytest.raises(ValidationError):
        field_of(Job, "state").run_validation("asleep")
    with pytest.raises(LookupError):
        field_of(Job, "no_such_column")
    assert ask(Jobs, "?state=asleep")[0] == 400
    assert ask(Jobs, "?attempts=9223372036854775808")[0] == 400
    assert ask(Jobs, "?attempts=9223372036854775807")[0] == 200
    assert ask(Jobs, "?order=-finished,newest")[0] == 200


@pytest.mark.django_db
def test_a_page_costs_one_statement_and_counts_nothing(django_assert_num_queries):
    Event.objects.bulk_create(Event(verb=f"v{n}", subject="x") for n in range(120))
    with django_assert_num_queries(1) as asked:
        ask(Events, "?page_size=50")
    assert "COUNT" not in asked.captured_queries[0]["sql"].upper()


def test_a_view_without_a_query_knows_no_key(mara):
    client = client_of(mara)
    assert client.get("/api/v1/me?role=manager").json()["errors"] == {
        "role": ["there is nothing of this name to ask for here"]
    }
    assert client.post(f"{WEBHOOKS}?a=1", {"url": HOST}, "application/json").status_code == 400


# -- idempotency --------------------------------------------------------------------------------------------------


def test_the_same_request_with_the_same_key_is_done_once_and_answered_alike(mara):
    client = client_of(mara)
    first, second = post(client, "one"), post(client, "one")
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert (first.get("Idempotency-Replayed"), second["Idempotency-Replayed"]) == (None, "true")
    assert Webhook.objects.count() == 1
    assert post(client).json()["id"] != first.json()["id"]  # without a key it is done


def test_another_request_with_a_used_key_is_refused(mara):
    client = client_of(mara)
    made = post(client, "one").json()["id"]
    for other in (
        post(client, "one", body={"url": f"{HOST}/b"}),
        post(client, "one", path=f"{WEBHOOKS}/{made}/test", body={}),
    ):
        assert (other.status_code, other.json()["type"]) == (409, "/problems/KeyOfAnotherRequest")
    assert Webhook.objects.count() == 1


def test_keys_are_each_person_s_own(mara):
    max_ = User.objects.create(username="max", role="manager")
    assert post(client_of(mara), "one").json()["id"] != post(client_of(max_), "one").json()["id"]


def test_a_refusal_is_remembered_too_and_leaves_nothing(mara):
    client = client_of(mara)
    first = post(client, "one", body={"url": "https://evil.example/"})
    second = post(client, "one", body={"url": "https://evil.example/"})
    assert first.status_code == second.status_code == 400
    assert first.json() == second.json()
    assert second["Content-Type"] == "application/problem+json"
    assert not Webhook.objects.exists()


def test_who_may_not_ask_and_who_asks_for_nothing_known_leave_no_row(mara):
    assert post(Client(), "one").status_code == 403
    assert post(client_of(mara, "read"), "one").status_code == 403
    assert not IdempotentRequest.objects.exists()


@pytest.mark.parametrize("key", ["", "a b", "ü", "k" * 201])
def test_a_key_is_of_visible_ascii(key, mara):
    answer = post(client_of(mara), key)
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["errors"]


def test_a_fault_rolls_back_and_is_not_remembered(mara, monkeypatch):
    from touchstone.api import webhook_views

    client, was = client_of(mara), webhook_views.make_webhook

    def fails_after_its_effect(**named):
        was(**named)
        raise ZeroDivisionError

    monkeypatch.setattr(webhook_views, "make_webhook", fails_after_its_effect)
    client.raise_request_exception = False
    answer = post(client, "one")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/Fault")
    assert not Webhook.objects.exists()
    monkeypatch.setattr(webhook_views, "make_webhook", was)
    assert post(client, "one").status_code == 201


def test_after_a_day_a_key_is_free_again(mara):
    client = client_of(mara)
    first = post(client, "one").json()["id"]
    IdempotentRequest.objects.update(created_at=timezone.now() - KEPT - timedelta(minutes=1))
    assert post(client, "one").json()["id"] != first
    IdempotentRequest.objects.update(created_at=timezone.now() - KEPT - timedelta(minutes=1))
    assert prune_requests() == 1
    assert not IdempotentRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_is_done_and_the_others_are_told_so_or_answered_alike():
    mara = User.objects.create(username="mara", role="manager")
    _, key = make_token(user=mara, name="key", days=1)
    start = threading.Barrier(8)

    def one(_):
        client = Client(headers={"Authorization": f"Bearer {key}"})
        start.wait()
        try:
            answer = post(client, "one")
            return answer.status_code, answer.json()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(8)))
    assert Webhook.objects.count() == 1
    made = [body for status, body in answers if status == 201]
    assert made
    assert all(body == made[0] for body in made)
    under_way = {body["type"] for status, body in answers if status != 201}
    assert under_way <= {"/problems/RequestUnderWay"}
    assert {status for status, _ in answers} <= {201, 409}


# -- problems and the description -----------------------------------------------------------------------------------


def test_an_address_that_there_is_not_is_a_problem_and_no_page(mara):
    answer = client_of(mara).get("/api/v1/nothing/here")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert set(answer.json()) == {"type", "title", "status", "detail"}
    answer = client_of(mara, name="other").delete("/api/v1/me")
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")
    assert "GET" in answer["Allow"]


def test_the_description_is_valid_without_a_warning_and_open_to_all(tmp_path):
    target, told = tmp_path / "schema.yml", io.StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(target), stdout=told, stderr=told)
    assert told.getvalue() == ""
    assert target.stat().st_size > 50_000


@pytest.mark.django_db
def test_the_description_says_what_every_operation_needs_and_how_it_refuses():
    answer = Client().get("/api/v1/schema")
    assert answer.status_code == 200
    described = answer.json()
    assert described["openapi"].startswith("3.1")
    operations = [(method, one) for methods in described["paths"].values() for method, one in methods.items()]
    names = [one["operationId"] for _, one in operations]
    assert len(names) == len(set(names))
    for method, one in operations:
        assert one["x-scope"] in ("read", "judge", "write")
        assert one.get("description"), one["operationId"]
        assert {"400", "404", "409", "429", "503"} <= set(one["responses"]), one["operationId"]
        assert ("401" in one["responses"]) == bool(one.get("security"))
        assert any(p["name"] == "Idempotency-Key" for p in one.get("parameters", [])) == (method == "post")
    assert [one["operationId"] for _, one in operations if not one.get("security")] == ["schema_retrieve"]


@pytest.mark.django_db
def test_the_page_of_the_api_names_every_operation_and_runs_nothing_of_others():
    answer = Client().get("/api/v1/")
    page = answer.content.decode()
    assert answer.status_code == 200
    for methods in description()["paths"].values():
        for one in methods.values():
            assert f'id="{one["operationId"]}"' in page
    assert "http://" not in page.replace("http://localhost", "").replace("http://www.w3.org", "")
    assert "<script>" not in page


def test_the_commands_of_the_documentation_are_answered_with_a_success(mara, settings):
    settings.WEBHOOK_HOSTS = ["https://hooks.example.org"]
    client = client_of(mara)
    text = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text().replace("\\\n", " ")
    commands = [shlex.split(line) for line in text.splitlines() if line.strip().startswith("curl ")]
    for words in commands:
        options = [(name, words[place + 1]) for place, name in enumerate(words) if name in ("-H", "-d")]
        sent = {name: value for name, _, value in (v.partition(": ") for o, v in options if o == "-H")}
        assert sent.pop("Authorization") == "Bearer $KEY"
        assert sent.pop("Content-Type", "application/json") == "application/json"
        bodies = [value for option, value in options if option == "-d"]
        path = words[-1].removeprefix("$URL")
        if bodies:
            answer = client.post(path, bodies[0], content_type="application/json", headers=sent)
        else:
            answer = client.get(path)
        assert 200 <= answer.status_code < 300, (words, answer.content)
    assert len(commands) == 4
