"""Measures, estimates, comparisons and ranking for programs: one campaign, audited and computed."""

import itertools
import uuid
from typing import Any

import pytest
from api_numbers import newest
from django.test import Client
from small_campaign import (
    RUNS,
    judge_all,
    make_assessor,
    make_campaign,
    returned,
    true_grade,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import Estimate
from analytics.services.recomputation import measures_of, recompute
from touchstone.models import User

pytestmark = pytest.mark.xdist_group("api-results")

PAIRS = list(itertools.combinations(RUNS, 2))

PATHS = [
    "measures",
    "estimates",
    "comparisons",
    "ranking",
    "computations",
    "confusions",
    "flags",
    "plots/forest",
]


@pytest.mark.django_db  # the first of the file: pytest-django makes the test database when a test says so
@pytest.mark.parametrize("path", PATHS)
def test_nobody_reads_numbers_without_a_login(path):
    answer = Client().get(f"/api/v1/campaigns/{uuid.UUID(int=0)}/{path}")
    assert answer.status_code in (401, 403)
    assert answer["Content-Type"] == "application/problem+json"


# -- measures and estimates -----------------------------------------------------------------------------------


def test_the_measures_are_listed_with_the_computation_that_has_them(campaign, ask):
    body = ask("measures").json()
    assert [one["name"] for one in body["measures"]] == measures_of(campaign)
    assert [one["is_usual"] for one in body["measures"]][:2] == [True, False]
    assert {one["name"]: one["kind"] for one in body["measures"]}["nDCG@10"] == "ratio"
    assert body["computation"]["n_audited"] == 35
    assert body["computation"]["id"] == newest(campaign).pk


def test_walking_the_pages_meets_every_estimate_of_the_newest_computation_once(campaign, ask):
    seen, url = [], None
    page = ask("estimates", page_size=7).json()
    client = Client()
    client.force_login(User.objects.get(username="rhea"))
    while True:
        seen += [one["id"] for one in page["results"]]
        assert len(page["results"]) <= 7
        url = page["next"]
        if url is None:
            break
        page = client.get(url).json()
    assert len(seen) == len(set(seen))
    assert set(seen) == set(newest(campaign).estimates.values_list("pk", flat=True))
    assert Estimate.objects.filter(computation__campaign=campaign).count() > len(seen)


def test_an_estimate_is_told_with_every_stored_number(campaign, ask):
    query = {"measure": "P@10", "method": "corrected", "run": "run0", "run_b": "run1"}
    [told] = ask("estimates", **query).json()["results"]
    stored = newest(campaign).estimates.get(
        measure="P@10", method="corrected", run__run_id="run0", run_b__run_id="run1"
    )
    for name in (
        "value",
        "standard_error",
        "low",
        "high",
        "p_value",
        "n",
        "components",
        "sources",
        "refusal",
    ):
        assert told[name] == getattr(stored, name), name


@pytest.mark.parametrize(("pairs", "count"), [("true", len(PAIRS)), ("false", len(RUNS))])
def test_pairs_and_single_runs_are_told_apart(ask, pairs, count):
    rows = ask("estimates", pairs=pairs, measure="P@10", method="naive").json()["results"]
    assert len(rows) == count
    assert all((row["run_b"] is not None) == (pairs == "true") for row in rows)


def test_the_true_values_are_those_counted_by_hand(ask):
    rows = ask("estimates", pairs="false", measure="P@10", method="true").json()["results"]
    for row in rows:
        documents = returned(RUNS.index(row["run"]))
        relevant = sum(true_grade(topic, document) > 0 for topic, document in documents)
        assert row["value"] == pytest.approx(relevant / len(documents))


def test_an_older_computation_can_be_asked_and_another_campaigns_cannot(campaign, ask, tmp_path):
    older = campaign.computations.order_by("id").first()
    rows = ask("estimates", computation=older.pk, method="corrected", page_size=200).json()["results"]
    assert rows
    assert {row["value"] for row in rows if row["refusal"]} == {None}
    other = make_campaign(tmp_path)
    judge_all(other, [make_assessor(other, "ann"), make_assessor(other, "ben")])
    foreign = recompute(campaign=other)
    assert ask("estimates", computation=foreign.pk).json()["results"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"method": "guessed"},
        {"pairs": "perhaps"},
        {"computation": "newest"},
        {"computation": "0"},
        {"computation": "9" * 30},
        {"meassure": "P@10"},
        {"page_size": "0"},
        {"cursor": "nonsense"},
    ],
)
def test_what_a_list_does_not_know_is_refused_by_name(ask, query):
    answer = ask("estimates", status=400, **query)
    assert answer["Content-Type"] == "application/problem+json"
    assert list(answer.json()["errors"]) == list(query)


# -- comparisons ----------------------------------------------------------------------------------------------


def holm_by_hand(p_values: dict[Any, float]) -> dict[Any, float]:
    """The definition, in words: of m ordered p the i-th is multiplied by m - i, and never below those before it."""
    found, largest = {}, 0.0
    for place, (key, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - place)))
        found[key] = largest
    return found


def test_all_pairs_have_holms_p_also_on_a_page_of_one(campaign, ask):
    stored = newest(campaign).estimates.filter(measure="DCG@10", method="corrected", run_b__isnull=False)
    p_values = {(e.run.run_id, e.run_b.run_id): e.p_value for e in stored}
    assert len(p_values) == len(PAIRS)
    expected = holm_by_hand(p_values)
    these = {"measure": "DCG@10", "claim": "these-topics"}
    rows = ask("comparisons", **these).json()["results"]
    assert {(row["run"], row["run_b"]): row["p_holm"] for row in rows} == pytest.approx(expected)
    for row in rows:
        told_apart = row["p_holm"] < 0.05
        better = (row["run"] if row["value"] > 0 else row["run_b"]) if told_apart else None
        assert row["better"] == better
        assert "DCG@10" in row["verdict"]
    [alone] = ask("comparisons", run="run0", run_b="run2", **these).json()["results"]
    assert alone["p_holm"] == pytest.approx(expected["run0", "run2"])


def test_without_a_measure_the_pairs_are_those_of_the_measure_drawn_for(ask):
    rows = ask("comparisons").json()["results"]
    assert {row["measure"] for row in rows} == {"DCG@10"}
    assert ask("comparisons", measure="P@999").json()["results"] == []


def test_one_pair_turned_round_says_the_same_of_the_same_runs(ask):
    forth = ask("comparison", run="run0", against="run2", measure="P@10").json()
    back = ask("comparison", run="run2", against="run0", measure="P@10").json()
    value = {e["method"]: e["value"] for e in forth["estimates"]}
    assert {"naive", "corrected", "true"} <= set(value)
    for estimate in back["estimates"]:
        if value[estimate["method"]] is not None:
            assert estimate["value"] == pytest.approx(-value[estimate["method"]])
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert forth["p_holm"] == back["p_holm"]
    assert forth["better"] == back["better"]
    assert forth["n_compared"] == len(PAIRS)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"run": "run0"}, "against"),
        ({"run": "run0", "against": "run0"}, "against"),
        ({"run": "run0", "against": "nobody"}, "against"),
        ({"run": "run0", "against": "run1", "measure": "P@999"}, "measure"),
        ({"run": "run0", "against": "run1", "method": "naive"}, "method"),
    ],
)
def test_a_comparison_that_cannot_be_made_names_what_is_wrong(ask, query, field):
    assert field in ask("comparison", status=400, **query).json()["errors"]


def test_the_ranking_has_chances_that_add_up_and_the_best_run_first(ask):
    body = ask("ranking", measure="P@10").json()
    values = [run["value"] for run in body["runs"]]
    assert values == sorted(values, reverse=True)
    assert len(values) == len(RUNS)
    for place, run in enumerate(body["runs"], start=1):
        assert run["rank"] == place
        assert run["rank_low"] <= place <= run["rank_high"]
        assert sum(run["probabilities"]) == pytest.approx(1)
    assert -1 <= body["tau"]["low"] <= body["tau"]["high"] <= 1
    assert body["n_pairs"] == len(PAIRS)
    assert "method" in ask("ranking", status=400, method="true").json()["errors"]
