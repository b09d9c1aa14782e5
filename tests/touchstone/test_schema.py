"""What the database is made of is compared with what is expected: by `prepare`, and whenever readiness is asked."""

import hashlib
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from touchstone import health, schema
from touchstone.management.commands import prepare

REPOSITORY = Path(__file__).parents[2]
RELEASED = Path(__file__).with_name("released_migrations.txt")
DROPPED = {
    "table": ("DROP TABLE judging_adjudication CASCADE", "missing: table judging_adjudication"),
    "column": (
        "ALTER TABLE judging_judgment DROP COLUMN comment",
        "missing: column judging_judgment.comment character varying(2000) | not null",
    ),
    "index": (
        "DROP INDEX touchstone_job_listed",
        "missing: index touchstone_job.touchstone_job_listed | CREATE INDEX touchstone_job_listed",
    ),
    "trigger": (
        "DROP TRIGGER judging_slot_done ON judging_slot",
        "missing: trigger judging_slot.judging_slot_done | CREATE TRIGGER judging_slot_done BEFORE UPDATE",
    ),
    "constraint": (
        "ALTER TABLE sampling_audit DROP CONSTRAINT sampling_audit_tier",
        "missing: constraint sampling_audit.sampling_audit_tier | CHECK",
    ),
}


@pytest.fixture(autouse=True)
def no_earlier_look():
    health.watch.forget()
    yield
    health.watch.forget()


def change(*statements):
    """Change the schema in the test's transaction.

    A look at the schema lets its transaction wait 200 ms for a lock, and a test's transaction goes on after it: less
    than the second after which PostgreSQL stops an autovacuum that is in the way.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '60s'")
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.django_db
def test_the_expected_schema_is_what_the_migrations_make():
    """If this fails after a new migration: `make schema`, and read what it changes."""
    assert schema.difference(connection).words() == []
    assert schema.expectation().version == schema.major_version(connection)


@pytest.mark.django_db
@pytest.mark.parametrize("what", DROPPED)
def test_what_is_missing_is_named_and_no_request_is_sent_here(what, client, capsys):
    assert client.get("/readyz").json()["checks"]["schema"] == "ok"
    sql, named = DROPPED[what]
    change(sql)
    with pytest.raises(CommandError) as refusal:
        call_command("prepare", check=True)
    assert refusal.value.returncode == 3
    assert any(line.startswith(named) for line in capsys.readouterr().err.splitlines())
    health.watch.forget()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["checks"]["schema"].startswith(named)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["judgments", "My study 2.1", "a$1"])
def test_in_another_schema_of_the_search_path_the_same_database_is_ready(name, client):
    with connection.cursor() as cursor:
        quoted = connection.ops.quote_name(name)
        cursor.execute(f"ALTER SCHEMA public RENAME TO {quoted}")
        cursor.execute(f"SET LOCAL search_path TO {quoted}")
        assert schema.difference(connection).words() == []
        assert client.get("/readyz").json()["checks"]["schema"] == "ok"
        change(
            "DROP TRIGGER judging_slot_done ON judging_slot",
            "CREATE FUNCTION judging_more() RETURNS integer LANGUAGE sql RETURN 1",
        )
        missing, unexpected = schema.difference(connection).words()
        assert missing.startswith(DROPPED["trigger"][1])
        assert unexpected.startswith("not expected: function judging_more()")
        cursor.execute("CREATE SCHEMA empty")
        cursor.execute("SET LOCAL search_path TO empty")
        assert len(schema.difference(connection).words()) > 50


@pytest.mark.django_db
def test_a_trigger_that_is_switched_off_is_a_difference():
    change("ALTER TABLE judging_slot DISABLE TRIGGER judging_slot_done")
    missing, unexpected = schema.difference(connection).words()
    assert (missing[-9:], unexpected[-9:]) == ("enabled A", "enabled D")


@pytest.mark.django_db
def test_on_another_major_version_names_and_types_are_compared(monkeypatch):
    """The control: by wording, a trigger that is switched off is a difference; by name it is none."""
    change("ALTER TABLE judging_slot DISABLE TRIGGER judging_slot_done")
    assert schema.difference(connection)
    monkeypatch.setattr(schema, "major_version", lambda _: 17)
    assert not schema.difference(connection)
    change("ALTER TABLE judging_judgment ALTER grade TYPE integer")
    assert schema.difference(connection).words() == [
        "missing: column judging_judgment.grade smallint",
        "not expected: column judging_judgment.grade integer",
    ]


@pytest.mark.django_db
def test_more_than_expected_is_told_and_a_rule_more_is_refused_unless_a_newer_version_made_it(client, capsys):
    change("ALTER TABLE judging_topic ADD COLUMN colour text")
    call_command("prepare", check=True)
    assert "not expected: column judging_topic.colour text" in capsys.readouterr().err
    assert client.get("/readyz").json()["checks"]["schema"] == "ok", (
        "old processes serve on beside newer ones"
    )
    MigrationRecorder(connection).record_applied("judging", "9999_topics_have_colours")
    call_command("prepare", check=True)
    assert "of a newer version" in capsys.readouterr().err


@pytest.mark.django_db
def test_a_newer_version_may_redefine_what_the_older_one_knows_by_name(client, capsys):
    """The control: without the newer version's migration the same change is a difference, and nothing is served."""
    change(
        "ALTER TABLE judging_slot DISABLE TRIGGER judging_slot_done",
        "ALTER TABLE judging_judgment ALTER comment TYPE varchar(4000)",
    )
    assert client.get("/readyz").status_code == 503
    with pytest.raises(CommandError):
        call_command("prepare", check=True)
    MigrationRecorder(connection).record_applied("judging", "9999_longer_comments")
    health.watch.forget()
    assert client.get("/readyz").status_code == 200
    call_command("prepare", check=True)
    change("DROP INDEX touchstone_job_listed")
    with pytest.raises(CommandError):
        call_command("prepare", check=True)
    assert "missing: index touchstone_job.touchstone_job_listed" in capsys.readouterr().err


# -- migrations ------------------------------------------------------------------------------------------------


def migrations():
    folders = [REPOSITORY / name for name in ("judging", "sampling", "analytics", "platform/touchstone")]
    found = {}
    for folder in folders:
        for path in (folder / "migrations").glob("0*.py"):
            name = path.relative_to(REPOSITORY).as_posix()
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_a_released_migration_is_never_changed():
    released = dict(line.split("  ")[::-1] for line in RELEASED.read_text().splitlines())
    assert len(released) > 40
    now = migrations()
    assert {name: now.get(name) for name in released} == released


@pytest.mark.django_db(transaction=True)
def test_a_migration_waits_briefly_for_a_table_in_use_and_tries_again(monkeypatch, servers, capsys, request):
    monkeypatch.setattr(prepare, "LOCK_TIMEOUT", "100ms")
    monkeypatch.setattr(prepare, "BETWEEN_TRIES", (0.0, 0.01))
    address = f"{servers.database_url.rpartition('/')[0]}/{connection.settings_dict['NAME']}"
    other = psycopg.connect(address)
    request.addfinalizer(other.close)
    other.execute("LOCK TABLE judging_topic IN ACCESS SHARE MODE")
    tried = []

    def migrate(command, **_):
        tried.append(command)
        if len(tried) == 3:
            other.rollback()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE judging_topic IN ACCESS EXCLUSIVE MODE")

    monkeypatch.setattr(prepare, "call_command", migrate)
    prepare.Command()._migrate()
    assert tried == ["migrate"] * 3
    other.execute("LOCK TABLE judging_topic IN ACCESS SHARE MODE")
    tried.append("never released again")
    with pytest.raises(CommandError, match="a table stayed in use"):
        prepare.Command()._migrate()
    assert len(tried) == 4 + prepare.MOST_TRIES
    assert "try 1 of 20" in capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
def test_another_fault_of_a_migration_is_not_tried_again(monkeypatch):
    def migrate(command, **_):
        raise OperationalError("the server is gone")

    monkeypatch.setattr(prepare, "call_command", migrate)
    with pytest.raises(OperationalError):
        prepare.Command()._migrate()
