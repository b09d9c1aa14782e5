"""What was judged on words that were corrected since is counted, and asked for again if somebody says so."""

import uuid

import pytest
from api_tools import api_client
from django.urls import reverse
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, slots

from analytics.frames import current_arrays
from judging.models import Campaign, CollectionMember, Judgment, Slot
from judging.services.assign import submit
from judging.services.corrections import correct_document, correct_topic
from judging.services.errors import NotFound
from judging.services.old_words import campaign_uses, requeue_old_words
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara(db):
    return User.objects.create_user("mara", role=User.Role.MANAGER)


@pytest.fixture
def campaign(tmp_path):
    """All 14 items of t0 and of t1 are judged twice; nothing of t2 is."""
    made = make_campaign(tmp_path, gold=False)
    people = [make_assessor(made, name) for name in ("ann", "ben")]
    judge_all(made, people, item__topic__topic_id__in=["t0", "t1"])
    return made


def topic_of(campaign, topic_id="t0"):
    return campaign.collection.topics.get(topic_id=topic_id)


def counts(row, user):
    return [
        (use.n_items, use.n_judged_items, use.n_judgments, use.n_old_items, use.n_old)
        for use in campaign_uses(row, user)
    ]


def test_items_and_judgments_are_counted_and_those_on_old_words_apart(campaign, mara):
    topic = topic_of(campaign)
    assert counts(topic, mara) == [(14, 14, 28, 0, 0)]
    assert counts(topic_of(campaign, "t2"), mara) == [(14, 0, 0, 0, 0)]
    correct_topic(topic=topic, user=mara, why="unclear", title="Another")
    topic.refresh_from_db()
    assert counts(topic, mara) == [(14, 14, 28, 14, 28)]
    document = campaign.collection.documents.get(doc_id="t0d03")
    assert counts(document, mara) == [(1, 1, 2, 0, 0)]
    correct_document(document=document, user=mara, why="cut off", text="All of it")
    document.refresh_from_db()
    assert counts(document, mara) == [(1, 1, 2, 1, 2)]
    assert counts(campaign.collection.documents.get(doc_id="t1d03"), mara) == [(1, 1, 2, 0, 0)]  # the control


def test_others_are_asked_for_what_was_judged_on_old_words_and_for_nothing_else(campaign, mara):
    """One document of 28 judged ones is corrected: its two judgments are set aside, and two places are open again."""
    document = campaign.collection.documents.get(doc_id="t0d03")
    correct_document(document=document, user=mara, why="cut off", text="All of it")
    document.refresh_from_db()
    before = Judgment.objects.count()
    assert requeue_old_words(row=document, campaigns=[campaign.pk], actor=mara) == 2
    assert Judgment.objects.count() == before
    void = Slot.objects.filter(purpose="void")
    assert {(slot.item.document.doc_id, slot.was) for slot in void} == {("t0d03", "")}
    assert [slot.item.document.doc_id for slot in slots(campaign, state="open")][:2] == ["t0d03", "t0d03"]
    assert counts(document, mara) == [(1, 0, 0, 0, 0)]
    assert requeue_old_words(row=document, campaigns=[campaign.pk], actor=mara) == 0
    events = Event.objects.filter(verb="requeued").order_by("detail__assessor")
    people = sorted(User.objects.filter(username__in=["ann", "ben"]).values_list("pk", flat=True))
    assert [event.detail for event in events] == [
        {"assessor": person, "n_slots": 1, "document": "t0d03", "version": 2} for person in people
    ]
    eva = make_assessor(campaign, "eva")
    [slot, _] = slots(campaign, state="open", item__document=document)
    assert give(eva, slot, 3).document_version == 2
    assert counts(document, mara) == [(1, 1, 1, 0, 0)]


def test_who_holds_an_item_judges_the_old_words_which_are_asked_for_the_next_time(campaign, mara):
    topic, eva = topic_of(campaign, "t2"), make_assessor(campaign, "eva")
    token = lease(eva, slots(campaign, state="open")[0])
    correct_topic(topic=topic, user=mara, why="unclear", title="Another")
    topic.refresh_from_db()
    assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara) == 0
    submit(assessor=eva, token=token, client_token=uuid.uuid4(), grade=1)
    assert counts(topic, mara) == [(14, 1, 1, 1, 1)]
    assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara) == 1


def test_only_the_campaigns_that_are_named_and_no_closed_one(campaign, mara):
    topic = topic_of(campaign)
    correct_topic(topic=topic, user=mara, why="unclear", title="Another")
    topic.refresh_from_db()
    assert requeue_old_words(row=topic, campaigns=[uuid.uuid4()], actor=mara) == 0
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara) == 0
    Campaign.objects.filter(pk=campaign.pk).update(state="open")
    assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara) == 28  # the control


def test_it_takes_a_manager_who_may_see_the_collection(campaign, mara):
    topic = topic_of(campaign)
    rhea = User.objects.create_user("rhea", role=User.Role.RESEARCHER)
    with pytest.raises(NotFound):
        requeue_old_words(row=topic, campaigns=[campaign.pk], actor=rhea)
    campaign.collection.is_restricted = True
    campaign.collection.save()
    with pytest.raises(NotFound):
        requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara)
    CollectionMember.objects.create(collection=campaign.collection, user=mara)
    assert requeue_old_words(row=topic, campaigns=[campaign.pk], actor=mara) == 0


def test_the_next_numbers_are_without_them_and_the_item_page_says_when_they_were_set_aside(
    campaign, mara, client
):
    assert current_arrays(campaign).judged.size == 28
    topic, document = topic_of(campaign), campaign.collection.documents.get(doc_id="t1d00")
    for row, correct in ((topic, correct_topic), (document, correct_document)):
        name = "topic" if row is topic else "document"
        correct(**{name: row}, user=mara, why="wrong", title="Another")
        row.refresh_from_db()
        requeue_old_words(row=row, campaigns=[campaign.pk], actor=mara)
    assert current_arrays(campaign).judged.size == 28 - 14 - 1
    client.force_login(mara)
    item = campaign.items.get(topic__topic_id="t1", document=document)
    steps = client.get(reverse("console:item", args=[campaign.pk, item.pk])).context["steps"]
    at = [step["at"] for step in steps if step["what"].startswith("Set aside")]
    events = Event.objects.filter(verb="requeued", detail__document="t1d00").values_list("at", flat=True)
    assert sorted(at) == sorted(events)
    assert len(at) == 2


def test_programs_read_what_is_old_and_ask_for_it_again(campaign, mara):
    api, rhea, topic = api_client("mara"), api_client("rhea", "researcher"), topic_of(campaign)
    place = f"/collections/{campaign.collection_id}/topics/{topic.pk}"
    api.post(f"{place}/versions", 201, why="unclear", title="Another")
    rhea.get(f"{place}/old-words", 404)
    found = {
        "campaign": str(campaign.pk), "campaign_name": campaign.name, "state": "open",
        "n_items": 14, "n_judgments": 28, "n_old_items": 14, "n_old": 28,
    }  # fmt: skip
    assert api.get(f"{place}/old-words") == {"version": 2, "campaigns": [found]}
    api.post(f"{place}/old-words", 400)
    api.post(f"{place}/old-words", 400, campaigns=["x"])
    rhea.post(f"{place}/old-words", 404, campaigns=[str(campaign.pk)])
    assert api.post(f"{place}/old-words", 200, campaigns=[str(campaign.pk)]) == {"n_requeued": 28}
    assert api.post(f"{place}/old-words", 200, campaigns=[str(campaign.pk)]) == {"n_requeued": 0}
    document = campaign.collection.documents.first()
    place = f"/collections/{campaign.collection_id}/documents/{document.pk}/old-words"
    assert api.get(place)["campaigns"][0]["n_old"] == 0
    assert api.post(place, 200, campaigns=[str(campaign.pk)]) == {"n_requeued": 0}
