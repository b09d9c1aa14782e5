"""`manage.py verify_ledger`: whether sealed rows, counters and files are what they were."""

from argparse import ArgumentParser
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from touchstone.ledger.verification import chain_faults, counter_faults, file_faults, release_faults
from touchstone.models import ledger_head


class Command(BaseCommand):
    help = (
        "Compute the hash chains anew, count what counters count, and hash the files; exit code 1 and the seals "
        "that differ where something was changed. Given the file of a release, check it and its head as well."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("release", nargs="?", type=Path, help="the zip of a release")

    def handle(self, *, release: Path | None, **options: Any) -> None:
        n, is_outermost = 0, not connection.in_atomic_block
        with transaction.atomic():
            if is_outermost:
                with connection.cursor() as cursor:  # all of one moment, while others judge and seal
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            faults = chain(chain_faults(self.stdout.write), counter_faults(), file_faults())
            if release is not None:
                faults = chain(faults, release_faults(release, self.stdout.write))
            for words in faults:
                n += 1
                self.stderr.write(words)
            head = ledger_head()
        if n:
            raise CommandError(f"the ledger does not verify: {n:,} differences stand above")
        self.stdout.write(
            f"The ledger verifies; its head is {head or 'that of nothing, as nothing is sealed'}."
        )
