"""A backup is made: first the database, then the files that its rows name, last the manifest."""

import os
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from touchstone.backups import BackupError, postgres
from touchstone.backups.folder import (
    BASE,
    DUMP,
    Backups,
    Manifest,
    StoredFile,
    backup_name,
    hash_of,
    sync_folder,
    write_manifest,
)
from touchstone.backups.objects import ObjectStore, copy_objects
from touchstone.files import MOMENTS

STATE = """
SELECT current_setting('server_version_num')::int, (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id FROM pg_control_checkpoint()), pg_current_wal_insert_lsn()::text, clock_timestamp()
"""
MAY_REPLICATE = "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user"


def back_up(
    backups: Backups,
    address: str,
    media: Path | ObjectStore,
    *,
    schema: str,
    heads: dict[str, str],
    dump: bool = False,
) -> Path:
    """Make one backup and return its folder.

    Parameters
    ----------
    address : of the database; the role must be allowed to replicate, or `dump` be chosen
    media : the folder of the files, or where their objects are
    schema, heads : of the database as it is, for the manifest

    Raises
    ------
    BackupError
        The sentence says why. Nothing that counts as a backup is left.
    """
    start = datetime.now(UTC)
    folder = backups.root / backup_name(start)
    if folder.exists():
        raise BackupError(f"{folder} is there already: two backups need two seconds")
    draft = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        number, system, timeline, start_lsn, _ = postgres.ask(address, STATE)
        refuse_another(backups, system)
        _copy_database(address, draft, number // 10_000, dump)
        _, _, _, end_lsn, end = postgres.ask(address, STATE)
        # Files are only added: whatever a row of the copy names is there now.
        files = copy_files(backups, media)
        manifest = Manifest(
            version=version("touchstone"),
            postgresql=number,
            system=system,
            timeline=timeline,
            schema=schema,
            start=start.isoformat(),
            end=(start if dump else end).astimezone(UTC).isoformat(),
            start_lsn=start_lsn,
            end_lsn=end_lsn,
            heads=heads,
            database={name: hash_of(draft / name) for name in _names(draft)},
            files=files,
        )
        write_manifest(draft, manifest)
        draft.rename(folder)
        sync_folder(backups.root)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return folder


def refuse_another(backups: Backups, system: str) -> None:
    """Refuse a cluster whose backups the folder does not hold.

    Raises
    ------
    BackupError
        The newest backup is of another cluster.
    """
    newest = backups.newest()
    if newest is not None and newest.system != system:
        raise BackupError(f"{backups.root} holds backups of another cluster: choose another folder")


def _copy_database(address: str, draft: Path, major: int, dump: bool) -> None:
    target = postgres.without_password(address)
    if dump:
        # A session is a log-in: who reads the dump could be anybody. The table itself is there, and empty.
        options = [
            "--format=custom",
            "--exclude-table-data=*.django_session",
            f"--file={draft / DUMP}",
            "--no-password",
            f"--dbname={target}",
        ]
        postgres.run([postgres.tool("pg_dump", major), *options], address)
        return
    if postgres.ask(address, MAY_REPLICATE) != (True,):
        raise BackupError(
            "the database's role may not replicate: set DATABASE_BACKUP_URL to one that may, such as "
            "touchstone_backup, or choose --dump"
        )
    postgres.tool("pg_waldump", major)  # the check needs it: better no copy than one that cannot be checked
    options = [f"--pgdata={draft / BASE}", "--format=plain", "--wal-method=stream", "--checkpoint=fast"]
    options += ["--manifest-checksums=SHA256", "--no-password", f"--dbname={target}"]
    postgres.run([postgres.tool("pg_basebackup", major), *options], address)


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def copy_files(
    backups: Backups,
    media: Path | ObjectStore,
    known: dict[str, tuple[int, int]] | None = None,
    at_rest: float | None = None,
) -> dict[str, StoredFile]:
    """Copy files into the store and return them by their paths below `media`.

    Parameters
    ----------
    known : size and time of change of the files that were copied before, which are passed over; grows
    at_rest : seconds for which a file must not have been written
    """
    if not isinstance(media, Path):
        return copy_objects(backups, media, known, at_rest)
    copied = {}
    youngest = datetime.now(UTC).timestamp() - (at_rest or 0)
    for path in _files(media):
        name = str(path.relative_to(media))
        if name.startswith(f"{MOMENTS}/"):
            continue
        try:
            found = path.stat()
            seen = (found.st_size, found.st_mtime_ns)
            is_known = known is not None and known.get(name) == seen
            if is_known or (at_rest is not None and found.st_mtime > youngest):
                continue
            copied[name] = backups.keep(path)
        except FileNotFoundError:
            if path.exists():
                raise
            continue  # an upload that was read or given up was deleted meanwhile: no row names it
        if known is not None:
            known[name] = seen
    return copied


def _files(folder: Path) -> Iterable[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in sorted(names))


def tell(say: Callable[[str], None], folder: Path, manifest: Manifest) -> None:
    """Say what was made, and what it does not hold."""
    size = sum(file.size for part in (manifest.database, manifest.files) for file in part.values())
    say(
        f"{folder}: {'dump' if manifest.is_dump else 'copy'} of the database and {len(manifest.files)} files,"
    )
    say(
        f"{size / 1e6:,.1f} MB. SECRET_KEY (of an embedded stack, var/secrets/django) is not in it: keep it apart,"
    )
    say("where others cannot read it; without it, pseudonyms in later exports differ from earlier ones.")
    secret = "webhooks' secrets" if manifest.is_dump else "webhooks' secrets, log-ins"
    say(f"Guard the backup like the database: it holds {secret}, and who judged what.")
