"""Jobs: one committed effect each, whatever dies in between. On a real PostgreSQL and a real Redis."""

import threading
import time
import uuid

import pytest
from django.db import connection, transaction
from job_kinds import expire_lease, gate, in_thread, marks, queue, state_of

from touchstone import jobs
from touchstone.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_a_refused_job_fails_at_once_with_the_reason(no_redis):
    job = queue("refuse")
    jobs.run(job.pk)
    assert state_of(job) == Job.State.FAILED
    assert (job.attempts, job.error, marks()) == (1, "there is nothing to draw from", 0)


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
    assert jobs._lease(Job.objects.filter(pk=job.pk)) is not None  # the worker dies here
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
