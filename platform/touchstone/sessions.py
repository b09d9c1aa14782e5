"""Django's sessions and users, the same rows as ever, read by prepared statements: every request reads both.

The mapper would spend a third of a submit's time on these two rows. Both are read anew each time, so that a logout
and a disabled account hold from the next request on.
"""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.db import InterfaceError, OperationalError, connection
from psycopg import Cursor

from touchstone.models import User

SESSION = """
SELECT session_key, session_data, expire_date FROM django_session
 WHERE session_key = %s AND expire_date > clock_timestamp()
"""
_FIELDS = User._meta.concrete_fields
USER = f"SELECT {', '.join(str(field.column) for field in _FIELDS)} FROM {User._meta.db_table} WHERE id = %s::bigint"  # noqa: S608
_NAMES = [field.attname for field in _FIELDS]


def _row(sql: str, key: Any) -> tuple[Any, ...] | None:
    """Return the row. This is a request's first statement: if it fails, the server was restarted, and a new connection
    answers; that saves asking the old one beforehand whether it still lives (Django's health check).
    """
    connection.ensure_connection()
    connection.health_check_done = True  # type: ignore[attr-defined]  # Django has it, its stubs do not
    try:
        return _fetch_row(sql, key)
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block:
            raise
        connection.close()
        connection.ensure_connection()
        return _fetch_row(sql, key)


def _fetch_row(sql: str, key: Any) -> tuple[Any, ...] | None:
    # Any: the stubs do not know that Django wraps the driver's own cursors.
    wrap: Any = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with wrap(Cursor(connection.connection)) as cursor:
        cursor.execute(sql, [key])
        row: tuple[Any, ...] | None = cursor.fetchone()
    return row


class SessionStore(DatabaseSessionStore):
    """Sessions in the database; only the reading of a living one is our own."""

    def _get_session_from_db(self) -> Any:
        row = _row(SESSION, self.session_key)
        if row is None:
            self._session_key = None
            return None
        key, data, expires_at = row
        return self.model(session_key=key, session_data=data, expire_date=expires_at)


class Backend(ModelBackend):
    """Passwords and accounts in the database; only the reading of who is logged in is our own."""

    def get_user(self, user_id: Any) -> User | None:
        row = _row(USER, user_id)
        if row is None:
            return None
        user = User.from_db("default", _NAMES, row)
        return user if self.user_can_authenticate(user) else None
