"""Pages on which a manager corrects words and gold answers, and asks again for what was judged on old words."""

import pytest
from django.urls import reverse
from manager_requests import page, post, said, statements, words
from small_campaign import judge_all

from judging.models import Campaign, Document, GoldAnswer, Slot, Topic
from judging.services.corrections import correct_document, correct_topic
from judging.services.files import import_documents
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db
TOPIC, DOCUMENT = "console:manage-topic-correct", "console:manage-document-correct"
GOLD = "console:manage-gold-answer"


@pytest.fixture
def judged(campaign, bob, dora):
    """The items of t0 are judged twice."""
    judge_all(campaign, [bob, dora], item__topic__topic_id="t0")
    return campaign


def topic_of(campaign):
    return campaign.collection.topics.get(topic_id="t0")


def document_of(campaign):
    return campaign.collection.documents.get(doc_id="t0d03")


def test_a_topic_is_corrected_and_what_was_judged_on_the_old_words_is_asked_for_on_the_same_page(
    judged, alice
):
    topic = topic_of(judged)
    place = TOPIC, judged.collection_id, topic.pk
    assert reverse(place[0], args=place[1:]) in page(alice, "console:topic", judged.collection_id, topic.pk)
    shown = page(alice, *place)
    assert "28 judgments of 14 items" in shown
    assert "Before and now" not in shown
    answer = post(alice, *place, version=1, title="Another need", description="", narrative="", why="unclear")
    assert said(answer) == ["Saved as version 2. The old words are kept."]
    shown = page(alice, *place)
    assert "Before and now" in shown
    assert "Need t0" in shown
    assert "Another need" in shown
    assert "Judged on old words" in shown
    assert "28 judgments of 14 items" in shown
    answer = post(alice, *place, requeue=1, again=judged.pk)
    assert "28 judgments are requested again" in said(answer)[0]
    assert "Judged on old words" not in page(alice, *place)
    assert Slot.objects.filter(purpose="void").count() == 28


def test_a_document_is_corrected_and_its_judgments_asked_for_in_one_go(judged, alice):
    document = document_of(judged)
    place = DOCUMENT, judged.collection_id, document.pk
    assert reverse(place[0], args=place[1:]) in page(
        alice, "console:document", judged.collection_id, document.pk
    )
    sent = {"version": 1, "title": document.title, "text": "All of it\r\nand more", "why": "cut off"}
    answer = post(alice, *place, **sent, again=judged.pk)
    assert "2 judgments are requested again" in said(answer)[1]
    document.refresh_from_db()
    assert (document.text, document.version) == ("All of it\nand more", 2)
    shown = page(alice, *place)
    frame = reverse("console:document-frame", args=[judged.collection_id, document.pk])
    assert f'src="{frame}"' in shown
    assert f'src="{frame}?version=1"' in shown
    assert Slot.objects.filter(purpose="void").count() == 2


def test_a_page_of_html_stays_one_and_its_title_is_no_html(campaign, alice, tmp_path):
    source = tmp_path / "p.jsonl"
    source.write_text('{"_id": "p", "title": "A", "text": "<p>One <script>x</script></p>"}\n')
    import_documents(collection=campaign.collection, source=source, name="p.jsonl", is_html=True)
    document = Document.objects.get(doc_id="p")
    place = DOCUMENT, campaign.collection_id, document.pk
    sent = {"title": "a < b & c", "is_html": "on", "why": "x", "version": 1}
    post(alice, *place, **sent, text="<p>Two <script>x</script></p>")
    document.refresh_from_db()
    assert (document.title, document.html.strip(), document.text.strip()) == (
        "a < b & c",
        "<p>Two </p>",
        "Two",
    )
    sent |= {"title": "a < b", "version": 2}
    post(alice, *place, **sent, text=document.html)  # the title alone
    document.refresh_from_db()
    assert (document.title, document.html.strip()) == ("a < b", "<p>Two </p>")


@pytest.mark.parametrize(
    ("sent", "words_of"),
    [
        ({"why": ""}, "This field is required"),
        ({"why": " "}, "This field is required"),
        ({"title": "Need t0"}, "the correction changes nothing"),
        ({"title": ""}, "This field is required"),
        ({"version": 3}, "Somebody else corrected this meanwhile"),
        ({"version": ""}, "Nothing was corrected"),
        ({"again": "x"}, "Select a valid choice"),
        ({"title": "a\0b"}, "Null characters are not allowed"),
        ({"why": "x" * 2001}, "at most 2000 characters"),
    ],
)
def test_what_is_wrong_with_a_correction_is_said_and_nothing_is_changed(judged, alice, sent, words_of):
    topic = topic_of(judged)
    before = Event.objects.count()
    right = {"version": 1, "title": "Another", "description": "", "narrative": "", "why": "because"}
    answer = post(alice, TOPIC, judged.collection_id, topic.pk, status=400, **{**right, **sent})
    assert words_of in words(answer)
    topic.refresh_from_db()
    assert (topic.version, topic.title, Event.objects.count()) == (1, "Need t0", before)
    post(alice, TOPIC, judged.collection_id, topic.pk, **right)  # the control


def test_nothing_is_requested_again_without_a_choice_nor_in_a_closed_campaign(judged, alice):
    topic = topic_of(judged)
    place = TOPIC, judged.collection_id, topic.pk
    mary = User.objects.create_user("mary", role="manager")
    correct_topic(topic=topic, user=mary, why="unclear", title="Another")
    assert said(post(alice, *place, requeue=1)) == ["Nothing was requested: choose a campaign."]
    Campaign.objects.filter(pk=judged.pk).update(state="closed")
    assert "In a closed campaign nobody judges" in page(alice, *place)
    assert "nothing was requested" in said(post(alice, *place, requeue=1, again=judged.pk))[0].lower()
    assert not Slot.objects.filter(purpose="void").exists()


def test_a_text_that_is_too_long_for_a_page_is_left_to_the_api(campaign, alice):
    row = Document.objects.create(collection=campaign.collection, doc_id="long", text="x" * 200_001)
    place = DOCUMENT, campaign.collection_id, row.pk
    assert "200,001 characters, too many for a page" in page(alice, *place)
    assert "No campaign judges this document" in page(alice, *place)
    post(alice, *place, version=1, title="A title", why="it had none")
    row.refresh_from_db()
    assert (row.title, len(row.text), row.version) == ("A title", 200_001, 2)


def test_the_pages_cost_the_same_for_few_and_for_many(judged, alice):
    topic, document = topic_of(judged), document_of(judged)
    mary = User.objects.create_user("mary", role="manager")
    correct_topic(topic=topic, user=mary, why="unclear", title="Another")
    correct_document(document=document, user=mary, why="unclear", title="Another")
    answer = GoldAnswer.objects.get(topic=topic, document=document)
    assert statements(alice, TOPIC, judged.collection_id, topic.pk) <= 12
    assert statements(alice, DOCUMENT, judged.collection_id, document.pk) <= 12
    assert statements(alice, GOLD, judged.collection_id, answer.pk) <= 12
    assert statements(alice, "console:manage-gold-answers", judged.collection_id) <= 12


def test_a_gold_answer_is_found_corrected_and_withdrawn(judged, alice):
    document = document_of(judged)
    answer = GoldAnswer.objects.get(document=document)
    place = GOLD, judged.collection_id, answer.pk
    address = reverse(place[0], args=place[1:])
    item = judged.items.get(document=document)
    assert address in page(alice, "console:document", judged.collection_id, document.pk)
    assert address in page(alice, "console:item", judged.pk, item.pk)
    assert address in page(alice, "console:manage-gold-answers", judged.collection_id, doc_id="t0d03")
    assert address not in page(alice, "console:manage-gold-answers", judged.collection_id, doc_id="t0d04")
    assert "None is about" in page(alice, "console:manage-gold-answers", judged.collection_id, topic_id="no")
    assert answer.grade == 3
    assert said(post(alice, *place, grade="1", why="misread", version=1)) == [
        "Saved: the grade is 1. The old answer is kept, and the next computation follows."
    ]
    post(alice, *place, grade="none", why="nobody agrees", version=2)
    assert not GoldAnswer.objects.filter(pk=answer.pk).exists()
    assert "withdrawn" in page(alice, "console:manage-gold-answers", judged.collection_id, doc_id="t0d03")
    shown = page(alice, *place)
    assert "nobody agrees" in shown
    assert "misread" in shown
    for wrong, told in (
        ({"grade": "9"}, "9 is not on the scale"),
        ({"grade": "10"}, "Select a valid choice"),
        ({"grade": "none"}, "the correction changes nothing"),
        ({"why": ""}, "This field is required"),
        ({"version": 1}, "Somebody else corrected this meanwhile"),
    ):
        sent = {"grade": "2", "why": "x", "version": 3, **wrong}
        assert told in words(post(alice, *place, status=400, **sent))
    assert list(answer.versions.values_list("number", "grade")) == [(1, 3), (2, 1), (3, None)]


def test_only_managers_are_offered_corrections(judged, client):
    client.force_login(User.objects.create(username="rhea", role="researcher"))
    topic, document = topic_of(judged), document_of(judged)
    for name, pk in (("console:topic", topic.pk), ("console:document", document.pk)):
        shown = page(client, name, judged.collection_id, pk)
        assert "Correct" not in shown
        assert "Gold" not in shown
    page(client, TOPIC, judged.collection_id, topic.pk, status=404)
    page(client, DOCUMENT, judged.collection_id, document.pk, status=404)
    assert Topic.objects.get(pk=topic.pk).version == 1
