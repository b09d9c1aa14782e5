"""The ranking of the runs without judgments: its numbers, its page in every state, and the API."""

import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from asked_analyses import client_of, made, page_of, run_job
from django.urls import reverse
from small_campaign import judge_all, make_assessor, make_campaign, truth_of

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.frames import campaign_arrays
from analytics.lowcost.expected import exact_expected_ap, expected_map
from analytics.services.analyses import AnalysisRefused, AnalysisSubject, ask
from analytics.services.analyses.runs_alone import runs_alone
from analytics.services.analyses.variants import with_labels
from analytics.services.recomputation import recompute
from sampling.experts import Preferences, RankedPool, consensus
from sampling.similarity import mean_similarity, similarities

pytestmark = pytest.mark.django_db
WITHOUT = AnalysisSubject("no-judgments", "DCG@10")


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture(scope="module")
def judged_once(module_world, tmp_path_factory):
    campaign = make_campaign(tmp_path_factory.mktemp("world"))
    judge_all(
        campaign,
        [make_assessor(campaign, name) for name in ("ann", "ben")],
        lambda slot, place: truth_of(slot),
    )
    recompute(campaign=campaign)
    return campaign


@pytest.fixture
def judged(judged_once, db):
    return deepcopy(judged_once)


def pools_of(arrays):
    ranks = arrays.ranks.astype(float)
    ranks[ranks == 0] = np.inf
    return [RankedPool.of(ranks[:, arrays.topic_index == topic]) for topic in range(arrays.n_topics)]


def test_runs_are_ranked_by_the_consensus_without_a_judgment(campaign):
    result = made(campaign, WITHOUT)
    pools = pools_of(campaign_arrays(campaign))
    fits = [consensus(Preferences.of(pool)) for pool in pools]
    expected = expected_map(
        [exact_expected_ap(pool, fit.probability) for pool, fit in zip(pools, fits, strict=True)]
    )
    similarity = mean_similarity([similarities(pool) for pool in pools])
    names = [run.run_id for run in campaign_arrays(campaign).runs]
    rows = {row["run"]: row for row in result["runs"]}
    for name, value, d in zip(names, expected, similarity, strict=True):
        assert rows[name]["expected"] == pytest.approx(value)
        assert rows[name]["similarity"] == pytest.approx(d)
        assert rows[name]["reported"] is None
    assert [row["run"] for row in result["runs"]] == sorted(names, key=lambda name: -rows[name]["expected"])
    assert result["agreement"] == {"refusal": "nobody has judged yet"}
    assert result["calibration"] == {"refusal": "nobody has judged yet"}
    assert result["manual"]["refusal"] == "no run is marked as manual"
    assert result["n_topics"] == len(pools)
    assert result["n_documents"] == sum(pool.n_documents for pool in pools)


def test_judgments_say_what_ranking_and_probabilities_are_worth(judged):
    result = made(judged, WITHOUT)
    assert -1 <= result["agreement"]["tau"] <= 1
    assert result["agreement"]["n_runs"] == len(result["runs"])
    assert all(row["reported"] is not None for row in result["runs"])
    bins = result["calibration"]["bins"]
    assert sum(one["n"] for one in bins) == result["calibration"]["n"] == campaign_arrays(judged).judged.size
    assert all(one["n_relevant"] <= one["n"] and 0 <= one["share"] <= 1 for one in bins)
    assert np.isfinite([result["calibration"]["shift"], result["calibration"]["slope"]]).all()


def test_manual_runs_weigh_more_where_some_are_marked(judged):
    plain = {row["run"]: row["expected"] for row in made(judged, WITHOUT)["runs"]}
    judged.collection.runs.filter(run_id="run2").update(is_manual=True)
    result = made(judged, WITHOUT)
    rows = {row["run"]: row for row in result["runs"]}
    assert rows["run2"]["is_manual"] is True
    assert rows["run2"]["heavier"] > plain["run2"]
    assert {row["run"]: row["expected"] for row in result["runs"]} == pytest.approx(plain)
    assert [one["weight"] for one in result["manual"]["weights"]] == [8, 16]
    judged.collection.runs.update(is_manual=True)
    assert made(judged, WITHOUT)["manual"]["refusal"] == "every run is marked as manual"


def test_a_pool_too_large_for_its_table_of_pairs_is_refused_by_its_topic(campaign, monkeypatch):
    monkeypatch.setitem(runs_alone.__globals__, "LARGEST_POOL", 3)
    with pytest.raises(AnalysisRefused, match=r"at most 3 pooled documents for the consensus"):
        made(campaign, WITHOUT)


def test_the_page_goes_from_a_button_to_the_ranking(judged):
    text = page_of(judged, "no-judgments", measure="DCG@10")
    assert "This rewards what most runs do and is no evaluation" in text
    assert "Not computed yet" in text
    judged.collection.runs.filter(run_id="run2").update(is_manual=True)
    sent = client_of("researcher").post(
        reverse("console:analyse", args=[judged.pk, "no-judgments"]), {"measure": "DCG@10"}
    )
    assert sent.status_code == 302
    job = ask(campaign=judged, wanted=WITHOUT, user=None)
    assert "Being computed." in page_of(judged, "no-judgments", measure="DCG@10")
    assert run_job(job).state == "done"
    text = page_of(judged, "no-judgments", measure="DCG@10")
    assert "Runs by expected MAP" in text
    assert "Tau with the judged ranking" in text
    assert "Manual runs weigh 8" in text
    assert "weighted to the pool" in text


def test_before_anybody_has_judged_the_page_says_what_is_missing(campaign):
    assert run_job(ask(campaign=campaign, wanted=WITHOUT, user=None)).state == "done"
    text = page_of(campaign, "no-judgments", measure="DCG@10")
    assert "Not comparable with judgments: nobody has judged yet." in text
    assert "no run is marked as manual" in text


def test_with_one_run_there_is_nothing_to_rank(campaign):
    full = campaign_arrays(campaign)
    arrays = replace(full, runs=full.runs[:1])
    with pytest.raises(AnalysisRefused, match="only one run"):
        runs_alone(campaign, arrays, WITHOUT)


def test_imported_judgments_of_a_part_calibrate_nothing(judged):
    arrays = campaign_arrays(judged)
    half = with_labels(arrays, arrays.label_item < arrays.judged.size // 2)
    assert runs_alone(judged, half, WITHOUT)["calibration"]["refusal"] == ""
    found = runs_alone(judged, replace(half, order_is_random=False), WITHOUT)
    assert "not a random part" in found["calibration"]["refusal"]


def test_nobody_but_researchers_sees_it(campaign):
    page_of(campaign, "no-judgments", role="assessor", status=404, measure="DCG@10")


def test_the_api_has_it(judged):
    client = client_of("researcher")
    address = reverse("console:api-analyses", args=[judged.pk])
    asked = {"what": "no-judgments"}
    assert client.post(address, asked, content_type="application/json").status_code == 202
    run_job(ask(campaign=judged, wanted=WITHOUT, user=None))
    answer = json.loads(client.get(address, asked).content)
    assert answer["measure"] == "DCG@10"
    assert len(answer["result"]["runs"]) == judged.collection.runs.count()
    refused = client.get(address, {**asked, "run": "run0"})
    assert refused.status_code == 400
