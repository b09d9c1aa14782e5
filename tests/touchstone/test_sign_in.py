"""Passwords and sessions: what a log-in begins, what ends it, and what is written down of it."""

import logging
import re
from datetime import timedelta

import pytest
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core import signing
from django.core.exceptions import ValidationError
from django.test import Client, RequestFactory
from django.utils import timezone

from judging.models import Invitation
from touchstone import logins
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


def test_the_cookies_of_a_log_in_are_out_of_scripts_reach():
    bob()
    answer = try_to_log_in(Client())
    for name in ("sessionid", "device"):
        assert answer.cookies[name]["httponly"] is True
        assert answer.cookies[name]["samesite"] == "Lax"
    # 32 of 36 letters and digits are 165 bits.
    assert re.fullmatch(r"[a-z0-9]{32}", answer.cookies["sessionid"].value)


def test_a_new_password_ends_every_session():
    user = bob()
    clients = [Client(), Client()]
    for client in clients:
        try_to_log_in(client)
    assert all(map(is_in, clients))
    user.set_password("another one, as long as this")
    user.save()
    assert not any(map(is_in, clients))


def test_a_password_stays_valid_until_somebody_changes_it():
    user = bob()
    User.objects.filter(pk=user.pk).update(
        date_joined=timezone.now() - timedelta(days=3650), last_login=timezone.now() - timedelta(days=3000)
    )
    assert try_to_log_in(Client()).status_code == 302


def test_nothing_about_a_person_is_asked_in_place_of_the_password():
    page = Client().get("/login/").content.decode()
    fields = set(re.findall(r'<input[^>]* name="(\w+)"', page))
    assert fields == {"csrfmiddlewaretoken", "next", "username", "password"}
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert not re.search(r"hint|question|remind", text, re.IGNORECASE)


def device(cookie):
    """Return the mark of bob's device that this cookie is taken for, if it is."""
    request = RequestFactory().post("/login/")
    request.COOKIES[logins.COOKIE] = cookie
    return logins.known_device(request, "bob")


def test_a_signed_text_names_neither_its_algorithm_nor_its_key():
    real = signing.dumps(["bob", "mark"], salt=logins.SALT)
    assert device(real) == "mark"
    payload, moment, signature = real.split(":")
    others = signing.dumps(["bob", "another"], salt=logins.SALT).split(":")[0]
    unsigned = "eyJhbGciOiJub25lIn0.WyJib2IiLCJtYXJrIl0."
    for forged in (
        f"{others}:{moment}:{signature}",
        f"{payload}:{moment}:",
        f"{payload}:{moment}",
        f"{payload}:zzzzzz:{signature}",
        f"none:{payload}:{moment}:{signature}",
        unsigned,
        "",
    ):
        assert device(forged) is None, forged


def test_a_signed_text_is_of_one_purpose_and_one_installation():
    assert device(signing.dumps(["bob", "mark"], salt=logins.SALT)) == "mark"
    assert device(signing.dumps(["bob", "mark"], salt="judging.hits")) is None
    assert device(signing.dumps(["bob", "mark"], salt=logins.SALT, key="of another installation")) is None


def test_a_link_that_lets_people_in_is_random():
    made = [Invitation._meta.get_field("token").get_default() for _ in range(50)]
    assert len(set(made)) == 50
    assert {token.version for token in made} == {4}
    together = made[0].int
    for token in made[1:]:
        together &= token.int
    # Only the version's and the variant's bits are the same in all.
    assert together.bit_count() <= 4
