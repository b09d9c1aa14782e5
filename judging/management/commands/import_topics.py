from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from judging.management.importing import add_collection, importing, progress_bar, source_of
from judging.services.files import import_topics
from judging.topics import FORMATS


class Command(BaseCommand):
    help = "Add topics to a collection, from TREC SGML or XML, TSV, JSON lines (BEIR) or Cranfield's queries."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file, plain or gz; - is standard input")
        add_collection(parser)
        parser.add_argument("--format", choices=FORMATS, help="if not to be found out from the file")

    def handle(self, *, file: str, collection: str, create: bool, **options: Any) -> None:
        with ExitStack() as stack, importing(collection, create) as target:
            source, name = source_of(file, stack)
            progress = stack.enter_context(progress_bar(self.stderr))
            count = import_topics(
                collection=target, source=source, name=name, file_format=options["format"], progress=progress
            )
        self.stdout.write(f"{count:,} topics added to {collection}")
