"""Background work whose truth is a PostgreSQL row (reliability of the queue: none is needed).

A job is queued in the transaction that wants it, in the lane of its kind. A message says that there is work in a lane;
whoever gets it takes the lane's next row: a lease, counted as an attempt. The work is ONE transaction that ends with
`state = 'done'` under a check of the lease: a second start, a lost lease or a killed worker therefore has no effect at
all. The sweeper wakes up for what was forgotten. Redis may vanish at any time.
"""

import logging
import os
import secrets
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from functools import cache
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from touchstone import counters, disks, lanes, logs
from touchstone.faults import words_if_passing
from touchstone.models import Job, User

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=30)
HEARTBEAT_SECONDS = 1.0
SWEEPER_LOCK = 7_001
GRACE_SECONDS = 15  # between the end of a job's time and the end of its process, if it does not give way
# A job that waits behind a long one is woken up again only so often: the broker must not fill with wake-ups.
WAKE_UP_AGAIN = timedelta(seconds=30)


class JobCancelled(Exception):
    """Somebody pressed "Cancel"; the work so far is rolled back."""


class LeaseLost(Exception):
    """Another worker has taken the job over; what was done here is rolled back."""


class WorkerStops(Exception):
    """The worker was told to stop; the work so far is rolled back, and another worker begins anew."""


class JobRefused(Exception):
    """The work cannot be done, for a reason the user can act on; trying again would not help."""


class TooManyJobs(Exception):
    """A person has so many jobs waiting in a lane that one more would not be done sooner by being asked for now."""

    status, title, wait = 429, "Too many of your jobs are waiting", 60.0

    def __init__(self) -> None:
        super().__init__(
            f"{lanes.MOST_WAITING} of your jobs of this kind wait already. Ask again when one is done."
        )


class Context:
    """What a running job knows: its payload, how to report progress, whether to go on."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.payload: dict[str, Any] = job.payload
        self.result: dict[str, Any] = {}
        self.done, self.total, self.note = 0, 0, ""
        self._stop = threading.Event()
        self._verdict: type[Exception] | None = None  # how the work is to end, unless it is over before

    def progress(self, done: int, total: int, note: str = "") -> None:
        """Report progress and give way to a cancellation or a lost lease. Cheap: call it as often as you like."""
        self.done, self.total, self.note = done, total, note[:200]
        if self._verdict is not None:
            raise self._verdict

    def __enter__(self) -> "Context":
        self._overtime_at = time.monotonic() + lanes.SECONDS[self.job.lane]
        self._thread = threading.Thread(target=self._beat, daemon=True, name="job-heartbeat")
        self._thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        """Extend the lease and publish the progress, on a connection outside the work's transaction."""
        logs.job_id.set(str(self.job.pk))
        try:
            while not self._stop.wait(HEARTBEAT_SECONDS):
                try:
                    self._verdict = self._extend()
                except Exception:  # the database restarts: the lease outlives a few missed beats
                    logger.warning("job %s: a heartbeat failed", self.job.pk, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    def _extend(self) -> type[Exception] | None:
        """Extend the lease, unless the job is to end; return how it is to end."""
        mine = _held_row(self.job)
        if time.monotonic() > self._overtime_at:
            _end_overtime(self.job)
            return LeaseLost
        progress = {"done": self.done, "total": self.total, "note": self.note}
        if not mine.update(heartbeat_at=Now(), lease_until=Now() + LEASE, **progress):
            return LeaseLost
        if mine.filter(cancel_requested=True).exists():
            return JobCancelled
        return WorkerStops if mine.filter(drain_token=self.job.lease_token).exists() else None


Handler = Callable[[Context], None]
_handlers: dict[str, Handler] = {}
_need_little_room: set[str] = set()


def handler(kind: str, needs_room: bool = True) -> Callable[[Handler], Handler]:
    """Register the function that does jobs of this kind. It runs inside one transaction and must not commit.

    Jobs that need room wait while a disk has less than DISK_FLOOR: the rest is for judgments.
    """

    def register(function: Handler) -> Handler:
        _handlers[kind] = function
        if not needs_room:
            _need_little_room.add(kind)
        return function

    return register


def enqueue(
    *,
    kind: str,
    payload: dict[str, Any],
    active_key: str | None = None,
    period_key: str | None = None,
    user: User | None = None,
    n_bytes: int = 0,
) -> Job | None:
    """Queue a job in the caller's transaction; None if its key has an active one (or ever had, for a period).

    `n_bytes`: how much was uploaded for it. Raise TooManyJobs if the user has as many waiting as one may have.
    """
    lane = lanes.lane_of(kind, n_bytes)
    is_counted = user is not None and kind not in lanes.PARTS
    with transaction.atomic() if is_counted else nullcontext():
        if is_counted:  # one after the other, so that none is over the limit
            User.objects.select_for_update(no_key=True).get(pk=user.pk)  # type: ignore[union-attr]
        unfinished = Job.objects.filter(lane=lane, requested_by=user, state__in=Job.ACTIVE)
        job = Job(
            kind=kind,
            payload=payload,
            lane=lane,
            turn=unfinished.count(),
            active_key=active_key,
            period_key=period_key,
            requested_by=user,
        )
        made = Job.objects.bulk_create([job], ignore_conflicts=True)[0]
        if not Job.objects.filter(pk=made.pk).exists():
            return None
        waiting = unfinished.filter(state=Job.State.QUEUED).exclude(kind__in=lanes.PARTS)
        if is_counted and waiting.count() > lanes.MOST_WAITING:
            raise TooManyJobs
        transaction.on_commit(lambda: poke(lane), robust=True)
    return made


def poke(lane: str) -> bool:
    """Tell a worker that its lane has work; return whether Redis took it.

    Failing is harmless and quick: the sweeper pokes again. A message too many is, too: there is no row for it.
    """
    from touchstone.celery import app

    if lane == lanes.MAIL:  # nobody waits for a message: see touchstone/tasks.py
        return True
    limit = lanes.SECONDS[lane] + GRACE_SECONDS
    try:
        app.send_task("touchstone.tasks.work", args=[lane], queue=lane, time_limit=limit, retry=False)
    except Exception as error:  # kombu raises many kinds; every one of them means "Redis did not take it"
        logger.warning(
            "lane %s: no wake-up (%s: %s); the sweeper will try again", lane, type(error).__name__, error
        )
        return False
    return True


def work(lane: str) -> None:
    """Do the lane's next job, if there is one: the least turn first, of these the oldest."""
    _do(_lease(Job.objects.filter(lane=lane)))


def run(job_id: uuid.UUID | str) -> None:
    """Do this job if nobody else is doing it."""
    _do(_lease(Job.objects.filter(pk=job_id)))


def _do(job: Job | None) -> None:
    if job is None:
        return
    began, before = time.monotonic(), logs.job_id.set(str(job.pk))
    try:
        with Context(job) as context, transaction.atomic():
            _handlers[job.kind](context)
            context.progress(context.total, context.total, context.note)
            _finish(job, context)
    except JobCancelled:
        _end(_held_row(job), Job.State.CANCELLED)
    except LeaseLost:
        logger.warning("job %s: lease lost, rolled back", job.pk)
    except WorkerStops:
        logger.info("job %s: rolled back, because the worker stops", job.pk)
        if _queue_again(job, attempts=F("attempts") - 1):
            poke(job.lane)
    except JobRefused as refusal:
        _end(_held_row(job), Job.State.FAILED, error=str(refusal))
    except Exception as error:
        _fail(job, error)
    finally:
        counters.add("job runs", job.kind)
        counters.add("job milliseconds", job.kind, n=round(1000 * (time.monotonic() - began)))
        logs.job_id.reset(before)


def _lease(candidates: QuerySet[Job]) -> Job | None:
    """Take the next of these that is queued, or whose runner's lease has expired and that may be tried again."""
    is_due = Q(state=Job.State.QUEUED) | Q(state=Job.State.RUNNING, lease_until__lt=Now())
    if shortage := disks.shortage():
        needs_room = ~Q(kind__in=_need_little_room) & Q(cancel_requested=False)
        _let_wait(candidates.filter(needs_room), shortage)
        candidates = candidates.exclude(needs_room)
    free = candidates.filter(is_due).select_for_update(skip_locked=True).order_by("turn", "created_at")
    with transaction.atomic():
        while (job := free.first()) is not None:
            if job.cancel_requested:
                _end(Job.objects.filter(pk=job.pk), Job.State.CANCELLED)
            elif _n_attempts(job) >= Job.MAX_ATTEMPTS:
                reason = f"given up: the worker died {job.attempts} times while doing this"
                _end(Job.objects.filter(pk=job.pk), Job.State.FAILED, error=reason)
                counters.add("job faults")
            else:
                return _take_lease(job)
    return None


def _n_attempts(job: Job) -> int:
    """Return how often the job was tried: a try that was ended on purpose, by the end of its worker, is none."""
    is_drained = job.state == Job.State.RUNNING and job.drain_token == job.lease_token
    return job.attempts - is_drained


def _take_lease(job: Job) -> Job:
    job.attempts = _n_attempts(job) + 1
    job.lease_token = uuid.uuid4()
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.RUNNING,
        lease_token=job.lease_token,
        lease_until=Now() + LEASE,
        heartbeat_at=Now(),
        worker=worker_name(),
        note="",
        attempts=job.attempts,
    )
    return job


def _let_wait(waiting: QuerySet[Job], shortage: str) -> None:
    """Say on the jobs why they do not begin, also where their workers died. A worker looks again every five seconds."""
    expired = waiting.filter(state=Job.State.RUNNING, lease_until__lt=Now())
    expired.filter(drain_token=F("lease_token")).update(attempts=F("attempts") - 1)
    expired.update(state=Job.State.QUEUED, lease_token=None, lease_until=None)
    words = (
        f"Waiting for space on a disk: {shortage}. It goes on by itself when there is space; judging goes on."
    )
    waiting.filter(state=Job.State.QUEUED).exclude(note=words).update(note=words)


def _end(jobs: Any, state: str, **fields: Any) -> int:
    return int(jobs.update(state=state, lease_token=None, lease_until=None, finished_at=Now(), **fields))


def _held_row(job: Job) -> Any:
    """Return the job's row as long as this runner holds its lease; nobody may change it otherwise."""
    return Job.objects.filter(pk=job.pk, lease_token=job.lease_token, state=Job.State.RUNNING)


def _finish(job: Job, context: Context) -> None:
    fields = {"result": context.result, "done": context.total, "total": context.total, "note": context.note}
    if not _end(_held_row(job), Job.State.DONE, error="", **fields):
        raise LeaseLost


def _fail(job: Job, error: Exception) -> None:
    """Queue the job again if what was in the way may be gone the next time; else end it, by a number in the log."""
    number = secrets.token_hex(4)
    about = (number, job.pk, job.kind, job.attempts)
    logger.exception("fault %s: job %s (%s) failed at attempt %s", *about, extra={"fault": number})
    passing = words_if_passing(error)
    if passing and job.attempts < Job.MAX_ATTEMPTS:
        _queue_again(job, error=f"{passing} (fault {number})")
        return
    counters.add("job faults")
    if not passing:
        words = f"an error of Touchstone's, fault {number}: tell whoever runs this server the number"
    else:
        words = f"given up: {passing}, {job.attempts} times (fault {number})"
    _end(_held_row(job), Job.State.FAILED, error=words)


def _queue_again(job: Job, **fields: Any) -> int:
    again = {"state": Job.State.QUEUED, "lease_token": None, "lease_until": None, "heartbeat_at": None}
    return int(_held_row(job).update(**again, **fields))


def _end_overtime(job: Job) -> None:
    """Take a job that is over its time from its runner: into the lane with more of it, or to its end."""
    seconds = lanes.SECONDS[job.lane]
    if job.lane in (lanes.HEAVY, lanes.MAIL):
        reason = f"it took longer than {seconds // 60} minutes, which no job may"
        _end(_held_row(job), Job.State.FAILED, error=reason)
    else:
        note = f"longer than {seconds} s: it begins again where long jobs are done"
        if _queue_again(job, lane=lanes.HEAVY, attempts=F("attempts") - 1, note=note):
            poke(lanes.HEAVY)


def n_own_ahead(job: Job) -> int:
    """Return how many unfinished jobs of the same person come before this one in its lane."""
    earlier = Q(turn__lt=job.turn) | Q(turn=job.turn, created_at__lt=job.created_at)
    own = Job.objects.filter(lane=job.lane, requested_by=job.requested_by_id, state__in=Job.ACTIVE)
    return own.filter(earlier).count()


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
        forgotten = dict(waiting_jobs.order_by("created_at").values_list("pk", "lane")[:100])
        Job.objects.filter(pk__in=forgotten, state=Job.State.QUEUED).update(heartbeat_at=Now())
        forgotten |= dict(silent_jobs.values_list("pk", "lane")[:100])
    woken = 0
    for lane in forgotten.values():
        if not poke(lane):  # Redis is away: each further try would cost seconds
            break
        woken += 1
    return woken


def drain(worker: str) -> int:
    """Mark what the worker does, because it stops: that is rolled back at the next progress, and is no attempt."""
    running = Job.objects.filter(worker=worker, state=Job.State.RUNNING)
    return running.update(drain_token=F("lease_token"))


@cache
def worker_name() -> str:
    """Return the name of this process, and of those that it becomes by forking: a worker and its children are one."""
    return f"{socket.gethostname()}:{os.getpid()}"
