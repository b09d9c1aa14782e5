"""Copies of stored files on this machine's disk, found by the SHA-256 of their bytes, and within a bound.

A file in the cache is whole or not there: it is written under another name, hashed, and renamed. Every process marks
what it uses by a lock on one byte of a file, at a place that the SHA-256 gives; what is locked is not removed, and the
kernel forgets the locks of who dies. Nothing here imports Django.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

Fetch = Callable[[BinaryIO], str]
STALE = 24 * 3600.0  # seconds after which what a killed process was fetching is removed


class FileDamaged(OSError):
    """The bytes of a file are not those that were stored."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.EIO, "the file is not the one that was stored", name)


class HeldPath(type(Path())):  # type: ignore[misc]  # the class of the system's paths
    """The place of a file that stays there while this object lives; a path made from it does not keep the file."""


class FileCache:
    """The files below one folder, for all processes of this machine; one object a process and folder.

    Parameters
    ----------
    limit : bytes; what is in use may exceed it
    floor : bytes that stay free on the disk, for which files that nobody uses give way
    """

    def __init__(self, root: Path, limit: int, floor: int = 0) -> None:
        self.root, self.limit, self.floor = root, limit, floor
        for folder in (self._files, self._names, self._drafts):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Once: closing any other handle of it would give up all locks of this process.
        self._in_use = os.open(root / "in-use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: Counter[str] = Counter()
        self._checked: dict[str, int] = {}  # the inodes that this process has hashed
        self._mutex = threading.RLock()  # a HeldPath may end, and take it, while this thread has it
        os.register_at_fork(after_in_child=self._after_fork)

    @property
    def _files(self) -> Path:
        return self.root / "files"

    @property
    def _names(self) -> Path:
        return self.root / "names"

    @property
    def _drafts(self) -> Path:
        return self.root / "drafts"

    def get(self, name: str, fetch: Fetch) -> Path:
        """Return the place of the file of this name, which never has other bytes; it stays while the path lives.

        `fetch` writes the file and returns the SHA-256 that was noted when it was stored, or nothing. Raise FileDamaged
        if the bytes have another.
        """
        sha256 = self._known_hash(name)
        if sha256:
            held = self._hold(sha256)
            if self._is_whole(held, sha256):
                os.utime(held)
                return held
        return self._copy(name, fetch)

    def _known_hash(self, name: str) -> str:
        """Return the SHA-256 of the file of this name, if it was here before: the target of a link to nothing."""
        try:
            return os.readlink(self._link(name))
        except FileNotFoundError:
            return ""

    def _note(self, name: str, sha256: str) -> None:
        draft = self._draft()
        draft.symlink_to(sha256)
        draft.replace(self._link(name))

    def _link(self, name: str) -> Path:
        return self._names / hashlib.sha256(name.encode()).hexdigest()

    def _place(self, sha256: str) -> Path:
        return self._files / sha256[:2] / sha256

    def _draft(self) -> Path:
        return self._drafts / uuid.uuid4().hex

    def _is_whole(self, path: Path, sha256: str) -> bool:
        """Return whether the file is there and, at this process's first look, has its bytes."""
        try:
            inode = path.stat().st_ino
            if self._checked.get(sha256) != inode:
                if _sha256_of(path) != sha256:
                    return False
                self._checked[sha256] = inode
        except FileNotFoundError:
            return False
        return True

    def _copy(self, name: str, fetch: Fetch) -> Path:
        draft = self._draft()
        try:
            with draft.open("xb") as target:
                noted = fetch(target)
                target.flush()
                os.fsync(target.fileno())
            found = _sha256_of(draft)
            if noted and noted != found:
                raise FileDamaged(name)
            held = self._hold(found)
            held.parent.mkdir(mode=0o700, exist_ok=True)
            self._checked[found] = draft.stat().st_ino
            draft.replace(held)
        finally:
            draft.unlink(missing_ok=True)
        self._note(name, found)
        self._make_room()
        return held

    # -- what is in use ---------------------------------------------------------------------------------------------

    def _hold(self, sha256: str) -> HeldPath:
        with self._mutex:
            if not self._held[sha256]:
                fcntl.lockf(self._in_use, fcntl.LOCK_SH, 1, _offset(sha256))
            self._held[sha256] += 1
        held = HeldPath(self._place(sha256))
        weakref.finalize(held, self._let_go, sha256).atexit = False
        return held

    def _let_go(self, sha256: str) -> None:
        with self._mutex:
            self._held[sha256] -= 1
            if not self._held[sha256]:
                del self._held[sha256]
                fcntl.lockf(self._in_use, fcntl.LOCK_UN, 1, _offset(sha256))

    def _after_fork(self) -> None:
        """Take anew, in a child, the locks for what it has of its parent: locks are not handed down."""
        self._mutex = threading.RLock()
        for sha256 in self._held:
            fcntl.lockf(self._in_use, fcntl.LOCK_SH, 1, _offset(sha256))

    # -- the bound --------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Remove what was not used for the longest time, until the rest is within the bound or in use."""
        found = sorted(_with_size_and_time(self._files.glob("??/*")), key=lambda one: one[2])
        total = sum(size for _, size, _ in found)
        room = min(self.limit, total + shutil.disk_usage(self.root).free - self.floor)
        removed = set()
        for path, size, _ in found:
            if total <= room:
                break
            if self._is_removed(path):
                removed.add(path.name)
                total -= size
        if removed:
            self._forget(removed)
        for path, _, changed in _with_size_and_time(self._drafts.iterdir()):
            if time.time() - changed > STALE:
                path.unlink(missing_ok=True)

    def _is_removed(self, path: Path) -> bool:
        """Remove a file unless a process uses it; return whether it is gone."""
        offset = _offset(path.name)
        with self._mutex:
            if self._held[path.name]:  # one's own locks do not stop oneself
                return False
            try:
                fcntl.lockf(self._in_use, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except (BlockingIOError, PermissionError):
                return False
            try:
                path.unlink(missing_ok=True)
            finally:
                fcntl.lockf(self._in_use, fcntl.LOCK_UN, 1, offset)
        self._checked.pop(path.name, None)
        return True

    def _forget(self, removed: set[str]) -> None:
        for link in self._names.iterdir():
            try:
                is_gone = os.readlink(link) in removed
            except FileNotFoundError:  # another process forgot it
                continue
            if is_gone:
                link.unlink(missing_ok=True)


def _offset(sha256: str) -> int:
    """Return the byte that is locked for a file; two files with the same one would only be kept together."""
    return int(sha256[:15], 16)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _with_size_and_time(paths: Iterable[Path]) -> list[tuple[Path, int, float]]:
    found = []
    for path in paths:
        try:
            known = path.lstat()
        except FileNotFoundError:  # another process removed it
            continue
        found.append((path, known.st_size, known.st_mtime))
    return found
