"""The files of a release while it is made, and the one file that they become: the same bytes for the same contents.

Tables grow side by side, line by line, in a folder on disk; memory does not grow with them. `Folder.pack` then writes
them into a zip in the order of their names, with fixed times and rights and nothing of the machine that did it.
"""

import gzip
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

BLOCK = 1 << 20
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name
REGULAR_FILE = 0o100644 << 16
COMPRESSED = frozenset({".gz", ".parquet", ".zip"})
BINARY = COMPRESSED
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Entry:
    """A file of a release. `lines` counts the ends of lines, None in a file that is no text."""

    path: str
    bytes: int
    sha256: str
    lines: int | None

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "bytes": self.bytes, "sha256": self.sha256, "lines": self.lines}


class Folder:
    """Files being written below a root; each is hashed once it is whole."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._entries: dict[str, Entry] = {}

    def path(self, name: str) -> Path:
        """Return where the file of that name belongs; its folder is made."""
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or place.as_posix() != name:
            raise ValueError(f"a file of a release lies inside it, not at {name!r}")
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        with self.path(name).open("wb", buffering=BLOCK) as stream:
            yield stream

    def write(self, name: str, content: str | bytes) -> None:
        self.path(name).write_bytes(content.encode() if isinstance(content, str) else content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a value in the one form that it has here: keys in order, no NaN."""
        self.write(name, json_text(value))

    def write_lines(self, name: str, rows: Iterable[Any]) -> None:
        """Write a JSON object a line."""
        with self.open(name) as stream:
            stream.writelines(json_line(row) for row in rows)

    @contextmanager
    def open_gzip(self, name: str) -> Iterator[BinaryIO]:
        """Open a compressed file that names neither itself nor the time."""
        with self.open(name) as stream, gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
            yield cast(BinaryIO, packed)

    def names(self) -> list[str]:
        """Return the names of all files, byte by byte in order."""
        paths = (path for path in self.root.rglob("*") if path.is_file())
        return sorted((path.relative_to(self.root).as_posix() for path in paths), key=os.fsencode)

    def entries(self) -> list[Entry]:
        """Return all files, which are whole, in the order of their names; a later call hashes only newer ones."""
        for name in self.names():
            if name not in self._entries:
                self._entries[name] = self.entry(name)
        return [self._entries[name] for name in self.names()]

    def entry(self, name: str) -> Entry:
        with self.path(name).open("rb") as stream:
            blocks = iter(lambda: stream.read(BLOCK), b"")
            return entry_of(name, blocks)

    def pack(self, target: Path, top: str, progress: Progress = lambda *_: None) -> None:
        """Write all files into a zip, inside one folder named `top`. The same files make the same bytes."""
        names = self.names()
        total = sum(self.path(name).stat().st_size for name in names)
        done = 0
        with zipfile.ZipFile(target, "w", allowZip64=True) as archive:
            for name in names:
                path = self.path(name)
                member = zipfile.ZipInfo(f"{top}/{name}", LONG_AGO)
                member.create_system, member.external_attr = 3, REGULAR_FILE
                stored = path.suffix in COMPRESSED
                member.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                member.file_size = path.stat().st_size
                with path.open("rb") as source, archive.open(member, "w") as packed:
                    while block := source.read(BLOCK):
                        packed.write(block)
                        done += len(block)
                        progress(done, total)


def entry_of(name: str, blocks: Iterable[bytes]) -> Entry:
    """Return what the manifest says of a file, from its contents."""
    digest, size, lines = sha256(), 0, 0
    for block in blocks:
        digest.update(block)
        size += len(block)
        lines += block.count(b"\n")
    is_text = PurePosixPath(name).suffix not in BINARY
    return Entry(name, size, digest.hexdigest(), lines if is_text else None)


def json_text(value: Any) -> str:
    """Return a value as readable JSON, always the same for the same value.

    >>> json_text({"b": 1, "a": ["é"]})
    '{\\n  "a": [\\n    "é"\\n  ],\\n  "b": 1\\n}\\n'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False) + "\n"


def json_line(value: Any) -> bytes:
    """Return a value as one line of JSON; its keys keep their order.

    >>> json_line({"b": 1.5, "a": None})
    b'{"b":1.5,"a":null}\\n'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def digest_of(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its size."""
    digest = sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest(), path.stat().st_size
