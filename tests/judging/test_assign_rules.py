"""Which items an assessor is given, and what the database itself refuses."""

import uuid

import pytest
from django.db import IntegrityError, transaction
from psycopg import _queries
from queue_campaign import claimed, expire, judge, make_assessor, make_campaign

from judging.models import (
    Assessor,
    Campaign,
    Document,
    Item,
    Judgment,
    Lease,
    Slot,
    Topic,
    TrainingItem,
)
from judging.services.assign import claim, revise, submit
from judging.services.campaigns import set_assessor_rules, set_topic_teams
from judging.services.errors import (
    AssessorSuspended,
    CampaignNotOpen,
    ConsentMissing,
    NotYetJudged,
    TrainingMissing,
)
from judging.services.leases import extend, release
from judging.services.statements import CLAIM_IN_TOPIC


@pytest.mark.django_db
def test_a_heartbeat_makes_a_lease_longer_and_names_what_is_lost():
    bob = make_assessor(make_campaign(items=2))
    one, two = claim(assessor=bob, n=2).items
    expire(Slot.objects.get(pk=one.slot_id))
    release(slot=Slot.objects.get(pk=two.slot_id))
    assert extend(assessor=bob, tokens=[one.token, two.token]) == [one.token]
    assert Slot.objects.get(pk=one.slot_id).lease_until > one.lease_until


@pytest.mark.django_db
def test_topics_are_kept_for_their_team_and_given_first_to_whom_they_were_promised():
    campaign = make_campaign(items=2, topics=4)
    topics = list(Topic.objects.filter(collection=campaign.collection).order_by("pk"))
    set_topic_teams(campaign=campaign, teams={topics[0].pk: "night"}, actor=None)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    rules = {"quota": None, "actor": None}
    set_assessor_rules(assessor=bob, team="", first_topics=[topics[2]], **rules)
    set_assessor_rules(assessor=dora, team="night", first_topics=[topics[0]], **rules)
    assert [judge(bob).item.topic_id for _ in range(2)] == [topics[2].pk] * 2
    assert [judge(dora).item.topic_id for _ in range(2)] == [topics[0].pk] * 2
    rest = {judge(bob).item.topic_id for _ in range(4)}
    assert rest == {topics[1].pk, topics[3].pk}
    assert claim(assessor=bob).reason == "no work"


@pytest.mark.django_db
def test_consent_and_training_come_before_the_first_item():
    campaign = make_campaign()
    Campaign.objects.filter(pk=campaign.pk).update(consent="We store what you say.")
    bob = make_assessor(campaign)
    with pytest.raises(ConsentMissing):
        claim(assessor=bob)
    Assessor.objects.filter(pk=bob.pk).update(consented_at="2026-01-01T00:00Z")
    document = Document.objects.create(collection=campaign.collection, doc_id="of-the-training", text="Text")
    topic = Topic.objects.filter(collection=campaign.collection).first()
    TrainingItem.objects.create(campaign=campaign, topic=topic, document=document, grade=1, position=1)
    with pytest.raises(TrainingMissing):
        claim(assessor=bob)
    Assessor.objects.filter(pk=bob.pk).update(trained_at="2026-01-01T00:00Z")
    assert claim(assessor=bob).item


@pytest.mark.django_db
def test_there_is_nothing_to_change_before_the_first_judgment():
    bob = make_assessor(make_campaign())
    slot = claimed(bob)
    with pytest.raises(NotYetJudged):
        revise(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=2)


@pytest.mark.django_db
def test_one_never_judges_an_item_twice_and_then_there_is_no_more_work():
    bob = make_assessor(make_campaign(items=2, k=3))
    judged = {judge(bob).item_id, judge(bob).item_id}
    assert len(judged) == 2
    assert claim(assessor=bob).reason == "no work"


@pytest.mark.django_db
def test_an_assessor_stays_on_a_topic_while_it_has_items():
    bob = make_assessor(make_campaign(items=4, topics=3))
    topics = [judge(bob).item.topic_id for _ in range(12)]
    assert len({tuple(topics[i : i + 4]) for i in (0, 4, 8)}) == 3
    assert all(len(set(topics[i : i + 4])) == 1 for i in (0, 4, 8))


@pytest.mark.django_db
def test_suspended_assessors_and_closed_campaigns_get_nothing():
    campaign = make_campaign()
    bob = make_assessor(campaign)
    Assessor.objects.filter(pk=bob.pk).update(status="suspended")
    with pytest.raises(AssessorSuspended):
        claim(assessor=bob)
    Assessor.objects.filter(pk=bob.pk).update(status="active")
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    with pytest.raises(CampaignNotOpen):
        claim(assessor=bob)


@pytest.mark.django_db
def test_a_released_lease_goes_to_the_next_and_its_work_is_kept():
    campaign = make_campaign(items=1)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    slot = claimed(bob)
    assert release(slot=slot)
    assert claimed(dora).pk == slot.pk
    assert submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=0).slot_id is None


@pytest.mark.django_db
def test_gold_checks_come_from_their_own_slots_and_gold_tier_gets_audits_only():
    campaign = make_campaign(items=30, gold_check_rate=0.5)
    items = list(Item.objects.filter(campaign=campaign).order_by("document__doc_id"))
    Slot.objects.filter(item__in=items[10:]).delete()
    Slot.objects.bulk_create(
        Slot(item=item, purpose="check", number=1, campaign=campaign, topic=item.topic, position=1)
        for item in items[10:20]
    )
    Slot.objects.create(
        item=items[25], purpose="audit", number=1, campaign=campaign, topic=items[25].topic, position=1
    )
    bob, gold = make_assessor(campaign), make_assessor(campaign, "gold", tier="gold")
    purposes = []
    while (slot := claimed(bob)) is not None:
        purposes.append(slot.purpose)
        submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=1)
    assert purposes.count("judge") == 10
    assert purposes.count("check") >= 1
    assert "audit" not in purposes
    assert judge(gold, 2).item_id == items[25].pk
    assert claim(assessor=gold).reason == "no work"


@pytest.mark.django_db
def test_the_database_refuses_to_change_or_delete_a_judgment():
    judgment = judge(make_assessor(make_campaign()))
    for change in (
        lambda: Judgment.objects.filter(pk=judgment.pk).update(grade=0),
        lambda: Judgment.objects.filter(pk=judgment.pk)._raw_delete("default"),
        lambda: Lease.objects.update(leased_at="2000-01-01T00:00Z"),
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()


@pytest.mark.django_db
def test_the_database_refuses_more_than_k_slots_and_a_second_judgment_in_a_slot():
    campaign = make_campaign(items=1, k=2)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    judgment = judge(bob)
    item = judgment.item
    with pytest.raises(IntegrityError, match="more than k"), transaction.atomic():
        Slot.objects.create(
            item=item, purpose="judge", number=3, campaign=campaign, topic=item.topic, position=0
        )
    Item.objects.filter(pk=item.pk).update(judgments_more=1)
    new = {"item": item, "purpose": "judge", "campaign": campaign, "topic": item.topic, "position": 0}
    Slot.objects.create(number=3, **new)
    with pytest.raises(IntegrityError, match="more than k"), transaction.atomic():
        Slot.objects.create(number=4, **new)
    with pytest.raises(IntegrityError, match="judgments_more"), transaction.atomic():
        Item.objects.filter(pk=item.pk).update(judgments_more=2)
    with pytest.raises(IntegrityError, match="not this assessor's"), transaction.atomic():
        Judgment.objects.create(
            item=item,
            assessor=dora,
            grade=1,
            slot_id=judgment.slot_id,
            lease_token=uuid.uuid4(),
            client_token=uuid.uuid4(),
        )
    with pytest.raises(IntegrityError, match="done is done"), transaction.atomic():
        Slot.objects.filter(pk=judgment.slot_id).update(state="open")


def test_the_statement_of_a_claim_is_short_enough_that_psycopg_remembers_how_to_read_it():
    assert len(CLAIM_IN_TOPIC) <= _queries.MAX_CACHED_STATEMENT_LENGTH
