"""In a real browser: how many clicks and fields a manager needs to see work, and to put right what stands still.

Every journey begins on the campaign's overview, unless it says otherwise.
"""

import csv
import re
import uuid
from pathlib import Path

import browser
import pytest
from browser import page_of, says
from hands import Hands
from quick_flush import unguarded
from small_campaign import give, lease, make_assessor, make_campaign, slots

from analytics.services.recomputation import recompute
from judging.models import Adjudication, Assessor, Campaign, Judgment, Message, Participant
from judging.services.assign import claim, submit
from judging.services.campaigns import set_assessor_rules, set_topic_teams
from judging.services.places_left import compute_places_left
from touchstone.models import User

pytestmark = browser.MARKS
SLOW, QUICK = 7300, 900  # milliseconds


@pytest.fixture(scope="module")
def chromium():
    yield from browser.chromium()


@pytest.fixture
def web(child_environment):
    yield from browser.web(child_environment)


@pytest.fixture
def campaign(transactional_db, tmp_path) -> Campaign:
    return make_campaign(tmp_path, budget=12)


@pytest.fixture
def page(chromium, web, campaign):
    """The campaign's overview, as a manager sees it when a test opens it."""
    mia = User.objects.create(username="mia", role="manager")
    with page_of(chromium, web, mia, viewport={"width": 1440, "height": 900}) as opened:
        yield opened


def begin(page, web: str, campaign: Campaign) -> Hands:
    page.goto(f"{web}/manage/campaigns/{campaign.pk}/")
    return Hands(page)


def answer(assessor: Assessor, slot, grade: int | None, milliseconds: int = SLOW, **more: str) -> Judgment:
    token = lease(assessor, slot)
    submit(
        assessor=assessor,
        token=token,
        client_token=uuid.uuid4(),
        grade=grade,
        active_milliseconds=milliseconds,
        **more,
    )
    return Judgment.objects.filter(assessor=assessor).latest("id")


# -- a crowd study --------------------------------------------------------------------------------------------


@pytest.fixture
def study(campaign) -> Campaign:
    """Two participants of a market; the first judged two documents, one of them with a comment."""
    Campaign.objects.filter(pk=campaign.pk).update(entry=Campaign.Entry.STUDY, completion_code="C1")
    first, second = make_assessor(campaign, "calm-river-1001"), make_assessor(campaign, "bold-lake-1002")
    for number, person in enumerate((first, second)):
        Participant.objects.create(campaign=campaign, assessor=person, participant=f"worker {number}")
    wanted = slots(campaign)
    answer(first, wanted[0], 2, comment="names the year")
    answer(second, wanted[1], 0)
    answer(first, wanted[2], 1, QUICK)
    recompute(campaign=campaign)
    return campaign


def test_a_participants_judgments_with_times_take_two_clicks(page, web, study):
    hands = begin(page, web, study)
    hands.click("a:has-text('2 active assessors')")
    hands.click("a[aria-label='The judgments of calm-river-1001']")
    says(page, "h1", "Judgments")
    rows = page.locator("main tbody tr").all_inner_texts()
    assert len(rows) == 2
    newest, oldest = (row.split("\t") for row in rows)
    assert (newest[4], newest[5]) == ("1", "0.9")
    assert (oldest[4], oldest[5], oldest[7]) == ("2", "7.3", "names the year")
    assert page.locator("main tbody th a[href*='/items/']").count() == 2  # the documents
    hands.took(clicks=2, fields=0)


def test_all_judgments_as_a_file_take_three_clicks(page, web, study, tmp_path):
    hands = begin(page, web, study)
    hands.click("nav.page-tabs >> text=Items")
    hands.click("nav.sub-tabs >> text=Judgments")
    with page.expect_download() as sent:
        hands.click("text=All as CSV")
    file = Path(tmp_path / "judgments.csv")
    sent.value.save_as(file)
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3
    assert sorted(row["assessor"] for row in rows) == ["bold-lake-1002", "calm-river-1001", "calm-river-1001"]
    assert {row["comment"] for row in rows} == {"", "names the year"}
    hands.took(clicks=3, fields=0)


# -- the topic is unclear -------------------------------------------------------------------------------------


def test_a_document_given_back_because_its_topic_is_unclear_is_answered_in_three_clicks(page, web, campaign):
    bob = make_assessor(campaign, "bob")
    given = answer(bob, slots(campaign)[0], None, obstacle="topic", comment="which year is meant?")
    hands = begin(page, web, campaign)
    hands.click("text=What could not be judged")
    assert "The topic is unclear" in page.inner_text("main tbody")
    hands.click("main tbody th a")
    assert page.query_selector("iframe.document-frame")  # the document
    history = page.inner_text("section[aria-labelledby=history]")
    assert "Given back: The topic is unclear" in history
    assert "which year is meant?" in history
    hands.fill("#message", "The year of the article.")
    hands.click("form:has(#message) button")
    says(page, ".messages", "Sent: bob will see it")
    says(page, ".thread", "The year of the article.")
    hands.took(clicks=3, fields=1)
    told = Message.objects.get()
    assert (told.assessor, told.item_id) == (bob, given.item_id)


def test_an_answer_to_what_a_manager_wrote_goes_on_in_its_thread(page, web, campaign):
    bob = make_assessor(campaign, "bob")
    given = answer(bob, slots(campaign)[0], None, obstacle="topic")
    page.goto(f"{web}/manage/campaigns/{campaign.pk}/items/{given.item_id}/")
    page.fill("#message", "The year of the article.")
    page.click("form:has(#message) button")
    page.fill(".thread textarea", "Not that of the book.")
    page.click(".thread button.primary")
    says(page, ".thread", "Not that of the book.")
    first, second = Message.objects.order_by("id")
    assert (second.thread, second.item_id) == (first, first.item_id)


# -- what is stuck --------------------------------------------------------------------------------------------


def test_a_stuck_campaign_is_one_click_from_an_invitation_that_cures_it(page, web, chromium, campaign):
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    wanted = slots(campaign)
    for person, back in ((bob, wanted[0]), (dora, wanted[3])):
        answer(person, back, None, obstacle="topic")
    for person in (bob, dora):
        judge_what_comes(person)
    assert claim(assessor=bob).reason == claim(assessor=dora).reason == "no work"
    compute_places_left(campaign=campaign)
    hands = begin(page, web, campaign)
    says(page, ".needs", "2 items cannot be finished.")
    hands.click("text=Invite one person")
    says(page, ".messages", "One person can join by this link")
    says(page, ".needs", "2 items cannot be finished.")  # nobody has come yet
    hands.took(clicks=3, fields=1)
    link = re.search(r"http://\S+/join/\S+", page.inner_text(".messages"))[0]
    join(chromium, link)
    compute_places_left(campaign=campaign)
    page.reload()
    assert "cannot be finished" not in page.inner_text("main")
    judge_what_comes(Assessor.objects.get(campaign=campaign, user__username="eva"))
    assert not campaign.slots.exclude(state="done").exists()


def judge_what_comes(assessor: Assessor) -> None:
    while (held := claim(assessor=assessor).item) is not None:
        submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=1)


def join(chromium, link: str) -> None:
    """Come in as a stranger: an account, and the campaign."""
    context = chromium.new_context()
    try:
        stranger = context.new_page()
        stranger.goto(link)
        stranger.fill("[name=username]", "eva")
        stranger.fill("[name=password]", "sunny-reef-3141")
        stranger.fill("[name=repeated]", "sunny-reef-3141")
        stranger.click("button.primary")
        stranger.wait_for_url("**/judge/**")
    finally:
        context.close()


def test_a_quota_that_holds_items_up_is_raised_in_three_clicks(page, web, campaign):
    with unguarded(["judging_slot"]):
        campaign.slots.filter(number=2).delete()
    Campaign.objects.filter(pk=campaign.pk).update(judgments_per_item=1)
    bob = make_assessor(campaign, "bob")
    set_assessor_rules(assessor=bob, team="", quota=1, first_topics=[], actor=None)
    give(bob, slots(campaign)[0], 1)
    left = compute_places_left(campaign=campaign)
    assert left.wanted > left.possible == 0
    hands = begin(page, web, campaign)
    hands.click("text=Raise a quota")
    hands.click("tbody a:text-is('bob')")
    hands.fill("[name=quota]", "100")
    hands.click("text=Save the rules")
    says(page, ".messages", f"{left.n_stuck} item")
    says(page, ".messages", "could not be finished")
    hands.took(clicks=3, fields=1)
    cured = compute_places_left(campaign=campaign)
    assert cured.wanted == cured.possible


def test_a_topic_that_waits_for_its_team_is_opened_in_two_clicks(page, web, campaign):
    for name in ("bob", "dora"):
        make_assessor(campaign, name)
    topic = campaign.items.first().topic
    set_topic_teams(campaign=campaign, teams={topic.pk: "night"}, actor=None)
    left = compute_places_left(campaign=campaign)
    hands = begin(page, web, campaign)
    hands.click("text=Open topics to other teams")
    hands.fill(f"tr:has-text('{topic.topic_id}') td.team input", "")
    hands.click("text=Save the teams")
    says(page, ".messages", f"{left.n_stuck} item")
    hands.took(clicks=3, fields=1)
    cured = compute_places_left(campaign=campaign)
    assert cured.wanted == cured.possible


# -- a decision -----------------------------------------------------------------------------------------------


@pytest.fixture
def in_question(campaign) -> Campaign:
    """Bob and Dora are three grades apart on one document, and agree on the next."""
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    first, second, third, fourth = slots(campaign)[:4]
    for person, slot, grade in ((bob, first, 0), (dora, second, 3), (bob, third, 1), (dora, fourth, 1)):
        give(person, slot, grade)
    recompute(campaign=campaign)
    return campaign


def decide(page, web, campaign) -> None:
    page.goto(f"{web}/manage/campaigns/{campaign.pk}/adjudication/")
    page.click("form.decide button[name=grade][value='2']")
    says(page, ".notice.ok", "Grade 2 stands")


def test_a_decision_is_undone_at_once_by_one_click(page, web, in_question):
    decide(page, web, in_question)
    hands = Hands(page)
    hands.click(".notice.ok button:text-is('Undo')")
    says(page, ".notice.ok", "is taken back")
    hands.took(clicks=1, fields=0)
    assert words_of(page) == ["taken back", "2 Relevant"]
    assert [one.verdict for one in Adjudication.objects.order_by("id")] == ["decided", "withdrawn"]


def test_a_decision_of_yesterday_is_undone_in_four_clicks(page, web, in_question):
    decide(page, web, in_question)
    hands = begin(page, web, in_question)
    hands.click("nav.page-tabs >> text=Items")
    hands.click("nav.sub-tabs >> text=Adjudication")
    assert page.query_selector(".notice.ok") is None  # the notice of the moment is gone
    hands.click("section[aria-labelledby=decided] button")
    says(page, ".notice.ok", "is taken back")
    assert words_of(page) == ["taken back", "2 Relevant"]
    hands.took(clicks=4, fields=0)
    page.click("section[aria-labelledby=decided] th a")
    history = page.inner_text("section[aria-labelledby=history]")
    assert history.index("Decided: 2 Relevant") < history.index("Decision taken back")


def words_of(page) -> list[str]:
    """What was decided, the newest first."""
    return page.locator("section[aria-labelledby=decided] tbody td:nth-of-type(2)").all_inner_texts()


# -- three questions ------------------------------------------------------------------------------------------


def test_the_items_of_a_topic_on_which_judges_differ(page, web, in_question):
    item = slots(in_question)[0].item
    hands = begin(page, web, in_question)
    hands.click("nav.page-tabs >> text=Items")
    hands.click("summary:text-is('Filter')")
    hands.fill("#f_topic_id", item.topic.topic_id)
    hands.fill("#f_spread", "1")
    hands.click("form.filters button")
    page.wait_for_url("**spread=1**")
    rows = page.locator("main tbody tr")
    assert rows.count() == 1
    assert item.document.doc_id in rows.inner_text()
    assert "0, 3" in rows.inner_text()
    hands.took(clicks=3, fields=2)


def test_the_judgments_of_one_person_that_took_less_than_two_seconds(page, web, study):
    hands = begin(page, web, study)
    hands.click("a:has-text('2 active assessors')")
    hands.click("a[aria-label='The judgments of calm-river-1001']")
    hands.fill("#f_seconds_below", "2")
    hands.click("form.filters button")
    page.wait_for_url("**seconds_below=2**")
    rows = page.locator("main tbody tr")
    assert rows.count() == 1, page.inner_text("main")
    assert "0.9" in rows.inner_text()
    hands.took(clicks=3, fields=1)


def test_the_document_behind_a_comment(page, web, study):
    item = slots(study)[0].item
    hands = begin(page, web, study)
    hands.click("nav.page-tabs >> text=People")
    hands.click("nav.sub-tabs >> text=What assessors say")
    hands.click("tr:has-text('names the year') a[href*='/items/']")
    says(page, "h1", item.document.doc_id)
    frame = page.frame_locator("iframe.document-frame")
    assert f"Text of {item.document.doc_id}" in frame.locator("body").inner_text()
    hands.took(clicks=3, fields=0)
