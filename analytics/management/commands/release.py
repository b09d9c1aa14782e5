import json
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from analytics.aggregation.rules import DEFAULT_RULE, aggregation_keys
from analytics.management.campaigns import campaign_named
from analytics.models import Release
from analytics.releases.services.grading import GradesRefused
from analytics.releases.services.releasing import build, build_again, download_name, make_release, mark_failed
from judging.services.errors import Refused
from sampling.frames import FrameRefused
from touchstone.files import local, where


class Command(BaseCommand):
    help = "Make a release of a campaign, or make one again and compare the bytes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", nargs="?", help="the campaign's name or id")
        parser.add_argument("version", nargs="?", help="such as 1.0")
        parser.add_argument(
            "--again", metavar="RELEASE", help="the id of a release: make it once more and compare"
        )
        parser.add_argument("--title", default="", help="default: the campaign's name")
        parser.add_argument("--author", action="append", default=[], help="may be given more than once")
        parser.add_argument("--licence", default="", help="of the judgments, for example CC-BY-4.0")
        parser.add_argument("--doi", default="", help="reserved for this version, such as 10.5281/zenodo.1")
        parser.add_argument("--url", default="", help="where the release will be found")
        parser.add_argument("--notes", default="", help="what is new, in your words")
        parser.add_argument("--aggregation", choices=aggregation_keys(), default=DEFAULT_RULE)
        parser.add_argument(
            "--without-gold", action="store_true", help="let no audit or adjudication stand first"
        )
        parser.add_argument(
            "--documents",
            action="store_true",
            help="with the documents' texts, where the collection allows it",
        )
        parser.add_argument(
            "--without-runs", action="store_true", help="leave out also the runs that may be published"
        )
        parser.add_argument("-o", "--file", metavar="FILE", help="copy the file to this place, too")
        parser.add_argument("--output", choices=["text", "json"], default="text", help="form of the answer")

    def handle(self, *, campaign: str | None, version: str | None, again: str | None, **options: Any) -> None:
        if again is not None:
            if campaign or version:
                raise CommandError("--again takes a release, and neither a campaign nor a version")
            self._rebuild(again, options["output"])
            return
        if not campaign or not version:
            raise CommandError("name a campaign and a version, or --again and a release")
        release = self._make(campaign, version, options)
        if options["file"]:
            try:
                shutil.copyfile(local(release.file), Path(options["file"]))
            except OSError as error:
                raise CommandError(f"{options['file']}: {error.strerror}") from error
        summary = {
            "release": str(release.pk),
            "version": release.version,
            "name": download_name(release),
            "file": where(release.file),
            "bytes": release.n_bytes,
            "sha256": release.sha256,
            "merkle_root": release.merkle_root,
            "counts": release.manifest["counts"],
            "changes": release.changes,
        }
        text = (
            f"{summary['name']}: {release.n_bytes:,} bytes, SHA-256 {release.sha256}\n{where(release.file)}"
        )
        self.stdout.write(json.dumps(summary, indent=2) if options["output"] == "json" else text)

    def _make(self, campaign: str, version: str, options: dict[str, Any]) -> Release:
        try:
            release = make_release(
                campaign=campaign_named(campaign),
                version=version,
                title=options["title"],
                authors="\n".join(options["author"]),
                doi=options["doi"],
                url=options["url"],
                notes=options["notes"],
                licence=options["licence"],
                aggregation=options["aggregation"],
                prefers_gold=not options["without_gold"],
                includes_documents=options["documents"],
                includes_runs=not options["without_runs"],
                actor=None,
                by_job=False,
            )
        except Refused as refusal:
            raise CommandError(": ".join(filter(None, [refusal.title, str(refusal)]))) from refusal
        try:
            with transaction.atomic():
                return build(release=release, progress=self._progress())
        except (FrameRefused, GradesRefused) as refusal:
            mark_failed(release=release)
            raise CommandError(str(refusal)) from refusal
        except BaseException:
            mark_failed(release=release)
            raise

    def _rebuild(self, release_id: str, output: str) -> None:
        try:
            release = Release.objects.filter(pk=uuid.UUID(release_id)).first()
        except ValueError:
            release = None
        if release is None:
            raise CommandError(f"there is no release {release_id!r}")
        try:
            with transaction.atomic():
                rebuilt = build_again(release=release, progress=self._progress())
                transaction.set_rollback(True)
        except Refused as refusal:
            raise CommandError(refusal.title) from refusal
        summary = {
            "same": rebuilt.is_same,
            "sha256": rebuilt.sha256,
            "files": rebuilt.files,
            "facts": rebuilt.facts,
        }
        if output == "json":
            self.stdout.write(json.dumps(summary, indent=2))
        elif rebuilt.is_same:
            self.stdout.write(f"the same {release.n_bytes:,} bytes: SHA-256 {rebuilt.sha256}")
        else:
            self.stdout.write("not the same bytes\nfiles that differ: " + ", ".join(rebuilt.files))
            self.stdout.write(
                "facts that changed since: " + (", ".join(rebuilt.facts) or "none that is known of")
            )
        if not rebuilt.is_same:
            sys.exit(1)

    def _progress(self) -> Any:
        """Say on a terminal how far it is; files and pipes get the answer alone."""
        if not self.stderr.isatty():
            return lambda *_: None
        return lambda done, total, note: self.stderr.write(f"\r{done:3d} % {note:60}", ending="")
