"""A release's judgments as a measure of ir_measures."""

import gzip
import json

import ir_measures
import numpy as np
import pytest
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


@pytest.mark.parametrize("name", ["P@10", "DCG@10", "RBP(p=0.8)@10"])
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


def test_numbers_without_parts_are_refused_with_the_reason(release, qrels):
    measure = ir_measure("nDCG@10", release=release)
    with pytest.raises(InputRefused, match="a release has values of topics of sums over documents alone"):
        measure.calc_aggregate(qrels, lines_of(release, "run0"))
    few = ir_measure("P@5", release=release)
    assert ts.evaluate(release, "run2", "P@5").frame["n_gold"].to_list() == [0]
    with pytest.raises(
        InputRefused, match=r"P@5 has no corrected parts by topic: .* audited items .* at least 10"
    ):
        few.calc_aggregate(qrels, lines_of(release, "run2"))


def test_a_release_without_an_audit_corrects_nothing(tmp_path):
    folder = unpacked(made_once(audited=0), tmp_path / "releases")
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    with pytest.raises(InputRefused, match="no corrected parts by topic"):
        ir_measure("P@5", release=folder).calc_aggregate(qrels, lines_of(folder, "run0"))
