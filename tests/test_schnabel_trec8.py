"""experiments/schnabel_synth.py --trec8: rows of the paper's three TREC systems, from a folder of runs and qrels."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from experiments import schnabel_synth
from experiments.parts import paper, synth, tables, trec8
from experiments.parts.rows import failures

# By topic the documents of each rank, in the order of the scores; relevant ones begin with r.
RANKED = {
    "mds08a3": {"401": ["r1", "n1", "r2"], "402": ["n1", "r1", "n2"]},
    "nttd8ale": {"401": ["n1", "r1", "n2"], "402": ["r1", "n1"]},
    "weaver2": {"401": ["r2", "r1", "n1"], "402": ["n2", "n1", "r1"]},
}


def lines_of(name: str) -> str:
    return "".join(
        f"{topic} Q0 {document} {9 - place} {9.0 - place} {name}\n"
        for topic, documents in RANKED[name].items()
        for place, document in enumerate(documents)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "input.mds08a3").write_text(lines_of("mds08a3"))
    (tmp_path / "input.weaver2").write_text(lines_of("weaver2"))
    (tmp_path / "input.nttd8ale.gz").write_bytes(gzip.compress(lines_of("nttd8ale").encode()))
    (tmp_path / "qrels.trec8.part1").write_text("401 0 r1 1\n401 0 r2 1\n401 0 n1 0\n")
    (tmp_path / "qrels.trec8.part2.gz").write_bytes(gzip.compress(b"402 0 r1 1\n402 0 n1 0\n"))
    return tmp_path


def discount(rank: int) -> float:
    return 1 / math.log(rank + 1)


def test_scores_are_means_of_dcg_with_the_natural_logarithm(folder: Path) -> None:
    systems = trec8.read_systems(folder)
    assert list(systems) == ["mds08a3", "nttd8ale", "weaver2"]
    wanted = {
        "mds08a3": [discount(1) + discount(3), discount(2)],
        "nttd8ale": [discount(2), discount(1)],
        "weaver2": [discount(1) + discount(2), discount(3)],
    }
    for name, scores in wanted.items():
        assert systems[name].topic_scores == pytest.approx(scores, rel=1e-12)
        assert systems[name].true_score == pytest.approx(sum(scores) / 2, rel=1e-12)


def test_the_sd_of_each_design_is_that_of_its_draws_one_by_one(folder: Path) -> None:
    """Var of u w/Q, written out for the six pairs of a system, over 10 draws."""
    system = trec8.read_systems(folder)["mds08a3"]
    pairs = [
        (rank, RANKED["mds08a3"][topic][rank - 1][0] == "r") for topic in ("401", "402") for rank in (1, 2, 3)
    ]
    sizes = {
        "Q*": [discount(rank) * 16 / (rank + 34) for rank, _ in pairs],
        "Q^P": [discount(rank) for rank, _ in pairs],
        "Q^unif": [1.0] * 6,
    }
    for name, size in sizes.items():
        q = [one / sum(size) for one in size]
        values = [
            discount(rank) / 2 * is_relevant / chance
            for (rank, is_relevant), chance in zip(pairs, q, strict=True)
        ]
        mean = sum(chance * value for chance, value in zip(q, values, strict=True))
        variance = sum(chance * (value - mean) ** 2 for chance, value in zip(q, values, strict=True))
        assert system.sd(system.designs()[name]) == pytest.approx(math.sqrt(variance / 10), rel=1e-12)


def test_runs_are_cut_at_rank_100_and_ties_go_by_document(folder: Path) -> None:
    many = "".join(f"401 Q0 d{number:03d} 1 {-number} mds08a3\n" for number in range(99))
    tied = "401 Q0 r1 1 -500 mds08a3\n401 Q0 z9 1 -500 mds08a3\n"
    (folder / "input.mds08a3").write_text(many + tied)
    system = trec8.read_systems(folder)["mds08a3"]
    assert system.rank.tolist() == list(range(1, 101))
    assert system.true_score == 0.0  # z9 has rank 100, and r1 comes after it
    (folder / "input.mds08a3").write_text(many + tied.replace("z9", "a9"))
    assert trec8.read_systems(folder)["mds08a3"].true_score == pytest.approx(discount(100) / 2)


def test_the_rows_have_all_that_the_paper_prints_of_the_three_systems(folder: Path) -> None:
    rows = trec8.trec_rows(trec8.read_systems(folder), trials=400, seed=1)
    for table in ("table2", "table3", "table4"):
        printed = {f"TREC {name}": value for name, value in paper.TREC[table].items()}
        found = {line.name: line.paper for line in rows[table]}
        assert printed.items() <= found.items()
        assert all(line.computed is not None for line in rows[table])
    half, sd = rows["table4"][0].computed, rows["table3"][0].computed
    assert half is not None
    assert sd is not None
    assert half == pytest.approx(1.96 * sd)
    # What the samples say is right, and what the track's own runs give does not come out of others.
    wrong = {sentence.split(": computed")[0] for sentence in failures(rows)}
    assert wrong == {
        f"{table}, TREC {name}: {what}"
        for name in paper.TREC_SYSTEMS
        for table, what in (("table2", "true U"), ("table3", "sd Q*"), ("table4", "half-width"))
    }


def test_what_is_expected_of_the_track_fits_together() -> None:
    """Half-widths are 1.96 sd; scores and half-widths are the paper's, these within what 100 trials scatter."""
    for name in paper.TREC_SYSTEMS:
        sd, half = paper.EXPECTED_TREC_SD[name], paper.EXPECTED_TREC_HALF_WIDTH[name]
        assert half == pytest.approx(1.96 * sd, abs=0.0016)
        assert paper.EXPECTED_TREC_U[name] == pytest.approx(
            paper.TREC["table2"][f"{name}: true U"], abs=0.0051
        )
        assert sd == pytest.approx(paper.TREC["table2"][f"{name}: sampling sd"], rel=4 / math.sqrt(200))


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("input.weaver2", "there is no input.weaver2 or input.weaver2.gz in"),
        ("input.nttd8ale.gz", "there is no input.nttd8ale or input.nttd8ale.gz in"),
        ("qrels*", "there is no file qrels* in"),
    ],
)
def test_a_missing_file_is_refused_by_its_name(
    folder: Path, missing: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in folder.glob(missing):
        path.unlink()
    with pytest.raises(SystemExit) as stopped:
        schnabel_synth.main(["--trec8", str(folder)])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_a_run_without_a_topic_of_the_qrels_is_refused(folder: Path) -> None:
    (folder / "input.weaver2").write_text("999 Q0 r1 1 1.0 weaver2\n")
    with pytest.raises(ValueError, match=r"input\.weaver2 returns no topic of the qrels"):
        trec8.read_systems(folder)


def test_a_table_has_the_rows_of_the_folder_or_says_why_there_are_none(folder: Path) -> None:
    rows = trec8.trec_rows(trec8.read_systems(folder), trials=2, seed=1)
    grades = synth.draw_grades(20, np.random.default_rng(4))
    made = tables.table3(tables.data(synth.expected_synth(), grades, 2, 1, rows))
    assert [line for line in made if line.name.startswith("TREC ")] == rows["table3"]
    without = tables.table3(tables.data(synth.expected_synth(), grades, 2, 1))
    notes = {line.note for line in without if line.name.startswith("TREC ")}
    assert notes == {paper.TREC_ABSENT}


def test_the_program_hands_the_folder_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def report(
        *_: object, trec: dict[str, trec8.TrecSystem], pairs_themselves: bool
    ) -> dict[str, list[object]]:
        seen.append(list(trec))
        return {}

    monkeypatch.setattr(schnabel_synth, "report", report)
    assert schnabel_synth.main(["--trec8", str(folder), "--json"]) == 0
    assert seen == [["mds08a3", "nttd8ale", "weaver2"]]
