"""`manage.py prepare`: bring database and static files up to date, once, before web and workers start."""

import os
import random
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from touchstone import schema

DIFFERS = 3  # the exit code
RULES = (
    "trigger ",
    "constraint ",
)  # more of these than expected may refuse what should pass; other things do no harm
# A migration that waits for a table keeps everybody who comes after it from that table: it waits briefly, and often.
LOCK_TIMEOUT, MOST_TRIES = "3s", 20
BETWEEN_TRIES = (0.5, 2.0)  # seconds, by chance: what was waiting goes on meanwhile
UPGRADE_LOCK = 1_801_200_001  # of PostgreSQL's advisory locks: one upgrade at a time


class Command(BaseCommand):
    help = "Migrate the database and collect the static files; with --demo, load the demo as well."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="change nothing; say how the database differs (exit code 3)"
        )
        parser.add_argument("--demo", action="store_true", help="load the demo where it is not loaded yet")
        parser.add_argument(
            "--collection", help="for the demo: a folder to load instead of the standard library"
        )

    def handle(self, *args: Any, check: bool, demo: bool, collection: str | None, **options: Any) -> None:
        if not check:
            self.stdout.write("Preparing the database ...")
            self.stdout.flush()
            self._migrate()
        self._compare()
        if check:
            return
        # An image brings its static files, where nobody may write.
        if not _are_fixed(settings.STATIC_ROOT):
            call_command("collectstatic", verbosity=0, interactive=False)
        if demo:
            call_command("load_demo", collection=collection)

    def _migrate(self) -> None:
        self._wait_for_the_lock()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            self._migrate_patiently()
        finally:
            # Closed, the connection gives the lock back and forgets its settings.
            connection.close()

    def _wait_for_the_lock(self) -> None:
        """Ask again and again: whoever waited within one statement would stop an index that is made concurrently."""
        is_told = False
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [UPGRADE_LOCK])
                if cursor.fetchone()[0]:
                    return
            if not is_told:
                self.stdout.write("Another upgrade is at work; waiting for its end ...")
                self.stdout.flush()
                is_told = True
            time.sleep(BETWEEN_TRIES[1])

    def _migrate_patiently(self) -> None:
        for n in range(1, MOST_TRIES + 1):
            try:
                # Each migration is one transaction: what is done stays done, and what failed left nothing.
                call_command("migrate", verbosity=0, interactive=False)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, (LockNotAvailable, DeadlockDetected)):
                    raise
                self.stderr.write(f"A table was in use for {LOCK_TIMEOUT}; try {n} of {MOST_TRIES}.")
            time.sleep(random.uniform(*BETWEEN_TRIES))
        raise CommandError(
            "the database could not be migrated, because a table stayed in use. End what holds it "
            "(pg_stat_activity names it), then try again; nothing is half done"
        )

    def _compare(self) -> None:
        """Say how the database differs from what this version expects, if it does."""
        found = schema.difference(connection)
        if not found:
            return
        for line in found.words():
            self.stderr.write(line)
        if not found.missing and schema.is_newer(connection):
            self.stderr.write("The database is of a newer version, and has all that this version needs.")
        elif found.missing or any(line.startswith(RULES) for line in found.unexpected):
            raise CommandError(
                "the database is not what this version expects; the differences stand above",
                returncode=DIFFERS,
            )


def _are_fixed(folder: Path) -> bool:
    """Return whether the static files are there and cannot be written."""
    return folder.exists() and not os.access(folder, os.W_OK)
