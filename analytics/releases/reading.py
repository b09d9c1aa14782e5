"""Open a release, a zip or the folder it unpacks to: what it says of itself, whether that is so, and its tables.

Nothing is unpacked to be read, except by `OpenRelease.on_disk`, which takes the files that the manifest names and no
others: a zip from a stranger cannot write elsewhere, and cannot grow beyond what its manifest says.
"""

import gzip
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

from analytics.releases.formats import file_of
from analytics.releases.manifest import FORMATS, MANIFEST, differences
from judging.trec import (
    JudgmentRecord,
    PrelRecord,
    QrelRecord,
    RunRecord,
)

BLOCK = 1 << 20
MOST_MANIFEST = 64 << 20  # bytes of a manifest
PLACES = "TOUCHSTONE_RELEASES"  # names the folders to look in, separated as in PATH
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
)  # what a bad zip may raise
USUAL_PLACE = Path("~/.touchstone/releases")


class ReleaseUnreadable(ValueError):
    """What was named is no release, or is damaged; the words say which file and why."""


class _Files(Protocol):
    def names(self) -> list[str]: ...
    def open(self, name: str) -> IO[bytes]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class _Folder:
    root: Path

    def names(self) -> list[str]:
        paths = (
            path for path in self.root.rglob("*") if path.is_file() and path.parent.name != "__pycache__"
        )
        return sorted(path.relative_to(self.root).as_posix() for path in paths)

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")

    def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True)
class _Zip:
    archive: zipfile.ZipFile
    top: str

    def names(self) -> list[str]:
        members = (info.filename for info in self.archive.infolist() if not info.is_dir())
        return sorted(name.removeprefix(self.top) for name in members)

    def open(self, name: str) -> IO[bytes]:
        return self.archive.open(f"{self.top}{name}")

    def close(self) -> None:
        self.archive.close()


@dataclass(frozen=True)
class OpenRelease:
    """A release that can be read. Close it, or use it in a `with` statement."""

    path: Path
    manifest: Mapping[str, Any]
    _files: _Files = field(repr=False)

    def __enter__(self) -> "OpenRelease":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._files.close()

    @property
    def slug(self) -> str:
        return str(self.manifest["slug"])

    @property
    def version(self) -> str:
        return str(self.manifest["version"])

    # -- files ------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all files that are there, the manifest among them."""
        return self._files.names()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file that the manifest names, as bytes."""
        if name != MANIFEST and name not in self.sizes:
            raise ReleaseUnreadable(f"{self.path}: the release has no file {name}")
        try:
            stream = self._files.open(name)
        except (OSError, KeyError, *BROKEN) as error:
            raise ReleaseUnreadable(f"{self.path}: {name} cannot be read ({error})") from error
        with stream:
            yield stream

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield a file's contents; ReleaseUnreadable once they are more than the manifest says."""
        left = self.sizes.get(name, MOST_MANIFEST)
        with self.open(name) as stream:
            try:
                while block := stream.read(BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise ReleaseUnreadable(f"{self.path}: {name} is longer than its manifest says")
                    yield block
            except BROKEN as error:
                raise ReleaseUnreadable(f"{self.path}: {name} is damaged ({error})") from error

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Return the size of every file, as the manifest says."""
        return {entry["path"]: int(entry["bytes"]) for entry in self.manifest["files"]}

    def text(self, name: str) -> str:
        return b"".join(self.blocks(name)).decode()

    def value(self, name: str) -> Any:
        """Return what a JSON file says."""
        try:
            return json.loads(self.text(name))
        except ValueError as error:
            raise ReleaseUnreadable(f"{self.path}: {name} is no JSON ({error})") from error

    def rows(self, name: str) -> Iterator[Any]:
        """Yield the rows of a file, as RELEASE_FILES says how to read it."""
        read = file_of(name).read
        if read is None:
            raise ReleaseUnreadable(f"{self.path}: {name} is no table of rows")
        with self.open(name) as stream:
            try:
                yield from read(stream, name)
            except ValueError as error:
                raise ReleaseUnreadable(f"{self.path}: {error}") from error

    def differences(self) -> list[str]:
        """Return what is not as the manifest says, file by file; nothing if the release is whole."""

        there = self.names()

        def read(name: str) -> Iterator[bytes]:
            if name not in there:
                raise KeyError(name)
            with suppress(ReleaseUnreadable):  # what is missing of it then differs
                yield from self.blocks(name)

        return differences(read, there, self.manifest)

    @contextmanager
    def on_disk(self, names: Collection[str]) -> Iterator[Path]:
        """Give the folder in which the wanted files lie: those of a zip are unpacked, for as long as it is open."""
        if isinstance(self._files, _Folder):
            yield self._files.root
            return
        with tempfile.TemporaryDirectory(prefix="touchstone-release-") as folder:
            for name in self.sizes.keys() & set(names):
                if not _is_inside(name):
                    raise ReleaseUnreadable(f"{self.path}: {name} would lie outside the release")
                target = Path(folder, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as copy:
                    copy.writelines(self.blocks(name))
            yield Path(folder)

    # -- tables -----------------------------------------------------------------------------------------------

    def topics(self) -> Iterator[dict[str, Any]]:
        """Yield topic_id, title, description, narrative."""
        return self.rows("topics.jsonl")

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield doc_id, title, text; of a release without texts, doc_id alone with the text's hash."""
        return self.rows("documents.jsonl")

    def qrels(self) -> Iterator[QrelRecord]:
        return self.rows("qrels.txt")

    def qrels_jg(self) -> Iterator[JudgmentRecord]:
        return self.rows("qrels_jg.txt")

    def prels(self) -> Iterator[PrelRecord]:
        return self.rows("prels.txt")

    def runs(self) -> dict[str, str]:
        """Return the files of the runs that are published, by run."""
        return {run["run_id"]: run["file"] for run in self.value("runs.json") if run["file"]}

    def run(self, run_id: str) -> Iterator[RunRecord]:
        """Yield the lines of a published run, best documents first."""
        files = self.runs()
        if run_id not in files:
            raise ReleaseUnreadable(f"{self.path}: the run {run_id} is not in the release")
        with self.open(files[run_id]) as packed, gzip.open(packed, "rt", encoding="utf-8") as lines:
            for line in lines:
                topic, _, document, rank, score, _ = line.split()
                yield RunRecord(topic, document, int(rank), float(score))


def _is_inside(name: str) -> bool:
    place = PurePosixPath(name)
    return not place.is_absolute() and ".." not in place.parts and "\\" not in name and ":" not in name


# -- opening -----------------------------------------------------------------------------------------------------


def open_release(path: str | os.PathLike[str]) -> OpenRelease:
    """Return the release at a path: a zip, or a folder with a manifest. Only the manifest is read.

    Raises
    ------
    ReleaseUnreadable
        Nothing there, no zip, no manifest, another format.
    """
    place = Path(path)
    files: _Files
    if place.is_dir():
        if not (place / MANIFEST).is_file():
            raise ReleaseUnreadable(f"{place}: not a release, it has no {MANIFEST}")
        files = _Folder(place)
    elif not place.exists():
        raise ReleaseUnreadable(f"{place}: there is no such file or folder")
    else:
        files = _zip(place)
    try:
        with files.open(MANIFEST) as stream:
            content = stream.read(MOST_MANIFEST)
        manifest = _check(json.loads(content))
    except (ValueError, KeyError, TypeError, OSError, *BROKEN) as error:
        files.close()
        raise ReleaseUnreadable(f"{place}: its {MANIFEST} cannot be used ({error})") from error
    return OpenRelease(place, manifest, files)


def _zip(place: Path) -> _Zip:
    try:
        archive = zipfile.ZipFile(place)
    except (OSError, zipfile.BadZipFile) as error:
        raise ReleaseUnreadable(f"{place}: not a release, it is no zip file ({error})") from error
    tops = [info.filename.removesuffix(MANIFEST) for info in archive.infolist()]
    tops_with_manifest = [
        top for top, info in zip(tops, archive.infolist(), strict=True) if info.filename == f"{top}{MANIFEST}"
    ]
    at_top = [top for top in tops_with_manifest if top.count("/") <= 1]
    if len(at_top) != 1:
        archive.close()
        raise ReleaseUnreadable(f"{place}: not a release, it has no {MANIFEST}")
    strangers = [info.filename for info in archive.infolist() if not info.filename.startswith(at_top[0])]
    if strangers:
        archive.close()
        raise ReleaseUnreadable(f"{place}: {strangers[0]} lies beside the release's folder")
    return _Zip(archive, at_top[0])


def _check(manifest: Any) -> dict[str, Any]:
    """Return the manifest; ValueError where it is none of a format that is known."""
    if not isinstance(manifest, dict) or manifest.get("touchstone_release") not in FORMATS:
        raise ValueError(f"it is not of format {' or '.join(map(str, FORMATS))}")
    for name in ("slug", "version", "files", "merkle_root"):
        if name not in manifest:
            raise ValueError(f"it does not say {name}")
    for entry in manifest["files"]:
        if not isinstance(entry["path"], str) or not isinstance(entry["bytes"], int):
            raise ValueError(f"it lists {entry!r}")
    return manifest


# -- finding -----------------------------------------------------------------------------------------------------


def places() -> list[Path]:
    """Return the folders in which releases are looked for: $TOUCHSTONE_RELEASES, then ~/.touchstone/releases."""
    named = [Path(name) for name in os.environ.get(PLACES, "").split(os.pathsep) if name]
    return [*named, USUAL_PLACE.expanduser()]


def find_release(slug: str, version: str) -> OpenRelease:
    """Return the release of that campaign and version, from the first of the `places` that has it.

    Raises
    ------
    ReleaseUnreadable
        No place has it; the words name them all.
    """
    for folder in places():
        for candidate in _candidates(folder, f"{slug}-{version}"):
            try:
                release = open_release(candidate)
            except ReleaseUnreadable:
                continue
            if (release.slug, release.version) == (slug, version):
                return release
            release.close()
    looked = ", ".join(str(folder) for folder in places())
    raise ReleaseUnreadable(
        f"no release {slug} {version}: looked for {slug}-{version}.zip, or its folder, in {looked}; {PLACES} names "
        "other folders"
    )


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield what has the usual name first, then whatever else may be a release."""
    usual = [folder / name, folder / f"{name}.zip"]
    yield from (path for path in usual if path.exists())
    if folder.is_dir():
        others = (path for path in sorted(folder.iterdir()) if path not in usual)
        yield from (path for path in others if path.suffix == ".zip" or (path / MANIFEST).is_file())
