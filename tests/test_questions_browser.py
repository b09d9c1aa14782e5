"""In a real browser: an assessor asks on the judging screen, a manager answers, the answer comes to the screen."""

import browser
import pytest
from browser import judge, page_of, ready, says
from job_kinds import until

from judging.models import Judgment, Message
from touchstone.models import User

pytestmark = browser.MARKS
MOST_CLICKS, MOST_FIELDS = 3, 1


@pytest.fixture(scope="module")
def chromium():
    yield from browser.chromium()


@pytest.fixture
def web(child_environment):
    yield from browser.web(child_environment)


class Hands:
    """Clicks and fields, counted: a click is an activation, a field a control that is set."""

    def __init__(self, page):
        self.page, self.clicks, self.fields = page, 0, 0

    def click(self, selector):
        self.clicks += 1
        self.page.click(selector)

    def fill(self, selector, text):
        self.fields += 1
        self.page.fill(selector, text)


def test_a_question_is_asked_by_keyboard_answered_in_three_clicks_and_comes_back(
    chromium, web, transactional_db
):
    campaign = browser.make_campaign(4, guidelines="Judge.")
    bob = browser.make_assessor(campaign)
    alice = User.objects.create(username="alice", role="manager")
    with page_of(chromium, web, bob.user) as screen:
        screen.goto(f"{web}/judge/{campaign.pk}/")
        ready(screen)
        screen.keyboard.press("a")
        screen.wait_for_selector("#ask[open]")
        screen.keyboard.type("Is topic 0 unclear? 1 2 u x c")  # no key acts while typing
        screen.keyboard.press("Tab")
        screen.keyboard.press("Tab")
        screen.keyboard.press("Enter")
        says(screen, "#ask-said", "Sent. The answer will appear here.")
        asked = Message.objects.get()
        assert (asked.text, asked.item is not None) == ("Is topic 0 unclear? 1 2 u x c", True)
        assert not Judgment.objects.exists()
        screen.keyboard.press("Escape")
        assert not screen.query_selector("#ask[open]")

        with page_of(chromium, web, alice) as page:
            page.goto(f"{web}/manage/campaigns/{campaign.pk}/")
            hands = Hands(page)
            hands.click("text=Read it")
            assert page.query_selector("iframe.document-frame")  # the document
            assert "Given to" in page.text_content("section[aria-labelledby=history]")  # its history
            assert "Is topic 0 unclear?" in page.text_content(".thread")
            hands.fill(".thread textarea", "Take the narrative.")
            hands.click(".thread button.primary")
            page.wait_for_selector("text=Answered: ")
            assert "Take the narrative." in page.text_content(".thread")
            assert hands.clicks <= MOST_CLICKS
            assert hands.fields <= MOST_FIELDS

        screen.keyboard.press("a")
        screen.wait_for_selector("#ask-list >> text=Take the narrative.")
        until(lambda: Message.objects.get(thread=asked).read_at is not None)
        screen.keyboard.press("Escape")
        judge(screen, "1")
