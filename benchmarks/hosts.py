"""Two hosts under kills: web processes and workers with folders of their own, PgBouncer, files on S3, a replica.

    python benchmarks/hosts.py --minutes 10

Each host is a folder: its web process, its worker, its cache of files. Both use one PostgreSQL, through Debian's
PgBouncer in transaction mode, its replica, one Redis, and one bucket (moto's server). Clients judge over HTTP, each at
one host, a researcher reads the results of another campaign at both, which the replica serves, and runs are uploaded,
while processes are killed in turn, by the pid of what this program started; the store of files, which keeps all in its
memory, is stopped for seconds instead. What was killed is started again.

Then the clients' ledger is compared with the database, every accepted import must be done, once, and every file
must have the bytes that were stored. `pages` counts the researcher's answers by status (0: no connection, while a host
is down), `replica` who answered them.

JSON on standard output. Expected: lost, wrong, doubled, phantom, imports_lost and files_damaged 0.
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from parts.assessors import Client, Ledger, WebClient, run_clients, verdict
from parts.kills import summary
from parts.throwaway import PASSWORD, folder, kill_tree, make_campaign, set_up_django
from pgbouncer import PgBouncer
from s3_server import BUCKET, S3Server

from touchstone import embedded, rights
from touchstone.processes import Program, answers

N_HOSTS = 2
BETWEEN_KILLS = (1.0, 4.0)  # seconds
FROZEN = 3.0  # seconds for which the store of files is stopped
LONGEST_END = 180.0  # seconds in which what was accepted must be done after the last kill
SECRET = "of-the-benchmark"
MANAGE = str(Path(__file__).resolve().parents[1] / "manage.py")


class Hosts:
    """All that runs, by name; `kill` ends one at once, and whoever watches starts it again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.servers = embedded.Servers(root / "servers")
        self.servers.start()
        self.s3 = S3Server()
        self.pooler = PgBouncer(root / "pgbouncer", self.servers.postgres_port, self.servers.passwords, 30)
        self.ports = [embedded.free_port() for _ in range(N_HOSTS)]
        self.replica_url = ""
        self.programs: dict[str, Program] = {
            "postgres": self.servers.postgres,
            "redis": self.servers.redis,
            "pgbouncer": self.pooler.program,
        }
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._revive, daemon=True)

    def environment(self, role: str = rights.WEB, host: int = 0) -> dict[str, str]:
        return {
            **self.s3.environment,
            "TOUCHSTONE_VAR": str(self.root / f"host-{host}"),
            "DATABASE_URL": self.pooler.url(self.servers.url_of(role)),
            "REDIS_URL": self.servers.redis_url,
            "POOLER": "transaction",
            "FILES_URL": f"s3://{BUCKET}/scale",
            "FILES_CACHE_BYTES": "200000",  # so small that files give way
            "SECRET_KEY": SECRET,
            "HTTPS": "0",
            "DISK_FLOOR": "0",
            "METRICS_BIND": "",
            **({"READ_DATABASE_URL": self.replica_url} if self.replica_url else {}),
            **({"TOUCHSTONE_ROLE": "worker"} if role == rights.WORKER else {}),
        }

    def prepare(self) -> None:
        passwords = {
            f"DATABASE_{role.removeprefix('touchstone_').upper()}_PASSWORD": password
            for role, password in self.servers.passwords.items()
        }
        straight = {
            **passwords,
            "DATABASE_OWNER_URL": self.servers.database_url,
            "DATABASE_URL": self.servers.url_of(rights.WEB),
            "POOLER": "",
        }
        for host in range(N_HOSTS):
            self._manage(host, straight, "prepare")
        self.pooler.start(embedded.DATABASE)  # from now on there are roles that can log in
        self._manage(0, {}, "prepare", "--check")

    def _manage(self, host: int, more: dict[str, str], *words: str) -> None:
        environment = {**os.environ, **self.environment(host=host), **more}
        subprocess.run([sys.executable, MANAGE, *words], env=environment, check=True, stdout=sys.stderr)

    def add_replica(self) -> None:
        from read_replica import Replica  # in tests/; it needs Django

        made = Replica(self.servers)
        made.start()
        self.programs["replica"] = made.program
        primary = self.servers.url_of(rights.WEB)
        self.replica_url = primary.replace(f":{self.servers.postgres_port}/", f":{made.port}/")

    def start(self) -> None:
        from touchstone.lanes import SECONDS, TICK
        from touchstone.management.commands.stack import BEAT, WEB, WORKER

        def module(command: list[str], *more: str) -> list[str]:
            return [sys.executable, "-m", *command, *more]

        lanes = ",".join([*SECONDS, TICK])
        for host, port in enumerate(self.ports):
            command = module(WEB, "--bind", f"127.0.0.1:{port}")
            ready = answers(f"http://127.0.0.1:{port}/livez")
            self.programs[f"web-{host}"] = Program(
                f"web-{host}", command, self.environment(host=host), ready=ready
            )
            command = module(WORKER, "--queues", lanes, "--hostname", f"worker-{host}@%h")
            worker = self.environment(rights.WORKER, host)
            self.programs[f"worker-{host}"] = Program(f"worker-{host}", command, worker)
        beat = module(BEAT, "--schedule", str(self.root / "beat"), "--pidfile", "")
        self.programs["beat"] = Program("beat", beat, self.environment(rights.WORKER))
        for name, program in self.programs.items():
            if program.process is None:
                program.start(self.root / "log")
                if name.startswith("web"):
                    program.ready()
        self._watcher.start()

    def _revive(self) -> None:
        while not self._stopping.wait(0.3):
            for program in self.programs.values():
                if program.process is not None and program.process.poll() is not None:
                    program.process.wait()
                    program.start(self.root / "log")

    def kill(self, name: str) -> None:
        process = self.programs[name].process
        if process is not None and psutil.pid_exists(process.pid):
            kill_tree(process.pid)

    def freeze_files(self) -> None:
        self.s3.process.send_signal(signal.SIGSTOP)
        time.sleep(FROZEN)
        self.s3.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._stopping.set()
        if self._watcher.is_alive():
            self._watcher.join()
        last = ("pgbouncer", "redis", "replica", "postgres")
        for name in sorted(self.programs, key=lambda name: last.index(name) if name in last else -1):
            self.programs[name].stop()
        self.s3.kill()


class Uploads:
    """Runs that are uploaded one after the other, as the site does it; what was accepted is remembered."""

    def __init__(self, collection: Any) -> None:
        self.collection, self.accepted, self.refused = collection, [], 0

    def go_on(self, stop: threading.Event) -> None:
        from django.core.files.base import ContentFile
        from django.db import DatabaseError, InterfaceError, connection

        from judging.services.files import queue_import
        from touchstone.files import FilesUnavailable

        n = 0
        while not stop.wait(0.5):
            n += 1
            lines = "".join(f"t{topic} Q0 d{n} 1 {n}.5 run{n}\n" for topic in range(8)).encode()
            try:
                file = ContentFile(lines, name=f"run{n}.run")
                self.accepted.append(
                    str(queue_import(kind="runs", files=[file], collection=self.collection).pk)
                )
            except (DatabaseError, InterfaceError, FilesUnavailable):  # a person would send it again
                self.refused += 1
                connection.close()
        connection.close()

    def verdict(self) -> dict[str, Any]:
        """Wait until all accepted imports ended; compare them with the runs, and the runs' files with their hashes."""
        from judging.models import Run
        from judging.rankings import read_rankings
        from touchstone.files import local
        from touchstone.models import Job

        deadline = time.monotonic() + LONGEST_END
        asked = Job.objects.filter(kind="import")
        while asked.filter(state__in=Job.ACTIVE).exists() and time.monotonic() < deadline:
            time.sleep(1)
        states = {str(key): state for key, state in asked.values_list("pk", "state")}
        damaged = 0
        for run in Run.objects.filter(collection=self.collection):
            try:
                damaged += read_rankings(local(run.rankings)).run_tag != run.run_id
            except (OSError, ValueError):
                damaged += 1
        done = sum(state == Job.State.DONE for state in states.values())
        return {
            "imports_accepted": len(self.accepted),
            "imports_refused": self.refused,
            "imports_lost": sum(states.get(key) != Job.State.DONE for key in self.accepted),
            "imports_doubled": abs(Run.objects.filter(collection=self.collection).count() - done),
            "import_errors": sorted(set(asked.exclude(error="").values_list("error", flat=True)))[:5],
            "imports_tried_again": asked.filter(attempts__gt=1).count(),
            "files_damaged": damaged,
        }


class Researcher:
    """Somebody who reads a campaign's results at both hosts in turn, a page every fifth of a second."""

    def __init__(self, hosts: Hosts, campaign: Any) -> None:
        from django.contrib.auth.hashers import make_password

        from touchstone.models import User

        User.objects.create(
            username="benchmark-rhea", role=User.Role.RESEARCHER, password=make_password(PASSWORD)
        )
        self.addresses = [f"http://127.0.0.1:{port}/" for port in hosts.ports]
        self.clients = [WebClient(address, campaign.pk, "benchmark-rhea") for address in self.addresses]
        self.paths = [f"results/{campaign.pk}/{page}" for page in ("", "pairs/", "ranking/")]
        self.statuses: Counter[int] = Counter()

    def read(self, stop: threading.Event) -> None:
        n = 0
        while not stop.wait(0.2):
            n += 1
            host = n % N_HOSTS
            address = self.addresses[host] + self.paths[n % len(self.paths)]
            try:
                with self.clients[host].opener.open(address, timeout=20) as answer:
                    self.statuses[answer.status] += 1
                    answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    self.statuses[error.code] += 1
            except (OSError, http.client.HTTPException):
                self.statuses[0] += 1


def drawn_campaign(files: Path) -> Any:
    """Return a small campaign that has a draw and judgments: the workers compute its numbers."""
    from small_campaign import judge_all, make_assessor, make_campaign, truth_of  # in tests/; it needs Django

    files.mkdir()
    made = make_campaign(files, kind="pair")
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")], lambda slot, _: truth_of(slot))
    return made


def replica_outcomes(root: Path) -> Counter[str]:
    """Return by whom researchers' requests were answered, as the hosts' web processes counted it."""
    from django.test import override_settings

    from touchstone import counters

    found: Counter[str] = Counter()
    for host in range(N_HOSTS):
        with override_settings(VAR=root / f"host-{host}"):
            for labels, n in counters.totals().items():
                if labels[0] == "replica requests":
                    found[labels[1]] += int(n)
    return found


def kill_in_turn(hosts: Hosts, seconds: float, kills: list[tuple[float, str]]) -> Callable[[], None]:
    """Return what kills at random, each kind as often as any other, for so many seconds."""

    def kill_all() -> None:
        names = [*hosts.programs, "files"]
        turns: list[str] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            turns = turns or random.sample(names, len(names))
            name = turns.pop()
            kills.append((time.monotonic(), name))
            if name == "files":
                hosts.freeze_files()
            else:
                hosts.kill(name)
            time.sleep(random.uniform(*BETWEEN_KILLS))
        time.sleep(10)  # everything is up again

    return kill_all


def measure_hosts(seconds: float, n_clients: int) -> dict[str, Any]:
    with folder() as root:
        hosts = Hosts(root)
        try:
            hosts.prepare()
            os.environ.update(hosts.environment() | {"TOUCHSTONE_VAR": str(root / "here")})
            set_up_django(os.environ["DATABASE_URL"], os.environ["REDIS_URL"])
            hosts.add_replica()
            hosts.start()
            campaign = make_campaign(int(60 * seconds) + 500, n_clients)
            clients: list[Client] = [
                WebClient(f"http://127.0.0.1:{hosts.ports[n % N_HOSTS]}/", campaign.pk, f"benchmark-bob{n}")
                for n in range(n_clients)
            ]
            uploads, stop, ledger = Uploads(campaign.collection), threading.Event(), Ledger()
            researcher = Researcher(hosts, drawn_campaign(root / "runs"))
            beside = [threading.Thread(target=work, args=[stop]) for work in (uploads.go_on, researcher.read)]
            for thread in beside:
                thread.start()
            kills: list[tuple[float, str]] = []
            try:
                run_clients(clients, ledger, kill_in_turn(hosts, seconds, kills))
            finally:
                stop.set()
                for thread in beside:
                    thread.join()
            return {
                **verdict(ledger, campaign),
                **uploads.verdict(),
                **summary(kills, ledger),
                "pages": {str(status): n for status, n in sorted(researcher.statuses.items())},
                "replica": dict(replica_outcomes(root)),
                "minutes": seconds / 60,
            }
        finally:
            hosts.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="More than one machine, under kills.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    arguments = parser.parse_args()
    result = measure_hosts(60 * arguments.minutes, arguments.clients)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
