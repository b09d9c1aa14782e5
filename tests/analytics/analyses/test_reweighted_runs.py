"""The ranking after reweighting: what it asks for, the runs with it, the order of the weights, its page."""

from copy import deepcopy

import numpy as np
import pytest
from asked_analyses import client_of, made, page_of, run_job
from django.urls import reverse
from scipy.stats import kendalltau, rankdata
from small_campaign import TOPICS, doc_id, judge_all, make_assessor, make_campaign, true_grade, truth_of

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.frames import campaign_arrays
from analytics.lowcost.expected import exact_expected_ap
from analytics.services.analyses import AnalysisSubject, ask
from analytics.services.analyses import reweighting as service
from analytics.services.analyses.runs_alone import runs_alone
from analytics.services.recomputation import recompute
from analytics.services.run_upload import arrays_of_runs
from judging.models import Assessor
from sampling.experts import Preferences, RankedPool, consensus
from sampling.reweighting import reweighting

pytestmark = pytest.mark.django_db
WITHOUT = AnalysisSubject("no-judgments", "DCG@10")


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture(scope="module")
def judged_once(module_world, tmp_path_factory):
    campaign = make_campaign(tmp_path_factory.mktemp("world"))
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    judge_all(campaign, people, lambda slot, place: truth_of(slot))
    recompute(campaign=campaign)
    return campaign


@pytest.fixture
def judged(judged_once, db):
    return deepcopy(judged_once)


@pytest.fixture
def four_rounds(monkeypatch):
    """Of three runs the method makes one round, without a pair of judgments; before the fourth all runs agree."""
    monkeypatch.setattr(service, "round_count", lambda n_runs: 4)


def pool_of():
    """Ranks of the 14 documents of a topic, the same in every topic: run r returns 2r, ..., 2r + 9."""
    ranks = np.full((3, 14), np.inf)
    for run in range(3):
        ranks[run, 2 * run : 2 * run + 10] = np.arange(1, 11)
    return RankedPool.of(ranks)


def is_relevant(topic, document, arrays):
    return true_grade(TOPICS[topic], doc_id(topic, document)) >= arrays.relevant_grade


def test_before_anybody_has_judged_it_names_the_likeliest_document_of_every_topic(campaign):
    found = made(campaign, WITHOUT)["reweighting"]
    likeliest = int(np.argmax(consensus(Preferences.of(pool_of())).probability))
    assert found["lacking"] == [
        {"topic": topic_id, "document": doc_id(topic, likeliest), "is_drawn": True}
        for topic, topic_id in enumerate(TOPICS)
    ]
    assert (found["refusal"], found["n_rounds"], found["n_rounds_made"], found["n_judged"]) == ("", 1, 0, 0)
    assert found["runs"] == []
    assert found["agreement"] == found["weights"] == {"refusal": "a round is not made"}


def test_what_the_draw_left_out_is_named_as_not_drawn(tmp_path):
    sparse = make_campaign(tmp_path, budget=6)
    drawn = set(sparse.items.values_list("topic__topic_id", "document__doc_id"))
    rows = made(sparse, WITHOUT)["reweighting"]["lacking"]
    assert len(rows) == len(TOPICS)
    assert [row["is_drawn"] for row in rows] == [(row["topic"], row["document"]) in drawn for row in rows]
    assert False in [row["is_drawn"] for row in rows]


def test_with_all_it_chooses_judged_the_runs_are_ranked_again(judged, four_rounds):
    result = made(judged, WITHOUT)
    found, arrays = result["reweighting"], campaign_arrays(judged)
    direct = reweighting(
        [pool_of()] * len(TOPICS), lambda topic, document: is_relevant(topic, document, arrays), n_rounds=4
    )
    assert found["lacking"] == []
    assert (found["n_rounds_made"], found["n_judged"]) == (4, 12)
    assert found["n_relevant"] == sum(sum(known.values()) for known in direct.judged)
    counts = [(sum(known.values()), len(known)) for known in direct.judged]
    assert found["n_pairs"] == sum(relevant * (n - relevant) for relevant, n in counts) > 0
    scores = []
    for fit, known in zip(direct.consensuses, direct.judged, strict=True):
        p = fit.probability
        for document, label in known.items():
            p[document] = label
        scores.append(exact_expected_ap(pool_of(), p))
    rows = {row["run"]: row for row in found["runs"]}
    values = [rows[name]["expected"] for name in ("run0", "run1", "run2")]
    assert values == pytest.approx(np.mean(scores, axis=0))
    assert [row["expected"] for row in found["runs"]] == sorted(values, reverse=True)
    plain = {row["run"]: row for row in result["runs"]}
    assert {name: row["place_before"] for name, row in rows.items()} == {
        row["run"]: place for place, row in enumerate(result["runs"], start=1)
    }
    assert {name: row["reported"] for name, row in rows.items()} == {
        name: row["reported"] for name, row in plain.items()
    }
    by_weight = rankdata(-direct.weights.round(9), method="min")
    assert [rows[name]["place_by_weight"] for name in ("run0", "run1", "run2")] == by_weight.tolist()
    # what differs by rounding alone is a tie
    reported = np.round([plain[name]["reported"] for name in ("run0", "run1", "run2")], 9)
    values = np.round(values, 9)
    assert found["agreement"]["tau"] == pytest.approx(kendalltau(reported, values).statistic)
    assert found["weights"]["tau"] == pytest.approx(kendalltau(reported, direct.weights).statistic)


def test_weights_that_no_pair_has_changed_have_no_order(judged):
    found = made(judged, WITHOUT)["reweighting"]
    assert (found["lacking"], found["n_judged"], found["n_pairs"]) == ([], 3, 0)
    assert "all weights are equal" in found["weights"]["refusal"]
    assert found["agreement"]["refusal"] == ""
    assert len(found["runs"]) == 3


def test_two_runs_ask_for_no_judgment(judged):
    arrays = campaign_arrays(judged)
    two = arrays_of_runs(arrays, [run.pk for run in arrays.runs[:2]])
    assert runs_alone(judged, two, WITHOUT)["reweighting"] == {
        "refusal": "2 runs ask for no judgment: it takes 3 runs"
    }


def computed_page(campaign):
    assert run_job(ask(campaign=campaign, wanted=WITHOUT, user=None)).state == "done"
    return page_of(campaign, "no-judgments", measure="DCG@10")


def test_the_page_names_the_documents_until_they_are_judged(campaign):
    text = computed_page(campaign)
    assert "Round 1 of 1 asks for 3 documents that nobody has judged." in text
    assert "drawn, not judged yet" in text
    assert "Runs after reweighting" not in text


def test_the_page_shows_the_ranking_and_the_weights_as_an_order_alone(judged, four_rounds):
    text = computed_page(judged)
    assert "All 12 are judged" in text
    assert "Rank by weight" in text
    assert "in the order of the weights alone" in text
    assert "asks for" not in text


def test_both_charts_are_files_too(judged):
    computed_page(judged)
    client, address = client_of("researcher"), reverse("console:no-judgments", args=[judged.pk])
    asked = {"measure": "DCG@10"}
    for plot, columns in (
        ("runs", "run,kind,DCG@10 by judgments,expected MAP without judgments"),
        ("calibration", "from,to,relevant,documents"),
    ):
        for file_format, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
            answer = client.get(address, {**asked, "plot": plot, "format": file_format})
            assert answer.status_code == 200
            assert answer.content.startswith(start)
        table = client.get(address, {**asked, "plot": plot, "format": "csv"}).content.decode().splitlines()
        assert table[0] == columns
        assert len(table) > 2
    assert client.get(address, {**asked, "plot": "other"}).status_code == 404


def test_without_judgments_there_is_no_chart_and_tau_stands_in_the_caption_with_them(campaign):
    text = computed_page(campaign)
    assert 'id="plot-' not in text
    address = reverse("console:no-judgments", args=[campaign.pk])
    answer = client_of("researcher").get(address, {"measure": "DCG@10", "plot": "runs", "format": "svg"})
    assert answer.status_code == 404
    for name in ("ann", "ben"):
        make_assessor(campaign, name)
    people = list(Assessor.objects.filter(campaign=campaign))
    judge_all(campaign, people, lambda slot, place: truth_of(slot))
    recompute(campaign=campaign)
    text = computed_page(campaign)
    tau = made(campaign, WITHOUT)["agreement"]["tau"]
    assert f"Tau {tau:.3f} over 3 runs." in text
    assert "On the broken line the probabilities would be right." in text
