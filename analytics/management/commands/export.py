import os
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.services import exports
from judging.models import Campaign
from judging.services.errors import Refused


class Command(BaseCommand):
    help = "Write a campaign's judgments as a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "kind",
            choices=exports.export_keys(),
            help=" ".join(f"{one.key}: {one.help}" for one in exports.EXPORTS),
        )
        parser.add_argument(
            "-o", "--output", metavar="FILE", help="where to write (default: standard output)"
        )
        parser.add_argument(
            "--without-gold",
            action="store_true",
            help="let the assessors' median stand where an audit knows better",
        )

    def handle(self, *, campaign: str, kind: str, output: str | None, **options: Any) -> None:
        row = _campaign(campaign)
        try:
            lines = exports.export_format(kind).lines(row, not options["without_gold"])
        except Refused as refusal:
            raise CommandError(f"{row.name}: {refusal.title}") from refusal
        if output is None:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        try:
            _write(lines, Path(output))
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror}") from error


def _campaign(name: str) -> Campaign:
    campaign = Campaign.objects.filter(name=name).first()
    if campaign is None:
        with suppress(ValueError):
            campaign = Campaign.objects.filter(pk=uuid.UUID(name)).first()
    if campaign is None:
        raise CommandError(f"there is no campaign {name!r}")
    return campaign


def _write(lines: Iterator[str], path: Path) -> None:
    """Write the file; it appears whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
