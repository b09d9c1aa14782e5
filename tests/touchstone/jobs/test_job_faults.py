"""Jobs that meet a fault: what may be gone the next time is tried again, all else fails at once, under a number."""

import errno
import re

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError, transaction
from django.test import Client
from django.urls import reverse
from job_kinds import leave_mark, marks, queue, state_of

from judging.models import Collection
from touchstone import jobs
from touchstone.faults import FULL, IN_THE_WAY, LOST, words_if_passing
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db(transaction=True)


def wrapped(kind, cause):
    """Return the error as Django raises it: with the driver's as its cause."""
    error = kind(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (wrapped(OperationalError, psycopg.OperationalError("server closed the connection")), LOST),
        (wrapped(OperationalError, psycopg.errors.AdminShutdown("terminated")), LOST),
        (wrapped(OperationalError, psycopg.errors.CannotConnectNow("it starts")), LOST),
        (wrapped(OperationalError, psycopg.errors.ConnectionFailure("gone")), LOST),
        (psycopg.InterfaceError("the connection is closed"), LOST),
        (InterfaceError("connection already closed"), LOST),
        (wrapped(OperationalError, psycopg.errors.DeadlockDetected("deadlock")), IN_THE_WAY),
        (wrapped(OperationalError, psycopg.errors.LockNotAvailable("lock timeout")), IN_THE_WAY),
        (wrapped(OperationalError, psycopg.errors.DiskFull("no room")), FULL),
        (OSError(errno.ENOSPC, "No space left on device"), FULL),
        (wrapped(RuntimeError, OSError(errno.EDQUOT, "Disk quota exceeded")), FULL),
        (wrapped(OperationalError, psycopg.errors.QueryCanceled("statement timeout")), ""),
        (wrapped(OperationalError, psycopg.errors.OutOfMemory("out of memory")), ""),
        (wrapped(ProgrammingError, psycopg.errors.UndefinedTable("no such table")), ""),
        (FileNotFoundError(errno.ENOENT, "No such file"), ""),
        (MemoryError(), ""),
        (ValueError("measure"), ""),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_only_lost_connections_deadlocks_and_full_disks_may_be_gone_the_next_time(error, words):
    assert words_if_passing(error) == words


def numbers_in(text):
    return re.findall(r"fault ([0-9a-f]{8})", text)


def test_a_fault_of_ours_ends_the_job_at_once_and_its_traceback_is_in_the_log_under_the_number(
    no_redis, caplog
):
    job = queue("fall")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert (job.attempts, marks()) == (1, 0)
    assert job.finished_at is not None
    (number,) = numbers_in(job.error)
    assert "ValueError" not in job.error
    (record,) = [record for record in caplog.records if record.name == "touchstone.jobs"]
    assert numbers_in(record.getMessage()) == [number]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "attempt 1"
    assert str(job.pk) in record.getMessage()


def test_a_job_of_an_unknown_kind_fails_with_a_number(no_redis, caplog):
    job = queue("nobody knows")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert numbers_in(job.error) == numbers_in(caplog.text)
    assert "nobody knows" in caplog.text


def test_a_job_whose_connection_is_lost_is_tried_again_and_has_one_effect(no_redis):
    job = queue("lose", payload={"times": 2})
    for attempt in (1, 2):
        jobs.run(job.pk)
        assert state_of(job) == Job.State.QUEUED
        assert (job.attempts, marks()) == (attempt, 0)
        assert job.error.startswith(LOST)
    jobs.run(job.pk)
    assert (state_of(job), job.attempts, job.error, marks()) == (Job.State.DONE, 3, "", 1)


def test_a_fault_that_does_not_go_away_ends_the_job_after_three_attempts(no_redis):
    job = queue("lose", payload={"times": 9})
    for state in ("queued", "queued", "failed"):
        jobs.run(job.pk)
        assert state_of(job) == state
    assert (job.attempts, marks()) == (3, 0)
    assert f"{LOST}, 3 times" in job.error
    assert len(numbers_in(job.error)) == 1


def test_a_full_disk_is_tried_again(no_redis, monkeypatch):
    def fill(context):
        leave_mark(context)
        if context.job.attempts == 1:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setitem(jobs._handlers, "mark", fill)
    job = queue("mark")
    jobs.run(job.pk)
    assert (state_of(job), marks()) == (Job.State.QUEUED, 0)
    assert job.error.startswith(FULL)
    jobs.run(job.pk)
    assert (state_of(job), marks()) == (Job.State.DONE, 1)


def test_page_and_api_show_the_sentence_and_the_number_but_no_traceback(no_redis):
    mara = User.objects.create(username="mara", role=User.Role.MANAGER)
    collection = Collection.objects.create(name="c")
    with transaction.atomic():
        job = jobs.enqueue(kind="fall", payload={"collection": str(collection.pk)}, user=mara)
    jobs.run(job.pk)
    job.refresh_from_db()
    (number,) = numbers_in(job.error)
    client = Client()
    client.force_login(mara)
    page = client.get(reverse("job", args=[job.pk])).content.decode()
    answer = client.get(f"/api/v1/jobs/{job.pk}").json()
    assert numbers_in(page) == numbers_in(answer["error"]) == [number]
    assert "Traceback" not in page
    assert "ValueError" not in page
