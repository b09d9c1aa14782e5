"""`manage.py restore`: a backup into an empty folder or an empty database."""

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from touchstone import embedded
from touchstone.backups import BackupError, restoring
from touchstone.backups.objects import file_store
from touchstone.management.commands.stack import MANAGE
from touchstone.processes import StackError

URLS = ("postgresql://", "postgres://")


class Command(BaseCommand):
    help = (
        "Restore a backup into an empty folder (an embedded stack's) or, of a dump, into an empty database."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("backup", type=Path, help="its folder, such as /srv/backup/2026-11-22T140000Z")
        parser.add_argument("--into", required=True, metavar="URL_OR_FOLDER")
        parser.add_argument(
            "--to-time",
            default="",
            metavar="TIME",
            help="the last second that counts, such as 2026-11-22T14:31:07Z, or latest; default: the end of the backup",
        )

    def handle(self, *args: Any, backup: Path, into: str, to_time: str, **options: Any) -> None:
        try:
            if into.startswith(URLS):
                if to_time:
                    raise CommandError("--to-time needs the log, which a dump has not: restore into a folder")
                restoring.into_database(backup.resolve(), into, file_store())
                self._verify(into, settings.VAR, settings.FILES_URL)
                return
            target = Path(into).resolve()
            restoring.into_folder(backup.resolve(), target, to_time)
            with embedded.stack(target) as servers:
                self._verify(servers.database_url, target)
        except (BackupError, StackError) as error:
            raise CommandError(str(error)) from error
        elsewhere = " Its files are in that folder: start it without FILES_URL." if settings.FILES_URL else ""
        self.stdout.write(
            f"Restored into {target}. Start it with TOUCHSTONE_VAR={target}; its key (secrets/django) is in no backup: "
            "put the old one there first, or pseudonyms in later exports differ." + elsewhere
        )

    def _verify(self, address: str, var: Path, files_url: str = "") -> None:
        """Recompute the restored ledger, in a process that knows no other database."""
        environment = {
            **os.environ,
            "DATABASE_URL": address,
            "TOUCHSTONE_VAR": str(var),
            "FILES_URL": files_url,
        }
        environment.setdefault("SECRET_KEY", "none")  # nothing is signed
        result = subprocess.run([sys.executable, MANAGE, "verify_ledger"], env=environment)
        if result.returncode:
            raise CommandError(
                "the backup is restored, but its ledger does not verify: the reason stands above. "
                "One of an older version verifies after prepare"
            )
