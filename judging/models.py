"""The facts: collections and runs, campaigns and their items, slots and judgments.

The database keeps the promises (see migrations/0002_facts_are_kept.py for the triggers): k judgments an item,
one an assessor and item, grades on the scale, judgments never changed and never deleted.
"""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

IMPORTED_JUDGMENTS = (
    "imported judgments"  # verb of the event: from then on the order of judging is not random
)


class Collection(models.Model):
    """Documents and topics."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Topic(models.Model):
    """An information need."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="topics")
    topic_id = models.CharField(max_length=200)
    title = models.TextField()
    description = models.TextField(blank=True)
    narrative = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_topic_unique", fields=["collection", "topic_id"]),
            models.CheckConstraint(name="judging_topic_id_word", condition=Q(topic_id__regex=r"^\S+$")),
        ]

    def __str__(self) -> str:
        return self.topic_id


class Document(models.Model):
    """The unit judged. `text` is what an assessor sees: made safe once, at import."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="documents")
    doc_id = models.CharField(max_length=500)
    title = models.TextField(blank=True)
    text = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_document_unique", fields=["collection", "doc_id"]),
            models.CheckConstraint(name="judging_document_id_word", condition=Q(doc_id__regex=r"^\S+$")),
        ]

    def __str__(self) -> str:
        return self.doc_id


class Run(models.Model):
    """One system's ranked lists; they live in one columnar file (judging/rankings.py), not here."""

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="runs")
    run_id = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    rankings = models.FileField(upload_to="rankings/", max_length=300)
    n_topics = models.PositiveIntegerField()
    n_lines = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id"]
        constraints = [models.UniqueConstraint(name="judging_run_unique", fields=["collection", "run_id"])]

    def __str__(self) -> str:
        return self.run_id


class GoldAnswer(models.Model):
    """A grade known beforehand, from whom `source` names. Campaigns show some of these items unannounced."""

    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="gold_answers")
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="gold_answers")
    grade = models.SmallIntegerField()
    source = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_goldanswer_unique", fields=["topic", "document"])
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.document} {self.grade}"


class Scale(models.Model):
    """The ordinal grades of a campaign; 0 is not relevant, `relevant_grade` and above count as relevant."""

    name = models.CharField(max_length=120)
    relevant_grade = models.SmallIntegerField(default=1)

    class Meta:
        constraints = [
            models.CheckConstraint(name="judging_scale_relevant", condition=Q(relevant_grade__gte=1))
        ]

    def __str__(self) -> str:
        return self.name

    def values(self) -> list[int]:
        return [grade.value for grade in self.grades.all()]

    def gains(self) -> list[float]:
        return [grade.gain for grade in self.grades.all()]


class Grade(models.Model):
    scale = models.ForeignKey(Scale, on_delete=models.CASCADE, related_name="grades")
    value = models.SmallIntegerField()
    label = models.CharField(max_length=60)
    gain = models.FloatField()

    class Meta:
        ordering = ["value"]
        constraints = [
            models.UniqueConstraint(name="judging_grade_unique", fields=["scale", "value"]),
            # One key a grade: the digits.
            models.CheckConstraint(name="judging_grade_digit", condition=Q(value__gte=0, value__lte=9)),
            models.CheckConstraint(name="judging_grade_gain", condition=Q(gain__gte=0, gain__lt=1e9)),
        ]

    def __str__(self) -> str:
        return f"{self.value} {self.label}"


class Campaign(models.Model):
    """One effort to judge (topic, document) pairs of a collection."""

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        CLOSED = "closed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="campaigns")
    scale = models.ForeignKey(Scale, on_delete=models.PROTECT)
    name = models.CharField(max_length=100, unique=True)
    guidelines = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    judgments_per_item = models.PositiveSmallIntegerField(default=1)
    lease_seconds = models.PositiveIntegerField(default=1800)
    gold_check_rate = models.FloatField(default=0.1)
    gold_check_exposures = models.PositiveSmallIntegerField(default=20)
    # Its judgments came from the simulation of the demo, and every screen says so.
    is_simulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="judging_campaign_state", condition=Q(state__in=["draft", "open", "closed"])
            ),
            models.CheckConstraint(
                name="judging_campaign_k",
                condition=Q(judgments_per_item__gte=1, judgments_per_item__lte=20),
                violation_error_message="An item takes 1 to 20 judgments.",
            ),
            models.CheckConstraint(
                name="judging_campaign_lease",
                condition=Q(lease_seconds__gte=1, lease_seconds__lte=86400),
                violation_error_message="An item is kept for 1 second to 1 day (86,400 seconds).",
            ),
            models.CheckConstraint(
                name="judging_campaign_gold_rate",
                condition=Q(gold_check_rate__gte=0, gold_check_rate__lte=0.5),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AssessorQuerySet(models.QuerySet["Assessor"]):
    def open_to(self, user: Any) -> "AssessorQuerySet":
        """Return the user's assessors that can judge now: active, in an open campaign."""
        return self.filter(user=user, status=Assessor.Status.ACTIVE, campaign__state=Campaign.State.OPEN)


class Assessor(models.Model):
    """Whoever judges in a campaign, human or machine, with the trust he has there."""

    class Tier(models.TextChoices):
        GOLD = "gold"
        SILVER = "silver"
        BRONZE = "bronze"

    class Kind(models.TextChoices):
        HUMAN = "human"
        MACHINE = "machine"
        SIMULATED = "simulated"

    class Status(models.TextChoices):
        ACTIVE = "active"
        SUSPENDED = "suspended"

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="assessors")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assessors")
    tier = models.CharField(max_length=6, choices=Tier, default=Tier.BRONZE)
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.HUMAN)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    # Kept by submit() under the assessor's lock: progress without counting. Gold checks and surplus count as work too.
    n_judged = models.PositiveIntegerField(default=0)

    objects = AssessorQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(name="judging_assessor_unique", fields=["campaign", "user"]),
            models.CheckConstraint(
                name="judging_assessor_tier", condition=Q(tier__in=["gold", "silver", "bronze"])
            ),
            models.CheckConstraint(
                name="judging_assessor_kind", condition=Q(kind__in=["human", "machine", "simulated"])
            ),
            models.CheckConstraint(
                name="judging_assessor_status", condition=Q(status__in=["active", "suspended"])
            ),
            # A machine is a judge like others, never the standard.
            models.CheckConstraint(
                name="judging_assessor_no_machine_gold", condition=~Q(kind="machine", tier="gold")
            ),
        ]

    def __str__(self) -> str:
        return self.user.get_username()


class Item(models.Model):
    """A (topic, document) pair that a campaign wants judged."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="items")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT)
    document = models.ForeignKey(Document, on_delete=models.PROTECT)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_item_unique", fields=["campaign", "topic", "document"])
        ]

    def __str__(self) -> str:
        return str(self.id)


class Slot(models.Model):
    """One wanted judgment of an item. Whoever leases the row judges; the row is the limit, so k cannot be passed."""

    class Purpose(models.TextChoices):
        JUDGE = "judge"  # one of the k judgments
        CHECK = "check"  # an unannounced gold check; feeds confusion matrices only
        AUDIT = "audit"  # a gold-tier judgment of an item that a random audit selected

    class State(models.TextChoices):
        OPEN = "open"
        LEASED = "leased"
        DONE = "done"

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="slots")
    purpose = models.CharField(max_length=5, choices=Purpose)
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=6, choices=State, default=State.OPEN)
    assessor = models.ForeignKey(Assessor, null=True, on_delete=models.PROTECT, related_name="slots")
    token = models.UUIDField(null=True, unique=True)
    leased_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    # Copies of facts that never change, so that a claim reads one index: whose, which topic, in which order.
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="slots")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT)
    position = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_slot_unique", fields=["item", "purpose", "number"]),
            models.UniqueConstraint(
                name="judging_slot_distinct", fields=["item", "assessor"], condition=Q(assessor__isnull=False)
            ),
            models.CheckConstraint(name="judging_slot_purpose", condition=Q(purpose__in=["judge", "check", "audit"])),
            models.CheckConstraint(
                name="judging_slot_state",
                condition=Q(
                    state="open", assessor__isnull=True, token__isnull=True, leased_at__isnull=True,
                    lease_until__isnull=True,
                )
                | Q(
                    state="leased", assessor__isnull=False, token__isnull=False, leased_at__isnull=False,
                    lease_until__isnull=False,
                )
                | Q(state="done", assessor__isnull=False, token__isnull=False),
            ),
        ]  # fmt: skip
        indexes = [
            models.Index(
                name="judging_slot_wanted",
                fields=["campaign", "purpose", "topic", "position"],
                condition=~Q(state="done"),
            ),
            models.Index(name="judging_slot_leases", fields=["assessor"], condition=Q(state="leased")),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.purpose} {self.number}"


class Lease(models.Model):
    """That a slot was given to an assessor, for ever: a late judgment is known by it. Append-only."""

    token = models.UUIDField(primary_key=True)
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="leases")
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="leases")
    leased_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.token)


class Judgment(models.Model):
    """One assessor's grade of one item at one time. Append-only: a change of mind is a row with a higher sequence.

    `slot` is the wanted judgment it fills; without one it is surplus: kept, never counted.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="judgments")
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="judgments")
    sequence = models.PositiveSmallIntegerField(default=1)
    grade = models.SmallIntegerField()
    slot = models.ForeignKey(Slot, null=True, on_delete=models.PROTECT, related_name="judgments")
    lease_token = models.UUIDField()
    client_token = models.UUIDField(unique=True)
    active_milliseconds = models.PositiveIntegerField(default=0)
    document_version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_judgment_unique", fields=["item", "assessor", "sequence"]),
            # A slot is won once; later rows of the same assessor revise that judgment.
            models.UniqueConstraint(
                name="judging_judgment_slot", fields=["slot"], condition=Q(sequence=1, slot__isnull=False)
            ),
            models.CheckConstraint(name="judging_judgment_sequence", condition=Q(sequence__gte=1)),
        ]
        indexes = [models.Index(F("assessor"), F("id").desc(), name="judging_judgment_history")]

    def __str__(self) -> str:
        return f"{self.item_id} {self.grade}"
