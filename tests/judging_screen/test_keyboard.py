"""The judging screen in a real Chromium: by keyboard, with the next document fetched beforehand."""

import browser
import pytest
from browser import at_rest, judge, kept, ready, says, shows, title
from screen import LONG, stored

from judging.models import Judgment, Slot

pytestmark = browser.MARKS


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
    """Its lease is gone; the document stays on the screen of the assessor who reads it, and their judgment is kept."""
    page = open_screen(lease_seconds=6)
    reading = title(page)
    Slot.objects.update(state="open", assessor=None, token=None, leased_at=None, lease_until=None)
    page.mouse.move(300, 300)
    says(page, "#late-note", "may have gone to somebody else")
    assert title(page) == reading
    judge(page, "1")
    assert page.is_hidden("#late-note")
    assert stored()[reading] == (1, "", "")
