"""PASSWORD_LOGIN=0: no form asks for a password, and none that is sent is looked at. And what the settings refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browser import make_campaign
from django.test import Client

from judging.services.entry import create_invitation
from touchstone.links import invite, make_password_link
from touchstone.models import AccountLink, User

pytestmark = pytest.mark.django_db
REPOSITORY = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse battery"
BUTTON = "Log in with your company’s account"
OIDC = {
    "OIDC_ISSUER": "https://id.example.org",
    "OIDC_CLIENT_ID": "touchstone",
    "OIDC_CLIENT_SECRET": "secret",
}


@pytest.fixture(autouse=True)
def sign_on(settings):
    for name, value in OIDC.items():
        setattr(settings, name, value)
    settings.PASSWORD_LOGIN = False
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # it is not what is tested


@pytest.fixture
def bob():
    return User.objects.create_user("bob", password=PASSWORD, role="assessor")


def pages(bob):
    """Return the pages on which a password could be sent, and what it would be sent with."""
    mara = User.objects.create_user("mara", role="manager")
    new = {"password": PASSWORD, "repeated": PASSWORD}
    invitation = create_invitation(campaign=make_campaign(1), user=mara)
    return {
        "/login/": {"username": "bob", "password": PASSWORD},
        "/login/forgotten/": {"username": "bob"},
        f"/login/invited/{invite(role='manager', actor=mara)[1]}/": {**new, "username": "nora"},
        f"/login/password/{make_password_link(user=bob, actor=mara)[1]}/": {"password": "a new one 123"},
        f"/join/{invitation.token}/": {**new, "username": "nina"},
    }


def state():
    return list(User.objects.order_by("pk").values()), list(AccountLink.objects.order_by("pk").values())


def test_no_page_asks_for_a_password_and_one_that_is_sent_changes_nothing(bob):
    found = pages(bob)
    before = state()
    for path, sent in found.items():
        client = Client()
        page = client.get(path)
        text = page.content.decode()
        assert page.status_code == 200, path
        assert 'type="password"' not in text, path
        assert text.count(BUTTON) == 1, path
        assert "Passwords are not used here." in text, path
        assert client.post(path, sent).status_code == 403, path
        assert client.get("/account/").status_code == 302, path
    assert state() == before


def test_with_passwords_the_same_pages_ask_for_one(bob, settings):
    """The positive control."""
    settings.PASSWORD_LOGIN, settings.EMAIL_HOST = True, "mail.example.org"
    for path, sent in pages(bob).items():
        assert "not used here" not in Client().get(path).content.decode(), path
        if "forgotten" in path:
            continue
        assert 'type="password"' in Client().get(path).content.decode(), path
        client = Client()
        assert client.post(path, sent).status_code == 302, path
        assert client.get("/account/").status_code == 200, path


def test_one_s_own_account_has_no_password(bob):
    client = Client()
    client.force_login(bob)
    page = client.get("/account/").content.decode()
    assert 'type="password"' not in page
    assert "Link your company’s account" in page
    sent = {"part": "password", "password-old": PASSWORD, "password-new": "another one 123"}
    assert client.post("/account/", sent).status_code == 404
    bob.refresh_from_db()
    assert bob.check_password(PASSWORD)


def test_a_manager_makes_a_one_time_link_that_links(bob):
    mara = User.objects.create_user("mara", role="manager")
    client = Client()
    client.force_login(mara)
    assert "Make a one-time link" in client.get(f"/manage/users/{bob.pk}/").content.decode()
    made = client.post(f"/manage/users/{bob.pk}/password/").content.decode()
    assert "bob links this account with their company’s account" in " ".join(made.split())


def test_without_a_provider_nothing_of_it_is_there(settings, bob):
    settings.OIDC_ISSUER, settings.PASSWORD_LOGIN = "", True
    for path in pages(bob):
        assert "company" not in Client().get(path).content.decode(), path
    client = Client()
    assert client.get("/login/company/").status_code == 404
    assert client.get("/login/company/back/?code=x&state=y").status_code == 404
    client.force_login(bob)
    assert client.get("/login/company/link/").status_code == 404
    assert "company" not in client.get("/account/").content.decode()


def test_the_button_leads_to_the_page_that_was_asked_for(bob):
    page = Client().get("/login/?next=/judge/%3Fa%3D1").content.decode()
    assert 'href="/login/company/?next=%2Fjudge%2F%3Fa%3D1"' in page
    assert 'href="/login/company/?lang=es"' in Client().get("/login/?lang=es").content.decode()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"OIDC_CLIENT_SECRET": ""}, "also needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET"),
        ({"OIDC_CLIENT_ID": ""}, "also needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET"),
        ({"OIDC_ISSUER": "http://id.example.org"}, "OIDC_ISSUER is like https://id.example.org"),
        ({"OIDC_ISSUER": "https://id.example.org/?x=1"}, "OIDC_ISSUER is like https://id.example.org"),
        ({"OIDC_NEW_USERS": "manager"}, "OIDC_NEW_USERS is nobody, assessor, researcher, not manager"),
        ({"PASSWORD_LOGIN": "no"}, "PASSWORD_LOGIN is 1 or 0"),
        ({"OIDC_ISSUER": "", "PASSWORD_LOGIN": "0"}, "PASSWORD_LOGIN=0 needs OIDC_ISSUER"),
    ],
)
def test_settings_that_let_nobody_in_or_somebody_wrong_are_refused(wrong, words):
    done = settings_read({**OIDC, "PASSWORD_LOGIN": "0", **wrong})
    assert done.returncode != 0
    assert words in done.stderr


def test_settings_that_make_sense_are_taken():
    for given in (
        {},
        OIDC,
        {**OIDC, "PASSWORD_LOGIN": "0", "OIDC_NEW_USERS": "researcher"},
        {**OIDC, "PASSWORD_LOGIN": ""},
    ):
        assert settings_read(given).returncode == 0, given


def settings_read(given):
    names = (*OIDC, "OIDC_NEW_USERS", "PASSWORD_LOGIN")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    code = "import touchstone.sign_on_settings"
    environment = {**kept, "PYTHONPATH": str(REPOSITORY / "platform"), **given}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
