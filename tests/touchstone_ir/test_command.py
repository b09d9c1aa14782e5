"""The command `touchstone`: what it writes, and with which code it ends."""

import argparse
import csv
import json

import pytest

import touchstone_ir as ts
from touchstone_ir.columns import InputRefused
from touchstone_ir.command import main, parser
from touchstone_ir.commands import COMMANDS
from touchstone_ir.description import description
from touchstone_ir.grade_maps import grade_map

N_TOPICS, N_DOCS = 10, 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs, labels of which every fifth is wrong, and the truth."""
    made = tmp_path_factory.mktemp("library")
    runs = {"a": [], "b": []}
    labels, truth = [], {}
    for topic in range(N_TOPICS):
        for doc in range(N_DOCS):
            grade = int((doc * 7 + topic) % 10 < 4)
            truth[f"t{topic}", f"d{doc}"] = grade
            wrong = (topic * N_DOCS + doc) % 5 == 0
            labels.append(f"t{topic} 0 d{doc} {1 - grade if wrong else grade}")
            runs["a"].append(f"t{topic} Q0 d{doc} 0 {(doc * 3 + topic) % 10} a")
            runs["b"].append(f"t{topic} Q0 d{doc} 0 {10 * grade + (doc + topic) % 3} b")
    for name, lines in runs.items():
        (made / f"{name}.run").write_text("\n".join(lines) + "\n")
    (made / "labels.qrels").write_text("\n".join(labels) + "\n")
    return made, truth


def fill_in(path, truth):
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    with path.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "grade": truth[row["topic"], row["doc"]]} for row in rows)


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_the_way_from_labels_to_a_plan_is_a_few_commands(folder, tmp_path, capsys):
    made, truth = folder
    a, b, labels = made / "a.run", made / "b.run", made / "labels.qrels"
    audit, result = tmp_path / "audit.csv", tmp_path / "result.json"
    assert run("audit", a, b, "-m", "P@5", "--labels", labels, "-n", 40, "--seed", 7, "-o", audit) == 0
    assert audit.read_text().startswith("topic,doc,probability,batch,grade\n")
    fill_in(audit, truth)
    asked = ["-m", "P@5", "--labels", labels, "--gold", audit]
    assert run("compare", a, b, *asked, "--output", "json", "-o", result) == 0
    row = json.loads(result.read_text())["rows"][0]
    assert (row["run"], row["against"], row["verdict"]) == ("b", "a", "b is higher")
    same = ts.compare([a, b], "P@5", labels=labels, gold=audit).frame.row(0, named=True)
    assert (row["value"], row["low"], row["p"]) == (same["value"], same["low"], same["p"])
    assert run("plan", result, "--budget", 100) == 0
    assert "half_width_now" in capsys.readouterr().out
    for output in ("table", "csv", "latex", "markdown"):
        assert run("compare", a, b, *asked, "--output", output) == 0
        assert "P(rel=1)@5" in capsys.readouterr().out.replace("\\", "").replace("\\_", "_")
    assert run("estimate", a, b, *asked) == 0
    assert run("rank", a, b, *asked) == 0
    assert "tau" in capsys.readouterr().out


def test_a_design_is_drawn_and_topped_up(folder, tmp_path):
    made, truth = folder
    a, b = made / "a.run", made / "b.run"
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    assert run("design", a, b, "-m", "DCG@5", "--budget", 30, "-o", small) == 0
    assert run("design", a, b, "-m", "DCG@5", "--budget", 50, "-o", large) == 0
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    assert run("draw", small, "--seed", 3, "-o", first) == 0
    assert run("draw", large, "--seed", 3, "--earlier", first, "-o", second) == 0
    third = tmp_path / "third.csv"
    assert run("design", a, b, "-m", "DCG@5", "--budget", 60, "-o", large) == 0
    assert run("draw", large, "--seed", 3, "--earlier", second, "-o", third) == 0
    with third.open(newline="") as lines:
        batches = [row["batch"] for row in csv.DictReader(lines)]
    assert [batches.count(number) > 0 for number in "123"] == [True, True, True]  # the file keeps them apart
    fill_in(second, truth)
    assert run("compare", a, b, "-m", "DCG@5", "--gold", second, "-o", tmp_path / "out") == 0
    assert "b is higher" in (tmp_path / "out").read_text()


def test_a_plot_is_written_beside_the_result(folder, tmp_path):
    made, _ = folder
    asked = [
        "-m",
        "P@5",
        "--labels",
        made / "labels.qrels",
        "--plot",
        tmp_path / "x.svg",
        "-o",
        tmp_path / "x.txt",
    ]
    assert run("compare", made / "a.run", made / "b.run", *asked) == 0
    assert (tmp_path / "x.svg").read_text().startswith("<svg")


def test_a_ranking_is_drawn_as_the_chances_of_its_ranks_and_what_has_no_picture_says_so(folder, tmp_path):
    made, _ = folder
    runs, labels = [made / "a.run", made / "b.run"], made / "labels.qrels"
    asked = [
        "rank",
        *runs,
        "-m",
        "P@5",
        "--labels",
        labels,
        "--output",
        "json",
        "-o",
        tmp_path / "ranks.json",
    ]
    assert run(*asked, "--plot", tmp_path / "ranks.svg") == 0
    picture = (tmp_path / "ranks.svg").read_text()
    assert "Ranks in P(rel=1)@5" in picture
    found = ts.rank(runs, "P@5", labels=labels).frame
    for name, chances in found.select("run", "rank_probabilities").iter_rows():
        assert f">{name}<" in picture
        assert all(f">{100 * chance:.0f}<" in picture for chance in chances if 0.01 < chance < 0.99)
    judged = ts.read_qrels(labels).to_dict(as_series=False)
    twice = {name: values * 2 for name, values in judged.items()}
    twice["assessor"] = ["ann"] * len(judged["topic"]) + ["ben"] * len(judged["topic"])
    for without in (ts.agreement(twice), ts.plan(ts.estimate(runs, "P@5", labels=labels), half_width=0.1)):
        with pytest.raises(InputRefused, match=f"a {without.kind} has no picture"):
            without.plot(tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_a_file_is_converted_by_its_ending(folder, tmp_path):
    made, _ = folder
    assert run("convert", made / "a.run", "-o", tmp_path / "a.json") == 0
    first = ts.read_run(made / "a.run")
    again = ts.read_run(tmp_path / "a.json", name="a")
    assert again.select("topic", "doc", "rank").equals(first.select("topic", "doc", "rank"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "a.run", "b.run", "-m", "P@5"], "give labels=, gold= or both"),
        (["compare", "a.run", "none.run", "-m", "P@5", "--labels", "labels.qrels"], "none.run"),
        (["compare", "a.run", "-m", "P@5", "--labels", "labels.qrels"], "at least two runs"),
        (["estimate", "a.run", "-m", "infAP", "--labels", "labels.qrels"], "not served"),
        (["estimate", "a.run", "-m", "P@5", "--labels", "b.run"], "read_run"),
        (["estimate", "a.run", "-m", "P@5", "--labels", "labels.qrels", "--grades", "1"], "--grades"),
        (
            ["audit", "a.run", "-m", "P@5", "--labels", "labels.qrels", "-n", "0", "--seed", "1"],
            "n must be at least 1",
        ),
        (["design", "a.run", "b.run", "-m", "P@5", "--budget", "0", "-o", "x.json"], "budget"),
        (["draw", "labels.qrels", "--seed", "1"], "no design"),
        (["plan", "labels.qrels", "--budget", "1"], "no result"),
        (["verify", "labels.qrels"], "labels.qrels"),
        (["evaluate", "labels.qrels", "a.run", "P@5"], "labels.qrels"),
    ],
)
def test_bad_input_ends_with_2_and_one_line_of_words(folder, monkeypatch, capsys, arguments, words):
    made, _ = folder
    monkeypatch.chdir(made)
    before = sorted(path.name for path in made.iterdir())
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"touchstone {arguments[0]}: ")
    assert words in told.err
    assert sorted(path.name for path in made.iterdir()) == before


def test_a_result_of_refusals_alone_ends_with_5(folder, tmp_path):
    made, _ = folder
    few = tmp_path / "few.csv"
    few.write_text("topic,doc,probability,grade\nt0,d0,0.5,1\n")
    asked = ["-m", "P@5", "--labels", made / "labels.qrels", "--gold", few, "-o", tmp_path / "out"]
    assert run("compare", made / "a.run", made / "b.run", *asked) == 5


def test_grades_may_be_given_another_meaning():
    assert grade_map("-2=0,-1=") == {-2: 0, -1: None}
    assert grade_map("") is None
    for wrong in ("2", "2=x", "1=0,1=2"):
        with pytest.raises(ValueError, match=r"--grades: .*grade"):
            grade_map(wrong)


def test_a_larger_audit_keeps_the_grades_of_the_earlier_one(folder, tmp_path, capsys):
    made, truth = folder
    asked = [
        "audit",
        made / "a.run",
        made / "b.run",
        "-m",
        "P@5",
        "--labels",
        made / "labels.qrels",
        "--seed",
        7,
    ]
    audit, more = tmp_path / "audit.csv", tmp_path / "more.csv"
    assert run(*asked, "-n", 40, "-o", audit) == 0
    fill_in(audit, truth)
    assert run(*asked, "-n", 55, "--earlier", audit, "-o", more) == 0
    with audit.open(newline="") as first, more.open(newline="") as second:
        before, after = (
            {(row["topic"], row["doc"]): row["grade"] for row in csv.DictReader(one)}
            for one in (first, second)
        )
    assert len(after) > len(before) > 0
    assert {pair: grade for pair, grade in after.items() if pair in before} == before
    assert {grade for pair, grade in after.items() if pair not in before} == {""}
    lines = audit.read_text().splitlines()
    audit.write_text("\n".join([f"{lines[0]},assessor", f"{lines[1]},amy", f"{lines[1]},bob"]) + "\n")
    assert run(*asked, "-n", 55, "--earlier", audit, "-o", tmp_path / "none.csv") == 2
    assert f"{audit}:2: document" in capsys.readouterr().err


def test_a_run_that_returns_nothing_in_some_topics_is_told(folder, tmp_path, capsys):
    made, _ = folder
    short = tmp_path / "short.run"
    lines = (made / "a.run").read_text().splitlines(keepends=True)
    short.write_text(
        "".join(line for line in lines if line[:2] in ("t0", "t1", "t2")).replace(" a\n", " short\n")
    )
    asked = ["-m", "P@5", "--labels", made / "labels.qrels"]
    assert run("compare", short, made / "b.run", *asked) == 0
    assert (
        f"short returns nothing in {N_TOPICS - 3} of the topics, which count as 0." in capsys.readouterr().out
    )
    assert run("compare", made / "a.run", made / "b.run", *asked) == 0
    assert "returns nothing" not in capsys.readouterr().out


def test_a_measure_in_two_spellings_is_one(folder, capsys):
    made, _ = folder
    asked = ["compare", made / "a.run", made / "b.run", "--labels", made / "labels.qrels", "--output", "json"]
    assert run(*asked, "-m", "P@5") == 0
    alone = json.loads(capsys.readouterr().out)
    assert run(*asked, "-m", "P@5", "P(rel=1)@5") == 0
    assert json.loads(capsys.readouterr().out) == alone
    assert run(*asked, "-m", "P@5", "P@3") == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_a_ranking_is_a_table_of_a_paper_too(form, folder, capsys):
    made, _ = folder
    asked = ["rank", made / "a.run", made / "b.run", "-m", "P@5", "--labels", made / "labels.qrels"]
    assert run(*asked, "--output", form) == 0
    told = capsys.readouterr().out
    assert "Ranking of the runs by P(rel=1)" in told
    assert "True rank, 95" in told


def test_gains_are_what_grades_are_worth(folder, capsys):
    made, _ = folder
    asked = ["estimate", made / "b.run", "-m", "DCG@5", "--labels", made / "labels.qrels", "--output", "json"]
    assert run(*asked) == 0
    by_grade = json.loads(capsys.readouterr().out)["rows"][0]["value"]
    assert run(*asked, "--gains", "0=0,1=2.5") == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["value"] == pytest.approx(2.5 * by_grade, rel=1e-12)


@pytest.mark.parametrize("wrong", ["1", "1=x", "0=0,1=1,1=2", "0=0"])
def test_wrong_gains_are_refused(wrong, folder, capsys):
    made, _ = folder
    labels = made / "labels.qrels"
    assert run("estimate", made / "b.run", "-m", "DCG@5", "--labels", labels, "--gains", wrong) == 2
    assert "gains" in capsys.readouterr().err


@pytest.mark.parametrize(
    "spelled", [["--grades", "-2=0,-1="], ["--grades=-2=0,-1="], ["--grades", "1=1,-2=0,-1="]]
)
def test_a_map_of_grades_may_begin_with_a_negative_one(folder, tmp_path, capsys, spelled):
    made, _ = folder
    odd = tmp_path / "odd.qrels"
    odd.write_text((made / "labels.qrels").read_text().replace(" 0\n", " -2\n"))
    asked = ["estimate", made / "a.run", "-m", "P@5", "--output", "csv", "--labels"]
    assert run(*asked, odd) == 2
    assert "have the grade -2: say with grades= (in a shell: --grades)" in capsys.readouterr().err
    assert run(*asked, odd, *spelled) == 0
    mapped = capsys.readouterr().out
    assert run(*asked, made / "labels.qrels") == 0
    assert mapped == capsys.readouterr().out


def test_the_description_has_what_the_parser_has():
    whole = parser()
    (choices,) = (one for one in whole._actions if isinstance(one, argparse._SubParsersAction))
    told = {one["name"]: one for one in description()["commands"]}
    assert list(told) == [one.name for one in COMMANDS] == list(choices.choices)
    for name, one in choices.choices.items():
        flags = {flag for action in one._actions for flag in action.option_strings} - {"-h", "--help"}
        assert {flag for argument in told[name]["arguments"] for flag in argument["flags"]} == flags
    steps = [step["name"] for step in told["gate"]["steps"]]
    assert steps == ["start", "next", "answer", "status"]
    used = {code for one in told.values() for code in one["exit_codes"]}
    assert {str(code) for code in used} == set(description()["exit_codes"])


def test_the_names_of_the_package_are_all_there_and_documented():
    assert len(ts.__all__) == 15
    for name in ts.__all__:
        words = getattr(ts, name).__doc__
        assert words, name
    assert set(ts.__all__) <= set(dir(ts))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ts.nothing  # noqa: B018
