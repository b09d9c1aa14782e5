"""What all imports share: counting and hashing a file, refusals with their place, long transactions.

Readers stream and yield bare records; where a record stands is asked only when the database refuses it, in a second
pass. Sources are therefore paths, or streams that can seek.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

from django.db import connection, models

from judging.faults import Faults, place_name
from judging.models import Collection
from judging.places import Place
from judging.services.errors import ImportRefused
from judging.textfiles import Source, TrecFormatError, binary
from touchstone.files import local

Progress = Callable[[int, int, str], None]
Record = TypeVar("Record")
EVERY = 2000  # records between two signs of progress
LONGEST_TITLE = 1000  # characters; a title goes with every item that is handed out


class MeteredSource:
    """The source as a stream that counts and hashes the bytes read from it."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        self.source, self.stream, self.start = source, stream, stream.tell()
        self.total = stream.seek(0, os.SEEK_END) - self.start
        stream.seek(self.start)
        self.done, self.digest = 0, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.done += len(data)
        self.digest.update(data)
        return data

    def from_start(self) -> Source:
        """Return the source, ready to be read from its start."""
        if not isinstance(self.source, str | os.PathLike):
            self.stream.seek(self.start)
        return self.source


@contextmanager
def open_source(source: Source, name: str) -> Iterator[MeteredSource]:
    """Open a source for an import; what a reader finds wrong becomes `ImportRefused`."""
    with binary(source) as stream, refusing():
        yield MeteredSource(source, stream)


@contextmanager
def refusing() -> Iterator[None]:
    try:
        yield
    except TrecFormatError as error:
        raise ImportRefused(str(error)) from error


def refuse(name: str, place: Place, reason: str) -> NoReturn:
    raise ImportRefused(f"{name}:{place_name(*place)}: {reason}")


def numbered_records(
    found: Iterable[Record], stream: MeteredSource, progress: Progress | None, what: str, faults: Faults
) -> Iterator[tuple[int, Record]]:
    """Return the records with their index in the file, and report progress in bytes of the file.

    `faults` are those that the reader adds to. Behind the first of them only the others are looked for: no record comes
    any more, and at the end all faults are refused together.
    """
    for index, record in enumerate(found):
        if progress and index % EVERY == 0:
            progress(stream.done, stream.total, f"{index:,} {what}")
        if not faults:
            yield index, record
    refuse_faults(faults)


def refuse_faults(faults: Faults) -> None:
    if faults:
        raise ImportRefused(str(faults))


def longest(model: type[models.Model], name: str) -> int:
    """Return how many characters the column takes: fewer than the readers let pass."""
    return int(getattr(model._meta.get_field(name), "max_length", None) or 0)


def one_line(title: str) -> str:
    """Return a title as one line, and not too long."""
    words = " ".join(title.split())
    return words if len(words) <= LONGEST_TITLE else words[: LONGEST_TITLE - 2] + " …"


# -- transactions ---------------------------------------------------------------------------------------------


def begin_import(collection: Collection) -> None:
    """One import a collection at a time, each waiting for the other; reading a file may take its time."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL lock_timeout = 0")
    # Without "no key" a campaign could not be created in the collection meanwhile.
    row = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
    if row.deleted_at is not None:  # while the job waited
        raise ImportRefused("the collection was deleted meanwhile")


def copy_rows(table: str, columns: str, rows: Iterable[Sequence[Any]]) -> int:
    """Stream rows into a temporary table of that name, made anew; return how many."""
    count = 0
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{table}")
        cursor.execute(f"CREATE TEMPORARY TABLE {table} ({columns}) ON COMMIT DROP")
        with cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
                count += 1
        cursor.execute(f"ANALYZE {table}")
    return count


def add_rows(cursor: Any, insert: str, parameters: Any) -> tuple[int, int | None, int | None]:
    """Run an INSERT; return how many rows it added, and the first and the last of their ids."""
    sql = f"WITH added AS ({insert} RETURNING id) SELECT count(*), min(id), max(id) FROM added"  # noqa: S608
    cursor.execute(sql, parameters)
    n, first, last = cursor.fetchone()
    return n, first, last


def rows_between(first: int | None, last: int | None) -> dict[str, list[int]]:
    """Return what an import's event says of its rows, so that they can be removed together.

    One import at a time adds to a collection: between these ids the collection has no others.
    """
    return {} if first is None or last is None else {"rows": [first, last]}


def tell_planner(*filled: type[models.Model]) -> None:
    """Refresh the statistics of tables that have just grown: the first claims would otherwise be planned badly.

    PostgreSQL lets only a table's owner do that, so a function of the owner does (judging/migrations/0024_statistics.py
    has the list of tables). A table at which somebody else does the same at this moment is left to them.
    """
    with connection.cursor() as cursor:
        for model in filled:
            cursor.execute("SELECT judging_tell_planner(%s::regclass)", [model._meta.db_table])


# -- kept uploads ---------------------------------------------------------------------------------------------


def upload_path(upload: dict[str, str]) -> Path:
    """Return where a kept upload is; refused where it is gone. It stays there while the path lives."""
    gone = ImportRefused(f"{upload['name']}:1:1: the uploaded file is gone; send it again")
    try:
        path = local(upload["path"])
    except FileNotFoundError as error:
        raise gone from error
    if not path.is_file():
        raise gone
    return path
