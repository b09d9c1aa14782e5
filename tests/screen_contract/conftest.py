"""A real Chromium on the judging screen of Bob's campaign."""

from collections.abc import Iterator

import browser
import pytest

from judging.models import Campaign


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db) -> Campaign:
    return browser.make_campaign()


@pytest.fixture
def page(chromium, web, campaign) -> Iterator:
    bob = browser.make_assessor(campaign)
    with browser.page_of(chromium, web, bob.user) as page:
        page.goto(f"{web}/judge/")
        yield page
