"""Files that a kill at any moment leaves either as they were or as they were to become.

A file is written under another name, brought to the disk and renamed. A line is appended in one piece; where the last
one has no end it is torn, counts as not there and is cut off before the next. Every name is fixed, so a step that is
done again finds and overwrites what its first attempt left.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PART = ".part"  # behind the name of a file that is not complete yet


def make_folder(path: Path) -> None:
    """Make the folder, and those above it, unless they are there."""
    if path.is_dir():
        return
    make_folder(path.parent)
    os.mkdir(path)
    _keep_names(path.parent)


def write_file(path: Path, content: bytes) -> None:
    """Put the file there as a whole; nothing is done where it has this content already."""
    if path.is_file() and path.read_bytes() == content:
        return
    part = path.with_name(path.name + PART)
    with _open_file(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as target:
        _write(target, content)
    os.replace(part, path)
    _keep_names(path.parent)


def append_line(path: Path, line: bytes) -> None:
    """Append a line, given without its end, behind the last whole one."""
    is_new = not path.exists()
    with _open_file(path, os.O_WRONLY | os.O_CREAT) as target:
        end = len(_whole(path.read_bytes()))
        os.truncate(target, end)
        os.lseek(target, end, os.SEEK_SET)
        _write(target, line + b"\n")
    if is_new:
        _keep_names(path.parent)


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines that were written to their end; none where there is no file.

    >>> whole_lines(Path("nowhere"))
    []
    """
    return _whole(path.read_bytes()).splitlines() if path.exists() else []


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _whole(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


@contextmanager
def _open_file(path: Path, flags: int) -> Iterator[int]:
    target = os.open(path, flags, 0o666)
    try:
        yield target
    finally:
        os.close(target)


def _write(target: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(target, left) :]
    os.fsync(target)


def _keep_names(folder: Path) -> None:
    """Bring the names in a folder to the disk; where folders cannot be opened (Windows) there is no need to."""
    if os.name != "posix":
        return
    with _open_file(folder, os.O_RDONLY) as names:
        os.fsync(names)
