import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet

from analytics.services import exports
from analytics.services.digests import judgments_by_digest
from analytics.services.judgment_log import LOG_FORMATS, PARQUET, log_lines, write_parquet
from judging.judgment_filters import JUDGMENTS, FilterFaults, filters_of, read_filters
from judging.models import Campaign, Judgment
from judging.services.errors import Refused
from judging.services.filtered import filtered_judgments


class Command(BaseCommand):
    help = "Write a campaign's judgments as a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "kind",
            choices=[*exports.export_keys(), "judgments"],
            help=" ".join(f"{one.key}: {one.help}" for one in exports.EXPORTS)
            + " judgments: every judgment with its time, comment and decision.",
        )
        parser.add_argument(
            "-o", "--output", metavar="FILE", help="where to write (default: standard output)"
        )
        parser.add_argument(
            "--without-gold",
            action="store_true",
            help="let the assessors' median stand where an audit knows better",
        )

        parser.add_argument("--format", choices=list(LOG_FORMATS), help="of judgments (default: csv)")
        parser.add_argument(
            "--filter",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"of judgments; names: {', '.join(one.name for one in filters_of(JUDGMENTS, True))}",
        )

    def handle(self, *, campaign: str, kind: str, output: str | None, **options: Any) -> None:
        row = _campaign(campaign)
        if kind == "judgments":
            found = _judgments(row, options["filter"])
            if options["format"] == PARQUET:
                _write_parquet(row, found, output)
                return
            lines = log_lines(row, found, options["format"] or "csv")
        elif options["format"] or options["filter"]:
            raise CommandError("--format and --filter are for judgments alone")
        else:
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
    campaign = Campaign.objects.filter(name=name, deleted_at=None).first()
    if campaign is None:
        with suppress(ValueError):
            campaign = Campaign.objects.filter(pk=uuid.UUID(name)).first()
    if campaign is None:
        raise CommandError(f"there is no campaign {name!r}")
    return campaign


def _judgments(campaign: Campaign, filters: list[str]) -> QuerySet[Judgment]:
    asked = dict(one.partition("=")[::2] for one in filters)
    unknown = sorted(asked.keys() - {one.name for one in filters_of(JUDGMENTS, True)})
    if unknown:
        raise CommandError(f"there is no filter {unknown[0]!r}")
    try:
        read = read_filters(asked, JUDGMENTS, is_manager=True)
    except FilterFaults as fault:
        raise CommandError(str(fault)) from fault
    named = campaign.assessors.filter(user__username=read.get("assessor", ""))
    found = filtered_judgments(campaign.pk, read, named.values_list("pk", flat=True).first())
    return judgments_by_digest(found, campaign.pk, read.get("spread")).complete()


def _write_parquet(campaign: Campaign, found: QuerySet[Judgment], output: str | None) -> None:
    if output is None:
        raise CommandError("--format parquet needs --output")
    try:
        with _whole(Path(output)) as draft:
            write_parquet(campaign, found, draft)
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}") from error


def _write(lines: Iterator[str], path: Path) -> None:
    with _whole(path) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(lines)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a draft that becomes the file: it appears whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
