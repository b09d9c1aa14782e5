"""At a width of 1440 pixels no page of a manager or researcher is over 2,000 pixels high, on data as the demo's."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urlsplit

import browser
import pytest
from demo_sized import make_demo_sized
from django.utils import timezone
from playwright.sync_api import Error

from judging.models import Campaign
from touchstone.api.guide import groups
from touchstone.models import User, WorkerHeartbeat

pytestmark = browser.MARKS
HIGHEST, MOST_WORDS = 2000, 350
SCREEN = {"viewport": {"width": 1440, "height": 900}}
# Addresses of one kind are looked at once.
KEYS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)\d+(?=/)")
FACTS = """() => ({
    height: document.documentElement.scrollHeight,
    words: document.querySelector("main").innerText.split(/\\s+/).length,
    lines: Math.max(0, ...[...document.querySelectorAll("nav.tabs")].map(nav => new Set(
        [...nav.querySelectorAll("a")].map(a => Math.round(a.getBoundingClientRect().top))).size)),
    links: [...document.querySelectorAll("a[href]")].map(a => a.href),
})"""
OPEN_ALL = "() => document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    yield from browser.chromium()


@pytest.fixture
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    WorkerHeartbeat.objects.create(name="w", seen_at=timezone.now())
    return make_demo_sized(tmp_path)


def test_pages_are_at_most_2000_pixels_high_and_tabs_take_a_line(chromium, web, campaign):
    rhea = User.objects.create(username="rhea", role="researcher")
    ways = {User.objects.get(username="mara"): ("/manage/", "/results/", "/api/v1/"), rhea: ("/results/",)}
    faults: list[str] = []
    for user, starts in ways.items():
        with browser.page_of(chromium, web, user, **SCREEN) as page:
            found = dict(_walk(page, web, starts))
            faults += [f"{user}: {fault}" for path, facts in found.items() for fault in _faults(path, facts)]
            assert len(found) > 20, found.keys()
    assert not faults, "\n".join(faults)
    # The control: the folds of *Audits* opened, on a narrow screen.
    with browser.page_of(chromium, web, User.objects.get(username="mara"), **SCREEN) as page:
        page.goto(f"{web}/manage/campaigns/{campaign.pk}/audits/")
        page.evaluate(OPEN_ALL)
        page.set_viewport_size({"width": 500, "height": 900})
        assert len(_faults("/audits/", page.evaluate(FACTS))) == 3


def test_the_address_of_a_request_opens_its_subject_in_the_reference_of_the_api(
    chromium, web, transactional_db
):
    user = User.objects.create(username="rita", role="researcher")
    request = groups()[-1]["operations"][0]["id"]
    with browser.page_of(chromium, web, user, **SCREEN) as page:
        page.goto(f"{web}/api/v1/")
        assert not page.locator(f"#{request}").is_visible()
        page.goto("about:blank")
        page.goto(f"{web}/api/v1/#{request}")
        page.wait_for_selector(f"#{request}")


def _walk(page: Any, web: str, starts: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Follow every link from these pages; yield each page once, with what is measured of it."""
    waiting, known = [web + path for path in starts], set()
    while waiting:
        address = urldefrag(waiting.pop(0))[0]
        path = KEYS.sub("*", urlsplit(address).path)
        if not address.startswith(f"{web}/") or path in known or path.startswith(("/docs", "/static")):
            continue
        known.add(path)
        try:
            answer = page.goto(address)
        except Error:  # a file
            continue
        if answer is None or "text/html" not in answer.headers.get("content-type", ""):
            continue
        assert answer.status == 200, address
        facts = page.evaluate(FACTS)
        waiting += facts["links"]
        yield path, facts


def _faults(path: str, facts: dict[str, Any]) -> list[str]:
    faults = [f"{path} is {facts['height']} high"] if facts["height"] > HIGHEST else []
    if facts["lines"] > 1:
        faults.append(f"{path} has tabs on {facts['lines']} lines")
    if path.endswith("/audits/") and facts["words"] > MOST_WORDS:
        faults.append(f"{path} has {facts['words']} words")
    return faults
