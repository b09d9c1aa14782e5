"""`manage.py backup`: the database and its files into a folder, once, or for ever with the log of every second."""

import logging
import shutil
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from touchstone import processes, schema, signs
from touchstone.backups import BackupError, postgres
from touchstone.backups.archive import Archive
from touchstone.backups.checking import check
from touchstone.backups.folder import MANIFEST, Backups, read_manifest
from touchstone.backups.making import back_up, tell
from touchstone.backups.objects import file_store
from touchstone.management.commands.stack import line_writer
from touchstone.models import Seal

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Back up the database and its files into a folder; with --daily, every day and every second between."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="of the backups; best on another disk")
        parser.add_argument("--keep", type=int, default=7, help="remove all but so many backups (default 7)")
        parser.add_argument(
            "--dump", action="store_true", help="dump the database, where the role may not replicate"
        )
        parser.add_argument(
            "--daily",
            action="store_true",
            help="stay: receive the log of the database, copy new files every minute, back up once a day",
        )

    def handle(self, *args: Any, folder: Path, keep: int, dump: bool, daily: bool, **options: Any) -> None:
        if keep < 1:
            raise CommandError("--keep must be 1 or more")
        if daily and dump:
            raise CommandError("--daily receives the log, which does not fit a dump: choose one of them")
        backups = Backups(folder.resolve())
        say = line_writer(self.stdout)

        def once() -> Path:
            try:
                found, heads = schema.fingerprint(connection).digest, newest_heads()
            except DatabaseError as error:
                raise BackupError(f"the database does not answer: {' '.join(str(error).split())}") from error
            made = back_up(backups, _address(dump), file_store(), schema=found, heads=heads, dump=dump)
            _sign("backup")
            try:
                check(made)
            except BackupError:
                # It counts for nothing, no good one is removed for it, and it takes no room for long.
                (made / MANIFEST).unlink()
                shutil.rmtree(made, ignore_errors=True)
                raise
            _sign("verified backup")
            tell(say, made, read_manifest(made))
            return made

        try:
            if daily:
                with backups.alone(
                    daily=True
                ):  # one by hand, such as before an upgrade, may be made meanwhile
                    self._stay(backups, once, keep)
            else:
                with backups.alone():
                    once()
                    backups.remove_old(keep)
        except BackupError as error:
            raise CommandError(str(error)) from error

    def _stay(self, backups: Backups, once: Callable[[], Path], keep: int) -> None:
        processes.stoppable()
        _sign(signs.BACKUPS_WANTED, signs.sign_once)
        archive = Archive(
            backups,
            _address(),
            file_store(),
            back_up=once,
            keep=keep,
            is_receiving=_sign_archive,
        )
        try:
            while True:
                archive.step()
                connection.close()  # nothing is held between two steps
                time.sleep(1)
        except processes.Stop:
            self.stdout.write("Stopped. What was received stays.")
        finally:
            archive.stop()


def _address(dump: bool = False) -> str:
    """Return as whom the cluster is copied: a role that may replicate. A dump reads tables, as the product does."""
    if settings.POOLER:
        straight = settings.DATABASE_OWNER_URL if dump else settings.DATABASE_BACKUP_URL
        if not straight:
            name = "DATABASE_OWNER_URL" if dump else "DATABASE_BACKUP_URL"
            raise CommandError(f"A pooler passes no copy of the database: set {name}, to PostgreSQL itself")
        return straight
    own = postgres.address_of(settings.DATABASES["default"])
    return own if dump else settings.DATABASE_BACKUP_URL or own


def newest_heads() -> dict[str, str]:
    """Return the head of every table's newest seal; none of a database of a version before there were seals."""
    if Seal._meta.db_table not in connection.introspection.table_names():
        return {}
    seals = Seal.objects.order_by("table", "-up_to_id").distinct("table")
    return dict(seals.values_list("table", "head"))


def _sign_archive() -> None:
    """Write down that the log is received; from a thread, whose connection nobody else would close."""
    _sign("archive")
    connection.close()


def _sign(name: str, sign: Callable[[str], None] = signs.sign) -> None:
    """Write down, for the metrics, that it was now; a database that is away keeps no backup from its end."""
    try:
        sign(name)
    except DatabaseError as error:
        logger.warning("%s: not written down: %s", name, error)
