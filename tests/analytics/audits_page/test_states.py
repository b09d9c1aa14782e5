"""The page of audits: what it shows in every state, who sees it, and what it costs."""

import uuid
from datetime import timedelta

import pytest
from audit_plans import PLAN, address, audited, client_of, judged, text_of
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from small_campaign import judge_audit, make_assessor, make_undrawn

import sampling.tasks  # noqa: F401 (registers the jobs)
from analytics.models import AuditForecast, Computation, Estimate
from analytics.services.recomputation import recompute
from judging.models import Campaign
from sampling.models import AuditSchedule
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import audit

pytestmark = pytest.mark.django_db


def computed(campaign, n_more=12, **widths):
    """Return a computation with forecasts of these half-widths, as the worker would store them."""
    made = Computation.objects.create(
        campaign=campaign,
        last_judgment_id=1,
        n_judgments=84,
        n_items=42,
        n_audited=0,
        n_gold_checks=0,
        seconds=0.1,
    )
    runs = list(campaign.collection.runs.all())
    AuditForecast.objects.bulk_create(
        AuditForecast(
            computation=made,
            strategy=strategy,
            n_more=n_more,
            run=runs[0],
            run_b=runs[2],
            measure="DCG@10",
            half_width_now=0.4,
            half_width_after=width,
            half_width_error=0.02,
            refusal="" if width else "too little gold",
        )
        for strategy, width in widths.items()
    )
    return made


# -- states ---------------------------------------------------------------------------------------------------


def test_before_a_draw_the_page_says_what_is_missing(manager, tmp_path):
    response = manager.get(address(make_undrawn(tmp_path)))
    assert response.status_code == 200
    assert "Nothing can be audited yet" in text_of(response)
    assert "Choose a design" in text_of(response)


def test_a_new_campaign_is_told_to_plan_audits_and_to_find_somebody_for_them(manager, campaign):
    text = text_of(manager.get(address(campaign)))
    for words in (
        "No audit is planned.",
        "Nobody is in the gold tier.",
        "No numbers yet.",
        "No audit yet. Until one is complete",
        "without seeing the earlier grades",
    ):
        assert words in text
    for name in ("Influence", "Neyman", "Lowest inclusion probability", "By effort", "Full"):
        assert name in text
    assert 'value="influence" id="id_strategy_0" checked' in text


def test_the_schedule_is_said_in_words_with_its_next_time_and_zone(manager, campaign):
    save_schedule(
        campaign=campaign, actor=None, crontab="30 2 * * mon,thu", items_each_time=15, items_in_total=90
    )
    text = text_of(manager.get(address(campaign)))
    assert (
        "Every Monday and Thursday at 02:30 UTC</strong>, about 15 documents for the gold tier, until 90"
        in text
    )
    assert ", 02:30 UTC</time>" in text
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    assert "It starts when the campaign is open." in text_of(manager.get(address(campaign)))
    save_schedule(campaign=campaign, actor=None, is_active=False)
    assert "switched off" in text_of(manager.get(address(campaign)))


def test_forecasts_are_listed_with_costs_and_the_narrowest_is_recommended_and_marked_beforehand(
    manager, campaign
):
    Campaign.objects.filter(pk=campaign.pk).update(cost_per_gold=2.5)
    computed(campaign, influence=0.21, rare=0.2, simple=0.3, effort=None)
    response = manager.get(address(campaign))
    text = text_of(response)
    assert [row["row"].strategy for row in response.context["forecasts"]] == [
        "rare",
        "influence",
        "simple",
        "effort",
    ]
    assert "DCG@10, run0 minus run2: <strong>± 0.400</strong> now" in text
    assert 'Lowest inclusion probability <span class="tag ok">largest reduction per cost</span>' in text
    assert 'Influence <span class="tag">about as good</span>' in text  # within the forecast's error
    assert "± 0.300" in text
    assert "too little gold" in text
    assert '<td class="number">50 %</td>' in text  # .4 to .2
    assert '<td class="number">30</td>' in text  # 12 gold labels at 2.5
    assert 'value="rare" id="id_strategy_3" checked' in text


def test_a_saved_strategy_stays_marked_whatever_is_recommended(manager, campaign):
    computed(campaign, influence=0.21, rare=0.2)
    save_schedule(campaign=campaign, actor=None, strategy="neyman")
    assert 'value="neyman" id="id_strategy_2" checked' in text_of(manager.get(address(campaign)))


def test_without_any_forecast_the_reason_is_said_once(manager, campaign):
    computed(campaign, influence=None, simple=None)
    assert text_of(manager.get(address(campaign))).count("No forecast: too little gold.") == 1


def test_the_history_has_the_forecast_beside_what_came_out(manager, campaign):
    judged(campaign)
    computed(campaign, n_more=24, influence=0.25)
    made = audit(campaign=campaign, items_each_time=24, items_in_total=42, seed=5)
    text = text_of(manager.get(address(campaign)))
    assert "no assessor in this tier" in text
    gold = make_assessor(campaign, "greta", tier="gold")
    assert "waiting for gold" in text_of(manager.get(address(campaign)))
    judge_audit(campaign, gold, leave=3)
    (shown,) = manager.get(address(campaign)).context["history"]
    assert (shown["n_judged"], shown["is_complete"], shown["outcome"]) == (made.n_selected - 3, False, "")
    judge_audit(campaign, gold)
    computation = recompute(campaign=campaign)
    row = Estimate.objects.get(
        computation=computation,
        run__run_id="run0",
        run_b__run_id="run2",
        measure="DCG@10",
        method="corrected",
    )
    (shown,) = manager.get(address(campaign)).context["history"]
    assert (shown["after"], shown["now"]) == ("0.250", "0.400")
    assert float(shown["outcome"]) == pytest.approx((row.unbounded_high - row.unbounded_low) / 2, rel=0.01)
    off = abs((row.unbounded_high - row.unbounded_low) / 2 - 0.25) / 0.02
    assert shown["errors_off"] == pytest.approx(off, abs=0.06)


def test_a_forecast_of_another_size_says_so_and_is_not_held_against_what_came_out(manager, campaign):
    judged(campaign)
    computed(campaign, n_more=12, influence=0.25)
    audited(campaign)
    recompute(campaign=campaign)
    response = manager.get(address(campaign))
    (shown,) = response.context["history"]
    assert shown["outcome"]
    assert shown["errors_off"] is None
    assert "for 12 more, not 24" in text_of(response)


def test_silver_audits_have_no_forecast_and_wait_for_their_own_tier(manager, campaign):
    judged(campaign)
    computed(campaign, simple=0.25)
    audit(campaign=campaign, items_each_time=9, items_in_total=42, tier="silver", strategy="simple", seed=5)
    make_assessor(campaign, "greta", tier="gold")
    response = manager.get(address(campaign))
    (shown,) = response.context["history"]
    assert shown["forecast"] is None
    assert "no assessor in this tier" in text_of(response)
    make_assessor(campaign, "sia", tier="silver")
    assert "waiting for silver" in text_of(manager.get(address(campaign)))


# -- who, and at what cost ------------------------------------------------------------------------------------


def test_only_managers_have_the_page(campaign):
    for role in ("assessor", "researcher"):
        client = client_of(role)
        assert client.get(address(campaign)).status_code == 404
        assert client.post(address(campaign), PLAN).status_code == 404
        assert (
            client.post(address(campaign, "audits-score"), {"bronze_score": "one-label"}).status_code == 404
        )
    assert Client().get(address(campaign)).status_code == 302
    assert client_of("manager").get(reverse("console:audits", args=[uuid.uuid4()])).status_code == 404
    assert client_of("manager").get(address(campaign, "audits-score")).status_code == 405
    assert not AuditSchedule.objects.exists()


def test_the_number_of_queries_does_not_grow_with_the_audits(
    manager, campaign, django_assert_max_num_queries
):
    judged(campaign)
    computed(campaign, simple=0.25)
    gold = make_assessor(campaign, "greta", tier="gold")
    counts = []
    for _ in range(2):
        for _ in range(3):
            audit(campaign=campaign, items_each_time=3, items_in_total=42, strategy="simple")
            judge_audit(campaign, gold)
        with django_assert_max_num_queries(40) as queries:
            manager.get(address(campaign))
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_of_many_audits_the_newest_are_shown(manager, campaign, monkeypatch):
    monkeypatch.setattr("console.manager.audits.SHOWN_AUDITS", 2)
    judged(campaign)
    for _ in range(4):
        audit(campaign=campaign, items_each_time=3, items_in_total=42, strategy="simple")
    response = manager.get(address(campaign))
    assert [shown["row"].sequence for shown in response.context["history"]] == [4, 3]
    assert "2 of 4" in text_of(response)


def test_the_overview_has_the_essentials_and_a_link(manager, campaign):
    judged(campaign)
    page = text_of(manager.get(reverse("console:campaign", args=[campaign.pk])))
    assert "No audit yet." in page
    save_schedule(campaign=campaign, actor=None, every_seconds=3600, items_each_time=15)
    made = audit(campaign=campaign, items_each_time=15, items_in_total=42, seed=5)
    page = text_of(manager.get(reverse("console:campaign", args=[campaign.pk])))
    assert f"1 so far; <strong>{made.n_selected} documents still wait to be judged again</strong>" in page
    assert "Planned: every hour, about 15 documents for the gold tier, next on" in page
    assert address(campaign) in page
    due = AuditSchedule.objects.get().starts_at + timedelta(hours=1)
    assert due > timezone.now()
    assert f"{due:%H:%M} UTC" in page
