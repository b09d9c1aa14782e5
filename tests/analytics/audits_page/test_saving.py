"""The page of audits: what it saves and what it refuses."""

import pytest
from audit_plans import PLAN, address, judged, text_of

import sampling.tasks  # noqa: F401 (registers the jobs)
from judging.models import Campaign
from sampling.models import AuditSchedule
from sampling.services.auditing import queue_audit
from touchstone import jobs
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db


def test_a_plan_is_saved_with_its_event(manager, campaign):
    response = manager.post(address(campaign), PLAN, follow=True)
    assert "Saved: audits run every 2 hours." in text_of(response)
    found = AuditSchedule.objects.get(campaign=campaign)
    assert (found.every_seconds, found.crontab, found.strategy, found.tier) == (7200, "", "topic", "gold")
    assert (found.items_each_time, found.items_in_total, found.is_active) == (12, 40, True)
    assert Event.objects.filter(verb="planned audits", subject=f"campaign:{campaign.pk}").count() == 1
    page = text_of(manager.get(address(campaign)))
    assert 'name="every_seconds" value="2"' in page
    assert '<option value="3600" selected>' in page


def test_fixed_times_are_saved_and_an_interval_takes_their_place(manager, campaign):
    manager.post(address(campaign), PLAN | {"when": "crontab", "crontab": "0 */6 * * *", "every_seconds": ""})
    assert AuditSchedule.objects.get().crontab == "0 */6 * * *"
    manager.post(address(campaign), PLAN | {"crontab": "nonsense"})  # out of sight, so without effect
    assert (AuditSchedule.objects.get().crontab, AuditSchedule.objects.get().every_seconds) == ("", 7200)


def test_looks_are_declared_and_shown_as_fixed_once_the_first_gold_audit_is_drawn(manager, campaign):
    manager.post(address(campaign), PLAN | {"tier": "gold", "n_looks": "5"})
    assert AuditSchedule.objects.get().n_looks == 5
    judged(campaign)
    jobs.run(queue_audit(campaign=campaign, user=None).pk)
    page = text_of(manager.get(address(campaign)))
    assert 'name="n_looks" value="5" min="2" max="50" disabled' in page
    assert "Fixed: the first gold audit was drawn." in page
    assert "look 1 of 5" in page
    changed = manager.post(address(campaign), PLAN | {"n_looks": "7", "items_in_total": "41"})
    found = AuditSchedule.objects.get()
    assert (changed.status_code, found.n_looks, found.items_in_total) == (302, 5, 41)


def test_a_form_without_the_field_leaves_the_declared_looks(manager, campaign):
    manager.post(address(campaign), PLAN | {"n_looks": "5"})
    manager.post(address(campaign), PLAN)
    assert AuditSchedule.objects.get().n_looks == 5
    manager.post(address(campaign), PLAN | {"n_looks": ""})
    assert AuditSchedule.objects.get().n_looks is None


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"n_looks": "1"}, "greater than or equal to 2"),
        ({"n_looks": "51"}, "less than or equal to 50"),
        ({"n_looks": "5", "tier": "silver"}, "Only audits of the gold tier can be declared as looks."),
    ],
)
def test_looks_that_cannot_be_declared_are_refused_beside_their_field(manager, campaign, sent, words):
    answer = manager.post(address(campaign), PLAN | sent)
    assert answer.status_code == 400
    assert words in text_of(answer)
    assert not AuditSchedule.objects.exists()


def test_money_is_turned_into_documents(manager, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(cost_per_gold=2.5)
    money = {"size_in": "money", "items_each_time": "26", "items_in_total": "99.9"}
    assert manager.post(address(campaign), PLAN | money).status_code == 302
    found = AuditSchedule.objects.get()
    assert (found.items_each_time, found.items_in_total) == (10, 39)  # 26 / 2.5 and 99.9 / 2.5, rounded down


def test_audit_now_saves_and_queues_one_job(manager, campaign, django_capture_on_commit_callbacks):
    judged(campaign)
    response = manager.post(address(campaign), PLAN | {"now": "now"})
    job = Job.objects.get(kind="audit")
    assert str(job.pk) in response["Location"]
    again = manager.post(address(campaign), PLAN | {"now": "now"}, follow=True)
    assert "is already being drawn" in text_of(again)
    jobs.run(job.pk)
    assert campaign.audits.get().strategy == "topic"
    assert Event.objects.get(verb="audited").actor.username == "manager"


def test_score_and_costs_are_saved_and_only_a_new_score_computes_anew(manager, campaign):
    sent = {"bronze_score": "vote-share", "cost_per_judgment": "0.05", "cost_per_gold": "1.5"}
    manager.post(address(campaign, "audits-score"), sent)
    campaign.refresh_from_db()
    assert (campaign.cost_per_judgment, campaign.cost_per_gold) == (0.05, 1.5)
    assert not Job.objects.filter(kind="estimate").exists()
    manager.post(
        address(campaign, "audits-score"), sent | {"bronze_score": "one-label", "cost_per_judgment": ""}
    )
    campaign.refresh_from_db()
    assert (campaign.bronze_score, campaign.cost_per_judgment) == ("one-label", None)
    assert Job.objects.filter(kind="estimate").count() == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"every_seconds": ""}, "Enter a number."),
        ({"every_seconds": "0"}, "greater than or equal to 1"),
        ({"every_seconds": "1e9"}, "Enter a whole number."),
        ({"every_seconds": "2000000000"}, "At most 2,000,000,000 seconds."),
        ({"every_unit": "7"}, "Select a valid choice"),
        ({"when": "never"}, "Select a valid choice"),
        ({"when": "crontab", "crontab": ""}, "got 0 fields"),
        ({"when": "crontab", "crontab": "61 * * * *"}, "Minute must be 0 to 59 or *"),
        ({"when": "crontab", "crontab": "<script>alert(1)</script> * * * *"}, "Minute must be"),
        ({"when": "crontab", "crontab": "0 0 30 2 *"}, "Is never due"),
        ({"when": "crontab", "crontab": "0" * 61}, "at most 60 characters"),
        ({"strategy": "best"}, "Select a valid choice"),
        ({"tier": "bronze"}, "Select a valid choice"),
        ({"items_each_time": "0"}, "must be at least 1"),
        ({"items_each_time": "nan"}, "Enter a number."),
        ({"items_each_time": "1e308"}, "less than or equal to"),
        ({"items_in_total": ""}, "This field is required."),
        ({"size_in": "money"}, "A size in money needs the cost of a gold label"),
    ],
)
def test_a_wrong_plan_is_refused_beside_its_field_and_nothing_is_saved(manager, campaign, wrong, words):
    response = manager.post(address(campaign), PLAN | wrong)
    assert response.status_code == 400
    text = text_of(response)
    assert "Nothing was saved:" in text
    assert words in text
    assert "<script>alert" not in text
    assert not AuditSchedule.objects.exists()


def test_money_that_pays_for_nothing_is_refused(manager, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(cost_per_gold=9)
    response = manager.post(address(campaign), PLAN | {"size_in": "money", "items_each_time": "8"})
    assert "does not pay for one gold label (9)" in text_of(response)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"bronze_score": "best"}, "Select a valid choice"),
        ({"cost_per_gold": "-1"}, "A judgment costs more than 0."),
        ({"cost_per_gold": "0"}, "A judgment costs more than 0."),
        ({"cost_per_gold": "inf"}, "Enter a number."),
    ],
)
def test_wrong_scores_and_costs_are_refused(manager, campaign, wrong, words):
    response = manager.post(address(campaign, "audits-score"), {"bronze_score": "one-label"} | wrong)
    assert response.status_code == 400
    assert words in text_of(response)
    campaign.refresh_from_db()
    assert campaign.bronze_score == "vote-share"
