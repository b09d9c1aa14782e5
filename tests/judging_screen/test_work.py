"""The judging screen in a real Chromium: comments, going back, without a connection."""

import browser
import pytest
from browser import answers, at_rest, judge, kept, problem, ready, says, shows, title
from screen import stored

from judging.models import Judgment

pytestmark = browser.MARKS


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
