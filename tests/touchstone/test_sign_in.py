"""Passwords and sessions: what a log-in begins, what ends it, and what is written down of it."""

import logging
from datetime import timedelta

import pytest
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from touchstone.models import User

PASSWORD = "Größe: 64 bytes and more, blanks and ✓ included, nothing is cut off from " + "x" * 60
pytestmark = pytest.mark.django_db


def bob(**fields):
    return User.objects.create_user("bob@example.org", password=PASSWORD, role="assessor", **fields)


def try_to_log_in(client, password=PASSWORD):
    return client.post("/login/", {"username": "bob@example.org", "password": password})


def is_in(client):
    return client.get("/judge/").status_code == 200


def with_cookie(value):
    client = Client()
    client.cookies["sessionid"] = value
    return client


def test_a_log_in_begins_a_new_session_and_a_log_out_ends_it_for_good():
    bob()
    client = Client()
    try_to_log_in(client)
    first = client.cookies["sessionid"].value
    assert is_in(with_cookie(first))
    client.post("/logout/")
    assert not is_in(with_cookie(first))
    # A session that somebody else has put into the browser is not the one that the log-in gives.
    planted = with_cookie("planted0planted0planted0planted0")
    try_to_log_in(planted)
    assert planted.cookies["sessionid"].value not in (first, "planted0planted0planted0planted0")
    assert is_in(planted)
    assert not is_in(with_cookie("planted0planted0planted0planted0"))


def test_a_log_out_is_asked_for_by_a_form_and_not_by_a_link():
    bob()
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get())
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 403
    assert is_in(client)
    assert '<form method="post" action="/logout/">' in client.get("/judge/").content.decode()


def test_a_session_ends_seven_days_after_its_log_in_however_busy():
    bob()
    client = Client()
    try_to_log_in(client)
    ends = Session.objects.get().expire_date
    assert abs(ends - timezone.now() - timedelta(days=7)) < timedelta(minutes=5)
    assert is_in(client)
    assert Session.objects.get().expire_date == ends
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not is_in(client)


def test_a_disabled_account_is_out_from_its_next_request_on():
    user = bob()
    client = Client()
    try_to_log_in(client)
    assert is_in(client)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not is_in(client)
    assert try_to_log_in(Client()).status_code == 200  # the form once more


def test_a_password_is_taken_as_it_was_typed():
    user = bob()
    assert len(PASSWORD) > 128
    for wrong in (
        PASSWORD[:-1],
        PASSWORD + " ",
        PASSWORD.swapcase(),
        PASSWORD[:72],
        PASSWORD.replace("✓", "v"),
    ):
        assert try_to_log_in(Client(), wrong).status_code == 200
    assert try_to_log_in(Client()).status_code == 302
    algorithm, variant, _, settings, *_ = user.password.split("$")
    assert (algorithm, variant) == ("argon2", "argon2id")
    memory, rounds, _ = (int(part.partition("=")[2]) for part in settings.split(","))
    assert memory >= 47_104  # kB: with one pass; less memory would want more of them
    assert rounds >= 1


def test_a_password_is_refused_for_what_is_known_of_it_and_not_for_its_mixture():
    for bad in ("short", "password1", "12345678910", "bob@example.or"):
        with pytest.raises(ValidationError):
            validate_password(bad, User(username="bob@example.org"))
    for good in ("quietriversbendslowly", "éééé ✓✓ ¿quién", "x" * 30 + "y" * 40, "8351 9027 4466"):
        validate_password(good, User(username="bob@example.org"))


def test_the_field_of_a_password_hides_it_and_lets_a_program_fill_it():
    page = Client().get("/login/").content.decode()
    assert 'type="password" autocomplete="current-password"' in page
    assert "onpaste" not in page


def test_log_ins_log_outs_and_refusals_are_written_down_without_a_name(caplog):
    user = bob()
    client = Client()
    with caplog.at_level(logging.INFO, logger="touchstone.logins"):
        try_to_log_in(client, "wrong")
        try_to_log_in(client)
        client.post("/logout/")
    lines = [record.getMessage() for record in caplog.records if record.name == "touchstone.logins"]
    assert lines == [
        "a log-in was refused, from 127.0.0.1",
        f"account {user.pk} logged in",
        f"account {user.pk} logged out",
    ]
    assert "example.org" not in caplog.text
    assert "wrong" not in caplog.text
