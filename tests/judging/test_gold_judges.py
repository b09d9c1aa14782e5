"""Gold assessors judge the drawn items where a campaign has no assessor of another tier; else audits alone."""

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone
from small_campaign import judge_all, make_assessor, make_campaign, slots

from judging.models import Assessor
from judging.services.assign import NO_WORK, claim, submit
from judging.services.more_judgments import why_nobody_could
from sampling.models import AuditSchedule
from sampling.services.auditable import JUDGED_BY_GOLD, AuditRefused
from sampling.services.auditing import audit, queue_audit, start_due_audits
from touchstone.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path)
    made.refresh_from_db()
    return made


def ask(assessor, n=1):
    return claim(assessor=assessor, n=n)


def test_a_gold_judge_alone_is_given_what_was_drawn_and_fills_its_place(campaign):
    expert = make_assessor(campaign, "expert", "gold")
    held = ask(expert).items
    assert len(held) == 1
    given = submit(assessor=expert, token=held[0].token, client_token=uuid.uuid4(), grade=2)
    slot = slots(campaign, state="done")
    assert [one.pk for one in slot] == [given.slot_id]
    assert slot[0].assessor_id == expert.pk


@pytest.mark.parametrize("tier", ["bronze", "silver"])
@pytest.mark.parametrize("status", ["active", "suspended"])
def test_beside_another_tier_gold_is_given_audits_alone(campaign, tier, status):
    expert, other = make_assessor(campaign, "expert", "gold"), make_assessor(campaign, "other", tier)
    Assessor.objects.filter(pk=other.pk).update(status=status)
    answer = ask(expert)
    assert (answer.items, answer.reason) == ([], NO_WORK)


def test_what_gold_judges_graded_themselves_is_not_audited(campaign):
    experts = [make_assessor(campaign, f"expert{number}", "gold") for number in range(2)]
    judge_all(campaign, experts)
    with pytest.raises(AuditRefused, match=JUDGED_BY_GOLD):
        audit(campaign=campaign, items_each_time=10, items_in_total=10)
    with pytest.raises(AuditRefused, match=JUDGED_BY_GOLD):
        queue_audit(campaign=campaign, user=None)
    make_assessor(campaign, "student")
    made = audit(campaign=campaign, items_each_time=10, items_in_total=10, seed=7)
    assert made is not None
    assert made.n_selected > 0


def test_one_judgment_more_of_an_item_counts_the_gold_judges_who_could_give_it(campaign):
    for number in range(2):
        make_assessor(campaign, f"expert{number}", "gold")
    assert "2 active assessors have judged 2 times" in why_nobody_could(campaign)
    make_assessor(campaign, "expert2", "gold")
    assert why_nobody_could(campaign) == ""
    make_assessor(campaign, "student")
    assert "1 active assessors" in why_nobody_could(campaign)


def test_no_audit_is_due_where_gold_judges_judge_the_drawn_items(campaign):
    make_assessor(campaign, "expert", "gold")
    AuditSchedule.objects.create(
        campaign=campaign, every_seconds=60, items_each_time=5, items_in_total=20, is_active=True
    )
    AuditSchedule.objects.update(starts_at=timezone.now() - timedelta(hours=1))
    start_due_audits()
    assert not Job.objects.filter(kind="audit").exists()
    make_assessor(campaign, "student")
    start_due_audits()
    assert Job.objects.filter(kind="audit").count() == 1
