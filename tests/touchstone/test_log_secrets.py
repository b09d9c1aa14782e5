"""Secrets of links into accounts: in no line of the log, whatever page or fault they meet."""

import io
import logging

import pytest
from django.test import Client

from touchstone import logs

LINK = "dGhpcyBpcyBhIHNlY3JldCBvZiBhIGxpbmssIGlzbi0"
KINDS = ("invited", "password", "address", "company/invited", "company/password")


@pytest.fixture
def written(monkeypatch):
    """What the product's handler writes, in place of what pytest captures."""
    handler = logs.Lines()
    handler.stream = io.StringIO()
    handler.setFormatter(logs.FORMATS["json"]())
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    return lambda: handler.stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        *((f"GET /login/{kind}/{LINK}/ HTTP/1.1", f"GET /login/{kind}/…/ HTTP/1.1") for kind in KINDS),
        (f"https://a.example/login/invited/{LINK[:40]} is cut", "https://a.example/login/invited/… is cut"),
        (f"GET /letters/off/{LINK}:x/", "GET /letters/off/…/"),
        ("GET /login/forgotten/ HTTP/1.1", "GET /login/forgotten/ HTTP/1.1"),
    ],
)
def test_the_secret_of_a_link_is_cut_out(text, kept):
    assert len(LINK) == 43
    assert logs.without_secrets(text) == kept


@pytest.mark.django_db
def test_whatever_page_a_link_meets_its_secret_is_in_no_line(written, monkeypatch):
    for path in (f"/login/invited/{LINK}/", f"/login/password/{LINK}/x/", f"/letters/off/{LINK}/"):
        assert Client().get(path, follow=True).status_code == 404
    said = "what a library could write: GET %s"
    logging.getLogger("django.request").error(said, f"/login/invited/{LINK}/")
    assert len(written()) >= 3
    assert LINK not in "\n".join(written())
    # The control: without the rule for links, the same line has it.
    rules = [rule for rule in logs._NOT_FOR_LOGS if "login" not in rule[0].pattern]
    assert len(rules) == len(logs._NOT_FOR_LOGS) - 1
    monkeypatch.setattr(logs, "_NOT_FOR_LOGS", rules)
    logging.getLogger("django.request").error(f"{said} again", f"/login/invited/{LINK}/")
    assert LINK in written()[-1]
