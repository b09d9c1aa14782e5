"""Webhooks, and what they were told."""

import uuid

from django.db import models

from touchstone.models.users import User


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
