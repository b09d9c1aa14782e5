"""Counts that outlive the process that counts: one small file a process, which the kernel writes.

A process locks the first file that nobody holds and goes on from what it finds there. The lock falls with the process,
however it ends, so a counter never falls and there are as many files as processes at the same time. Counting is one
addition in memory that the kernel keeps, a killed process loses none; a machine that crashes may lose seconds.
"""

import fcntl
import itertools
import logging
import mmap
import os
import threading
import time
from collections import Counter
from pathlib import Path

from django.conf import settings

logger = logging.getLogger(__name__)
PLACES, KEY = 4096, 120  # how many counters a file has, and the bytes of a name
SIZE = PLACES * (8 + KEY)  # first all numbers, each written at once by the machine, then all names
SEPARATOR = "\x1f"
OTHER = "other"  # whatever has no place of its own
AGAIN = 60.0  # seconds until the next try where the file could not be had


def folder() -> Path:
    """Return where the files of all processes of this machine lie."""
    return Path(settings.VAR) / "counters"


class _File:
    """One file of counters, locked by this process as long as it lives."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = _lock_a_file(directory)
        # Room on the disk is taken now: a page that has none when it is written would end the process.
        os.posix_fallocate(self._file, 0, SIZE)
        self._content = mmap.mmap(self._file, SIZE)
        self._numbers = memoryview(self._content)[: PLACES * 8].cast("Q")
        self._places = {name: place for place, (name, _) in enumerate(_read(self._content))}

    def add(self, name: str, n: int) -> None:
        place = self._places.get(name)
        if place is None:
            place = self._place(name)
        self._numbers[place] += n

    def _place(self, name: str) -> int:
        key = name.encode()[:KEY]
        if len(self._places) >= PLACES - 1:
            key = OTHER.encode()
        place = min(len(self._places), PLACES - 1)
        start = PLACES * 8 + place * KEY
        self._content[start : start + len(key)] = key
        self._places[name] = place
        return place


def _lock_a_file(directory: Path) -> int:
    for n in itertools.count():
        file = os.open(directory / f"{n}.counters", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            return file
    raise AssertionError("numbers do not end")


def _read(content: "mmap.mmap | bytes") -> list[tuple[str, int]]:
    numbers = memoryview(bytes(content[: PLACES * 8])).cast("Q")
    found = []
    for place in range(PLACES):
        start = PLACES * 8 + place * KEY
        key = bytes(content[start : start + KEY]).rstrip(b"\0")
        if not key:
            break
        found.append((key.decode(errors="replace"), numbers[place]))
    return found


_lock = threading.Lock()
_file: _File | None = None
_next_try = -float("inf")


def add(*labels: str, n: int = 1) -> None:
    """Count: the first label says what, the others of which kind. Without a file nothing is counted or fails."""
    global _file, _next_try
    fault: OSError | None = None
    with _lock:
        if _file is None and time.monotonic() >= _next_try:
            try:
                _file = _File(folder())
            except OSError as error:  # a full disk, a folder that may not be written
                fault, _file, _next_try = error, None, time.monotonic() + AGAIN
        if _file is not None:
            _file.add(SEPARATOR.join(labels), n)
    if fault is not None:
        logger.warning("requests and jobs are not counted: %s", fault)


def _forget() -> None:
    """In a child: the file and its lock are the parent's, and a lock of threads may be held by one that is not here."""
    global _lock, _file, _next_try
    _lock, _file, _next_try = threading.Lock(), None, -float("inf")


os.register_at_fork(after_in_child=_forget)


def totals() -> Counter[tuple[str, ...]]:
    """Return what all processes have counted, those that are no more included."""
    found: Counter[tuple[str, ...]] = Counter()
    for path in folder().glob("*.counters"):
        content = path.read_bytes()
        if len(content) == SIZE:  # else it is being made
            for name, n in filter(lambda pair: pair[1], _read(content)):  # 0: its name may be half written
                found[tuple(name.split(SEPARATOR))] += n
    return found
