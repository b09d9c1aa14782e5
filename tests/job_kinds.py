"""Kinds of jobs that leave marks, fall, wait and die; and how their rows are made older."""

import contextlib
import os
import signal
import threading
import time

from django.db import connection, transaction

from touchstone import jobs
from touchstone.models import Event, Job

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


@jobs.handler("lose")
def lose(context):
    """Lose the connection in the middle of the work, as when the database restarts, so many times."""
    leave_mark(context)
    if context.job.attempts <= context.payload["times"]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


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


def queue(kind, **fields):
    with transaction.atomic():
        return jobs.enqueue(kind=kind, payload=fields.pop("payload", {}), **fields)


def state_of(job):
    job.refresh_from_db()
    return job.state


def marks():
    return Event.objects.filter(verb="did").count()


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def expire_lease(job):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE touchstone_job SET lease_until = now() - interval '1 s' WHERE id = %s", [job.pk]
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
