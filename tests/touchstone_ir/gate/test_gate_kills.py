"""kill -9 at any write of any step loses nothing: done again, the step ends as if nothing had been."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gate_files import QUESTION, GateFiles, write_gate_files

from touchstone_ir import gate_steps as gates

KILLS = Path(__file__).resolve().parents[2] / "gate_kills.py"
START = ["start", "G", "--a", "old.run", "--b", "new.run", "--labels", "llm.qrels"]
START += [part for name, value in QUESTION.items() for part in (f"--{name}", str(value))]


def prepared(tmp_path: Path, n_answered: int) -> GateFiles:
    """Return files of a gate with so many answered batches, and the next one filled in batch.csv."""
    files = write_gate_files(tmp_path / "before", better_by=0.2)
    files.start()
    files.play(most=n_answered)
    gates.next_batch(files.folder / "G", files.folder / "batch.csv")
    files.fill(files.folder / "batch.csv")
    return files


def kill_everywhere(before: Path, arguments: list[str]) -> dict:
    command = [sys.executable, str(KILLS), str(before), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)


@pytest.mark.slow
def test_a_start_killed_at_any_write_is_as_if_nothing_had_been(tmp_path: Path) -> None:
    write_gate_files(tmp_path / "before")
    found = kill_everywhere(tmp_path / "before", START)
    assert found["faults"] == []
    assert found["changes"]
    assert found["kills"] >= 14, "three folders, two files"


@pytest.mark.slow
def test_a_next_killed_at_any_write_asks_for_the_same(tmp_path: Path) -> None:
    files = prepared(tmp_path, 1)
    found = kill_everywhere(files.folder, ["next", "G", "-o", "other.csv"])
    assert (found["faults"], found["changes"]) == ([], True)
    assert found["kills"] >= 4


@pytest.mark.slow
@pytest.mark.parametrize("n_answered", [0, 2])
def test_an_answer_killed_at_any_write_is_kept_once(tmp_path: Path, n_answered: int) -> None:
    files = prepared(tmp_path, n_answered)
    found = kill_everywhere(files.folder, ["answer", "G", "batch.csv"])
    assert (found["faults"], found["changes"]) == ([], True)
    assert found["kills"] >= 8, "an answer and a line of looks"


def test_a_torn_line_of_looks_is_no_look_and_is_written_anew(tmp_path: Path) -> None:
    files = prepared(tmp_path, 2)
    looks = files.folder / "G" / "looks.jsonl"
    whole = looks.read_bytes()
    looks.write_bytes(whole[:-20])
    assert gates.status(files.folder / "G").n_judged > 0
    assert looks.read_bytes() == whole
