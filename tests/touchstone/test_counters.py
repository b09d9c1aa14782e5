"""Counters that outlive their process: killed, forked, many at once, without room."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from touchstone import counters


@pytest.fixture(autouse=True)
def an_empty_folder(settings, tmp_path):
    settings.VAR = tmp_path
    counters._forget()
    yield
    counters._forget()


def files():
    return sorted(path.name for path in counters.folder().iterdir())


CHILD = """
import os, sys, django
from django.conf import settings
settings.configure(VAR=sys.argv[1])
from touchstone import counters
counters.add("requests", "home", "200", n=7)
print("counted", flush=True)
sys.stdin.read()
"""


def child(folder):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_what_was_counted_survives_a_kill_and_the_next_process_goes_on(tmp_path):
    for n in (1, 2, 3):
        process = child(tmp_path)
        assert process.stdout.readline() == b"counted\n"
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
        assert counters.totals() == {("requests", "home", "200"): 7 * n}
        assert files() == ["0.counters"], "its lock fell with it"


def test_processes_at_the_same_time_have_a_file_each(tmp_path):
    living = [child(tmp_path) for _ in range(3)]
    for process in living:
        assert process.stdout.readline() == b"counted\n"
    assert files() == ["0.counters", "1.counters", "2.counters"]
    for process in living:
        process.communicate(timeout=20)
    assert counters.totals() == {("requests", "home", "200"): 21}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_takes_a_file_of_its_own():
    counters.add("a")
    context = multiprocessing.get_context("fork")
    process = context.Process(target=counters.add, args=("a",))
    process.start()
    process.join(20)
    counters.add("a")
    assert process.exitcode == 0
    assert counters.totals() == {("a",): 3}
    assert files() == ["0.counters", "1.counters"]


def test_eight_threads_lose_no_count():
    def many():
        for n in range(2000):
            counters.add("requests", f"view {n % 7}", "200")

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counters.totals().values()) == 16_000
    assert len(counters.totals()) == 7


def test_without_room_for_a_name_it_counts_as_other(monkeypatch):
    monkeypatch.setattr(counters, "PLACES", 4)
    monkeypatch.setattr(counters, "SIZE", 4 * (8 + counters.KEY))
    for name in "abcdef":
        counters.add(name, n=2)
    expected = {("a",): 2, ("b",): 2, ("c",): 2, (counters.OTHER,): 6}
    assert counters.totals() == expected
    counters._forget()
    counters.add("g")  # another process, on the same file or on the next
    assert sum(counters.totals().values()) == 13


def test_a_long_name_is_cut():
    counters.add("x" * 500)
    assert counters.totals() == {("x" * counters.KEY,): 1}


def test_a_folder_that_cannot_be_written_stops_nothing_and_is_said_once(settings, tmp_path, caplog):
    (tmp_path / "counters").write_text("a file, where the folder should be")
    for _ in range(3):
        counters.add("a")
    assert [record.getMessage()[:35] for record in caplog.records] == ["requests and jobs are not counted: "]
    (tmp_path / "counters").unlink()
    assert counters.totals() == {}


def test_the_room_is_taken_before_anything_is_counted():
    """A page of a sparse file that finds no room when it is written would end the process."""
    counters.add("a")
    (path,) = counters.folder().iterdir()
    assert os.stat(path).st_blocks * 512 >= counters.SIZE
