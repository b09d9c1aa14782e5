import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.models import Campaign
from judging.services.exports import export_prels, export_qrels, export_qrels_jg
from sampling.frames import item_probabilities


class Command(BaseCommand):
    help = "Write a campaign's judgments as a TREC file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "kind",
            choices=["qrels", "qrels_jg", "prels"],
            help="qrels: one grade an item; qrels_jg: every judgment, assessors under pseudonyms; "
            "prels: grades with the probability of being drawn",
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
        lines = _lines(_campaign(campaign), kind, not options["without_gold"])
        if output is None:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        try:
            _write(lines, Path(output))
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror}") from error


def _campaign(wanted: str) -> Campaign:
    found = Campaign.objects.filter(name=wanted).first()
    if found is None:
        try:
            found = Campaign.objects.filter(pk=uuid.UUID(wanted)).first()
        except ValueError:
            found = None
    if found is None:
        raise CommandError(f"there is no campaign {wanted!r}")
    return found


def _lines(campaign: Campaign, kind: str, prefer_gold: bool) -> Iterator[str]:
    if kind == "qrels":
        return export_qrels(campaign=campaign, prefer_gold=prefer_gold)
    if kind == "qrels_jg":
        return export_qrels_jg(campaign=campaign)
    probabilities = item_probabilities(campaign)
    if not probabilities:
        raise CommandError(
            f"the items of {campaign.name} were not drawn: they have no inclusion probabilities"
        )
    return export_prels(campaign=campaign, probabilities=probabilities, prefer_gold=prefer_gold)


def _write(lines: Iterator[str], path: Path) -> None:
    """Write the file; it appears whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
