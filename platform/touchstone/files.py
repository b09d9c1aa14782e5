"""Stored files: uploads, runs, scores, frames of draws, releases; in a folder, or on S3 (FILES_URL).

A row names its file. The file is stored whole before the row is committed, under a name that was never used: no row is
without its file, and no name ever has other bytes. What is left behind is a file without a row, if a process is killed
between the two: `remove_orphans`.
"""

import logging
import os
import uuid
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.core.files import File
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import connection, transaction
from django.db.models.fields.files import FieldFile
from django.utils import timezone

from touchstone.file_cache import FileCache, FileDamaged

__all__ = [
    "Entry",
    "FileDamaged",
    "FilesUnavailable",
    "Stream",
    "local",
    "remove_orphans",
    "store",
    "stream",
]

logger = logging.getLogger(__name__)
BLOCK = 2**18
ORPHAN_AGE = timedelta(days=2)
MOMENTS = "moments"  # the folder of what jobs hand to each other: no row names it, and no backup holds it


class FilesUnavailable(Exception):
    """The store of files does not answer, or refuses us: nothing was stored, and the same may be asked again."""

    status, title, wait = 503, "The store of files cannot answer now; try again", 5.0


@dataclass(frozen=True)
class Entry:
    """A stored file: its name, as rows have it, its size, and when it was stored."""

    name: str
    size: int
    changed: datetime


class Stream(Protocol):
    """Bytes that are read as they come."""

    def read(self, size: int = -1) -> bytes: ...

    def close(self) -> None: ...


def is_on_s3() -> bool:
    """Return whether files are objects of a bucket, and none of this machine's."""
    return not isinstance(default_storage, FileSystemStorage)


# -- reading ------------------------------------------------------------------------------------------------------


def local(file: FieldFile | str) -> Path:
    """Return where this machine has the file of a row, or of a name: its own, or a copy in a bounded cache.

    A copy is checked by its SHA-256, and stays as long as the returned object lives: keep it, not a path made from it.
    Raise FileNotFoundError if the store has no such file, FileDamaged if it has other bytes than were stored, and
    FilesUnavailable if it does not answer. Of a folder, opening the path tells whether the file is there.
    """
    name = _name_of(file)
    if not is_on_s3():
        return Path(default_storage.path(name))
    store: Any = default_storage
    return _cache(Path(settings.FILES_CACHE)).get(
        f"{settings.FILES_URL} {name}", lambda target: str(store.fetch(name, target))
    )


@cache
def _cache(root: Path) -> FileCache:
    return FileCache(root, settings.FILES_CACHE_BYTES, 2 * settings.DISK_FLOOR)


def stream(file: FieldFile | str, first: int = 0) -> Stream:
    """Return the bytes of a file from `first` on, straight from the store. Raise as `local` does."""
    name, store = _name_of(file), default_storage
    if is_on_s3():
        found: Stream = store.stream(name, first)  # type: ignore[attr-defined]  # touchstone.s3.S3
        return found
    opened = Path(store.path(name)).open("rb")  # noqa: SIM115 (whoever reads closes it)
    opened.seek(first)
    return opened


def where(file: FieldFile | str) -> str:
    """Return where a file is, in words: its path, or its address."""
    name = _name_of(file)
    return f"{settings.FILES_URL.rstrip('/')}/{name}" if is_on_s3() else default_storage.path(name)


def _name_of(file: FieldFile | str) -> str:
    return file if isinstance(file, str) else str(file.name)


# -- writing ------------------------------------------------------------------------------------------------------


def store(folder: str, content: "File[Any]", suffix: str = "", stem: str = "") -> str:
    """Write a file under a name of our own; return the name. It disappears if the transaction is rolled back."""
    if is_on_s3() and connection.in_atomic_block:
        with connection.cursor() as cursor:  # a large file takes longer than a session may be silent
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    name = default_storage.save(f"{folder}/{stem}{uuid.uuid4()}{suffix}", content)
    _keep_only_if_committed(name)
    if not is_on_s3():
        with default_storage.open(name) as stored:
            os.fsync(stored.fileno())  # the row that names it will be on disk, so must it
    return name


class MadeFile(File):  # type: ignore[type-arg]
    """A file that was made here, and need not be copied where it can be moved: it is gone afterwards."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb"), path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        """Return where it is; Django moves what has such a path."""
        return str(self._path)


def _keep_only_if_committed(name: str) -> None:
    """Delete the file when Django drops this callback unused, which it does at a rollback, also of a savepoint."""

    def keep() -> None:
        guard.detach()

    guard = weakref.finalize(keep, _delete_uncommitted, name)
    guard.atexit = False
    if connection.in_atomic_block:
        transaction.on_commit(keep)
    else:
        keep()


def _delete_uncommitted(name: str) -> None:
    # With a lost connection nobody knows whether the transaction was committed: remove_orphans() looks later.
    if connection.connection is None or connection.connection.closed:
        return
    try:
        default_storage.delete(name)
    except FilesUnavailable:
        logger.warning("%s: left behind, because the store of files does not answer", name)


# -- what nobody names --------------------------------------------------------------------------------------------


def remove_orphans(folder: str, known: Callable[[str], bool]) -> int:
    """Delete the old files of a folder that no row names: what a killed process left. Return how many.

    Only uploads, which are never kept, are cleared unasked: two databases may share one folder of files.
    """
    oldest = timezone.now() - ORPHAN_AGE
    removed = 0
    try:
        for entry in list(entries(folder)):
            if entry.changed < oldest and not known(entry.name):
                default_storage.delete(entry.name)
                removed += 1
    except FilesUnavailable:  # whoever uploads next clears
        logger.warning("%s/: not cleared, because the store of files does not answer", folder)
    return removed


def entries(folder: str = "") -> Iterator[Entry]:
    """Yield the stored files, of one folder or of all."""
    store: Any = default_storage
    if is_on_s3():
        yield from store.entries(folder)
        return
    root = Path(store.path(""))
    for parent, _, names in os.walk(root / folder):
        for name in sorted(names):
            path = Path(parent) / name
            try:
                found = path.stat()
            except FileNotFoundError:  # an upload that was done with meanwhile
                continue
            yield Entry(
                str(path.relative_to(root)), found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)
            )
