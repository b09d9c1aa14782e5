"""Who said what: items, slots, leases, judgments; and what a machine answered."""

import uuid

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from judging.kinds import ItemKey
from judging.models.campaigns import Assessor, Campaign
from judging.models.collections import Document, Topic

IMPORTED_JUDGMENTS = (
    "imported judgments"  # verb of the event: from then on the order of judging is not random
)


class Item(models.Model):
    """What a campaign wants judged, named by `key`; what assessors see of it, the campaign's kind says."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="items")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT)
    document = models.ForeignKey(Document, on_delete=models.PROTECT)
    # Wanted beyond the campaign's k: a manager asked for one (judging/services/more_judgments.py).
    judgments_more = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Wanted in place of the campaign's k: as many as a file has of it that is all there is (complete_files.py).
    judgments_wanted = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_item_unique", fields=["campaign", "topic", "document"]),
            models.CheckConstraint(name="judging_item_judgments_more", condition=Q(judgments_more__lte=1)),
            models.CheckConstraint(
                name="judging_item_judgments_wanted",
                condition=Q(judgments_wanted__isnull=True) | Q(judgments_wanted__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def key(self) -> ItemKey:
        """Return its name; topic and document are read where they were not selected with it."""
        return ItemKey(self.topic.topic_id, self.document.doc_id)


class Slot(models.Model):
    """One wanted judgment of an item. Whoever leases the row judges; the row is the limit, so k cannot be passed."""

    class Purpose(models.TextChoices):
        JUDGE = "judge"  # one of the k judgments
        CHECK = "check"  # a gold check or a decoy; which of them, only the gold answers tell
        AUDIT = "audit"  # a gold-tier judgment of an item that a random audit selected
        SILVER = "silver"  # the same, by the silver tier
        VOID = "void"  # it was done, then set aside: another slot wants the judgment again

    class State(models.TextChoices):
        OPEN = "open"
        LEASED = "leased"
        DONE = "done"

    # Every claim and submit rewrites a row here: a foreign key that no hot statement looks for has no index of its own.
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="slots")
    purpose = models.CharField(max_length=6, choices=Purpose)
    # What a slot that a manager set aside was for; empty where it was withdrawn as "cannot judge", or given on words
    # that were corrected since. An answer on a check stays in force: it says how somebody judges.
    was = models.CharField(max_length=6, blank=True, default="", db_default="")
    number = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=6, choices=State, default=State.OPEN)
    assessor = models.ForeignKey(
        Assessor, null=True, on_delete=models.PROTECT, related_name="slots", db_index=False
    )
    token = models.UUIDField(null=True, unique=True)
    leased_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    # Copies, so that a claim reads one index: whose, which topic, in which order. The first two never change; the
    # place is that of the layout, but where a campaign judges by what it tells open slots change places.
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="slots", db_index=False)
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, db_index=False)
    position = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="judging_slot_unique", fields=["item", "purpose", "number"], condition=~Q(purpose="void")
            ),
            models.UniqueConstraint(
                name="judging_slot_distinct",
                fields=["item", "assessor"],
                condition=Q(assessor__isnull=False) & ~Q(purpose="void"),
            ),
            models.CheckConstraint(
                name="judging_slot_purpose",
                condition=Q(purpose__in=["judge", "check", "audit", "silver"])
                | Q(purpose="void", state="done"),
            ),
            models.CheckConstraint(
                name="judging_slot_was",
                condition=Q(was="") | Q(purpose="void", was__in=["judge", "check", "audit", "silver"]),
            ),
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
            # For lists by purpose, and counts by topic.
            models.Index(name="judging_slot_purposes", fields=["campaign", "purpose", "topic", "state"]),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.purpose} {self.number}"


class Lease(models.Model):
    """That a slot was given to an assessor, for ever, and when: the order of presentation, and how a late judgment
    is known. Append-only."""

    token = models.UUIDField(primary_key=True)
    slot = models.ForeignKey(Slot, on_delete=models.PROTECT, related_name="leases", db_index=False)
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="leases", db_index=False)
    leased_at = models.DateTimeField()

    class Meta:
        # An assessor's leases in order are the order of presentation.
        indexes = [models.Index(F("assessor"), F("leased_at").desc(), name="judging_lease_order")]

    def __str__(self) -> str:
        return str(self.token)


class Judgment(models.Model):
    """One assessor's grade of one item at one time. Append-only: a change of mind is a row with a higher sequence.

    `slot` is the wanted judgment it fills; without one it is surplus: kept, never counted. Without a grade it says
    why there is none (`obstacle`), and its slot goes to somebody else.
    """

    class Obstacle(models.TextChoices):
        UNREADABLE = "unreadable", _("The document cannot be read")
        LANGUAGE = "language", _("I do not understand its language")
        TOPIC = "topic", _("The topic is unclear")
        HARMFUL = "harmful", _("The content is disturbing")
        OTHER = "other", _("Another reason")
        FAILED = "failed", "The machine gave no usable answer"

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="judgments", db_index=False)
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="judgments", db_index=False)
    sequence = models.PositiveSmallIntegerField(default=1)
    grade = models.SmallIntegerField(null=True)
    obstacle = models.CharField(max_length=10, choices=Obstacle, blank=True, db_default="")
    comment = models.CharField(max_length=2000, blank=True, db_default="")
    slot = models.ForeignKey(
        Slot, null=True, on_delete=models.PROTECT, related_name="judgments", db_index=False
    )
    lease_token = models.UUIDField()
    client_token = models.UUIDField(unique=True)
    active_milliseconds = models.PositiveIntegerField(default=0)
    document_version = models.PositiveIntegerField(default=1)
    topic_version = models.IntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_judgment_unique", fields=["item", "assessor", "sequence"]),
            # A slot is won once; later rows of the same assessor revise that judgment.
            models.UniqueConstraint(
                name="judging_judgment_slot", fields=["slot"], condition=Q(sequence=1, slot__isnull=False)
            ),
            models.CheckConstraint(name="judging_judgment_sequence", condition=Q(sequence__gte=1)),
            models.CheckConstraint(
                name="judging_judgment_grade_or_obstacle",
                condition=Q(grade__isnull=False, obstacle="")
                | Q(
                    grade__isnull=True,
                    slot__isnull=True,
                    obstacle__in=["unreadable", "language", "topic", "harmful", "other", "failed"],
                ),
            ),
        ]
        indexes = [
            models.Index(F("assessor"), F("id").desc(), name="judging_judgment_history"),
            # For the manager's page; an ordinary judgment enters neither.
            models.Index(name="judging_judgment_obstacles", fields=["item"], condition=Q(grade__isnull=True)),
            models.Index(
                F("assessor"),
                F("id").desc(),
                name="judging_judgment_given_back",
                condition=Q(grade__isnull=True),
            ),
            models.Index(F("id").desc(), name="judging_judgment_comments", condition=~Q(comment="")),
            # For lists by time, of one assessor's by seconds, and by a grade that few give.
            models.Index(name="judging_judgment_times", fields=["created_at", "id"]),
            models.Index(name="judging_judgment_pace", fields=["assessor", "active_milliseconds", "id"]),
            models.Index(name="judging_judgment_grades", fields=["assessor", "grade", "id"]),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.grade if self.grade is not None else self.obstacle}"


class MachineCall(models.Model):
    """One request to a machine assessor's model, answered or not, and what it cost. Append-only."""

    class Status(models.TextChoices):
        ANSWERED = "answered"
        UNUSABLE = "unusable"  # an answer without a grade of the scale in it
        REFUSED = "refused"  # the endpoint said no: 4xx
        OVERLOADED = "overloaded"  # 429 or 5xx
        UNREACHABLE = "unreachable"  # no answer in time

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="machine_calls")
    lease_token = models.UUIDField()
    status = models.CharField(max_length=11, choices=Status)
    model = models.CharField(max_length=200)
    detail = models.TextField(blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, default=0)
    milliseconds = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="judging_machinecall_status",
                condition=Q(status__in=["answered", "unusable", "refused", "overloaded", "unreachable"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.status}"


class AdjudicationQuerySet(models.QuerySet["Adjudication"]):
    def newest(self) -> "AdjudicationQuerySet":
        """Return the newest row of each item: the word that counts."""
        later = Adjudication.objects.filter(item=models.OuterRef("item"), id__gt=models.OuterRef("id"))
        return self.filter(~models.Exists(later))

    def in_force(self) -> "AdjudicationQuerySet":
        """Return the newest row of each item unless it takes the one before back."""
        return self.newest().exclude(verdict=Adjudication.Verdict.WITHDRAWN)


class Adjudication(models.Model):
    """A manager's last word on an item's grade in the qrels, with the reason. Append-only: the newest row counts.

    It was not drawn at random, so no estimate uses it: the corrected numbers rest on audits alone.
    """

    class Verdict(models.TextChoices):
        DECIDED = "decided"  # the grade stands in the qrels
        STANDS = "stands", "let stand"  # what the judgments say is no longer in question
        WITHDRAWN = "withdrawn"  # the word before is taken back: the item is in question again

    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="adjudications")
    verdict = models.CharField(
        max_length=9, choices=Verdict, default=Verdict.DECIDED, db_default=Verdict.DECIDED
    )
    grade = models.SmallIntegerField(null=True)  # a trigger keeps it on the campaign's scale
    reason = models.CharField(max_length=2000, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    salt = models.UUIDField(null=True, editable=False, db_default=RandomUUID())  # renewed by an erasure

    objects = AdjudicationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="judging_adjudication_verdict",
                condition=Q(verdict="decided", grade__isnull=False)
                | Q(verdict__in=["stands", "withdrawn"], grade__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.verdict if self.grade is None else self.grade}"


class Message(models.Model):
    """A message between a manager and one assessor, in either direction, which no other assessor sees.

    `thread` is the message that it answers, `item` the document that was on the screen when an assessor asked.
    `read_at` says when whom it is for marked it as read; a question is read by being answered or closed.
    """

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="messages")
    is_from_assessor = models.BooleanField(default=False, db_default=False)
    thread = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="answers", db_index=False
    )
    item = models.ForeignKey(Item, null=True, on_delete=models.PROTECT, related_name="+", db_index=False)
    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    text = models.CharField(max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(name="judging_message_text", condition=~Q(text=""))]
        indexes = [
            models.Index(
                name="judging_message_open",
                fields=["assessor"],
                condition=Q(is_from_assessor=True, read_at=None),
            ),
            models.Index(name="judging_message_item", fields=["item"], condition=Q(item__isnull=False)),
            models.Index(name="judging_message_thread", fields=["thread"], condition=Q(thread__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.text[:50]
