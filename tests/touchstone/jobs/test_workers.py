"""Jobs whose worker, sweep or Redis fails: sweeps, leases given up, and real workers that are killed."""

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import redis
from django.db import connection, transaction
from job_kinds import expire_lease, in_thread, marks, queue, state_of, until

from touchstone import jobs, lanes, signs
from touchstone.models import Event, Job, WorkerHeartbeat

pytestmark = pytest.mark.django_db(transaction=True)

TESTS = Path(__file__).parents[2]


def make_older(job, seconds=60):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE touchstone_job SET created_at = created_at - make_interval(secs => %s) WHERE id = %s",
            [seconds, job.pk],
        )


def test_a_heartbeat_extends_the_lease_and_shows_the_progress_while_the_work_goes_on(no_redis):
    job = queue("wait")
    with in_thread(job):
        until(lambda: state_of(job) and job.done > 3)
        early = (job.done, job.lease_until, job.heartbeat_at)
        until(lambda: state_of(job) and job.done > early[0])
        assert (job.total, job.note, job.percent) == (1_000_000, "waiting", 0)
        assert job.lease_until > early[1]
        assert job.heartbeat_at > early[2]
        assert marks() == 0  # the effect itself is not to be seen before the end
    assert state_of(job) == Job.State.DONE
    assert marks() == 1


def test_a_job_whose_workers_die_three_times_is_given_up(no_redis):
    job = queue("mark")
    for _ in range(3):
        assert jobs._lease(Job.objects.filter(pk=job.pk)) is not None  # and the worker dies
        assert jobs.sweep() == 0
        expire_lease(job)
        assert jobs.sweep() == 1
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert "died 3 times" in job.error
    assert marks() == 0


def test_a_sweep_wakes_for_forgotten_jobs_only_and_not_again_at_once(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda lane: woken.append(lane) or True)
    old, new = queue("mark"), queue("mark", payload={"mark": "new"})
    done = queue("mark")
    jobs.run(done.pk)
    for job in (old, done):
        make_older(job)
    woken.clear()
    assert jobs.sweep() == 1
    assert woken == [old.lane]
    assert state_of(new) == Job.State.QUEUED
    # A long queue behind a long job: the broker is not filled with a wake-up every five seconds ...
    assert jobs.sweep() == 0
    # ... but with one now and then, because Redis may have lost the last.
    Job.objects.filter(pk=old.pk).update(heartbeat_at="2026-01-01T00:00Z")
    assert jobs.sweep() == 1
    assert woken == [old.lane, old.lane]


def test_a_job_that_failed_is_woken_up_by_the_next_sweep(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda lane: woken.append(lane) or True)
    job = queue("lose", payload={"times": 1})
    make_older(job)
    assert jobs.sweep() == 1
    jobs.run(job.pk)
    assert state_of(job) == Job.State.QUEUED
    assert jobs.sweep() == 1


def test_a_sweep_gives_up_at_the_first_wake_up_that_redis_does_not_take(monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "poke", lambda lane: bool(asked.append(lane)))
    for _ in range(5):
        make_older(queue("mark"))
    asked.clear()
    assert jobs.sweep() == 0
    assert len(asked) == 1


def test_of_two_sweepers_at_once_only_one_sweeps(no_redis):
    job = queue("mark")
    make_older(job)
    counts = []

    def second():
        try:
            counts.append(jobs.sweep())
        finally:
            connection.close()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [jobs.SWEEPER_LOCK])  # the first one is at it
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(10)
        assert counts == [0]
    assert jobs.sweep() == 1


@contextlib.contextmanager
def frozen(servers):
    process = psutil.Process(servers.redis.process.pid)
    process.suspend()
    try:
        yield
    finally:
        process.resume()


@contextlib.contextmanager
def stopped(servers):
    servers.redis.stop()
    try:
        yield
    finally:
        servers.redis.start(servers.root / "log")
        servers.redis.ready()


@pytest.mark.parametrize("fault", [frozen, stopped])
def test_a_job_is_queued_within_five_seconds_while_redis_does_not_answer(servers, fault):
    assert jobs.poke(lanes.HEAVY) in {True, False}  # a connection is open when the fault comes
    with fault(servers):
        began = time.monotonic()
        job = queue("mark")
        assert time.monotonic() - began < 5
        again = time.monotonic()
        queue("mark", payload={"mark": "on a connection that must be made anew"})
        assert time.monotonic() - again < 5
    assert state_of(job) == Job.State.QUEUED
    make_older(job)
    with redis.Redis.from_url(servers.redis_url) as client:
        client.flushall()
        assert jobs.sweep() == 1  # the second one is younger than five seconds
        assert client.llen(lanes.HEAVY) == 1
        client.flushall()


def test_a_worker_that_says_so_lives_and_one_silent_for_long_does_not():
    assert not signs.worker_is_running()
    signs.worker_lives("a:1")
    signs.worker_lives("a:1")
    assert signs.worker_is_running()
    assert WorkerHeartbeat.objects.count() == 1
    WorkerHeartbeat.objects.update(seen_at="2026-01-01T00:00Z")
    assert not signs.worker_is_running()
    signs.worker_lives("b:2")
    assert list(WorkerHeartbeat.objects.values_list("name", flat=True)) == ["b:2"]


@contextlib.contextmanager
def worker(environment, log, *more):
    """Start a real worker that knows this file's handlers; whatever is left of it at the end is killed."""
    command = [sys.executable, "-m", "celery", "-A", "touchstone", "worker", "-c", "1", "-I", "job_kinds"]
    command += more
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**environment, "PYTHONPATH": str(TESTS), "TOUCHSTONE_ROLE": "worker"},
            stdout=output,
            stderr=output,
            cwd=TESTS,
        )
    try:
        yield psutil.Process(process.pid)
    finally:
        kill_tree(process.pid)
        process.wait(10)


def kill_tree(pid):
    try:
        leader = psutil.Process(pid)
        family = [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family[1:], timeout=5)


@pytest.mark.slow
def test_a_job_outlives_its_worker_and_has_one_effect(child_environment, tmp_path):
    with worker(child_environment, tmp_path / "log") as first:
        quick = queue("mark")
        until(lambda: state_of(quick) == Job.State.DONE)
        assert signs.worker_is_running()
        assert signs.unserved_lanes() == [], "a worker without --queues serves all"
        slow = queue("wait")
        until(lambda: state_of(slow) == Job.State.RUNNING and slow.done > 0)
        kill_tree(first.pid)
    assert state_of(slow) == Job.State.RUNNING
    assert marks() == 1
    Event.objects.create(verb="go", subject="")
    expire_lease(slow)
    WorkerHeartbeat.objects.all().delete()
    assert signs.unserved_lanes() == list(lanes.SECONDS)
    with worker(child_environment, tmp_path / "log", "--queues", "heavy,tick"):
        until(lambda: state_of(slow) == Job.State.DONE)
        assert signs.unserved_lanes() == [lanes.QUICK, lanes.NUMBERS]
    assert (slow.attempts, marks()) == (2, 2)


@pytest.mark.slow
def test_a_job_that_kills_its_worker_is_given_up_and_the_others_are_served(child_environment, tmp_path):
    with worker(child_environment, tmp_path / "log"):
        poison = queue("die")
        for attempt in (1, 2, 3):
            until(lambda attempt=attempt: state_of(poison) and poison.attempts == attempt)
            other = queue("mark")
            until(lambda other=other: state_of(other) == Job.State.DONE)
            expire_lease(poison)
            jobs.poke(poison.lane)
        until(lambda: state_of(poison) == Job.State.FAILED)
    assert "died 3 times" in poison.error
    assert marks() == 3


@pytest.mark.slow
def test_a_worker_works_on_after_redis_was_killed(child_environment, servers, tmp_path):
    with worker(child_environment, tmp_path / "log") as process:
        first = queue("mark")
        until(lambda: state_of(first) == Job.State.DONE)
        servers.redis.process.kill()
        servers.redis.process.wait()
        with stopped(servers):
            meanwhile = queue("mark")  # nobody is woken up for this one
            time.sleep(1)
        after = queue("mark")
        make_older(meanwhile)
        until(lambda: state_of(after) == state_of(meanwhile) == Job.State.DONE, seconds=30)
        assert process.is_running()
    assert marks() == 3
