"""A true replica of the tests' servers: copied by pg_basebackup, and then fed with the primary's log."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.signals import request_finished
from django.db import close_old_connections, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from worlds import routes

from touchstone import counters, embedded, replica
from touchstone.binaries import NOBODY
from touchstone.models import User
from touchstone.processes import Program
from touchstone.settings import PATIENCE


class Replica:
    """A standby that replays at once and lets no reader hold that up."""

    def __init__(self, servers: Any) -> None:
        self.folder, self.log = servers.root / "replica", servers.root / "log"
        self.port = embedded.free_port()
        self.address = servers.database_url.replace(f":{servers.postgres_port}/", f":{self.port}/")
        copy = [str(servers.binaries / "pg_basebackup"), "--dbname", servers.database_url]
        copy += ["--pgdata", str(self.folder), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"]
        subprocess.run(copy, check=True, capture_output=True)
        if not os.geteuid():
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        own = {str(servers.root / "postgres"): str(self.folder)}
        command = [own.get(part, part) for part in servers.postgres.command]
        command = [f"--port={self.port}" if part.startswith("--port=") else part for part in command]
        # After an interruption it asks for the log again at once, not after five seconds.
        command += ["--max_standby_streaming_delay=0", "--wal_retrieve_retry_interval=100ms"]
        self.program = Program("replica", command, stop_signal=signal.SIGQUIT, ready=self._until_it_answers)

    def start(self) -> None:
        self.program.start(self.log)
        self.program.ready()

    def _until_it_answers(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.ask("SELECT 1") and None
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.log / "replica.log").read_text()
                time.sleep(0.05)

    def ask(self, sql: str) -> Any:
        """Return the first value of a statement, on a connection of its own."""
        with psycopg.connect(self.address, autocommit=True, connect_timeout=2) as asked:
            row = asked.execute(sql).fetchone()
        return row[0]

    def catch_up(self) -> None:
        """Wait until it has replayed what the primary has written so far.

        It is sent only what has been flushed, and of a transaction that goes on that may be some seconds later: a
        commit flushes all before it.
        """
        commit()
        with psycopg.connect(self.address.replace(f":{self.port}/", f":{primary_port()}/")) as asked:
            (written,) = asked.execute("SELECT pg_current_wal_lsn()").fetchone()
        deadline = time.monotonic() + 60
        while not self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"):
            assert time.monotonic() < deadline, "the replica does not catch up"
            time.sleep(0.02)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it receive and replay nothing."""
        self.ask("SELECT pg_wal_replay_pause()")
        while self.ask("SELECT pg_get_wal_replay_pause_state()") != "paused":
            time.sleep(0.02)
        try:
            yield
        finally:
            self.ask("SELECT pg_wal_replay_resume()")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let all its processes stand still, while the kernel goes on to acknowledge what is sent to them."""
        server = self.program.process.pid
        os.kill(server, signal.SIGSTOP)  # first, so that no further ones are made
        others = [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
        try:
            for pid in others:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in (*others, server):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        self.program.stop()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def primary_port() -> str:
    return str(connection.settings_dict["PORT"])


def connect_the_replica_too(connect: Any) -> Any:
    """Django lets a test connect to the databases alone that it knew when the test began."""

    def ensure_connection(self: BaseDatabaseWrapper) -> None:
        if self.alias != replica.ALIAS:
            connect(self)
        elif self.connection is None:
            with self.wrap_database_errors:
                self.connect()

    return ensure_connection


@contextmanager
def named_in_the_settings(made: Replica) -> Iterator[None]:
    """Let the product know the replica, as READ_DATABASE_URL does."""
    connect = BaseDatabaseWrapper.ensure_connection
    BaseDatabaseWrapper.ensure_connection = connect_the_replica_too(connect)  # type: ignore[method-assign]
    known: dict[str, Any] = connection.settings_dict
    settings.DATABASES[replica.ALIAS] = {
        **known,
        "PORT": str(made.port),
        "CONN_MAX_AGE": 60,
        "OPTIONS": {**known["OPTIONS"], **PATIENCE},
    }
    replica.watch.forget()
    try:
        yield
    finally:
        BaseDatabaseWrapper.ensure_connection = connect  # type: ignore[method-assign]
        connections[replica.ALIAS].close()
        del connections[replica.ALIAS]
        del settings.DATABASES[replica.ALIAS]
        replica.watch.forget()


# -- what its tests share ----------------------------------------------------------------------

ASKED = {
    "console:pair": "?run=run0&against=run2",
    "console:papers": "?run=run0&against=run2&measure=DCG%4010",
}


@dataclass
class Clock:
    """The process's clock, which a test puts forward."""

    ahead: float = 0.0

    def monotonic(self):
        return time.monotonic() + self.ahead


def client_of(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def outcomes():
    return {key[1]: n for key, n in counters.totals().items() if key[0] == "replica requests"}


def address(world, name):
    route = next(one for one in routes() if one.name == name)
    return reverse(name, kwargs=world.arguments(route)) + ASKED.get(name, "")


def body_of(answer):
    raw = b"".join(answer.streaming_content) if answer.streaming else answer.content
    once = r'(csrfmiddlewaretoken" value=|X-CSRFToken": |nonce=|data-csrf=)"[^"]*"'
    return re.sub(r"\b(\d+|a)(\s|&nbsp;)(second|minute)s?", "", re.sub(once, "", raw.decode()))


def close(answer):
    """End an answer as the server does; the tests' own connection stays."""
    request_finished.disconnect(close_old_connections)
    try:
        answer.close()
    finally:
        request_finished.connect(close_old_connections)


def is_replica():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery()")
        return cursor.fetchone()[0]


def asked(view, method="get", **cookies):
    request = getattr(RequestFactory(), method)("/")
    request.COOKIES.update(cookies)
    return replica.from_replica(view)(request)


def where(request=None):
    return HttpResponse("replica" if is_replica() else "primary")


def commit(sql="SELECT pg_logical_emit_message(true, 'test', 'a word')"):
    """Write something for good, on a connection of its own."""
    primary = connection.settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    with psycopg.connect(**{name: primary[key] for name, key in names.items()}, autocommit=True) as other:
        other.execute(sql)
