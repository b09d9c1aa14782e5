"""Bad input of the command `touchstone`: code 2, one line with file, line and value, and nothing is written.

The same faults on the page of an import and over the API: tests/judging/imports/test_bad_input.py. What comes in only
here has no door there: a draw of another design, and all of a gate, are the library's alone.
"""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from bad_files import BAD_FILES, LABELS
from gate_files import write_gate_files

import touchstone_ir as ts
from touchstone_ir.command import main
from touchstone_ir.gate_batches import batch_content

ASKED = ["compare", "a.run", "b.run", "-m", "P@2"]
FILES = {
    "a.run": "".join(f"q{topic} Q0 d{doc} 0 {9 - doc} a\n" for topic in (1, 2) for doc in range(1, 5)),
    "b.run": "".join(f"q{topic} Q0 d{doc} 0 {doc} b\n" for topic in (1, 2) for doc in range(1, 5)),
    "l.qrels": LABELS,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder where the command is given: two runs and labels of what they return."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, capsys, arguments) -> str:
    """Give a command that must fail, and return what it says after its name."""
    before = contents(folder)
    assert main([*map(str, arguments)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert contents(folder) == before
    words, end = told.err[:-1], told.err[-1:]
    assert (end, words.count("\n")) == ("\n", 0)
    name, _, reason = words.partition(": ")
    assert name == f"touchstone {arguments[0]}"
    return reason


# -- files that are wrong in themselves ------------------------------------------------------------------------

GOLD = ["--labels", "l.qrels", "--gold"]
WAYS = {  # of a file into the command, by what it should hold
    "labels": lambda name: [*ASKED, "--labels", name],
    "gold": lambda name: [*ASKED, *GOLD, name],
    "run": lambda name: ["estimate", name, "-m", "P@2", "--labels", "l.qrels", "-o", "out.txt"],
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_bad_file_is_refused_with_line_and_value(what, folder, capsys):
    bad = BAD_FILES[what]
    (folder / bad.file).write_text(bad.text)
    assert refused(folder, capsys, WAYS[bad.wanted](bad.file)) == bad.command


@pytest.mark.parametrize("what", [what for what, bad in BAD_FILES.items() if bad.wanted != "run"])
def test_the_library_says_the_same(what, folder):
    bad = BAD_FILES[what]
    (folder / bad.file).write_text(bad.text)
    with pytest.raises(ValueError, match=r"^\S+:\d+:") as caught:
        ts.compare(["a.run", "b.run"], "P@2", labels="l.qrels", gold=bad.file)
    assert str(caught.value) == bad.command


# -- files that do not fit to each other -----------------------------------------------------------------------


class Misfit(NamedTuple):
    """Files that are each in order, the command that brings them together, and what it says."""

    files: dict[str, str]
    arguments: list[str]
    words: str


DATA_SET = "ir_datasets:beir/scifact/test"
DRAWN = "topic,doc,probability,batch,grade\n"
MISFITS = {
    "no common topic": Misfit(
        {"x.qrels": "7 0 d1 1\n8 0 d1 1\n"}, [*ASKED, "--labels", "x.qrels"],
        "x.qrels:1: the runs and the judgments have no common topic: are their ids spelled alike? '7' is one here, "
        "'q1' one of the runs"),
    "no common topic in an audit": Misfit(
        {"x.qrels": "7 0 d1 1\n"},
        ["audit", "a.run", "-m", "P@2", "--labels", "x.qrels", "-n", "9", "--seed", "1", "-o", "audit.csv"],
        "x.qrels:1: the runs and the judgments have no common topic: are their ids spelled alike? '7' is one here, "
        "'q1' one of the runs"),
    "gold on a pair without a label": Misfit(
        {"g.csv": "topic,doc,grade,probability\nq1,d1,1,.5\nq1,d77,1,.5\n"}, [*ASKED, *GOLD, "g.csv"],
        "g.csv:3: document d77 of topic q1 has no label"),
    "gold on a pair that was never drawn": Misfit(
        {"some.qrels": "q1 0 d1 1\n", "d.csv": f"{DRAWN}q1,d1,.5,1,\n",
         "g.csv": "topic,doc,grade,probability\nq1,d1,1,.5\nq1,d4,1,.5\n"},
        [*ASKED, "--labels", "some.qrels", "--draw", "d.csv", "--gold", "g.csv"],
        "g.csv:3: document d4 of topic q1 has no label"),
    "labels of pairs that were never drawn": Misfit(
        {"d.csv": f"{DRAWN}q1,d1,.5,1,\n"}, [*ASKED, "--labels", "l.qrels", "--draw", "d.csv"],
        "l.qrels:2: document d2 of topic q1 was not drawn (7 such lines)"),
    "two judges of a pair of gold": Misfit(
        {"g.qrels_jg": "q1 ann d2 1\nq1 ann d1 1\nq1 bob d1 0\n"}, [*ASKED, *GOLD, "g.qrels_jg"],
        "g.qrels_jg:2: document d1 of topic q1 has several grades: join them, as aggregate does"),
    "gold that is not filled in": Misfit(
        {"g.csv": "topic,doc,grade,probability\nq1,d1,1,.5\nq1,d2,,.5\n"}, [*ASKED, *GOLD, "g.csv"],
        "g.csv:3: document d2 of topic q1 was chosen and has no grade yet (1 in all): fill them in, for those that are "
        "filled in first are no random part"),
    "two runs of one name": Misfit(
        {"c.run": FILES["a.run"]}, ["compare", "a.run", "c.run", "-m", "P@2", "--labels", "l.qrels"],
        "two sources hold a run of the name a: read one of them with name="),
    "a folder that is not there": Misfit(
        {}, ["convert", "a.run", "-o", "no/x.json"], "[Errno 2] No such folder: 'no'"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISFITS)
def test_files_that_do_not_fit_are_refused(what, folder, capsys):
    misfit = MISFITS[what]
    for name, text in misfit.files.items():
        (folder / name).write_text(text)
    assert refused(folder, capsys, misfit.arguments) == misfit.words


def test_a_draw_of_another_design_is_refused(folder, capsys):
    for name, run in (("of-a", "a.run"), ("of-b", "b.run")):
        design = ["design", run, "-m", "P@2", "--question", "system", "--budget", "3", "-o", f"{name}.json"]
        assert main(design) == 0
    assert main(["draw", "of-a.json", "--seed", "7", "-o", "first.csv"]) == 0
    capsys.readouterr()
    rows = (folder / "first.csv").read_text().split("\n")[1:]
    words = refused(
        folder, capsys, ["draw", "of-b.json", "--seed", "7", "--earlier", "first.csv", "-o", "x.csv"]
    )
    place, _, reason = words.partition(": ")
    line = int(place.removeprefix("first.csv:"))
    topic, doc, *_ = rows[line - 2].split(",")
    assert reason.startswith(f"document {doc} of topic {topic} was drawn earlier and is not drawn now")
    (folder / "other.json").write_text(json.dumps({"kind": "plan"}))
    assert refused(folder, capsys, ["draw", "other.json", "--seed", "7"]) == "this is no design but 'plan'"


def test_fewer_than_10_gold_are_a_row_with_words(folder, capsys):
    rows = [f"q1,d{doc},1,.5\n" for doc in range(1, 5)]
    (folder / "g.csv").write_text("topic,doc,grade,probability\n" + "".join(rows))
    assert main([*ASKED, *GOLD, "g.csv", "--output", "json"]) == 5
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["value"] is None
    assert row["refusal"].startswith("4 audited items with non-zero weight; at least 10 are needed")


def test_a_grade_without_a_gain_is_refused():
    """The command has no gains: there a grade is its own."""
    labels = {"q1": {"d1": 1, "d2": 3}}
    runs = {"run": ["a"] * 2, "topic": ["q1"] * 2, "doc": ["d1", "d2"], "score": [2, 1]}
    with pytest.raises(ValueError, match="gains= has no gain of the grade 3, which was given"):
        ts.estimate(runs, "DCG@2", labels=labels, gains={0: 0, 1: 1, 2: 2})


@pytest.mark.parametrize(
    ("package", "arguments", "words"),
    [
        (
            "analytics.charts.forests",
            [*ASKED, "--labels", "l.qrels", "--plot", "x.svg", "-o", "x.txt"],
            "plots need the extra: pip install 'touchstone-ir[plots]'",
        ),
        (
            "ir_datasets",
            ["convert", DATA_SET, "-o", "x.qrels"],
            f"{DATA_SET} needs the package ir_datasets, which is not installed: pip install ir_datasets",
        ),
    ],
)
def test_a_missing_extra_is_named(package, arguments, words, folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert refused(folder, capsys, arguments) == words


# -- gates -----------------------------------------------------------------------------------------------------


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A gate that has asked for its first batch."""
    files = write_gate_files(tmp_path)
    files.start()
    monkeypatch.chdir(tmp_path)
    assert main(["gate", "next", "G", "-o", "batch.csv"]) == 0
    return files


def test_a_cap_below_20_is_refused(tmp_path, monkeypatch, capsys):
    write_gate_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    sources = ["--a", "old.run", "--b", "new.run", "--labels", "llm.qrels"]
    asked = ["gate", "start", "G", *sources, "--measure", "P@5", "--cap", "19", "--plan", "9", "--seed", "1"]
    assert refused(tmp_path, capsys, asked) == "cap must be at least 20: before that nothing is said, got 19"


def test_runs_that_changed_since_a_gate_started_are_refused(gate, capsys):
    capsys.readouterr()
    run = gate.folder / "new.run"
    run.write_text(run.read_text() + "t00 Q0 d99 9 -9 new\n")
    words = refused(gate.folder, capsys, ["gate", "status", "G"])
    assert words.startswith("new.run: run B changed since the gate started (SHA-256 ")


@pytest.mark.parametrize("what", ["missing", "foreign", "altered", "empty", "twice", "no grade column"])
def test_a_batch_that_is_not_the_one_asked_for_is_refused(what, gate, capsys):
    gate.fill(gate.folder / "batch.csv")
    head, *lines = (gate.folder / "batch.csv").read_text().splitlines()
    topic, doc = lines[2].split(",")[:2]
    pair, asked = f"document {doc} of topic {topic}", "batch 1"
    n_lines = len(lines)
    changed, words = {
        "missing": ([*lines[:2], *lines[3:]], f"batch.csv:{n_lines + 1}:1: {pair} of {asked} is missing"),
        "foreign": ([*lines, "t77,d1,1"],
                    f"batch.csv:{n_lines + 2}:1: document d1 of topic t77 is not asked for in {asked}"),
        "altered": ([*lines[:2], f"{topic},{doc},x", *lines[3:]],
                    f"batch.csv:4:{len(topic) + len(doc) + 3}: grade must be a whole number in 0..127, not 'x'"),
        "empty": ([*lines[:2], f"{topic},{doc},", *lines[3:]],
                  f"batch.csv:4:{len(topic) + len(doc) + 3}: no grade of {pair}: a batch is answered as a whole"),
        "twice": ([*lines, lines[2]],
                  f"batch.csv:{n_lines + 2}:{len(topic) + 2}: {pair} occurs twice (first on line 4)"),
        "no grade column": ([f"{line},1" for line in lines], "batch.csv:1:1: no column named grade"),
    }[what]  # fmt: skip
    first = "topic,doc,label,note" if what == "no grade column" else head
    (gate.folder / "batch.csv").write_text("\n".join([first, *changed]) + "\n")
    capsys.readouterr()
    assert refused(gate.folder, capsys, ["gate", "answer", "G", "batch.csv"]) == words


def test_a_batch_is_taken_when_nothing_is_wrong_with_it(gate):
    """The control of the tests above."""
    filled = gate.fill(gate.folder / "batch.csv")
    assert filled.read_bytes() != batch_content([])
    assert main(["gate", "answer", "G", "batch.csv"]) == 0
    assert (gate.folder / "G/answers/0001.csv").is_file()


# -- what would be lost ----------------------------------------------------------------------------------------

AUDIT = ["audit", "a.run", "-m", "P@2", "--labels", "l.qrels", "-n", "3", "--seed", "1"]


def filled(path):
    """Fill in every second grade of a file of pairs, and return its lines."""
    head, *rows = path.read_text().splitlines()
    path.write_text(
        "\n".join([head, *(f"{row}1" if place % 2 else row for place, row in enumerate(rows))]) + "\n"
    )
    return path.read_text().splitlines()


def test_grades_that_people_filled_in_are_not_written_over(folder, capsys):
    """The control: a file without grades is written anew."""
    assert main([*AUDIT, "-n", "4", "-o", "audit.csv"]) == 0
    assert main([*AUDIT, "-n", "4", "-o", "audit.csv"]) == 0
    n_grades = sum(line.endswith(",1") for line in filled(folder / "audit.csv"))
    assert n_grades > 0
    capsys.readouterr()
    words = f"audit.csv: {n_grades} grades stand in this file: write to another one"
    assert refused(folder, capsys, [*AUDIT, "-o", "audit.csv"]) == words
    words = "audit.csv: the command reads this file: write to another one"
    assert refused(folder, capsys, [*AUDIT, "--earlier", "audit.csv", "-o", "audit.csv"]) == words


def test_a_result_is_not_written_over_the_labels(folder, capsys):
    words = "l.qrels: the command reads this file: write to another one"
    assert refused(folder, capsys, [*ASKED, "--labels", "l.qrels", "-o", "l.qrels"]) == words


def test_a_run_of_other_topics_is_refused_beside_one_that_fits(folder, capsys):
    (folder / "b.run").write_text(FILES["b.run"].replace("q", "query-"))
    words = "the run b and the judgments have no common topic: are their ids spelled alike?"
    assert refused(folder, capsys, [*ASKED, "--labels", "l.qrels"]) == words


def test_gains_without_bound_are_refused(folder, capsys):
    asked = ["estimate", "a.run", "-m", "DCG@2", "--labels", "l.qrels", "--gains", "0=0,1=1e200,2=2,3=3"]
    assert "must be numbers from 0 to 1,000,000" in refused(folder, capsys, asked)
