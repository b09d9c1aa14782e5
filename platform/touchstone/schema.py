"""What the database is made of, against what this version of the product expects.

A line says one thing: `column judging_item.id uuid | not null`. What stands before the bar names it and gives its type,
and is the same on every major version of PostgreSQL; what stands behind it is PostgreSQL's wording, which is not.
Neither object ids nor the order of columns count. A database that was restored from a dump words some definitions in
another way than one that was migrated: the file of expected lines has both.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

EXPECTED = Path(__file__).with_name("schema.txt")
SERVER = "postgresql "  # begins the file's first line, which ends with the major version that worded it
BAR, OR = " | ", "or: "

# PostgreSQL qualifies some names in definitions with the schema. The expected lines have `public`; a connection whose
# search path begins with another schema has the same database there. Of a function only its own name is qualified.
# What an extension brings is not ours: some servers have theirs in every database. Constraints of NOT NULL are rows of
# their own from PostgreSQL 18 on, and stand with their columns here. An index that a failed CREATE INDEX left behind,
# invalid, is none.
_LINES = """
WITH here AS MATERIALIZED (
  SELECT '(^|[^[:alnum:]_."])'
         || regexp_replace(quote_ident(current_schema()), '([^[:alnum:]_])', '\\\\\\1', 'g') || '\\.' AS prefix),
extensions AS MATERIALIZED (SELECT classid, objid FROM pg_depend WHERE deptype = 'e'),
own AS MATERIALIZED (
  SELECT c.oid, relname, relkind FROM pg_class c
   WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
     AND NOT EXISTS (SELECT FROM extensions e WHERE e.objid = c.oid AND e.classid = 'pg_class'::regclass)),
found AS (
  SELECT CASE WHEN relkind IN ('r', 'p') THEN 'table ' ELSE 'view ' END || relname AS name,
         CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) ELSE '' END AS definition FROM own
  UNION ALL
  SELECT 'column ' || relname || '.' || attname || ' ' || format_type(atttypid, atttypmod),
         concat_ws(' ', CASE WHEN attnotnull THEN 'not null' END, 'default ' || pg_get_expr(adbin, adrelid),
                   'identity ' || nullif(attidentity::text, ''), 'generated ' || nullif(attgenerated::text, ''))
    FROM own JOIN pg_attribute a ON a.attrelid = own.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  UNION ALL
  SELECT 'constraint ' || relname || '.' || conname, pg_get_constraintdef(k.oid)
    FROM own JOIN pg_constraint k ON k.conrelid = own.oid AND contype NOT IN ('n', 't')
  UNION ALL
  SELECT 'index ' || relname || '.' || i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
    FROM own JOIN pg_index i ON i.indrelid = own.oid AND i.indisvalid
  UNION ALL
  SELECT 'trigger ' || relname || '.' || tgname, pg_get_triggerdef(t.oid) || ' enabled ' || tgenabled::text
    FROM own JOIN pg_trigger t ON t.tgrelid = own.oid AND NOT tgisinternal
  UNION ALL
  SELECT 'function ' || proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
         'sha256 ' || encode(sha256(convert_to(
           replace(regexp_replace(pg_get_functiondef(p.oid), prefix, '\\1public.'),
                   quote_literal(current_schema()) || ', ''pg_temp''', '''public'', ''pg_temp'''), 'UTF8')), 'hex')
    FROM pg_proc p, here WHERE pronamespace = quote_ident(current_schema())::regnamespace AND prokind IN ('f', 'p')
     AND NOT EXISTS (SELECT FROM extensions e WHERE e.objid = p.oid AND e.classid = 'pg_proc'::regclass))
SELECT regexp_replace(name, '\\s+', ' ', 'g'),
       regexp_replace(regexp_replace(definition, prefix, '\\1public.', 'g'), '\\s+', ' ', 'g') FROM found, here
"""


@dataclass(frozen=True)
class Fingerprint:
    """Every table, column, constraint, index, trigger and function as a sorted line, and the SHA-256 of them all."""

    digest: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """Lines that are expected and not there, and lines that are there and not expected."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)

    def words(self) -> list[str]:
        """Return a sentence a line; of a table that is missing as a whole, one for the table.

        >>> Difference(("column tag.id bigint | not null", "table tag"), ()).words()
        ['missing: table tag']
        """
        gone = {line.removeprefix("table ") for line in self.missing if line.startswith("table ")}
        missing = [line for line in self.missing if not _is_part_of(line, gone)]
        return [f"missing: {line}" for line in missing] + [
            f"not expected: {line}" for line in self.unexpected
        ]


def _is_part_of(line: str, tables: set[str]) -> bool:
    kind, _, name = line.partition(" ")
    return kind in ("column", "constraint", "index", "trigger") and name.partition(".")[0] in tables


def fingerprint(connection: BaseDatabaseWrapper) -> Fingerprint:
    """Return the fingerprint of the connection's schema. It waits for a migration that is changing a table."""
    with connection.cursor() as cursor:
        cursor.execute(_LINES)
        return fingerprint_of(f"{name}{BAR}{text}" if text else name for name, text in cursor.fetchall())


def fingerprint_of(lines: Iterable[str]) -> Fingerprint:
    """Return the fingerprint of these lines, in whatever order they come.

    >>> fingerprint_of(["table b", "table a"]).lines
    ('table a', 'table b')
    """
    ordered = tuple(sorted(lines))
    return Fingerprint(hashlib.sha256("\n".join(ordered).encode()).hexdigest(), ordered)


def major_version(connection: BaseDatabaseWrapper) -> int:
    """Return 18 of a PostgreSQL 18.3."""
    connection.ensure_connection()
    return int(connection.connection.info.server_version) // 10_000


# -- what is expected -------------------------------------------------------------------------------------------


def file_of(version: int, migrated: Iterable[str], restored: Iterable[str]) -> str:
    """Return the file of expected lines, from a database that was migrated, and the same dumped and restored.

    PostgreSQL words some definitions anew when it reads what it wrote: both wordings are right, the second is marked.

    >>> print(file_of(18, ["index a | x IN (1, 2)", "table b"], ["index a | x = ANY (1, 2)", "table b"]), end="")
    postgresql 18
    index a | x IN (1, 2)
    or: index a | x = ANY (1, 2)
    table b
    """
    again = {_name(line): line for line in restored}
    lines = [f"{SERVER}{version}"]
    for line in sorted(migrated):
        lines.append(line)
        if again[_name(line)] != line:
            lines.append(f"{OR}{again[_name(line)]}")
    return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Expectation:
    """The expected lines, and of those that have a second wording the first one by the second."""

    version: int
    lines: frozenset[str]
    first_wording: dict[str, str]


def read_file(text: str) -> Expectation:
    """Return what a file of expected lines says.

    >>> read_file("postgresql 18\\nindex a | x\\nor: index a | y\\n").first_wording
    {'index a | y': 'index a | x'}
    """
    first, *rest = text.splitlines()
    lines = {_name(line): line for line in rest if not line.startswith(OR)}
    others = [line.removeprefix(OR) for line in rest if line.startswith(OR)]
    return Expectation(
        int(first.removeprefix(SERVER)),
        frozenset(lines.values()),
        {line: lines[_name(line)] for line in others},
    )


@cache
def expectation() -> Expectation:
    """Return what this version of the product expects."""
    return read_file(EXPECTED.read_text())


def difference(connection: BaseDatabaseWrapper) -> Difference:
    """Return how the database differs from what this version expects.

    On another major version of PostgreSQL names and types are compared. A newer version of the product may have given
    a rule or a column another definition: then names alone.
    """
    known = expectation()
    found = {known.first_wording.get(line, line) for line in fingerprint(connection).lines}
    wanted = set(known.lines)
    if known.version != major_version(connection):
        wanted, found = {_name(line) for line in wanted}, {_name(line) for line in found}
    if wanted - found and is_newer(connection):
        wanted, found = {_bare_name(line) for line in wanted}, {_bare_name(line) for line in found}
    return Difference(tuple(sorted(wanted - found)), tuple(sorted(found - wanted)))


def is_newer(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the database has migrations that this version does not know."""
    return bool(set(MigrationRecorder(connection).applied_migrations()) - _own_migrations())


@cache
def _own_migrations() -> frozenset[tuple[str, str]]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return frozenset(loader.disk_migrations or {})


def _name(line: str) -> str:
    """Return what names the thing and gives its type, without PostgreSQL's wording of its definition."""
    return line.partition(BAR)[0]


def _bare_name(line: str) -> str:
    """Return what names the thing, without its type and its arguments.

    >>> _bare_name("column tag.id bigint | not null"), _bare_name("function stop(n integer) | sha256 ab")
    ('column tag.id', 'function stop')
    """
    return " ".join(line.split(" ", 2)[:2]).partition("(")[0]
