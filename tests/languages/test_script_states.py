"""What the scripts of the judging screen say, state by state: nothing is outside the brackets of the catalogue."""

import re
from contextlib import suppress
from pathlib import Path

import browser
import pytest
from bracketed import ATTRIBUTES, CODE, TEXTS_IN_BROWSER, outside
from browser import answers, at_rest, problem, ready
from playwright.sync_api import Error

from judging.models import Campaign, Judgment, Slot
from judging.services import messages
from touchstone.models import User

pytestmark = browser.MARKS
SCRIPTS = Path(__file__).parents[2] / "judging/static/judging"


def raw_words(page) -> list[str]:
    return outside(page.evaluate(TEXTS_IN_BROWSER, sorted(ATTRIBUTES)))


def seen(page, selector: str, *others: str) -> None:
    """Wait until a part of the screen says something, and check that all of it is in brackets."""
    page.wait_for_function(
        "selector => { const one = document.querySelector(selector);"
        " return one && one.checkVisibility() && one.textContent.includes('⟦'); }",
        arg=selector,
    )
    assert raw_words(page) == [], selector


def press_once(page, key: str) -> None:
    """Press the key until it reaches the page, which must act on the first: a starved browser may not deliver each."""
    page.evaluate(
        "addEventListener('keydown', () => { window.hasKey = true; }, { capture: true, once: true })"
    )
    for _ in range(10):
        page.keyboard.press(key)
        with suppress(Error):
            page.wait_for_function("window.hasKey === true", timeout=2000)
            return


def test_a_planted_raw_word_of_a_script_is_found(open_screen):
    page = open_screen(CODE)
    assert raw_words(page) == []
    page.evaluate("document.getElementById('saved').textContent = 'Saved 3'")
    assert len(raw_words(page)) == 1
    page.reload()
    ready(page)
    page.evaluate("document.getElementById('undo').title = 'Undo'")
    assert len(raw_words(page)) == 1


def test_what_the_screen_says_while_one_judges(open_screen):
    page = open_screen(CODE, guidelines="")
    assert raw_words(page) == []
    for key, part in (("x", "#obstacles"), ("g", "#guidelines"), ("?", "#help"), ("s", "#summary-facts")):
        page.keyboard.press(key)
        seen(page, part)
        page.keyboard.press("Escape")
    page.keyboard.press("7")
    seen(page, "#hint")
    page.keyboard.press("u")
    seen(page, "#hint")
    for _ in range(2):
        page.keyboard.press("h")
        page.wait_for_function("document.getElementById('announce').textContent.includes('⟦')")
        assert raw_words(page) == []
    page.keyboard.press("c")
    page.keyboard.type("12")
    page.keyboard.press("Escape")
    seen(page, "#comment-word")
    ready(page)
    page.keyboard.press("1")
    seen(page, "#saved")
    seen(page, "#progress-text")
    ready(page)
    page.keyboard.press("x")
    page.keyboard.press("1")
    ready(page)
    at_rest(page)
    page.keyboard.press("u")
    seen(page, "#review-text")  # could not judge it
    page.keyboard.press("u")
    seen(page, "#review-comment")  # gave a grade, with a comment
    page.keyboard.press("c")
    page.keyboard.type("3")
    page.keyboard.press("Escape")
    seen(page, "#review-text")  # choose a grade for the comment
    page.keyboard.press("u")
    seen(page, "#hint")  # nothing further back
    page.keyboard.press("s")
    seen(page, "#summary-facts")


def test_what_the_screen_says_about_the_connection(open_screen):
    page = open_screen(CODE)
    page.context.set_offline(True)
    for _ in range(2):
        ready(page)
        page.keyboard.press("1")
        seen(page, "#saved")
    seen(page, "#empty-title")
    seen(page, "#empty-text")
    page.keyboard.press("s")
    seen(page, "#summary-facts")  # still to be sent
    page.keyboard.press("Escape")
    page.context.set_offline(False)
    ready(page)
    answers(page, "**/judgments", problem("Unavailable", 503, "The database cannot answer now"), times=2)
    for _ in range(2):
        page.keyboard.press("1")
        seen(page, "#saved")
        page.wait_for_timeout(250)
    seen(page, "#empty-title")
    page.unroute_all()
    held = []
    ready(page)
    page.route("**/judgments", lambda route: held.append(route))
    page.keyboard.press("1")
    seen(page, "#saved")  # saving
    page.wait_for_timeout(4200)
    seen(page, "#saved")  # still saving
    for route in held:
        route.continue_()


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("Invalid", 400),
        ("GradeOffScale", 400),
        ("AlreadyJudged", 409),
        ("TokenReused", 409),
        ("LeaseUnknown", 404),
        ("AssessorSuspended", 403),
        ("NotAnAssessor", 404),
        ("NotFound", 404),
        ("Forbidden", 403),
        ("NotAuthenticated", 401),
        ("SomethingElse", 418),
        ("", 405),
    ],
)
def test_what_the_screen_says_about_a_problem(open_screen, name, status):
    page = open_screen(CODE)
    answers(page, "**/judgments", problem(name, status, "An English title", "An English detail"))
    press_once(page, "1")
    seen(page, "#problem")


def test_what_the_screen_says_of_judgments_set_aside(open_screen):
    page = open_screen(CODE)
    answers(page, "**/judgments", problem("Fault", 500, "An English title"), times=3)
    press_once(page, "1")
    seen(page, "#problem")
    page.reload()
    seen(page, "#problem")


REFUSALS = {
    "CampaignNotOpen": {"state": Campaign.State.CLOSED},
    "ConsentMissing": {"consent": "1 2 3"},
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_screen_says_when_the_campaign_ends_it(open_screen, name):
    """The answer to a judgment has the English title alone: the screen asks for the type, and has its own sentence."""
    page = open_screen(CODE)
    Campaign.objects.update(**REFUSALS[name])
    page.keyboard.press("1")
    seen(page, "#empty-title")
    assert page.is_visible("#empty-facts")
    assert Judgment.objects.count() == 1
    Campaign.objects.update(state=Campaign.State.OPEN, consent="")
    page.click("#empty-retry")
    ready(page)  # it goes on where it ended


def test_what_the_screen_says_at_the_end_of_the_work(open_screen):
    page = open_screen(CODE, 1)
    page.keyboard.press("1")
    seen(page, "#empty-facts")
    page.click("#empty-retry")
    seen(page, "#empty-title")


def test_what_the_screen_says_when_the_share_is_done(open_screen):
    page = open_screen(CODE, 3, quota=1)
    page.keyboard.press("1")
    seen(page, "#empty-text")


def test_what_the_screen_says_of_a_document_that_went_to_somebody_else(open_screen):
    page = open_screen(CODE, lease_seconds=6)
    Slot.objects.update(state="open", assessor=None, token=None, leased_at=None, lease_until=None)
    page.mouse.move(1200, 300)  # beside the document, which stands on the left here
    seen(page, "#late-note")
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    other.close()


def test_what_the_screen_says_of_another_tab_and_of_a_break(open_screen):
    page = open_screen(CODE, break_minutes=1)
    other = page.context.new_page()
    other.goto(page.url)
    ready(other)
    page.keyboard.press("1")
    seen(page, "#saved")
    at_rest(page)
    other.keyboard.press("2")
    seen(other, "#hint")
    other.close()
    page.clock.install()
    page.reload()
    page.wait_for_selector("#judge[data-ready=true]")
    page.clock.run_for(300)
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        page.clock.run_for(40_000)
    seen(page, "#break-text")


def test_a_managers_message_is_data_and_its_frame_is_not(open_screen):
    page = open_screen(CODE)
    mia = User.objects.create(username="99", role=User.Role.MANAGER)
    messages.send(assessor=Campaign.objects.get().assessors.get(), text="1 2 3", sender=mia)
    page.reload()
    ready(page)
    seen(page, ".letters-in")


def test_no_sentence_stands_in_a_script():
    """Whatever a script says comes from the page: two words in a row are a sentence, or look like one."""
    found = []
    for path in sorted(SCRIPTS.glob("*.js")):
        code = re.sub(r"^\s*//.*$|/\*.*?\*/|\s//\s.*$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        found += [f"{path.name}: {text}" for text in sentences(code)]
    assert found == []


def sentences(code: str) -> list[str]:
    """Return literals that are set on the screen as they stand, or hold a capital letter and then another word."""
    literals = [match[1] for match in re.finditer(r"""(?<![\w])["'`]([^"'`\n]*)["'`]""", code)]
    return [text for text in literals if re.search(r"[A-Z][a-z]+[ .,:…]+\w|^[A-Z][a-z]+(?: [a-z]+)+", text)]


def test_a_planted_sentence_in_a_script_is_found():
    assert sentences('byId("a").textContent = "No connection today";') == ["No connection today"]
    assert sentences('touchstone.say("no connection");') == []
