"""A release that 0.1.0 made, as its file: today's reader, verifier and evaluation take it as they took it then."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_release import unpacked

from analytics.releases.reading import open_release
from analytics.releases.verify import verify

PACKED = Path(__file__).parents[2] / "recorded" / "release-0.1.0.zip"
ROOT = "08c0c53cc6feb1f68e5ca38db61cc885ffc921b847542c1401c67d870f3de08a"


@pytest.fixture
def folder(tmp_path):
    return unpacked(PACKED.read_bytes(), tmp_path)


def test_the_reader_finds_it_whole_and_reads_every_table():
    with open_release(PACKED) as release:
        assert (release.slug, release.version) == ("small-campaign", "1.0")
        assert release.manifest["merkle_root"] == ROOT
        assert release.differences() == []
        assert [topic["topic_id"] for topic in release.topics()] == ["t0", "t1", "t2"]
        assert len(list(release.documents())) == 42
        assert set(release.runs()) == {"run0", "run1", "run2"}
        grades = {(line.topic_id, line.doc_id): line.grade for line in release.qrels()}
        # The manager decided these three, whatever the assessors and the audit said.
        decided = {document: grades["t0", document] for document in ("t0d00", "t0d01", "t0d02")}
        assert decided == {"t0d00": 0, "t0d01": 3, "t0d02": 1}
        assert {(line.topic_id, line.doc_id) for line in release.prels()} <= grades.keys()
        assert len({line.assessor for line in release.qrels_jg()}) == 3


def test_todays_verifier_finds_every_number_of_it_again(folder):
    report = verify(folder)
    assert report.different == []
    rows = json.loads((folder / "estimates.json").read_text())["estimates"]
    assert report.same["numbers of estimates"] > len(rows)
    assert report.same["lines of qrels.txt"] == len((folder / "qrels.txt").read_text().splitlines())
    (folder / "qrels.txt").write_bytes((folder / "qrels.txt").read_bytes().replace(b" 3\n", b" 2\n", 1))
    assert any(words.startswith("qrels.txt line") for words in verify(folder).different)


def test_its_own_verifier_still_runs(folder):
    command = [sys.executable, str(folder / "verify.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith("ok: everything that was compared is the same\n")
