"""A real Chromium in front of the real web server: what the browser tests share."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore

from judging.models import Assessor, Campaign, Collection, Document, Grade, Item, Judgment, Scale, Slot, Topic
from touchstone import embedded
from touchstone.models import User

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = '<script>top.location="http://127.0.0.1:9/"</script><img src=x onerror="alert(1)">'
MARKS = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("browser"),
]


# Chromium and web servers that stay open from one file of browser tests to the next, and what closes them.
_OPEN: dict[Any, Any] = {}
_CLOSE = ExitStack()


def chromium() -> Iterator[Any]:
    """Yield Chromium, the same for all browser tests of the process: each opens a context of its own."""
    if CHROMIUM is None:
        reason = "no Chromium on this machine: the browser tests cannot run (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    if "chromium" not in _OPEN or not _OPEN["chromium"].is_connected():
        if "chromium" in _OPEN:  # a test broke it; there may be one Playwright in a process at a time
            close()
        _OPEN["chromium"] = _CLOSE.enter_context(_launched())
    yield _OPEN["chromium"]


@contextmanager
def _launched() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Playwright's event loop lives in this thread; Django would take every query here for one in async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-sync"])
        yield browser
        browser.close()


def web(environment: dict[str, str]) -> Iterator[str]:
    """Yield the address of the real web server on the test's database, the same as long as browser tests follow."""
    key = tuple(sorted(environment.items()))
    if key not in _OPEN:
        _OPEN[key] = _CLOSE.enter_context(served(environment))
    yield _OPEN[key]


@contextmanager
def served(environment: dict[str, str], address: str = "") -> Iterator[str]:
    """A web server on the test's database, stopped at the end; at this address, if its site has to know it before."""
    address = address or f"127.0.0.1:{embedded.free_port()}"
    command = [sys.executable, "-m", "gunicorn", "touchstone.wsgi", "--threads", "4", "--bind", address]
    server = subprocess.Popen([*command, "--no-control-socket", "--log-level", "error"], env=environment)
    try:
        embedded.answers(f"http://{address}/livez")()
        yield f"http://{address}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def close() -> None:
    """Stop what is open; tests/conftest.py calls it after the last of several browser tests in a row."""
    _OPEN.clear()
    _CLOSE.close()


def make_campaign(n_documents: int = 30, text: str = "", **fields: Any) -> Campaign:
    """Make an open campaign of one topic, three grades and so many documents."""
    scale = Scale.objects.create(name="three")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=label, gain=value)
        for value, label in enumerate(["Not relevant", "Relevant", "Highly relevant"])
    )
    collection = Collection.objects.create(name="Needs")
    defaults = {"name": "Judge", "state": Campaign.State.OPEN, "gold_check_rate": 0}
    campaign = Campaign.objects.create(collection=collection, scale=scale, **{**defaults, **fields})
    topic = Topic.objects.create(
        collection=collection, topic_id="t1", title="A need", narrative="More about it"
    )
    for number in range(n_documents):
        add_document(campaign, topic, number, text or f"Text {number} {HOSTILE}")
    return campaign


def add_document(campaign: Campaign, topic: Topic, number: int, text: str) -> None:
    document = Document.objects.create(
        collection=campaign.collection, doc_id=f"d{number}", title=f"Document {number}", text=text
    )
    item = Item.objects.create(campaign=campaign, topic=topic, document=document)
    Slot.objects.create(item=item, purpose="judge", number=1, campaign=campaign, topic=topic, position=number)


def make_assessor(campaign: Campaign, name: str = "bob", **fields: Any) -> Assessor:
    user, _ = User.objects.get_or_create(username=name)
    return Assessor.objects.create(campaign=campaign, user=user, **fields)


@contextmanager
def page_of(browser: Any, web: str, user: User, **options: Any) -> Iterator[Any]:
    """A page of the user's, logged in, that notes every error of its scripts in `page.faults`."""
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.save()
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": web}])
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: (page.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    try:
        yield page
        assert page.faults == []
    finally:
        context.close()


def ready(page: Any) -> None:
    """Wait until a document can be judged: it is shown, and long enough for a double tap to be over."""
    page.wait_for_selector("#judge[data-ready=true]")
    page.wait_for_timeout(250)


def at_rest(page: Any) -> None:
    """Wait until nothing is under way to the server."""
    page.wait_for_selector("#judge[data-sending=false]")


def title(page: Any) -> str:
    return str(page.inner_text("#document-title"))


def shows(page: Any, text: str) -> None:
    """Wait until the document of this title is shown."""
    says(page, "#document-title", text)
    ready(page)


def judge(page: Any, key: str) -> str:
    """Press a key, wait until the judgment is saved and the next document is there; return the judged title."""
    judged = title(page)
    before = Judgment.objects.count()
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('#document-title').innerText !== before", arg=judged
    )
    ready(page)
    says(page, "#saved", "Saved")
    assert Judgment.objects.count() == before + 1
    return judged


def answers(page: Any, pattern: str, *replies: tuple[int, Any], times: int | None = None) -> list[dict]:
    """Fake the answers to requests at `pattern`, one reply `(status, body)` after another; return what was sent.

    The last reply is repeated until `times` requests came; later requests reach the server.
    """
    sent: list[Any] = []
    limit = len(replies) if times is None else times

    def answer(route):
        if len(sent) >= limit:
            return route.fallback()
        status, body = replies[min(len(sent), len(replies) - 1)]
        sent.append(route.request.post_data_json)
        if isinstance(body, str):
            return route.fulfill(status=status, body=body, content_type="text/html")
        return route.fulfill(status=status, json=body, content_type="application/problem+json")

    page.route(pattern, answer)
    return sent


def problem(name: str, status: int, title: str, detail: str = "") -> tuple[int, dict]:
    return status, {"type": f"/problems/{name}", "title": title, "status": status, "detail": detail}


def says(page: Any, selector: str, text: str) -> None:
    """Wait until the element says the text, visibly. While a page is being loaded the element may not be there."""
    script = """([selector, text]) => {
        const element = document.querySelector(selector);
        return Boolean(element?.checkVisibility()) && element.innerText.includes(text);
    }"""
    page.wait_for_function(script, arg=[selector, text])


def kept(page: Any) -> list[str]:
    """The keys of the outbox in this browser's storage."""
    return page.evaluate(
        "() => Object.keys(localStorage).filter((key) => key.startsWith('touchstone-outbox:'))"
    )
