"""The judging screen in a real Chromium: what it promises about judgments."""

import uuid

import browser
from browser import judge, ready
from outbox import begin

from judging.models import Judgment

pytestmark = browser.MARKS


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
    frame = page.frame_locator("#frame-place iframe:not(.ahead)")
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
