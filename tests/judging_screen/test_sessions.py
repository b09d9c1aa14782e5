"""The judging screen in a real Chromium: time, heartbeat, breaks, the end."""

import browser
from browser import at_rest, judge, ready, says, title

from judging.models import Assessor, Campaign, Judgment, Participant, Slot

pytestmark = browser.MARKS


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
    # The clock of the page goes on between the steps: on a busy machine the second of them takes half a second more.
    assert told["Usual time per document"] in ("20 seconds", "21 seconds")
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
