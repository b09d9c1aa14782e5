"""Debian's PgBouncer on loopback, in transaction mode, before a PostgreSQL of tests or measurements."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg

from touchstone import embedded
from touchstone.binaries import NOBODY, as_nobody
from touchstone.processes import Program

CONFIGURATION = """\
[databases]
* = host=127.0.0.1 port={postgres_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 2000
server_lifetime = 600
"""


def is_here() -> bool:
    """Return whether it is installed; where all tests must run, it must be."""
    found = shutil.which("pgbouncer") is not None
    assert found or "CI" not in os.environ, "pgbouncer is not installed"
    return found


class PgBouncer:
    """One process; `url` leads through it to where another address leads straight."""

    def __init__(
        self, root: Path, postgres_port: int, passwords: Mapping[str, str], pool_size: int = 10
    ) -> None:
        self.root, self.port = root, embedded.free_port()
        root.mkdir(parents=True)
        users = root / "users.txt"
        users.write_text("".join(f'"{user}" "{password}"\n' for user, password in passwords.items()))
        settings = root / "pgbouncer.ini"
        settings.write_text(
            CONFIGURATION.format(
                postgres_port=postgres_port, port=self.port, users=users, pool_size=pool_size
            )
        )
        if not os.geteuid():  # it refuses to be root
            for path in (users, settings):
                os.chown(path, NOBODY, NOBODY)
        self._any_url = next(
            f"postgresql://{user}:{password}@127.0.0.1:{self.port}/" for user, password in passwords.items()
        )
        self.program = Program(
            "pgbouncer", as_nobody([str(shutil.which("pgbouncer")), str(settings)]), ready=lambda: None
        )

    def start(self, database: str) -> None:
        """Start it, and wait until it answers for this database."""
        self.program.start(self.root / "log")
        deadline = time.monotonic() + 20
        while True:
            try:
                return psycopg.connect(f"{self._any_url}{database}", connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        self.program.stop()

    def url(self, direct: str) -> str:
        """Return the address through the pooler of an address that leads straight to PostgreSQL."""
        head, _, tail = direct.rpartition("@")
        return f"{head}@127.0.0.1:{self.port}/{tail.partition('/')[2]}"
