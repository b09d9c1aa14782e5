"""`manage.py prepare`: bring database and static files up to date, once, before web and workers start."""

import contextlib
import os
import random
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError, connection
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable

from touchstone import rights, roles, schema
from touchstone.demo.library import early_library
from touchstone.processes import patience
from touchstone.settings import database_from_url

DIFFERS = 3  # the exit code
RULES = (
    "trigger ",
    "constraint ",
)  # more of these than expected may refuse what should pass; other things do no harm
# A migration that waits for a table keeps everybody who comes after it from that table: it waits briefly, and often.
LOCK_TIMEOUT, MOST_TRIES = "3s", 20
BETWEEN_TRIES = (0.5, 2.0)  # seconds, by chance: what was waiting goes on meanwhile
UPGRADE_LOCK = 1_801_200_001  # of PostgreSQL's advisory locks: one upgrade at a time

NO_OWNER = (
    "DATABASE_OWNER_URL is not set: the product owns its tables, and could rewrite its facts. "
    "docs/upgrading.md says how to give it a role of its own."
)
NEEDS_OWNER = (
    "Migrations hold a lock of their session, which a pooler does not keep: set DATABASE_OWNER_URL to the owner's "
    "address at PostgreSQL itself (docs/scale.md, PgBouncer)"
)
WHO_MAY = (
    "Only the owner migrates: set DATABASE_OWNER_URL to a superuser, or to touchstone_owner or another role that may "
    "make roles (docs/operations.md, Roles)"
)


class Command(BaseCommand):
    help = "Migrate the database and collect the static files; with --demo, load the demo as well."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="change nothing; say how the database differs (exit code 3)"
        )
        parser.add_argument(
            "--no-link", action="store_true", help="print no link for a first manager where there is none"
        )
        parser.add_argument("--demo", action="store_true", help="load the demo where it is not loaded yet")
        parser.add_argument(
            "--collection", help="for the demo: a folder to load instead of the standard library"
        )
        parser.add_argument(
            "--set", action="append", default=[], dest="settings_of_files", help="as in `demo`"
        )

    def handle(
        self,
        *args: Any,
        check: bool,
        demo: bool,
        collection: str | None,
        settings_of_files: list[str],
        **options: Any,
    ) -> None:
        if check:
            self._compare()
            return
        with contextlib.ExitStack() as running:
            more: dict[str, Any] = {}

            def read_library() -> None:
                more["wait_for_library"] = running.enter_context(early_library())

            self._say("Preparing the database ...")
            with patience(self._say):
                self._migrate(read_library if demo and not collection else None)
            self._compare()
            # An image brings its static files, where nobody may write.
            if not _are_fixed(settings.STATIC_ROOT):
                call_command("collectstatic", verbosity=0, interactive=False)
            if demo:
                call_command("load_demo", collection=collection, settings_of_files=settings_of_files, **more)
            elif not options["no_link"]:
                call_command("invite", role="manager", if_none=True, stdout=self.stdout)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _migrate(self, begin: Callable[[], None] | None = None) -> None:
        """Migrate; call `begin` before, where there is no table yet."""
        if settings.POOLER and not settings.DATABASE_OWNER_URL:
            raise CommandError(NEEDS_OWNER)
        with _connected_as_owner():
            self._wait_for_the_lock()
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
                if begin and not MigrationRecorder(connection).has_table():
                    begin()
                if settings.DATABASE_OWNER_URL:
                    self._become_owner()
                elif connection.settings_dict["USER"] not in roles.SETTINGS:
                    self.stderr.write(NO_OWNER)
                self._patiently(lambda: call_command("migrate", verbosity=0, interactive=False))
                if settings.DATABASE_OWNER_URL and not schema.is_newer(connection):
                    with connection.cursor() as cursor:
                        roles.give_rights(cursor)
            except roles.RolesRefused as error:
                raise CommandError(str(error)) from error
            except ProgrammingError as error:
                if not isinstance(error.__cause__, InsufficientPrivilege):
                    raise
                raise CommandError(f"{str(error).strip()}. {WHO_MAY}") from error
            finally:
                # Closed, the connection gives the lock back and forgets its settings.
                connection.close()

    def _become_owner(self) -> None:
        """Make the roles, give the owner what there is, and go on as the owner."""
        with connection.cursor() as cursor:
            for role in roles.make_roles(cursor, settings.DATABASE_PASSWORDS):
                name = role.removeprefix("touchstone_").upper()
                self.stderr.write(
                    f"{role} cannot log in yet: set DATABASE_{name}_PASSWORD and prepare again."
                )
            if words := roles.make_backup_role(cursor, settings.DATABASE_PASSWORDS[rights.BACKUP]):
                self.stderr.write(words)
            self._patiently(lambda: roles.take_over(cursor))
            cursor.execute(f'SET ROLE "{rights.OWNER}"')

    def _wait_for_the_lock(self) -> None:
        """Ask again and again: whoever waited within one statement would stop an index that is made concurrently."""
        is_told = False
        while True:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s)", [UPGRADE_LOCK])
                if cursor.fetchone()[0]:
                    return
            if not is_told:
                self._say("Another upgrade is at work; waiting for its end ...")
                is_told = True
            time.sleep(BETWEEN_TRIES[1])

    def _patiently(self, step: Callable[[], object]) -> None:
        for n in range(1, MOST_TRIES + 1):
            try:
                # Each migration is one transaction: what is done stays done, and what failed left nothing.
                step()
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
        self._compare_schema()
        with connection.cursor() as cursor:
            if not roles.has_roles(cursor) or schema.is_newer(connection):
                return
            words = rights.difference(cursor).words()
        for line in words:
            self.stderr.write(line)
        if words:
            raise CommandError("the rights are not what this version expects", returncode=DIFFERS)

    def _compare_schema(self) -> None:
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


@contextlib.contextmanager
def _connected_as_owner() -> Iterator[None]:
    """Connect to the same database as whom DATABASE_OWNER_URL names, and afterwards as before."""
    before = dict(connection.settings_dict)
    if settings.DATABASE_OWNER_URL:
        connection.close()
        connection.settings_dict.update(database_from_url(settings.DATABASE_OWNER_URL, pooler=""))
    try:
        yield
    finally:
        if settings.DATABASE_OWNER_URL:
            connection.close()
            connection.settings_dict.update(before)


def _are_fixed(folder: Path) -> bool:
    """Return whether the static files are there and cannot be written."""
    return folder.exists() and not os.access(folder, os.W_OK)
