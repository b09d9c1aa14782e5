from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from judging.import_table import import_table
from judging.management.importing import add_collection, importing, progress_bar
from judging.services.errors import ImportRefused
from judging.services.folder_imports import looked_at, parse_settings, uploads_of
from judging.services.keeping import keep

FAULTY = 2  # the exit code if something stands in the way


class Command(BaseCommand):
    help = (
        "Look at a folder or a zip and print what is in it; then add all of it to a collection, or nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", help="a folder, a zip or a file")
        add_collection(parser)
        parser.add_argument("--look", action="store_true", help="only look: nothing is changed")
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            dest="settings_of_files",
            metavar="FILE:OPTION=VALUE",
            help="what a file is or how it is read: topics.csv:kind=topics, gold.qrels:grade-map=-2=0",
        )

    def handle(
        self,
        *,
        path: str,
        collection: str,
        create: bool,
        look: bool,
        settings_of_files: list[str],
        **options: Any,
    ) -> None:
        with (
            _as_faults(),
            importing(collection, create or look) as target,
            uploads_of(Path(path)) as uploads,
            progress_bar(self.stderr) as progress,
        ):
            made = looked_at(target, uploads, parse_settings(settings_of_files), None, progress)
            self.stdout.write("\n".join(import_table(made.report["files"])))
            if found := made.report["obstacles"]:
                raise CommandError("\n".join(found), returncode=FAULTY)
            if look:
                transaction.set_rollback(True)
                return
            kept = keep(made, actor=None, progress=progress, uploads=uploads)
        before, after = kept.report["before"], kept.report["after"]
        gained = [f"{after[what] - before[what]:,} {what}" for what in after if after[what] != before[what]]
        self.stdout.write(
            "\n".join([f"{', '.join(gained) or 'nothing'} added to {collection}", *kept.report["notes"]])
        )


@contextmanager
def _as_faults() -> Iterator[None]:
    """Let what is wrong with files or settings end the command with its own exit code."""
    try:
        yield
    except CommandError as error:
        is_of_files = isinstance(error.__cause__, ImportRefused)
        raise CommandError(str(error), returncode=FAULTY if is_of_files else error.returncode) from error
