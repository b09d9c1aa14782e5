"""Empty the database after a test that commits: what Django's `flush` does, in a tenth of its time.

Django truncates every table, each a new file, and then writes its content types and permissions anew: 0.12 s a test on
an idle machine. Most tables hold nothing; here the others lose their rows by DELETE, without triggers.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase

# Rows that belong to the schema: `migrate` writes them, no test does, and nothing of a test refers to them.
KEPT = frozenset({"django_content_type", "auth_permission"})
# A table of more bytes than this is truncated: the dead rows of a DELETE stay on its pages until it is vacuumed.
TRUNCATED_FROM = 1 << 19


@cache
def _tables() -> tuple[str, ...]:
    return tuple(sorted(set(connection.introspection.django_table_names(only_existing=True)) - KEPT))


# Triggers that no session can pass by, of those that fire before DELETE (8), UPDATE (16) or TRUNCATE (32).
_GUARDS = """
SELECT relname, tgname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
 WHERE tgenabled = 'A' AND tgtype & 56 <> 0 AND relnamespace = current_schema()::regnamespace
"""


@cache
def _guards() -> tuple[tuple[str, str], ...]:
    with connection.cursor() as cursor:
        cursor.execute(_GUARDS)
        return tuple(cursor.fetchall())


@contextmanager
def unguarded(tables: Iterable[str]) -> Iterator[None]:
    """Let facts of these tables be deleted and changed within this transaction: what only their owner can do."""
    guards = [(table, name) for table, name in _guards() if table in tables]
    with connection.cursor() as cursor:
        # A table with a foreign key that is still to be looked at cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table, name in guards:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
        yield
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        for table, name in guards:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")


def empty_tables() -> None:
    """Delete every row of every model's table.

    Like TRUNCATE it first takes the exclusive lock of all tables: a transaction that a test left open elsewhere makes
    it fail when the time for locks is over, and rows that are about to be committed are waited for.
    """
    names = _tables()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
        # Foreign keys are not asked; what guards facts is switched off below.
        cursor.execute("SET LOCAL session_replication_role = replica")
        questions = (f"EXISTS (SELECT FROM {name}), pg_relation_size('{name}')" for name in names)
        cursor.execute(f"SELECT {', '.join(questions)}")
        found = cursor.fetchone()
        filled = [
            (name, size)
            for name, has_rows, size in zip(names, found[::2], found[1::2], strict=True)
            if has_rows
        ]
        is_any_large = any(size > TRUNCATED_FROM for _, size in filled)
        with unguarded(names if is_any_large else [name for name, _ in filled]):
            _empty(cursor, filled)


def _empty(cursor: Any, filled: list[tuple[str, int]]) -> None:
    for name, size in filled:
        cursor.execute(f"TRUNCATE {name} CASCADE" if size > TRUNCATED_FROM else f"DELETE FROM {name}")  # noqa: S608


def install() -> None:
    """Let every test that commits end this way."""
    TransactionTestCase._fixture_teardown = lambda case: empty_tables()  # type: ignore[attr-defined]
