"""Audits planned before a draw of whole topics: none falls due, the set-up asks for none, and the plan can be ended."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from topic_campaign import DEPTH, design, make_undrawn

from judging.services.campaigns import open_campaign
from sampling.models import AuditSchedule
from sampling.questions import Design
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import start_due_audits
from sampling.services.drawing import draw
from touchstone.models import Job

PLAN = {
    "when": "interval", "every_seconds": 1, "every_unit": 60, "items_each_time": 5, "items_in_total": 20,
}  # fmt: skip


def planned(folder, design):
    """Return an open campaign whose audits were planned before its draw."""
    campaign = make_undrawn(folder)
    save_schedule(campaign=campaign, actor=None, every_seconds=60)
    draw(campaign=campaign, design=design, seed=7)
    open_campaign(campaign=campaign, actor=None)
    return campaign


@pytest.mark.django_db
def test_no_audit_of_whole_topics_falls_due(tmp_path, monkeypatch):
    planned(tmp_path, design())
    documents = planned(tmp_path, Design("pool", (), "P@4", DEPTH, 100))  # the control
    moment = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    start_due_audits()
    due = Job.objects.filter(kind="audit").values_list("payload__campaign", flat=True)
    assert list(due) == [str(documents.pk)]


@pytest.mark.django_db
def test_a_plan_can_be_switched_off_but_not_made_or_changed(tmp_path):
    campaign = planned(tmp_path, design())
    with pytest.raises(AuditRefused, match="whole topics were drawn"):
        save_schedule(campaign=campaign, actor=None, every_seconds=3600)
    assert AuditSchedule.objects.get(campaign=campaign).every_seconds == 60
    assert not save_schedule(campaign=campaign, actor=None, is_active=False).is_active
    assert not AuditSchedule.objects.get(campaign=campaign).is_active
    with pytest.raises(AuditRefused, match="whole topics were drawn"):
        save_schedule(campaign=campaign, actor=None, is_active=True)
    unplanned = make_undrawn(tmp_path)
    draw(campaign=unplanned, design=design(), seed=7)
    with pytest.raises(AuditRefused, match="whole topics were drawn"):
        save_schedule(campaign=unplanned, actor=None, is_active=False)


@pytest.mark.parametrize("name", ["setup", "audits"])
def test_the_pages_refuse_a_plan_and_switch_one_off(page, post, client, tmp_path, name):
    campaign = planned(tmp_path, design())
    names = {
        "setup": ("console:setup-step", [campaign.pk, "gold"]),
        "audits": ("console:audits", [campaign.pk]),
    }
    address = reverse(names[name][0], args=names[name][1])
    answer = client.post(address, PLAN | {"is_active": "on"}, follow=True)
    assert answer.status_code == {"setup": 400, "audits": 200}[name]
    assert "whole topics were drawn in this campaign" in answer.content.decode()
    assert AuditSchedule.objects.get(campaign=campaign).is_active
    assert client.post(address, PLAN, follow=True).status_code == 200
    assert not AuditSchedule.objects.get(campaign=campaign).is_active


def test_the_set_up_of_whole_topics_asks_for_no_plan(page, client, manager, tmp_path):
    campaign = make_undrawn(tmp_path)
    gold = reverse("console:setup-step", args=[campaign.pk, "gold"])
    assert "so plan audits from the start" in client.get(gold).content.decode()
    assert "No audit is planned: the numbers would remain uncorrected." in page(
        campaign, name="console:setup"
    )
    draw(campaign=campaign, design=design(), seed=7)
    text = client.get(gold).content.decode()
    assert "This sample has no audits:" in text
    assert "plan audits from the start" not in text
    assert "Save the plan" not in text
    shown = page(campaign, name="console:setup")
    assert "This sample has no audits: every grade is taken as given." in shown
    assert "remain uncorrected" not in shown
    assert client.post(gold, PLAN).status_code == 400
    assert not AuditSchedule.objects.exists()
