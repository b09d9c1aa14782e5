"""Two runs are `run` and `against` wherever they are named; the names of before are understood for one version."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from small_campaign import RUNS

from analytics.models import AuditForecast
from console.api.serializers.results import ForecastAnswer
from touchstone.api.schema import description
from touchstone.models import User

pytestmark = pytest.mark.xdist_group("api-results")
PATHS = {"estimates": {"method": "corrected"}, "comparisons": {}}


@pytest.mark.django_db
@pytest.mark.parametrize("path", PATHS)
def test_the_second_run_is_asked_for_by_either_name_and_told_under_both(ask, path):
    query = {"measure": "P@10", "run": "run0", **PATHS[path]}
    told = ask(path, **query, against="run2").json()["results"]
    assert [(row["run"], row["against"], row["run_b"]) for row in told] == [("run0", "run2", "run2")]
    assert ask(path, **query, run_b="run2").json()["results"] == told


@pytest.mark.parametrize("path", PATHS)
def test_both_names_at_once_are_refused(ask, path):
    answer = ask(path, status=400, run="run0", against="run2", run_b="run2")
    assert answer.json()["errors"] == {"run_b": ["is the same as against: give one of them"]}


def test_numbers_of_one_run_are_against_none(ask):
    rows = ask("estimates", measure="P@10", method="naive", pairs="false").json()["results"]
    assert {row["run"]: row["against"] for row in rows} == dict.fromkeys(RUNS)
    answer = ask("run-estimate", run="run0", against="run1", measure="P@10").json()
    assert {row["against"] for row in answer["values"]} == {None}
    assert {(row["run"], row["against"]) for row in answer["differences"]} == {("run0", "run1")}


def test_forecasts_of_audits_name_the_pair(campaign, ask):
    assert {row["against"] for row in ask("audit-forecasts", user="mia").json()["results"]} == {None}
    forecast = AuditForecast.objects.filter(computation__campaign=campaign).first()
    forecast.run_b = campaign.collection.runs.get(run_id="run2")
    told = ForecastAnswer(forecast).data
    assert (told["against"], told["run_b"]) == ("run2", "run2")


def test_the_old_names_are_described_as_deprecated():
    described = description()
    for path in PATHS:
        parameters = described["paths"][f"/api/v1/campaigns/{{campaign_id}}/{path}"]["get"]["parameters"]
        by_name = {one["name"]: one for one in parameters}
        assert by_name["run_b"]["deprecated"]
        assert "deprecated" not in by_name["against"]
    schemas = described["components"]["schemas"]
    has_old = [name for name, one in schemas.items() if "run_b" in one.get("properties", {})]
    assert len(has_old) == 4
    for name in has_old:
        fields = schemas[name]["properties"]
        assert fields["run_b"]["deprecated"], name
        assert "deprecated" not in fields["against"], name


@pytest.mark.parametrize("names", [("run", "against"), ("a", "b")])
def test_the_page_of_a_pair_is_found_under_both_addresses(campaign: Any, names: tuple[str, str]) -> None:
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    address = reverse("console:pair", args=[campaign.pk])
    answer = client.get(address, {**dict(zip(names, ("run2", "run0"), strict=True)), "measure": "P@10"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "run2 against run0" in page
    assert '<select id="run-a" name="run">' in page
    assert '<select id="run-b" name="against">' in page
    assert client.get(address, {names[0]: "run2", names[1]: "nobody"}).status_code == 404
