"""All rows of all tables but the log: what an act has left as it was, and what not."""

from django.db import connection

# What tells that something happened, and nothing of what is there.
LOG = {"touchstone_event", "touchstone_erasure", "touchstone_seal", "judging_import", "touchstone_job"}


def tables():
    """Return every table but the log, with all its rows as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        names = sorted({name for (name,) in cursor.fetchall()} - LOG)
        found = {}
        for name in names:
            cursor.execute(f'SELECT t::text FROM "{name}" t ORDER BY 1')  # noqa: S608
            found[name] = cursor.fetchall()
    return found


def differences(before, after):
    return [name for name in before | after if before.get(name) != after.get(name)]
