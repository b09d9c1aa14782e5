"""Files on S3 in a backup: objects are copied into its store, each once, and put back."""

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, cast

from django.conf import settings
from django.core.files.storage import default_storage

from touchstone.backups import BackupError
from touchstone.backups.folder import Backups, StoredFile, hash_of
from touchstone.files import MOMENTS, Entry, FilesUnavailable, Stream, is_on_s3

# An object never changes. Should somebody have written over one by hand, its age tells: so far may clocks be apart.
CLOCKS_APART = timedelta(hours=1)
Known = dict[str, tuple[int, int]]


class NotedStream(Stream, Protocol):
    """The bytes of an object, and their SHA-256 as it was noted when it was stored, or nothing."""

    sha256: str


class ObjectStore(Protocol):
    """What a backup needs of a store of objects: touchstone.s3.S3."""

    def entries(self, folder: str = "") -> Iterable[Entry]: ...

    def stream(self, name: str, first: int = 0) -> NotedStream: ...

    def put(self, name: str, path: Path) -> None: ...


def file_store() -> Path | ObjectStore:
    """Return the folder of the files, or the store of their objects."""
    if not is_on_s3():
        return Path(settings.MEDIA_ROOT)
    store: Any = default_storage
    return cast(ObjectStore, store)


def copy_objects(
    backups: Backups, store: ObjectStore, known: Known | None = None, at_rest: float | None = None
) -> dict[str, StoredFile]:
    """Copy objects into the backups' store, and return all that were there, as `making.copy_files` does of files.

    What an earlier backup has is read from its copy: only what is new, or damaged there, is fetched.

    Raises
    ------
    BackupError
        The store of files does not answer, or an object is damaged.
    """
    copied = {}
    youngest = datetime.now(UTC) - timedelta(seconds=at_rest or 0)
    earlier, until = _earlier(backups)
    try:
        for entry in store.entries():
            if entry.name.startswith(f"{MOMENTS}/"):
                continue
            seen = (entry.size, int(entry.changed.timestamp()))
            is_known = known is not None and known.get(entry.name) == seen
            if is_known or (at_rest is not None and entry.changed > youngest):
                continue
            before = earlier.get(entry.name)
            try:
                if before is not None and entry.changed < until and _is_whole(backups, before, entry):
                    copied[entry.name] = before
                else:
                    copied[entry.name] = _copy(backups, store, entry)
            except FileNotFoundError:
                continue  # an upload that was read or given up was deleted meanwhile: no row names it
            if known is not None:
                known[entry.name] = seen
    except FilesUnavailable as error:
        raise BackupError("the store of files (FILES_URL) does not answer") from error
    return copied


def _earlier(backups: Backups) -> tuple[dict[str, StoredFile], datetime]:
    """Return the files that the newest backup has, and how old an object must be to be the same."""
    newest = backups.newest()
    if newest is None:
        return {}, datetime.min.replace(tzinfo=UTC)
    return newest.files, datetime.fromisoformat(newest.start) - CLOCKS_APART


def _is_whole(backups: Backups, file: StoredFile, entry: Entry) -> bool:
    place = backups.place(file.sha256)
    return file.size == entry.size and place.exists() and hash_of(place) == file


def _copy(backups: Backups, store: ObjectStore, entry: Entry) -> StoredFile:
    with closing(store.stream(entry.name)) as source:
        kept = backups.keep_bytes(source)
        if source.sha256 not in ("", kept.sha256):
            raise BackupError(f"{entry.name}: the object is not the file that was stored")
    return kept


def is_empty(media: Path | ObjectStore) -> bool:
    """Return whether there is no file."""
    if isinstance(media, Path):
        return not media.exists() or not any(media.iterdir())
    return next(iter(media.entries()), None) is None


def put_objects(backups: Backups, files: dict[str, StoredFile], store: ObjectStore) -> None:
    """Store the files of a backup under their names.

    Raises
    ------
    BackupError
        A file is missing in the backup, or the store of files does not answer.
    """
    for name, file in sorted(files.items()):
        place = backups.place(file.sha256)
        if not place.exists():
            raise BackupError(f"the file {name} ({file.sha256}) is missing in {backups.root}")
        try:
            store.put(name, place)
        except FilesUnavailable as error:
            raise BackupError("the store of files (FILES_URL) does not answer") from error
