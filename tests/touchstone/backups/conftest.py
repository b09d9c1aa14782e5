"""A cluster of its own, with the populated database of a release and its files, and one backup of it."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from released_database import RELEASES, restore

from touchstone import embedded
from touchstone.backups.folder import Backups
from touchstone.backups.making import back_up

REPOSITORY = Path(__file__).parents[3]


@dataclass
class Cluster:
    servers: embedded.Servers
    var: Path
    backups: Path

    @property
    def address(self) -> str:
        return self.servers.database_url

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DATABASE_URL": self.address,
            "TOUCHSTONE_VAR": str(self.var),
            "SECRET_KEY": "none",
        }

    def manage(self, *arguments: object, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "manage.py"), *map(str, arguments)]
        return subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=seconds
        )

    def back_up(self, folder: Path, dump: bool = False) -> Path:
        folder.mkdir(exist_ok=True)
        media = self.var / "files"
        return back_up(Backups(folder), self.address, media, schema="s", heads={}, dump=dump)

    def write(self, word: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS word (word text)")
            connection.execute("INSERT INTO word VALUES (%s)", [word])


def words_of(address: str) -> list[str]:
    with psycopg.connect(address) as connection:
        return [word for (word,) in connection.execute("SELECT word FROM word ORDER BY word")]


def limit_log(cluster: Cluster, size: str) -> None:
    """Set what a slot may keep back, and wait until new sessions know it."""
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET max_slot_wal_keep_size = '{size}'")
        connection.execute("SELECT pg_reload_conf()")
        while connection.execute("SHOW max_slot_wal_keep_size").fetchone() != (size,):
            time.sleep(0.01)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory):
    """Started without the wait for the disk: a process that is stopped loses nothing of what it has written."""
    var = tmp_path_factory.mktemp("var")
    servers = embedded.Servers(var)
    # What stands on the command line could not be changed while the server runs.
    own = [part for part in servers.postgres.command if not part.startswith("--max_slot_wal_keep_size")]
    servers.postgres.command = [*own, "--fsync=off", "--full_page_writes=off"]
    servers.start()
    try:
        restore(servers, RELEASES[-1], embedded.DATABASE, var)
        made = Cluster(servers, var, tmp_path_factory.mktemp("backups"))
        limit_log(made, "2GB")
        migrated = made.manage("migrate")
        assert migrated.returncode == 0, migrated.stderr
        yield made
    finally:
        servers.stop()


@pytest.fixture(scope="package")
def backup(cluster):
    """The folder of one backup."""
    cluster.write("before")
    return cluster.back_up(cluster.backups)
