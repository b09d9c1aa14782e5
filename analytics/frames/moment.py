"""One moment of the database, read through a connection of its own.

A job's transaction cannot read so: its own row is written meanwhile by the heartbeat, and a transaction that sees one
moment only may not touch a row that has changed since. So everything is read on a second connection (REPEATABLE READ,
READ ONLY), and what is to be stored is written on the job's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.db import connections, models

# Each of the two connections is silent for as long as the other one works.
WAITS = "SET LOCAL idle_in_transaction_session_timeout = 0"


class Moment:
    """A moment of the database. Everything read inside `reading` is of this moment, in whatever way it is read."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self._reader is None:
            yield
            return
        writer = connections["default"]
        connections["default"] = self._reader
        try:
            yield
        finally:
            connections["default"] = writer

    def time(self) -> datetime:
        """Return when it was, by the database's clock, to the second."""
        with self.reading(), connections["default"].cursor() as cursor:
            cursor.execute("SELECT transaction_timestamp()")
            at: datetime = cursor.fetchone()[0]
        return at.astimezone(UTC).replace(microsecond=0)


@contextmanager
def one_moment(known: models.Model) -> Iterator[Moment]:
    """Hold a moment of the database, in which `known` is there.

    Where the caller's transaction itself has just made it, no other connection sees it: then that transaction reads.
    """
    with connections["default"].cursor() as cursor:
        cursor.execute(WAITS)
    reader = connections["default"].copy()
    # Its cursors are of this one transaction, so they work behind a pooler too, and large tables come in parts.
    reader.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    try:
        reader.set_autocommit(False)
        with reader.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(WAITS)
        moment = Moment(reader)
        with moment.reading():  # the moment is that of the first statement that reads
            is_there = type(known)._default_manager.filter(pk=known.pk).exists()
        yield moment if is_there else Moment(None)
    finally:
        reader.close()
