"""A world with rows in every sealed table, of values that nobody means, and a superuser who changes them."""

from contextlib import contextmanager

from django.db import connection, transaction

from touchstone.ledger import sealing
from touchstone.ledger.rows import TABLES, VERSIONED, columns_of
from touchstone.models import Seal

# Of a type: the value of a row of number g, and another value in its place.
VALUES = {
    "bool": ("true", "NOT {}"),
    "int2": ("g % 1000", "{} + 1"),
    "int4": ("g", "{} + 1"),
    "int8": ("g", "{} + 1"),
    "text": ("'x' || g", "{} || '1'"),
    "varchar": ("'x' || g", "{} || '1'"),
    "uuid": ("gen_random_uuid()", "gen_random_uuid()"),
    "timestamptz": ("clock_timestamp()", "{} + interval '1 microsecond'"),
    "jsonb": ("jsonb_build_object('a', g)", "jsonb_build_array({})"),
    "float8": ("g / 8.0", "{} + 1e-12"),
    "numeric": ("g / 8.0", "{} + 0.00000001"),
}
# Rows that follow their versions: all are as they were at first, and that is written down.
FIRST = {"version", "number"}
OF_VERSIONS = {known.versions: (known.key, table) for table, known in VERSIONED.items()}
DROP = """
DO $$
DECLARE one record;
BEGIN
  FOR one IN SELECT conrelid::regclass AS place, conname FROM pg_constraint
              WHERE contype IN ('c', 'u') AND conrelid = ANY(ARRAY[TABLES]::regclass[]) LOOP
    EXECUTE 'ALTER TABLE ' || one.place || ' DROP CONSTRAINT ' || quote_ident(one.conname);
  END LOOP;
  FOR one IN SELECT indexrelid::regclass AS place FROM pg_index
              WHERE indisunique AND NOT indisprimary AND indrelid = ANY(ARRAY[TABLES]::regclass[]) LOOP
    EXECUTE 'DROP INDEX ' || one.place;
  END LOOP;
END $$
"""


def run(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def superuser():
    """Without triggers, also those that guard facts, and whatever is done is taken back."""
    with transaction.atomic():
        run("SET CONSTRAINTS ALL IMMEDIATE")
        for table in (*TABLES, Seal.OF_SEALS):
            run(f'ALTER TABLE "{table}" DISABLE TRIGGER USER')
        run("SET LOCAL session_replication_role = replica")
        yield
        transaction.set_rollback(True)


def add_rows(table, first, last):
    types = columns_of(table)
    names = ", ".join(f'"{name}"' for name in types)
    given = {name: "1" if name in FIRST else VALUES[kind][0] for name, kind in types.items()}
    if table in OF_VERSIONS:  # of the rows that were just made
        key, of = OF_VERSIONS[table]
        given[key] = f"(SELECT id FROM {of} ORDER BY id DESC OFFSET {last} - g LIMIT 1)"  # noqa: S608
    values = ", ".join(given.values())
    run(f'INSERT INTO "{table}" ({names}) SELECT {values} FROM generate_series({first}, {last}) g')  # noqa: S608


def drop_rules():
    """Drop the rules of the sealed tables: whoever changes a value may do that as well."""
    places = ", ".join(f"'{name}'" for name in (*TABLES, Seal.OF_SEALS))
    run(DROP.replace("TABLES", places))


def seal_three_times():
    """Make three rows in each of three seals of every table, and three seals of seals."""
    run("SET LOCAL session_replication_role = replica")
    drop_rules()
    for table in OF_VERSIONS:  # the rule that a version says something new
        run(f"ALTER TABLE {table} DISABLE TRIGGER {table}_check")
    for turn in range(3):
        for table in TABLES:
            add_rows(table, 3 * turn + 1, 3 * turn + 3)
        made, _ = sealing.seal_new_rows()
        assert len(made) == len(TABLES) + 1
    for table in OF_VERSIONS:
        run(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_check")
    run("SET LOCAL session_replication_role = origin")
