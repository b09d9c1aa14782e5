"""`manage.py schema`: what a new database is made of, as touchstone/schema.txt keeps it (`make schema`)."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection

from touchstone import embedded
from touchstone.schema import file_of, fingerprint, major_version
from touchstone.settings import database_from_url


def _restored_copy(servers: embedded.Servers) -> str:
    """Dump the database, restore it into another one, and return that one's address."""
    other = servers.database_url + "_restored"
    dump = [str(servers.binaries / "pg_dump"), "--schema-only", servers.database_url]
    sql = subprocess.run(dump, check=True, capture_output=True).stdout
    with psycopg.connect(servers.database_url, autocommit=True) as maintenance:
        maintenance.execute(f"CREATE DATABASE {embedded.DATABASE}_restored")
    psql = [str(servers.binaries / "psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", other]
    subprocess.run(psql, input=sql, check=True, stdout=subprocess.DEVNULL)
    return other


class Command(BaseCommand):
    help = "Migrate an empty throw-away database, and print what it is made of."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            servers = embedded.Servers(Path(folder) / "servers")
            try:
                servers.start()
                connection.close()
                connection.settings_dict.update(database_from_url(servers.database_url))
                call_command("migrate", verbosity=0, interactive=False)
                migrated, version = fingerprint(connection).lines, major_version(connection)
                connection.close()
                connection.settings_dict.update(database_from_url(_restored_copy(servers)))
                self.stdout.write(file_of(version, migrated, fingerprint(connection).lines), ending="")
                connection.close()
            finally:
                servers.stop()
