"""`touchstone evaluate` and `manage.py evaluate` are one command; it takes runs of every format, and several."""

import gzip
import json
import re
import shlex
import zipfile
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, load_command_class

import touchstone_ir as ts
from judging.formats import FORMATS, RUNS, convert
from touchstone_ir import command
from touchstone_ir.columns import InputRefused

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = REPOSITORY / "tests" / "recorded" / "release-0.1.0.zip"
PRELS = "t0 t0d00 1 1 0.5\nt0 t0d01 0 1 1\nt0 t0d02 2 2 0.25\nt1 t1d03 1 1 0.5\n"


@pytest.fixture
def mine(tmp_path):
    """A run that the release does not have: what its first run returns, backwards."""
    rows = [
        f"{topic} Q0 {doc} {rank} {rank} mine\n"
        for topic, docs in documents_of("run0").items()
        for rank, doc in enumerate(docs, 1)
    ]
    (tmp_path / "mine.run").write_text("".join(rows))
    return tmp_path / "mine.run"


@pytest.fixture
def prels(tmp_path):
    (tmp_path / "prels").write_text(PRELS)
    return tmp_path / "prels"


def documents_of(run):
    """Return by topic the documents of a run of the release, best first."""
    with zipfile.ZipFile(RELEASE) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist()}
        runs = json.loads(archive.read(f"{folder}/runs.json"))
        file = next(one["file"] for one in runs if one["run_id"] == run)
        lines = gzip.decompress(archive.read(f"{folder}/{file}")).decode().splitlines()
    found: dict[str, list[str]] = {}
    for topic, _, doc, *_ in map(str.split, lines):
        found.setdefault(topic, []).append(doc)
    return found


def by_manage(*arguments):
    out = StringIO()
    call_command("evaluate", *map(str, arguments), stdout=out)
    return out.getvalue()


def by_touchstone(capsys, *arguments):
    code = command.main(["evaluate", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    "arguments",
    [
        ["P@10", "nDCG@10", "AP@20"],
        ["P@10", "DCG@10", "-q", "-p", "3"],
        ["P@10", "-q", "-n"],
        ["run1", "P@10", "Judged@5", "--output", "json", "--by-topic"],
        ["run1", "DCG@10", "--against", "run2", "--claim", "these-topics", "--family", "all"],
        ["DCG@10", "--against", "run2", "--against", "run1", "--output", "json"],
        ["P@10", "--output", "csv"],
        ["P@10", "--output", "markdown"],
    ],
    ids=" ".join,
)
def test_both_commands_print_the_same_of_a_release(arguments, mine, capsys):
    code, printed = by_touchstone(capsys, RELEASE, mine, *arguments)
    assert (code, printed.err) == (0, "")
    assert by_manage(RELEASE, mine, *arguments) == printed.out
    assert "mine" in printed.out or "-n" in arguments


@pytest.mark.parametrize("arguments", [[], ["-q"], ["--output", "json", "-q"], ["--method-codes", "track"]])
def test_both_commands_print_the_same_of_a_sample(arguments, mine, prels, capsys):
    asked = (prels, mine, "statAP", "P@10", "--format", "prels", *arguments)
    code, printed = by_touchstone(capsys, *asked)
    assert (code, printed.err) == (0, "")
    assert by_manage(*asked) == printed.out


def test_both_commands_have_the_same_options():
    """Django's own options come besides."""
    choices = command.parser()._subparsers._group_actions[0].choices
    ours = {flag for one in choices["evaluate"]._actions for flag in one.option_strings}
    theirs = load_command_class("touchstone", "evaluate").create_parser("manage.py", "evaluate")
    found = {flag for one in theirs._actions for flag in one.option_strings}
    assert ours - found == set()
    assert {"-q", "--by-topic", "-n", "--no-summary", "-p", "--places", "--output", "--against"} <= ours
    assert {"--claim", "--family", "--format", "--empty-topics", "--method-codes"} <= ours


def numbers_of(text):
    """Return the numbers of the JSON, in their order, whatever the run is called."""
    return json.loads(text, object_hook=lambda fields: {**fields, "run": ""})["measures"]


@pytest.mark.parametrize(
    "file_format", [one for one in FORMATS if one.holds == RUNS and one.write], ids=lambda one: one.key
)
def test_a_run_of_every_format_has_the_numbers_of_the_trec_file(file_format, mine, prels, tmp_path):
    other = tmp_path / f"{file_format.key}{file_format.extensions[0]}"
    convert(mine, other, None, file_format.key)
    asked = ("P@10", "nDCG@10", "--output", "json")
    assert numbers_of(by_manage(RELEASE, other, *asked)) == numbers_of(by_manage(RELEASE, mine, *asked))
    asked = ("statAP", "P@10", "--format", "prels", "--output", "json")
    first, second = (numbers_of(by_manage(prels, path, *asked)) for path in (mine, other))
    assert [[*one["values"].values()] for one in first] == [[*one["values"].values()] for one in second]
    assert first[0]["values"]["mine"] > 0


def test_several_runs_have_each_the_numbers_they_have_alone(mine):
    both = json.loads(by_manage(RELEASE, mine, "run1", "P@10", "DCG@10", "--output", "json"))
    assert both["runs"] == ["mine", "run1"]
    assert "run" not in both
    for run, name in ((mine, "mine"), ("run1", "run1")):
        alone = json.loads(by_manage(RELEASE, run, "P@10", "DCG@10", "--output", "json"))
        assert (alone["run"], alone["runs"]) == (name, [name])
        assert alone["measures"] == [one for one in both["measures"] if one["run"] == name]
    table = by_manage(RELEASE, mine, "run1", "P@10").splitlines()
    assert table[0].endswith("runs mine, run1, 3 topics")
    assert [line.split()[:2] for line in table[2:5]] == [
        ["measure", "run"],
        ["P@10", "mine"],
        ["P@10", "run1"],
    ]
    assert any(line.startswith("P@10 estimate of mine, P@10 estimate of run1: ") for line in table[6:])


def test_rows_and_details_of_the_json_agree(mine):
    told = json.loads(by_manage(RELEASE, mine, "P@10", "statAP@20", "Judged@5", "--output", "json"))
    rows = {row["measure"]: row for row in told["rows"]}
    for one in told["measures"]:
        row = rows[one["measure"]]
        assert row["as_given"] == one["qrels"]
        assert row["estimate"] == one["estimate"].get("value")
        assert (row["judged_share"], row["gold_share"]) == (one["judged_share"], one["gold_share"])
    corrected, topics = told["measures"][0]["corrected"], told["measures"][0]["corrected_over_topics"]
    row = rows["P@10"]
    assert (row["value"], row["low_other"], row["high_other"]) == tuple(
        corrected[name] for name in ("value", "low", "high")
    )
    assert (row["low"], row["high"]) == (topics["low"], topics["high"])
    assert (rows["statAP@20"]["value"], rows["statAP@20"]["low"]) == (rows["statAP@20"]["estimate"], None)
    assert rows["Judged@5"]["value"] == rows["Judged@5"]["as_given"]


def test_a_comparison_in_a_paper_says_in_which_family_its_p_is_adjusted(mine):
    asked = ("run1", "DCG@10", "--against", "run2", "--family", "all", "--output", "latex")
    found = json.loads(by_manage(RELEASE, mine, *asked[:-1], "json"))["comparisons"]
    n = found[0]["n_family"]
    assert n > 0
    assert f"p adjusted by Holm in the family all, {n} comparisons" in by_manage(RELEASE, mine, *asked)


def test_a_file_before_a_run_of_the_release_of_that_name(mine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run1").write_bytes(mine.read_bytes())
    assert json.loads(by_manage(RELEASE, "run1", "P@10", "--output", "json"))["run"] == "mine"


def test_the_baseline_may_be_a_file_or_stand_among_the_runs(mine):
    told = json.loads(by_manage(RELEASE, "run1", "DCG@10", "--against", mine, "--output", "json"))
    assert [(one["run"], one["against"]) for one in told["comparisons"]] == [("run1", "mine")]
    found = ts.evaluate(RELEASE, ["run0", "run1"], "DCG@10", against="run1").frame
    assert found.select("run", "against").rows() == [("run0", "run1")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mine.run"], "name at least one measure after the runs"),
        (["mine.run", "P@10", "-n"], "leaves nothing to be said"),
        (["mine.run", "P@10", "--against", "run1", "-q"], "of runs, not of differences"),
        (["mine.run", "mine.run", "P@10"], "the run mine is named twice"),
        (["other.csv", "P@10"], "no file, and no run of the release, which has run0, run1, run2"),
        (["mine.run", "statAP", "--format", "prels"], "a zip archive, not text"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, mine, monkeypatch, capsys):
    monkeypatch.chdir(mine.parent)
    code, printed = by_touchstone(capsys, RELEASE, *arguments)
    assert (code, printed.out) == (2, "")
    assert re.search(words, printed.err)
    assert printed.err.count("\n") == 1
    with pytest.raises(CommandError, match=words):
        by_manage(RELEASE, *arguments)


def test_a_paper_has_no_table_of_numbers_without_intervals(mine, prels, capsys):
    asked = (prels, mine, "statAP", "--format", "prels", "--output", "latex")
    code, printed = by_touchstone(capsys, *asked)
    assert (code, printed.out) == (2, "")
    assert "shows intervals, and these numbers have none" in printed.err


def test_a_result_is_not_written_over_a_run(mine):
    before = mine.read_bytes()
    with pytest.raises(CommandError, match="the command reads this file"):
        by_manage(RELEASE, mine, "DCG@10", "-o", mine)
    assert mine.read_bytes() == before


def test_two_different_runs_of_one_name_are_refused_in_both_places(mine, tmp_path):
    """The control: the same run on both sides, of several, is one that the others are compared with."""
    other = tmp_path / "other.run"
    other.write_text(mine.read_text())
    same = ts.evaluate(RELEASE, [str(mine), "run1"], "DCG@10", against=str(other))
    assert same.frame.select("run", "against").rows() == [("run1", "mine")]
    other.write_text("".join(mine.read_text().splitlines(keepends=True)[:3]))
    with pytest.raises(InputRefused, match="the run mine is named twice"):
        ts.evaluate(RELEASE, [str(mine), "run1"], "DCG@10", against=str(other))


def test_a_measure_without_adjusted_comparisons_claims_no_adjustment(mine):
    """Each table of a paper has the number of comparisons of its own measure."""
    found = ts.evaluate(RELEASE, "run1", ["DCG@10", "P@10"], against="run2", family="all")
    pairs = tuple(replace(one, n_family=0 if one.measure == "P@10" else 7) for one in found.pairs)
    first, second = replace(found, pairs=pairs).to_markdown().split("Differences in")[1:]
    assert ("7 comparisons" in first, "comparisons" in second) == (True, False)


def test_claim_and_family_of_runs_alone_are_refused():
    with pytest.raises(InputRefused, match="against="):
        ts.evaluate(RELEASE, "run0", "P@10", claim="these-topics")


def test_all_refused_ends_with_5_and_the_file_has_the_result(tmp_path, capsys):
    out = tmp_path / "result.txt"
    code, printed = by_touchstone(capsys, RELEASE, "run0", "P@10", "--against", "run1", "-o", out)
    assert (code, printed.out) == (5, "")
    assert "8 audited items with non-zero weight" in out.read_text()


def documented_commands():
    """Return the commands of the manual, the README and the usage text of releases, each with the file it stands in."""
    pages = [
        REPOSITORY / "README.md",
        *sorted((REPOSITORY / "docs").rglob("*.md")),
        REPOSITORY / "analytics" / "releases" / "datasheet.py",
    ]
    form = re.compile(r"^ {4,}(?:\$ )?(?:\S*python manage\.py|touchstone) evaluate (.+)$", re.MULTILINE)
    return [(page.name, line) for page in pages for line in form.findall(page.read_text())]


def test_every_command_of_the_manual_is_understood():
    found = documented_commands()
    assert len(found) >= 8
    for page, line in found:
        options = command.parser().parse_args(["evaluate", *shlex.split(line, comments=True)])
        assert len(options.names) >= 2, (page, line)
