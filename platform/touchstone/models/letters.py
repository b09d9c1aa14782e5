"""Letters as rows, and who wants none of a kind."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class Letter(models.Model):
    """One letter to one person: what it says until it is sent, and how far it is.

    `subject` is what it is about, as in events ("campaign:<id>"); `title` is the line that mail programs call Subject.
    Words and link are emptied when it is sent. The link may hold "{secret}": the secret itself, which is made of `seed`
    and the server's SECRET_KEY, is in no row (touchstone/letters/queueing.py). The id is its Message-ID.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        HANDED_OVER = "handed over"  # it may be with the mail server; nobody begins again
        SENT = "sent"
        UNCLEAR = "unclear"  # it was being handed over when the worker or the connection ended
        GIVEN_UP = "given up"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="letters"
    )
    address = models.CharField(max_length=254)
    subject = models.CharField(max_length=200)
    day = models.DateField()
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    link = models.CharField(max_length=500, blank=True)
    seed = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    # Of the worker that tries at this moment: only its own may hand the letter over.
    claim = models.UUIDField(null=True)
    answer = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="touchstone_letter_once_a_day",
                fields=["kind", "user", "subject", "day"],
                condition=Q(user__isnull=False),
            ),
            models.UniqueConstraint(
                name="touchstone_letter_once_a_day_to_strangers",
                fields=["kind", "address", "subject", "day"],
                condition=Q(user__isnull=True),
            ),
            models.CheckConstraint(
                name="touchstone_letter_state",
                condition=Q(state__in=["waiting", "handed over"], ended_at__isnull=True)
                | Q(state__in=["sent", "unclear", "given up"], ended_at__isnull=False),
            ),
            # What was sent says nothing any more.
            models.CheckConstraint(
                name="touchstone_letter_sent_is_empty",
                condition=~Q(state="sent") | Q(text="", link="", seed=""),
            ),
        ]
        indexes = [
            models.Index(
                name="touchstone_letter_due",
                fields=["next_attempt_at"],
                condition=Q(state__in=["waiting", "handed over"]),
            ),
            models.Index(name="touchstone_letter_newest", fields=["-created_at", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class LetterRefusal(models.Model):
    """A person wants no letters of this kind."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="letter_refusals"
    )
    kind = models.CharField(max_length=20)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_letterrefusal_unique", fields=["user", "kind"])
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.kind}"
