"""The judging screen in a real Chromium: what a server may answer."""

import json
import uuid
from urllib.parse import urljoin

import browser
import pytest
from browser import answers, at_rest, judge, kept, problem, ready, says
from django.conf import settings
from outbox import begin

from judging.models import Assessor, Campaign, Judgment

pytestmark = browser.MARKS

REFUSALS = [
    (problem("LeaseUnknown", 404, "English", "for programs"), "This document was not given to you"),
    (problem("Invalid", 400, "English", "for programs"), "The request is not valid"),
    (problem("AlreadyJudged", 409, "English", "for programs"), "Use Undo to change your grade."),
]


@pytest.mark.parametrize(("refusal", "sentence"), REFUSALS, ids=["LeaseUnknown", "Invalid", "AlreadyJudged"])
def test_a_refused_judgment_is_dropped_said_and_the_next_one_goes_through(page, refusal, sentence):
    begin(page)
    answers(page, "**/judgments", refusal)
    with page.expect_response("**/claim"):
        page.keyboard.press("1")
    says(page, "#problem", sentence)
    assert "English" not in page.inner_text(
        "#problem"
    )  # the screen has its own sentence for the problem's type
    ready(page)
    assert kept(page) == []
    judge(page, "2")
    assert Judgment.objects.get().grade == 2
    assert page.is_hidden("#problem")


def test_a_judgment_of_an_unknown_lease_left_in_the_browser_does_not_lock_its_assessor_out(page):
    """The real server's answer, to an entry of an earlier day that the page finds when it is loaded."""
    begin(page)
    page.evaluate(
        """([key, body]) => localStorage.setItem(key, JSON.stringify({kind: "submit", at: 1, failures: 0, body}))""",
        [outbox_key(page, token := str(uuid.uuid4())), entry(token)],
    )
    page.reload()
    says(page, "#problem", "This document was not given to you")
    ready(page)
    judge(page, "1")
    assert kept(page) == []


def outbox_key(page, client_token: str) -> str:
    script = "() => [document.getElementById('judge').dataset.user, document.getElementById('judge-state').textContent]"
    user, state = page.evaluate(script)
    return f"touchstone-outbox:{user}:{json.loads(state)['claim_url']}:{client_token}"


def entry(client_token: str, **body) -> dict:
    return {
        "client_token": client_token,
        "token": str(uuid.uuid4()),
        "grade": 1,
        "active_milliseconds": 0,
        **body,
    }


@pytest.mark.parametrize(
    ("model", "change", "title"),
    [
        (Assessor, {"status": "suspended"}, "A manager has paused your judging in this campaign"),
        (Campaign, {"state": "closed"}, "This campaign is not open"),
    ],
    ids=["paused", "closed"],
)
def test_a_change_of_mind_after_the_end_is_refused_once_and_not_sent_for_ever(page, model, change, title):
    begin(page)
    judge(page, "0")
    page.keyboard.press("u")
    page.wait_for_selector("#review-note:not([hidden])")
    ready(page)
    model.objects.update(**change)
    sent = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))
    page.keyboard.press("2")
    says(page, "#problem", title)
    at_rest(page)
    assert [url.rpartition("/")[2] for url in sent] == ["revisions", "claim"]
    assert kept(page) == []
    assert (
        page.inner_text("#problem").count(title) == 1
    )  # said once, though the claim was refused for it as well
    assert Judgment.objects.get().grade == 0


def test_a_judgment_the_server_fails_on_three_times_is_set_aside_and_can_be_sent_again(page):
    begin(page)
    sent = answers(page, "**/judgments", (500, "<h1>Something went wrong</h1>"), times=3)
    title = page.inner_text("#document-title")
    page.keyboard.press("1")
    says(page, "#saved", "1 waiting, will be sent")
    says(page, "#problem", "could not be stored; it is kept in this browser")
    ready(page)
    assert len(sent) == 3
    assert len({body["client_token"] for body in sent}) == 1
    assert [key.endswith(f"{sent[0]['client_token']}:set-aside") for key in kept(page)] == [True]
    assert Judgment.objects.count() == 0
    page.reload()  # it is neither forgotten nor in the way
    says(page, "#problem", "could not be stored; it is kept in this browser")
    ready(page)
    page.click("#problem-retry")
    says(page, "#saved", "Saved 1")
    stored = Judgment.objects.get()
    assert (str(stored.client_token), stored.item.document.title) == (sent[0]["client_token"], title)
    assert kept(page) == []


def test_work_goes_on_past_a_judgment_that_was_set_aside(page):
    begin(page)
    refused = browser.title(page)
    answers(page, "**/judgments", (500, "<h1>Something went wrong</h1>"), times=3)
    page.keyboard.press("1")
    says(page, "#problem", "could not be stored")
    ready(page)
    following = judge(page, "2")
    assert judge(page, "1") == refused  # the same document again: its lease is still held
    assert kept(page) == []  # what was set aside for it has no use any more
    grades = {j.item.document.title: j.grade for j in Judgment.objects.select_related("item__document")}
    assert grades == {following: 2, refused: 1}


def test_two_faults_of_the_server_set_nothing_aside(page):
    begin(page)
    sent = answers(page, "**/judgments", (500, "<h1>Something went wrong</h1>"), times=2)
    page.keyboard.press("1")
    says(page, "#saved", "Saved 1")
    assert sent[0] == sent[1]
    stored = Judgment.objects.get()
    assert str(stored.client_token) == sent[0]["client_token"]
    assert 200 <= stored.active_milliseconds < 5000  # until the key, not until it was stored
    assert page.is_hidden("#problem")
    assert kept(page) == []


@pytest.mark.parametrize("status", [503, 429, 408])
def test_a_busy_server_is_called_busy_and_asked_again_as_often_as_it_takes(page, status):
    begin(page)
    sent = answers(page, "**/judgments", problem("Unavailable", status, "Try again"), times=5)
    page.keyboard.press("1")
    says(page, "#saved", "The server is busy; 1 waiting, will be sent")
    for _ in range(5):  # more than the three times after which a fault is set aside
        with page.expect_response("**/judgments"):
            page.evaluate(
                "() => window.dispatchEvent(new Event('online'))"
            )  # rather than wait 1 + 2 + 4 + 8 s
        page.wait_for_timeout(100)
    says(page, "#saved", "Saved 1")
    assert len(sent) == 5
    assert str(Judgment.objects.get().client_token) == sent[0]["client_token"]
    assert page.is_hidden("#problem")


def test_after_too_many_requests_nothing_is_sent_before_the_time_that_the_server_names(page):
    begin(page)
    sent = []

    def answer(route):
        sent.append(route.request.post_data_json)
        if len(sent) > 1:
            route.fallback()
            return
        status, body = problem("Throttled", 429, "Too many")
        headers = {"Content-Type": "application/problem+json", "Retry-After": "3"}
        route.fulfill(status=status, body=json.dumps(body), headers=headers)

    page.route("**/judgments", answer)
    page.keyboard.press("1")
    says(page, "#saved", "The server is busy; 1 waiting, will be sent")
    ready(page)
    page.keyboard.press("2")
    says(page, "#saved", "The server is busy; 2 waiting, will be sent")
    page.evaluate("() => window.dispatchEvent(new Event('online'))")
    page.wait_for_timeout(500)
    assert len(sent) == 1
    says(page, "#saved", "Saved 2")
    assert sent[0] == sent[1]
    assert sorted(Judgment.objects.values_list("grade", flat=True)) == [1, 2]


def test_without_a_connection_the_page_says_offline(page):
    begin(page)
    page.context.set_offline(True)
    page.keyboard.press("1")
    says(page, "#saved", "Offline: 1 waiting, will be sent")
    page.context.set_offline(False)
    says(page, "#saved", "Saved 1")
    assert Judgment.objects.get().grade == 1


LOGGED_OUT = "You are logged out. Log in again in another tab, or load this page; nothing is lost."


def test_logged_out_the_page_says_so_and_the_judgment_waits_for_the_login(page, web):
    begin(page)
    cookies = page.context.cookies()
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    page.keyboard.press("1")
    says(page, "#problem", LOGGED_OUT)
    assert page.is_hidden("#problem-retry")
    assert len(kept(page)) == 1
    assert Judgment.objects.count() == 0
    page.context.add_cookies([cookie for cookie in cookies if cookie["name"] == settings.SESSION_COOKIE_NAME])
    page.click("#problem-load")
    says(page, "#saved", "Saved 1")
    assert Judgment.objects.get().grade == 1
    assert kept(page) == []


def test_after_a_login_in_another_tab_the_old_page_asks_to_be_loaded_and_loses_nothing(page):
    """A login changes the CSRF token; here it is gone."""
    begin(page)
    page.context.clear_cookies(name=settings.CSRF_COOKIE_NAME)
    page.keyboard.press("2")
    says(page, "#problem", LOGGED_OUT)
    assert len(kept(page)) == 1
    page.click("#problem-load")
    says(page, "#saved", "Saved 1")
    assert Judgment.objects.get().grade == 2


def test_another_403_keeps_the_judgment_and_can_be_tried_again(page):
    begin(page)
    answers(page, "**/judgments", problem("Forbidden", 403, "You may not do this"))
    page.keyboard.press("1")
    says(page, "#problem", "You may not do this")
    assert page.is_hidden("#problem-load")
    assert len(kept(page)) == 1
    page.click("#problem-retry")
    says(page, "#saved", "Saved 1")
    assert Judgment.objects.count() == 1


def test_a_stored_judgment_without_a_next_document_is_saved_and_the_page_claims_by_itself(page):
    begin(page)
    title = page.inner_text("#document-title")

    def busy(route):
        route.fulfill(json={**route.fetch().json(), "items": [], "reason": "busy"})

    page.route("**/judgments", busy, times=1)
    with page.expect_response("**/claim"):
        page.keyboard.press("1")
        says(page, "#saved", "Saved 1")
        assert kept(page) == []
        assert browser.title(page) != title  # it was here before
    ready(page)
    judge(page, "1")
    judge(page, "1")
    assert Judgment.objects.count() == 3


def test_tabs_keep_their_entries_under_keys_of_their_own_and_the_oldest_goes_first(page):
    """What another tab puts in while this one waits for its answer is neither erased nor forgotten.

    The other tab shows a page without the judging script: a second judging screen may send the entries itself.
    """
    begin(page)
    tokens = [str(uuid.UUID(int=number)) for number in (1, 2)]
    keys = [outbox_key(page, token) for token in tokens]
    other = page.context.new_page()
    other.goto(urljoin(page.url, "/livez"))
    sent = []

    def in_between(route):
        sent.append(route.request.post_data_json["client_token"])
        if len(sent) == 1:
            later_than_now = (3e15, 2e15)  # and the wrong way round
            for at, key, token in zip(later_than_now, keys, tokens, strict=True):
                other.evaluate(
                    """([key, at, body]) => localStorage.setItem(key, JSON.stringify({kind: "submit", at, body}))""",
                    [key, at, entry(token)],
                )
        route.fallback()

    page.route("**/judgments", in_between)
    page.keyboard.press("1")
    says(page, "#problem", "This document was not given to you")
    ready(page)
    assert sent[1:] == tokens[::-1]
    assert str(Judgment.objects.get().client_token) == sent[0]
    assert kept(page) == []


def test_two_tabs_without_a_connection_lose_no_judgment_of_either(page):
    begin(page)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("#judge[data-ready=true]")
    other.wait_for_timeout(250)
    page.context.set_offline(True)
    for tab, key in ((page, "1"), (other, "2")):
        tab.keyboard.press(key)
        says(tab, "#saved", "waiting, will be sent")
    assert len(kept(page)) == 1  # the same document: the first tab's grade waits, the second's is not taken
    page.context.set_offline(False)
    says(page, "#saved", "Saved 1")
    ready(other)
    assert other.inner_text("#document-title") == page.inner_text("#document-title")
    assert Judgment.objects.get().grade == 1


def test_a_damaged_entry_stops_nobody(page):
    begin(page)
    for number, value in enumerate(["{", "null", "[]", '{"kind": "submit"}', '"text"']):
        page.evaluate(
            "([key, value]) => localStorage.setItem(key, value)", [outbox_key(page, f"x{number}"), value]
        )
    page.reload()
    ready(page)
    judge(page, "1")
    assert Judgment.objects.count() == 1


def test_without_storage_the_outbox_lives_in_the_page(page):
    begin(page)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    sent = answers(page, "**/judgments", (500, "<h1>Something went wrong</h1>"), times=2)
    page.keyboard.press("1")
    says(page, "#saved", "Saved 1")
    assert len(sent) == 2
    assert Judgment.objects.get().grade == 1
