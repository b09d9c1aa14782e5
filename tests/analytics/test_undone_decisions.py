"""A manager's word taken back: qrels, exports and releases are as before, byte for byte, and both words stay."""

import json

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from file_campaign import judged_campaign
from small_release import judged_campaign as released_campaign
from small_release import release_of, unpacked

from analytics.releases.verify import verify
from analytics.services.exports import EXPORTS, qrels_lines
from analytics.services.recomputation import recompute
from judging.models import Adjudication
from judging.services.adjudication import adjudicate, undo
from judging.services.errors import GradeOffScale, NewerWord, NotFound
from judging.services.filtered import filtered_items, places_of
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(db):
    return User.objects.create(username="boss", role="manager", is_superuser=True)


@pytest.fixture
def campaign(db):
    return judged_campaign()


def files(campaign):
    """Return the bytes of every export."""
    found = {}
    for one in EXPORTS:
        if one.key != "prels":  # of a campaign that was never drawn there are none
            found[one.key] = "".join(one.lines(campaign, True)).encode()
    return found


def item_of(campaign, topic, document):
    return campaign.items.get(topic__topic_id=topic, document__doc_id=document)


def test_an_undone_decision_leaves_every_file_as_before_byte_for_byte(campaign, boss):
    before = files(campaign)
    item = item_of(campaign, "10", "d2")
    made = adjudicate(item=item, grade=1, reason="read it", actor=boss)
    assert files(campaign)["qrels"] != before["qrels"]  # the control
    undo(adjudication=made, actor=boss)
    assert files(campaign) == before
    words = Adjudication.objects.filter(item=item).order_by("id").values_list("verdict", "grade", "reason")
    assert list(words) == [("decided", 1, "read it"), ("withdrawn", None, "")]
    events = Event.objects.filter(subject=f"campaign:{campaign.pk}").order_by("id")
    assert [one.verb for one in events][-2:] == ["adjudicated", "withdrew decision"]


def test_what_is_let_stand_has_the_grade_of_the_judgments(campaign, boss):
    before = files(campaign)
    item = item_of(campaign, "10", "d2")
    adjudicate(item=item, grade=1, reason="", actor=boss)
    adjudicate(item=item, grade=None, reason="they are right", actor=boss, verdict="stands")
    assert files(campaign) == before
    assert places_of([item])[item.pk]["decision"] is None
    assert item in filtered_items(campaign.pk, {"state": "decided"}, None).complete()


def test_an_undone_second_decision_brings_the_first_back(campaign, boss):
    item = item_of(campaign, "10", "d2")
    adjudicate(item=item, grade=1, reason="first", actor=boss)
    first = files(campaign)
    second = adjudicate(item=item, grade=0, reason="second", actor=boss)
    assert files(campaign) != first
    undo(adjudication=second, actor=boss)
    assert files(campaign) == first


def test_only_the_newest_word_can_be_taken_back_and_once(campaign, boss):
    item = item_of(campaign, "10", "d2")
    first = adjudicate(item=item, grade=1, reason="", actor=boss)
    second = adjudicate(item=item, grade=0, reason="", actor=boss)
    with pytest.raises(NewerWord):
        undo(adjudication=first, actor=boss)
    undo(adjudication=second, actor=boss)
    with pytest.raises(NewerWord):
        undo(adjudication=second, actor=boss)
    alone = adjudicate(item=item_of(campaign, "10", "d1"), grade=0, reason="", actor=boss)
    back = undo(adjudication=alone, actor=boss)
    with pytest.raises(NewerWord):
        undo(adjudication=back, actor=boss)
    researcher = User.objects.create(username="rhea", role="researcher")
    with pytest.raises(NotFound):
        undo(adjudication=alone, actor=researcher)


@pytest.mark.parametrize(
    ("verdict", "grade"),
    [("decided", None), ("stands", 1), ("withdrawn", 0), ("other", None), ("decided", 9)],
)
def test_the_database_refuses_a_word_without_its_grade_and_a_grade_without_its_word(
    campaign, boss, verdict, grade
):
    item = item_of(campaign, "10", "d2")
    with pytest.raises((IntegrityError, ValidationError)), transaction.atomic():
        Adjudication.objects.create(item=item, verdict=verdict, grade=grade, decided_by=boss)
    with pytest.raises(GradeOffScale):
        adjudicate(item=item, grade=None, reason="", actor=boss)
    assert not Adjudication.objects.exists()


def test_a_release_verifies_with_words_decided_let_stand_and_taken_back(tmp_path, boss):
    campaign = released_campaign(tmp_path)
    items = list(
        campaign.items.order_by("topic__topic_id", "document__doc_id").select_related("topic", "document")
    )
    before = list(qrels_lines(campaign, True))
    kept = adjudicate(item=items[0], grade=3, reason="", actor=boss)
    undo(adjudication=adjudicate(item=items[1], grade=3, reason="", actor=boss), actor=boss)
    adjudicate(item=items[2], grade=None, reason="", actor=boss, verdict="stands")
    recompute(campaign=campaign)
    folder = unpacked(release_of(campaign), tmp_path / "release")
    assert not verify(folder).different
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    decided = {(row["topic_id"], row["doc_id"]): row["adjudicated_grade"] for row in rows}
    assert {key for key, grade in decided.items() if grade is not None} == {
        (items[0].topic.topic_id, items[0].document.doc_id)
    }
    undo(adjudication=kept, actor=boss)
    assert list(qrels_lines(campaign, True)) == before


# -- pages ----------------------------------------------------------------------------------------------------


def test_undo_stands_in_the_notice_and_the_next_day_on_the_item_s_page(campaign, boss, client):
    client.force_login(boss)
    item = item_of(campaign, "10", "d2")
    answer = client.post(
        reverse("console:decide", args=[campaign.pk]), {"item": item.pk, "grade": 1}, follow=True
    )
    made = Adjudication.objects.get()
    address = reverse("console:undo-decision", args=[campaign.pk, made.pk])
    text = answer.content.decode()
    assert "Grade 1 stands for" in text
    assert address in text.split("notice ok need")[1].split("</div>")[0]
    here = reverse("console:item", args=[campaign.pk, item.pk])
    assert address in client.get(here).content.decode()
    answer = client.post(address, {"back": "item"}, follow=True)
    text = answer.content.decode()
    assert "is taken back: the qrels have the grade of the judgments again" in text
    assert "Decided: 1" in text
    assert "Decision taken back" in text
    assert address not in text
    assert "Nothing was taken back" in client.post(address, follow=True).content.decode()
    assert client.get(address).status_code == 405
    elsewhere = reverse("console:undo-decision", args=[judged_campaign().pk, made.pk])
    assert client.post(elsewhere).status_code == 404
    answer = client.post(
        reverse("console:decide", args=[campaign.pk]), {"item": item.pk, "verdict": "stands"}
    )
    assert Adjudication.objects.latest("id").verdict == "stands"
    answer = client.post(
        reverse("console:decide", args=[campaign.pk]),
        {"item": item.pk, "verdict": "stands", "grade": 1},
        follow=True,
    )
    assert "Choose a grade, or let the grades stand." in answer.content.decode()
