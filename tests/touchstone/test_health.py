"""Ready means that a judgment can be stored: each check by what breaks it, with the probe that would not notice."""

from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from psycopg.errors import DiskFull

from touchstone import health, lanes, signs
from touchstone.models import Job, RateCounter, WorkerHeartbeat

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def a_quiet_machine(settings):
    settings.DISK_FLOOR = 0
    signs.worker_lives("a:1", lanes.SECONDS)
    health.watch.forget()
    yield
    health.watch.forget()


def test_all_is_well(client):
    client.get("/livez")  # what a first request loads may take longer than a worker may be silent
    signs.worker_lives("a:1", lanes.SECONDS)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    names = ["database", "write", "schema", "disk", "worker", "clock", "jobs"]
    assert answer.json() == {"status": "ok", "checks": dict.fromkeys(names, "ok")}


def test_the_trial_is_stored_nowhere_but_its_one_row():
    for _ in range(2):
        assert health.look().checks["write"] == "ok"
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = 'touchstone_trial'")
        assert cursor.fetchone() == (0,)
    assert RateCounter.objects.filter(key="readiness").count() == 1


def test_a_full_disk_is_found_where_reading_still_works(monkeypatch, client):
    """The database says so when a page has to be added: here every INSERT does as it then does."""

    def full(execute, sql, params, many, context):
        if sql.startswith("INSERT INTO touchstone_trial"):
            raise OperationalError("could not extend file") from DiskFull()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(full):
        answer = client.get("/readyz")
        assert health._database() == "ok", "the naive probe notices nothing"
    assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
    assert answer.json()["checks"]["write"] == "the disk is full"
    health.watch.forget()
    assert client.get("/readyz").status_code == 200


def test_a_read_only_database_is_not_ready(client):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        found = health.look()
        transaction.set_rollback(True)
    assert found.checks["write"] == "the database is read-only"
    assert found.status == "unavailable"


@pytest.mark.parametrize(("floor", "status"), [(0, "ok"), (10**18, "degraded")])
def test_little_room_on_a_disk_degrades(floor, status, settings, client):
    settings.DISK_FLOOR = floor
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, status)


def test_no_worker_degrades(client):
    WorkerHeartbeat.objects.update(seen_at=timezone.now() - timedelta(seconds=21))
    answer = client.get("/readyz").json()
    assert (answer["status"], answer["checks"]["worker"]) == ("degraded", "none is running")


def test_a_lane_that_nobody_serves_degrades_and_is_named():
    past = timezone.now() - timedelta(seconds=21)
    WorkerHeartbeat.objects.filter(name="lane quick").update(seen_at=past)
    signs.worker_lives("b:2", [lanes.NUMBERS, lanes.TICK])
    assert signs.worker_is_running(), "the naive question: does any worker live"
    found = health.look()
    assert (found.status, found.checks["worker"]) == ("degraded", "none serves quick")
    WorkerHeartbeat.objects.filter(name="lane heavy").delete()
    assert health.look().checks["worker"] == "none serves quick or heavy"
    signs.worker_lives("c:3", lanes.SECONDS)
    assert health.look().checks["worker"] == "ok"


def test_a_clock_that_is_off_degrades(monkeypatch):
    assert health.look().checks["clock"] == "ok"
    moved = datetime.now(tz=timezone.get_current_timezone()) + timedelta(minutes=3)
    monkeypatch.setattr(timezone, "now", lambda: moved)
    found = health.look()
    assert found.checks["clock"] == "180 s from the database's"
    assert found.status == "degraded"


def test_a_job_that_waits_for_long_degrades(client):
    job = Job.objects.create(kind="estimate")
    assert health.look().checks["jobs"] == "ok"
    Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=11))
    assert client.get("/readyz").json()["checks"]["jobs"] == "1 waiting for over 10 minutes"


def test_many_probes_are_one_look(client, monkeypatch):
    looks = []
    look = health.look

    def counted():
        looks.append(1)
        return look()

    monkeypatch.setattr(health, "look", counted)
    for _ in range(10):
        client.get("/readyz")
    assert len(looks) == 1
    monkeypatch.setattr(health, "EVERY", 0.0)
    client.get("/readyz")
    assert len(looks) == 2


def test_without_a_database_nothing_behind_it_is_asked(monkeypatch):
    monkeypatch.setattr(health, "_database", lambda: "does not answer")
    found = health.look()
    assert found.status == "unavailable"
    assert set(found.checks) == {"database", "disk"}


def test_a_look_that_does_not_end_is_no_reason_to_say_ok_for_ever(client, monkeypatch):
    assert client.get("/readyz").status_code == 200
    monkeypatch.setattr(health, "EVERY", 0.0)
    with health.watch._lock:  # somebody looks, and waits for the database
        assert client.get("/readyz").json()["status"] == "ok"
        monkeypatch.setattr(health, "STUCK", 0.0)
        answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]) == (503, {"database": "does not answer"})
