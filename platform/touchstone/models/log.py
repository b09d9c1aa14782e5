"""The log of what happened, and the seals over it."""

from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import models

from touchstone.models.users import User


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
