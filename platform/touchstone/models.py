"""The ground floor: people, jobs, and the log of what happened."""

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as BaseUserManager
from django.contrib.postgres.functions import RandomUUID
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

if TYPE_CHECKING:
    from rest_framework.request import Request


class UserManager(BaseUserManager["User"]):
    def create_superuser(self, username: str, *arguments: Any, **fields: Any) -> "User":
        """Create the first manager: `manage.py createsuperuser` on an empty database."""
        made: User = super().create_superuser(username, *arguments, **{"role": User.Role.MANAGER, **fields})
        return made


class User(AbstractUser):
    objects: ClassVar[UserManager] = UserManager()
    ends_access = False  # no column: whether the save at hand ends sessions and keys (touchstone/access.py)

    class Role(models.TextChoices):
        ASSESSOR = "assessor"
        RESEARCHER = "researcher"
        MANAGER = "manager"

    role = models.CharField(max_length=10, choices=Role, default=Role.ASSESSOR)
    # Chosen for the assessors' pages. Without choices: a language added to the settings makes no migration.
    language = models.CharField(max_length=20, blank=True, default="", db_default="")
    # Part of what every session is checked against: another salt ends them all (touchstone/access.py).
    session_salt = models.CharField(max_length=32, blank=True, default="", db_default="", editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="touchstone_user_role",
                condition=models.Q(role__in=["assessor", "researcher", "manager"]),
            )
        ]

    def save(self, *arguments: Any, **named: Any) -> None:
        """Save it in one transaction with what its signals do: access ends with the change, or nothing changes."""
        with transaction.atomic():
            super().save(*arguments, **named)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return what a session is checked against, as Django makes it of the password, with the salt in it.

        Without a salt it is Django's own, so that sessions from before there were salts go on.
        """
        name = "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash"
        mixed = f"{self.password}{self.session_salt}"
        return salted_hmac(name, mixed, secret=secret, algorithm="sha256").hexdigest()

    @property
    def may_manage(self) -> bool:
        return self.role == self.Role.MANAGER

    @property
    def may_research(self) -> bool:
        return self.role in {self.Role.MANAGER, self.Role.RESEARCHER}


def user_of(request: "HttpRequest | Request") -> User:
    """Return who sends the request; the pages and the API let nobody through who is not logged in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def all_scopes() -> list[str]:
    return ["read", "judge", "write"]


class ApiToken(models.Model):
    """What a program shows instead of a password. Only the SHA-256 of the key is kept: the key is shown once."""

    class Scope(models.TextChoices):
        READ = "read", "Read what I may read"
        JUDGE = "judge", "Judge in my name"
        WRITE = "write", "Change what I may change"

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=all_scopes)
    key_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


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
                condition=models.Q(lane__in=["quick", "numbers", "heavy"], turn__gte=0),
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


class Webhook(models.Model):
    """An address that wants to be told of events. Only hosts that the operator listed are ever called."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="webhooks")
    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=100)  # signs what is sent; shown once
    verbs = models.JSONField(default=list)  # empty: every event that the user may see
    is_active = models.BooleanField(default=True)
    last_event_id = models.BigIntegerField(default=0)  # all up to here were delivered or given up
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.url


class WebhookDelivery(models.Model):
    """One event for one webhook: how often it was tried, and what was answered."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        GIVEN_UP = "given up"

    webhook = models.ForeignKey(Webhook, on_delete=models.PROTECT, related_name="deliveries")
    event = models.ForeignKey("Event", on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    answer = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_webhookdelivery_unique", fields=["webhook", "event"]),
            models.CheckConstraint(
                name="touchstone_webhookdelivery_state",
                condition=models.Q(state__in=["waiting", "delivered", "given up"]),
            ),
        ]
        indexes = [
            models.Index(
                name="touchstone_webhook_waiting",
                fields=["next_attempt_at"],
                condition=models.Q(state="waiting"),
            )
        ]

    def __str__(self) -> str:
        return f"{self.webhook_id} {self.event_id} {self.state}"


class Event(models.Model):
    """What happened, to what, by whom. Append-only: the database refuses UPDATE and DELETE."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.ForeignKey(User, null=True, on_delete=models.PROTECT)
    verb = models.CharField(max_length=50)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    # Of no meaning: renewed when a text is erased, so that nobody can test guesses of it against the row's old hash.
    salt = models.UUIDField(null=True, editable=False, db_default=RandomUUID())

    class Meta:
        indexes = [models.Index(name="touchstone_event_subject", fields=["subject", "-id"])]

    def __str__(self) -> str:
        return f"{self.verb} {self.subject}"


class Seal(models.Model):
    """The head of a table's hash chain after all its rows up to an id: rows changed since have another head.

    `columns` are those that the lines of this seal's rows hold; a column added later enters later seals. Append-only.
    """

    OF_SEALS = "touchstone_seal"  # seals are sealed in turn: the newest of these heads stands for all

    table = models.CharField(max_length=63)
    columns = models.JSONField()
    up_to_id = models.BigIntegerField()
    n_rows = models.BigIntegerField()  # since the seal before
    head = models.CharField(max_length=64)  # hexadecimal
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_seal_unique", fields=["table", "up_to_id"]),
            models.CheckConstraint(name="touchstone_seal_rows", condition=models.Q(n_rows__gte=1)),
            models.CheckConstraint(
                name="touchstone_seal_head", condition=models.Q(head__regex="^[0-9a-f]{64}$")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.table} {self.up_to_id}"


def ledger_head() -> str:
    """Return the newest head of the table of seals, which stands for all that is sealed; "" before the first."""
    newest = Seal.objects.filter(table=Seal.OF_SEALS).order_by("-up_to_id").first()
    return newest.head if newest else ""


class Erasure(models.Model):
    """A row that was sealed and then lost a text: the SHA-256 of its line before and after. Append-only, and sealed.

    A row that was removed as a whole, with its import, has no line after that.
    """

    REMOVED = "0" * 64  # in place of the SHA-256 after

    table = models.CharField(max_length=63)
    row = models.BigIntegerField()
    old = models.CharField(max_length=64)  # hexadecimal
    new = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="touchstone_erasure_hashes",
                condition=models.Q(old__regex="^[0-9a-f]{64}$", new__regex="^[0-9a-f]{64}$"),
            ),
        ]
        indexes = [models.Index(name="touchstone_erasure_row", fields=["table", "row"])]

    def __str__(self) -> str:
        return f"{self.table} {self.row}"


def record(verb: str, subject: models.Model, *, actor: User | None = None, **detail: Any) -> Event:
    """Write one event in the caller's transaction."""
    return Event.objects.create(
        actor=actor, verb=verb, subject=f"{subject._meta.model_name}:{subject.pk}", detail=detail
    )
