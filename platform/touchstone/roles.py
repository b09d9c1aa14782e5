"""The database's roles: who owns the tables, and as whom web processes, workers and readers log in.

`prepare` makes them when DATABASE_OWNER_URL names somebody who may. Nothing here imports Django: the settings read
what a session is to be like. What each role may do with each table is in touchstone/rights.py.
"""

from collections.abc import Mapping
from typing import Any

from touchstone import rights
from touchstone.rights import BACKUP, OWNER, READ, WEB, WORKER

# What every session of the product sets. A silent client may hold a lock for 15 s, no longer; a worker's job is one
# transaction: no limit. A role has them for good, so that no pooler between us and the database can lose them.
SESSION = {
    "synchronous_commit": "on",
    "lock_timeout": "5s",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
IDLE = "idle_in_transaction_session_timeout"
SETTINGS: dict[str, dict[str, str]] = {
    WEB: {**SESSION, IDLE: "15s"},
    WORKER: SESSION,
    # A forgotten session of a reader must not keep an upgrade from its tables.
    READ: {"default_transaction_read_only": "on", "lock_timeout": "5s", IDLE: "60s"},
}
# The product writes an error down once a minute; the server would do so each time, with the whole statement and the
# rows that it quotes. Only a superuser may set it.
QUIET = {"log_min_messages": "log"}


class RolesRefused(Exception):
    """The roles cannot be made as they must be; the message says what to do."""


def session_options(user: str, *, is_worker: bool) -> str:
    """Return the settings that a session of this user must send when it starts; of a role that has them, none.

    >>> session_options("touchstone_web", is_worker=False)
    ''
    >>> session_options("somebody", is_worker=True).split(" -c ")[-1]
    'jit=off'
    """
    if user in SETTINGS:
        return ""
    settings = SETTINGS[WORKER if is_worker else WEB]
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def make_roles(cursor: Any, passwords: Mapping[str, str]) -> list[str]:
    """Make the four roles where they are not there yet, give them passwords and settings; return who cannot log in.

    A role without a password here keeps the one it has. Whoever is
    connected becomes a member of the owner.
    """
    for role in (OWNER, WEB, WORKER, READ):
        cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [role])
        if cursor.fetchone() is None:
            cursor.execute(f'CREATE ROLE "{role}" NOLOGIN')
    for role, settings in SETTINGS.items():
        _refuse_power(cursor, role)
        if passwords.get(role):
            _set_password(cursor, role, passwords[role])
        _set_settings(cursor, role, settings)
    cursor.execute("SELECT current_user, rolsuper FROM pg_roles WHERE rolname = current_user")
    me, is_superuser = cursor.fetchone()
    if is_superuser:
        for role in (WEB, WORKER):
            _set_settings(cursor, role, QUIET)
    if me != OWNER and not is_superuser:
        cursor.execute(f'GRANT "{OWNER}" TO current_user')
    _open_schema(cursor)
    cursor.execute(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND NOT rolcanlogin", [[WEB, WORKER]]
    )
    return sorted(role for (role,) in cursor.fetchall())


def make_backup_role(cursor: Any, password: str) -> str:
    """Make the role of backups, if it has a password, and give it that; return what an administrator must do instead.

    Before PostgreSQL 16 only a superuser may make a role that replicates, from then on also one that replicates itself.
    """
    if not password:
        return ""
    cursor.execute(
        "SELECT rolsuper OR rolreplication AND current_setting('server_version_num')::int >= 160000"
        " FROM pg_roles WHERE rolname = current_user"
    )
    if not cursor.fetchone()[0]:
        return (
            f"{BACKUP} is as it was: only a superuser makes a role that may replicate. Let one do it, with CREATE ROLE "
            f"{BACKUP} LOGIN REPLICATION PASSWORD '...', and prepare without DATABASE_BACKUP_PASSWORD."
        )
    cursor.execute("SELECT FROM pg_roles WHERE rolname = %s", [BACKUP])
    if cursor.fetchone() is None:
        cursor.execute(f'CREATE ROLE "{BACKUP}" NOLOGIN REPLICATION')
    _set_password(cursor, BACKUP, password)
    return ""


def _refuse_power(cursor: Any, role: str) -> None:
    """Refuse a role that was made by hand and could switch off what holds it."""
    cursor.execute(
        "SELECT rolsuper OR rolcreaterole OR rolreplication OR rolbypassrls OR pg_has_role(rolname, %s, 'MEMBER')"
        " FROM pg_roles WHERE rolname = %s",
        [OWNER, role],
    )
    if cursor.fetchone()[0]:
        raise RolesRefused(f"{role} has rights beyond its tables: ALTER ROLE, or REVOKE {OWNER} FROM {role}")


def _set_password(cursor: Any, role: str, password: str) -> None:
    # As its SCRAM verifier: a statement may be written to the server's log.
    verifier = cursor.connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256")
    cursor.execute(f"ALTER ROLE \"{role}\" LOGIN PASSWORD '{verifier.decode()}'")


def _set_settings(cursor: Any, role: str, settings: Mapping[str, str]) -> None:
    cursor.execute("SELECT coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = %s", [role])
    known = dict(line.split("=", 1) for line in cursor.fetchone()[0])
    for name, value in settings.items():
        if known.get(name) != value:
            cursor.execute(f"ALTER ROLE \"{role}\" SET {name} = '{value}'")


def _open_schema(cursor: Any) -> None:
    """Let the owner make tables in the schema, the others use them, and nobody else make any."""
    cursor.execute("SELECT quote_ident(current_schema()), quote_ident(current_database())")
    schema, database = cursor.fetchone()
    wanted = {
        (OWNER, "schema", "CREATE"): f'GRANT USAGE, CREATE ON SCHEMA {schema} TO "{OWNER}"',
        **{
            (role, "schema", "USAGE"): f'GRANT USAGE ON SCHEMA {schema} TO "{role}"'
            for role in (WEB, WORKER, READ)
        },
        **{
            (role, "database", "CONNECT"): f'GRANT CONNECT ON DATABASE {database} TO "{role}"'
            for role in (WEB, WORKER, READ)
        },
        **{
            (role, "database", "TEMPORARY"): f'GRANT TEMPORARY ON DATABASE {database} TO "{role}"'
            for role in (WEB, WORKER)
        },
    }
    for (role, kind, privilege), sql in wanted.items():
        if not _has(cursor, role, kind, privilege):
            cursor.execute(sql)
    if _has(cursor, WEB, "schema", "CREATE"):  # before PostgreSQL 15 everybody could
        cursor.execute(f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")


def _has(cursor: Any, role: str, kind: str, privilege: str) -> bool:
    name = "current_schema()" if kind == "schema" else "current_database()"
    cursor.execute(f"SELECT has_{kind}_privilege(%s, {name}::text, %s)", [role, privilege])
    return bool(cursor.fetchone()[0])


# -- whose the tables are ----------------------------------------------------------------------------------------

# REASSIGN OWNED is refused for the superuser that initdb made, as whom old installations ran. A column's own sequence
# goes with its table; what an extension brought is not ours.
_NOT_THE_OWNERS = """
WITH theirs AS (
  SELECT CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END
         AS kind, oid::regclass::text AS name, relowner AS owner, oid, 'pg_class'::regclass AS classid
    FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
  UNION ALL
  SELECT 'ROUTINE', oid::regprocedure::text, proowner, oid, 'pg_proc'::regclass FROM pg_proc
   WHERE pronamespace = current_schema()::regnamespace)
SELECT kind, name, pg_get_userbyid(owner) FROM theirs
 WHERE owner <> %s::regrole AND NOT EXISTS (
   SELECT FROM pg_depend d WHERE d.classid = theirs.classid AND d.objid = theirs.oid
      AND (deptype = 'e' OR kind = 'SEQUENCE' AND deptype IN ('a', 'i')))
 ORDER BY kind, name
"""


def take_over(cursor: Any) -> int:
    """Give the owner everything in the schema that is somebody else's, one thing a transaction; return how many.

    Whoever it belonged to becomes a member of the owner, so that processes that are connected go on.
    """
    cursor.execute(_NOT_THE_OWNERS, [OWNER])
    things = cursor.fetchall()
    for former in sorted({owner for _, _, owner in things}):
        cursor.execute(
            "SELECT pg_has_role(%s, %s, 'MEMBER'), quote_ident(%s)", [former, OWNER, former]
        )  # a superuser is a member of all
        is_member, name = cursor.fetchone()
        if not is_member:
            cursor.execute(f'GRANT "{OWNER}" TO {name}')
    for kind, name, _ in things:
        cursor.execute(f'ALTER {kind} {name} OWNER TO "{OWNER}"')
    return len(things)


def give_rights(cursor: Any) -> None:
    """Make the rights on the tables what touchstone/rights.py says."""
    # Twice: to take a privilege on a table away takes it from the table's columns too.
    for _ in range(2):
        for sql in rights.statements(rights.difference(cursor)):
            cursor.execute(sql)


def has_roles(cursor: Any) -> bool:
    """Return whether the tables are the owner's, so that the rights of the others count."""
    cursor.execute(
        "SELECT FROM pg_class WHERE relname = 'django_migrations' AND relowner = to_regrole(%s)"
        " AND relnamespace = current_schema()::regnamespace",
        [OWNER],
    )
    return cursor.fetchone() is not None
