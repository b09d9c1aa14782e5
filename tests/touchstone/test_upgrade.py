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


def manage(environment, *arguments):
    command = [sys.executable, str(REPOSITORY / "manage.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("version", RELEASES)
def test_a_released_database_is_migrated_under_sixteen_callers(version, servers, child_environment, tmp_path):
    address = restore(servers, version, f"upgraded-{version}", tmp_path)
    environment = {**child_environment, "DATABASE_URL": address, "TOUCHSTONE_VAR": str(tmp_path)}
    old = columns_of(address)
    before = contents(address)
    assert [table for table, rows in before.items() if not rows] == []
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
    _assert_numbers_are_the_same(environment, address)
    _assert_the_release_verifies(tmp_path)


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
