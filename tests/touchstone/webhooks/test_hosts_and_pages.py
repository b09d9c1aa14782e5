"""Webhooks: which hosts may be called, and the pages and the API where webhooks are made."""

import json

import pytest
from django.test import Client
from listener import campaign_of, verbs_heard

from touchstone.api.delivery import deliver, fan_out, tell_webhooks
from touchstone.api.webhooks import HostNotAllowed, WebhooksOff, is_allowed, make_webhook
from touchstone.models import User, Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db

PAGE, API = "/account/webhooks/", "/api/v1/webhooks"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://hooks.example.org/x?y=1", True),
        ("https://HOOKS.example.org:443/", True),
        ("http://hooks.example.org/", False),
        ("https://hooks.example.org:444/", False),
        ("https://hooks.example.org.evil.example/", False),
        ("https://hooks.example.org@evil.example/", False),
        ("https://evil.example/#hooks.example.org", False),
        ("https://evil.example\\@hooks.example.org/", False),
        ("https://hooks.example.org:99999999/", False),
        ("https://[::1/", False),
        ("http://127.0.0.1:8080/x", True),
        ("http://127.0.0.1/x", False),
        ("http://2130706433:8080/", False),
        ("ftp://hooks.example.org/", False),
        ("file:///etc/passwd", False),
        ("https://hooks.exämple.org/", False),
        ("", False),
    ],
)
def test_only_hosts_of_the_operator_s_list_are_called(url, allowed, settings, mara):
    settings.WEBHOOK_HOSTS = ["hooks.example.org", "http://127.0.0.1:8080"]
    assert is_allowed(url) == allowed
    if not allowed:
        with pytest.raises(HostNotAllowed):
            make_webhook(user=mara, url=url)


def test_a_host_that_is_taken_from_the_list_is_not_called_any_more(listener, mara, settings):
    make_webhook(user=mara, url=listener.origin)
    fan_out()
    settings.WEBHOOK_HOSTS = ["https://other.example"]
    assert deliver() == 0
    assert not listener.heard
    assert WebhookDelivery.objects.get().state == "given up"


def test_without_a_list_there_are_no_webhooks_and_the_page_says_so(mara, settings):
    settings.WEBHOOK_HOSTS = []
    with pytest.raises(WebhooksOff):
        make_webhook(user=mara, url="https://hooks.example.org/")
    client = Client()
    client.force_login(mara)
    page = client.get(PAGE).content.decode()
    assert "Webhooks are switched off." in page
    assert 'name="url"' not in page
    answer = client.post(API, {"url": "https://hooks.example.org/"}, "application/json")
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/WebhooksOff")


def test_the_page_makes_tests_and_switches_off_a_webhook_and_shows_its_secret_once(listener, mara):
    client = Client()
    client.force_login(mara)
    assert client.post(PAGE, {"url": "https://evil.example/"}).status_code == 400
    made = client.post(PAGE, {"url": listener.origin, "verbs": "opened, closed"})
    webhook = Webhook.objects.get()
    assert made.status_code == 201
    assert webhook.verbs == ["opened", "closed"]
    assert webhook.secret in made.content.decode()
    assert webhook.secret not in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{webhook.pk}/test/")
    tell_webhooks()
    assert verbs_heard(listener) == ["tested a webhook"]
    assert "delivered" in client.get(PAGE).content.decode()
    client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "no"})
    campaign_of(mara)
    tell_webhooks()
    assert len(listener.heard) == 1
    client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "yes"})
    tell_webhooks()
    assert len(listener.heard) == 1  # what happened meanwhile is not told later
    assert client.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "perhaps"}).status_code == 404


def test_a_webhook_is_its_owner_s_alone(listener, mara):
    webhook = make_webhook(user=mara, url=listener.origin)
    other = Client()
    other.force_login(User.objects.create(username="max", role="manager"))
    for path in ("", "/test", "/deliveries"):
        assert (other.post if path == "/test" else other.get)(f"{API}/{webhook.pk}{path}").status_code == 404
    assert other.post(f"{PAGE}{webhook.pk}/switch/", {"is_active": "no"}).status_code == 404
    assert other.get(API).json()["results"] == []
    assessor = Client()
    assessor.force_login(User.objects.create(username="bob"))
    assert [assessor.get(path).status_code for path in (API, PAGE)] == [404, 404]


def test_the_api_makes_changes_tests_and_lists(listener, mara):
    client = Client()
    client.force_login(mara)
    made = client.post(API, {"url": listener.origin, "verbs": ["opened"]}, "application/json")
    assert made.status_code == 201
    one = f"{API}/{made.json()['id']}"
    assert "secret" not in client.get(one).json()
    assert client.post(f"{one}/test").status_code == 202
    tell_webhooks()
    (row,) = client.get(f"{one}/deliveries").json()["results"]
    assert (row["verb"], row["state"], row["attempts"], row["answer"]) == (
        "tested a webhook",
        "delivered",
        1,
        "204",
    )
    assert "nobody keeps" not in json.dumps(row)
    assert client.patch(one, {"is_active": False}, "application/json").json()["is_active"] is False
    assert client.post(f"{one}/test").json()["type"] == "/problems/WebhookIsOff"
    assert client.patch(one, {"url": "https://evil.example"}, "application/json").status_code == 400
    assert client.get(f"{API}?is_active=true").json()["results"] == []
    assert len(client.get(f"{API}?is_active=false").json()["results"]) == 1
