"""Let one step of a gate stop before its every change of a file while another one goes on: a program, for it forks.

    python tests/gate_races.py BEFORE WAIT {locked,unlocked} STEP ARGUMENTS , STEP ARGUMENTS

BEFORE is a folder as it is before both steps of `touchstone gate`. In copies of it the first step stops before its
n-th change, the second is done in a process of its own, waiting as long as WAIT says, the first goes on, and the second
is done again. Prints as JSON for every stop the exit codes of the first step and of the second one meanwhile, and what
was in the end otherwise than after one step and then the other.
"""

import contextlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from gate_files import contents  # noqa: E402
from gate_kills import CHANGING, in_child  # noqa: E402

from touchstone_ir import gate_lock  # noqa: E402
from touchstone_ir.command import main  # noqa: E402


def stop_at(n: int, reached: int, go_on: int) -> None:
    """Let the n-th call that changes a file wait until `go_on` is closed; `reached` is closed first."""
    numbers = itertools.count(1)

    def with_stop(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if next(numbers) == n:
                os.close(reached)
                os.read(go_on, 1)
            return call(*given, **named)

        return counted

    for name in CHANGING:
        setattr(os, name, with_stop(getattr(os, name)))


def in_stopped_child(
    folder: Path, arguments: list[str], n: int, meanwhile: Callable[[], int]
) -> tuple[int, int] | None:
    """Do the step in a process that stops at its n-th change until `meanwhile` is done; None if it has fewer.

    Returns its exit code, and that of what was done meanwhile.
    """
    (reached, to_reached), (to_go_on, go_on) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reached)
        os.close(go_on)
        os.chdir(folder)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        stop_at(n, to_reached, to_go_on)
        code = main(["gate", *arguments])
        with contextlib.suppress(OSError):
            os.write(to_reached, b"too few")
        os._exit(code)
    os.close(to_reached)
    os.close(to_go_on)
    other = None if os.read(reached, 1) else meanwhile()
    os.close(go_on)
    os.close(reached)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if other is None else (code, other)


def run(before: Path, first: list[str], second: list[str]) -> dict[str, Any]:
    """Return the exit codes at every stop, and the faults."""
    copy, codes, faults = before.with_name("copy"), [], []
    shutil.copytree(before, copy)
    in_child(copy, first, None)
    code = in_child(copy, second, None)
    whole = contents(copy)
    for n in itertools.count(1):
        shutil.rmtree(copy)
        shutil.copytree(before, copy)
        both = in_stopped_child(copy, first, n, lambda: in_child(copy, second, None))
        if both is None:
            break
        codes.append(both)
        again, found = in_child(copy, second, None), contents(copy)
        if again != code:
            faults.append(f"{n}: exit code {again} where it is {code}")
        faults += [
            f"{n}: {name}" for name in found.keys() | whole.keys() if found.get(name) != whole.get(name)
        ]
    return {"codes": codes, "faults": faults}


if __name__ == "__main__":
    before, wait, lock, *both = sys.argv[1:]
    gate_lock.WAIT = float(wait)
    if lock == "unlocked":
        gate_lock._take = lambda folder: lambda: None
    comma = both.index(",")
    print(json.dumps(run(Path(before), both[:comma], both[comma + 1 :])))
