"""Whether this process can do its work: what `/readyz` answers.

Ready means that a judgment can be stored. On a full disk reading, an INSERT that is rolled back and the committed
update of a row all succeed while no judgment can be stored, because none of them needs a new page: so 256 kB that do
not compress are written to a temporary table, which is rolled back, and one row is committed, which tries the log.
"""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from psycopg.errors import DiskFull, LockNotAvailable, QueryCanceled, ReadOnlySqlTransaction

from touchstone import disks, lanes, replica, schema, signs
from touchstone.models import Job

OK = "ok"
UNAVAILABLE_WITHOUT = ("database", "write", "schema")  # without the others work is slower, or waits
EVERY = 5.0  # seconds between two real looks of a process
WRITTEN = 256 * 1024  # bytes: more than the free space within pages that happen to be there
LONGEST_WRITE, LONGEST_WAIT = "3s", "200ms"
STUCK = 15.0  # seconds after which a look that has not ended is an answer
CLOCK_TOLERANCE = timedelta(seconds=2)
LONGEST_QUEUE = timedelta(minutes=10)


@dataclass(frozen=True)
class Health:
    """What each check found: `ok`, or what is wrong in a few words."""

    checks: dict[str, str]

    @property
    def status(self) -> str:
        """Return `ok`, `degraded`, or `unavailable` where no judgment can be stored.

        >>> Health({"database": "ok", "worker": "none is running"}).status
        'degraded'
        """
        if any(self.checks.get(name, OK) != OK for name in UNAVAILABLE_WITHOUT):
            return "unavailable"
        return OK if set(self.checks.values()) <= {OK} else "degraded"


# What a probe says is for everybody: no text of the database's.
_FAULTS: dict[type[BaseException], str] = {
    DiskFull: "the disk is full",
    QueryCanceled: f"took longer than {LONGEST_WRITE}",
    ReadOnlySqlTransaction: "the database is read-only",
    LockNotAvailable: "waits for a table",
    psycopg.OperationalError: "does not answer",
}


def look() -> Health:
    """Look at everything now; where the database does not answer, at nothing behind it."""
    found = {"database": _answer(_database)}
    behind: dict[str, Callable[[], str]] = {"write": _write, "schema": _schema}
    minor: dict[str, Callable[[], str]] = {"worker": _worker, "clock": _clock, "jobs": _jobs}
    if found["database"] == OK:
        found |= {name: _answer(check) for name, check in behind.items()}
    found["disk"] = disks.shortage() or OK
    if found["database"] == OK and found["schema"] == OK:
        found |= {name: _answer(check) for name, check in minor.items()}
        if replica.is_there():
            found["replica"] = _answer(_replica)
    return Health(found)


def _answer(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseError, InterfaceError) as error:
        cause = error.__cause__ or error
        return next((words for kind, words in _FAULTS.items() if isinstance(cause, kind)), "failed")


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


class _NotKept(Exception):
    """Ends the transaction of a trial."""


_ONE_ROW = """
INSERT INTO touchstone_ratecounter (key, "window", n, ends_at) VALUES ('readiness', 0, 1, now() + interval '1 day')
ON CONFLICT (key, "window") DO UPDATE SET ends_at = excluded.ends_at
"""


def _write() -> str:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, TRUE)", [LONGEST_WRITE])
            cursor.execute("CREATE TEMPORARY TABLE touchstone_trial (content bytea) ON COMMIT DROP")
            cursor.execute("ALTER TABLE touchstone_trial ALTER content SET STORAGE EXTERNAL")
            cursor.execute("INSERT INTO touchstone_trial VALUES (%s)", [os.urandom(WRITTEN)])
            raise _NotKept
    except _NotKept:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, TRUE)", [LONGEST_WRITE])
            cursor.execute(_ONE_ROW)
    return OK


def _schema() -> str:
    # What is there and not expected is a newer version's, whose migrations run before its processes start.
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, TRUE)", [LONGEST_WAIT])
            missing = schema.Difference(schema.difference(connection).missing, ()).words()
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return OK  # a migration is changing a table, so that it is there
        raise
    if not missing:
        return OK
    return missing[0] if len(missing) == 1 else f"{missing[0]}, and {len(missing) - 1} more"


def _worker() -> str:
    unserved = signs.unserved_lanes()
    if len(unserved) == len(lanes.SECONDS):
        return "none is running"
    return f"none serves {' or '.join(unserved)}" if unserved else OK


def _replica() -> str:
    return replica.watch.words() or OK


def clock_difference() -> timedelta:
    """Return how far this machine's clock is ahead of the database's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
    return timezone.now() - at


def _clock() -> str:
    apart = abs(clock_difference())
    return OK if apart <= CLOCK_TOLERANCE else f"{apart.total_seconds():.0f} s from the database's"


def _jobs() -> str:
    late = Job.objects.filter(state=Job.State.QUEUED, created_at__lt=Now() - LONGEST_QUEUE).count()
    return OK if not late else f"{late} waiting for over {LONGEST_QUEUE.seconds // 60} minutes"


# -- at most so often -------------------------------------------------------------------------------------------


class Watch:
    """The last look of this process, and who may look anew: probes are many, and open to everybody."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = self._began = -float("inf")
        self._found: Health | None = None

    def health(self) -> Health:
        """Return the newest look; whoever finds it old looks, and the others do not wait for it."""
        found = self._found
        if found is not None and time.monotonic() - self._at < EVERY:
            return found
        if self._lock.acquire(blocking=found is None):
            try:
                if self._found is None or time.monotonic() - self._at >= EVERY:
                    self._began = time.monotonic()
                    self._found = look()
                    self._at = time.monotonic()
            finally:
                self._lock.release()
        elif time.monotonic() - self._began > STUCK:  # the one that looks has been waiting for the database
            return Health({"database": "does not answer"})
        return self._found or look()

    def forget(self) -> None:
        self._found = None


watch = Watch()
