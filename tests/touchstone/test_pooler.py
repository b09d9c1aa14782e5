"""The product through PgBouncer in transaction mode: judging, jobs, a release; and what fails without POOLER."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pgbouncer
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.db import OperationalError, ProgrammingError, connection
from django.test import override_settings
from psycopg import Cursor
from psycopg.errors import DuplicatePreparedStatement, InvalidCursorName
from small_campaign import judge_all, make_assessor, make_campaign, slots

import judging.tasks  # noqa: F401 (registers the job)
from analytics.models import Release
from analytics.releases.services.releasing import build, make_release
from analytics.services.recomputation import recompute
from judging.models import Run
from judging.services.files import queue_import
from touchstone import jobs, metrics
from touchstone.ledger.verification import file_faults
from touchstone.models import User
from touchstone.rights import WEB, WORKER
from touchstone.roles import SETTINGS
from touchstone.settings import database_from_url

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from parts.claims import storm

sys.path.pop()
pytestmark = [
    pytest.mark.skipif(not pgbouncer.is_here(), reason="pgbouncer is not installed (Debian's package)"),
    pytest.mark.slow,
    # The control leaves a cursor that nobody can close any more.
    pytest.mark.filterwarnings("ignore:.*ServerSideCursor.* was deleted while still open:ResourceWarning"),
    pytest.mark.django_db(transaction=True),
]
POOL = 4  # connections to PostgreSQL for each role: fewer than there are callers


@pytest.fixture(scope="module")
def pooler(servers, made_roles, tmp_path_factory):
    made = pgbouncer.PgBouncer(
        tmp_path_factory.mktemp("pooler") / "pgbouncer", servers.postgres_port, servers.passwords, POOL
    )
    made.start(connection.settings_dict["NAME"])
    yield made
    made.stop()


@contextmanager
def logged_in(servers, pooler, role, mode="transaction"):
    """Let every connection of this process go through the pooler as the role; `mode` as POOLER has it."""
    before = dict(connection.settings_dict)
    connection.close()
    through = database_from_url(pooler.url(servers.url_of(role)), mode)
    connection.settings_dict.update({**through, "NAME": before["NAME"]})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)


# -- judging ----------------------------------------------------------------------------------------------------


def test_a_crowd_judges_through_fewer_connections_than_there_are_assessors(servers, pooler):
    with logged_in(servers, pooler, WEB):
        found = storm(seed=3, n_items=40, n_assessors=12, ahead=2, is_one_request=True)
    assert found["assignments"] == 40 * 3
    for fault in ("over_assigned", "duplicates", "false_empty", "unfilled", "unexplained", "too_many_ahead"):
        assert found[fault] == 0, (fault, found)
    assert set(found["faults"]) <= {"AlreadyJudged"}


def prepared_twice():
    """Run one statement, as the product's own are run, on more connections than the pooler has."""
    several = [connection.copy() for _ in range(POOL + 2)]
    try:
        for one in several:
            one.ensure_connection()
            for _ in range(2):
                Cursor(one.connection).execute("SELECT %s::int + 1", [1])
    finally:
        for one in several:
            one.close()


def test_without_the_setting_statements_are_prepared_twice(servers, pooler):
    with logged_in(servers, pooler, WEB, mode=""), pytest.raises(DuplicatePreparedStatement):
        prepared_twice()
    with logged_in(servers, pooler, WEB):  # the control
        prepared_twice()


def read_while_somebody_else_is_lent_the_connection() -> list[User]:
    rows = User.objects.order_by("pk").iterator(chunk_size=10)
    first = next(rows)
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute("SELECT 1")  # its transaction stays open and keeps what it was lent last
        return [first, *rows]
    finally:
        other.close()


def fault_of_reading() -> str:
    try:
        read_while_somebody_else_is_lent_the_connection()
    except (
        ProgrammingError,
        InvalidCursorName,
    ) as error:  # Django translates the first, not that of its tidying up
        return str(error)
    return ""


def test_without_the_setting_a_cursor_is_gone_with_its_transaction(servers, pooler):
    User.objects.bulk_create(User(username=f"user {n}") for n in range(30))
    with logged_in(servers, pooler, WEB):
        assert len(read_while_somebody_else_is_lent_the_connection()) == 30
    with logged_in(servers, pooler, WEB, mode=""):
        assert fault_of_reading().endswith("does not exist")


@pytest.mark.parametrize("role", [WEB, WORKER])
def test_sessions_have_the_settings_of_their_role_though_none_are_sent(servers, pooler, role):
    with logged_in(servers, pooler, role), connection.cursor() as cursor:
        assert "options" not in connection.settings_dict["OPTIONS"]
        for name, value in SETTINGS[role].items():
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == (value,), name


def test_pgbouncer_refuses_the_options_that_other_users_send(servers, pooler):
    with pytest.raises(
        ImproperlyConfigured, match=r"connect as touchstone_web or touchstone_worker.*not as mara"
    ):
        database_from_url("postgresql://mara:x@127.0.0.1:1/touchstone", "transaction")
    sent = database_from_url("postgresql://mara:x@127.0.0.1:1/touchstone", "")["OPTIONS"]
    with logged_in(servers, pooler, WEB, mode=""):
        connection.settings_dict["OPTIONS"] = {
            **connection.settings_dict["OPTIONS"],
            "options": sent["options"],
        }
        with pytest.raises(OperationalError, match="unsupported startup parameter"):
            connection.ensure_connection()


# -- jobs -------------------------------------------------------------------------------------------------------


def test_a_job_a_computation_and_a_release_go_through_the_pooler(servers, pooler, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "files"
    campaign = make_campaign(tmp_path)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    with logged_in(servers, pooler, WEB):
        judge_all(campaign, people)
        file = ContentFile(b"t0 Q0 t0d00 1 2.5 more\n", name="more.run")
        job = queue_import(kind="runs", files=[file], collection=campaign.collection)
    with logged_in(servers, pooler, WORKER):
        jobs.run(job.pk)
        job.refresh_from_db()
        assert (job.state, job.error) == ("done", "")
        computation = recompute(campaign=campaign)
        release = build(release=make_release(campaign=campaign, version="1.0", actor=None, by_job=False))
        assert list(file_faults()) == []
    assert Run.objects.filter(run_id="more").exists()
    assert computation.n_judgments == len(slots(campaign, state="done")) > 0
    assert Release.objects.get().sha256 == release.sha256


def test_a_limit_of_the_metrics_is_not_left_to_whoever_is_lent_the_connection_next(servers, pooler):
    with logged_in(servers, pooler, WEB):
        names = {metric.name for metric in metrics._numbers_of_database()}
        assert "touchstone_jobs" in names
        with connection.cursor() as cursor:
            for _ in range(2 * POOL):
                cursor.execute("SHOW statement_timeout")
                assert cursor.fetchone() == ("0",)


# -- what needs PostgreSQL itself -------------------------------------------------------------------------------


@override_settings(POOLER="transaction", DATABASE_OWNER_URL="", DATABASE_BACKUP_URL="")
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["prepare"], "set DATABASE_OWNER_URL to the owner's address at PostgreSQL itself"),
        (["backup", "{}"], "set DATABASE_BACKUP_URL, to PostgreSQL itself"),
        (["backup", "{}", "--dump"], "set DATABASE_OWNER_URL, to PostgreSQL itself"),
    ],
)
def test_what_a_pooler_cannot_pass_says_so(command, words, tmp_path):
    with pytest.raises(CommandError, match=words):
        call_command(*(word.format(tmp_path) for word in command))


def test_another_kind_of_pooling_is_refused():
    started = subprocess.run(
        [sys.executable, "-c", "import touchstone.settings"],
        env={**os.environ, "POOLER": "session"},
        capture_output=True,
        text=True,
    )
    assert "POOLER is transaction, or empty, not session" in started.stderr
