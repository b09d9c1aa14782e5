"""Which faults of background work may be gone the next time: lost connections, deadlocks, full disks, no files.

All others would come again: a job that meets one fails at once.
"""

import errno
from collections.abc import Iterator

import django.db
import psycopg

from touchstone.files import FilesUnavailable

LOST = "the connection to the database was lost"
IN_THE_WAY = "another transaction was in the way"
FULL = "a disk is full"
NO_FILES = "the store of files did not answer"
# SQLSTATE, or the first two digits of a class of them (PostgreSQL, appendix A).
STATES = {
    "08": LOST,  # connection exceptions
    "57P01": LOST,  # admin_shutdown: also pg_terminate_backend()
    "57P02": LOST,  # crash_shutdown
    "57P03": LOST,  # cannot_connect_now: it starts
    "53300": LOST,  # too_many_connections
    "40": IN_THE_WAY,  # deadlock_detected, serialization_failure
    "55P03": IN_THE_WAY,  # lock_not_available: the wait for a lock is limited, so deadlocks end like this, too
    "53100": FULL,
}
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def words_if_passing(error: BaseException) -> str:
    """Return what was in the way, if it may be gone the next time; else nothing.

    >>> words_if_passing(OSError(errno.ENOSPC, "No space left on device"))
    'a disk is full'
    >>> words_if_passing(ValueError("measure must be ..."))
    ''
    """
    return next(filter(None, map(_words, _causes(error))), "")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _words(error: BaseException) -> str:
    if isinstance(error, psycopg.Error):
        state = error.sqlstate or ""
        is_lost = not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return LOST if is_lost else STATES.get(state) or STATES.get(state[:2], "")
    if isinstance(error, django.db.InterfaceError) and error.__cause__ is None:
        return LOST  # Django's own: the connection was closed already
    if isinstance(error, FilesUnavailable):
        return NO_FILES
    return FULL if isinstance(error, OSError) and error.errno in NO_ROOM else ""
