"""Kill a step of a gate at its every write, one after the other, and do it again: a program of its own, for it forks.

    python tests/gate_kills.py BEFORE STEP ARGUMENTS

BEFORE is a folder as it is before the step; the step is one of `touchstone gate`. It is done in copies of the folder:
once undisturbed, then for every n with SIGKILL at the n-th call that changes a file, a write being torn in its middle.
Prints as JSON how often it was killed, and what was wrong after any.
"""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from gate_files import contents  # noqa: E402

from touchstone_ir.command import main  # noqa: E402

CHANGING = ("mkdir", "open", "write", "truncate", "fsync", "replace")


def kill_at(n: int) -> None:
    """Let the n-th call that changes a file be the last thing that this process does."""
    numbers = itertools.count(1)

    def with_kill(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if next(numbers) == n:
                if name == "write":
                    call(given[0], given[1][: len(given[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)

        return counted

    for name in CHANGING:
        setattr(os, name, with_kill(getattr(os, name), name))


def in_child(folder: Path, arguments: list[str], n: int | None) -> int:
    """Do the step in a process of its own; return its exit code, negative if it was killed."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if n is not None:
            kill_at(n)
        os._exit(main(["gate", *arguments]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def faults_after(
    before: dict[str, bytes], killed: dict[str, bytes], again: dict[str, bytes], whole: dict[str, bytes]
) -> list[str]:
    """Return what a kill has lost, and what is otherwise than without it once the step was done again."""
    lost = [
        f"lost {name}" for name, content in before.items() if not killed.get(name, b"").startswith(content)
    ]
    return lost + [
        f"otherwise: {name}" for name in again.keys() | whole.keys() if again.get(name) != whole.get(name)
    ]


def run(before: Path, arguments: list[str]) -> dict[str, Any]:
    """Return how many kills there were, and the faults."""
    at_first, copy, faults = contents(before), before.with_name("copy"), []
    shutil.copytree(before, copy)
    code = in_child(copy, arguments, None)
    whole = contents(copy)
    for n in itertools.count(1):
        shutil.rmtree(copy)
        shutil.copytree(before, copy)
        if in_child(copy, arguments, n) >= 0:
            break
        killed = contents(copy)
        if in_child(copy, arguments, None) != code:
            faults.append(f"{n}: another exit code")
        faults += [f"{n}: {fault}" for fault in faults_after(at_first, killed, contents(copy), whole)]
    return {"code": code, "kills": n - 1, "changes": whole != at_first, "faults": faults}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2:])))
