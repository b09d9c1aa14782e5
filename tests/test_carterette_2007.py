"""experiments/carterette_2007.py on a small folder of runs: what it reads, what it prints, what it refuses."""

import gzip
import json

import numpy as np
import pytest
from scipy.special import expit

from analytics.lowcost.run_folder import average_precision, read_folder
from experiments import carterette_2007
from experiments.parts.few_judgments import Study, explained_deviance, replaced, shares_by_bin

N_RUNS, N_DOCUMENTS, DEPTH = 8, 60, 20
RUNS = [f"run{number}" for number in range(N_RUNS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(4)
    root = tmp_path_factory.mktemp("trec") / "TREC-8"
    (root / "runs").mkdir(parents=True)
    lines, qrels = {run: [] for run in RUNS}, []
    for topic in range(6):
        relevant = rng.random(N_DOCUMENTS) < 0.2
        shared = rng.normal(size=N_DOCUMENTS)
        for place, run in enumerate(RUNS):
            scores = 1.5 * relevant * (place + 1) / N_RUNS + 0.5 * shared + rng.normal(size=N_DOCUMENTS)
            for document in np.argsort(-scores)[: N_DOCUMENTS - 10]:
                lines[run].append(f"t{topic} Q0 d{document:02} 0 {scores[document]:.5f} tag{topic}")
        qrels += [f"t{topic} 0 d{document:02} {int(label)}" for document, label in enumerate(relevant)]
    for run, its in lines.items():
        (root / "runs" / f"{run}.gz").write_bytes(gzip.compress("\n".join([*its, its[0]]).encode()))
    (root / "qrels.txt").write_text("\n".join(qrels))
    return root


@pytest.fixture(scope="module")
def study(folder):
    return Study(read_folder(folder, "qrels.txt", DEPTH))


def test_pools_are_of_the_first_ranks_and_scores_of_whole_runs(study):
    assert study.folder.runs == tuple(RUNS)
    topic = study.folder.topics[0]
    assert topic.doc_ids == tuple(sorted(topic.doc_ids))
    assert topic.pool.ranks[np.isfinite(topic.pool.ranks)].max() == DEPTH
    assert topic.ranks[np.isfinite(topic.ranks)].max() > DEPTH
    assert study.scores == pytest.approx(np.mean([one.average_precision() for one in study.folder.topics], 0))


def test_equal_scores_go_by_document_and_of_a_repeated_document_the_first_line_counts(tmp_path):
    (tmp_path / "runs").mkdir()
    for run in ("a", "b"):
        (tmp_path / "runs" / run).write_text("1 x d1 1 0.5 r\n1 x d2 2 0.5 s\n1 x d1 3 0.9 r\n")
    (tmp_path / "q").write_text("1 0 d1 1\n2 0 d1 1\n")
    topics = read_folder(tmp_path, "q").topics
    assert [topic.topic_id for topic in topics] == ["1"]
    assert topics[0].doc_ids == ("d1", "d2")
    assert topics[0].ranks.tolist() == [[2.0, 1.0]] * 2


def test_average_precision():
    assert average_precision(np.array([[1.0, 3.0], [2.0, np.inf]])) == pytest.approx([5 / 6, 1 / 4])
    assert average_precision(np.zeros((2, 0))) == pytest.approx([0, 0])


def test_other_documents_have_the_relevance_of_the_ones_they_replace(study):
    topic = study.folder.topics[1]
    for rng in (None, np.random.default_rng(1)):
        changed = replaced(topic, rng)
        for before, after in zip(topic.pool.ranks, changed.ranks, strict=True):
            assert sorted(after[np.isfinite(after)]) == sorted(before[np.isfinite(before)])
            for rank in before[np.isfinite(before)]:
                assert topic.is_relevant[before == rank] == topic.is_relevant[after == rank]
    first = replaced(topic, None)
    is_alike = first.ranks[:, topic.is_relevant].argmin(axis=1)
    assert not is_alike.any()  # the first relevant one of each list is the pool's first


def test_bins_and_deviance():
    rows = shares_by_bin(np.array([0.05, 0.2, 0.25, 1.0]), np.array([False, True, False, True]))
    assert rows == [
        ("p from 0.0 to 0.1", 0.0, 1), ("p from 0.2 to 0.3", 0.5, 2), ("p from 0.9 to 1.0", 1.0, 1)
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    theta = rng.normal(size=5000)
    assert explained_deviance(theta, rng.random(5000) < 0.3) == pytest.approx(0, abs=0.002)
    assert explained_deviance(theta, rng.random(5000) < expit(3 * theta)) > 0.3


def test_every_table_is_printed_with_the_papers_values(folder, capsys):
    arguments = [str(folder), "--qrels", "qrels.txt", "--depth", str(DEPTH), "--draws", "3"]
    assert carterette_2007.main([*arguments, "--manual", "run7", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(made) == list(carterette_2007.HEADINGS)
    rows = {part: {row["name"]: row for row in lines} for part, lines in made.items()}
    assert rows["figure1"]["tau of EMAP with MAP"]["paper"] == 0.5
    assert rows["table3"]["pseudo-judgments, popular"]["paper"] == 0.534
    assert rows["table2"]["sum of p over number of documents"]["ok"] is True
    assert rows["figure3"]["documents judged"]["computed"] == 12  # floor(ln 8) = 2, of 6 topics
    assert rows["text51"]["d with EMAP"]["computed"] > 0.9
    assert rows["table5"]["deterministic: mean d"]["computed"] > rows["table5"]["random: mean d"]["computed"]
    assert len(rows["figure2"]) == 2
    assert {row["name"] for row in made["figure3"]} >= {"mean weight of manual runs", "weight of run0"}


def test_a_folder_of_no_track_stands_alone(folder, capsys):
    assert carterette_2007.collection_of("other") == ""
    renamed = folder.rename(folder.with_name("other"))
    try:
        assert carterette_2007.main([str(renamed), "--qrels", "qrels.txt", "--draws", "1"]) == 0
    finally:
        renamed.rename(folder)
    text = capsys.readouterr().out
    assert "no run is named as manual" in text
    assert "Table 5" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--qrels", "missing"], "missing"),
        (["--qrels", "qrels.txt", "--manual", "nobody"], "no run is named 'nobody'"),
        (["--qrels", "qrels.txt", "--depth", "0"], "at least 1"),
    ],
)
def test_what_is_not_there_is_named(folder, capsys, arguments, words):
    with pytest.raises(SystemExit):
        carterette_2007.main([str(folder), *arguments])
    assert words in capsys.readouterr().err


def test_a_folder_without_runs_or_with_one_is_refused(tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "q").write_text("1 0 d1 1\n")
    for words in ("no run in", "at least 2 runs", "b:1"):
        with pytest.raises(SystemExit):
            carterette_2007.main([str(tmp_path), "--qrels", "q"])
        assert words in capsys.readouterr().err
        if words == "no run in":
            (tmp_path / "runs" / "a").write_text("1 Q0 d1 1 0.5 r\n")
        else:
            (tmp_path / "runs" / "b").write_text("1 Q0 d1 1 r\n")
