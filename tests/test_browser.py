"""The judging screen in a real Chromium, with the keyboard alone."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore

from judging.models import Assessor, Campaign, Collection, Document, Grade, Item, Judgment, Scale, Slot, Topic
from touchstone import embedded
from touchstone.models import User

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("browser"),
]
HOSTILE = '<script>top.location="http://127.0.0.1:9/"</script><img src=x onerror="alert(1)">'


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        reason = "no Chromium on this machine: the browser tests cannot run (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    # Playwright's event loop lives in this thread; Django would take every query here for one in async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--disable-sync"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    """The real web server on the test's database."""
    address = f"127.0.0.1:{embedded.free_port()}"
    command = [sys.executable, "-m", "gunicorn", "touchstone.wsgi", "--threads", "4", "--bind", address]
    server = subprocess.Popen(
        [*command, "--no-control-socket", "--log-level", "error"], env=child_environment
    )
    embedded.answers(f"http://{address}/livez")()
    yield f"http://{address}"
    server.send_signal(signal.SIGTERM)
    server.wait(30)


@pytest.fixture
def campaign(transactional_db) -> Campaign:
    scale = Scale.objects.create(name="three")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=label, gain=value)
        for value, label in enumerate(["Not relevant", "Relevant", "Highly relevant"])
    )
    collection = Collection.objects.create(name="Needs")
    made = Campaign.objects.create(
        collection=collection, scale=scale, name="Judge", state=Campaign.State.OPEN, gold_check_rate=0
    )
    topic = Topic.objects.create(
        collection=collection, topic_id="t1", title="A need", narrative="More about it"
    )
    for number in range(30):
        document = Document.objects.create(
            collection=collection,
            doc_id=f"d{number}",
            title=f"Document {number}",
            text=f"Text {number} {HOSTILE}",
        )
        item = Item.objects.create(campaign=made, topic=topic, document=document)
        Slot.objects.create(item=item, purpose="judge", number=1, campaign=made, topic=topic, position=number)
    return made


@pytest.fixture
def page(chromium, web, campaign) -> Iterator:
    bob = User.objects.create(username="bob")
    Assessor.objects.create(campaign=campaign, user=bob)
    session = SessionStore()
    session["_auth_user_id"] = str(bob.pk)
    session["_auth_user_backend"] = settings.AUTHENTICATION_BACKENDS[0]
    session["_auth_user_hash"] = bob.get_session_auth_hash()
    session.save()
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": web}
    context.add_cookies([cookie])
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: (page.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.goto(f"{web}/judge/")
    yield page
    assert page.faults == []
    context.close()


def begin(page) -> None:
    """One click and one key away: the first campaign's button is in focus."""
    page.wait_for_selector("a.button.primary:focus")
    page.keyboard.press("Enter")
    ready(page)


def ready(page) -> None:
    page.wait_for_selector("#judge[data-ready=true]")
    page.wait_for_timeout(250)


def judge(page, key: str) -> str:
    """Press a key, wait until the judgment is saved and the next document is there; return the judged title."""
    title = page.inner_text("#document-title")
    before = Judgment.objects.count()
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('#document-title').innerText !== before", arg=title
    )
    ready(page)
    assert Judgment.objects.count() == before + 1
    assert "Saved" in page.inner_text("#saved")
    return title


def test_twenty_judgments_with_the_keyboard_alone_each_visibly_saved(page):
    begin(page)
    titles = [judge(page, str(number % 3)) for number in range(20)]
    assert len(set(titles)) == 20
    grades = {j.item.document.title: j.grade for j in Judgment.objects.select_related("item__document")}
    assert grades == {title: number % 3 for number, title in enumerate(titles)}
    assert "20" in page.inner_text("#progress-text")


def test_reload_and_back_button_show_the_same_document_and_lose_nothing(page):
    begin(page)
    judge(page, "1")
    title = page.inner_text("#document-title")
    page.reload()
    ready(page)
    assert page.inner_text("#document-title") == title
    page.go_back()
    page.go_forward()
    ready(page)
    assert page.inner_text("#document-title") == title
    assert Judgment.objects.count() == 1


def test_a_double_click_and_a_held_key_judge_once(page):
    begin(page)
    page.dblclick("button.grade[data-grade='2']")
    ready(page)
    assert Judgment.objects.count() == 1
    page.keyboard.down("1")
    page.keyboard.down("1")  # the browser repeats a held key
    page.keyboard.down("1")
    page.keyboard.up("1")
    ready(page)
    assert Judgment.objects.count() == 2


def test_undo_brings_the_last_document_back_and_a_new_grade_is_a_new_row(page):
    begin(page)
    title = judge(page, "0")
    following = page.inner_text("#document-title")
    page.keyboard.press("u")
    page.wait_for_function(
        "title => document.querySelector('#document-title').innerText === title", arg=title
    )
    ready(page)
    with page.expect_response("**/revisions"):
        page.keyboard.press("2")
    page.wait_for_function(
        "title => document.querySelector('#document-title').innerText === title", arg=following
    )
    rows = list(Judgment.objects.order_by("sequence").values_list("sequence", "grade"))
    assert rows == [(1, 0), (2, 2)]


def test_a_lost_connection_keeps_the_judgment_and_sends_it_later(page):
    begin(page)
    page.context.set_offline(True)
    page.keyboard.press("1")
    page.wait_for_function("() => document.querySelector('#saved').innerText.includes('waiting')")
    assert Judgment.objects.count() == 0
    page.context.set_offline(False)
    page.wait_for_function(
        "() => document.querySelector('#saved').innerText.includes('Saved')", timeout=20_000
    )
    assert Judgment.objects.get().grade == 1


def test_two_tabs_show_the_same_document_and_it_is_judged_once(page):
    begin(page)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("#judge[data-ready=true]")
    other.wait_for_timeout(250)
    assert other.inner_text("#document-title") == page.inner_text("#document-title")
    judge(page, "1")
    other.keyboard.press("1")
    other.wait_for_timeout(1500)
    per_item = Judgment.objects.filter(sequence=1).values_list("item_id", flat=True)
    assert len(per_item) == len(set(per_item))


def test_a_hostile_document_runs_nothing_and_leaves_its_frame_nowhere(page):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    begin(page)
    frame = page.frame_locator("#frame-place iframe")
    assert "<script>" in frame.locator("body").inner_text()
    assert all("127.0.0.1:9/" not in url for url in requests)
    assert "/judge/" in page.url


def test_the_judging_screen_fits_a_phone(page):
    page.set_viewport_size({"width": 360, "height": 740})
    begin(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for box in page.locator("button.grade").all():
        assert box.bounding_box()["height"] >= 44


def test_the_page_without_a_lease_of_mine_does_not_exist(page, web):
    answer = page.goto(f"{web}/frame/{uuid.uuid4()}/")
    assert answer.status == 404
