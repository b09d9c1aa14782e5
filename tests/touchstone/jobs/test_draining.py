"""Workers that are told to stop: their job is begun anew by the next one, and that is no attempt."""

import contextlib
import os
import signal
import warnings

import psutil
import pytest
from billiard import get_context
from django.db import connection
from job_kinds import expire_lease, gate, in_thread, marks, queue, state_of, until

from touchstone import jobs
from touchstone.celery import app
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db(transaction=True)
STOPS = 10


def celery_worker(log):
    """A real worker, with a child that does the work; forked from the tests, it need not import the product."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    jobs.worker_name.cache_clear()
    warnings.simplefilter("ignore")  # Celery's about root: no error in a worker
    quick_start = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    app.worker_main(["worker", "--concurrency", "1", "--loglevel", "info", *quick_start])


@contextlib.contextmanager
def forked_worker(log):
    app.loader.import_default_modules()  # once, not in every child
    connection.close()  # the child has connections of its own
    # Celery heeds signals in the process of this name alone.
    process = get_context("fork").Process(target=celery_worker, name="MainProcess", args=(str(log),))
    process.start()
    try:
        yield process
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
            os.kill(process.pid, signal.SIGKILL)
            psutil.wait_procs(family, timeout=5)
        process.join(10)


@pytest.mark.slow
def test_a_job_whose_worker_is_told_to_stop_ten_times_is_done_at_the_first_attempt(servers, tmp_path):
    job = queue("wait")
    workers = set()
    for n in range(STOPS):
        with forked_worker(tmp_path / "log") as worker:
            until(lambda: state_of(job) == Job.State.RUNNING and job.done > 0)
            workers.add(job.worker)
            os.kill(worker.pid, signal.SIGTERM)
            worker.join(20)
            assert worker.exitcode == 0, (n, (tmp_path / "log").read_text()[-2000:])
        assert (state_of(job), job.attempts, marks()) == ("queued", 0, 0)
    Event.objects.create(verb="go", subject="")
    with forked_worker(tmp_path / "log"):
        until(lambda: state_of(job) == Job.State.DONE)
    assert (job.attempts, marks(), len(workers)) == (1, 1, STOPS)


@pytest.mark.slow
def test_a_worker_that_is_killed_without_a_word_has_made_an_attempt(servers, tmp_path):
    """The control of the test above: what it sees does not come about by itself."""
    job = queue("wait")
    with forked_worker(tmp_path / "log"):
        until(lambda: state_of(job) == Job.State.RUNNING and job.done > 0)
    assert (state_of(job), job.attempts) == ("running", 1)
    expire_lease(job)
    gate.set()
    jobs.run(job.pk)
    assert (state_of(job), job.attempts, marks()) == ("done", 2, 1)


def test_a_marked_job_gives_way_at_its_next_progress_and_somebody_is_woken_up(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda lane: woken.append(lane) or True)
    job = queue("wait")
    woken.clear()
    with in_thread(job) as thread:
        assert jobs.drain("another:1") == 0
        assert jobs.drain(jobs.worker_name()) == 1
        thread.join(10)
        assert not gate.is_set()
    assert (state_of(job), job.attempts, marks(), woken) == ("queued", 0, 0, [job.lane])


def test_a_marked_job_that_is_killed_after_the_grace_period_was_not_tried(no_redis):
    job = queue("mark")
    for _ in range(jobs.Job.MAX_ATTEMPTS + 1):
        jobs._lease(Job.objects.filter(pk=job.pk))
        jobs.drain(jobs.worker_name())  # and the worker is killed
        expire_lease(job)
    jobs.run(job.pk)
    assert (state_of(job), job.attempts, marks()) == ("done", 1, 1)


def test_the_mark_of_one_lease_is_none_of_the_next(no_redis):
    job = queue("mark")
    jobs._lease(Job.objects.filter(pk=job.pk))
    jobs.drain(jobs.worker_name())
    expire_lease(job)
    for attempt in (1, 2, 3):
        jobs._lease(Job.objects.filter(pk=job.pk))  # this time the worker dies by itself
        assert (state_of(job), job.attempts) == ("running", attempt)
        expire_lease(job)
    jobs.run(job.pk)
    assert (state_of(job), job.attempts) == ("failed", 3)
    assert "died 3 times" in job.error


def test_a_marked_job_that_comes_to_its_end_within_the_grace_period_is_done(no_redis, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 3600)
    job = queue("wait")
    with in_thread(job):
        jobs.drain(jobs.worker_name())
    assert (state_of(job), job.attempts, marks()) == ("done", 1, 1)
