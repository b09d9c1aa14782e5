"""A backup is checked: every byte against its manifest, and the log that leads to the second of its end."""

import json
from datetime import UTC, datetime
from pathlib import Path

from touchstone.backups import BackupError, postgres
from touchstone.backups.folder import (
    BASE,
    CHECKED,
    MANIFEST,
    Backups,
    Manifest,
    StoredFile,
    hash_of,
    read_manifest,
    write_durably,
)


def faults_of(folder: Path) -> list[str]:
    """Return what is wrong with the backup, a sentence each; none if all is as it was written.

    Raises
    ------
    BackupError
        It is no complete backup, or its manifest was changed.
    """
    manifest = read_manifest(folder)
    backups = Backups(folder.parent)
    found = _faults_of_files({folder / name: file for name, file in manifest.database.items()})
    known = {*manifest.database, MANIFEST, CHECKED}
    unknown = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - known
    found += [f"{folder / name} does not belong to the backup" for name in sorted(unknown)]
    found += _faults_of_files({backups.place(file.sha256): file for file in manifest.files.values()})
    if not found and not manifest.is_dump:
        found += _faults_of_copy(folder / BASE, manifest)
    return found


def _faults_of_copy(base: Path, manifest: Manifest) -> list[str]:
    """Return where the copy differs from what the server said that it sent, and where its log breaks off.

    That is pg_verifybackup's work. The one in the wheel of PostgreSQL 18.4 crashes at its start.
    """
    sent = json.loads((base / "backup_manifest").read_bytes())
    known = {f"{BASE}/{_path_of(file)}": file["Checksum"] for file in sent["Files"]}
    found = [
        f"{base.parent / name} is not what the server sent"
        for name, checksum in sorted(known.items())
        if name not in manifest.database or manifest.database[name].sha256 != checksum
    ]
    tool = postgres.tool("pg_waldump", manifest.major)
    for part in sent["WAL-Ranges"]:
        options = [
            f"--timeline={part['Timeline']}",
            f"--start={part['Start-LSN']}",
            f"--end={part['End-LSN']}",
        ]
        try:
            postgres.run([tool, "--quiet", f"--path={base / 'pg_wal'}", *options])
        except BackupError as error:
            found.append(str(error))
    return found


def _path_of(file: dict[str, str]) -> str:
    """Return the path of a file; one that is no UTF-8 is written in hexadecimal digits."""
    return (
        file["Path"]
        if "Path" in file
        else bytes.fromhex(file["Encoded-Path"]).decode(errors="surrogateescape")
    )


def _faults_of_files(files: dict[Path, StoredFile]) -> list[str]:
    found = []
    for path, file in sorted(files.items()):
        try:
            now = hash_of(path)
        except OSError as error:
            found.append(f"{path} cannot be read: {error.strerror}")
            continue
        if now != file:
            found.append(f"{path} was changed")
    return found


def refuse_damaged(folder: Path) -> None:
    """Check the backup and change nothing.

    Raises
    ------
    BackupError
        It is not whole.
    """
    if found := faults_of(folder):
        shown = "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
        raise BackupError(f"{folder} is damaged: {shown}")


def check(folder: Path) -> None:
    """Check the backup, and note in its folder that it was found whole.

    Raises
    ------
    BackupError
        It is not.
    """
    try:
        refuse_damaged(folder)
    except BackupError:
        (folder / CHECKED).unlink(missing_ok=True)
        raise
    write_durably(folder / CHECKED, json.dumps({"at": datetime.now(UTC).isoformat()}))
