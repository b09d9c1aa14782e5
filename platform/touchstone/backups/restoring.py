"""A backup is brought back: into an empty folder as an embedded stack's, or into an empty database."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

from touchstone import binaries, embedded
from touchstone.backups import BackupError, postgres
from touchstone.backups.checking import refuse_damaged
from touchstone.backups.folder import BASE, DUMP, Backups, Manifest, StoredFile, read_manifest
from touchstone.backups.objects import ObjectStore, is_empty, put_objects

LATEST = "latest"
# Somebody by whose name the server can be asked for its superusers: the embedded cluster's own, Debian's, or ours.
ASKED_AS = ("touchstone", "postgres", *embedded.LOGINS)
SUPERUSER = "SELECT rolname FROM pg_roles WHERE rolsuper AND rolcanlogin ORDER BY oid LIMIT 1"
DATABASES = (
    "SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres' ORDER BY datname"
)
SESSIONS = "SELECT schemaname, tablename FROM pg_tables WHERE tablename = 'django_session'"
LONGEST = 6 * 3600  # seconds that the log may take to be replayed
LAST_COMMIT = "last completed transaction was at log time "
# As initdb writes them for the embedded stack.
SETTINGS = {
    "postgresql.conf": "",
    "pg_ident.conf": "",
    "pg_hba.conf": """\
local all         all              scram-sha-256
host  all         all 127.0.0.1/32 scram-sha-256
host  replication all 127.0.0.1/32 scram-sha-256
""",
}
TOO_EARLY = "recovery ended before configured recovery target was reached"


def into_folder(folder: Path, target: Path, to_time: str = "") -> None:
    """Make a folder as an embedded stack has it (TOUCHSTONE_VAR) from a backup and what was written since.

    Parameters
    ----------
    folder : of the backup
    target : absent or empty, but for `secrets/`, into which keys may have been put back before
    to_time : the last second that counts, with its zone; `latest`: all that the log has; empty: the end of the backup

    Raises
    ------
    BackupError
        The sentence says why. The target's database is not there, or not usable.
    """
    manifest = read_manifest(folder)
    _refuse_if_taken(target)
    if manifest.is_dump:
        raise BackupError(f"{folder} is a dump: restore it into an empty database (--into postgresql://...)")
    moment = _moment(to_time, manifest)
    if (major := _own_major()) != manifest.major:
        raise BackupError(f"the backup is of PostgreSQL {manifest.major}, and PostgreSQL {major} is here")
    refuse_damaged(folder)
    embedded.private_folder(target)
    backups = Backups(folder.parent)
    draft = target / "postgres.new"
    try:
        shutil.copytree(folder / BASE, draft)
        (draft / "recovery.signal").touch()
        add_settings(draft)
        _give_to_the_server(draft)
        _replay(draft, _recovery(backups, to_time, moment), target)
        put_files(backups, _files_until(backups, manifest, to_time), target / "files")
        draft.rename(target / "postgres")
    except BaseException:
        for path in set(target.iterdir()) - {target / "secrets"}:  # a second try finds it as empty as before
            shutil.rmtree(path)
        raise


def into_database(folder: Path, address: str, media: Path | ObjectStore) -> None:
    """Fill an empty database, and an empty folder or store of files, from a dump.

    Raises
    ------
    BackupError
        The sentence says why. The database is as empty as before.
    """
    manifest = read_manifest(folder)
    if not manifest.is_dump:
        raise BackupError(f"{folder} is a copy of a whole cluster: restore it into an empty folder")
    number, tables = postgres.ask(address, _TABLES)
    if tables:
        raise BackupError(f"the database is not empty: it has {tables} tables")
    if not is_empty(media):
        raise BackupError(f"{media} is not empty: the backup's files would mix with others")
    if number // 10_000 < manifest.major:
        raise BackupError(f"the dump is of PostgreSQL {manifest.major}, and the server is {number // 10_000}")
    refuse_damaged(folder)
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges", "--no-password"]
    options += [f"--dbname={postgres.without_password(address)}", str(folder / DUMP)]
    postgres.run([postgres.tool("pg_restore", number // 10_000), *options], address)
    put_files(Backups(folder.parent), manifest.files, media)


_TABLES = """
SELECT current_setting('server_version_num')::int,
       (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p'))
"""


def _refuse_if_taken(target: Path) -> None:
    if target.exists() and any(path.name != "secrets" for path in target.iterdir()):
        raise BackupError(f"{target} is not empty: a backup is restored into an empty folder")


def _moment(to_time: str, manifest: Manifest) -> datetime | None:
    if to_time in ("", LATEST):
        return None
    try:
        moment = datetime.fromisoformat(to_time)
    except ValueError:
        raise BackupError(
            f"--to-time {to_time!r} is no time; write 2026-11-22T14:31:07Z, or latest"
        ) from None
    if moment.tzinfo is None:
        raise BackupError(f"--to-time {to_time} names no time zone; write {to_time}Z for UTC")
    if moment < manifest.end_time:
        end = manifest.end_time.isoformat(timespec="seconds")
        raise BackupError(f"--to-time is before the end of this backup, {end}: take an earlier backup")
    if moment > datetime.now(UTC):
        raise BackupError("--to-time has not come yet")
    return moment


def add_settings(cluster: Path) -> None:
    """Write the settings that are not in the copy: Debian keeps them elsewhere, and none starts without."""
    for name, text in SETTINGS.items():
        if not (cluster / name).exists():
            (cluster / name).write_text(text)


def _own_major() -> int:
    return postgres.major_of(binaries.postgres_binaries() / "postgres")


def _give_to_the_server(cluster: Path) -> None:
    """PostgreSQL runs on nothing that belongs to another user, or that others may enter."""
    for path in (cluster, *cluster.rglob("*")):
        if not os.geteuid():
            os.chown(path, binaries.NOBODY, binaries.NOBODY)
        path.chmod(0o700 if path.is_dir() else 0o600)


def _recovery(backups: Backups, to_time: str, moment: datetime | None) -> dict[str, str]:
    """Return the settings by which PostgreSQL replays the log up to the moment, and then takes up its work."""
    if not to_time:
        return {
            "recovery_target": "immediate",
            "recovery_target_action": "promote",
            "restore_command": "false",
        }
    if not any(backups.wal.rglob("?" * 24 + "*")):
        raise BackupError(
            f"{backups.wal} holds no log: this folder can only be restored to the end of a backup (no --to-time)"
        )
    wal = shlex.quote(str(backups.wal)).replace("%", "%%")
    # The segment that was being written when the machine was lost has its name with .partial.
    places = " ".join(f"{wal}/{part}%f{end}" for end in ("", ".partial") for part in ("", "*/"))
    fetch = f'for f in {places}; do if [ -f "$f" ]; then cp "$f" "%p"; exit; fi; done; exit 1'
    settings = {"restore_command": fetch, "recovery_target_action": "promote"}
    # The latest would be that of a restored database which goes on writing into this folder.
    settings["recovery_target_timeline"] = "current"
    if moment is not None:
        settings["recovery_target_time"] = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    return settings


def _replay(cluster: Path, settings: dict[str, str], target: Path) -> None:
    """Let PostgreSQL replay the log, make the database an embedded stack's, and stop again."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as place:
        sockets = Path(place)
        sockets.chmod(0o711)
        hba = sockets / "pg_hba.conf"
        hba.write_text("local all all trust\n")  # nobody else enters this folder
        log = target / "log" / "restore.log"
        log.parent.mkdir(exist_ok=True)
        (sockets / "s").mkdir(mode=0o700)
        _give_to_the_server(sockets / "s")
        options = {
            **settings,
            "listen_addresses": "",
            "unix_socket_directories": str(sockets / "s"),
            "port": "5432",
        }
        # Its own words are read below: what it says of the last change is a line of the level "log".
        options |= {
            "hba_file": str(hba),
            "archive_mode": "off",
            "hot_standby": "off",  # nobody reads meanwhile; else the settings must be as large as the first server's
            "lc_messages": "C",
            "log_min_messages": "log",
        }
        hba.chmod(0o644)
        command = [str(binaries.postgres_binaries() / "postgres"), "-D", str(cluster)]
        command += [f"--{name}={value}" for name, value in options.items()]
        with log.open("ab") as output, _running(binaries.as_nobody(command), output) as server:
            superuser = _wait_until_writable(server, str(sockets / "s"), log)
            adopt(str(sockets / "s"), superuser, embedded.secret(target, "postgres"))


@contextlib.contextmanager
def _running(command: list[str], output: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield server
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)  # open connections are ended, and all is written
            server.wait(120)


def _wait_until_writable(server: subprocess.Popen[bytes], host: str, log: Path) -> str:
    """Return the name of a superuser as soon as the log is replayed."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise BackupError(_why(log.read_text(errors="replace")))
        if name := superuser_of(host):
            return name
        time.sleep(0.1)
    raise BackupError(f"the log was not replayed within {LONGEST // 3600} hours")


def superuser_of(host: str) -> str:
    """Return the name of a superuser, or nothing as long as the server does not let anybody in.

    Raises
    ------
    BackupError
        The server answers, and has none of the roles by which it could be asked.
    """
    for role in ASKED_AS:
        try:
            with psycopg.connect(host=host, user=role, dbname="template1", connect_timeout=5) as connection:
                row = connection.execute(SUPERUSER).fetchone()
        except psycopg.OperationalError as error:
            if f'role "{role}" does not exist' not in str(error) and "not permitted to log in" not in str(
                error
            ):
                return ""  # it is still starting
            continue
        if row:
            return str(row[0])
    raise BackupError(f"the copy has no superuser who could be found by one of {', '.join(ASKED_AS)}")


def adopt(host: str, superuser: str, password: str) -> None:
    """Give database and role the names that an embedded stack has, the role its password, and end all log-ins.

    Raises
    ------
    BackupError
        There are several databases, none of which has the name.
    """
    with psycopg.connect(host=host, user=superuser, dbname="template1", autocommit=True) as connection:
        names = [name for (name,) in connection.execute(DATABASES)]
        if embedded.DATABASE not in names:
            if len(names) != 1:
                found = ", ".join(names) or "none"
                raise BackupError(f"the copy has no database {embedded.DATABASE}; its databases: {found}")
            first, own = sql.Identifier(names[0]), sql.Identifier(embedded.DATABASE)
            connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(first, own))
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'touchstone'").fetchone() is None:
            connection.execute("CREATE ROLE touchstone")
        connection.execute(
            sql.SQL("ALTER ROLE touchstone SUPERUSER LOGIN PASSWORD {}").format(sql.Literal(password))
        )
    with psycopg.connect(host=host, user=superuser, dbname=embedded.DATABASE, autocommit=True) as connection:
        for table in connection.execute(SESSIONS).fetchall():
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(*table)))


def _why(said: str) -> str:
    """Return why the log could not be replayed, from PostgreSQL's own words."""
    if TOO_EARLY in said:
        last = said.rpartition(LAST_COMMIT)[2].partition("\n")[0] if LAST_COMMIT in said else "none"
        return f"--to-time is after the last change in the log, of {last}: name that time or an earlier one, or latest"
    return "PostgreSQL could not replay the log; its last words:\n" + "\n".join(said.splitlines()[-12:])


def _files_until(backups: Backups, manifest: Manifest, to_time: str) -> dict[str, StoredFile]:
    """Return the files of the backup, and those that came later; one without a row does no harm."""
    return {**manifest.files, **(backups.copied_files() if to_time else {})}


def put_files(backups: Backups, files: dict[str, StoredFile], media: Path | ObjectStore) -> None:
    """Copy the files back to their places."""
    if not isinstance(media, Path):
        put_objects(backups, files, media)
        return
    media.mkdir(parents=True, exist_ok=True)
    for name, file in sorted(files.items()):
        place = media / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(backups.place(file.sha256), place)
        except FileNotFoundError:
            raise BackupError(f"the file {name} ({file.sha256}) is missing in {backups.root}") from None
