"""Processes that are started, watched, and stopped together with all they have started themselves."""

import contextlib
import http.client
import itertools
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LARGEST_LOG, MOST_LOGS = 10_000_000, 5  # bytes of a file; files of a process, with the one that grows


class StackError(RuntimeError):
    """A server did not start; the message says which, and what it said."""


class Stop(Exception):
    """SIGINT, SIGTERM or SIGHUP has come; see `stoppable`."""


@dataclass
class Program:
    """A process to keep alive; `ready` returns once it answers."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    ready: Callable[[], None] = lambda: None
    process: subprocess.Popen[bytes] | None = None

    def start(self, log_folder: Path) -> None:
        log_folder.mkdir(parents=True, exist_ok=True)
        with (log_folder / f"{self.name}.log").open("ab") as log:
            # An own session: Ctrl-C reaches the supervisor alone, which then stops all in the right order.
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

    def rotate_log(self, log_folder: Path) -> None:
        """Begin the log anew where it is large: web.log.1 is the youngest of the older ones.

        The process keeps its file, whoever it is (PostgreSQL and Redis too): the content is copied and cut off. It
        always writes at the end, so it goes on at the beginning; a line between the copy and the cut is lost.
        """
        log = log_folder / f"{self.name}.log"
        if not log.exists() or log.stat().st_size < LARGEST_LOG:
            return
        older = [log.with_name(f"{log.name}.{n}") for n in range(1, MOST_LOGS)]
        for younger, place in reversed(list(itertools.pairwise(older))):
            if younger.exists():
                younger.replace(place)
        with contextlib.suppress(
            OSError
        ):  # a full disk: what it has room for is kept, and the cut makes room
            shutil.copy2(log, older[0])
        os.truncate(log, 0)

    def stop(self, seconds: float = 20) -> None:
        """Stop the process and what is left of its descendants, also of those that outlived it."""
        if self.process is None:
            return
        family = family_of(self.process.pid)
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        end(family, seconds=2)  # the orphans are asked too, then killed
        self.process.wait(5)


@contextlib.contextmanager
def patience(say: Callable[[str], None], every: float = 4.0) -> Iterator[None]:
    """Say every few seconds how many have passed: who waits sees that something is being done."""
    over, began = threading.Event(), time.monotonic()

    def tell() -> None:
        while not over.wait(every):
            say(f"  ... {time.monotonic() - began:.0f} s")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def answers(
    url: str, text: str | None = None, lives: Callable[[], bool] = lambda: True, seconds: float = 300
) -> Callable[[], None]:
    """Return a `ready` that waits until the address answers HTTP 200, with this text if one is given.

    It gives up, with StackError, when the time is over (a busy machine takes minutes to start a process) or the process
    that should answer is gone.
    """

    def wait() -> None:
        deadline = time.monotonic() + seconds
        while (fault := _fault(url, text)) is not None:
            if time.monotonic() > deadline or not lives():
                raise StackError(f"{url} does not answer: {fault}")
            time.sleep(0.1)

    return wait


def _fault(url: str, text: str | None) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 (a loopback address of ours)
            said = response.read(200).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    return None if text in (None, said) else "somebody else does"


def family_of(pid: int) -> list[psutil.Process]:
    """Return the process, its descendants, and who is left of the session it led: orphans have no parent to tell."""
    pids = {other for other in psutil.pids() if _session(other) == pid}
    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(pid)
        pids |= {pid, *(child.pid for child in leader.children(recursive=True))}
    family = []
    for member in sorted(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            family.append(psutil.Process(member))
    return family


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def end(family: list[psutil.Process], seconds: float) -> None:
    """Ask the processes to end, the youngest first, and kill who is left after these seconds."""
    for process in reversed(family):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + seconds
    while (living := [process for process in family if lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in living:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def lives(process: psutil.Process) -> bool:
    """Return whether the process runs. A zombie does not: in a container nobody may ever collect it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _raise_stop(signal_number: int, frame: object) -> None:
    raise Stop


def stoppable() -> None:
    """Turn SIGINT and SIGTERM into one exception that unwinds through every `finally`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _raise_stop)


def deaf_to_signals() -> None:
    """While stopping, a second Ctrl-C must not leave half of the processes behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
