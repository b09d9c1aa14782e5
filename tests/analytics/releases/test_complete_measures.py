"""A measure of completely judged ranks on a release: known where all first documents are judged, else refused."""

import json

import numpy as np
import pytest
from reciprocal_rank import plant
from run_samples import ranked_documents
from small_campaign import TOPICS, doc_id
from small_release import made_once, unpacked

from analytics.estimation.estimate import Estimate, Refusal
from analytics.releases.evaluating import evaluate
from analytics.releases.reading import open_release
from analytics.releases.sampled import SampledRelease
from analytics.releases.verify_facts import read_facts
from sampling.measures.scoring import index_qrels, measure_on_scale

pytestmark = pytest.mark.django_db
GAINS = [0.0, 1.0, 2.0, 3.0]


def release_of(tmp_path, monkeypatch, **options):
    """Return a release's folder. It is made before the measure is planted: other tests use the same one."""
    folder = unpacked(made_once(**options), tmp_path)
    plant(monkeypatch)
    return folder


def of_release(folder, ranking, name="PlantedRR@10"):
    about = json.loads((folder / "estimates.json").read_text())
    sampled = SampledRelease.of(read_facts(folder, about, with_runs=False), about["seed"])
    with open_release(folder) as opened:
        judged = index_qrels(opened.qrels())
    measure = measure_on_scale(name, GAINS, 1)
    return evaluate(sampled, about["measures"], [measure], ranking, ranked_documents(ranking), judged)[0]


def new_run(length=10):
    """A run that nobody knew at the draw, over documents that others returned."""
    places = (1, 3, 5, 7, 9, 11, 13, 0, 2, 4)[:length]
    return {topic: [doc_id(place, d) for d in places] for place, topic in enumerate(TOPICS)}


def share_relevant(folder):
    """Return by pair the share of its judgments that say relevant, from the release's own lines."""
    votes = {}
    for line in (folder / "judgments.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["label"]:
            votes.setdefault((row["topic_id"], row["doc_id"]), []).append(row["grade"] >= 1)
    return {pair: float(np.mean(of_pair)) for pair, of_pair in votes.items()}


def test_a_run_whose_first_documents_are_judged_has_its_value_and_an_interval_over_topics(
    tmp_path, monkeypatch
):
    folder = release_of(tmp_path, monkeypatch, budget=42, audited=42)
    ranking, share = new_run(), share_relevant(folder)
    expected = []
    for topic, documents in ranking.items():
        value, nothing_yet = 0.0, 1.0
        for rank, document in enumerate(documents, 1):
            value += nothing_yet * share[topic, document] / rank
            nothing_yet *= 1 - share[topic, document]
        expected.append(value)
    found = of_release(folder, ranking)
    assert found.estimator == "complete judgments"
    assert found.estimate.value == pytest.approx(np.mean(expected), rel=1e-12)
    assert found.estimate.low == found.estimate.high == found.estimate.value
    assert "no error bar for the judges" in found.estimate.warning
    error = np.std(expected, ddof=1) / np.sqrt(3)
    assert found.estimate_over_topics.standard_error == pytest.approx(error, rel=1e-12)
    assert "an audit corrects a sum over documents or a ratio alone" in found.corrected.reason
    first_relevant = {topic: found.by_topic[topic]["qrels"] for topic in ranking}
    assert set(first_relevant.values()) <= {1 / rank for rank in range(1, 11)} | {0.0}


def test_a_release_of_a_sample_refuses_it_and_says_what_is_missing(tmp_path, monkeypatch):
    folder = release_of(tmp_path, monkeypatch)
    found = of_release(folder, new_run())
    assert isinstance(found.estimate, Refusal)
    words = f"{found.estimate.needed} of 30 have none, in "
    assert (
        f"PlantedRR@10 needs a judgment of every document of the first 10 ranks: {words}"
        in found.estimate.reason
    )
    assert found.qrels > 0  # an unjudged document counts as not relevant, as in every tool


def test_a_document_outside_the_pool_is_named_where_the_measure_looks_at_it(tmp_path, monkeypatch):
    folder = release_of(tmp_path, monkeypatch, budget=42, audited=42)
    ranking = new_run(5)
    ranking["t1"].append("unheard-of")
    assert isinstance(of_release(folder, ranking, "PlantedRR@5").estimate, Estimate)
    refused = of_release(folder, ranking).estimate
    assert (
        refused.reason == "6.2% of the documents that the run returns within the cutoff could not be judged"
    )


def test_a_measure_of_pairs_is_scored_and_not_estimated(tmp_path, monkeypatch):
    found = of_release(release_of(tmp_path, monkeypatch), new_run(), "Swaps@10")
    assert 0 < found.qrels < 1
    assert found.estimate.reason == "Swaps@10 is a sum over pairs of documents: no estimator is made for it"
    assert found.corrected == found.estimate
