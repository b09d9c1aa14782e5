"""Jobs: one committed effect each, whatever dies in between. On a real PostgreSQL, a real Redis and a real worker."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest
import redis
from django.db import connection, transaction

from touchstone import jobs
from touchstone.models import Event, Job, WorkerHeartbeat

HERE = Path(__file__).parent
pytestmark = pytest.mark.django_db(transaction=True)
gate = threading.Event()


def leave_mark(context):
    """Do what a test can count: one event, in the job's transaction."""
    Event.objects.create(verb="did", subject=context.payload.get("mark", ""), detail={})


@jobs.handler("mark")
def mark(context):
    leave_mark(context)
    context.progress(1, 1, "marked")
    context.result = {"answer": 42}


@jobs.handler("fall")
def fall(context):
    leave_mark(context)
    raise ValueError(f"attempt {context.job.attempts}")


@jobs.handler("refuse")
def refuse(context):
    leave_mark(context)
    raise jobs.JobRefused("there is nothing to draw from")


@jobs.handler("wait")
def wait(context):
    """Work until the test opens the gate (its thread) or a "go" event is committed (another process)."""
    leave_mark(context)
    step = 0
    while not gate.is_set() and not Event.objects.filter(verb="go").exists():
        step += 1
        context.progress(step, 1_000_000, "waiting")
        time.sleep(0.02)


@jobs.handler("wait once")
def wait_once(context):
    """The first attempt falls silent until the gate opens, without a sign of progress; the second one is quick."""
    leave_mark(context)
    if context.job.attempts == 1:
        assert gate.wait(30)


@jobs.handler("end badly")
def end_badly(context):
    leave_mark(context)
    assert gate.wait(30)
    faults = {kind.__name__: kind for kind in (jobs.JobCancelled, jobs.JobRefused, ArithmeticError)}
    raise faults[context.payload["fault"]]


@jobs.handler("die")
def die(context):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(autouse=True)
def quick_heartbeat(monkeypatch):
    gate.clear()
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.05)
    yield
    gate.set()


@pytest.fixture
def no_redis(monkeypatch):
    """For tests about rows alone: nobody is woken up, `jobs.run` is called by the test."""
    monkeypatch.setattr(jobs, "poke", lambda job_id: True)


def queue(kind, **fields):
    with transaction.atomic():
        return jobs.enqueue(kind=kind, payload=fields.pop("payload", {}), **fields)


def state_of(job):
    job.refresh_from_db()
    return job.state


def marks():
    return Event.objects.filter(verb="did").count()


def until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def expire_lease(job):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE touchstone_job SET lease_until = now() - interval '1 s' WHERE id = %s", [job.pk]
        )


def make_older(job, seconds=60):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE touchstone_job SET created_at = created_at - make_interval(secs => %s) WHERE id = %s",
            [seconds, job.pk],
        )


@contextlib.contextmanager
def in_thread(job):
    """Run the job in a thread, as a worker would; the body starts when its first progress can be seen here."""

    def work():
        try:
            jobs.run(job.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        until(lambda: state_of(job) == Job.State.RUNNING)
        yield thread
    finally:
        gate.set()
        thread.join(20)
        assert not thread.is_alive()


def test_a_job_commits_its_effect_together_with_done(no_redis):
    job = queue("mark")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.DONE
    assert (job.result, job.note, job.percent, job.attempts) == ({"answer": 42}, "marked", 100, 1)
    assert (job.lease_token, job.lease_until, job.error) == (None, None, "")
    assert job.finished_at is not None
    assert marks() == 1


def test_a_job_queued_in_a_transaction_that_is_rolled_back_never_was(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", woken.append)
    with transaction.atomic():
        assert jobs.enqueue(kind="mark", payload={}) is not None
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert woken == []


def test_a_second_run_does_nothing_while_the_first_works_or_when_it_is_done(no_redis):
    job = queue("wait")
    with in_thread(job):
        jobs.run(job.pk)
        assert state_of(job) == Job.State.RUNNING
        assert job.attempts == 1
    jobs.run(job.pk)
    assert state_of(job) == Job.State.DONE
    assert (job.attempts, marks()) == (1, 1)


def test_running_a_job_that_does_not_exist_does_nothing(no_redis):
    jobs.run(uuid.uuid4())
    assert not Job.objects.exists()


def test_only_one_job_of_an_active_key_is_active_and_a_new_one_may_follow(no_redis):
    first = queue("mark", active_key="campaign 7")
    assert queue("mark", active_key="campaign 7") is None
    assert queue("mark", active_key="campaign 8") is not None
    assert queue("wait", active_key="campaign 7") is not None  # the key is one of the kind
    jobs.run(first.pk)
    assert queue("mark", active_key="campaign 7") is not None


def test_a_period_is_done_once_for_ever(no_redis):
    first = queue("mark", period_key="audit 7 2026-11-21")
    jobs.run(first.pk)
    assert queue("mark", period_key="audit 7 2026-11-21") is None
    assert queue("mark", period_key="audit 7 2026-11-22") is not None


def test_sixteen_callers_at_once_queue_one_job(no_redis):
    start, made = threading.Barrier(16), []

    def ask():
        try:
            start.wait()
            made.append(queue("mark", active_key="campaign 7", period_key="2026-11-21"))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 16
    assert len([job for job in made if job is not None]) == 1
    assert Job.objects.count() == 1


def test_a_job_that_fails_is_tried_three_times_and_leaves_no_effect(no_redis):
    job = queue("fall")
    for attempt, state in [(1, "queued"), (2, "queued"), (3, "failed")]:
        jobs.run(job.pk)
        assert state_of(job) == state
        assert (job.attempts, job.error) == (attempt, f"ValueError: attempt {attempt}")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert (job.attempts, marks()) == (3, 0)
    assert job.finished_at is not None


def test_a_refused_job_fails_at_once_with_the_reason(no_redis):
    job = queue("refuse")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert (job.attempts, job.error, marks()) == (1, "there is nothing to draw from", 0)


def test_a_job_of_an_unknown_kind_fails_with_a_reason(no_redis):
    job = queue("nobody knows")
    for _ in range(3):
        jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert "nobody knows" in job.error


def test_cancelling_a_waiting_job_ends_it_and_it_never_runs(no_redis):
    job = queue("mark")
    jobs.cancel(job)
    assert state_of(job) == Job.State.CANCELLED
    jobs.run(job.pk)
    assert (state_of(job), job.attempts, marks()) == (Job.State.CANCELLED, 0, 0)


def test_cancelling_a_running_job_stops_it_within_two_seconds_and_rolls_back(no_redis):
    job = queue("wait")
    with in_thread(job) as thread:
        began = time.monotonic()
        jobs.cancel(job)
        thread.join(20)
        assert time.monotonic() - began < 2
        assert not gate.is_set()
    assert state_of(job) == Job.State.CANCELLED
    assert marks() == 0


def test_cancelling_a_job_whose_worker_died_ends_it_at_the_next_wake_up(no_redis):
    job = queue("mark")
    assert jobs._lease(job.pk) is not None  # the worker dies here
    jobs.cancel(job)
    assert state_of(job) == Job.State.RUNNING
    expire_lease(job)
    jobs.run(job.pk)
    assert (state_of(job), marks()) == (Job.State.CANCELLED, 0)


def test_cancelling_a_finished_job_changes_nothing(no_redis):
    job = queue("mark")
    jobs.run(job.pk)
    jobs.cancel(job)
    assert state_of(job) == Job.State.DONE
    assert not job.cancel_requested


def test_an_expired_lease_is_taken_over_and_the_first_runner_is_rolled_back(no_redis, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 3600)  # the first runner has fallen silent
    job = queue("wait once", payload={"mark": "once"})
    with in_thread(job):
        expire_lease(job)
        jobs.run(job.pk)
        assert state_of(job) == Job.State.DONE
        assert (job.attempts, marks()) == (2, 1)
        finished_at = job.finished_at
    # The first runner has come to its end meanwhile, and found its lease lost.
    assert state_of(job) == Job.State.DONE
    assert (job.attempts, job.finished_at, marks()) == (2, finished_at, 1)


def test_a_runner_that_lost_its_lease_stops_at_its_next_sign_of_progress(no_redis):
    job = queue("wait")
    with in_thread(job) as thread:
        Job.objects.filter(pk=job.pk).update(lease_token=uuid.uuid4())  # somebody else has it
        thread.join(5)
        assert not thread.is_alive()
        assert not gate.is_set()
    assert state_of(job) == Job.State.RUNNING
    assert marks() == 0


@pytest.mark.parametrize("fault", ["JobCancelled", "JobRefused", "ArithmeticError"])
def test_a_runner_that_ends_badly_after_losing_its_lease_leaves_the_job_to_its_new_owner(
    no_redis, monkeypatch, fault
):
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 3600)
    job = queue("end badly", payload={"fault": fault})
    with in_thread(job):
        Job.objects.filter(pk=job.pk).update(lease_token=uuid.uuid4())
    # The thread has ended without an exception: Celery would report that as a fault of the task.
    assert (state_of(job), job.error, marks()) == (Job.State.RUNNING, "", 0)


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
        assert jobs._lease(job.pk) is not None  # and the worker dies
        assert jobs.sweep() == 0
        expire_lease(job)
        assert jobs.sweep() == 1
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert "died 3 times" in job.error
    assert marks() == 0


def test_a_sweep_wakes_for_forgotten_jobs_only_and_not_again_at_once(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda job_id: woken.append(job_id) or True)
    old, new = queue("mark"), queue("mark", payload={"mark": "new"})
    done = queue("mark")
    jobs.run(done.pk)
    for job in (old, done):
        make_older(job)
    woken.clear()
    assert jobs.sweep() == 1
    assert woken == [old.pk]
    assert state_of(new) == Job.State.QUEUED
    # A long queue behind a long job: the broker is not filled with a wake-up every five seconds ...
    assert jobs.sweep() == 0
    # ... but with one now and then, because Redis may have lost the last.
    Job.objects.filter(pk=old.pk).update(heartbeat_at="2026-01-01T00:00Z")
    assert jobs.sweep() == 1
    assert woken == [old.pk, old.pk]


def test_a_job_that_failed_is_woken_up_by_the_next_sweep(monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "poke", lambda job_id: woken.append(job_id) or True)
    job = queue("fall")
    make_older(job)
    assert jobs.sweep() == 1
    jobs.run(job.pk)
    assert state_of(job) == Job.State.QUEUED
    assert jobs.sweep() == 1


def test_a_sweep_gives_up_at_the_first_wake_up_that_redis_does_not_take(monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "poke", lambda job_id: bool(asked.append(job_id)))
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
    assert jobs.poke(uuid.uuid4()) in {True, False}  # a connection is open when the fault comes
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
        assert client.llen("celery") == 1
        client.flushall()


def test_a_worker_that_says_so_lives_and_one_silent_for_long_does_not():
    assert not jobs.worker_is_running()
    jobs.worker_lives("a:1")
    jobs.worker_lives("a:1")
    assert jobs.worker_is_running()
    assert WorkerHeartbeat.objects.count() == 1
    WorkerHeartbeat.objects.update(seen_at="2026-01-01T00:00Z")
    assert not jobs.worker_is_running()
    jobs.worker_lives("b:2")
    assert list(WorkerHeartbeat.objects.values_list("name", flat=True)) == ["b:2"]


@contextlib.contextmanager
def worker(environment, log):
    """Start a real worker that knows this file's handlers; whatever is left of it at the end is killed."""
    command = [sys.executable, "-m", "celery", "-A", "touchstone", "worker", "-c", "1", "-I", "test_jobs"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env={**environment, "PYTHONPATH": str(HERE), "TOUCHSTONE_ROLE": "worker"},
            stdout=output,
            stderr=output,
            cwd=HERE,
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
        assert jobs.worker_is_running()
        slow = queue("wait")
        until(lambda: state_of(slow) == Job.State.RUNNING and slow.done > 0)
        kill_tree(first.pid)
    assert state_of(slow) == Job.State.RUNNING
    assert marks() == 1
    Event.objects.create(verb="go", subject="")
    expire_lease(slow)
    with worker(child_environment, tmp_path / "log"):
        until(lambda: state_of(slow) == Job.State.DONE)
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
            jobs.poke(poison.pk)
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
