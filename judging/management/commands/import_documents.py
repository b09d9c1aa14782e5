from contextlib import ExitStack
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from judging.management.importing import add_collection, importing, progress_bar, source_of
from judging.records import FORMATS
from judging.services.files import import_documents


class Command(BaseCommand):
    help = "Add documents to a collection, from JSON lines (BEIR), CSV, TSV, TREC <DOC> or Cranfield."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file, plain or gz; - is standard input")
        add_collection(parser)
        parser.add_argument("--format", choices=FORMATS, help="if not to be found out from the file")
        parser.add_argument("--html", action="store_true", help="the texts are HTML: they are made safe")

    def handle(self, *, file: str, collection: str, create: bool, **options: Any) -> None:
        with ExitStack() as stack, importing(collection, create) as target:
            source, name = source_of(file, stack)
            progress = stack.enter_context(progress_bar(self.stderr))
            count = import_documents(
                collection=target,
                source=source,
                name=name,
                file_format=options["format"],
                is_html=options["html"],
                progress=progress,
                warn=self.stderr.write,
            )
        self.stdout.write(f"{count:,} documents added to {collection}")
