"""`manage.py verify_backup`: is every byte of a backup as it was written."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from touchstone.backups import BackupError
from touchstone.backups.checking import check
from touchstone.backups.folder import read_manifest


class Command(BaseCommand):
    help = "Check every byte of a backup against its manifest."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("backup", type=Path, help="its folder, such as /srv/backup/2026-11-22T140000Z")

    def handle(self, *args: Any, backup: Path, **options: Any) -> None:
        try:
            check(backup.resolve())
        except BackupError as error:
            raise CommandError(str(error)) from error
        manifest = read_manifest(backup)
        self.stdout.write(
            f"{backup} is whole: {len(manifest.database)} files of the database, {len(manifest.files)} others, "
            f"up to {manifest.end}."
        )
