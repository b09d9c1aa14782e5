"""Two processes on one gate at once: one waits or is refused, and nothing is otherwise than one after the other."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gate_files import QUESTION, GateFiles, contents, write_gate_files

from touchstone_ir import gate_lock
from touchstone_ir import gate_steps as gates
from touchstone_ir.columns import InputRefused

REPOSITORY = Path(__file__).resolve().parents[3]
RACES = REPOSITORY / "tests" / "gate_races.py"
ANSWER = ["answer", "G", "batch.csv"]
START = ["start", "G", "--a", "old.run", "--b", "new.run", "--labels", "llm.qrels"]
START += [part for name, value in QUESTION.items() for part in (f"--{name}", str(value))]
HOLDER = """
import sys, time
from pathlib import Path
from touchstone_ir.gate_lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def files(tmp_path: Path) -> GateFiles:
    """Return a gate with one batch answered, and the second filled in."""
    found = write_gate_files(tmp_path / "before", better_by=0.2)
    found.start()
    found.play(most=1)
    gates.next_batch(found.folder / "G", found.folder / "batch.csv")
    found.fill(found.folder / "batch.csv")
    return found


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_lock, "WAIT", 0.1)


def race(before: Path, lock: str, first: list[str], second: list[str]) -> dict:
    command = [sys.executable, str(RACES), str(before), "0.1", lock, *first, ",", *second]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)


def holder(folder: Path, seconds: float) -> subprocess.Popen:
    """Return a process that holds the gate for so long; it holds it already."""
    command = [sys.executable, "-c", HOLDER, str(folder), str(seconds)]
    surroundings = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    "second", [ANSWER, ["status", "G"], ["next", "G", "-o", "other.csv"]], ids=lambda one: one[0]
)
def test_a_step_in_the_middle_of_an_answer_waits_for_it(files: GateFiles, second: list[str]) -> None:
    found = race(files.folder, "locked", ANSWER, second)
    assert found["faults"] == []
    stopped = [other for _, other in found["codes"]]
    assert len(stopped) >= 10, "an answer and a line of looks"
    assert stopped.count(2) >= len(stopped) - 2, "all but before the lock is taken"


@pytest.mark.slow
def test_without_the_lock_a_look_is_taken_twice(files: GateFiles) -> None:
    """The control: what the lock keeps away can be seen."""
    found = race(files.folder, "unlocked", ANSWER, ["status", "G"])
    assert {fault.split(": ")[1] for fault in found["faults"]} >= {
        "G/looks.jsonl",
        "exit code 2 where it is 3",
    }


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["locked", "unlocked"])
def test_of_two_starts_with_different_questions_one_is_refused(tmp_path: Path, lock: str) -> None:
    write_gate_files(tmp_path / "before")
    codes = race(tmp_path / "before", lock, START, [*START[:-1], "8"])["codes"]
    both_started = codes.count([0, 0])
    assert len(codes) >= 10
    if lock == "locked":
        assert both_started == 0
        assert [0, 2] in codes
        assert [2, 0] in codes, "who makes the folder need not be who locks it"
    else:
        assert both_started > 0, "the control: the first puts its question in the place of the second's"


def test_the_second_waits_until_the_first_has_ended(files: GateFiles) -> None:
    with holder(files.folder / "G", 0.5) as process:
        assert gates.answer(files.folder / "G", files.folder / "batch.csv").look.batch == 2
        assert process.wait() == 0


@pytest.mark.usefixtures("no_patience")
def test_a_gate_that_stays_held_is_refused_and_unchanged(files: GateFiles) -> None:
    gate, before = files.folder / "G", contents(files.folder)
    with holder(gate, 60) as process:
        for step in (
            lambda: gates.answer(gate, files.folder / "batch.csv"),
            lambda: gates.next_batch(gate, files.folder / "other.csv"),
            lambda: gates.status(gate),
            files.start,
        ):
            with pytest.raises(
                InputRefused, match=r"G: another step of this gate is under way, .* 0.1 s: try again$"
            ):
                step()
        process.kill()
    assert contents(files.folder) == before


@pytest.mark.usefixtures("no_patience")
def test_a_process_that_is_killed_leaves_no_lock(files: GateFiles) -> None:
    with holder(files.folder / "G", 60) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert gates.answer(files.folder / "G", files.folder / "batch.csv").look.batch == 2


# -- where the system has no such lock ----------------------------------------------------------------------------


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.mark.usefixtures("no_patience")
@pytest.mark.parametrize("system", ["Windows", "a share"])
def test_a_file_is_the_lock_where_the_system_has_none(
    files: GateFiles, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if system == "Windows":
        monkeypatch.setattr(gate_lock, "fcntl", None)
    else:
        monkeypatch.setattr(fcntl, "flock", no_locks)
    gate, lock = files.folder / "G", files.folder / "G" / "lock"
    with gate_lock.hold(gate):
        assert lock.is_file()
        with pytest.raises(InputRefused, match=f"under way.*If none is, a step was killed: remove {lock}$"):
            gates.status(gate)
    assert not lock.exists()
    assert gates.answer(gate, files.folder / "batch.csv").look.batch == 2
    lock.touch()  # as a kill leaves it
    with pytest.raises(InputRefused, match="remove"):
        gates.status(gate)
    lock.unlink()
    assert gates.status(gate).look.batch == 2


def test_an_error_gives_the_gate_free(files: GateFiles) -> None:
    with pytest.raises(ValueError, match="once"), gate_lock.hold(files.folder / "G"):
        raise ValueError("once")
    with gate_lock.hold(files.folder / "G"):
        assert not (files.folder / "G" / "lock").exists()
