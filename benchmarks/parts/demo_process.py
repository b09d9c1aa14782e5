"""The demo in a process of its own, on a folder of its own."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ADDRESS = re.compile(r"Touchstone runs at (http://\S+)")
LONGEST_WAIT = 600  # seconds; then the start has failed


@contextlib.contextmanager
def started_demo(checkout: Path, var: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a checkout's demo; end it when the caller is done with it."""
    process = subprocess.Popen(
        [checkout / ".venv" / "bin" / "python", checkout / "manage.py", "demo"],
        cwd=checkout,
        env={**os.environ, "TOUCHSTONE_VAR": str(var), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=120)


def listen(process: "subprocess.Popen[str]", began: float) -> tuple[str, float]:
    """Return the address when it is printed, and the longest time between two lines until then."""
    assert process.stdout is not None
    last, silence, said = began, 0.0, []
    for line in process.stdout:
        now = time.monotonic()
        silence, last = max(silence, now - last), now
        said.append(line)
        if found := ADDRESS.search(line):
            return found[1], silence
        if now - began > LONGEST_WAIT:
            break
    raise SystemExit("the demo did not start; it said:\n" + "".join(said))
