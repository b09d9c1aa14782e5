"""The judging journey in a real Chromium in each language, and once from right to left."""

import json
from pathlib import Path

import browser
import pytest
from bracketed import CODE
from browser import at_rest, ready
from django.conf import settings
from screen_faults import faults

from judging.models import Judgment

pytestmark = browser.MARKS
WIDE_LIGHT = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
NARROW_DARK = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
SCRIPTS = Path(__file__).parents[2] / "judging/static/judging"
LANGUAGES = [code for code, _ in settings.LANGUAGES]


@pytest.mark.parametrize("options", [WIDE_LIGHT, NARROW_DARK], ids=["wide and light", "narrow and dark"])
@pytest.mark.parametrize("code", [*LANGUAGES, CODE])
def test_the_judging_journey_in_each_language(open_screen, web, code, options):
    page = open_screen(code, 4, options, quota=3, break_minutes=1)
    assert page.get_attribute("html", "lang") == code
    assert page.get_attribute("html", "dir") == ("rtl" if code == CODE else "ltr")
    found = faults(page, f"{code} {options['color_scheme']} screen")
    for key in ("x", "g", "?", "s"):
        page.keyboard.press(key)
        page.wait_for_selector("dialog[open]")
        found += faults(page, f"{code} {options['color_scheme']} dialog {key}")
        page.keyboard.press("Escape")
    page.click(".languages summary")
    found += faults(page, f"{code} {options['color_scheme']} choice of a language")
    page.click(".languages summary")
    page.keyboard.press("c")
    page.keyboard.type("12")
    found += faults(page, f"{code} {options['color_scheme']} comment")
    page.keyboard.press("Escape")
    for number in range(3):
        ready(page)
        page.keyboard.press("1")
        if number == 0:
            ready(page)
            page.keyboard.press("u")
            page.wait_for_selector("#review-note", state="visible")
            found += faults(page, f"{code} {options['color_scheme']} going back")
            page.keyboard.press("Escape")
            page.wait_for_timeout(250)
    page.wait_for_selector("#empty-end", state="visible")
    at_rest(page)
    found += faults(page, f"{code} {options['color_scheme']} end")
    page.goto(f"{web}/judge/")
    found += faults(page, f"{code} {options['color_scheme']} home")
    assert found == []
    assert Judgment.objects.count() == 3


@pytest.mark.parametrize("code", LANGUAGES)
def test_numbers_take_the_form_of_the_language(open_screen, code):
    page = open_screen(code)
    said = {
        n: page.evaluate(f"touchstone.count('seconds', {n})") for n in (0, 1, 1.5, 2, 5, 21, 100, 1_000_000)
    }
    forms = {
        "en": {
            1: "1 second",
            2: "2 seconds",
            1.5: "1.5 seconds",
            21: "21 seconds",
            1_000_000: "1000000 seconds",
        },
        "es": {1: "1 segundo", 2: "2 segundos", 1.5: "1,5 segundos", 1_000_000: "1000000 segundos"},
        "de": {1: "1 Sekunde", 2: "2 Sekunden", 1.5: "1,5 Sekunden", 0: "0 Sekunden"},
        "zh-hans": {1: "1 秒", 2: "2 秒", 1.5: "1.5 秒", 100: "100 秒"},
    }
    assert {n: said[n] for n in forms[code]} == forms[code]


def test_forms_are_found_by_their_category_in_a_language_with_many(open_screen):
    """Russian has three forms: 21 takes that of 1, 12 that of 5. The texts are planted, the rules the browser's."""
    page = open_screen("en")
    texts = json.loads(page.text_content("#judge-texts"))
    form_of = [0 if n % 10 == 1 and n % 100 != 11 else 1 if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else 2
               for n in range(111)]  # fmt: skip
    texts |= {"language": "ru", "form_of": form_of, "forms": [{"saved": f"%(n)s {form}"} for form in "абв"]}
    script = (SCRIPTS / "texts.js").read_text().replace("const touchstone", "window.planted")
    page.evaluate(
        "([texts, script]) => { document.getElementById('judge-texts').textContent = JSON.stringify(texts);"
        " const one = document.createElement('script'); one.textContent = script; document.body.append(one); }",
        [texts, script],
    )
    said = page.evaluate("[1, 21, 121, 3, 104, 5, 12, 1000].map((n) => window.planted.count('saved', n))")
    assert said == ["1 а", "21 а", "121 а", "3 б", "104 б", "5 в", "12 в", "1000 в"]


def test_the_choice_of_a_language_keeps_the_document_and_the_judgments_that_wait(open_screen):
    page = open_screen("en")
    first = browser.title(page)
    page.context.set_offline(True)
    page.keyboard.press("1")
    ready(page)
    second = browser.title(page)
    page.context.set_offline(False)
    page.click(".languages summary")
    page.click(".languages button[value=de]")
    ready(page)
    assert page.get_attribute("html", "lang") == "de"
    browser.says(page, "#saved", "1 gespeichert")
    assert (first != second, browser.title(page)) == (True, second)
