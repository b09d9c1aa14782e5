"""A zip of files: what is in it, each file as a stream, and its pages as documents."""

import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, BinaryIO, cast

from judging.containers import zip_kind
from judging.faults import Faults
from judging.file_options import PLAIN, Changes, FileOptions
from judging.recognise import HEAD_BYTES, recognise
from judging.records import DocumentRecord, read_documents
from judging.textfiles import CONTROL, Source, TrecFormatError, binary
from judging.zip_limits import DAMAGED, checked_zip

IN_MEMORY = 8 << 20
START_BYTES = 4096  # of each member, to find zips in the zip
HTML_ENDINGS = (".html", ".htm", ".xhtml")
# What systems put into zips by themselves.
SYSTEM_FOLDERS = ("__MACOSX",)
SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class Member:
    """A file in a zip: its path, which is its name, and its uncompressed size."""

    name: str
    n_bytes: int


class Archive:
    """An open zip whose members may all be read.

    `passed_over` are the names of files that a system put there.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.name = name
        self._archive = archive
        self._infos: dict[str, zipfile.ZipInfo] = {}
        passed_over = []
        for info in archive.infolist():
            path = _safe_path(info, name)
            if info.is_dir() or not path:
                continue
            if _is_of_system(path):
                passed_over.append(path)
            elif path in self._infos:
                raise TrecFormatError(name, 1, 1, f"{path[:200]} is twice in the zip")
            else:
                self._infos[path] = info
        self.members = tuple(Member(path, info.file_size) for path, info in self._infos.items())
        self.passed_over = tuple(passed_over)
        for member in self.members:
            self._refuse_nested(member)

    @property
    def shared_folder(self) -> str:
        """Return the folder that all members are in, with its slash, or ``""``."""
        folders = {member.name.partition("/")[0] if "/" in member.name else "" for member in self.members}
        return f"{folders.pop()}/" if len(folders) == 1 and folders != {""} else ""

    def head(self, member: Member, size: int = HEAD_BYTES) -> bytes:
        """Return the member's first bytes, as `recognise` wants them. Raises TrecFormatError."""
        try:
            with self._archive.open(self._infos[member.name]) as stream:
                return stream.read(size)
        except DAMAGED as error:
            raise self._damage_error(member, error) from None

    def open(self, member: Member) -> BinaryIO:
        """Return the member as a file that can seek; TrecFormatError if it is damaged."""
        copy = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY, prefix="member-")  # noqa: SIM115 (the caller closes it)
        try:
            with self._archive.open(self._infos[member.name]) as stream:
                while block := stream.read(1 << 20):
                    copy.write(block)
        except DAMAGED as error:
            copy.close()
            raise self._damage_error(member, error) from None
        copy.seek(0)
        return cast(BinaryIO, copy)

    def _damage_error(self, member: Member, error: BaseException) -> TrecFormatError:
        return TrecFormatError(self.name, 1, 1, f"{member.name[:200]} is damaged in the zip ({error})")

    def _refuse_nested(self, member: Member) -> None:
        start = self.head(member, START_BYTES)
        if start.startswith((b"PK\x03\x04", b"PK\x05\x06")) and zip_kind(member.name, start) == "zip":
            raise TrecFormatError(
                self.name, 1, 1, f"{member.name[:200]} is a zip in the zip; unpack it first"
            )


def _safe_path(info: zipfile.ZipInfo, name: str) -> str:
    """Return the member's path with slashes; one that leads out of the zip, or is a link, is refused."""
    path = info.filename.replace("\\", "/")
    parts = path.split("/")
    reason = ""
    if path.startswith("/") or (len(path) > 1 and path[1] == ":"):
        reason = "has an absolute path"
    elif ".." in parts:
        reason = "leads out of the zip"
    elif CONTROL.search(path) or any(character < " " for character in path):
        reason = "has a control character in its name"
    elif stat.S_ISLNK(info.external_attr >> 16):
        reason = "is a link"
    if reason:
        raise TrecFormatError(name, 1, 1, f"{path[:200]!r} {reason}")
    return "/".join(part for part in parts if part not in ("", "."))


def _is_of_system(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in SYSTEM_FOLDERS or parts[-1] in SYSTEM_FILES or parts[-1].startswith("._")


@contextmanager
def open_zip(source: Source, name: str) -> Iterator[Archive]:
    """Open a zip; TrecFormatError for one with more than 10,000 members or that expands to over 200 times its size,
    and for members that are encrypted, links, zips themselves, or have a path that is absolute or leads out.

    >>> import io
    >>> data = io.BytesIO()
    >>> with zipfile.ZipFile(data, "w") as made:
    ...     made.writestr("pages/a.html", "<title>A</title>")
    >>> with open_zip(data, "pages.zip") as archive:
    ...     print(archive.members, archive.shared_folder)
    (Member(name='pages/a.html', n_bytes=16),) pages/
    """
    with binary(source) as stream, checked_zip(cast(IO[bytes], stream), name) as archive:
        yield Archive(archive, name)


def read_pages(
    archive: Archive,
    members: Sequence[Member],
    *,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
    changes: Changes | None = None,
) -> Iterator[DocumentRecord]:
    """Return each of the members, HTML or text, as a document whose id is its path.

    A page is read in the encoding that it has for certain, or else in that of the options.
    """
    for member in members:
        found = recognise(member.name, archive.head(member))
        is_html = found.is_html or member.name.lower().endswith(HTML_ENDINGS)
        encoding = found.encoding if found.is_encoding_sure else options.encoding
        chosen = replace(options, encoding="" if encoding == "utf-8" else encoding, is_html=is_html)
        with archive.open(member) as stream:
            yield from read_documents(
                stream, member.name, file_format="page", faults=faults, options=chosen, changes=changes
            )
