"""A database of an old release, with its files, and people who judge in it by the statements of that release.

A file `.sql.gz` of `tests/fixtures` has a row in every table that the release had; beside it lie the files of its runs,
draws and releases, and the statements by which its processes claim and submit: they go on while a newer version
migrates.
"""

import json
import random
import subprocess
import tarfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from gzip import decompress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

FIXTURES = Path(__file__).parent / "fixtures"
RELEASES = sorted(path.name.removesuffix(".sql.gz") for path in FIXTURES.glob("*.sql.gz"))
OPTIONS = "-c synchronous_commit=on -c lock_timeout=5s -c plan_cache_mode=force_generic_plan -c jit=off"
BUSY = "Sixteen at once in %"
KIND_OF_LOCK = 7


def restore(servers: Any, version: str, name: str, folder: Path) -> str:
    """Make the database of the release, unpack its files below the folder, and return the database's address."""
    base = servers.database_url.rpartition("/")[0]
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    address = f"{base}/{name}"
    psql = [str(servers.binaries / "psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", address]
    sql = decompress((FIXTURES / f"{version}.sql.gz").read_bytes())
    subprocess.run(psql, input=sql, check=True, capture_output=True)
    with tarfile.open(FIXTURES / f"{version}.files.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return address


def contents(address: str, columns: dict[str, list[str]] | None = None) -> dict[str, dict[str, Any]]:
    """Return of every table its rows by primary key, of these columns or all."""
    found: dict[str, dict[str, Any]] = {}
    with psycopg.connect(address) as connection:
        for table, names in (columns or columns_of(address)).items():
            key = _primary_key(connection, table)
            listed = ", ".join(f'"{name}"' for name in names)
            sql = f'SELECT {key}::text, row({listed})::text FROM "{table}"'  # noqa: S608 (names of the catalogue)
            rows = connection.execute(sql).fetchall()
            found[table] = dict(rows)
    return found


def columns_of(address: str) -> dict[str, list[str]]:
    """Return the columns of every table."""
    sql = """SELECT relname, array_agg(attname::text ORDER BY attnum)
               FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid
              WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
              GROUP BY relname"""
    with psycopg.connect(address) as connection:
        return dict(connection.execute(sql).fetchall())


def _primary_key(connection: psycopg.Connection[Any], table: str) -> str:
    sql = """SELECT attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND attnum = ANY(indkey)
              WHERE indisprimary AND indrelid = %s::regclass"""
    return " || ' ' || ".join(f'"{name}"::text' for (name,) in connection.execute(sql, [table]))


# -- judging by the statements of the release ----------------------------------------------------------------------


@dataclass
class Caller(threading.Thread):
    """One assessor at an old process: claims and submits, again and again; repeats what failed, as the browser does."""

    address: str
    user: int
    campaign: uuid.UUID
    topics: list[int]
    statements: dict[str, str]
    end: threading.Event
    acknowledged: list[uuid.UUID] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    longest: float = 0.0

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(self.user)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        began = time.monotonic()
        token = uuid.uuid4()
        while not self.end.is_set():
            try:
                with psycopg.connect(self.address, options=OPTIONS, row_factory=dict_row) as connection:
                    while not self.end.is_set():
                        if not self._one(connection, token):
                            return
                        self.acknowledged.append(token)
                        token = uuid.uuid4()
                        self.longest = max(self.longest, time.monotonic() - began)
                        time.sleep(0.1)
                        began = time.monotonic()
            except psycopg.OperationalError as error:  # what a process answers with 503, "try again"
                self.faults.append(type(error).__name__)
                time.sleep(0.2)
        self.longest = max(self.longest, time.monotonic() - began) if self.acknowledged else self.longest

    def _one(self, connection: Any, client_token: uuid.UUID) -> bool:
        held = self._claim(connection)
        if held is None:
            return False
        sent = {
            "user": self.user,
            "campaign": self.campaign,
            "token": held,
            "client_token": client_token,
            "grade": 1,
        }
        with connection.transaction():
            connection.execute(self.statements["lock"], {"kind": KIND_OF_LOCK, "user": self.user})
            facts = connection.execute(self.statements["facts_of_submission"], sent).fetchone()
            if facts["known"] is not None:
                return True
            connection.execute(self.statements["store_grade"], self._judgment(facts, sent))
        return True

    def _claim(self, connection: Any) -> uuid.UUID | None:
        for topic in self._random.sample(self.topics, len(self.topics)):
            with connection.transaction():
                connection.execute(self.statements["lock"], {"kind": KIND_OF_LOCK, "user": self.user})
                me = connection.execute(
                    "SELECT id FROM judging_assessor WHERE user_id = %s AND campaign_id = %s",
                    [self.user, self.campaign],
                ).fetchone()["id"]
                rows = connection.execute(
                    self.statements["claim_in_topic"], self._asked(me, topic)
                ).fetchall()
            if rows:
                return rows[0]["token"]
        return None

    def _asked(self, me: int, topic: int) -> dict[str, Any]:
        return {
            "me": me,
            "campaign": self.campaign,
            "team": "",
            "lease": timedelta(minutes=30),
            "n": 1,
            "topic": topic,
            "purpose": "judge",
            "check_rate": 0.1,
            "is_ordinary": True,
            "k": 3,
            "pivot": self._random.randrange(2**31),
            "coins": [self._random.random()],
        }

    def _judgment(self, facts: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
        return {
            "item_id": facts["item"],
            "assessor_id": facts["assessor"],
            "sequence": (facts["latest_sequence"] or 0) + 1,
            "grade": sent["grade"],
            "obstacle": "",
            "comment": "",
            "lease_token": sent["token"],
            "client_token": sent["client_token"],
            "active_milliseconds": 0,
            "document_version": facts["document_version"],
            "counts": True,
            "purposes": ["judge", "check"],
        }


def callers(address: str, version: str) -> tuple[list[Caller], threading.Event]:
    """Return everybody who judges in the release's busy campaign, not yet started, and what ends them."""
    statements = json.loads((FIXTURES / f"{version}.statements.json").read_text())
    end = threading.Event()
    with psycopg.connect(address) as connection:
        campaign = connection.execute(
            "SELECT id FROM judging_campaign WHERE name LIKE %s", [BUSY]
        ).fetchone()[0]
        users = connection.execute(
            "SELECT user_id FROM judging_assessor WHERE campaign_id = %s AND kind = 'human'", [campaign]
        ).fetchall()
        topics = connection.execute(
            "SELECT DISTINCT topic_id FROM judging_slot WHERE campaign_id = %s", [campaign]
        )
        places = [topic for (topic,) in topics.fetchall()]
    return [Caller(address, user, campaign, places, statements, end) for (user,) in users], end
