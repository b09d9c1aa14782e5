"""Up to which id a table has every row that it will ever have, while others write.

Ids are given out in order, but rows become visible in the order of their commits. A `Mark` is what was known before a
reading: the last id given out, and which transactions were writing rows then. Whoever had an id by then and was not
among them had ended. So once none of them is writing any more, a reading sees every row up to that id.
"""

import time
from dataclasses import dataclass

from django.db import connection

# A writer of rows holds this lock from before the first id until the rows are visible (or gone).
WRITERS = """
SELECT array_agg(DISTINCT virtualtransaction) FILTER (WHERE pid IS DISTINCT FROM pg_backend_pid()),
       coalesce(bool_or(pid = pg_backend_pid()), false)
  FROM pg_locks
 WHERE locktype = 'relation' AND relation = %s::regclass AND mode = 'RowExclusiveLock' AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
MOST_MARKS = 50
LOOK_AGAIN_SECONDS = 0.02


@dataclass(frozen=True)
class Mark:
    """The last id given out at some moment, and the transactions that were writing rows just after."""

    last_id: int
    writers: frozenset[str]


def mark(table: str) -> Mark:
    """Return the mark of this moment: take it before reading. The id comes first."""
    given_out = last_id(table)
    return Mark(given_out, writers(table))


def last_id(table: str) -> int:
    """Return the last id of the table that was given out."""
    with connection.cursor() as cursor:
        # The name is one of ours: a table of Django with an id that PostgreSQL gives out.
        cursor.execute(f'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM "{table}_id_seq"')  # noqa: S608
        return int(cursor.fetchone()[0])


def writers(table: str) -> frozenset[str]:
    """Return the transactions that are writing rows, without this one: it sees its own."""
    return _locks(table)[0]


def is_writing(table: str) -> bool:
    """Return whether this transaction has written rows, which it may still take back."""
    return _locks(table)[1]


def _locks(table: str) -> tuple[frozenset[str], bool]:
    with connection.cursor() as cursor:
        cursor.execute(WRITERS, [table])
        others, is_mine = cursor.fetchone()
    return frozenset(others or ()), bool(is_mine)


@dataclass(frozen=True)
class Watermark:
    """Up to which id somebody has read every row there will ever be, and marks that will raise it."""

    last_id: int = 0
    marks: tuple[Mark, ...] = ()

    def advance(self, now: Mark) -> "Watermark":
        """Return the watermark after a reading that begins with this mark and reads what is above the old one.

        It sees all rows up to a mark none of whose writers is still writing.
        """
        marks = (*self.marks, now)
        settled = [old.last_id for old in marks if old.writers.isdisjoint(now.writers)]
        last_id = max([self.last_id, *settled])
        # Forgetting some marks of a long wait costs another look at the same rows, never one that is missed.
        return Watermark(last_id, tuple(old for old in marks if old.last_id > last_id)[-MOST_MARKS:])


def settle(table: str, known: Watermark, seconds: float) -> Watermark:
    """Return the watermark of now: wait so long for those who are writing at this moment. Nobody waits for us.

    Who writes longer leaves the newest id that is certain, and a mark for the next time.
    """
    now = mark(table)
    if now.last_id < known.last_id:  # a backup was restored, and ids are given out again
        known = Watermark()
    left, until = now.writers, time.monotonic() + seconds
    while left and time.monotonic() < until:
        time.sleep(LOOK_AGAIN_SECONDS)
        left &= writers(table)
    return known.advance(now) if left else Watermark(now.last_id)
