"""What the database's roles may do, and what they may not, whatever the code asks."""

from contextlib import contextmanager

import database_roles
import pytest
from django.apps import apps
from django.core.management import CommandError
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from psycopg.errors import InsufficientPrivilege

from touchstone import rights, roles
from touchstone.management.commands import prepare
from touchstone.rights import APPEND_ONLY, EVERY, OWNER, READ, SEALS, TABLES, WEB, WORKER, Difference, Grant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("made_roles")]

FACTS = sorted(table for table, allowed in TABLES.items() if allowed in (APPEND_ONLY, SEALS))
REFUSED = {
    "UPDATE": "UPDATE {table} SET {column} = {column}",
    "DELETE": "DELETE FROM {table}",
    "TRUNCATE": "TRUNCATE {table} CASCADE",
}


@contextmanager
def acting_as(role):
    """Act as the role within this transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {role}")
        yield cursor
        transaction.set_rollback(True)


def fault_of(cursor, sql):
    """Return what PostgreSQL says against the statement, or nothing."""
    try:
        with transaction.atomic():
            cursor.execute(sql)
    except DatabaseError as error:
        return error.__cause__
    return None


def first_column(table):
    with connection.cursor() as cursor:
        return connection.introspection.get_table_description(cursor, table)[0].name


def difference():
    with connection.cursor() as cursor:
        return rights.difference(cursor)


# -- the table of what each table allows -------------------------------------------------------------------------


def test_every_table_says_what_it_allows_and_every_column_named_is_one():
    tables = set(connection.introspection.table_names())
    assert set(TABLES) == tables
    models = apps.get_models(include_auto_created=True)
    assert {model._meta.db_table for model in models} <= set(TABLES)
    with connection.cursor() as cursor:
        for table, allowed in TABLES.items():
            columns = {found.name for found in connection.introspection.get_table_description(cursor, table)}
            named = {*allowed.changes, *allowed.hidden} - set(EVERY)
            assert named <= columns, table


def test_the_rights_given_are_those_of_the_table_and_a_change_by_hand_is_named_and_undone():
    assert difference() == Difference((), ())
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT TRUNCATE ON judging_judgment TO {WEB}")
        cursor.execute("GRANT UPDATE (grade) ON judging_judgment TO PUBLIC")
        cursor.execute(f"REVOKE UPDATE (state) ON judging_slot FROM {WORKER}")
        assert difference().words() == [
            "missing right: UPDATE (state) on judging_slot for touchstone_worker",
            "right that is not expected: UPDATE (grade) on judging_judgment for public",
            "right that is not expected: TRUNCATE on judging_judgment for touchstone_web",
        ]
        with pytest.raises(CommandError) as refusal:
            prepare.Command()._compare()
        assert refusal.value.returncode == prepare.DIFFERS
        roles.give_rights(cursor)
    assert difference() == Difference((), ())
    prepare.Command()._compare()


def test_a_right_on_the_whole_table_is_taken_away_and_those_on_its_columns_stay():
    with connection.cursor() as cursor:
        cursor.execute(f"GRANT UPDATE ON judging_slot TO {WEB}")
        assert difference().unexpected == (Grant(WEB, "judging_slot", "UPDATE"),)
        roles.give_rights(cursor)
    assert difference() == Difference((), ())


# -- facts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [WEB, WORKER, READ])
def test_facts_are_neither_changed_nor_deleted_nor_truncated(role):
    """The control: the owner is refused none of it for want of a right."""
    assert {"judging_judgment", "judging_goldanswer", "judging_document", "touchstone_event"} < set(FACTS)
    wrong = []
    for table in FACTS:
        for what, form in REFUSED.items():
            sql = form.format(table=table, column=first_column(table))
            with acting_as(role) as cursor:
                if not isinstance(fault_of(cursor, sql), InsufficientPrivilege):
                    wrong.append(f"{what} of {table} as {role}")
            with acting_as(OWNER) as cursor:
                if isinstance(fault_of(cursor, sql), InsufficientPrivilege):
                    wrong.append(f"{what} of {table} as the owner")
    assert wrong == []


@pytest.mark.parametrize("role", [WEB, WORKER, READ])
def test_nobody_switches_triggers_off_or_becomes_the_owner(role, servers):
    """The control: a superuser may."""
    said = [
        "SET session_replication_role = replica",
        "ALTER TABLE judging_judgment DISABLE TRIGGER ALL",
        "DROP TRIGGER judging_judgment_append_only ON judging_judgment",
        "CREATE TABLE judging_mine (id integer)",
    ]
    with database_roles.session(servers, role) as session:
        session.execute("SET default_transaction_read_only = off")
        for sql in [*said, f"SET ROLE {OWNER}"]:
            with pytest.raises(InsufficientPrivilege):
                session.execute(sql)
    with transaction.atomic(), connection.cursor() as cursor:
        assert [fault_of(cursor, sql) for sql in said] == [None] * len(said)
        transaction.set_rollback(True)


@pytest.mark.parametrize(("role", "is_refused"), [(WEB, True), (READ, True), (WORKER, False)])
def test_seals_are_made_by_workers_alone(role, is_refused):
    """A seal up to an id that is far away would end the sealing of its table."""
    sql = """INSERT INTO touchstone_seal ("table", columns, up_to_id, n_rows, head, at)
             VALUES ('judging_judgment', '[]', 9000000000000000000, 1, repeat('a', 64), now())"""
    with acting_as(role) as cursor:
        assert isinstance(fault_of(cursor, sql), InsufficientPrivilege) == is_refused


# -- sessions and readers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "idle"), [(WEB, "15s"), (WORKER, "0")])
def test_a_role_has_the_settings_that_others_send(role, idle, servers):
    names = [*roles.SESSION, roles.IDLE]
    sql = "SELECT " + ", ".join(f"current_setting('{name}')" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        as_sent = dict(zip(names, cursor.fetchone(), strict=True))
    assert as_sent[roles.IDLE] == "15s"
    assert "lock_timeout=5s" in connection.get_connection_params()["options"]
    with database_roles.session(servers, role) as session:
        assert "options" not in session.info.dsn
        assert dict(zip(names, session.execute(sql).fetchone(), strict=True)) == {**as_sent, roles.IDLE: idle}


@pytest.mark.parametrize(("role", "level"), [(WEB, "log"), (WORKER, "log"), (READ, "warning")])
def test_the_server_leaves_it_to_the_product_to_write_down_its_errors(role, level, servers):
    with database_roles.session(servers, role) as session:
        assert session.execute("SELECT current_setting('log_min_messages')").fetchone() == (level,)
        with pytest.raises(InsufficientPrivilege):
            session.execute("SET log_min_messages = debug5")


def test_the_reader_reads_everything_but_secrets_and_writes_nothing(servers):
    with database_roles.session(servers, READ) as session:
        session.execute("SELECT count(*) FROM judging_judgment JOIN judging_item i ON i.id = item_id")
        session.execute("SELECT username, role FROM touchstone_user")
        for sql in (
            "SELECT password FROM touchstone_user",
            "SELECT * FROM touchstone_apitoken",
            "SELECT count(*) FROM django_session",
            "SELECT pseudonym_key FROM analytics_release",
        ):
            with pytest.raises(InsufficientPrivilege):
                session.execute(sql)
        session.execute("SET default_transaction_read_only = off")
        with pytest.raises(InsufficientPrivilege):
            session.execute(
                "INSERT INTO touchstone_event (at, verb, subject, detail) VALUES (now(), '', '', '{}')"
            )


# -- how they are made -------------------------------------------------------------------------------------------


def test_a_role_that_could_switch_off_what_holds_it_is_refused():
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {WEB} CREATEROLE")
        with pytest.raises(roles.RolesRefused, match=f"{WEB} has rights beyond its tables"):
            roles.make_roles(cursor, {})
        cursor.execute(f"ALTER ROLE {WEB} NOCREATEROLE")
        cursor.execute(f"GRANT {OWNER} TO {WORKER}")
        with pytest.raises(roles.RolesRefused, match=f"{WORKER} has rights"):
            roles.make_roles(cursor, {})
        cursor.execute(f"REVOKE {OWNER} FROM {WORKER}")


def test_once_all_is_made_the_owner_prepares_without_any_other_right():
    with acting_as(OWNER) as cursor:
        assert roles.make_roles(cursor, {}) == []
        assert roles.take_over(cursor) == 0
        assert difference() == Difference((), ())
        cursor.execute("CREATE TABLE touchstone_later (id integer)")


def test_who_cannot_log_in_is_named_and_a_password_is_no_part_of_a_statement():
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {WORKER} NOLOGIN")
        assert roles.make_roles(cursor, {}) == [WORKER]
    with CaptureQueriesContext(connection) as log, connection.cursor() as cursor:
        assert roles.make_roles(cursor, {WORKER: "s3cret-of-the-worker"}) == []
    assert not any("s3cret" in query["sql"] for query in log.captured_queries)
    assert any("SCRAM-SHA-256" in query["sql"] for query in log.captured_queries)


def test_what_somebody_owns_becomes_the_owners_and_he_goes_on():
    """An older installation: a user without power owned the tables, and his processes are still connected."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE older LOGIN")
        for kind, name in (("TABLE", "judging_slot"), ("FUNCTION", "touchstone_refuse_change()")):
            cursor.execute(f"ALTER {kind} {name} OWNER TO older")
        assert roles.take_over(cursor) == 2
        assert roles.take_over(cursor) == 0
        cursor.execute(
            "SELECT DISTINCT relowner::regrole::text FROM pg_class c WHERE relkind IN ('r', 'S')"
            " AND relnamespace = 'public'::regnamespace"
        )
        assert cursor.fetchall() == [(OWNER,)]
    with acting_as("older") as cursor:
        assert fault_of(cursor, "SELECT id FROM judging_slot FOR UPDATE") is None


# -- prepare -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_without_an_owner_prepare_goes_on_as_before_with_one_warning(monkeypatch, capsys):
    migrated = []
    monkeypatch.setattr(prepare, "call_command", lambda command, **_: migrated.append(command))
    with override_settings(DATABASE_OWNER_URL=""):
        prepare.Command()._migrate()
    assert migrated == ["migrate"]
    assert capsys.readouterr().err.count("DATABASE_OWNER_URL is not set") == 1


@pytest.mark.django_db(transaction=True)
def test_who_may_not_migrate_is_told_who_may(monkeypatch, servers):
    def migrate(command, **_):
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE judging_topic ADD colour text")

    monkeypatch.setattr(prepare, "call_command", migrate)
    with (
        database_roles.logged_in(servers, WEB),
        pytest.raises(CommandError, match=r"must be owner of table judging_topic.*set DATABASE_OWNER_URL"),
    ):
        prepare.Command()._migrate()
