"""`manage.py orphans`: stored files that no row names, which killed processes left; shown, and removed on request."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand
from django.db import models
from django.utils import timezone

from touchstone.files import ORPHAN_AGE, Entry, entries
from touchstone.models import Job


class Command(BaseCommand):
    help = "List stored files that are older than two days and that nothing in this database names."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--delete", action="store_true", help="delete them; never where two databases share one store"
        )

    def handle(self, *args: Any, delete: bool, **options: Any) -> None:
        found = list(orphans())
        for entry in found:
            if delete:
                default_storage.delete(entry.name)
            self.stdout.write(f"{entry.name}  {entry.size:,} bytes, {entry.changed:%Y-%m-%d}")
        words = "deleted" if delete else "to be deleted with --delete"
        self.stdout.write(f"{len(found)} files without a row, {words}.")


def orphans() -> Iterator[Entry]:
    """Yield the files that no row names. What is there is read first: a row that comes later has a younger file."""
    oldest = timezone.now() - ORPHAN_AGE
    old = [entry for entry in entries() if entry.changed < oldest]
    named = _named_by_rows() | _named_by_jobs()
    yield from (entry for entry in old if entry.name not in named)


def _named_by_rows() -> set[str]:
    named: set[str] = set()
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, models.FileField):
                named.update(model._base_manager.values_list(field.attname, flat=True))
    return named


def _named_by_jobs() -> set[str]:
    """Return the uploads whose fate is not decided."""
    named: set[str] = set()
    for payload in Job.objects.filter(state__in=Job.ACTIVE).values_list("payload", flat=True):
        kept = [*payload.get("uploads", []), *([payload["upload"]] if "upload" in payload else [])]
        named.update(upload["path"] for upload in kept)
    return named
