"""The judging screen in a real Chromium: everything it can do, by keyboard, by touch, without a connection, for all."""

from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import browser
import pytest
from browser import answers, at_rest, judge, kept, problem, ready, says, shows, title

from judging.models import Assessor, Campaign, Judgment, Participant, Slot

pytestmark = browser.MARKS
LONG = "\n".join(f"Line {number} of a long document about a need." for number in range(200))
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


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


def stored() -> dict[str, tuple]:
    """Return the newest judgment of each document, by title."""
    rows = Judgment.objects.select_related("item__document").order_by("sequence")
    return {row.item.document.title: (row.grade, row.obstacle, row.comment) for row in rows}


def focused(page) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


def shown_frame(page):
    """Return the frame of the shown document; Playwright may look into it, the page may not."""
    return page.query_selector("#frame-place iframe:not(.ahead)").content_frame()


def scrolled(page) -> tuple[float, float]:
    """Return how far the document is scrolled, and the height of its window, once the key has had its effect."""
    page.wait_for_timeout(300)
    return tuple(shown_frame(page).evaluate("[scrollY, innerHeight]"))


# --- the keyboard --------------------------------------------------------------------------------------------------


def test_the_whole_screen_by_keyboard(open_screen):
    page = open_screen(8, guidelines="Judge *kindly*.")
    first = judge(page, "2")

    second = title(page)
    page.keyboard.press("c")
    assert focused(page) == "comment"
    page.keyboard.type("Half of it is missing, 0 to 2 and ux?")  # no key acts while typing
    page.keyboard.press("Escape")
    says(page, "#open-comment", "Comment added")
    assert title(page) == second
    judge(page, "1")

    third = title(page)
    page.keyboard.press("x")
    page.wait_for_selector("#obstacles[open]")
    page.keyboard.press("9")  # there are five reasons
    assert page.is_visible("#obstacles")
    page.keyboard.press("2")
    says(page, "#saved", "Saved 3")
    ready(page)

    for key, dialog in {"g": "guidelines", "?": "help", "s": "summary"}.items():
        page.keyboard.press(key)
        page.wait_for_selector(f"#{dialog}[open]")
        assert "kindly" in page.inner_text("#guidelines") or dialog != "guidelines"
        page.keyboard.press("1")  # no grade while a dialog is open
        page.keyboard.press(key)
        page.wait_for_selector(f"#{dialog}[open]", state="detached")
    page.keyboard.press("h")
    assert page.get_attribute("#marks", "aria-pressed") == "false"
    page.keyboard.press("h")

    page.keyboard.press("u")
    shows(page, third)
    assert "I do not understand its language" in page.inner_text("#review-note")
    page.keyboard.press("0")  # from "cannot judge" to a grade
    page.wait_for_selector("#review-note", state="hidden")
    at_rest(page)
    for expected in (third, second, first):
        page.keyboard.press("u")
        shows(page, expected)
    page.keyboard.press("Escape")
    page.wait_for_selector("#review-note", state="hidden")
    assert stored() == {
        first: (2, "", ""),
        second: (1, "", "Half of it is missing, 0 to 2 and ux?"),
        third: (0, "", ""),
    }


def test_the_help_lists_every_key_that_acts(open_screen):
    page = open_screen()
    page.keyboard.press("?")
    listed = page.eval_on_selector_all("#help dt kbd", "all => all.map((one) => one.innerText)")
    assert set(listed) >= {"0", "1", "2", "Space", "↓", "↑", "x", "c", "u", "⌫", "g", "h", "s", "?", "Esc"}
    shortcuts = page.eval_on_selector_all(
        "#judge [aria-keyshortcuts]", "all => all.map((one) => one.getAttribute('aria-keyshortcuts'))"
    )
    assert set(shortcuts) <= set(listed)


def test_a_digit_that_is_no_grade_is_said_and_judges_nothing(open_screen):
    page = open_screen()
    page.keyboard.press("7")
    says(page, "#hint", "There is no grade 7.")
    assert page.is_visible("#hint")
    assert page.text_content("#announce") == "There is no grade 7."
    at_rest(page)
    assert Judgment.objects.count() == 0


def test_keys_switched_off_do_nothing_but_scroll(open_screen):
    page = open_screen(text=LONG)
    before = title(page)
    page.keyboard.press("?")
    page.uncheck("#keys-on")
    page.keyboard.press("Escape")
    for key in ("1", "x", "c", "u"):
        page.keyboard.press(key)
    assert title(page) == before
    assert page.is_hidden("#comment-panel")
    assert page.is_hidden("#obstacles")
    page.keyboard.press("Space")
    assert scrolled(page)[0] > 0
    page.reload()
    ready(page)
    assert not page.is_checked("#keys-on")
    assert kept(page) == []


def test_the_document_scrolls_by_keys_and_no_line_is_skipped(open_screen):
    page = open_screen(text=LONG)
    entries = page.evaluate("history.length")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    assert scrolled(page)[0] == 0
    page.keyboard.press("Space")
    down, height = scrolled(page)
    assert 0.8 * height <= down <= height - 30  # a line stays to hold on to
    page.keyboard.press("PageDown")
    further, _ = scrolled(page)
    assert 0.8 * height <= further - down <= height - 30
    page.keyboard.press("ArrowDown")
    assert 10 < scrolled(page)[0] - further < 0.2 * height
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+Space")
    page.keyboard.press("PageUp")
    assert scrolled(page)[0] == 0
    page.keyboard.press("PageDown")
    page.keyboard.press("Home")
    assert scrolled(page)[0] == 0
    assert requests == []
    assert page.evaluate("history.length") == entries
    judge(page, "1")  # the grade keys never left


@pytest.mark.parametrize("text", [LONG, "short\n" * 300], ids=["long lines", "short lines"])
def test_the_last_line_of_a_document_can_be_reached(open_screen, text):
    page = open_screen(text=text)
    for _ in range(40):
        page.keyboard.press("Space")
    page.wait_for_timeout(200)
    at_end = shown_frame(page).evaluate("document.documentElement.scrollHeight - innerHeight - scrollY")
    assert at_end <= 1


def test_a_click_into_the_document_leaves_the_keys_working(open_screen):
    page = open_screen(text=LONG)
    page.mouse.click(800, 300)
    page.wait_for_timeout(100)
    page.keyboard.press("Space")
    assert scrolled(page)[0] > 0
    judge(page, "1")


def test_space_after_a_click_on_a_grade_scrolls_and_does_not_grade_again(open_screen):
    page = open_screen(text=LONG)
    page.click("button.grade[data-grade='1']")
    says(page, "#saved", "Saved 1")
    ready(page)
    page.keyboard.press("Space")
    assert scrolled(page)[0] > 0
    assert Judgment.objects.count() == 1


# --- prefetching ---------------------------------------------------------------------------------------------------


def test_the_next_document_is_shown_without_any_request(open_screen):
    """Every request is held up; the next document is there all the same, loaded and readable."""
    page = open_screen(text="Readable text")
    page.wait_for_selector("#frame-place iframe.ahead:not(.loading)", state="attached")
    first = title(page)
    asked = []
    held = []

    def hold(route):
        asked.append(route.request.url)
        held.append(route)

    page.route("**/*", hold)
    page.keyboard.press("1")
    shown = page.evaluate("document.querySelector('#document-title').innerText")
    assert shown != first
    page.wait_for_timeout(300)
    assert shown_frame(page).inner_text("body").strip() == "Readable text"
    assert Judgment.objects.count() == 0
    assert [url.rpartition("/")[2] for url in asked] == ["judgments"]  # one request a judgment, behind it
    for route in held:
        route.continue_()
    page.unroute("**/*")
    says(page, "#saved", "Saved 1")
    assert stored() == {first: (1, "", "")}


def test_a_judgment_costs_one_request_and_one_frame(open_screen):
    page = open_screen(8)
    page.wait_for_selector("#frame-place iframe.ahead:not(.loading)", state="attached")
    requests = []
    page.on("request", lambda request: requests.append(request.url.partition("/api/")[1] or "frame"))
    for key in "0121":
        judge(page, key)
    page.wait_for_timeout(300)
    assert (requests.count("/api/"), requests.count("frame")) == (4, 4)


def test_judging_faster_than_the_server_answers_keeps_the_order(open_screen):
    page = open_screen()
    sent = []

    def slowly(route):
        sent.append(route.request.post_data_json["token"])
        page.wait_for_timeout(700)
        route.continue_()

    page.route("**/judgments", slowly)
    tokens, judged = [], []
    for key in "12":
        tokens.append(page.get_attribute("#judge", "data-token"))
        judged.append(title(page))
        page.keyboard.press(key)
        page.wait_for_timeout(250)
    says(page, "#saved", "Saved 2")
    assert sent == tokens
    assert stored() == {judged[0]: (1, "", ""), judged[1]: (2, "", "")}
    ready(page)
    assert title(page) not in judged


def test_the_document_on_the_screen_stays_when_the_server_names_others(open_screen):
    """Its lease is gone; what somebody reads is not taken from under his eyes, and his judgment is kept."""
    page = open_screen(lease_seconds=6)
    reading = title(page)
    Slot.objects.update(state="open", assessor=None, token=None, leased_at=None, lease_until=None)
    page.mouse.move(300, 300)
    says(page, "#late-note", "may have gone to somebody else")
    assert title(page) == reading
    judge(page, "1")
    assert page.is_hidden("#late-note")
    assert stored()[reading] == (1, "", "")


# --- cannot judge, comment, going back -----------------------------------------------------------------------------


OBSTACLES = ["unreadable", "language", "topic", "harmful", "other"]


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_cannot_judge_is_stored_with_its_reason_and_its_comment(open_screen, obstacle):
    page = open_screen(2)
    judged = title(page)
    page.keyboard.press("c")
    page.keyboard.type("See for yourself")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("x")
    page.keyboard.press(str(OBSTACLES.index(obstacle) + 1))
    says(page, "#saved", "Saved 1")
    assert stored() == {judged: (None, obstacle, "See for yourself")}


def test_escape_leaves_cannot_judge_without_a_judgment(open_screen):
    page = open_screen()
    before = title(page)
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    page.wait_for_selector("#obstacles[open]", state="detached")
    assert title(page) == before
    judge(page, "1")


def test_no_key_acts_while_typing(open_screen):
    page = open_screen()
    before = title(page)
    page.keyboard.press("c")
    page.keyboard.type("0123 xcughs? ")
    page.keyboard.press("Backspace")
    page.keyboard.press("PageDown")
    assert page.input_value("#comment") == "0123 xcughs?"
    assert title(page) == before
    assert page.query_selector("dialog[open]") is None
    assert kept(page) == []
    page.keyboard.press("Escape")
    assert page.is_hidden("#comment-panel")
    judge(page, "0")
    assert stored()[before] == (0, "", "0123 xcughs?")


def test_a_draft_comment_belongs_to_its_document_and_survives_a_reload(open_screen):
    page = open_screen()
    first = title(page)
    page.keyboard.press("c")
    page.keyboard.type("about the first")
    page.reload()
    ready(page)
    says(page, "#open-comment", "Comment added")
    judge(page, "1")
    assert page.inner_text("#comment-word") == "Comment"  # none on the next one
    page.keyboard.press("c")
    assert page.input_value("#comment") == ""
    page.keyboard.press("Escape")
    second = judge(page, "1")
    assert stored() == {first: (1, "", "about the first"), second: (1, "", "")}


def test_a_refused_judgment_gives_its_comment_back(open_screen):
    page = open_screen()
    first = title(page)
    page.keyboard.press("c")
    page.keyboard.type("not lost")
    page.keyboard.press("Escape")
    ready(page)
    answers(page, "**/judgments", problem("Invalid", 400, "The request is not valid"))
    page.keyboard.press("1")
    says(page, "#problem", "The request is not valid")
    ready(page)
    judge(page, "2")  # the next one is on the screen already; then the first comes again
    shows(page, first)
    says(page, "#open-comment", "Comment added")
    judge(page, "1")
    assert stored()[first] == (1, "", "not lost")


def test_going_back_shows_grade_and_comment_and_changes_both(open_screen):
    page = open_screen()
    first = title(page)
    page.keyboard.press("c")
    page.keyboard.type("at first")
    page.keyboard.press("Escape")
    judge(page, "1")
    page.keyboard.press("u")
    shows(page, first)
    assert "You gave 1 Relevant" in page.inner_text("#review-text")
    assert page.inner_text("#review-comment") == "Your comment: at first"
    assert page.get_attribute("button.grade[data-grade='1']", "aria-pressed") == "true"
    page.keyboard.press("c")
    page.keyboard.press("Control+a")
    page.keyboard.type("on second thoughts")
    page.keyboard.press("Escape")
    says(page, "#review-text", "Choose a grade to store the new comment")
    page.keyboard.press("x")  # from a grade to "cannot judge"
    page.keyboard.press("5")
    page.wait_for_selector("#review-note", state="hidden")
    at_rest(page)
    assert stored()[first] == (None, "other", "on second thoughts")
    page.reload()  # now the server tells what was judged
    ready(page)
    page.keyboard.press("u")
    shows(page, first)
    assert "could not judge it: Another reason" in page.inner_text("#review-text")
    assert page.inner_text("#review-comment") == "Your comment: on second thoughts"


def test_undo_of_a_judgment_that_is_still_waiting_sends_both_in_order(open_screen):
    page = open_screen()
    first = title(page)
    page.context.set_offline(True)
    page.keyboard.press("1")
    says(page, "#saved", "waiting")
    page.keyboard.press("u")
    shows(page, first)
    page.keyboard.press("2")
    assert len(kept(page)) == 2
    page.context.set_offline(False)
    says(page, "#saved", "Saved 1")
    assert list(Judgment.objects.order_by("sequence").values_list("sequence", "grade")) == [(1, 1), (2, 2)]


def test_with_nothing_to_go_back_to_undo_says_so(open_screen):
    page = open_screen()
    page.keyboard.press("u")
    says(page, "#hint", "There is no judgment of yours to go back to.")


# --- without a connection ------------------------------------------------------------------------------------------


def lose_connection(page, milliseconds: int) -> None:
    first, second = title(page), None
    page.wait_for_selector("#frame-place iframe.ahead:not(.loading)", state="attached")
    page.context.set_offline(True)
    page.keyboard.press("1")
    says(page, "#saved", "Offline: 1 waiting, will be sent")
    second = title(page)
    assert second != first  # the prefetched one can still be judged
    ready(page)
    page.keyboard.press("2")
    says(page, "#empty", "Waiting for the connection")
    says(page, "#empty", "Your 2 judgments are safe in this browser.")
    says(page, "#saved", "Offline: 2 waiting, will be sent")
    page.wait_for_timeout(milliseconds)
    says(page, "#saved", "Offline: 2 waiting, will be sent")
    assert Judgment.objects.count() == 0
    page.context.set_offline(False)
    says(page, "#saved", "Saved 2")
    ready(page)
    assert stored() == {first: (1, "", ""), second: (2, "", "")}
    assert title(page) not in (first, second)
    assert kept(page) == []
    judge(page, "0")


def test_a_lost_connection_loses_nothing_and_says_so(open_screen):
    lose_connection(open_screen(), 1500)


@pytest.mark.slow
def test_a_connection_lost_for_thirty_seconds_loses_nothing_and_says_so(open_screen):
    lose_connection(open_screen(), 30_000)


def test_a_page_closed_without_a_connection_sends_its_judgments_when_it_is_opened_again(open_screen):
    page = open_screen()
    first = title(page)
    page.route("**/judgments", lambda route: route.abort())
    page.keyboard.press("1")
    says(page, "#saved", "waiting")
    url, context = page.url, page.context
    page.close()
    again = context.new_page()
    again.goto(url)
    ready(again)
    says(again, "#saved", "Saved 1")
    assert stored() == {first: (1, "", "")}
    assert title(again) != first


def test_another_tab_that_has_judged_the_document_is_respected(open_screen):
    page = open_screen()
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    assert title(other) == title(page)
    first = judge(page, "1")
    other.keyboard.press("2")
    says(other, "#hint", "another tab")
    ready(other)
    assert stored() == {first: (1, "", "")}
    assert title(other) == title(page)


# --- time, heartbeat, break, summary, the end ----------------------------------------------------------------------


def leases() -> list:
    return list(Slot.objects.filter(state="leased").order_by("pk").values_list("token", "lease_until"))


def test_a_heartbeat_keeps_the_documents_of_whoever_is_there_and_only_of_him(open_screen):
    page = open_screen(lease_seconds=6)
    before = dict(leases())
    assert len(before) == 2
    page.wait_for_timeout(2500)
    assert dict(leases()) == before  # nobody has moved
    with page.expect_response("**/heartbeat"):
        page.mouse.move(300, 300)
        page.mouse.move(310, 310)
    after = dict(leases())
    assert after.keys() == before.keys()
    assert all(after[token] > before[token] for token in before)


def test_time_counts_while_somebody_is_there_and_not_before_and_after(open_screen):
    page = open_screen(options={"reduced_motion": "reduce"})
    page.clock.install()
    page.reload()
    ready_by_clock(page)
    page.keyboard.press("ArrowDown")
    page.clock.run_for(30_000)
    page.keyboard.press("ArrowDown")
    page.clock.run_for(600_000)  # away: a minute of it counts
    page.keyboard.press("1")
    says(page, "#saved", "Saved 1")
    assert 90_000 <= Judgment.objects.get().active_milliseconds < 95_000


def ready_by_clock(page) -> None:
    page.wait_for_selector("#judge[data-ready=true]")
    page.clock.run_for(300)


def test_the_pointer_over_the_document_means_reading_for_two_minutes(open_screen):
    page = open_screen()
    page.clock.install()
    page.reload()
    ready_by_clock(page)
    # What a browser sends its page when the pointer enters a frame of another process; Playwright's mouse skips it.
    page.dispatch_event("#frame-place iframe:not(.ahead)", "pointerover", {"bubbles": True})
    page.clock.run_for(600_000)
    page.keyboard.press("1")
    says(page, "#saved", "Saved 1")
    assert 120_000 <= Judgment.objects.get().active_milliseconds < 125_000


def test_the_break_reminder_comes_once_and_can_be_closed(open_screen):
    page = open_screen(break_minutes=1)
    page.clock.install()
    page.reload()
    ready_by_clock(page)
    page.clock.run_for(40_000)
    page.keyboard.press("ArrowDown")
    assert page.is_hidden("#break-note")
    page.clock.run_for(40_000)
    says(page, "#break-note", "You have judged for 1 minute.")
    page.click("#break-close")
    page.clock.run_for(40_000)
    page.keyboard.press("ArrowDown")
    page.clock.run_for(60_000)
    assert page.is_hidden("#break-note")


def test_without_break_minutes_nobody_is_reminded(open_screen):
    page = open_screen(break_minutes=0)
    page.clock.install()
    page.reload()
    ready_by_clock(page)
    for _ in range(100):
        page.keyboard.press("ArrowDown")
        page.clock.run_for(50_000)
    assert page.is_hidden("#break-note")


def test_the_summary_tells_the_session_and_stop_goes_home(open_screen):
    page = open_screen()
    page.clock.install()
    page.reload()
    for seconds in (10, 20, 50):
        ready_by_clock(page)
        page.clock.run_for(seconds * 1000)
        before = title(page)
        page.keyboard.press("1")
        page.wait_for_function(
            "before => document.querySelector('#document-title').innerText !== before", arg=before
        )
    page.keyboard.press("s")
    facts = page.inner_text("#summary-facts").split("\n")
    told = dict(zip(facts[::2], facts[1::2], strict=True))
    assert told["Judged in this session"] == "3"
    assert told["Active time"] == "1 minute"
    assert told["Usual time for one"] == "20 seconds"
    page.click("#summary a.button")
    page.wait_for_url("**/judge/")


def test_when_work_runs_out_the_summary_is_shown(open_screen):
    page = open_screen(1)
    page.keyboard.press("2")
    says(page, "#empty", "No more work for you right now")
    says(page, "#empty-facts", "Judged in this session")
    assert page.is_visible("#empty-retry")
    assert page.is_hidden("#completion")
    assert page.get_attribute("button.grade", "aria-disabled") == "true"
    page.keyboard.press("1")
    at_rest(page)
    assert Judgment.objects.count() == 1


def test_when_the_quota_is_reached_the_share_is_done(open_screen):
    page = open_screen(6, quota=2)
    judge(page, "1")
    assert page.inner_text("#progress-text") == "1 of 2 judged"
    page.keyboard.press("1")
    says(page, "#empty", "That was your share")
    assert page.is_hidden("#empty-retry")
    at_rest(page)
    assert Judgment.objects.count() == 2


def test_a_participant_of_a_market_is_led_to_the_completion_code(open_screen):
    page = open_screen(6, quota=1)
    Participant.objects.create(campaign=Campaign.objects.get(), assessor=Assessor.objects.get())
    page.reload()
    ready(page)
    page.keyboard.press("1")
    says(page, "#empty", "That was your share")
    says(page, "#completion", "completion code")
    assert page.get_attribute("#completion", "href").startswith("/")


# --- everybody: touch, small screens, accessibility ----------------------------------------------------------------


def fits(page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_the_whole_screen_by_touch_at_360_pixels(open_screen):
    page = open_screen(8, LONG, guidelines="Judge *kindly*.", options=PHONE)
    fits(page)
    for button in page.locator("button.grade").all():
        assert button.bounding_box()["height"] >= 44
    first = title(page)
    page.tap("#open-comment")
    page.fill("#comment", "by thumb")
    fits(page)
    page.tap("#comment-close")
    page.tap("button.grade[data-grade='1']")
    says(page, "#saved", "Saved 1")
    ready(page)

    second = title(page)
    page.tap("#open-obstacles")
    for button in page.locator("#obstacle-list button").all():
        assert button.bounding_box()["height"] >= 44
    page.tap("#obstacle-list button >> nth=1")
    says(page, "#saved", "Saved 2")
    ready(page)

    page.tap("#topic-more summary")
    assert page.is_visible("#topic-narrative")
    fits(page)
    page.tap("#topic-more summary")
    for opener, dialog in (("#open-guidelines", "#guidelines"), ("#open-summary", "#summary")):
        page.tap(opener)
        page.wait_for_selector(f"{dialog}[open]")
        fits(page)
        page.tap(f"{dialog} .dialog-head [data-close]")

    page.tap("#undo")
    shows(page, second)
    assert "could not judge it" in page.inner_text("#review-note")
    fits(page)
    page.tap("#undo")
    shows(page, first)
    page.tap("button.grade[data-grade='2']")
    page.wait_for_selector("#review-note", state="hidden")
    at_rest(page)
    assert stored() == {first: (2, "", "by thumb"), second: (None, "language", "")}


def test_a_double_tap_judges_once(open_screen):
    page = open_screen(options=PHONE)
    box = page.locator("button.grade[data-grade='1']").bounding_box()
    for _ in range(2):
        page.touchscreen.tap(box["x"] + 20, box["y"] + 20)
    says(page, "#saved", "Saved 1")
    at_rest(page)
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize("size", [(360, 740), (740, 360), (320, 568)], ids=str)
def test_topic_and_grades_are_always_in_reach(open_screen, size):
    width, height = size
    page = open_screen(text=LONG, options={**PHONE, "viewport": {"width": width, "height": height}})
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    for selector in ("#topic-title", "button.grade[data-grade='0']", "button.grade[data-grade='2']"):
        box = page.locator(selector).bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height
    fits(page)


def violations(page) -> list[str]:
    found = page.evaluate("() => axe.run(document, { iframes: false })")["violations"]
    return [f"{one['id']}: {node['target']}" for one in found for node in one["nodes"]]


STATES = {
    "judging": [],
    "comment": ["c"],
    "commented": ["c", "q", "Escape"],
    "cannot judge": ["x"],
    "guidelines": ["g"],
    "help": ["?"],
    "summary": ["s"],
    "no such grade": ["7"],
    "going back": ["1", "u"],
}


WIDE_LIGHT = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
NARROW_DARK = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}


@pytest.mark.parametrize("options", [WIDE_LIGHT, NARROW_DARK], ids=["wide and light", "narrow and dark"])
def test_axe_finds_nothing_in_any_state_of_the_screen(open_screen, options):
    options = {**options, "bypass_csp": True, "reduced_motion": "reduce"}
    page = open_screen(40, LONG, options=options, guidelines="# Title\n\n* one\n")
    found = {}
    for state, keys in STATES.items():
        page.reload()
        ready(page)
        page.evaluate(AXE)
        for key in keys:
            page.keyboard.press(key)
            page.wait_for_timeout(300)
        found[state] = violations(page)
        page.evaluate("sessionStorage.clear()")
    for state, selector in (("break", "#break-note"), ("late", "#late-note")):
        page.eval_on_selector(selector, "note => { note.hidden = false; }")
        found[state] = violations(page)
    page.keyboard.press("Escape")
    ready(page)
    answers(page, "**/judgments", problem("Invalid", 400, "The request is not valid", "grade: no number"))
    page.keyboard.press("1")
    says(page, "#problem", "not valid")
    found["problem"] = violations(page)
    page.context.set_offline(True)
    for _ in range(2):
        ready(page)
        page.keyboard.press("1")
    says(page, "#empty", "Waiting for the connection")
    found["offline"] = violations(page)
    page.context.set_offline(False)
    says(page, "#saved", "Saved")
    assert {state: those for state, those in found.items() if those} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_when_work_has_run_out(open_screen, scheme):
    page = open_screen(1, options={"color_scheme": scheme, "bypass_csp": True})
    page.evaluate(AXE)
    page.keyboard.press("1")
    says(page, "#empty", "No more work")
    assert violations(page) == []


def test_axe_is_at_work(open_screen):
    """The check of the check: a button without a name is found."""
    page = open_screen(options={"bypass_csp": True})
    page.evaluate(AXE)
    page.evaluate("document.querySelector('#judge').append(document.createElement('button'))")
    assert any(one.startswith("button-name") for one in violations(page))
