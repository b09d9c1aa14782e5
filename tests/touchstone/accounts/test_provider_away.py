"""A provider that is down, slow or hostile: one sentence, soon, and nothing else waits for it."""

import socket
import threading
import time

import pytest
from browser import served
from django.db import connections
from django.test import Client
from openid_provider import answer_of, begin, log_in

from touchstone import openid
from touchstone.links import invite
from touchstone.models import User

AWAY = "Your company’s log-in does not answer now. Try again in a minute."
CONFIGURATION, TOKEN = "/.well-known/openid-configuration", "/oauth2/token"


def said(answer):
    return " ".join(answer.content.decode().split())


def is_away(answer):
    assert answer.status_code == 503
    assert answer["Retry-After"] == "60"
    return AWAY in said(answer)


@pytest.fixture
def ann(provider):
    invite(role="manager", email="ann@example.org", actor=None)
    provider.know("s-ann", email="ann@example.org", email_verified=True)


@pytest.mark.django_db
def test_a_provider_that_is_down_is_said_to_be(settings, provider):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        settings.OIDC_ISSUER = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert is_away(Client().get("/login/company/"))


@pytest.mark.django_db
@pytest.mark.parametrize("lie", [{"wait": {CONFIGURATION: 9}}, {"drip": {CONFIGURATION: 0.2}}])
def test_a_provider_that_is_slow_is_given_up_and_then_left_alone(lie, provider, monkeypatch):
    monkeypatch.setattr(openid, "READ_SECONDS", 0.6)
    monkeypatch.setattr(openid, "WHOLE_SECONDS", 1.5)
    provider.lie(**lie)
    began = time.monotonic()
    assert is_away(Client().get("/login/company/"))
    assert time.monotonic() - began < 5
    began = time.monotonic()
    assert is_away(Client().get("/login/company/"))  # nobody asks again
    assert time.monotonic() - began < 0.5
    provider.lie()
    openid._known.away_until = 0.0  # the pause is over
    assert Client().get("/login/company/").status_code == 302


@pytest.mark.django_db
def test_a_log_in_goes_on_where_the_provider_failed_on_the_way_back(ann, provider):
    client = Client()
    back = answer_of(begin(client), "s-ann")
    provider.lie(status={TOKEN: 502})
    assert is_away(client.get(back))
    assert not User.objects.exists()
    provider.lie()
    openid._known.away_until = 0.0
    assert client.get(back).status_code == 302
    assert User.objects.get().role == "manager"


@pytest.mark.django_db
@pytest.mark.parametrize("path", [CONFIGURATION, TOKEN, "/jwks"])
@pytest.mark.parametrize("status", [302, 400, 404])
def test_an_answer_that_is_none_is_refused_and_no_redirect_followed(path, status, ann, provider):
    provider.lie(status={path: status})
    client = Client()
    answer = client.get("/login/company/")
    if answer.status_code == 302:
        answer = client.get(answer_of(answer["Location"], "s-ann"))
    assert answer.status_code == 403
    assert "The answer of your company’s log-in is not valid." in said(answer)
    assert not User.objects.exists()
    if path == CONFIGURATION:
        assert provider.asked() == [CONFIGURATION], "the redirect leads to /jwks"


@pytest.mark.django_db
def test_an_answer_without_end_is_cut(provider, monkeypatch):
    monkeypatch.setattr(openid, "MOST_BYTES", 10)
    assert Client().get("/login/company/").status_code == 403


@pytest.mark.django_db
def test_log_ins_that_fail_are_counted_by_address_and_those_that_do_not_are_not(ann, provider, settings):
    settings.LOGIN_TRIES_PER_ADDRESS = 2
    for _ in range(4):
        assert log_in(Client(), "s-ann").status_code == 302
    provider.know("s-bob")
    assert [log_in(Client(), "s-bob").status_code for _ in range(3)] == [403, 403, 429]


@pytest.mark.django_db
def test_who_finds_both_seats_taken_does_not_wait(provider):
    assert all(openid._seats.acquire(blocking=False) for _ in range(2))
    try:
        began = time.monotonic()
        assert is_away(Client().get("/login/company/"))
        assert time.monotonic() - began < 0.5
    finally:
        openid._seats.release()
        openid._seats.release()
    assert Client().get("/login/company/").status_code == 302  # they are no sign that the provider is away


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_pages_are_answered_while_the_provider_hangs(provider, child_environment):
    """A web process has four threads: ten people who wait for the provider leave some to those who judge."""
    import httpx

    provider.lie(wait={CONFIGURATION: 30})
    given = {"OIDC_ISSUER": provider.issuer, "OIDC_CLIENT_ID": "x", "OIDC_CLIENT_SECRET": "y"}
    with served({**child_environment, **given}) as web:
        assert httpx.get(f"{web}/login/", timeout=30).status_code == 200
        statuses, seconds = [], []
        waiting = [
            threading.Thread(
                target=lambda: statuses.append(httpx.get(f"{web}/login/company/", timeout=60).status_code)
            )
            for _ in range(10)
        ]
        for thread in waiting:
            thread.start()
        time.sleep(0.5)
        while any(thread.is_alive() for thread in waiting):
            began = time.monotonic()
            assert httpx.get(f"{web}/login/", timeout=30).status_code == 200
            seconds.append(time.monotonic() - began)
        for thread in waiting:
            thread.join(60)
    connections.close_all()
    assert statuses == [503] * 10
    assert max(seconds) < openid.READ_SECONDS - 0.5, "so long each of the two that ask waits for the provider"
