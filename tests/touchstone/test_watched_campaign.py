"""The demo's campaign to watch: scheduled audits run by themselves and narrow the interval as forecast."""

from datetime import timedelta

import pytest
from django.utils import timezone
from small_campaign import judge_all, make_assessor, make_campaign, truth_of

import sampling.tasks  # noqa: F401 (registers the jobs)
from analytics.models import AuditForecast, Estimate
from analytics.services.recomputation import recompute
from judging.models import Campaign, Judgment
from judging.services.campaigns import set_status
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import audit, start_due_audits
from touchstone import jobs
from touchstone.demo import simulation
from touchstone.demo.simulation import GOLD, Simulation, judge_audits_for_ever
from touchstone.models import Job

pytestmark = pytest.mark.django_db


class Enough(Exception):
    """The loop without end has gone round as often as the test wants."""


@pytest.fixture
def campaign(tmp_path):
    made = make_campaign(tmp_path, kind="pair")
    Campaign.objects.filter(pk=made.pk).update(is_simulated=True)

    def wrong(slot, place):
        return (truth_of(slot) + (place and int(slot.item.document.doc_id[-2:]) % 3 == 0)) % 4

    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], wrong)
    return made


def rounds(monkeypatch, n):
    """Let the loop go round n times."""
    slept = []

    def sleep(_):
        slept.append(1)
        if len(slept) == n:
            raise Enough

    monkeypatch.setattr(simulation.time, "sleep", sleep)
    monkeypatch.setattr(
        simulation, "close_old_connections", lambda: None
    )  # the test's transaction lives on it
    with pytest.raises(Enough):
        judge_audits_for_ever(lambda words: None)


def test_the_simulated_gold_assessor_judges_audits_with_the_known_answers(campaign, monkeypatch):
    made = audit(campaign=campaign, items_each_time=15, items_in_total=42, seed=5)
    rounds(monkeypatch, 2)
    found = Judgment.objects.filter(assessor__user__username=GOLD).select_related("slot__item")
    assert found.count() == made.n_selected
    assert {row.grade for row in found if row.grade != truth_of(row.slot)} == set()
    assert not Simulation(campaign).audits_wait()
    assert Job.objects.filter(kind="estimate").count() == 1


def test_a_paused_assessor_or_a_campaign_of_people_is_left_alone(campaign, monkeypatch):
    audit(campaign=campaign, items_each_time=15, items_in_total=42, seed=5)
    gold = Simulation(campaign).assessor(GOLD, "gold")
    set_status(assessor=gold, status="suspended", actor=None)
    rounds(monkeypatch, 1)
    Campaign.objects.filter(pk=campaign.pk).update(is_simulated=False)
    rounds(monkeypatch, 1)
    assert not Judgment.objects.filter(assessor=gold).exists()


def test_a_scheduled_audit_runs_by_itself_and_narrows_as_forecast_within_its_error(campaign, monkeypatch):
    audit(campaign=campaign, items_each_time=20, items_in_total=42, seed=5)
    rounds(monkeypatch, 1)
    save_schedule(campaign=campaign, actor=None, every_seconds=60, items_each_time=8, items_in_total=42)
    before = recompute(campaign=campaign)
    forecast = AuditForecast.objects.get(computation=before, strategy="influence")
    now = timezone.now()
    monkeypatch.setattr("sampling.services.auditing.timezone.now", lambda: now + timedelta(seconds=61))
    start_due_audits()
    monkeypatch.undo()
    jobs.run(Job.objects.get(kind="audit").pk)
    rounds(monkeypatch, 1)
    after = recompute(campaign=campaign)
    low, high = Estimate.objects.values_list("low", "high").get(
        computation=after, run=forecast.run, run_b=forecast.run_b, measure="DCG@10", method="corrected"
    )
    assert campaign.audits.count() == 2
    assert (high - low) / 2 < forecast.half_width_now
    assert abs((high - low) / 2 - forecast.half_width_after) < 3 * forecast.half_width_error
