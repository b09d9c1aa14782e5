"""What lies in a folder of backups: manifests, the store of files, and the journal of when each was copied."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from touchstone.backups import BackupError

FORMAT = 1
NAME = "%Y-%m-%dT%H%M%SZ"
BASE, DUMP = "base", "database.dump"
MANIFEST, CHECKED = "manifest.json", "checked.json"
PART = 1 << 20


class Readable(Protocol):
    """Something that is read part by part."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class StoredFile:
    """A file by the SHA-256 of its bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """What a backup holds. Times are UTC; `end` is the moment that the database of the backup has reached."""

    version: str
    postgresql: int  # server_version_num
    system: str  # the identity that initdb gave the cluster
    timeline: int
    schema: str
    start: str
    end: str
    start_lsn: str
    end_lsn: str
    heads: dict[str, str]
    database: dict[str, StoredFile]
    files: dict[str, StoredFile]
    format: int = FORMAT
    sha256: str = field(default="", compare=False)

    @property
    def is_dump(self) -> bool:
        return set(self.database) == {DUMP}

    @property
    def major(self) -> int:
        return self.postgresql // 10_000

    @property
    def end_time(self) -> datetime:
        return datetime.fromisoformat(self.end)


def digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own.

    >>> digest({"b": 1, "a": 2, "sha256": "x"}) == digest({"a": 2, "b": 1})
    True
    """
    text = json.dumps({key: value for key, value in values.items() if key != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of(path: Path) -> StoredFile:
    with path.open("rb") as file:
        return StoredFile(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def write_durably(path: Path, text: str) -> None:
    """Write a file that is whole after a power cut, or not there."""
    draft = path.with_name(f"{path.name}.new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Backups:
    """A folder of backups."""

    root: Path

    @property
    def wal(self) -> Path:
        return self.root / "wal"

    @property
    def journal(self) -> Path:
        return self.root / "files.jsonl"

    def complete(self) -> list[Path]:
        """Return the folders of the backups that were completed, the newest last."""
        return sorted(path.parent for path in self.root.glob(f"*Z/{MANIFEST}"))

    def newest(self, *, with_log: bool = False) -> Manifest | None:
        """Return what the newest backup holds; one whose manifest is damaged counts for nothing.

        With `with_log`, dumps are passed over: the log of the database leads on from a copy alone.
        """
        for folder in reversed(self.complete()):
            with contextlib.suppress(BackupError):
                manifest = read_manifest(folder)
                if not (with_log and manifest.is_dump):
                    return manifest
        return None

    @contextlib.contextmanager
    def alone(self, *, daily: bool = False) -> Iterator[None]:
        """Keep other backups into this folder away; or, with `daily`, another process that keeps it up to date.

        Raises
        ------
        BackupError
            There is one.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.root / ("daily.lock" if daily else "lock")).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                words = "a backup --daily runs already on" if daily else "another backup is being made into"
                raise BackupError(f"{words} {self.root}") from None
            yield

    @contextlib.contextmanager
    def _store_locked(self) -> Iterator[None]:
        """Wait until nobody else notes or removes files: one copied and not noted yet looks as if none needed it."""
        with (self.root / "files.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # -- the store ------------------------------------------------------------------------------------------------

    def place(self, sha256: str) -> Path:
        return self.root / "files" / sha256[:2] / sha256

    def keep(self, path: Path) -> StoredFile:
        """Copy a file into the store, unless it is there whole, and return what it is."""
        file = hash_of(path)
        if self._has(file):
            return file
        with path.open("rb") as source:
            return self.keep_bytes(source)

    def keep_bytes(self, source: Readable) -> StoredFile:
        """Copy what is read into the store, also over an older copy, and return what it is."""
        draft = self.root / "files" / f"new.{os.getpid()}.{threading.get_ident()}"
        draft.parent.mkdir(exist_ok=True)
        found, size = hashlib.sha256(), 0
        with draft.open("wb") as target:
            while part := source.read(PART):
                found.update(part)
                size += target.write(part)
            target.flush()
            os.fsync(target.fileno())
        place = self.place(found.hexdigest())
        place.parent.mkdir(exist_ok=True)
        draft.rename(place)
        sync_folder(place.parent)
        return StoredFile(found.hexdigest(), size)

    def _has(self, file: StoredFile) -> bool:
        """Return whether the store has the file with all its bytes: a copy that was damaged is written again."""
        place = self.place(file.sha256)
        return place.exists() and hash_of(place) == file

    def keep_between(self, copy: Callable[[], dict[str, StoredFile]]) -> None:
        """Copy files and write down which; a restored moment may lie between two backups."""
        with self._store_locked():
            if found := copy():
                noted = self.copied_files()
                new = {name: file for name, file in found.items() if noted.get(name) != file}
                self._note(new, datetime.now(UTC))

    def _note(self, files: dict[str, StoredFile], now: datetime) -> None:
        if not files:
            return
        if self.journal.exists() and not self.journal.read_bytes().endswith(b"\n"):
            write_durably(self.journal, "".join(f"{line}\n" for line in self._lines()))
        with self.journal.open("a") as journal:
            for name, file in sorted(files.items()):
                journal.write(json.dumps({"at": now.isoformat(), "path": name, **asdict(file)}) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def copied_files(self) -> dict[str, StoredFile]:
        """Return the files of the journal; of two versions of a file, the later one."""
        entries = map(json.loads, self._lines())
        return {entry["path"]: StoredFile(entry["sha256"], entry["size"]) for entry in entries}

    def _lines(self) -> list[str]:
        """Return the journal's whole lines: a power cut may have cut the last, whose files are copied again."""
        text = self.journal.read_text() if self.journal.exists() else ""
        return text.rpartition("\n")[0].splitlines()

    def drop_torn_segment(self, size: int) -> None:
        """Remove a begun segment that has not its `size` in bytes, because the receiver was killed as it made it.

        A segment is filled with zeros before the log goes into it, so a short one holds nothing yet; but
        pg_receivewal would refuse it for ever.
        """
        for path in self.wal.glob("?" * 24 + ".partial"):
            if path.stat().st_size not in (0, size):
                path.unlink()

    def set_log_aside(self) -> None:
        """Move the log into a folder of its own: its receiver would go on where the last segment ends."""
        segments = [path for path in self.wal.glob("*") if path.is_file()]
        if not segments and self.has_gap():
            return
        aside = self.wal / backup_name(datetime.now(UTC))
        aside.mkdir(mode=0o700, parents=True, exist_ok=True)
        for segment in segments:
            segment.rename(aside / segment.name)

    def has_gap(self) -> bool:
        """Return whether no backup was begun since the log began anew: then nothing leads from a backup to now."""
        newest = self.newest(with_log=True)
        begun = max((folder.name for folder in self.wal.glob("*Z")), default="")
        return newest is None or begun > backup_name(datetime.fromisoformat(newest.start))

    # -- the end of backups ---------------------------------------------------------------------------------------

    def remove_old(self, keep: int) -> list[Path]:
        """Remove all but the newest backups, what was never completed, and what no backup needs: files, segments."""
        complete = self.complete()
        removed, kept = complete[:-keep], complete[-keep:]
        for folder in removed:
            (folder / MANIFEST).unlink()  # first: without it, what is left half removed counts for nothing
        for folder in self.root.glob("????-??-??T??????Z*"):
            if folder not in kept:
                shutil.rmtree(folder)
        self._remove_files(kept)
        self._remove_segments(kept)
        return removed

    def _remove_files(self, kept: list[Path]) -> None:
        manifests = []
        for folder in kept:
            with contextlib.suppress(BackupError):
                manifests.append(read_manifest(folder))
        if not manifests or len(manifests) < len(kept):
            return  # nobody knows which files the damaged one names: all stay until it is old
        with self._store_locked():
            self._forget_before(manifests[0].start)
            needed = {file.sha256 for manifest in manifests for file in manifest.files.values()}
            needed |= {file.sha256 for file in self.copied_files().values()}
            for place in self.root.glob("files/??/*"):
                if place.name not in needed:
                    place.unlink()

    def _forget_before(self, start: str) -> None:
        """Drop what the journal says of files that the oldest backup has by itself."""
        lines = self._lines()
        later = [line for line in lines if json.loads(line)["at"] >= start]
        if len(later) < len(lines):
            write_durably(self.journal, "".join(f"{line}\n" for line in later))

    def _remove_segments(self, kept: list[Path]) -> None:
        labels = [folder / BASE / "backup_label" for folder in kept]
        firsts = [first_segment(label.read_text()) for label in labels if label.exists()]
        if not firsts:
            return
        # A name is a timeline and a place in the log. After a restore a later timeline begins at an earlier place.
        oldest = min(first[8:] for first in firsts)
        for segment in self.wal.rglob("?" * 24 + "*"):
            if segment.name[8:24] < oldest:
                segment.unlink()


def first_segment(label: str) -> str:
    """Return the first segment of the log that a base backup needs, from its backup_label.

    >>> first_segment("START WAL LOCATION: 0/9000028 (file 000000010000000000000009)\\nCHECKPOINT LOCATION: 0/9000080")
    '000000010000000000000009'
    """
    return label.partition("(file ")[2].partition(")")[0]


def write_manifest(folder: Path, manifest: Manifest) -> None:
    values = asdict(manifest)
    write_durably(
        folder / MANIFEST, json.dumps({**values, "sha256": digest(values)}, indent=1, sort_keys=True)
    )


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup.

    Raises
    ------
    BackupError
        The backup was not completed, its manifest was changed, or a newer version wrote it.
    """
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise BackupError(f"{folder} is no complete backup: it has no {MANIFEST}") from None
    except ValueError:
        raise BackupError(f"{path} was changed: it is no JSON") from None
    if not isinstance(values, dict) or values.get("sha256") != digest(values):
        raise BackupError(f"{path} was changed after it was written")
    if values["format"] != FORMAT:
        raise BackupError(f"{path} is of format {values['format']}, and this version reads format {FORMAT}")
    for part in ("database", "files"):
        values[part] = {name: StoredFile(**file) for name, file in values[part].items()}
    return Manifest(**values)


def backup_name(now: datetime) -> str:
    """Return the name of a backup of this moment.

    >>> backup_name(datetime(2026, 11, 22, 14, 0, tzinfo=UTC))
    '2026-11-22T140000Z'
    """
    return now.astimezone(UTC).strftime(NAME)
