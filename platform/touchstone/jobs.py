"""Background work whose truth is a PostgreSQL row (reliability of the queue: none is needed).

A job is queued in the transaction that wants it. Whoever runs it takes a lease, counts the attempt, and does the
work in ONE transaction that ends with `state = 'done'` under a check of the lease: a second start, a lost lease or a
killed worker therefore has no effect at all. The sweeper wakes up what was forgotten. Redis may vanish at any time.
"""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from touchstone.models import Job, User, WorkerHeartbeat

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=30)
HEARTBEAT_SECONDS = 1.0
SWEEPER_LOCK = 7_001
# A job that waits behind a long one is woken up again only so often: the broker must not fill with wake-ups.
WAKE_UP_AGAIN = timedelta(seconds=30)


class JobCancelled(Exception):
    """Somebody pressed "Cancel"; the work so far is rolled back."""


class LeaseLost(Exception):
    """Another worker has taken the job over; what was done here is rolled back."""


class JobRefused(Exception):
    """The work cannot be done, for a reason the user can act on; trying again would not help."""


class Context:
    """What a running job knows: its payload, how to report progress, whether to go on."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.payload: dict[str, Any] = job.payload
        self.result: dict[str, Any] = {}
        self.done, self.total, self.note = 0, 0, ""
        self._stop, self._verdict = threading.Event(), ""

    def progress(self, done: int, total: int, note: str = "") -> None:
        """Report progress and give way to a cancellation or a lost lease. Cheap: call it as often as you like."""
        self.done, self.total, self.note = done, total, note[:200]
        if self._verdict == "cancel":
            raise JobCancelled
        if self._verdict == "lost":
            raise LeaseLost

    def __enter__(self) -> "Context":
        self._thread = threading.Thread(target=self._beat, daemon=True, name="job-heartbeat")
        self._thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        """Extend the lease and publish the progress, on a connection outside the work's transaction."""
        mine = _held_row(self.job)
        try:
            while not self._stop.wait(HEARTBEAT_SECONDS):
                try:
                    alive = mine.update(
                        heartbeat_at=Now(),
                        lease_until=Now() + LEASE,
                        done=self.done,
                        total=self.total,
                        note=self.note,
                    )
                    if not alive:
                        self._verdict = "lost"
                    elif mine.filter(cancel_requested=True).exists():
                        self._verdict = "cancel"
                except Exception:  # the database restarts: the lease outlives a few missed beats
                    logger.warning("job %s: a heartbeat failed", self.job.pk, exc_info=True)
                    connection.close()
        finally:
            connection.close()


Handler = Callable[[Context], None]
_handlers: dict[str, Handler] = {}


def handler(kind: str) -> Callable[[Handler], Handler]:
    """Register the function that does jobs of this kind. It runs inside one transaction and must not commit."""

    def register(function: Handler) -> Handler:
        _handlers[kind] = function
        return function

    return register


def enqueue(
    *,
    kind: str,
    payload: dict[str, Any],
    active_key: str | None = None,
    period_key: str | None = None,
    user: User | None = None,
) -> Job | None:
    """Queue a job in the caller's transaction; None if its key has an active one (or ever had, for a period)."""
    job = Job(kind=kind, payload=payload, active_key=active_key, period_key=period_key, requested_by=user)
    made = Job.objects.bulk_create([job], ignore_conflicts=True)[0]
    if not Job.objects.filter(pk=made.pk).exists():
        return None
    transaction.on_commit(lambda: poke(made.pk), robust=True)
    return made


def poke(job_id: uuid.UUID) -> bool:
    """Wake a worker up; return whether Redis took it. Failing is harmless and quick: the sweeper pokes again."""
    from touchstone.celery import app

    try:
        app.send_task("touchstone.tasks.run", args=[str(job_id)], retry=False)
    except Exception as error:  # kombu raises many kinds; every one of them means "Redis did not take it"
        logger.warning(
            "job %s: no wake-up (%s: %s); the sweeper will try again", job_id, type(error).__name__, error
        )
        return False
    return True


def run(job_id: uuid.UUID | str) -> None:
    """Do the job if nobody else is doing it."""
    job = _lease(job_id)
    if job is None:
        return
    try:
        with Context(job) as context, transaction.atomic():
            _handlers[job.kind](context)
            context.progress(context.total, context.total, context.note)
            _finish(job, context)
    except JobCancelled:
        _end(_held_row(job), Job.State.CANCELLED)
    except LeaseLost:
        logger.warning("job %s: lease lost, rolled back", job.pk)
    except JobRefused as refusal:
        _end(_held_row(job), Job.State.FAILED, error=str(refusal))
    except Exception as error:
        logger.exception("job %s (%s) failed", job.pk, job.kind)
        _fail(job, error)


def _lease(job_id: uuid.UUID | str) -> Job | None:
    """Take the job if it is queued, or if the lease of whoever ran it has expired and it may be tried again."""
    with transaction.atomic():
        job = Job.objects.select_for_update(skip_locked=True).filter(pk=job_id, state__in=Job.ACTIVE).first()
        if job is None or (job.state == Job.State.RUNNING and not _has_expired(job)):
            return None
        if job.cancel_requested:
            _end(Job.objects.filter(pk=job.pk), Job.State.CANCELLED)
            return None
        if job.attempts >= Job.MAX_ATTEMPTS:
            reason = f"given up: the worker died {job.attempts} times while doing this"
            _end(Job.objects.filter(pk=job.pk), Job.State.FAILED, error=reason)
            return None
        job.lease_token = uuid.uuid4()
        Job.objects.filter(pk=job.pk).update(
            state=Job.State.RUNNING,
            lease_token=job.lease_token,
            lease_until=Now() + LEASE,
            heartbeat_at=Now(),
            attempts=F("attempts") + 1,
        )
        job.attempts += 1
    return job


def _has_expired(job: Job) -> bool:
    return Job.objects.filter(pk=job.pk, lease_until__lt=Now()).exists()


def _end(jobs: Any, state: str, **fields: Any) -> int:
    return int(jobs.update(state=state, lease_token=None, lease_until=None, finished_at=Now(), **fields))


def _held_row(job: Job) -> Any:
    """Return the job's row as long as this runner holds its lease; nobody may change it otherwise."""
    return Job.objects.filter(pk=job.pk, lease_token=job.lease_token, state=Job.State.RUNNING)


def _finish(job: Job, context: Context) -> None:
    fields = {"result": context.result, "done": context.total, "total": context.total, "note": context.note}
    if not _end(_held_row(job), Job.State.DONE, **fields):
        raise LeaseLost


def _fail(job: Job, error: Exception) -> None:
    text = f"{type(error).__name__}: {error}"[:2000]
    if job.attempts >= Job.MAX_ATTEMPTS:
        _end(_held_row(job), Job.State.FAILED, error=text)
    else:
        again = {"state": Job.State.QUEUED, "lease_token": None, "lease_until": None, "heartbeat_at": None}
        _held_row(job).update(**again, error=text)


def cancel(job: Job) -> None:
    """Ask a job to stop: at once if it waits, at its next sign of progress if it runs."""
    Job.objects.filter(pk=job.pk, state__in=Job.ACTIVE).update(cancel_requested=True)
    _end(Job.objects.filter(pk=job.pk, state=Job.State.QUEUED), Job.State.CANCELLED)


def sweep(waiting: timedelta = timedelta(seconds=5)) -> int:
    """Wake up for every job that waits too long or whose worker fell silent; return how many. One sweeper at a time."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SWEEPER_LOCK])
            if not cursor.fetchone()[0]:
                return 0
        waiting_jobs = Job.objects.filter(state=Job.State.QUEUED, created_at__lt=Now() - waiting).exclude(
            heartbeat_at__gt=Now() - WAKE_UP_AGAIN
        )
        silent_jobs = Job.objects.filter(state=Job.State.RUNNING, lease_until__lt=Now())
        forgotten = list(waiting_jobs.order_by("created_at").values_list("pk", flat=True)[:100])
        Job.objects.filter(pk__in=forgotten, state=Job.State.QUEUED).update(heartbeat_at=Now())
        forgotten += silent_jobs.values_list("pk", flat=True)[:100]
    woken = 0
    for job_id in forgotten:
        if not poke(job_id):  # Redis is away: each further try would cost seconds
            break
        woken += 1
    return woken


def worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def worker_lives(name: str) -> None:
    WorkerHeartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})
    WorkerHeartbeat.objects.filter(seen_at__lt=Now() - timedelta(hours=1)).delete()


def worker_is_running() -> bool:
    """Return whether any worker has been heard of in the last 20 seconds."""
    return WorkerHeartbeat.objects.filter(seen_at__gt=Now() - timedelta(seconds=20)).exists()
