"""The contract with assessors, one by one, on a real PostgreSQL; many at once: test_contract.py."""

import uuid

import pytest
from django.db import IntegrityError, transaction

from judging.models import (
    Assessor,
    Campaign,
    Collection,
    Document,
    Grade,
    Item,
    Judgment,
    Lease,
    Scale,
    Slot,
    Topic,
    TrainingItem,
)
from judging.services.assign import claim, history, revise, submit, submit_and_claim
from judging.services.campaigns import set_assessor_rules, set_status, set_topic_teams
from judging.services.errors import (
    AlreadyJudged,
    AssessorSuspended,
    CampaignNotOpen,
    ConsentMissing,
    GradeOffScale,
    LeaseUnknown,
    NotYetJudged,
    TokenReused,
    TrainingMissing,
)
from judging.services.leases import extend, release, requeue
from touchstone.models import User


def make_campaign(*, items=3, k=1, topics=1, lease_seconds=600, gold_check_rate=0.0):
    scale = Scale.objects.create(name=f"scale {uuid.uuid4()}")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=label, gain=value)
        for value, label in enumerate(["no", "some", "yes"])
    )
    collection = Collection.objects.create(name=f"collection {uuid.uuid4()}")
    campaign = Campaign.objects.create(
        collection=collection,
        scale=scale,
        name=f"campaign {uuid.uuid4()}",
        state=Campaign.State.OPEN,
        judgments_per_item=k,
        lease_seconds=lease_seconds,
        gold_check_rate=gold_check_rate,
    )
    for topic_number in range(topics):
        topic = Topic.objects.create(collection=collection, topic_id=f"t{topic_number}", title="A topic")
        for item_number in range(items):
            document = Document.objects.create(
                collection=collection, doc_id=f"d{topic_number}-{item_number}", text="Text"
            )
            item = Item.objects.create(campaign=campaign, topic=topic, document=document)
            Slot.objects.bulk_create(
                Slot(
                    item=item, purpose="judge", number=n, campaign=campaign, topic=topic, position=item_number
                )
                for n in range(1, k + 1)
            )
    return campaign


def make_assessor(campaign, name="bob", tier="bronze"):
    user = User.objects.create(username=f"{name}-{uuid.uuid4().hex[:8]}")
    return Assessor.objects.create(campaign=campaign, user=user, tier=tier)


def expire(slot):
    Slot.objects.filter(pk=slot.pk).extra(where=["true"]).update(lease_until="2000-01-01T00:00Z")


def claimed(assessor):
    """Claim one item and return its slot as it stands in the database, or None."""
    item = claim(assessor=assessor).item
    return item and Slot.objects.get(pk=item.slot_id)


def judge(assessor, grade=1):
    slot = claimed(assessor)
    return submit(assessor=assessor, token=slot.token, client_token=uuid.uuid4(), grade=grade)


@pytest.mark.django_db
def test_a_claim_leases_one_slot_and_a_second_tab_gets_the_same():
    bob = make_assessor(make_campaign())
    first, second = claimed(bob), claimed(bob)
    assert first.pk == second.pk
    assert first.token == second.token
    assert Lease.objects.count() == 1


@pytest.mark.django_db
def test_submitting_twice_stores_one_judgment_and_another_grade_is_a_conflict():
    bob = make_assessor(make_campaign())
    slot, client_token = claimed(bob), uuid.uuid4()
    first = submit(assessor=bob, token=slot.token, client_token=client_token, grade=2)
    again = submit(assessor=bob, token=slot.token, client_token=client_token, grade=2)
    assert first.pk == again.pk
    with pytest.raises(TokenReused):
        submit(assessor=bob, token=slot.token, client_token=client_token, grade=1)
    with pytest.raises(AlreadyJudged):
        submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=1)
    assert Judgment.objects.count() == 1
    bob.refresh_from_db()
    assert bob.n_judged == 1


@pytest.mark.django_db
def test_a_grade_off_the_scale_is_refused_by_service_and_database():
    bob = make_assessor(make_campaign())
    slot = claimed(bob)
    with pytest.raises(GradeOffScale):
        submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=7)
    with pytest.raises(IntegrityError, match="off the scale"), transaction.atomic():
        Judgment.objects.create(
            item=slot.item, assessor=bob, grade=7, lease_token=slot.token, client_token=uuid.uuid4()
        )
    assert not Judgment.objects.exists()


@pytest.mark.django_db
def test_a_foreign_lease_looks_like_one_that_does_not_exist():
    campaign = make_campaign()
    bob, charlie = make_assessor(campaign), make_assessor(campaign, "charlie")
    slot = claimed(bob)
    for token in (slot.token, uuid.uuid4()):
        with pytest.raises(LeaseUnknown):
            submit(assessor=charlie, token=token, client_token=uuid.uuid4(), grade=1)


@pytest.mark.django_db
def test_an_expired_lease_nobody_took_still_counts():
    bob = make_assessor(make_campaign())
    slot = claimed(bob)
    expire(slot)
    assert submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), grade=1).slot_id == slot.pk


@pytest.mark.django_db
def test_late_work_is_kept_as_surplus_when_the_slot_went_to_somebody_else():
    campaign = make_campaign(items=1)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    late = claimed(bob)
    expire(late)
    assert claimed(dora).pk == late.pk
    surplus = submit(assessor=bob, token=late.token, client_token=uuid.uuid4(), grade=1)
    assert surplus.slot_id is None
    counted = judge(dora, 2)
    assert counted.slot_id == late.pk


@pytest.mark.django_db
def test_late_work_fills_another_free_slot_of_the_item():
    campaign = make_campaign(items=1, k=2)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    late = claimed(bob)
    Slot.objects.filter(pk=late.pk).update(assessor=dora, token=uuid.uuid4())  # as if it had expired
    judgment = submit(assessor=bob, token=late.token, client_token=uuid.uuid4(), grade=1)
    assert judgment.slot_id not in (None, late.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("k", [1, 2])
def test_the_old_token_of_an_item_that_one_has_leased_again_still_counts(k):
    bob = make_assessor(make_campaign(items=1, k=k))
    first = claimed(bob)
    release(slot=first)
    again = claimed(bob)
    assert again.item_id == first.item_id
    assert again.token != first.token
    judgment = submit(assessor=bob, token=first.token, client_token=uuid.uuid4(), grade=1)
    assert judgment.slot_id == again.pk
    assert claim(assessor=bob).reason == "no work"


@pytest.mark.django_db
def test_nobody_rewrites_his_judgments_after_he_was_paused_or_the_campaign_closed():
    campaign = make_campaign()
    bob = make_assessor(campaign)
    judgment = judge(bob)
    Assessor.objects.filter(pk=bob.pk).update(status="suspended")
    with pytest.raises(AssessorSuspended):
        revise(assessor=bob, token=judgment.lease_token, client_token=uuid.uuid4(), grade=2)
    Assessor.objects.filter(pk=bob.pk).update(status="active")
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    with pytest.raises(CampaignNotOpen):
        revise(assessor=bob, token=judgment.lease_token, client_token=uuid.uuid4(), grade=2)


@pytest.mark.django_db
def test_a_change_of_mind_is_a_new_row_in_the_same_slot():
    bob = make_assessor(make_campaign())
    first = judge(bob, 1)
    second = revise(assessor=bob, token=first.lease_token, client_token=uuid.uuid4(), grade=2)
    assert (second.sequence, second.slot_id, second.grade) == (2, first.slot_id, 2)
    assert [row.grade for row in history(assessor=bob)] == [2]
    assert Judgment.objects.count() == 2


@pytest.mark.django_db
def test_an_expired_lease_comes_back_to_its_holder_unless_somebody_else_took_it():
    campaign = make_campaign(items=2)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    first = claimed(bob)
    expire(first)
    again = claimed(bob)
    assert (again.pk, again.token) == (first.pk, first.token)
    assert again.lease_until > again.leased_at
    expire(first)
    taken = {claimed(dora).pk, judge(dora).slot_id, judge(dora).slot_id}
    assert first.pk in taken
    assert claim(assessor=bob).reason == "no work"


@pytest.mark.django_db
def test_what_lies_ahead_is_leased_too_and_comes_in_the_same_order():
    bob = make_assessor(make_campaign(items=5))
    both = claim(assessor=bob, n=2).items
    assert [held.token for held in claim(assessor=bob, n=2).items] == [held.token for held in both]
    sent = {"token": both[0].token, "client_token": uuid.uuid4(), "grade": 1}
    _, following = submit_and_claim(user_id=bob.user_id, campaign_id=bob.campaign_id, n=2, **sent)
    assert following.items[0].token == both[1].token
    assert len({held.item_id for held in (*both, *following.items)}) == 3
    assert (following.n_judged, following.reason) == (1, "")


@pytest.mark.django_db
def test_a_quota_ends_the_work_and_holds_nothing_back_that_is_not_his():
    bob = make_assessor(make_campaign(items=5))
    Assessor.objects.filter(pk=bob.pk).update(quota=2)
    assert len(claim(assessor=bob, n=5).items) == 2
    judge(bob)
    assert len(claim(assessor=bob, n=5).items) == 1
    judge(bob)
    assert claim(assessor=bob).reason == "quota"
    assert Slot.objects.filter(state="open").count() == 3


@pytest.mark.django_db
def test_an_item_nobody_could_judge_goes_to_somebody_else_and_never_comes_back():
    campaign = make_campaign(items=1)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    slot = claimed(bob)
    sent = {"token": slot.token, "client_token": uuid.uuid4(), "obstacle": "language", "comment": "Greek?"}
    first = submit(assessor=bob, **sent)
    assert (first.grade, first.slot_id, first.comment) == (None, None, "Greek?")
    assert submit(assessor=bob, **sent).pk == first.pk
    assert claim(assessor=bob).reason == "no work"
    assert judge(dora, 2).slot_id == slot.pk


@pytest.mark.django_db
def test_a_reason_must_be_given_and_a_grade_takes_none():
    bob = make_assessor(make_campaign())
    slot = claimed(bob)
    for wrong in ({"grade": None}, {"obstacle": "boring"}, {"grade": 1, "obstacle": "language"}):
        with pytest.raises(GradeOffScale):
            submit(assessor=bob, token=slot.token, client_token=uuid.uuid4(), **wrong)
    with pytest.raises(IntegrityError, match="grade_or_obstacle"), transaction.atomic():
        Judgment.objects.create(
            item=slot.item, assessor=bob, lease_token=slot.token, client_token=uuid.uuid4()
        )
    assert not Judgment.objects.exists()


@pytest.mark.django_db
def test_changing_to_cannot_judge_opens_the_slot_again_and_back_again_fills_it():
    campaign = make_campaign(items=1)
    bob = make_assessor(campaign)
    first = judge(bob, 1)
    change = {"assessor": bob, "token": first.lease_token}
    second = revise(**change, client_token=uuid.uuid4(), obstacle="topic")
    assert (second.sequence, second.slot_id, second.grade) == (2, None, None)
    assert list(Slot.objects.order_by("pk").values_list("purpose", "state")) == [
        ("void", "done"),
        ("judge", "open"),
    ]
    third = revise(**change, client_token=uuid.uuid4(), grade=2)
    assert third.slot_id == Slot.objects.get(purpose="judge").pk
    assert Slot.objects.get(purpose="judge").state == "done"


@pytest.mark.django_db
def test_requeued_judgments_are_kept_and_wanted_again_from_others():
    campaign = make_campaign(items=3)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    for _ in range(3):
        judge(bob)
    assert requeue(assessor=bob, actor=None) == 3
    assert Judgment.objects.count() == 3
    assert claim(assessor=bob).reason == "no work"
    for _ in range(3):
        assert judge(dora, 2).slot.purpose == "judge"
    assert requeue(assessor=bob, actor=None) == 0


@pytest.mark.django_db
def test_a_suspended_assessor_loses_his_leases_and_what_he_still_sends_is_surplus():
    campaign = make_campaign(items=1)
    bob = make_assessor(campaign)
    slot = claimed(bob)
    token = slot.token
    set_status(assessor=bob, status="suspended", actor=None)
    slot.refresh_from_db()
    assert slot.state == "open"
    late = submit(assessor=bob, token=token, client_token=uuid.uuid4(), grade=1)
    assert late.slot_id is None
    assert judge(make_assessor(campaign, "dora")).slot_id == slot.pk


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
