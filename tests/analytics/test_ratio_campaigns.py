"""A campaign drawn for nDCG or AP, and audited for it: forecasts, pages and the API."""

import json

import pytest
from audit_plans import PLAN, address, audited, client_of, judged, text_of
from django.urls import reverse
from small_campaign import DEPTH, N_FRAME, make_undrawn

from analytics.models import AuditForecast
from analytics.services.forecast import forecast
from analytics.services.recomputation import recompute
from judging.services.campaigns import open_campaign
from sampling.models import AuditSchedule
from sampling.questions import Design
from sampling.services.audit_schedules import save_schedule
from sampling.services.drawing import draw

pytestmark = pytest.mark.django_db
PAGES = ("campaign", "campaign-results", "pairs", "ranking", "topics", "planner", "reuse", "design", "audits")
PAIR = {"question": "pair", "runs": ["run0", "run2"], "depth": DEPTH, "budget": 20}


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def undrawn(tmp_path):
    return make_undrawn(tmp_path)


def drawn_for(campaign, measure, question="pair"):
    runs = ("run0", "run2") if question == "pair" else ()
    draw(campaign=campaign, design=Design(question, runs, measure, DEPTH, N_FRAME), seed=20)
    open_campaign(campaign=campaign, actor=None)
    judged(campaign)


def forecasts_of(campaign):
    computation = recompute(campaign=campaign)
    return {row.strategy: row for row in AuditForecast.objects.filter(computation=computation)}


@pytest.mark.parametrize(("measure", "question"), [("nDCG@10", "pair"), ("AP@10", "pool")])
def test_it_goes_from_the_draw_to_the_pages_of_its_numbers(undrawn, measure, question):
    drawn_for(undrawn, measure, question)
    audited(undrawn, 20)
    save_schedule(campaign=undrawn, actor=None, items_each_time=10, items_in_total=42)
    found = forecasts_of(undrawn)
    assert {row.measure for row in found.values()} == {measure}
    assert {row.refusal for row in found.values()} == {""}
    assert min(row.half_width_after for row in found.values()) > 0
    client = client_of("manager")
    for name in PAGES:
        answer = client.get(address(undrawn, name))
        assert answer.status_code == 200, name
    assert f"Influence for {measure}" in text_of(client.get(address(undrawn)))
    results = text_of(client.get(address(undrawn, "campaign-results")))
    assert measure in results


def test_a_plan_in_another_measure_is_saved_forecast_and_refused_beside_its_field(undrawn):
    drawn_for(undrawn, "DCG@10")
    assert {row.measure for row in forecasts_of(undrawn).values()} == {"DCG@10"}
    client = client_of("manager")
    sent = {**PLAN, "measure": "nDCG@10"}
    assert client.post(address(undrawn), sent, follow=True).status_code == 200
    assert AuditSchedule.objects.get(campaign=undrawn).measure == "nDCG@10"
    assert {row.measure for row in forecasts_of(undrawn).values()} == {"nDCG@10"}
    for wrong, words in (
        ("ERR@10", "a measure of completely judged ranks"),
        ("nDCG@11", "deeper than rank 10"),
    ):
        answer = client.post(address(undrawn), {**sent, "measure": wrong})
        assert answer.status_code == 400
        assert words in text_of(answer)
    client.post(address(undrawn), PLAN)  # as the step of the set-up, which does not ask for it
    assert AuditSchedule.objects.get(campaign=undrawn).measure == "nDCG@10"


def test_the_pages_and_the_api_say_what_limits_the_numbers(undrawn):
    design = Design("pair", ("run0", "run2"), "nDCG@10", DEPTH, 12)
    limit = forecast(campaign=undrawn, design=design).preview.limit
    assert "takes one gain above 0, and this scale has 3" in limit
    client = client_of("manager")
    asked = {**PAIR, "run_a": "run0", "run_b": "run2", "measure": "nDCG@10", "budget": 12}
    text = text_of(client.get(address(undrawn, "design"), asked))
    assert "there would be no confidence interval of the corrected number" in text
    assert 'value="nDCG@10"' in text
    assert "completely down to rank" not in text  # a depth pool has no denominator
    assert (
        forecast(campaign=undrawn, design=Design("pair", ("run0", "run2"), "DCG@10", DEPTH, 12)).preview.limit
        == ""
    )
    path = f"/api/v1/campaigns/{undrawn.pk}"
    sent = {**PAIR, "measure": "nDCG@10", "budget": 12}
    answer = client.post(f"{path}/forecast", json.dumps(sent), content_type="application/json")
    assert answer.status_code == 200, answer.content
    said = answer.json()
    assert (said["limit"], said["n_silent_topics"], set(said["widths"])) == (limit, 0, {"pool", "default"})
    refused = client.post(
        f"{path}/forecast", json.dumps({**sent, "measure": "ERR@10"}), content_type="application/json"
    )
    assert refused.status_code == 400
    assert "or draw a sample of whole topics" in refused.json()["detail"]


def test_schedules_and_audits_over_the_api_take_a_measure(undrawn):
    drawn_for(undrawn, "DCG@10")
    client, path = client_of("manager"), f"/api/v1/campaigns/{undrawn.pk}/audits"
    json_type = {"content_type": "application/json"}
    answer = client.patch(f"{path}/schedule", json.dumps({"measure": "MAP@10"}), **json_type)
    assert answer.status_code == 200
    assert answer.json()["schedule"]["measure"] == "AP@10"
    for wrong in ("ERR@10", "Quality@10", "AP"):
        assert (
            client.patch(f"{path}/schedule", json.dumps({"measure": wrong}), **json_type).status_code == 400
        )
        assert client.post(path, json.dumps({"items": 5, "measure": wrong}), **json_type).status_code == 400
    assert client.post(path, json.dumps({"items": 5, "measure": "nDCG@10"}), **json_type).status_code == 202


def test_a_run_is_asked_about_in_dcg_where_no_measure_is_named(undrawn):
    drawn_for(undrawn, "nDCG@5")
    save_schedule(campaign=undrawn, actor=None, items_each_time=10, items_in_total=20)
    recompute(campaign=undrawn)
    answer = client_of("manager").get(reverse("console:api-reuse", args=[undrawn.pk]), {"run": "run1"})
    assert answer.status_code == 200, answer.content
    assert answer.json()["measure"] == "DCG@5"
