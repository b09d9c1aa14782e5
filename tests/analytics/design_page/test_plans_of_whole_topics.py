"""Audits planned before a draw of whole topics: one whose strategy does not fit does nothing, until it is changed."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from topic_campaign import DEPTH, design, make_undrawn

from judging.services.campaigns import open_campaign
from sampling.models import AuditSchedule
from sampling.questions import Design
from sampling.services.audit_schedules import LooksOfGold, save_schedule
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import start_due_audits
from sampling.services.drawing import draw
from touchstone.models import Job

PLAN = {
    "when": "interval", "every_seconds": 1, "every_unit": 60, "items_each_time": 5, "items_in_total": 20,
}  # fmt: skip


def planned(folder, design, **fields):
    """Return an open campaign whose audits were planned before its draw."""
    campaign = make_undrawn(folder)
    save_schedule(campaign=campaign, actor=None, every_seconds=60, **fields)
    draw(campaign=campaign, design=design, seed=7)
    open_campaign(campaign=campaign, actor=None)
    return campaign


DOCUMENTS = Design("pool", (), "P@4", DEPTH, 100)


@pytest.mark.django_db
def test_only_audits_whose_strategy_fits_the_draw_fall_due(tmp_path, monkeypatch):
    planned(tmp_path, design())
    planned(tmp_path, DOCUMENTS, strategy="whole-topics")
    fit = planned(tmp_path, DOCUMENTS), planned(tmp_path, design(), strategy="whole-topics")
    moment = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: moment)
    start_due_audits()
    due = Job.objects.filter(kind="audit").values_list("payload__campaign", flat=True)
    assert set(due) == {str(campaign.pk) for campaign in fit}


@pytest.mark.django_db
def test_a_plan_that_does_not_fit_can_be_switched_off_or_changed(tmp_path):
    campaign = planned(tmp_path, design())
    with pytest.raises(AuditRefused, match="whole topics were drawn"):
        save_schedule(campaign=campaign, actor=None, every_seconds=3600)
    assert AuditSchedule.objects.get(campaign=campaign).every_seconds == 60
    assert not save_schedule(campaign=campaign, actor=None, is_active=False).is_active
    with pytest.raises(AuditRefused, match="whole topics were drawn"):
        save_schedule(campaign=campaign, actor=None, is_active=True)
    assert save_schedule(campaign=campaign, actor=None, is_active=True, strategy="whole-topics").is_active
    documents = planned(tmp_path, DOCUMENTS)
    with pytest.raises(AuditRefused, match="need a draw of whole topics"):
        save_schedule(campaign=documents, actor=None, strategy="whole-topics")


@pytest.mark.django_db
def test_audits_of_whole_topics_have_no_declared_looks(tmp_path):
    campaign = make_undrawn(tmp_path)
    with pytest.raises(LooksOfGold, match="no declared looks"):
        save_schedule(campaign=campaign, actor=None, strategy="whole-topics", n_looks=3)
    assert save_schedule(campaign=campaign, actor=None, n_looks=3).n_looks == 3  # the control


@pytest.mark.parametrize("name", ["setup", "audits"])
def test_the_pages_offer_the_strategy_that_fits(page, post, client, tmp_path, name):
    campaign = planned(tmp_path, design(), n_looks=4)
    names = {
        "setup": ("console:setup-step", [campaign.pk, "gold"]),
        "audits": ("console:audits", [campaign.pk]),
    }
    address = reverse(names[name][0], args=names[name][1])
    shown = client.get(address).content.decode()
    assert ('value="whole-topics"' in shown) == (name == "audits")
    assert 'value="influence"' not in shown
    wrong = client.post(address, PLAN | {"is_active": "on", "strategy": "influence"}, follow=True)
    assert wrong.status_code == 400
    looks = client.post(address, PLAN | {"is_active": "on", "n_looks": "3"}, follow=True)
    assert looks.status_code == 400
    assert ("no declared looks" in looks.content.decode()) == (name == "audits")
    assert AuditSchedule.objects.get(campaign=campaign).strategy == "influence"
    assert client.post(address, PLAN | {"is_active": "on"}, follow=True).status_code == 200
    saved = AuditSchedule.objects.get(campaign=campaign)
    assert (saved.strategy, saved.is_active, saved.n_looks) == ("whole-topics", True, None)


def test_a_plan_that_does_nothing_is_named_on_every_page(page, client, manager, tmp_path):
    campaign = planned(tmp_path, design())
    assert "The plan does nothing:" in page(campaign, name="console:audits")
    overview = page(campaign, name="console:campaign")
    assert "The plan does nothing: its strategy does not fit the draw." in overview
    save_schedule(campaign=campaign, actor=None, strategy="whole-topics")
    assert "The plan does nothing" not in page(campaign, name="console:audits")
    assert "does nothing" not in page(campaign, name="console:campaign")


def test_the_set_up_of_whole_topics_asks_for_a_plan(page, client, manager, tmp_path):
    campaign = make_undrawn(tmp_path)
    gold = reverse("console:setup-step", args=[campaign.pk, "gold"])
    draw(campaign=campaign, design=design(), seed=7)
    assert "so plan audits from the start" in client.get(gold).content.decode()
    shown = page(campaign, name="console:setup")
    assert "No audit is planned: the numbers would remain uncorrected." in shown
    assert client.post(gold, PLAN).status_code == 302
    assert AuditSchedule.objects.get(campaign=campaign).strategy == "whole-topics"
