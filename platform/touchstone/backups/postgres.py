"""PostgreSQL's own programs: those of the server's major version, found in the wheel or on the machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from touchstone import binaries
from touchstone.backups import BackupError

# Where Debian and PostgreSQL's own packages put the programs of one major version.
FOLDERS = ("/usr/lib/postgresql/{major}/bin", "/usr/pgsql-{major}/bin")


def tool(name: str, major: int) -> str:
    """Return the path of the program of this major version.

    Raises
    ------
    BackupError
        There is none: the formats of base backups and of the write-ahead log belong to one major version.
    """
    folders = [Path(folder.format(major=major)) for folder in FOLDERS]
    folders += binaries.wheel_binaries()
    if on_path := shutil.which(name):
        folders.append(Path(on_path).parent)
    for folder in folders:
        path = folder / name
        if os.access(path, os.X_OK) and major_of(path) == major:
            return str(path)
    package = f"postgresql-{major}" if name == "pg_waldump" else f"postgresql-client-{major}"
    raise BackupError(
        f"the server is PostgreSQL {major}, and no {name} of that version is here: install {package}"
    )


def major_of(path: Path) -> int:
    """Return the major version of a program of PostgreSQL; 0 where it names none."""
    said = subprocess.run([str(path), "--version"], capture_output=True, text=True).stdout
    digits = said.partition(") ")[2].partition(".")[0]
    return int(digits) if digits.isdigit() else 0


def run(command: list[str], address: str = "") -> str:
    """Run one of PostgreSQL's programs and return what it printed; the password travels in the environment.

    Raises
    ------
    BackupError
        It failed; with its own last words.
    """
    result = subprocess.run(command, env=environment(address), capture_output=True, text=True)
    if result.returncode:
        words = " ".join((result.stderr or result.stdout).split())
        raise BackupError(f"{Path(command[0]).name} failed: {words[-600:]}")
    return result.stdout


def environment(address: str) -> dict[str, str]:
    """Return the environment of a program that connects: a password on a command line can be read by everybody."""
    password = conninfo_to_dict(address).get("password") if address else None
    return {**os.environ, "LC_ALL": "C", **({"PGPASSWORD": str(password)} if password else {})}


def without_password(address: str) -> str:
    """Return the address as a command line may show it.

    >>> without_password("postgresql://mara:secret@127.0.0.1:5432/touchstone")
    'user=mara dbname=touchstone host=127.0.0.1 port=5432'
    """
    parts = conninfo_to_dict(address)
    return make_conninfo(**{word: str(value) for word, value in parts.items() if word != "password"})


def address_of(database: dict[str, Any]) -> str:
    """Return the address of one of Django's databases, with what its options say of TLS and the like."""
    known = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    words = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} - {"options"}
    parts = {word: value for word, value in database["OPTIONS"].items() if word in words}
    parts |= {word: database.get(key) for word, key in known.items()}
    return make_conninfo(**{word: str(value) for word, value in parts.items() if value})


def ask(address: str, sql: str) -> tuple[Any, ...]:
    """Return the one row that the statement gives.

    Raises
    ------
    BackupError
        The server does not answer, or refuses.
    """
    try:
        with psycopg.connect(address, connect_timeout=10, autocommit=True) as connection:
            row = connection.execute(sql).fetchone()
    except psycopg.Error as error:
        raise BackupError(f"the database does not answer: {' '.join(str(error).split())}") from error
    return row or ()
