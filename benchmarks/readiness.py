"""Break the product in five ways; measure how soon readiness, metric and alert say so, and are well again.

    sudo python benchmarks/readiness.py        (root mounts a small file system; Prometheus and faketime are Debian's)

PostgreSQL's tables are on a tmpfs that is filled; a table is renamed; each worker is killed; the clock of a web process
and of metrics is put forward by three minutes. A Prometheus scrapes every 3 seconds. For each fault: seconds until
/readyz, the metric and the alert of deploy/alerts.yml say so, and until they are well after the repair.
The control are the naive probes, which must stay ok: /livez, SELECT 1, a committed UPDATE. JSON on standard output.

With `--log-minutes 10` a table is gone for half of that time and the disk is full for the other half, while assessors
ask for work up to 33 times a second, and the bytes that all processes log are counted: at most 2 MB in ten minutes.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.assessors import WebClient
from parts.throwaway import folder, kill_tree, make_campaign, migrated

from touchstone import embedded, rights
from touchstone.processes import Program

REPOSITORY = Path(__file__).resolve().parents[1]
LIMIT = 15.0  # seconds
PATIENCE = 60.0
ASKING, EVERY = 8, 0.03  # assessors; seconds from one request to the next
MOST_LOGGED = 2_000_000  # bytes in ten minutes
ROOM = "300m"
LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
FORWARD = "+180"
ONE_PROCESS = """
import sys
from wsgiref.simple_server import make_server
from touchstone.wsgi import application
make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
"""


@dataclass
class Site:
    """The processes of a host, their addresses, and the file that says what the clock shows."""

    servers: embedded.Servers
    root: Path
    clock: Path
    web: str = ""
    moved: str = (
        ""  # a second web process, whose clock is moved: gunicorn's master cannot sleep under faketime
    )
    metrics: str = ""
    prometheus: str = ""
    programs: dict[str, Program] = field(default_factory=dict)

    def start(self, name: str, command: list[str], **environment: str) -> None:
        program = Program(name, command, environment)
        program.start(self.root / "log")
        self.programs[name] = program

    def stop(self) -> None:
        for program in reversed(self.programs.values()):
            program.stop()


def fetch(url: str, seconds: float = 10) -> tuple[int, str]:
    """Return status and body; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:  # noqa: S310 (loopback)
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@contextlib.contextmanager
def site(root: Path) -> Iterator[Site]:
    """Run the product on a small file system, with a Prometheus beside it."""
    from django.db import connection

    from touchstone import roles

    data = root / "var"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=755", "tmpfs", str(data)], check=True)
    try:
        keep_log_elsewhere(data, root / "pg_wal")
        with migrated(data) as servers:
            with connection.cursor() as cursor:
                roles.make_roles(cursor, servers.passwords)
                roles.take_over(cursor)
                roles.give_rights(cursor)
            made = Site(servers, root, root / "clock")
            made.clock.write_text("+0")
            try:
                start_all(made)
                yield made
            finally:
                made.stop()
    finally:
        subprocess.run(["umount", "--lazy", str(data)], check=True)


def keep_log_elsewhere(data: Path, log: Path) -> None:
    """Give PostgreSQL's log a disk of its own: without room for it the server ends, which every probe notices."""
    embedded.Servers(data)._create_cluster()
    own = data / "postgres" / "pg_wal"
    subprocess.run(["cp", "--archive", str(own), str(log)], check=True)
    shutil.rmtree(own)
    own.symlink_to(log)


def start_all(made: Site) -> None:
    from django.core.management import call_command

    from touchstone.management.commands.stack import BEAT, LANES_OF, WEB, worker_command

    call_command("collectstatic", interactive=False, verbosity=0)
    ports = [embedded.free_port() for _ in range(4)]
    web, metrics, prometheus, moved = (f"127.0.0.1:{port}" for port in ports)
    made.web, made.metrics, made.prometheus, made.moved = (f"http://127.0.0.1:{port}" for port in ports)
    clock = {
        "LD_PRELOAD": LIBRARY,
        "FAKETIME_TIMESTAMP_FILE": str(made.clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    # The room that is taken is the database's: uploads and temporary files are elsewhere.
    common = {"DISK_FLOOR": "0", "LOG_LEVEL": "INFO", "LOG_FORMAT": "json"}
    common["DATABASE_URL"] = made.servers.url_of(rights.WEB)
    of_worker = {"DATABASE_URL": made.servers.url_of(rights.WORKER), "TOUCHSTONE_ROLE": "worker"}
    python = [sys.executable, "-m"]
    made.start("web", [*python, *WEB, "--bind", web], **common)
    made.start("moved", [sys.executable, "-c", ONE_PROCESS, moved.rpartition(":")[2]], **common, **clock)
    for name in LANES_OF:
        made.start(name, [*python, *worker_command(name)], **{**common, **of_worker})
    made.start("beat", [*python, *BEAT, "--schedule", str(made.root / "beat"), "--pidfile", ""], **common)
    manage = [sys.executable, str(REPOSITORY / "manage.py"), "metrics"]
    made.start("metrics", manage, **common, **clock, METRICS_BIND=metrics, METRICS_SITE=made.web)
    configuration = {
        "global": {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"},
        "rule_files": [str(REPOSITORY / "deploy" / "alerts.yml")],
        "scrape_configs": [{"job_name": "touchstone", "static_configs": [{"targets": [metrics]}]}],
    }
    (made.root / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    options = [f"--config.file={made.root / 'prometheus.yml'}", f"--storage.tsdb.path={made.root / 'tsdb'}"]
    made.start("prometheus", ["prometheus", *options, f"--web.listen-address={prometheus}"])


# -- what says so ---------------------------------------------------------------------------------------------


def readiness(made: Site, check: str) -> bool | None:
    """Return whether /readyz says that this check is not ok; None where it does not answer."""
    status, body = fetch(f"{made.moved if check == 'clock' else made.web}/readyz")
    if status not in (200, 503):
        return None
    return json.loads(body)["checks"].get(check, "ok") != "ok"


def query(made: Site, expression: str) -> bool | None:
    """Return whether Prometheus finds anything by this expression; None where it does not answer."""
    asked = urllib.parse.urlencode({"query": expression})
    status, body = fetch(f"{made.prometheus}/api/v1/query?{asked}")
    return bool(json.loads(body)["data"]["result"]) if status == 200 else None


def naive(made: Site) -> dict[str, bool]:
    """Return what the probes say that a look at the processes, or a connection, would be content with."""

    def database(statement: str) -> bool:
        try:
            with psycopg.connect(made.servers.database_url, autocommit=True, connect_timeout=5) as other:
                other.execute(statement)  # type: ignore[arg-type]  # a constant of this file
        except psycopg.Error:
            return False
        return True

    return {
        "/livez": fetch(f"{made.web}/livez")[0] == 200,
        "SELECT 1": database("SELECT 1"),
        "committed UPDATE": database(
            "UPDATE touchstone_ratecounter SET ends_at = ends_at WHERE key = 'readiness'"
        ),
    }


# -- faults ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    name: str
    check: str
    metric: str
    alert: str
    breaks: Callable[[Site], None]
    repairs: Callable[[Site], None]


def fill(made: Site) -> None:
    with contextlib.suppress(OSError), (made.servers.root / "fill").open("wb", buffering=0) as file:
        while True:
            file.write(b"\1" * 65536)


def make_room(made: Site) -> None:
    (made.servers.root / "fill").unlink()
    postgres = made.servers.postgres
    assert postgres.process is not None
    if (
        postgres.process.poll() is not None
    ):  # as the supervisor does: without room for its log PostgreSQL ends
        postgres.start(made.root / "log")


def statement(text: str) -> Callable[[Site], None]:
    def execute(made: Site) -> None:
        with psycopg.connect(made.servers.database_url, autocommit=True) as other:
            other.execute(text)  # type: ignore[arg-type]  # a constant of this file

    return execute


def kill_worker(name: str) -> Callable[[Site], None]:
    def kill(made: Site) -> None:
        process = made.programs[name].process
        assert process is not None
        kill_tree(process.pid)
        process.wait()

    return kill


def start_worker(name: str) -> Callable[[Site], None]:
    """Start it, and wait until it is ready: how long Celery takes to start is not what is measured."""

    def start(made: Site) -> None:
        log = made.root / "log" / f"{name}.log"
        before = log.read_text().count(" ready.")
        made.programs[name].start(made.root / "log")
        deadline = time.monotonic() + 5 * PATIENCE
        while log.read_text().count(" ready.") == before and time.monotonic() < deadline:
            time.sleep(0.1)

    return start


def worker_killed(name: str, lane: str) -> Fault:
    return Fault(
        f"{name} killed",
        "worker",
        f'touchstone_worker_age_seconds{{lane="{lane}"}} > 10',
        "TouchstoneWorker",
        kill_worker(name),
        start_worker(name),
    )


FAULTS = (
    Fault("disk full", "write", 'touchstone_check{check="write"} == 0', "TouchstoneWrite", fill, make_room),
    Fault(
        "table gone",
        "schema",
        'touchstone_check{check="schema"} == 0',
        "TouchstoneSchema",
        statement("ALTER TABLE judging_adjudication RENAME TO judging_elsewhere"),
        statement("ALTER TABLE judging_elsewhere RENAME TO judging_adjudication"),
    ),
    worker_killed("worker", "heavy"),
    worker_killed("quick", "quick"),
    Fault(
        "clock moved",
        "clock",
        "abs(touchstone_clock_difference_seconds) > 2",
        "TouchstoneClock",
        lambda made: made.clock.write_text(FORWARD) and None,
        lambda made: made.clock.write_text("+0") and None,
    ),
)


def seconds_until(
    looks: dict[str, Callable[[], bool | None]], expected: bool, patience: float = PATIENCE
) -> dict[str, float | None]:
    """Return after how many seconds each look finds what is expected, None for one that does not."""
    began = time.monotonic()
    found: dict[str, float | None] = dict.fromkeys(looks)
    while None in found.values() and time.monotonic() - began < patience:
        for name, look in looks.items():
            if found[name] is None and look() is expected:
                found[name] = round(time.monotonic() - began, 1)
        time.sleep(0.2)
    return found


def measure(made: Site, fault: Fault) -> dict[str, Any]:
    looks = {
        "readyz": lambda: readiness(made, fault.check),
        "metric": lambda: query(made, fault.metric),
        "alert": lambda: query(made, f'ALERTS{{alertname="{fault.alert}",alertstate="firing"}}'),
    }
    quiet = seconds_until(looks, expected=False)
    assert None not in quiet.values(), f"before the fault {fault.name}: {quiet}"
    fault.breaks(made)
    broken = seconds_until(looks, expected=True)
    probes = naive(made)
    fault.repairs(made)
    repaired = seconds_until(looks, expected=False)
    times = [*broken.values(), *repaired.values()]
    within = all(value is not None and value <= LIMIT for value in times)
    return {"told": broken, "well": repaired, "naive": probes, "within_limit": within}


# -- what is logged meanwhile ---------------------------------------------------------------------------------


def logged(made: Site, minutes: float) -> dict[str, Any]:
    """Count the bytes that are logged while assessors go on asking for work; each half of the time has its fault."""
    campaign = make_campaign(40, ASKING)
    assessors = [WebClient(f"{made.web}/", campaign.pk, f"benchmark-bob{n}") for n in range(ASKING)]
    found = {}
    for name, breaks, repairs in LOGGED_FAULTS:
        before, answers = log_bytes(made), Counter[int]()
        breaks(made)
        asked_at = time.monotonic()
        until = asked_at + 30 * minutes
        while time.monotonic() < until:
            status, _ = assessors[answers.total() % ASKING].post("/claim", {"n": 1})
            answers[status] += 1
            asked_at += EVERY
            time.sleep(max(0.0, asked_at - time.monotonic()))
        found[name] = {"answers": dict(answers), "bytes": log_bytes(made) - before}
        repairs(made)
        made.servers.postgres.ready()
    n_bytes = sum(one["bytes"] for one in found.values())
    return {"minutes": minutes, **found, "within_limit": n_bytes <= MOST_LOGGED * minutes / 10}


def log_bytes(made: Site) -> int:
    """Count what all processes logged, PostgreSQL and Redis among them."""
    folders = (made.root / "log", made.servers.root / "log")
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*") if path.is_file())


LOGGED_FAULTS = (
    (
        "table gone",
        statement("ALTER TABLE judging_slot RENAME TO judging_elsewhere"),
        statement("ALTER TABLE judging_elsewhere RENAME TO judging_slot"),
    ),
    ("disk full", fill, make_room),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Break the product; measure how soon it says so.")
    parser.add_argument("--fault", choices=[fault.name for fault in FAULTS], help="only this one")
    parser.add_argument("--log-minutes", type=float, help="count what is logged, instead of the faults")
    arguments = parser.parse_args()
    if os.geteuid() or not shutil.which("prometheus") or not Path(LIBRARY).exists():
        sys.exit("readiness.py: needs root (mount), and Debian's prometheus and faketime")
    with folder() as root, site(root) as made:
        starts = {
            "site": lambda: query(made, "touchstone_site_up == 1"),
            "workers": lambda: query(made, "count(touchstone_worker_age_seconds < 5) == 3"),
            "moved": lambda: fetch(f"{made.moved}/livez")[0] == 200,
        }
        if None in (ready := seconds_until(starts, expected=True, patience=300)).values():
            logs = "\n".join(path.read_text()[-2000:] for path in sorted((root / "log").glob("*.log")))
            sys.exit(f"readiness.py: not started: {ready}\n{logs}")
        if arguments.log_minutes:
            print(json.dumps(logged(made, arguments.log_minutes), indent=2))
            return
        chosen = [fault for fault in FAULTS if arguments.fault in (None, fault.name)]
        print(json.dumps({fault.name: measure(made, fault) for fault in chosen}, indent=2))


if __name__ == "__main__":
    main()
