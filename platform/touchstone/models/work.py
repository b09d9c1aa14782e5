"""Background work, and what requests leave for the next ones: counts, and answers that are not given twice."""

import uuid

from django.db import models

from touchstone.models.users import User


class Job(models.Model):
    """One piece of background work. This row is the work; Celery only wakes somebody up to do it."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    ACTIVE = [State.QUEUED, State.RUNNING]
    MAX_ATTEMPTS = 3

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=50)
    payload = models.JSONField(default=dict)
    # Of touchstone.lanes. Rows of a version without lanes get the one with the most time.
    lane = models.CharField(max_length=10, default="heavy", db_default="heavy")
    # How many unfinished jobs of the lane its person had when it was asked for: who has none comes first.
    turn = models.IntegerField(default=0, db_default=0)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    # At most one active job of this key: asking twice for the same recomputation is one recomputation.
    active_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 (NULL = no such limit)
    # At most one job of this key for ever: "audit schedule 7, period 2026-11-21T10:00".
    period_key = models.CharField(max_length=200, null=True, blank=True, unique=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    worker = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )  # who has or had the lease
    # The lease whose worker was told to stop: what ends with it is no attempt.
    drain_token = models.UUIDField(null=True)
    done = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    note = models.CharField(max_length=200, blank=True)
    cancel_requested = models.BooleanField(default=False)
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    requested_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="touchstone_job_one_active",
                fields=["kind", "active_key"],
                condition=models.Q(state__in=["queued", "running"]),
            ),
            models.CheckConstraint(
                name="touchstone_job_lease",
                condition=models.Q(state="running", lease_token__isnull=False, lease_until__isnull=False)
                | (~models.Q(state="running") & models.Q(lease_token__isnull=True, lease_until__isnull=True)),
            ),
            models.CheckConstraint(
                name="touchstone_job_finished",
                condition=models.Q(state__in=["queued", "running"], finished_at__isnull=True)
                | models.Q(state__in=["done", "failed", "cancelled"], finished_at__isnull=False),
            ),
            models.CheckConstraint(name="touchstone_job_attempts", condition=models.Q(attempts__lte=3)),
            models.CheckConstraint(
                name="touchstone_job_lane",
                condition=models.Q(lane__in=["quick", "numbers", "heavy", "mail"], turn__gte=0),
            ),
        ]
        indexes = [
            models.Index(
                name="touchstone_job_active",
                fields=["created_at"],
                condition=models.Q(state__in=["queued", "running"]),
            ),
            # What somebody asked for is found again by what was asked: see analytics/services/job_queue.py.
            models.Index(name="touchstone_job_newest", fields=["kind", "-created_at"]),
            models.Index(name="touchstone_job_listed", fields=["-created_at", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def percent(self) -> int:
        if self.state == self.State.DONE:
            return 100
        return min(99, 100 * self.done // self.total) if self.total else 0

    @property
    def is_active(self) -> bool:
        return self.state in self.ACTIVE


class WorkerHeartbeat(models.Model):
    """When each worker process last said that it lives."""

    name = models.CharField(max_length=200, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class RateCounter(models.Model):
    """How often something happened in a window of time: counted by the database, exactly, under any load."""

    key = models.CharField(max_length=200)
    window = models.BigIntegerField()  # which window of that length since 1970
    n = models.PositiveIntegerField(default=1)
    ends_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_ratecounter_unique", fields=["key", "window"])
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.n}"


class IdempotentRequest(models.Model):
    """A request of a program that was answered, and the answer: sent again with its key it is not done again."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=200)
    request_sha256 = models.CharField(
        max_length=64
    )  # of method, address and body: another request needs another key
    status = models.PositiveSmallIntegerField(null=True)
    body = models.JSONField(null=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_idempotentrequest_unique", fields=["user", "key"])
        ]

    def __str__(self) -> str:
        return self.key
