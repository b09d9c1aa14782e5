"""Kill the servers again and again while eight clients judge; then compare what was acknowledged with what is stored.

    python benchmarks/faults.py --seconds 40

Parts, each on servers of its own in a throw-away folder; the first three with a ledger that the clients keep:

- "services": claim() and submit() in threads; PostgreSQL, postmaster and all children, is killed every 1.2 s;
- "stack": the HTTP API of the whole product; web, worker, front door, Redis and PostgreSQL are killed in turn;
- "control": "services" with synchronous_commit=off and a WAL writer that sleeps long. It must lose judgments: else
  the harness is blind and the other two prove nothing;
- "jobs": background imports in two lanes; workers, Redis and PostgreSQL are killed in turn. Each import that is done
  has taken effect once, although attempts were killed (else nothing was measured);
- "lanes": one import behind another person's 15 releases, with lanes and, as the control, in one queue with them.

JSON on standard output. Expected: lost, wrong, doubled and phantom 0 in all but the control, which has lost > 0.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.assessors import Client, Ledger, WebClient, run_clients, verdict
from parts.job_kills import measure_jobs, measure_lanes
from parts.kills import measure_services, summary
from parts.throwaway import folder, in_child, kill_tree, make_campaign, set_up_django

from touchstone import embedded

MANAGE = str(Path(__file__).resolve().parents[1] / "manage.py")
PARTS = {"services": 0.3, "stack": 0.4, "control": 0.1, "jobs": 0.2, "lanes": 0.0}  # of the seconds
PAUSE = 2.0  # seconds between two kills of the stack


def wait_for_judgment(ledger: Ledger, seconds: float) -> None:
    """Wait until a judgment is acknowledged that came after this call: each kill's pause is its own."""
    before, deadline = len(ledger.acknowledged_at), time.monotonic() + seconds
    while len(ledger.acknowledged_at) < before + 8 and time.monotonic() < deadline:
        time.sleep(0.05)


@contextlib.contextmanager
def product(root: Path) -> Iterator[str]:
    """Run `manage.py stack` on the folder; yield its address."""
    port = embedded.free_port()
    address = f"http://127.0.0.1:{port}/"
    command = [sys.executable, MANAGE, "stack", "--port", str(port)]
    with (root.parent / "stack.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, "TOUCHSTONE_VAR": str(root)}, stdout=log, stderr=log
        )
    try:
        embedded.answers(f"{address}livez")()
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def announced(root: Path) -> dict[str, int]:
    """Return the pids of the stack's processes by name: each writes into the log of its name."""
    pids = {}
    for pid, _ in json.loads((root / "stack.json").read_text())["processes"]:
        with contextlib.suppress(FileNotFoundError):
            pids[Path(os.readlink(f"/proc/{pid}/fd/1")).stem] = pid
    return pids


def measure_stack(root: Path, seconds: float, n_kills: int, n_clients: int) -> dict[str, Any]:
    with product(root) as address:
        known = embedded.running_stack(root)
        set_up_django(known["database_url"], known["redis_url"])
        from django.db import connection

        from judging.models import Assessor

        campaign = make_campaign(int(100 * min(seconds, 4 * n_kills)) + 200, n_clients)
        names = list(Assessor.objects.values_list("user__username", flat=True))
        clients: list[Client] = [WebClient(address, campaign.pk, name) for name in names]
        connection.close()
        ledger, kills = Ledger(), []

        def kill_all() -> None:
            turns = cycle(["web-1", "worker", "front", "redis", "web-2", "quick", "postgres"])
            end = time.monotonic() + seconds
            while time.monotonic() < end and len(kills) < n_kills:
                time.sleep(PAUSE)
                kind = next(turns)
                pid = announced(root).get(kind)
                if pid is not None and psutil.pid_exists(pid):
                    kills.append((time.monotonic(), kind))
                    kill_tree(pid)
                    wait_for_judgment(ledger, seconds=20)
            time.sleep(PAUSE)

        run_clients(clients, ledger, kill_all)
        log_bytes = sum(path.stat().st_size for path in (root / "log").iterdir())
        return {**verdict(ledger), **summary(kills, ledger), "log_bytes": log_bytes}


def measure(part: str, seconds: float, n_kills: int, n_clients: int) -> dict[str, Any]:
    with folder() as root:
        if part == "stack":
            return measure_stack(root / "var", seconds, n_kills, n_clients)
        if part == "jobs":
            with product(root / "var"):
                return measure_jobs(root / "var", seconds, n_kills, lambda: announced(root / "var"))
        if part == "lanes":
            with product(root / "var"):
                return measure_lanes(root / "var")
        return measure_services(root / "servers", seconds, n_kills, n_clients, durable=part == "services")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers while clients judge; compare what is stored.")
    parser.add_argument("--seconds", type=float, default=40, help="of killing, over all parts (default 40)")
    parser.add_argument("--kills", type=int, default=1000, help="at most, in each part")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--part", choices=PARTS, help="only this one, for all the seconds")
    arguments = parser.parse_args()
    if arguments.part:
        result = measure(arguments.part, arguments.seconds, arguments.kills, arguments.clients)
    else:
        options = [f"--kills={arguments.kills}", f"--clients={arguments.clients}"]
        result = {
            part: in_child(__file__, part, share * arguments.seconds, *options)
            for part, share in PARTS.items()
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
