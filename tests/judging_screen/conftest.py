"""A real Chromium on the judging screen of a new campaign."""

from collections.abc import Iterator

import browser
import pytest
from browser import ready


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def open_screen(chromium, web, transactional_db) -> Iterator:
    """Return a function that opens the screen of a new campaign: `open_screen(n_documents, text, **options)`."""
    contexts = []

    def open_screen(n_documents=6, text="", quota=None, options=None, **fields):
        campaign = browser.make_campaign(n_documents, text, **fields)
        bob = browser.make_assessor(campaign, quota=quota)
        context = browser.page_of(chromium, web, bob.user, **(options or {}))
        contexts.append(context)
        page = context.__enter__()
        page.goto(f"{web}/judge/{campaign.pk}/")
        ready(page)
        if text:  # keys scroll a document that is there
            page.wait_for_selector("#frame-place iframe:not(.ahead):not(.loading)")
        return page

    yield open_screen
    for context in contexts:
        context.__exit__(None, None, None)
