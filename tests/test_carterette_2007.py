"""experiments/carterette_2007.py on a small folder of runs: what it reads, what it prints, what it refuses."""

import gzip
import json
import math

import numpy as np
import pytest
from scipy.special import expit

from analytics.lowcost.run_folder import FolderTopic, RunFolder, average_precision, read_folder
from experiments import carterette_2007
from experiments.papers.paired import one_sided_paired_p
from experiments.parts.few_judgments import Study, explained_deviance, replaced, shares_by_bin
from experiments.parts.few_judgments_claims import claims
from experiments.parts.few_judgments_paper import contradictions, mean_of_groups, paper_value
from experiments.parts.few_judgments_subsets import SubsetTaus, subset_taus, table6_rows
from experiments.parts.rows import Row, as_text
from sampling.experts import RankedPool

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
    arguments = [str(folder), "--qrels", "qrels.txt", "--depth", str(DEPTH), "--draws", "3", "--subsets", "8"]
    assert carterette_2007.main([*arguments, "--manual", "run7", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(made) == list(carterette_2007.HEADINGS)
    assert all(made.values())
    rows = {part: {row["name"]: row for row in lines} for part, lines in made.items()}
    assert rows["figure1"]["tau of EMAP with MAP"]["paper"] == 0.5
    assert rows["table3"]["pseudo-judgments, popular"]["paper"] == 0.534
    assert rows["table2"]["sum of p over number of documents"]["ok"] is True
    assert rows["text61"]["documents judged"]["computed"] == 12  # floor(ln 8) = 2, of 6 topics
    assert rows["figure3"]["tau of EMAP with MAP, reweighted"]["paper"] == 0.731
    assert len(made["figure1"]) == len(made["figure3"]) == N_RUNS + 1
    assert rows["text51"]["d with EMAP"]["computed"] > 0.9
    assert rows["table5"]["deterministic: mean d"]["computed"] > rows["table5"]["random: mean d"]["computed"]
    assert [rows["figure2"][f"tau of EMAP with MAP, manual runs weigh {w}"]["paper"] for w in (8, 16)] == [
        0.691
    ] * 2
    assert {row["name"] for row in made["text61"]} >= {"mean weight of manual runs", "weight of run0"}
    assert rows["text61"]["mean weight of manual runs"]["paper"] == 0.961
    assert rows["table4"]["correlation of d manual with MAP"]["computed"] is None  # of one run
    # subsets of 2, 4 and 6 of the 8 runs; two runs have floor(ln 2) = 0 documents judged
    assert len(made["figure4"]) == 2 * 3 + 2
    none, reweighted = (
        rows["figure4"][f"2 runs: {name}"]["computed"] for name in ("no judgments", "reweighted")
    )
    assert none == reweighted
    assert rows["figure4"]["all runs: no judgments"]["computed"] == rows["table3"]["preferences"]["computed"]
    assert "8 subsets of 6 runs" in rows["table6"]["(a) no judgments"]["note"]
    assert rows["table6"]["(a) no judgments"]["paper"] is None  # the paper's are of ten runs
    assert 0 < rows["table6"]["(b) one-sided p, EMAP better"]["computed"] < 1
    assert rows["claims"]["6.1: tau, reweighted less no judgments"]["computed"] == pytest.approx(
        rows["figure3"]["tau of EMAP with MAP, reweighted"]["computed"]
        - rows["figure1"]["tau of EMAP with MAP"]["computed"]
    )


def test_table_1_counts_the_pools(folder, study):
    pools, relevant = {}, set()
    for path in (folder / "runs").iterdir():
        best = {}
        for line in dict.fromkeys(gzip.decompress(path.read_bytes()).decode().splitlines()):
            topic, _, document, _, score, _ = line.split()
            best.setdefault(topic, []).append((-float(score), document))
        for topic, found in best.items():
            pools.setdefault(topic, set()).update(document for _, document in sorted(found)[:DEPTH])
    for line in (folder / "qrels.txt").read_text().splitlines():
        topic, _, document, grade = line.split()
        if grade == "1" and document in pools[topic]:
            relevant.add((topic, document))
    rows = carterette_2007.collection_rows(study, "8", [False] * (N_RUNS - 1) + [True])
    assert [row.computed for row in rows] == pytest.approx(
        [6, N_RUNS, 1, sum(map(len, pools.values())) / 6, len(relevant) / 6]
    )
    assert [row.paper for row in rows] == [50, 129, 12, 2335.5, 94.2]


def test_a_subset_is_the_folder_of_these_runs(folder, study, tmp_path):
    (tmp_path / "runs").mkdir()
    for run in (1, 4, 6):
        (tmp_path / "runs" / f"{RUNS[run]}.gz").write_bytes(
            (folder / "runs" / f"{RUNS[run]}.gz").read_bytes()
        )
    (tmp_path / "qrels.txt").write_text((folder / "qrels.txt").read_text())
    alone, part = Study(read_folder(tmp_path, "qrels.txt", DEPTH)), study.subset([1, 4, 6])
    assert part.folder.runs == alone.folder.runs
    assert part.expected == pytest.approx(alone.expected, abs=1e-9)
    assert part.scores == pytest.approx(alone.scores, abs=1e-12)
    assert part.reweighted[0].weights == pytest.approx(alone.reweighted[0].weights)
    assert part.expected != pytest.approx(study.expected[[1, 4, 6]], abs=1e-3)  # the pools are others


def test_the_same_subsets_come_of_the_same_seed_and_of_all_runs_there_are_none(study):
    first, again, other = (subset_taus(study, 3, 4, seed) for seed in (1, 1, 2))
    assert first.none.tolist() == again.none.tolist()
    assert first.none.tolist() != other.none.tolist()
    with pytest.raises(ValueError, match=r"within \[2, 7\], got 8"):
        subset_taus(study, N_RUNS, 4, 1)


def test_table_6_by_hand():
    """Differences (a) .3 .1 .2 .2: mean .2, standard error .0816/2, t = 4.899 with 3 degrees of freedom."""
    none, reweighted = np.array([0.2, 0.4, 0.3, 0.5]), np.array([0.5, 0.5, 0.5, 0.7])
    taus = SubsetTaus(none, reweighted, reweighted - 0.1)
    rows = {row.name: row for row in table6_rows({10: taus, 2: taus}, "4")}
    assert (rows["(a) no judgments"].paper, rows["(a) no judgments"].computed) == (0.574, pytest.approx(0.35))
    assert (rows["(a) reweighted"].paper, rows["(a) reweighted"].computed) == (0.542, pytest.approx(0.55))
    p = rows["(a) one-sided p, reweighted better"]
    t = math.sqrt(24)
    tail = (
        0.5 - (t / math.sqrt(3) / (1 + t * t / 3) + math.atan(t / math.sqrt(3))) / math.pi
    )  # 3 degrees of freedom
    assert (p.paper, p.computed) == (0.029, pytest.approx(tail))
    assert rows["(b) reweighted, MAP of the judged alone"].computed == pytest.approx(0.45)
    assert rows["(a) one-sided p, reweighted better, first quarter"].computed is None  # of one subset
    assert rows["(b) one-sided p, EMAP better"].computed is None  # .1 on each
    assert "left out" in table6_rows({}, "4")[0].note


def test_a_paired_p_of_differences_that_do_not_vary_does_not_exist():
    assert one_sided_paired_p([3, 2, 4], [1, 2, 3]) == pytest.approx(0.5 - math.sqrt(3) / (2 * math.sqrt(5)))
    assert one_sided_paired_p([1, 2, 3], [3, 2, 4]) == pytest.approx(0.5 + math.sqrt(3) / (2 * math.sqrt(5)))
    assert one_sided_paired_p([0.3, 0.4, 0.7], [0.2, 0.3, 0.6]) is None
    with pytest.raises(ValueError, match="at least 2"):
        one_sided_paired_p([1.0], [0.0])


def test_similarity_of_groups_and_kinds_of_documents_by_hand():
    """Lists 0 1 2 and 1 0 3 of five documents: .5. Of 0 2 3 alone, relevant: 2 of 4 preferences; of 1 4: all."""
    ranks = np.array([[1, 2, 3, np.inf, np.inf], [2, 1, np.inf, 3, np.inf]])
    is_relevant = np.array([True, False, True, True, False])
    topic = FolderTopic("1", tuple("01234"), RankedPool.of(ranks), ranks, is_relevant, ranks[:, is_relevant])
    study = Study(RunFolder(("one", "two"), (topic,)))
    assert study.similarity() == pytest.approx([0.5, 0.5])
    assert carterette_2007.similarity_ratio(study) == pytest.approx(0.5 / 1)
    rows = {row.name: row for row in carterette_2007.similarity_rows(study, "8", [False, True])}
    assert [
        rows[f"mean {key}"].computed for key in ("d automatic", "d manual", "d rel", "d non")
    ] == pytest.approx([0.5, 0.5, 0.5, 1.0])
    assert [rows[f"mean {key}"].paper for key in ("d automatic", "d manual")] == [0.214, 0.156]


def test_mean_similarity_of_the_papers_groups_is_its_mean_of_all_runs_but_for_trec_3():
    for collection in "45678":
        assert mean_of_groups(collection) == pytest.approx(paper_value(collection, "d"), abs=0.0011)
    assert abs(mean_of_groups("3") - 0.216) > 0.01


def test_what_the_paper_contradicts_itself_in():
    rows = [(row.paper, row.computed) for row in contradictions()]
    assert rows == [
        (5 / 12, pytest.approx((1 / 2 + 2 / 3) / 2)),
        (2 / 3, 0.5),
        (0.16, pytest.approx(1.021 / 6)),
        (0.216, pytest.approx((29 * 0.245 + 11 * 0.189) / 40)),
        (0.67, 0.803),
        (None, pytest.approx(0.595 - 0.633)),
        (3, 2),
        (0.029, pytest.approx(0.971)),
    ]
    assert [row.name[:3] for row in contradictions() if row.ok is False] == ["6.1"]


def planted_report(reweighted: float, share: float, of_subsets: float) -> dict[str, list[Row]]:
    values = {
        "figure1": {"tau of EMAP with MAP": 0.5},
        "figure3": {"tau of EMAP with MAP, reweighted": reweighted},
        "table2": {"p from 0.2 to 0.3": share, "R^2": 0.25},
        "table4": {"mean d": 0.2},
        "figure4": {"2 runs: reweighted": of_subsets, "all runs: reweighted": 0.6},
    }
    parts = ("table3", "figure2", "table5", "text52", "text61", "table6")
    return {
        part: [Row(name, None, value) for name, value in lines.items()] for part, lines in values.items()
    } | {part: [] for part in parts}


@pytest.mark.parametrize(("planted", "verdict"), [((0.6, 0.1, 0.5), True), ((0.4, 0.25, 0.7), False)])
def test_what_does_not_come_out_is_said(planted, verdict):
    made = claims(planted_report(*planted))
    assert [row.name.partition(":")[0] for row in made] == ["4.2.2", "6.1", "7.2"]
    assert [row.ok for row in made] == [verdict] * 3
    text = as_text({"claims": "Claims"}, {"claims": made})
    assert ("NO: at least 0" in text) is not verdict


def test_a_folder_of_no_track_stands_alone(folder, capsys):
    assert carterette_2007.collection_of("other") == ""
    renamed = folder.rename(folder.with_name("other"))
    try:
        assert (
            carterette_2007.main([str(renamed), "--qrels", "qrels.txt", "--draws", "1", "--subsets", "0"])
            == 0
        )
    finally:
        renamed.rename(folder)
    text = capsys.readouterr().out
    assert "no run is named as manual" in text
    assert "Table 5" in text
    assert text.count("left out") == 2  # Figure 4 and Table 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--qrels", "missing"], "missing"),
        (["--qrels", "qrels.txt", "--manual", "nobody"], "no run is named 'nobody'"),
        (["--qrels", "qrels.txt", "--depth", "0"], "at least 1"),
        (["--qrels", "qrels.txt", "--subsets", "-1"], "subsets must be at least 0"),
        (["--qrels", "qrels.txt", "--sizes", "1", "4"], "sizes at least 2"),
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
