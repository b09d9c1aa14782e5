"""What every request of an API client goes through: idempotency, problems, the description."""

import io
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from api_requests import HOST, WEBHOOKS, client_of, post
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.utils import timezone

from touchstone.api.idempotency import KEPT, prune_requests
from touchstone.api.schema import description
from touchstone.authentication import make_token
from touchstone.models import IdempotentRequest, User, Webhook

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
    text = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text().replace("\\\n", " ")
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
