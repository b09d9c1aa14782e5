from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from judging.formats.run_names import run_format_keys
from judging.formats.table import RUN_FORMATS
from judging.management.importing import add_collection, importing, progress_bar, source_of
from judging.services.files import import_runs


class Command(BaseCommand):
    help = "Add runs to a collection, one file each, of any format of runs. All of them or none."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", help="the run files, plain or gz; - is standard input")
        add_collection(parser)
        parser.add_argument(
            "--format",
            choices=run_format_keys(),
            help=" ".join(f"{one.key}: {one.help}" for one in RUN_FORMATS)
            + " Default: what a file's beginning tells.",
        )
        parser.add_argument(
            "--name", default="", help="the run's name, of one file; needed where the file has several tags"
        )
        parser.add_argument("--description", default="", help="what made the runs, in your words")
        parser.add_argument(
            "--group", default="", help="whose runs they are: a team, or variants of one system"
        )
        parser.add_argument("--manual", action="store_true", help="people took part in making these runs")

    def handle(
        self, *, files: list[str], collection: str, create: bool, manual: bool, **options: Any
    ) -> None:
        with ExitStack() as stack, importing(collection, create) as target:
            sources = [source_of(file, stack) for file in files]
            progress = stack.enter_context(progress_bar(self.stderr))
            runs = import_runs(
                collection=target,
                files=sources,
                description=options["description"],
                is_manual=manual,
                group=options["group"],
                file_format=options["format"] or "",
                run_name=options["name"],
                progress=progress,
            )
        lines = sum(run.n_lines for run in runs)
        self.stdout.write(f"{len(runs):,} runs with {lines:,} lines added to {collection}")
        unknown = {topic_id for run in runs for topic_id in run.unknown_topics}
        if unknown:
            self.stdout.write(f"{len(unknown):,} of their topics are not in the collection")
