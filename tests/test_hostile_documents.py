"""Documents are hostile: what they try does work elsewhere (the control), and in Touchstone nothing of it happens.

A canary, an HTTP server on loopback, counts whatever reaches it. Every payload tries to run a script, to have something
loaded, or to lead the page away. The same corpus is served raw by the canary itself, where all of this must happen.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import playwright.sync_api
import pytest
from browser import close
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from hostile_corpus import PAYLOADS, Canary, make_campaign, payload

from judging.models import (
    Campaign,
    Document,
    Judgment,
    Slot,
)
from sampling.models import Draw
from touchstone import embedded
from touchstone.models import User

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


# -- the corpus -----------------------------------------------------------------------------------------------


@pytest.fixture
def canary() -> Iterator[Canary]:
    server = Canary()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


# -- the browser ----------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """What happened in the browser that should not."""

    ran: list[str] = field(default_factory=list)  # addresses of frames in which a script of a payload ran
    left: list[str] = field(
        default_factory=list
    )  # addresses to which a page was led away, or that were opened
    requests: list[str] = field(default_factory=list)  # addresses asked for outside the site
    readable: list[str] = field(default_factory=list)  # cookies that a document's frame could read
    n_frames: int = 0
    n_as_text: int = 0


# In each document: everything is clicked on, also what no pointer would find, and secrets are tried for.
LOOK = """() => {
  const targets = document.querySelectorAll("a, area, button, input, label, summary, [tabindex], [href]");
  for (const one of targets) one.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  const read = window.origin === "null" ? [] : [window.origin];
  for (const take of [() => document.cookie, () => `storage ${localStorage.length}`]) {
    try { if (take()) read.push(take()); } catch (e) { if (e.name !== "SecurityError") read.push(e.name); }
  }
  return {ran: Boolean(window.canary), read, as_text: document.querySelectorAll("pre.text").length};
}"""


def browse(visit, site: str, cookies: list[dict]) -> Seen:
    """Run `visit(context, seen)` in a Chromium of its own, in a thread: Playwright and Django do not mix."""
    if CHROMIUM is None:
        reason = "no Chromium on this machine: the browser tests cannot run (apt-get install chromium)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    close()  # there may be one Playwright in a process at a time
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_browse, visit, site, cookies).result()


def _browse(visit, site: str, cookies: list[Any]) -> Seen:
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    flags += ["--disable-features=IsolateSandboxedIframes"]  # no process for each frame: quicker
    seen = Seen()
    with playwright.sync_api.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-sync"])
        context = browser.new_context(viewport={"width": 800, "height": 600})
        context.set_default_timeout(10_000)
        context.add_cookies(cookies)
        _listen(context, site, seen)
        visit(context, seen)
        browser.close()
    return seen


def _listen(context: Any, site: str, seen: Seen) -> None:
    def hear(message: Any) -> None:
        if "canary-ran" in message.text:
            seen.ran.append(message.text)

    def dismiss(dialog: Any) -> None:
        seen.ran.append(dialog.message)
        dialog.dismiss()

    def note(request: Any) -> None:
        if _outside(request.url, site):
            seen.requests.append(request.url)

    for event, handler in (("console", hear), ("dialog", dismiss), ("request", note)):
        context.on(event, handler)


def _outside(url: str, site: str) -> bool:
    return not url.startswith((f"{site}/", "data:", "about:", "blob:", "chrome-error:"))


def look_into(frame, seen: Seen) -> None:
    """Look whether a script ran in a document, click on everything in it, and try to read what it must not."""
    seen.n_frames += 1
    try:
        found = frame.evaluate(LOOK)
    except playwright.sync_api.Error:  # it is being led away just now
        seen.left.append(frame.url)
        return
    seen.n_as_text += found["as_text"]
    seen.readable += found["read"]
    if found["ran"]:
        seen.ran.append(frame.url)


# -- the corpus where nothing protects: the control -----------------------------------------------------------


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_served_raw_the_corpus_runs_scripts_sends_requests_and_leads_the_page_away(canary):
    def visit(context, seen: Seen) -> None:
        idle, names = context.new_page(), list(PAYLOADS)
        for start in range(0, len(names), 15):
            pages = {name: context.new_page() for name in names[start : start + 15]}
            for name, page in pages.items():
                with contextlib.suppress(playwright.sync_api.Error):  # it is led away already
                    page.goto(f"{canary.address}/parent/{name}", wait_until="commit")
            idle.wait_for_timeout(400)
            for frame in chain(*(page.frames[1:] for page in pages.values())):
                look_into(frame, seen)
            idle.wait_for_timeout(200)
            for page in pages.values():
                seen.left += [page.url] if "/parent/" not in page.url else []
                page.close()

    seen = browse(visit, canary.address, [])
    reached = {hit.split("/")[3] for hit in canary.hits if hit.startswith("/hit/raw/")}
    assert len(seen.ran) >= 40
    assert len(reached) >= 60
    assert len(seen.left) >= 30
    assert seen.readable
    assert {"link-top", "form-top", "img", "css-url", "css-import", "a-ping", "base"} <= reached


# -- the corpus in Touchstone ---------------------------------------------------------------------------------

MODES = {"html": (True, True), "html-as-text": (True, False), "plain": (False, True)}  # is_html, shows_html


def judge_with_comments(campaign: Campaign, comments: list[str]) -> None:
    for slot, comment in zip(campaign.slots.order_by("-position")[: len(comments)], comments, strict=True):
        Slot.objects.filter(pk=slot.pk).update(state="done")
        Judgment.objects.create(
            item=slot.item, assessor=slot.assessor, grade=1, slot=slot, comment=comment[:2000], lease_token=slot.token,
            client_token=uuid.uuid4(),
        )  # fmt: skip


def cookie_of(user: User, site: str) -> dict:
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.save()
    return {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": site}


@pytest.fixture
def web(transactional_db, child_environment) -> Iterator[str]:
    """The real web server on the test's database."""
    address = f"127.0.0.1:{embedded.free_port()}"
    command = [sys.executable, "-m", "gunicorn", "touchstone.wsgi", "--threads", "8", "--bind", address]
    server = subprocess.Popen(
        [*command, "--no-control-socket", "--log-level", "error"], env=child_environment
    )
    embedded.answers(f"http://{address}/livez")()
    yield f"http://{address}"
    server.terminate()
    server.wait(30)


# As the screen makes them, but without the attribute "sandbox": the answer's own policy must be enough.
FRAMES = """addresses => Promise.all(addresses.map(address => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.addEventListener("load", done);
  frame.src = address;
  document.body.append(frame);
})))"""


def import_corpus(canary: str, modes: Iterable[str]) -> dict[str, tuple[Campaign, list[uuid.UUID]]]:
    """Import the corpus as these MODES: as texts and titles; topics, guidelines, descriptions and comments too."""
    fields = [payload(name, "field", canary).replace("\0", "\ufffd") for name in PAYLOADS]
    made = {}
    for mode in modes:
        is_html, shows_html = MODES[mode]
        documents = [
            {
                "_id": name.replace(" ", "-"),
                "title": payload(name, f"{mode}-title", canary),
                "text": payload(name, mode, canary),
            }
            for name in PAYLOADS
        ]
        how = {"is_html": is_html, "shows_html": shows_html, "guidelines": "\n\n".join(fields)}
        made[mode] = make_campaign(
            documents, name=f"{mode} <script>", titles=["".join(fields), *fields], **how
        )
        pairs = ["".join(fields[start : start + 2]) for start in range(0, len(fields), 2)]
        judge_with_comments(made[mode][0], pairs)  # the newest fifty are shown to the manager
    return made


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.django_db(transaction=True)
def test_in_touchstone_nothing_runs_nothing_is_loaded_and_nothing_leads_away(web, canary):
    made = import_corpus(canary.address, MODES)
    assert Document.objects.exclude(html="").count() > 60
    frames = {mode: [f"{web}/frame/{token}/" for token in tokens] for mode, (_, tokens) in made.items()}

    def visit(context, seen: Seen) -> None:
        page = context.new_page()
        page.on("framenavigated", lambda frame: seen.left.extend([frame.url] * (frame == page.main_frame)))

        def go(address: str) -> None:
            seen.left.append(f"expected {address}")
            page.goto(address)

        for addresses in frames.values():  # in a page of the site
            go(f"{web}/judge/")
            page.evaluate(FRAMES, addresses)
            page.wait_for_timeout(300)
            for frame in page.frames[1:]:
                look_into(frame, seen)
            page.wait_for_timeout(300)
        for address in (
            frames["html"] + frames["plain"]
        ):  # opened by themselves, and without marks between the tags
            go(f"{address}?marks=0")
            look_into(page.main_frame, seen)
        for (
            campaign,
            _,
        ) in made.values():  # the judging screen, which shows titles, topics and one's own comments
            go(f"{web}/judge/{campaign.pk}/")
            page.wait_for_selector("#judge[data-ready=true]")
            page.keyboard.press("u")
            page.wait_for_timeout(500)
            assert "canary-ran" in page.inner_text("#judge")  # it is there, as text
            assert not page.evaluate("window.canary")

    seen = browse(visit, web, [cookie_of(User.objects.get(username="bob"), web)])
    assert (seen.ran, seen.requests, seen.readable) == ([], [], [])
    assert unexpected(seen.left) == []
    assert seen.n_frames == 5 * len(PAYLOADS)
    # What has no words is called empty; all else of two modes is text, and most of the third is not.
    assert 2 * len(PAYLOADS) < seen.n_as_text < 4 * len(PAYLOADS)
    assert (canary.hits, canary.n_connections) == ([], 0)


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
@pytest.mark.django_db(transaction=True)
def test_nothing_runs_where_a_manager_sees_topics_titles_and_comments(web, canary):
    ((campaign, _),) = import_corpus(canary.address, ["plain"]).values()
    facts = {"batch": 1, "question": "pool", "method": "default", "selection": "poisson", "seed": 1}
    Draw.objects.create(campaign=campaign, frame="f", n_frame=99, n_drawn=0, **facts)
    slot = campaign.slots.get(position=0)
    judgment = {"item": slot.item, "assessor": slot.assessor, "lease_token": slot.token}
    Judgment.objects.create(**judgment, obstacle="other", client_token=uuid.uuid4())
    alice = User.objects.create(username="alice", role=User.Role.MANAGER)
    here = f"/manage/campaigns/{campaign.pk}"
    with_payloads = [
        f"/manage/collections/{campaign.collection_id}/",
        f"{here}/comments/",
        f"{here}/topics/",
        f"{here}/leases/",
    ]
    paths = [*with_payloads, f"{here}/", f"{here}/events/", f"{here}/assessors/{slot.assessor.pk}/"]

    def visit(context, seen: Seen) -> None:
        page = context.new_page()
        page.on("framenavigated", lambda frame: seen.left.append(frame.url))
        for path in paths:
            seen.left.append(f"expected {web}{path}")
            assert page.goto(web + path).status == 200, path
            page.wait_for_timeout(100)
            assert ("canary-ran" in page.content()) is (path in with_payloads), path
            assert not page.evaluate("window.canary")

    seen = browse(visit, web, [cookie_of(alice, web)])
    assert (seen.ran, seen.requests, unexpected(seen.left)) == ([], [], [])
    assert (canary.hits, canary.n_connections) == ([], 0)


def unexpected(navigations: list[str]) -> list[str]:
    """Return the addresses that a page came to without having been sent there; a place in the same page is none."""
    navigations = [
        there
        for before, there in pairwise(["", *navigations])
        if "#" not in there or there.partition("#")[0] != before.partition("#")[0]
    ]
    pairs = list(pairwise(["", *navigations]))
    return [
        there for before, there in pairs if not there.startswith("expected") and before != f"expected {there}"
    ]
