"""The parts of an upload: its files, and those in its archives. Web pages of an archive are one part, so are images.

Parts are opened for as long as a look or an import takes: what comes out of an archive stands in a temporary folder.
"""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from django.conf import settings

from judging.faults import TrecFormatError
from judging.recognise import HEAD_BYTES, recognise
from judging.zipped import Archive, Member, open_zip

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
PAGE, IMAGES = "page", "images"  # file_format of a document of its own; the kind of pictures


@dataclass(frozen=True)
class StoredUpload:
    """An uploaded file: where it is kept, its name, and where this machine has it."""

    stored: str
    name: str
    path: Path


@dataclass
class Part:
    """What is looked at and kept as one: a file, or all web pages, or all images, of an archive.

    `path` is the file's own, of pages and images the archive's. `fault` says why it could not be opened.
    """

    name: str
    upload: StoredUpload
    path: Path
    n_bytes: int
    head: bytes = b""
    members: Sequence[Member] = ()
    fault: str = ""
    passed_over: Sequence[str] = field(default_factory=tuple)
    digest: str = ""

    @property
    def n_files(self) -> int:
        return len(self.members) or 1

    def sha256(self) -> str:
        if not self.digest:
            with self.path.open("rb") as stream:
                self.digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return self.digest


@contextmanager
def opened_parts(uploads: Sequence[StoredUpload]) -> Iterator[list[Part]]:
    """Yield the parts of these files. An archive that cannot be read is a part with a fault."""
    with TemporaryDirectory(prefix="upload-") as folder:
        parts: list[Part] = []
        for number, upload in enumerate(uploads):
            parts += _parts_of(upload, Path(folder) / str(number))
        _make_distinct(parts)
        yield parts


def _parts_of(upload: StoredUpload, folder: Path) -> list[Part]:
    n_bytes = upload.path.stat().st_size
    with upload.path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    whole = Part(upload.name, upload, upload.path, n_bytes, head)
    if not head.startswith(ZIP_STARTS) or recognise(upload.name, head).container != "zip":
        return [whole]
    try:
        with open_zip(upload.path, upload.name) as archive:
            return _members(upload, archive, folder)
    except TrecFormatError as fault:
        whole.fault = str(fault)
        return [whole]


def _free_space() -> int:
    """Return the free bytes where archives are unpacked."""
    return shutil.disk_usage(gettempdir()).free


def _members(upload: StoredUpload, archive: Archive, folder: Path) -> list[Part]:
    """Return the parts of an archive; its data files are unpacked into the folder."""
    together: dict[str, list[Member]] = {"pages": [], "images": []}
    parts: list[Part] = []
    if sum(member.n_bytes for member in archive.members) > _free_space() - settings.DISK_FLOOR:
        reason = "there is not enough space on the server's disk to unpack it"
        raise TrecFormatError(upload.name, 1, 1, reason)
    for number, member in enumerate(archive.members):
        head = archive.head(member)
        seen = recognise(member.name, head)
        group = "images" if seen.kind == IMAGES else "pages" if seen.file_format == PAGE else ""
        if group:
            together[group].append(member)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / str(number)
        with archive.open(member) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
        parts.append(Part(f"{upload.name}/{member.name}", upload, path, member.n_bytes, head))
    for group, members in together.items():
        if members:
            n_bytes = sum(member.n_bytes for member in members)
            head = archive.head(members[0])
            parts.append(Part(f"{upload.name}: {group}", upload, upload.path, n_bytes, head, members))
    if parts:
        parts[0].passed_over = archive.passed_over
    return parts


def _make_distinct(parts: list[Part]) -> None:
    """Number the names that occur again: an import knows its files by them."""
    seen: dict[str, int] = {}
    for part in parts:
        name = part.name
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            part.name = f"{name} ({seen[name]})"
