"""Headers of every answer: of all addresses, of static files, of refusals; and without the middleware."""

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.urls.converters import IntConverter, UUIDConverter
from worlds import routes

from touchstone import headers
from touchstone.models import User
from touchstone.settings import cookie_name

REPOSITORY = Path(__file__).resolve().parents[2]
MIDDLEWARE = "touchstone.headers.every_answer"
# What it says of how long it may be kept is about what it is, and about one person's browser only.
KEPT = {"private, max-age=3600", "private, no-cache"}


def address(route: Any) -> str:
    """Return the route's address about things that do not exist."""
    return reverse(route.name, kwargs={name: value(name, kind) for name, kind in route.converters.items()})


def value(name: str, kind: Any) -> object:
    if isinstance(kind, UUIDConverter) or (kind is None and name.endswith("_id")):
        return uuid.UUID(int=1)
    return 1 if isinstance(kind, IntConverter) else {"plot": "forest", "table": "runs"}.get(name, "csv")


def faults_of(answer: Any, is_personal: bool) -> list[str]:
    faults = [
        name for name in ("Permissions-Policy", "Content-Security-Policy") if name not in answer.headers
    ]
    kept = answer.headers.get("Cache-Control", "")
    return faults + (["Cache-Control"] if is_personal and "no-store" not in kept and kept not in KEPT else [])


def client_of(role: str | None) -> Client:
    client = Client(raise_request_exception=False)
    if role:
        client.force_login(User.objects.create(username=f"a {role}", role=role))
    return client


def all_faults(role: str | None, method: str, most: int | None = None) -> list[str]:
    cookies, found = client_of(role).cookies, []
    for route in routes()[:most]:
        client = Client(raise_request_exception=False)
        client.cookies.update(cookies)
        answer = getattr(client, method)(address(route))
        found += [f"{route.name} {answer.status_code}: {fault}" for fault in faults_of(answer, bool(role))]
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "method"), [(None, "get"), ("manager", "get"), ("assessor", "post")])
def test_every_address_has_a_policy_and_nothing_made_for_a_person_is_kept(role, method):
    assert all_faults(role, method) == []


@pytest.mark.django_db
def test_without_the_middleware_addresses_are_at_fault(settings):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if name != MIDDLEWARE]
    found = all_faults("manager", "get", most=20)
    assert len([fault for fault in found if "Permissions-Policy" in fault]) == 20
    assert len([fault for fault in found if "Cache-Control" in fault]) > 10


@pytest.mark.django_db
def test_a_program_with_a_key_is_a_person_too():
    for path in ("/api/v1/me", "/nowhere/"):
        answer = Client(headers={"Authorization": "Bearer wrong"}).get(path)
        assert answer["Cache-Control"] == "no-store"
        assert "no-store" not in Client().get(path).headers.get("Cache-Control", "")


def refuse(status: int, monkeypatch, settings) -> Any:
    """Return an answer of this status, each from another place of the product."""
    client, manager = Client(raise_request_exception=False), client_of("manager")
    if status == 400:
        return client.get("/?next=%00")
    if status == 403:
        return Client(enforce_csrf_checks=True).post("/login/", {"username": "bob"})
    if status == 404:
        return client.get("/nowhere/")
    if status == 405:
        return manager.get(reverse("language"))
    if status == 413:
        return client.post("/api/nowhere", "9" * 700_001, "application/json")
    if status == 429:
        settings.LOGIN_TRIES = 0
        return client.post("/login/", {"username": "bob", "password": "wrong"})
    error = OperationalError("away") if status == 503 else ZeroDivisionError("a fault")

    def fail(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr("touchstone.sessions._row", fail)  # before there is a user, or a policy
    return manager.get("/manage/")


@pytest.mark.django_db
@pytest.mark.parametrize("status", [400, 403, 404, 405, 413, 429, 500, 503])
def test_a_refusal_has_a_policy_that_lets_nothing_run(status, monkeypatch, settings):
    answer = refuse(status, monkeypatch, settings)
    assert answer.status_code == status
    assert faults_of(answer, is_personal=False) == []
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.django_db
def test_a_static_file_has_a_policy_and_may_be_kept(tmp_path, settings):
    (tmp_path / "style.0123456789ab.css").write_text("p {}")
    settings.STATIC_ROOT, settings.WHITENOISE_AUTOREFRESH = tmp_path, True
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = "somebody"
    answer = client.get("/static/style.0123456789ab.css")
    assert answer.status_code == 200
    assert answer["Content-Security-Policy"] == headers.CLOSED
    assert "Permissions-Policy" in answer.headers
    assert "max-age" in answer["Cache-Control"]
    assert "no-store" not in answer["Cache-Control"]
    answer.close()


def test_cookies_belong_to_this_host_alone_where_the_site_is_https():
    assert (cookie_name("sessionid", True), cookie_name("sessionid", False)) == (
        "__Host-sessionid",
        "sessionid",
    )
    program = (
        "from touchstone import settings as s; from touchstone.logins import COOKIE;"
        "print(s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.LANGUAGE_COOKIE_NAME, COOKIE)"
    )
    for https, prefix in (("1", "__Host-"), ("0", "")):
        environment = {"HTTPS": https, "SECRET_KEY": "x", "DJANGO_SETTINGS_MODULE": "touchstone.settings"}
        command = [sys.executable, "-c", f"import django; django.setup(); {program}"]
        path = f"{REPOSITORY}:{REPOSITORY / 'platform'}"
        said = subprocess.run(
            command, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=True
        ).stdout
        assert said.split() == [prefix + name for name in ("sessionid", "csrftoken", "language", "device")]


@pytest.mark.django_db
def test_every_cookie_of_a_log_in_is_for_all_paths_and_names_no_domain(monkeypatch):
    user = User.objects.create(username="bob")
    user.set_password("of-the-tests-17")
    user.save()
    client = Client()
    assert client.post("/login/", {"username": "bob", "password": "of-the-tests-17"}).status_code == 302
    client.post("/language/", {"language": "de"})
    Client().post("/language/", {"language": "de"})
    assert {"sessionid", "csrftoken", "device"} <= set(client.cookies) | {settings.CSRF_COOKIE_NAME}
    for cookie in client.cookies.values():
        assert (cookie["path"], cookie["domain"]) == ("/", "")
