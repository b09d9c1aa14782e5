"""The programs of docs/examples for the library print what they should, and wrote the files that lie there."""

import re
import runpy
import sys

import pytest
from clef import FOLDER
from pure_modules import REPOSITORY

import touchstone_ir as ts

EXAMPLES = REPOSITORY / "docs" / "examples"


def printed_by(name, monkeypatch, capsys, *arguments) -> str:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_labels_and_gold_writes_the_files_of_the_folder_and_finds_what_labels_hide(
    tmp_path, monkeypatch, capsys
):
    said = printed_by("labels_and_gold.py", monkeypatch, capsys, EXAMPLES / "data", tmp_path)
    assert (tmp_path / "llm.qrels").read_text() == (EXAMPLES / "data" / "llm.qrels").read_text()
    written, kept = (ts.read_qrels(folder / "checked.prels") for folder in (tmp_path, EXAMPLES / "data"))
    assert written.drop("probability").equals(kept.drop("probability"))
    assert written["probability"].to_list() == pytest.approx(kept["probability"].to_list())
    truth, labels, corrected = (line.rpartition(", ")[2] for line in said.splitlines())
    assert (truth, labels, corrected) == ("bm25 is higher", "not significant", "bm25 is higher")


def test_the_labels_follow_the_rule_that_is_stated():
    truth, said = (
        {(topic, doc): grade for topic, doc, grade in ts.read_qrels(EXAMPLES / "data" / name).rows()}
        for name in ("grades.qrels", "llm.qrels")
    )
    relevant = [pair for pair, grade in truth.items() if grade]
    kept = [pair for pair in relevant if said[pair] == truth[pair]]
    assert all(said[pair] in (0, truth[pair]) for pair in relevant)
    assert len(kept) / len(relevant) == pytest.approx(0.80, abs=3 * (0.8 * 0.2 / len(relevant)) ** 0.5)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="CLEF_TAR names no folder with CLEF's files")
def test_on_clef_tar_2017_nine_of_ten_audits_at_least_hold_the_truth(monkeypatch, capsys):
    said = printed_by("clef_tar_2017.py", monkeypatch, capsys, FOLDER)
    assert re.search(r"^truth +-0\.1000$", said, re.MULTILINE)
    covered = int(re.search(r"(\d+) of 100 intervals hold the truth", said)[1])
    assert covered >= 90
    assert said in re.sub(r"^    ", "", (EXAMPLES / "README.md").read_text(), flags=re.MULTILINE)
