"""The judging screen in a real Chromium: by touch, on small screens, for all."""

from pathlib import Path

import axe_playwright_python
import browser
import pytest
from browser import answers, at_rest, problem, ready, says, shows, title
from screen import LONG, stored

from judging.models import Judgment

pytestmark = browser.MARKS

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


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
    found = page.evaluate("() => axe.run(document, { iframes: false, resultTypes: ['violations'] })")[
        "violations"
    ]
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
