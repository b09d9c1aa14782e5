"""A real Chromium before a server that also speaks the language of brackets (tests/bracketed.py)."""

from collections.abc import Iterator
from pathlib import Path

import browser
import pytest
from bracketed import letterless_campaign, write_brackets
from browser import page_of, ready

from touchstone.models import User

TESTS = Path(__file__).parents[1]
EVERY_PAGE = {"bypass_csp": True, "reduced_motion": "reduce"}


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="session")
def brackets(tmp_path_factory) -> Path:
    return write_brackets(tmp_path_factory.mktemp("locale"))


@pytest.fixture(scope="module")
def web(child_environment, brackets) -> Iterator[str]:
    """The web server, which also speaks the language of brackets."""
    there = {"DJANGO_SETTINGS_MODULE": "bracket_settings", "BRACKETS": str(brackets)}
    path = {"PYTHONPATH": str(TESTS)}
    yield from browser.web({**child_environment, **there, **path})


@pytest.fixture
def open_screen(chromium, web, transactional_db) -> Iterator:
    """Return a function that opens the judging screen of a campaign without letters, in a language."""
    contexts = []

    def open_screen(code, n_documents=8, options=None, quota=None, **fields):
        campaign = letterless_campaign(n_documents, **fields)
        bob = browser.make_assessor(campaign, "4242", quota=quota)
        User.objects.filter(pk=bob.user_id).update(language=code)
        context = page_of(chromium, web, bob.user, **EVERY_PAGE, **(options or {}))
        contexts.append(context)
        page = context.__enter__()
        page.goto(f"{web}/judge/{campaign.pk}/")
        ready(page)
        return page

    yield open_screen
    for context in contexts:
        context.__exit__(None, None, None)
