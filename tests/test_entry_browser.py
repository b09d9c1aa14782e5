"""Coming in, in a real Chromium: a market on another site frames the HIT; training by keyboard; pages for everybody."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import axe_playwright_python
import browser
import pytest
from browser import ready
from small_campaign import make_assessor, make_campaign

from judging.models import Assessor, Campaign, Participant, TrainingAnswer
from judging.services import crowd, entry, training
from touchstone.models import User

pytestmark = browser.MARKS
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
N_QUOTA = 2


@pytest.fixture(scope="module")
def chromium() -> Iterator:
    yield from browser.chromium()


@pytest.fixture(scope="module")
def web(child_environment) -> Iterator[str]:
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    made = make_campaign(tmp_path, budget=12)
    training.choose_training_items(campaign=made, n=3, seed=1)
    return made


class Market:
    """A market's site, `localhost`: for a browser not the site 127.0.0.1. It frames a page and takes its form."""

    def __init__(self) -> None:
        market = self
        self.framed = ""
        self.received: list[Any] = []

        class Pages(BaseHTTPRequestHandler):
            def log_message(self, *_) -> None: ...

            def answer(self, body: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body.encode())

            def do_GET(self) -> None:
                self.answer(f'<iframe id="hit" src="{market.framed}" width="900" height="700"></iframe>')

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                market.received.append((self.path, parse_qs(body), self.headers.get("Referer", "")))
                self.answer("Thank you")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.site = f"http://localhost:{self.server.server_port}"
        self.elsewhere = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def market() -> Iterator[Market]:
    made = Market()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def hit(campaign, market, web) -> Campaign:
    """The campaign as a HIT of the market; the market's page frames it for a worker who has accepted."""
    fields = {"entry": "hit", "market_origin": market.site, "judgments_per_participant": N_QUOTA}
    Campaign.objects.update(consent="Do you agree?", **fields)
    worker = {"assignmentId": "3A", "hitId": "3H", "workerId": "A9", "turkSubmitTo": market.site}
    market.framed = f"{web}/hit/{campaign.entry_key}/?{urlencode(worker)}"
    campaign.refresh_from_db()
    return campaign


@pytest.fixture
def context(chromium) -> Iterator:
    made = chromium.new_context(viewport={"width": 1280, "height": 800})
    made.set_default_timeout(30_000)
    yield made
    made.close()


def train_by_keys(page, assessor) -> None:
    for _ in range(3):
        page.wait_for_selector("button.grade")
        page.keyboard.press(str(training.training_of(assessor=assessor, again=True).next_item.grade))
        page.wait_for_selector("#feedback")
        page.keyboard.press("Enter")
        page.wait_for_load_state()


def test_a_worker_goes_from_the_markets_frame_through_the_work_and_back(context, market, hit):
    page = context.new_page()
    page.goto(market.site)
    frame = page.frame_locator("#hit")
    with context.expect_page() as opened:
        frame.get_by_text("Start judging").click()
    tab = opened.value
    tab.get_by_role("button", name="Start").click()
    tab.get_by_role("button", name="I agree").click()
    train_by_keys(tab, Participant.objects.get(participant="A9").assessor)
    assert tab.inner_text("h1") == "Training passed"
    # The browser moves the focus only after it has shown the page.
    tab.wait_for_selector("a[autofocus]:focus")
    tab.keyboard.press("Enter")
    for number in range(N_QUOTA):
        ready(tab)
        tab.keyboard.press("1")
        tab.wait_for_function(
            "n => document.querySelector('#saved').innerText.includes(n)", arg=str(number + 1)
        )
    tab.locator(f"a[href='/complete/{hit.pk}/']:visible").first.click()
    code = tab.input_value("#code")
    assert code == crowd.own_code(hit, Assessor.objects.get(participant__participant="A9").pk)
    frame.get_by_label("Completion code").fill(code)
    with page.expect_response("**/mturk/externalSubmit"):
        frame.get_by_role("button", name="Submit to the market").click()
    path, fields, referer = market.received[0]
    assert (path, fields) == ("/mturk/externalSubmit", {"assignmentId": ["3A"], "completion_code": [code]})
    assert "A9" not in referer


def test_no_other_site_can_frame_the_hit(context, market, hit):
    page, refusals = context.new_page(), []
    page.on("console", lambda message: refusals.append(message.text))
    page.goto(market.elsewhere)
    page.wait_for_timeout(500)
    assert any("frame-ancestors" in refusal for refusal in refusals)
    assert page.frame_locator("#hit").get_by_text("Start judging").count() == 0


def test_the_training_is_done_with_digits_and_enter_and_no_key_acts_while_somebody_types(
    chromium, web, campaign
):
    bob = make_assessor(campaign, "bob")
    with browser.page_of(chromium, web, bob.user) as page:
        page.goto(f"{web}/judge/{campaign.pk}/")
        page.wait_for_selector("button.grade")
        page.evaluate("document.querySelector('.judge-topic').append(document.createElement('textarea'))")
        page.focus("textarea")
        page.keyboard.press("2")
        assert page.input_value("textarea") == "2"
        assert TrainingAnswer.objects.count() == 0
        page.evaluate("document.querySelector('textarea').remove()")
        page.keyboard.press("9")  # no such grade
        page.keyboard.press("Control+2")
        page.frame_locator("iframe").locator("body").click()  # the keys come back from the document
        page.wait_for_timeout(200)
        assert TrainingAnswer.objects.count() == 0
        train_by_keys(page, bob)
        assert page.inner_text("h1") == "Training passed"
    assert TrainingAnswer.objects.count() == 3


def test_a_double_click_answers_once(chromium, web, campaign):
    bob = make_assessor(campaign, "bob")
    with browser.page_of(chromium, web, bob.user) as page:
        page.goto(f"{web}/judge/{campaign.pk}/training/")
        page.dblclick("button.grade[value='1']")
        page.wait_for_selector("#feedback")
        assert TrainingAnswer.objects.count() == 1


def violations(page) -> list[str]:
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {iframes: false, resultTypes: ['violations']})")["violations"]
    return [f"{fault['id']}: {node['target']}" for fault in found for node in fault["nodes"]]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_the_pages_have_no_accessibility_fault_and_fit(chromium, web, hit, width, scheme):
    Campaign.objects.update(guidelines="**3** answers", entry="study", completion_code="C0DE")
    alice = User.objects.create(username="alice", role="manager")
    link = entry.create_invitation(campaign=hit, user=alice, note="class", max_uses=3)
    bob, ann = make_assessor(hit, "bob"), make_assessor(hit, "ann")
    came = crowd.enter(campaign=hit, visitor=crowd.visitor(participant="A1", study="S", session="T"))
    Assessor.objects.exclude(pk=ann.pk).update(consented_at=link.created_at, n_judged=N_QUOTA)
    training.answer(assessor=bob, position=1, attempt=1, grade=1)
    study = f"/study/{hit.entry_key}/?participant=A2&study=S&session=T"
    tour = [
        (alice, f"/manage/campaigns/{hit.pk}/entry/", "Invitations and training"),
        (alice, study, "You are logged in as alice"),
        (ann.user, f"/judge/{hit.pk}/consent/", "Before you begin"),
        (bob.user, f"/judge/{hit.pk}/training/", "Training"),
        (bob.user, f"/judge/{hit.pk}/training/?item=1", "reference"),
        (came.user, f"/complete/{hit.pk}/", "Thank you"),
        (None, f"/join/{link.token}/", "You are invited"),
        (None, f"/join/{hit.pk}/", "cannot be used"),
        (None, study, "Welcome"),
        (None, f"/study/{hit.entry_key}/", "not complete"),
    ]
    options = {"viewport": {"width": width, "height": 740}, "color_scheme": scheme}
    faults = []
    for user, path, words in tour:
        with browser.page_of(
            chromium, web, user or User.objects.create(username=f"nobody {path}"), **options
        ) as page:
            if user is None:
                page.context.clear_cookies()
            page.goto(web + path)
            assert words in page.content(), path
            faults += [f"{path}: {fault}" for fault in violations(page)]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                faults.append(f"{path}: wider than {width}")
    Campaign.objects.update(entry="hit")
    with browser.page_of(chromium, web, alice, **options) as page:
        page.goto(f"{web}/hit/{hit.entry_key}/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
        faults += violations(page)
    assert faults == []
