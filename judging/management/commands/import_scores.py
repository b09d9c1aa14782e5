from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from judging.management.importing import importing, progress_bar, source_of
from judging.services.scores import import_scores


class Command(BaseCommand):
    help = (
        "Add a program's scores to a collection: how surely relevant documents are, from 0 to 1. "
        "A design can use them as its guess."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            help="the file, plain or gz: topic document score, or topic Q0 document rank score tag; "
            "- is standard input",
        )
        parser.add_argument("--collection", required=True, metavar="NAME", help="the collection to add to")
        parser.add_argument(
            "--name", required=True, help="what designs call the scores; a name is taken once a collection"
        )

    def handle(self, *, file: str, collection: str, name: str, **options: Any) -> None:
        with ExitStack() as stack, importing(collection, create=False) as target:
            source, shown = source_of(file, stack)
            progress = stack.enter_context(progress_bar(self.stderr))
            made = import_scores(
                collection=target, source=source, name=shown, list_name=name, progress=progress
            )
        self.stdout.write(f"{made.n_lines:,} scores added to {collection} as {made.name}")
        if made.unknown_topics:
            self.stdout.write(f"{len(made.unknown_topics):,} of their topics are not in the collection")
