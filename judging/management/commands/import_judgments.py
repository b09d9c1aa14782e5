from argparse import BooleanOptionalAction
from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.gold_choices import GOLD_CHOICES, UNKNOWN, gold_choice_keys
from judging.management.importing import importing, progress_bar, source_of
from judging.models import Assessor, Campaign
from judging.samples import METHOD_CODES
from judging.services import judgment_formats
from judging.services.files import import_judgments
from judging.services.judgment_formats import DEFAULT_FORMAT, REJECT, REPEATS


class Command(BaseCommand):
    help = (
        "Add known judgments: with --gold as gold answers of a collection, "
        "otherwise as the judgments of a campaign's assessors, or as a sample with its probabilities."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file, plain or gz; - is standard input")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument("--collection", metavar="NAME", help="the collection, for gold answers")
        where.add_argument(
            "--campaign", metavar="NAME", help="the campaign, for judgments (or its gold answers)"
        )
        parser.add_argument("--gold", action="store_true", help="the grades are gold answers")
        parser.add_argument(
            "--format",
            choices=judgment_formats.judgment_format_keys(),
            default=DEFAULT_FORMAT,
            help=" ".join(f"{one.key}: {one.help}" for one in judgment_formats.FORMATS)
            + f" Default: {DEFAULT_FORMAT}.",
        )
        parser.add_argument("--source", default="", help="whose grades these are (default: the file's name)")
        parser.add_argument(
            "--grade-map",
            metavar="1=3,2=0",
            help="what the file's grades become; -1= leaves those lines out: --grade-map=-2=0,-1=",
        )
        parser.add_argument(
            "--repeats",
            choices=REPEATS,
            default=REJECT,
            help="what to do where an assessor graded a pair twice: reject the file (default), keep the first or the "
            "last of these grades",
        )
        parser.add_argument(
            "--method-codes",
            choices=METHOD_CODES,
            default=METHOD_CODES[0],
            help="of prels: take the probabilities as recorded (default), or as the Million Query track's program",
        )
        parser.add_argument(
            "--complete",
            action=BooleanOptionalAction,
            default=None,
            help="this file is all there is: its documents are what numbers are about, each with as many judgments as "
            "it has there (default for a campaign that has nothing yet)",
        )
        parser.add_argument(
            "--gold-chosen",
            choices=gold_choice_keys(),
            default=UNKNOWN.key,
            help="how the documents with gold were chosen among the judged ones of the campaign. "
            + " ".join(
                f"{one.key}: {one.label[:1].lower()}{one.label[1:]}. {one.help}" for one in GOLD_CHOICES
            )
            + f" Default: {UNKNOWN.key}.",
        )
        parser.add_argument(
            "--by-topic", action="store_true", help="gold was chosen uniformly within every topic"
        )
        parser.add_argument(
            "--kind", choices=Assessor.Kind.values, default="human", help="who judged (default: human)"
        )

    def handle(self, *, file: str, collection: str | None, campaign: str | None, **options: Any) -> None:
        into, notes = None, list[str]()
        if campaign is not None:
            into = (
                Campaign.objects.select_related("collection").filter(name=campaign, deleted_at=None).first()
            )
            if into is None:
                raise CommandError(f"there is no campaign {campaign!r}")
            collection = into.collection.name
        with ExitStack() as stack, importing(str(collection), False) as target:
            source, name = source_of(file, stack)
            progress = stack.enter_context(progress_bar(self.stderr))
            count = import_judgments(
                collection=target,
                campaign=into,
                source=source,
                name=name,
                file_format=options["format"],
                as_gold=options["gold"],
                source_name=options["source"],
                grade_map=options["grade_map"],
                repeats=options["repeats"],
                kind=options["kind"],
                method_codes=options["method_codes"],
                complete=options["complete"],
                gold_chosen=options["gold_chosen"],
                by_topic=options["by_topic"],
                warn=notes.append,
                progress=progress,
            )
        for note in notes:
            self.stdout.write(note)
        what = "gold answers" if options["gold"] else "judgments"
        self.stdout.write(f"{count:,} {what} added to {campaign or collection}")
