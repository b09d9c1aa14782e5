"""A release's judgments as a measure of ir_measures."""

import gzip
import json

import ir_measures
import numpy as np
import pytest
from small_campaign import true_grade
from small_release import made_once, unpacked

import touchstone_ir as ts
from touchstone_ir.adapters import ir_measure
from touchstone_ir.columns import InputRefused

pytestmark = pytest.mark.django_db
RUNS = ["run0", "run1", "run2"]


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(), tmp_path / "releases")


@pytest.fixture
def qrels(release):
    return list(ir_measures.read_trec_qrels(str(release / "qrels.txt")))


def lines_of(release, run_id):
    runs = json.loads((release / "runs.json").read_text())
    file = next(run["file"] for run in runs if run["run_id"] == run_id)
    path = release.parent / f"{run_id}.run"
    path.write_bytes(gzip.decompress((release / file).read_bytes()))
    return list(ir_measures.read_trec_run(str(path)))


@pytest.mark.parametrize("name", ["P@10", "DCG@10", "RBP(p=0.8)@10", "nDCG@10", "AP@10", "R@10"])
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_the_mean_is_the_corrected_number_of_the_release(release, qrels, tmp_path, name, form):
    place = release
    if form == "zip":
        place = tmp_path / "release.zip"
        place.write_bytes(made_once())
    measure = ir_measure(name, release=place)
    expected = ts.evaluate(place, RUNS, name).frame
    assert expected["n_gold"].min() >= 10
    for run, value in expected.select("run", "value").iter_rows():
        parts = [metric.value for metric in measure.iter_calc(qrels, lines_of(release, run))]
        assert len(parts) == 3
        assert np.clip(np.mean(parts), 0, None) == pytest.approx(value, abs=1e-12)
        assert measure.calc_aggregate(qrels, lines_of(release, run)) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "by_grades"),
    [("nDCG@10", ir_measures.nDCG(gains={1: 1, 2: 2, 3: 3}) @ 10), ("AP@10", ir_measures.AP @ 10)],
)
def test_parts_of_ratios_are_true_values_where_everything_was_drawn_and_audited(tmp_path, name, by_grades):
    folder = unpacked(made_once(budget=42, audited=42), tmp_path / "releases")
    given = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    truth = [
        ir_measures.Qrel(one["topic_id"], one["doc_id"], true_grade(one["topic_id"], one["doc_id"]))
        for one in given
        if one["in_frame"]
    ]
    measure = ir_measure(name, release=folder)
    for run in RUNS:
        lines = lines_of(folder, run)
        expected = {one.query_id: one.value for one in by_grades.iter_calc(truth, lines)}
        found = {one.query_id: one.value for one in measure.iter_calc(truth, lines)}
        assert found == pytest.approx(expected, abs=1e-12)
        assert len(set(found.values())) > 1


def test_the_t_of_two_runs_parts_is_that_of_the_topics(release, qrels):
    measure = ir_measure("nDCG@10", release=release)
    (row,) = ts.evaluate(release, ["run0", "run2"], "nDCG@10", against="run2").frame.iter_rows(named=True)
    by_topic = [
        {one.query_id: one.value for one in measure.iter_calc(qrels, lines_of(release, run))}
        for run in ("run0", "run2")
    ]
    differences = [by_topic[0][topic] - by_topic[1][topic] for topic in by_topic[0]]
    assert np.mean(differences) == pytest.approx(row["value"], abs=1e-12)
    assert np.std(differences, ddof=1) / np.sqrt(3) <= row["standard_error"] * (1 + 1e-12), "never narrower"


def test_numbers_without_parts_are_refused_with_the_reason(release, qrels):
    few = ir_measure("P@5", release=release)
    assert ts.evaluate(release, "run2", "P@5").frame["n_gold"].to_list() == [0]
    with pytest.raises(
        InputRefused, match=r"P@5 has no corrected parts by topic: .* audited items .* at least 10"
    ):
        few.calc_aggregate(qrels, lines_of(release, "run2"))


def test_a_ratio_from_too_few_gold_labels_is_refused(tmp_path):
    folder = unpacked(made_once(audited=7), tmp_path / "releases")
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    assert ts.evaluate(folder, "run0", "nDCG@10").frame["n_gold"].to_list() == [0]
    with pytest.raises(InputRefused, match=r"nDCG@10 has no corrected parts by topic: .* audited items"):
        ir_measure("nDCG@10", release=folder).calc_aggregate(qrels, lines_of(folder, "run0"))


def test_a_release_without_an_audit_corrects_nothing(tmp_path):
    folder = unpacked(made_once(audited=0), tmp_path / "releases")
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    with pytest.raises(InputRefused, match="no corrected parts by topic"):
        ir_measure("P@5", release=folder).calc_aggregate(qrels, lines_of(folder, "run0"))
