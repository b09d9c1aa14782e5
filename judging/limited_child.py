"""A child process that reads what strangers wrote: without environment and files, limited in CPU time and memory.

This file is also the child's program. It calls one function, named `module.function`, with the bytes of each question;
the function answers with parts. It is called once with no bytes before the limits are set: what it imports, it imports
then. Never start a child in a web request.
"""

import importlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO

WALL_SECONDS = 60  # a busy machine gives 5 s of CPU late
NUMBER_BYTES = 8
MOST_PARTS = 100


class LimitedChild:
    """The limited process. It gets no environment: no secret is near the parser."""

    def __init__(self, function: str, cpu_seconds: int, memory_bytes: int) -> None:
        if cpu_seconds < 2:  # the limit counts whole seconds: 2 means between 1 and 2
            raise ValueError(f"cpu_seconds must be at least 2, not {cpu_seconds}")
        self.process = subprocess.Popen(
            [sys.executable, "-I", __file__, function, str(cpu_seconds), str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
        )

    def ask(self, question: bytes, most: int) -> tuple[list[bytes], float] | None:
        """Return the parts and their CPU seconds; None if the child died, took too long or said more than `most`."""
        to_child, from_child = self.process.stdin, self.process.stdout
        if to_child is None or from_child is None:
            return None
        try:
            _send(to_child, question)
            ready, _, _ = select.select([from_child], [], [], WALL_SECONDS)
            if not ready:
                return None
            parts = []
            for _ in range(min(_number(from_child), MOST_PARTS)):
                parts.append(_receive(from_child, most))
                most -= len(parts[-1])
            return parts, _number(from_child) / 1e6
        except (OSError, EOFError):
            return None

    def close(self) -> None:
        """End the child and give back its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # what was still to be sent; nobody is there
                    continue


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(NUMBER_BYTES, "little") + data)
    stream.flush()


def _number(stream: IO[bytes]) -> int:
    data = stream.read(NUMBER_BYTES)
    if len(data) < NUMBER_BYTES:
        raise EOFError
    return int.from_bytes(data, "little")


def _receive(stream: IO[bytes], most: int = sys.maxsize) -> bytes:
    size = _number(stream)
    data = stream.read(size) if size <= most else b""
    if len(data) < size:
        raise EOFError
    return data


def _limit_cpu(seconds: int) -> None:
    """Let the process live for that much more CPU time, counted in whole seconds and never more."""
    soft = int(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _serve(answer: Callable[[bytes], Sequence[bytes]], cpu_seconds: int, memory_bytes: int) -> None:
    """Answer questions until the parent closes the pipe."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    answer(b"")  # imports what it needs before files may no longer be opened
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    while True:
        try:
            question = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _limit_cpu(cpu_seconds)
        before = time.process_time()
        parts = answer(question)
        sys.stdout.buffer.write(len(parts).to_bytes(NUMBER_BYTES, "little"))
        for part in parts:
            _send(sys.stdout.buffer, part)
        sys.stdout.buffer.write(int((time.process_time() - before) * 1e6).to_bytes(NUMBER_BYTES, "little"))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    # Isolated, Python knows the standard library and the installed packages: ours lie beside this folder.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    module, _, name = sys.argv[1].rpartition(".")
    _serve(getattr(importlib.import_module(module), name), int(sys.argv[2]), int(sys.argv[3]))
