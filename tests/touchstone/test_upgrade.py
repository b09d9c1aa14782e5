"""A database of every release is migrated while people judge in it: nothing is lost, and no fact changes."""

import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from released_database import RELEASES, callers, columns_of, contents, restore

from sampling.measures.registry import usual_spelling
from touchstone.rights import APPEND_ONLY, OWNER, SEALS, TABLES, WEB, WORKER

pytestmark = pytest.mark.django_db(transaction=True)

REPOSITORY = Path(__file__).parents[2]
LONGEST_PAUSE = 5.0  # seconds
# What people who judge meanwhile change, and what a migration writes down about itself.
IN_MOTION = {
    "judging_slot",
    "judging_assessor",
    "django_migrations",
    "auth_permission",
    "django_content_type",
}
# Columns from which a migration takes names, and what it puts in their place.
WITHOUT_NAMES = {"touchstone_event": "detail", "analytics_confusionestimate": "label"}


def manage(environment, *arguments):
    command = [sys.executable, str(REPOSITORY / "manage.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("version", RELEASES)
def test_a_released_database_is_migrated_under_sixteen_callers(version, servers, child_environment, tmp_path):
    address = restore(servers, version, f"upgraded-{version}", tmp_path)
    environment = {
        **child_environment,
        "DATABASE_URL": address,
        "DATABASE_OWNER_URL": address,
        **{
            f"DATABASE_{role.removeprefix('touchstone_').upper()}_PASSWORD": password
            for role, password in servers.passwords.items()
        },
        "TOUCHSTONE_VAR": str(tmp_path),
    }
    old = {
        table: [name for name in names if name != WITHOUT_NAMES.get(table)]
        for table, names in columns_of(address).items()
    }
    before = contents(address, old)
    assert [table for table, rows in before.items() if not rows] == []
    names, details = _people(address), _details(address)
    assert {detail["assessor"] for detail in details.values() if "assessor" in detail} <= names.keys()
    assert manage(environment, "prepare", "--check").returncode == 3

    people, end = callers(address, version)
    assert len(people) == 16
    for person in people:
        person.start()
    try:
        prepared = manage(environment, "prepare")
    finally:
        end.set()
        for person in people:
            person.join(30)
    assert prepared.returncode == 0, prepared.stderr
    assert manage(environment, "prepare", "--check").returncode == 0

    acknowledged = [token for person in people for token in person.acknowledged]
    with psycopg.connect(address) as connection:
        stored = Counter(connection.execute("SELECT client_token FROM judging_judgment").fetchall())
    assert len(acknowledged) > 100
    assert [token for token in acknowledged if stored[(token,)] != 1] == []
    assert max(person.longest for person in people) < LONGEST_PAUSE

    after = contents(address, {table: names for table, names in old.items() if table in columns_of(address)})
    changed = {
        table: [key for key, row in rows.items() if after[table].get(key) != row]
        for table, rows in before.items()
        if table not in IN_MOTION
    }
    assert {table: keys for table, keys in changed.items() if keys} == {}
    assert _details(address) == {key: _without_names(detail, names) for key, detail in details.items()}
    _assert_matrices_name_nobody(address)
    # What is new runs as the roles that were made, and has the rights that it needs.
    as_web, as_worker = (
        f"{servers.url_of(role).rpartition('/')[0]}/{address.rpartition('/')[2]}" for role in (WEB, WORKER)
    )
    assert manage({**environment, "DATABASE_URL": as_web}, "prepare", "--check").returncode == 0
    _assert_numbers_are_the_same(
        {**environment, "DATABASE_URL": as_worker, "TOUCHSTONE_ROLE": "worker"}, address
    )
    _assert_two_may_prepare_again(environment, address)
    _assert_facts_are_kept(address)
    _assert_a_dump_is_restored_whole(servers, environment, address, tmp_path)
    _assert_the_release_verifies(tmp_path)


def _people(address):
    with psycopg.connect(address) as connection:
        return dict(connection.execute("SELECT username, id FROM touchstone_user").fetchall())


def _details(address):
    with psycopg.connect(address) as connection:
        return dict(connection.execute("SELECT id, detail FROM touchstone_event").fetchall())


def _without_names(detail, ids):
    """What the migration says of an event of the old release: ids in the place of people and of invitations."""
    found = {name: value for name, value in detail.items() if name != "note"}
    if "assessor" in detail:
        found["assessor"] = ids[detail["assessor"]]
    if "assessors" in detail:
        found["assessors"] = sorted(ids[name] for name in detail["assessors"])
    if "note" in detail:
        found["invitation"] = 1  # the only one
    return found


def _assert_matrices_name_nobody(address):
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            """SELECT label, key = assessor_id::text FROM analytics_confusionestimate
                WHERE scope = 'assessor'"""
        )
        assert set(rows.fetchall()) == {("", True)}
        # They are append-only as before.
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("UPDATE analytics_confusionestimate SET label = 'bob'")
        connection.rollback()
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("UPDATE touchstone_event SET detail = '{}'")


def _assert_two_may_prepare_again(environment, address):
    """Two at once, and everything is made already: nothing changes, and neither fails."""
    sql = """SELECT relname, relowner::regrole::text, relacl::text FROM pg_class
              WHERE relnamespace = 'public'::regnamespace"""
    with psycopg.connect(address, autocommit=True) as connection:
        before = sorted(connection.execute(sql).fetchall())
        assert {owner for _, owner, _ in before} == {OWNER}
        command = [sys.executable, str(REPOSITORY / "manage.py"), "prepare"]
        both = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
        assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0)] * 2
        assert sorted(connection.execute(sql).fetchall()) == before


def _assert_facts_are_kept(address):
    """Not even a superuser's session that plays a replica changes one, in any table that the release filled."""
    facts = [table for table, allowed in TABLES.items() if allowed in (APPEND_ONLY, SEALS)]
    columns, refused = columns_of(address), []
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in facts:
            column = columns[table][0]
            tried = [f"TRUNCATE {table} CASCADE"]
            if connection.execute(f"SELECT FROM {table} LIMIT 1").fetchone() is not None:
                tried += [f'UPDATE {table} SET "{column}" = "{column}"', f"DELETE FROM {table}"]  # noqa: S608
            for sql in tried:
                with pytest.raises(psycopg.errors.CheckViolation, match=f"{table} is append-only"):
                    connection.execute(sql)
                refused.append(sql)
    assert len(refused) >= len(facts) + 2 * 24  # the oldest release fills 24 of them


def _assert_a_dump_is_restored_whole(servers, environment, address, folder):
    """As docs/operations.md says: what guards the facts does not stand in the way of their own backup."""
    other = f"{address}-restored"
    with psycopg.connect(address, autocommit=True) as connection:
        name = other.rpartition("/")[2]
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    dump = str(folder / "touchstone.dump")
    for program, *arguments in (
        ("pg_dump", "--format=custom", f"--file={dump}", address),
        ("pg_restore", "--exit-on-error", "--no-owner", "--no-acl", f"--dbname={other}", dump),
    ):
        done = subprocess.run([str(servers.binaries / program), *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert contents(other) == contents(address)
    restored = {**environment, "DATABASE_URL": other, "DATABASE_OWNER_URL": other}
    assert manage(restored, "prepare").returncode == 0
    assert manage(restored, "prepare", "--check").returncode == 0
    _assert_facts_are_kept(other)


def _assert_numbers_are_the_same(environment, address):
    """The estimates by the methods that are as they were: what was stored, and what is computed now."""
    sql = """SELECT run_id, run_b_id, measure, method, value, low, high FROM analytics_estimate
              WHERE computation_id = (SELECT max(id) FROM analytics_computation WHERE campaign_id = %s)
                AND method IN ('naive', 'matrix-inverse', 'true') AND value IS NOT NULL"""
    with psycopg.connect(address) as connection:
        campaign = connection.execute(
            "SELECT id FROM judging_campaign WHERE name LIKE 'Campaign of%'"
        ).fetchone()
        # Measures are stored in their usual spelling since; the old ones are still read.
        rows = connection.execute(sql, campaign).fetchall()
        stored = {(*row[:2], usual_spelling(row[2]), row[3]): row[4:] for row in rows}
    assert len(stored) > 50
    code = "from analytics.services.recomputation import recompute; from judging.models import Campaign; recompute("
    computed = manage(environment, "shell", "-c", f"{code}campaign=Campaign.objects.get(pk='{campaign[0]}'))")
    assert computed.returncode == 0, computed.stderr
    with psycopg.connect(address) as connection:
        now = {row[:4]: row[4:] for row in connection.execute(sql, campaign)}
    assert {key: now.get(key) for key in stored} == {key: pytest.approx(row) for key, row in stored.items()}


def _assert_the_release_verifies(folder):
    """A release carries its own program."""
    (archive,) = (folder / "files" / "releases").glob("*.zip")
    with zipfile.ZipFile(archive) as release:
        release.extractall(folder / "release")
    (program,) = (folder / "release").rglob("verify.py")
    verified = subprocess.run(
        [sys.executable, program.name], cwd=program.parent, capture_output=True, text=True
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
