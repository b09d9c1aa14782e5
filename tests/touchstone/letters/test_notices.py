"""The hourly look: who gets a letter about gold work, an audit without judges, a campaign that cannot be finished."""

import pytest
from django.utils import timezone
from small_campaign import judge_all, make_assessor, make_campaign

from judging.models import Campaign, PlacesLeft
from judging.services.messages import ask
from sampling.services.auditing import audit
from touchstone import jobs
from touchstone.models import Job, Letter, LetterRefusal, User
from touchstone.notices import notice_by_job, start_due_notices

pytestmark = pytest.mark.django_db


def look():
    context = jobs.Context(Job(kind="notices", payload={}, lane="numbers"))
    notice_by_job(context)
    return context.result["n_letters"]


@pytest.fixture
def nora():
    return User.objects.create(username="nora", email="nora@example.org", role=User.Role.MANAGER)


@pytest.fixture
def audited(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("bob", "ben")])
    audit(campaign=campaign, items_each_time=6, items_in_total=6, seed=5)
    return campaign


def letters():
    return {(one.kind, one.user.username) for one in Letter.objects.select_related("user")}


def test_the_look_is_queued_once_an_hour():
    start_due_notices()
    start_due_notices()
    assert Job.objects.filter(kind="notices").count() == 1


def test_an_audit_without_judges_is_told_to_managers_and_with_one_to_that_one_in_their_language(
    audited, nora
):
    assert look() == 1
    assert letters() == {("unjudged", "nora")}
    Letter.objects.all().delete()
    gus = make_assessor(audited, "gus", "gold")
    User.objects.filter(pk=gus.user_id).update(email="gus@example.org", language="de")
    assert look() == 1
    assert look() == 0  # once a day
    letter = Letter.objects.get()
    assert (letter.kind, letter.user.username) == ("gold", "gus")
    assert letter.title == f"Goldurteile warten in {audited.name}"
    assert letter.text == f"In der Kampagne „{audited.name}“ warten Dokumente auf Ihr Urteil."
    assert letter.link == f"/judge/{audited.pk}/"
    Letter.objects.all().delete()
    LetterRefusal.objects.create(user=gus.user, kind="gold")
    assert look() == 0


def test_a_stuck_campaign_is_told_once_a_week_and_one_that_is_not_never(audited, nora):
    PlacesLeft.objects.create(
        campaign=audited, basis="x", wanted=10, possible=8, n_stuck=2, newcomers=1, is_exact=True,
        computed_at=timezone.now(),
    )  # fmt: skip
    look()
    assert letters() == {("stuck", "nora"), ("unjudged", "nora")}
    said = Letter.objects.get(kind="stuck").text
    assert said == f"In the campaign “{audited.name}” 2 judgments cannot be made by the people who are there."
    Letter.objects.filter(kind="stuck").update(day="2020-01-01")
    assert look() == 1
    Letter.objects.all().delete()
    PlacesLeft.objects.update(possible=10)
    look()
    assert letters() == {("unjudged", "nora")}
    Letter.objects.all().delete()
    Campaign.objects.update(state="closed")
    assert look() == 0


def test_a_manager_who_may_not_see_the_campaign_is_told_nothing(audited, nora):
    collection = audited.collection
    type(collection).objects.filter(pk=collection.pk).update(is_restricted=True)
    ask(assessor=audited.assessors.first(), text="Which year?")
    assert look() == 0
    assert not Letter.objects.exists()
