"""A release in the tools of the field: they read it, and say what we say."""

import csv
import gzip
import importlib.metadata
import json
import os
import subprocess
import sys
import warnings

import ir_datasets
import ir_measures
import numpy as np
import pytest
import pytrec_eval
from small_campaign import TOPICS
from small_release import VERSION, made_once, unpacked

import touchstone_ir.adapters.ir_datasets_provider as provider
from analytics.releases.reading import open_release
from judging.runs import read_columns
from sampling.measures.scoring import evaluate_topics, index_qrels, measure_on_scale, ranked_run

pytestmark = pytest.mark.django_db
GAINS = [0.0, 1.0, 2.0, 3.0]
RUNS = ["run0", "run1", "run2"]


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(), tmp_path / "releases")


def run_file(release, run_id):
    runs = json.loads((release / "runs.json").read_text())
    return release / next(run["file"] for run in runs if run["run_id"] == run_id)


def ours(release, run_id, measure):
    """Return the measure of every topic as the product computes it from the release's files."""
    with open_release(release) as opened:
        qrels = index_qrels(opened.qrels())
    columns = read_columns(run_file(release, run_id), run_id)
    run = ranked_run(columns.topic_ids, columns.offsets, columns.pair_hashes)
    found = evaluate_topics(run, qrels, [measure_on_scale(measure, GAINS, 1)])
    return dict(zip(found.topic_ids, found.values[0].tolist(), strict=True))


# -- evaluation tools --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", RUNS)
def test_pytrec_eval_says_what_we_say(release, run_id):
    qrels, run = {}, {}
    for line in (release / "qrels.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        qrels.setdefault(topic, {})[document] = int(grade)
    for line in gzip.decompress(run_file(release, run_id).read_bytes()).decode().splitlines():
        topic, _, document, _, score, _ = line.split()
        run.setdefault(topic, {})[document] = float(score)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"P.10", "ndcg_cut.10"}).evaluate(run)
    for measure, name in (("P@10", "P_10"), ("nDCG@10", "ndcg_cut_10")):
        expected = {topic: values[name] for topic, values in theirs.items()}
        assert ours(release, run_id, measure) == pytest.approx(expected, abs=1e-9)
    assert len(theirs) == 3
    assert any(values["P_10"] not in (0, 1) for values in theirs.values())


@pytest.mark.parametrize(
    "name", ["P@10", "nDCG@10", "AP", "AP@5", "R@5", "RR@10", "RR(rel=2)@5", "P(rel=2)@5", "Judged@10"]
)
def test_ir_measures_reads_the_files_and_says_what_evaluate_says(release, name):
    measure = measure_on_scale(name, GAINS, 1)
    unpacked_run = release.parent / "run1.run"
    unpacked_run.write_bytes(gzip.decompress(run_file(release, "run1").read_bytes()))
    qrels = list(ir_measures.read_trec_qrels(str(release / "qrels.txt")))
    run = list(ir_measures.read_trec_run(str(unpacked_run)))
    parsed = ir_measures.parse_measure(measure.ir_measures)
    theirs = {row.query_id: row.value for row in ir_measures.iter_calc([parsed], qrels, run)}
    assert ours(release, "run1", name) == pytest.approx(theirs, abs=1e-9)
    assert set(theirs) == set(TOPICS)


@pytest.mark.slow
def test_ranx_reads_the_files_and_says_what_we_say(release):
    """In a process of its own, where numba does not compile: that would take minutes for nine numbers."""
    unpacked_run = release.parent / "run2.trec"
    unpacked_run.write_bytes(gzip.decompress(run_file(release, "run2").read_bytes()))
    program = f"""
import json, warnings
warnings.simplefilter("ignore")
from ranx import Qrels, Run, evaluate
qrels = Qrels.from_file({str(release / "qrels.txt")!r}, kind="trec")
run = Run.from_file({str(unpacked_run)!r}, kind="trec")
found = evaluate(qrels, run, ["precision@10", "ndcg@10"], make_comparable=True)
print(json.dumps({{name: float(value) for name, value in found.items()}}))
"""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run(
        [sys.executable, "-c", program], env=plain, capture_output=True, text=True, timeout=240
    )
    assert found.returncode == 0, found.stderr
    theirs = json.loads(found.stdout.splitlines()[-1])
    for measure, name in (("P@10", "precision@10"), ("nDCG@10", "ndcg@10")):
        assert np.mean(list(ours(release, "run2", measure).values())) == pytest.approx(theirs[name], abs=1e-6)


# -- ir_datasets -------------------------------------------------------------------------------------------------


@pytest.fixture
def dataset(release, monkeypatch, tmp_path):
    """Load a part of the release by name, as a user would; ir_datasets keeps what it made nowhere that stays."""
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(release.parent))
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "irds"))
    slug = json.loads((release / "manifest.json").read_text())["slug"]
    name = f"touchstone/{slug}/{VERSION}"
    yield lambda part="": ir_datasets.load(name + part)
    for part in ("", "/prels", "/qrels_jg"):
        ir_datasets.registry._registered.pop(name + part, None)


def test_ir_datasets_loads_documents_queries_and_qrels(release, dataset):
    found = dataset()
    assert [query.query_id for query in found.queries] == TOPICS
    query = next(found.queries_iter())
    assert (query.title, query.description, query.narrative) == ("Need t0", "", "")
    assert type(query).__name__ == "TrecQuery"
    documents = list(found.docs)
    assert len(documents) == found.docs.metadata.get("count", 42) == 42
    assert (documents[0].doc_id, documents[0].default_text()) == ("t0d00", "Text of t0d00")
    lines = [tuple(line.split()) for line in (release / "qrels.txt").read_text().splitlines()]
    assert [(q.query_id, q.iteration, q.doc_id, str(q.relevance)) for q in found.qrels] == lines
    assert found.qrels_defs()[3] == "Highly relevant"


def test_documents_are_found_by_id_and_by_slice(dataset):
    found = dataset()
    assert found.docs.lookup("t1d05").text == "Text of t1d05"
    assert [document.doc_id for document in found.docs_iter()[1:3]] == ["t0d01", "t0d02"]


def test_parts_have_every_assessors_grade_and_every_probability(release, dataset):
    said = [(q.query_id, q.iteration, q.doc_id, str(q.relevance)) for q in dataset("/qrels_jg").qrels]
    assert said == [tuple(line.split()) for line in (release / "qrels_jg.txt").read_text().splitlines()]
    probable = list(dataset("/prels").qrels)
    assert type(probable[0]).__name__ == "TrecPrel"
    assert [(p.query_id, p.doc_id, p.relevance, p.method) for p in probable] == [
        (fields[0], fields[1], int(fields[2]), int(fields[3]))
        for fields in map(str.split, (release / "prels.txt").read_text().splitlines())
    ]
    assert all(0 < p.iprob <= 1 for p in probable)


def test_a_release_without_texts_has_queries_and_qrels_but_no_documents(tmp_path, monkeypatch):
    folder = unpacked(made_once(documents=False), tmp_path / "releases")
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(folder.parent))
    found = provider.dataset(json.loads((folder / "manifest.json").read_text())["slug"], VERSION)
    assert (found.has_docs(), found.has_queries(), found.has_qrels()) == (False, True, True)


def test_a_name_that_no_place_has_says_where_was_looked(tmp_path, monkeypatch):
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(tmp_path))
    with pytest.raises(KeyError, match=f"no release nothing 1.0: looked for .* in {tmp_path}"):
        ir_datasets.load("touchstone/nothing/1.0")
    with pytest.raises(KeyError):
        ir_datasets.load("touchstone/nothing/not-a-version")


def test_the_package_names_its_provider_for_those_who_look_for_entry_points(release, monkeypatch):
    points = importlib.metadata.entry_points(group="ir_datasets.providers")
    (found,) = [point.load() for point in points if point.name == "touchstone"]
    assert found.prefix == "touchstone"
    assert list(found.discover_edges()) == []
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(release.parent))
    slug = json.loads((release / "manifest.json").read_text())["slug"]
    loaded = found.load(f"touchstone:{slug}/{VERSION}/prels")
    assert type(next(loaded.qrels_iter())).__name__ == "TrecPrel"
    with pytest.raises(KeyError):
        found.load("touchstone:nothing/1.0")


# -- Croissant and BEIR ------------------------------------------------------------------------------------------


def test_mlcroissant_finds_the_description_valid_and_reads_its_records(release):
    """Warnings of the library itself are not ours to raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        dataset = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
        assert dataset.metadata.issues.errors == set()
        names = [record_set.id for record_set in dataset.metadata.record_sets]
        items = next(name for name in names if "item" in name)
        records = list(dataset.records(items))
    with open_release(release) as opened:
        assert len(records) == len(list(opened.rows("items.jsonl"))) >= 42
    assert any(str(key).endswith("topic_id") for key in records[0])


def beir(folder, split="test"):
    """Read a collection by the rules of BEIR's loader: corpus and queries by _id, qrels with one line of head, integer
    scores; queries without qrels are dropped."""
    corpus, queries, qrels = {}, {}, {}
    for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        corpus[row["_id"]] = {"title": row["title"], "text": row["text"]}
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        queries[row["_id"]] = row["text"]
    with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_MINIMAL)
        assert next(rows) == ["query-id", "corpus-id", "score"]
        for query, document, score in rows:
            qrels.setdefault(query, {})[document] = int(score)
    return corpus, {query: queries[query] for query in qrels}, qrels


def test_the_beir_folder_follows_the_rules_of_its_loader(release):
    corpus, queries, qrels = beir(release / "beir")
    assert len(corpus) == 42
    assert corpus["t2d03"] == {"title": "", "text": "Text of t2d03"}
    assert queries == {topic: f"Need {topic}" for topic in TOPICS}
    with open_release(release) as opened:
        expected = [(line.topic_id, line.doc_id, line.grade) for line in opened.qrels()]
    assert [(q, d, score) for q, documents in qrels.items() for d, score in documents.items()] == expected
    assert all(document in corpus for documents in qrels.values() for document in documents)
