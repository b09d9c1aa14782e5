"""The page of one item: its whole history, and a message to somebody who had it."""

import uuid

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import judge_all, judge_audit, lease, make_assessor, make_campaign, slots

from judging.models import Message
from judging.services.adjudication import adjudicate
from judging.services.assign import revise, submit
from judging.services.leases import requeue
from sampling.services.auditing import audit
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def alice(db):
    return User.objects.create(username="alice", role="manager")


@pytest.fixture
def client(alice):
    made = Client()
    made.force_login(alice)
    return made


def page_of(client, campaign, item):
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(reverse("console:item", args=[campaign.pk, item]))
    assert answer.status_code == 200
    assert len(queries) <= 12, [query["sql"] for query in queries.captured_queries]
    return answer


def test_the_history_is_whole_and_in_order(campaign, alice, client):
    """Bob grades, changes his mind and is set aside; Dora gives back; a manager decides."""
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    first, second = [one for one in slots(campaign) if one.item_id == slots(campaign)[0].item_id]
    token = lease(bob, first)
    submit(
        assessor=bob,
        token=token,
        client_token=uuid.uuid4(),
        grade=1,
        comment="hardly",
        active_milliseconds=7300,
    )
    revise(assessor=bob, token=token, client_token=uuid.uuid4(), grade=2)
    submit(assessor=dora, token=lease(dora, second), client_token=uuid.uuid4(), grade=None, obstacle="topic")
    requeue(assessor=bob, actor=alice)
    adjudicate(item=first.item, grade=3, reason="a list", actor=alice)

    page = page_of(client, campaign, first.item_id)
    steps = [(step["what"].split(":")[0], step["detail"]) for step in page.context["steps"]]
    assert [what for what, _ in steps] == [
        "Drawn in batch 1",
        "Given to",
        "Graded 1 Marginal",
        "Changed from 1 Marginal to 2 Relevant",
        "Given to",
        "Given back",
        "Set aside, and wanted again",
        "Decided",
    ]
    details = [detail for _, detail in steps]
    assert details[0].startswith("with probability ")
    assert details[2] == "7.3 s, version 1 of the document, 1 of the topic"
    assert [step["by"] for step in page.context["steps"]][6:] == ["alice", "alice"]
    assert [step["comment"] for step in page.context["steps"]][2] == "hardly"


def test_somebody_who_had_the_document_is_written_to(campaign, client):
    bob = make_assessor(campaign, "bob")
    stranger = make_assessor(campaign, "stranger")
    slot = slots(campaign)[0]
    submit(assessor=bob, token=lease(bob, slot), client_token=uuid.uuid4(), grade=None, obstacle="topic")
    page = page_of(client, campaign, slot.item_id)
    assert [person.pk for person in page.context["people"]] == [bob.pk]
    assert page.context["last_word"] == bob.pk
    assert not page.context["may_give_away"]

    address = reverse("console:item-write", args=[campaign.pk, slot.item_id])
    client.post(address, {"assessor": bob.pk, "text": "It is about wings."})
    assert Message.objects.get().text == f"About “{slot.item.document.doc_id}”: It is about wings."
    for wrong in (
        {"assessor": stranger.pk, "text": "x"},
        {"assessor": "", "text": "x"},
        {"assessor": bob.pk, "text": "  "},
        {"assessor": "²", "text": "x"},
        {"assessor": "9" * 30, "text": "x"},
        {"assessor": bob.pk, "text": "x" * 3000},
    ):
        answer = client.post(address, wrong, follow=True)
        assert "Not sent" in answer.content.decode(), wrong
    assert Message.objects.count() == 1


def test_who_writes_about_a_check_is_warned(tmp_path, client):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, "bob"), make_assessor(campaign, "dora")])
    audit(campaign=campaign, items_each_time=14, items_in_total=14, seed=5)
    judge_audit(campaign, make_assessor(campaign, "gold", tier="gold"))
    audited = {slot.item_id for slot in slots(campaign, "audit")}
    plain = campaign.items.exclude(pk__in=audited).first()
    assert page_of(client, campaign, audited.pop()).context["may_give_away"]
    assert not page_of(client, campaign, plain.pk).context["may_give_away"]
