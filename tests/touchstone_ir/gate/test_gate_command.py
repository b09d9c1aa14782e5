"""`touchstone gate`: results on standard output, words on errors on standard error, and the exit codes."""

import json
from pathlib import Path

import pytest
from gate_files import GateFiles, contents, write_gate_files

from touchstone_ir import gate_steps as gates
from touchstone_ir.columns import InputRefused
from touchstone_ir.command import main


@pytest.fixture
def files(tmp_path: Path) -> GateFiles:
    found = write_gate_files(tmp_path, better_by=3.0)
    found.start(batch=60)
    return found


def test_exit_codes_are_those_of_the_verdict(files: GateFiles, capsys: pytest.CaptureFixture[str]) -> None:
    folder, batch = str(files.folder / "G"), files.folder / "batch.csv"
    assert main(["gate", "status", folder]) == 3
    assert "Judgments wanted: batch 1, " in capsys.readouterr().out
    for _ in range(3):
        assert main(["gate", "next", folder, "-o", str(batch)]) == 0
        assert main(["gate", "answer", folder, str(files.fill(batch))]) == 0
        capsys.readouterr()
        if main(["gate", "status", folder, "--output", "json"]) != 3:
            break
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] in ("better", "not worse")
    assert said["exit_code"] == main(["gate", "status", folder]) == 0
    assert said["low"] < said["difference"] < said["high"]
    assert (said["population"], said["topics"], said["open_batch"]) == ("these topics", 20, None)
    assert main(["gate", "status", folder, "--require", "better"]) in (0, 3)


def test_bad_input_is_told_on_standard_error(files: GateFiles, capsys: pytest.CaptureFixture[str]) -> None:
    (files.folder / "batch.csv").write_text("topic,doc,grade\nt00,x,1\n")
    folder = str(files.folder / "G")
    assert main(["gate", "next", folder, "-o", str(files.folder / "asked.csv")]) == 0
    capsys.readouterr()
    assert main(["gate", "answer", folder, str(files.folder / "batch.csv")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "touchstone gate: batch.csv:2:1: document x of topic t00 is not asked for in batch 1\n"
    assert main(["gate", "status", str(files.folder / "nowhere")]) == 2
    assert "no gate has started here" in capsys.readouterr().err


def test_a_cap_below_20_starts_nothing(files: GateFiles, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [part for name, path in files.sources.items() for part in (f"--{name}", str(path))]
    question = ["--measure", "P@5", "--cap", "19", "--plan", "40", "--seed", "7"]
    assert main(["gate", "start", str(files.folder / "H"), *sources, *question]) == 2
    assert "cap must be at least 20: before that nothing is said, got 19" in capsys.readouterr().err
    assert not (files.folder / "H").exists()


def test_grades_of_labels_may_be_given_another_meaning(
    files: GateFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = files.sources["labels"]
    junk = files.folder / "junk.qrels"
    junk.write_text(labels.read_text().replace(" 0\n", " -2\n").replace(" 1\n", " 7\n"))
    sources = [
        part for name, path in (files.sources | {"labels": junk}).items() for part in (f"--{name}", str(path))
    ]
    question = ["--measure", "P@5", "--cap", "90", "--plan", "40", "--batch", "60", "--seed", "7"]
    start = ["gate", "start", str(files.folder / "H"), *sources, *question]
    assert main(start) == 2
    assert "have the grade -2: say with grades= (in a shell: --grades)" in capsys.readouterr().err
    assert not (files.folder / "H").exists()
    assert main([*start, "--grades", "-2=0,7=1"]) == 0
    kept = json.loads((files.folder / "H" / "gate.json").read_text())
    assert kept["grades"] == {"-2": 0, "7": 1}
    assert (files.folder / "H" / "pairs.csv").read_bytes() == (files.folder / "G" / "pairs.csv").read_bytes()
    assert main([*start, "--grades", "7=1,-2=0"]) == 0, "the same question"
    capsys.readouterr()
    assert main([*start, "--grades=-2=1,7=1"]) == 2
    assert "another question is here already: grades is {'-2': 0, '7': 1} there" in capsys.readouterr().err
    assert main([*start, "--grades", "7=one"]) == 2
    assert "--grades: a grade map is like" in capsys.readouterr().err


def test_labels_that_a_map_leaves_out_are_missing(
    files: GateFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [part for name, path in files.sources.items() for part in (f"--{name}", str(path))]
    question = ["--measure", "P@5", "--cap", "90", "--plan", "40", "--seed", "7", "--grades", "0="]
    assert main(["gate", "start", str(files.folder / "H"), *sources, *question]) == 2
    assert "llm.qrels: no label of document" in capsys.readouterr().err
    assert not (files.folder / "H").exists()


def test_grades_that_are_not_answered_yet_are_not_written_over(files: GateFiles) -> None:
    """The control: once it is answered, the same file takes the next batch."""
    folder, asked = files.folder / "G", files.folder / "batch.csv"
    gates.next_batch(folder, asked)
    lines = asked.read_text().splitlines()
    asked.write_text("\n".join([lines[0], f"{lines[1]}1", *lines[2:]]) + "\n")
    before = contents(files.folder)
    with pytest.raises(InputRefused, match="grades of this batch stand in this file"):
        gates.next_batch(folder, asked)
    assert contents(files.folder) == before
    asked.write_text("\n".join([lines[0], *(f"{line}1" for line in lines[1:])]) + "\n")
    gates.answer(folder, asked)
    gates.next_batch(folder, asked)
    assert asked.read_text().splitlines()[1] != f"{lines[1]}1"
