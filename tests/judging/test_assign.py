"""The contract with assessors, one by one, on a real PostgreSQL; many at once: test_contract.py."""

import uuid

import pytest
from django.db import IntegrityError, transaction
from queue_campaign import claimed, expire, judge, make_assessor, make_campaign

from judging.models import (
    Assessor,
    Campaign,
    Judgment,
    Lease,
    Slot,
)
from judging.services.assign import claim, revise, submit, submit_and_claim
from judging.services.campaigns import set_status
from judging.services.errors import (
    AlreadyJudged,
    AssessorSuspended,
    CampaignNotOpen,
    GradeOffScale,
    LeaseUnknown,
    TokenReused,
)
from judging.services.history import history
from judging.services.leases import release, requeue


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
def test_who_judges_again_meets_the_checks_too_and_the_first_answers_stay_in_force():
    campaign = make_campaign(items=6)
    bob, dora = make_assessor(campaign), make_assessor(campaign, "dora")
    Slot.objects.filter(number=1, item__in=list(campaign.items.order_by("pk")[:3])).update(purpose="check")
    met = {judge(bob).slot.item_id for _ in range(6)}
    assert requeue(assessor=bob, actor=None) == 6
    assert sorted(Slot.objects.filter(purpose="void").values_list("was", flat=True)) == [
        *["check"] * 3,
        *["judge"] * 3,
    ]
    assert {judge(dora, 2).slot.item_id for _ in range(6)} == met
    assert Judgment.objects.filter(assessor=bob, slot__was="check").count() == 3


@pytest.mark.django_db
def test_what_a_slot_was_is_set_with_its_end_alone():
    campaign = make_campaign(items=2)
    bob = make_assessor(campaign)
    for _ in range(2):
        judge(bob)
    done = Slot.objects.filter(state="done")
    for change in ({"was": "judge"}, {"purpose": "void", "was": "check"}, {"purpose": "void", "was": "x"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            done.update(**change)
    one = done.first()
    Slot.objects.filter(pk=one.pk).update(purpose="void", was="judge")
    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.filter(pk=one.pk).update(was="")


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
