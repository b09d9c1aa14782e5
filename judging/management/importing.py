"""What the import commands share: the collection, standard input, the progress bar, and errors on one line."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from django.core.management.base import CommandError, OutputWrapper
from django.db import transaction

from judging.models import Collection
from judging.services.errors import Refused
from judging.services.sources import Progress
from judging.textfiles import Source
from touchstone.models import record

WIDTH = 30


def add_collection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--collection", required=True, metavar="NAME", help="the collection to add to")
    parser.add_argument(
        "--create", action="store_true", help="make the collection if there is none of that name"
    )


@contextmanager
def importing(collection: str, create: bool) -> Iterator[Collection]:
    """Give the collection; all of the import or nothing, the new collection included; refusals become one line."""
    with one_line(), transaction.atomic():
        found = Collection.objects.filter(name=collection, deleted_at=None).first()
        if found is None and not create:
            raise CommandError(f"there is no collection {collection!r}; --create makes it")
        if found is None:
            found = Collection.objects.create(name=collection)
            record("created", found, name=collection)
        yield found


@contextmanager
def one_line() -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        raise CommandError(str(refusal) or refusal.title) from refusal
    except OSError as error:
        raise CommandError(f"{error.filename or 'file'}: {error.strerror or error}") from error
    except ValueError as error:  # of pure code: a prompt that cannot work, a file that is no text
        raise CommandError(str(error)) from error


def source_of(path: str, stack: ExitStack) -> tuple[Source, str]:
    """Return what to read and its name; `-` is standard input, kept in a file because imports may read twice."""
    if path != "-":
        return path, path
    kept = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
    shutil.copyfileobj(sys.stdin.buffer, kept)
    kept.seek(0)
    return kept, "<stdin>"


@contextmanager
def progress_bar(stream: TextIO | OutputWrapper) -> Iterator[Progress | None]:
    """Give a progress function that draws a bar on a terminal, None elsewhere."""
    if not stream.isatty():
        yield None
        return

    def draw(done: int, total: int, note: str) -> None:
        share = min(1.0, done / total) if total else 0.0
        bar = ("#" * round(WIDTH * share)).ljust(WIDTH, ".")
        stream.write(f"\r[{bar}] {share:4.0%} {note[:40]:<40}")
        stream.flush()

    try:
        yield draw
    finally:
        stream.write("\r" + " " * (WIDTH + 50) + "\r")
        stream.flush()
