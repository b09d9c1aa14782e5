"""One step of a gate at a time, on one machine: a second one waits a little, and is then refused.

The lock is the system's, on the folder itself (flock): it makes no file, and ends with the process whatever ends that.
Where there is none (Windows, some network shares) it is a file `lock` that exists while a step is under way. Windows
removes it with the process; elsewhere a kill leaves it behind, and the refusal says what to do.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from touchstone_ir.columns import InputRefused

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

WAIT = 10.0  # seconds: a step takes a moment, unless it reads texts from a large corpus
PAUSE = 0.05
LOCK = "lock"


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the folder of a gate.

    Raises
    ------
    InputRefused
        Somebody else holds it, and has for `WAIT` seconds.
    """
    until = time.monotonic() + WAIT
    while (release := _take(folder)) is None:
        if time.monotonic() >= until:
            left = folder / LOCK
            more = f". If none is, a step was killed: remove {left}" if left.exists() else ""
            raise InputRefused(
                f"{folder}: another step of this gate is under way, and was still after {WAIT:g} s: try again{more}"
            )
        time.sleep(PAUSE)
    try:
        yield
    finally:
        release()


def _take(folder: Path) -> Callable[[], None] | None:
    """Return what gives the folder free again, or None where somebody else holds it."""
    if fcntl is None:
        return _make_file(folder)
    target = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(target)
        return None
    except OSError:  # this file system has no locks
        os.close(target)
        return _make_file(folder)
    return partial(os.close, target)


def _make_file(folder: Path) -> Callable[[], None] | None:
    path = folder / LOCK
    try:
        target = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_TEMPORARY", 0))
    except FileExistsError:
        return None

    def release() -> None:
        os.close(target)
        with suppress(FileNotFoundError):  # Windows has removed it
            path.unlink()

    return release
