"""How assessors come in: invitations, participants of crowd markets, the training round."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from judging.models.campaigns import Assessor, Campaign
from judging.models.collections import Document, Topic


class Invitation(models.Model):
    """A link that makes whoever opens it an assessor of the campaign, so many times and so long."""

    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="invitations")
    note = models.CharField(max_length=100, blank=True)
    tier = models.CharField(max_length=6, choices=Assessor.Tier, default=Assessor.Tier.BRONZE)
    team = models.CharField(max_length=60, blank=True)
    quota = models.PositiveIntegerField(null=True, blank=True)
    max_uses = models.PositiveIntegerField(default=1)
    n_used = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="judging_invitation_uses", condition=Q(n_used__lte=F("max_uses"))),
            models.CheckConstraint(
                name="judging_invitation_limits", condition=Q(max_uses__gte=1) & ~Q(quota__lte=0)
            ),
            models.CheckConstraint(
                name="judging_invitation_tier", condition=Q(tier__in=["gold", "silver", "bronze"])
            ),
        ]

    def __str__(self) -> str:
        return self.note or str(self.token)


class Participant(models.Model):
    """Whom a crowd market sent. The market's name of a person stands here alone: erase it, and the account is nobody's.

    Erased rows keep an empty name; a trigger keeps campaign and assessor together.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="participants")
    assessor = models.OneToOneField(Assessor, on_delete=models.PROTECT, related_name="participant")
    participant = models.CharField(max_length=200)  # worker or participant id of the market
    study = models.CharField(max_length=200, blank=True)  # HIT or study id
    session = models.CharField(max_length=200, blank=True)  # assignment or session id, the newest
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="judging_participant_unique",
                fields=["campaign", "participant"],
                condition=~Q(participant=""),
            )
        ]

    def __str__(self) -> str:
        return f"{self.campaign_id} {self.pk}"


class ImportedName(models.Model):
    """What a file of judgments calls an assessor that its import made: here alone, so that it can be erased."""

    assessor = models.OneToOneField(Assessor, on_delete=models.PROTECT, related_name="imported_name")
    source = (
        models.TextField()
    )  # where the file says it is from: other files of that source mean the same people
    name = models.TextField()

    def __str__(self) -> str:
        return f"{self.assessor_id}"


class TrainingItem(models.Model):
    """A document with its grade and the reason for it, shown with feedback before the first real item; never a check.

    Triggers keep the grade on the scale, the pair out of the campaign's items, and all of it as it is from the first
    answer on (migrations/0003_training_is_kept.py).
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="training_items")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="+")
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="+")
    grade = models.SmallIntegerField()
    explanation = models.TextField(blank=True)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(
                name="judging_trainingitem_unique", fields=["campaign", "topic", "document"]
            ),
            models.UniqueConstraint(name="judging_trainingitem_position", fields=["campaign", "position"]),
            models.CheckConstraint(
                name="judging_trainingitem_number", condition=Q(position__gte=1, position__lte=20)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.document} {self.grade}"


class TrainingAnswer(models.Model):
    """What an assessor answered in an attempt of the training. Append-only."""

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="training_answers")
    item = models.ForeignKey(TrainingItem, on_delete=models.PROTECT, related_name="answers")
    attempt = models.PositiveSmallIntegerField()
    grade = models.SmallIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="judging_traininganswer_unique", fields=["assessor", "item", "attempt"]
            ),
            models.CheckConstraint(name="judging_traininganswer_attempt", condition=Q(attempt__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.item} {self.grade}"


class TrainingGrant(models.Model):
    """One more attempt at the training, given by a manager after the campaign's attempts were used up. Append-only."""

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="training_grants")
    granted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.assessor} {self.created_at:%Y-%m-%d}"
