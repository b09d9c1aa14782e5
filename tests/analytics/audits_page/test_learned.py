"""Audits that learn, on the page of audits and over the API."""

import json

import pytest
from audit_plans import PLAN, address, audited, client_of, judged, text_of
from small_campaign import make_campaign

from analytics.models import AuditForecast
from analytics.services.recomputation import recompute
from console.manager import audits as page
from sampling.services import learned_audits
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import run_audit

pytestmark = pytest.mark.django_db


def test_it_is_recommended_once_there_is_gold_and_the_choice_of_the_first_is_fixed(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_audits, "FEWEST_GOLD", 20)
    monkeypatch.setattr(page, "FEWEST_GOLD", 20)
    campaign, manager = make_campaign(tmp_path, kind="pair"), client_of("manager")
    judged(campaign)
    save_schedule(campaign=campaign, actor=None, items_each_time=4, items_in_total=42)
    assert "Recommended for every later audit" not in text_of(manager.get(address(campaign)))
    audited(campaign, 30)
    computation = recompute(campaign=campaign)
    text = text_of(manager.get(address(campaign)))
    assert "Recommended for every later audit: <strong>Learned</strong>" in text
    assert 'Learned <span class="tag">recommended</span>' in text
    widths = {
        row.strategy: row.half_width_after for row in AuditForecast.objects.filter(computation=computation)
    }
    assert 0 < widths["learned"] != widths["influence"]

    sent = {
        **PLAN,
        "strategy": "learned",
        "gold_fit": "exact",
        "items_each_time": "4",
        "items_in_total": "42",
    }
    assert manager.post(address(campaign), sent).status_code == 302
    made = run_audit(campaign_id=str(campaign.pk))
    assert (made.strategy, made.gold_fit, made.learned_from) == ("learned", "exact", 1)
    text = text_of(manager.get(address(campaign)))
    assert "learned from 1 earlier audit, exact" in text
    assert "Fixed: an audit has learned." in text

    # What is fixed is no longer read from the form, and the API says why it refuses.
    assert manager.post(address(campaign), {**sent, "gold_fit": "refit"}).status_code == 302
    campaign.audit_schedule.refresh_from_db()
    assert campaign.audit_schedule.gold_fit == "exact"
    told = manager.get(f"/api/v1/campaigns/{campaign.pk}/audits").json()
    assert (
        told["schedule"]["gold_fit"],
        told["audits"][-1]["gold_fit"],
        told["audits"][-1]["learned_from"],
    ) == (
        "exact",
        "exact",
        1,
    )
    refused = manager.patch(
        f"/api/v1/campaigns/{campaign.pk}/audits/schedule",
        json.dumps({"gold_fit": "refit"}),
        content_type="application/json",
    )
    assert refused.status_code == 409
    assert "stay as they were then: exact" in refused.json()["detail"]
