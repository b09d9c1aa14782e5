"""Questions of assessors: whom they reach, who answers, what nobody else sees, and what an answer could give away."""

import pytest
from django.test import Client
from django.urls import reverse
from small_campaign import lease, make_assessor, make_campaign, slots

from judging.models import Message
from judging.services import messages
from judging.services.errors import (
    LeaseUnknown,
    MessageUnfit,
    NotFound,
    QuestionSecret,
    TooManyQuestions,
)
from touchstone import jobs
from touchstone.models import Letter, User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_redis(monkeypatch):
    monkeypatch.setattr(jobs, "poke", lambda lane: True)


@pytest.fixture
def alice():
    return User.objects.create(username="alice", role="manager", email="alice@example.org")


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, budget=24, kind="pool", gold_check_rate=0.4)


@pytest.fixture
def bob(campaign):
    return make_assessor(campaign, "bob")


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def test_a_question_waits_until_it_is_answered_and_the_answer_reaches_the_assessor_alone(
    campaign, bob, alice
):
    ben = make_assessor(campaign, "ben")
    slot = slots(campaign, "judge")[0]
    token = lease(bob, slot)
    asked = messages.ask(assessor=bob, text=" Which year?\r\n", token=token)
    assert (asked.text, asked.item, asked.sender, asked.read_at) == ("Which year?", slot.item, bob.user, None)
    assert list(messages.open_questions(campaign)) == [asked]
    assert messages.unread(user=bob.user) == []  # one's own question is no message to oneself
    said = messages.answer(question=asked, text="The year of the event.", sender=alice)
    assert (said.thread, said.item, said.assessor) == (asked, slot.item, bob)
    assert list(messages.open_questions(campaign)) == []
    assert messages.unread(user=bob.user) == [said]
    assert messages.unread(user=ben.user) == []
    assert messages.conversation(ben) == []
    assert messages.threads_about(slot.item) == [asked, said]
    messages.mark_read(message=said, user=bob.user)
    assert messages.unread(user=bob.user) == []
    with pytest.raises(NotFound):
        messages.mark_read(message=asked, user=bob.user)


def test_only_managers_answer_and_only_whoever_was_given_a_document_asks_about_it(campaign, bob, alice):
    ben = make_assessor(campaign, "ben")
    token = lease(bob, slots(campaign, "judge")[0])
    with pytest.raises(LeaseUnknown):
        messages.ask(assessor=ben, text="Whose is it?", token=token)
    asked = messages.ask(assessor=bob, text="In general?")
    assert asked.item is None
    rita = User.objects.create(username="rita", role="researcher")
    for nobody in (rita, ben.user):
        with pytest.raises(NotFound):
            messages.answer(question=asked, text="I know", sender=nobody)
        with pytest.raises(NotFound):
            messages.close(question=asked, actor=nobody)
    for text in ("", " \n", "x" * 2001):
        with pytest.raises(MessageUnfit):
            messages.ask(assessor=bob, text=text)
    messages.close(question=asked, actor=alice)
    messages.close(question=asked, actor=alice)
    assert list(messages.open_questions(campaign)) == []
    assert Message.objects.count() == 1


def test_a_flood_of_questions_is_refused(bob):
    for number in range(messages.MOST_OPEN):
        messages.ask(assessor=bob, text=f"Question {number}")
    with pytest.raises(TooManyQuestions):
        messages.ask(assessor=bob, text="One more")


def test_an_answer_about_a_check_is_warned_of_first_and_about_an_ordinary_document_is_not(
    campaign, bob, alice
):
    check, ordinary = slots(campaign, "check")[0], slots(campaign, "judge")[0]
    about_check = messages.ask(assessor=bob, text="Unclear", token=lease(bob, check))
    about_ordinary = messages.ask(assessor=bob, text="Unclear", token=lease(bob, ordinary))
    with pytest.raises(QuestionSecret):
        messages.answer(question=about_check, text="Yes", sender=alice)
    assert messages.answer(question=about_ordinary, text="Yes", sender=alice).pk  # the control
    client = client_of(alice)
    address = reverse("console:message-thread", args=[campaign.pk, about_check.pk])
    refused = client.post(address, {"text": "Read the narrative"})
    assert refused.status_code == 409
    page = refused.content.decode()
    assert "could give that away" in page
    assert "Read the narrative</textarea>" in page
    assert list(messages.open_questions(campaign)) == [about_check]
    assert client.post(address, {"text": "Read the narrative", "is_sure": "yes"}).status_code == 302
    assert list(messages.open_questions(campaign)) == []


def test_what_the_assessor_is_answered_is_alike_for_a_check_and_an_ordinary_document(
    campaign, bob, django_assert_num_queries
):
    answers, counts = [], []
    for purpose in ("check", "judge"):
        token = lease(bob, slots(campaign, purpose)[0])
        address = reverse("judging:questions", args=[campaign.pk])
        client = client_of(bob.user)
        with django_assert_num_queries(999, exact=False) as asked:
            sent = client.post(address, {"text": "Unclear", "token": token}, content_type="application/json")
        body = sent.json()
        answers.append((sent.status_code, sorted(body), body["sender"], body["read_at"]))
        counts.append(len(asked))
    assert answers[0] == answers[1]
    assert answers[0][0] == 201
    assert counts[0] == counts[1]


def test_managers_who_see_the_campaign_get_one_letter_a_day_without_the_words(campaign, bob, alice):
    User.objects.create(username="nora", role="manager")  # without an address
    messages.ask(assessor=bob, text="Is the war of 1812 meant?")
    messages.ask(assessor=bob, text="And the second?")
    letter = Letter.objects.get()
    assert (letter.kind, letter.user, letter.subject) == ("question", alice, f"campaign:{campaign.pk}")
    assert "1812" not in letter.text + letter.title
    assert letter.link == reverse("console:messages", args=[campaign.pk])


def test_the_pages_show_what_waits_and_the_item_has_its_thread(campaign, bob, alice):
    slot = slots(campaign, "judge")[0]
    asked = messages.ask(assessor=bob, text="Which <b>year</b>?", token=lease(bob, slot))
    general = messages.ask(assessor=bob, text="When is the end?")
    client = client_of(alice)
    page = client.get(reverse("console:messages", args=[campaign.pk])).content.decode()
    assert "Which &lt;b&gt;year" in page
    assert "When is the end?" in page
    thread = client.get(reverse("console:message-thread", args=[campaign.pk, asked.pk]))
    item = reverse("console:item", args=[campaign.pk, slot.item.pk])
    assert thread["Location"] == f"{item}#questions"
    assert "Which &lt;b&gt;year" in client.get(item).content.decode()
    overview = client.get(reverse("console:campaign", args=[campaign.pk])).content.decode()
    assert "2 questions wait for an answer." in overview
    address = reverse("console:message-thread", args=[campaign.pk, general.pk])
    assert client.post(address, {"text": " "}).status_code == 400
    assert client.post(address, {"text": "Friday"}).status_code == 302
    closing = reverse("console:message-close", args=[campaign.pk, asked.pk])
    assert client.post(closing).status_code == 302
    assert (
        "wait for an answer"
        not in client.get(reverse("console:campaign", args=[campaign.pk])).content.decode()
    )


def test_the_api_has_both_sides(campaign, bob, alice):
    mine, theirs = client_of(bob.user), client_of(alice)
    address = reverse("judging:questions", args=[campaign.pk])
    asked = mine.post(address, {"text": "Which year?"}, content_type="application/json").json()
    assert (asked["sender"], asked["topic"], asked["question"]) == (None, None, None)
    listed = theirs.get(reverse("console:api-questions", args=[campaign.pk]), {"is_unread": "true"}).json()
    assert [row["text"] for row in listed["results"]] == ["Which year?"]
    reply = reverse("console:api-question-answer", args=[campaign.pk, asked["id"]])
    said = theirs.post(reply, {"text": "2001"}, content_type="application/json")
    assert (said.status_code, said.json()["question"]) == (201, asked["id"])
    newest = mine.get(address).json()
    assert [(row["sender"], row["text"]) for row in newest] == [("alice", "2001"), (None, "Which year?")]
    assert mine.get(reverse("console:api-questions", args=[campaign.pk])).status_code == 404
