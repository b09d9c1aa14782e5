"""Who judges, on which scale, under which rules: scales, campaigns, assessors."""

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from judging.check_grades import AT_MOST, IN_TURN, check_grades_choices
from judging.judging_orders import RANDOM_ORDER, judging_order_choices
from judging.kinds import DEFAULT_KIND, kind_choices
from judging.label_aggregation import DEFAULT_LABEL_SCORE, label_score_choices
from judging.models.collections import Collection, Topic
from touchstone.models import User


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


class CampaignQuerySet(models.QuerySet["Campaign"]):
    def visible_to(self, user: User) -> "CampaignQuerySet":
        """Return what a manager or researcher may see: not deleted, of a collection that they may see."""
        return self.filter(deleted_at=None, collection__in=Collection.objects.visible_to(user))


class Campaign(models.Model):
    """One effort to judge (topic, document) pairs of a collection."""

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        CLOSED = "closed"

    class Entry(models.TextChoices):
        CLOSED = "closed", "By invitation only"
        HIT = "hit", "Crowd market with external questions (HIT)"
        STUDY = "study", "Crowd market with study links"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="campaigns")
    scale = models.ForeignKey(Scale, on_delete=models.PROTECT)
    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=40, choices=kind_choices, default=DEFAULT_KIND
    )  # what assessors are shown
    guidelines = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    judgments_per_item = models.PositiveSmallIntegerField(default=1)
    judging_order = models.CharField(
        max_length=12, choices=judging_order_choices, default=RANDOM_ORDER, db_default=RANDOM_ORDER
    )
    lease_seconds = models.PositiveIntegerField(default=1800)
    gold_check_rate = models.FloatField(default=0.1)
    # At most so often is one gold check shown in all; more than k of them are hidden among repeated decoys.
    gold_check_exposures = models.PositiveSmallIntegerField(default=20)
    decoys_per_check = models.PositiveSmallIntegerField(default=1)
    # Campaigns from before this could be chosen go on taking the grades in turn.
    check_grades = models.CharField(
        max_length=10, choices=check_grades_choices, default=AT_MOST.key, db_default=IN_TURN.key
    )
    highlights_terms = models.BooleanField(default=True)
    break_minutes = models.PositiveSmallIntegerField(default=45)  # 0: nobody is reminded
    consent = models.TextField(blank=True)  # Markdown; empty: nobody is asked
    training_attempts = models.PositiveSmallIntegerField(default=2)
    training_pass_share = models.FloatField(default=0.7)
    # How strangers come in: not at all (then by invitation only), as workers of a HIT, as participants of a study.
    entry = models.CharField(max_length=6, choices=Entry, default=Entry.CLOSED)
    entry_key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    judgments_per_participant = models.PositiveIntegerField(default=20)
    market_origin = models.CharField(
        max_length=200, blank=True
    )  # the only sites a HIT is shown in and submitted to
    completion_code = models.CharField(max_length=60, blank=True)
    completion_url = models.URLField(blank=True)
    machine_prompt = models.TextField(blank=True)
    # What the audit's classes are made of: it decides how narrow the corrected interval is, never whether it is right.
    bronze_score = models.CharField(max_length=40, choices=label_score_choices, default=DEFAULT_LABEL_SCORE)
    # What a judgment costs, in any one unit; empty: unknown. They decide what the planner says, nothing else.
    cost_per_judgment = models.FloatField(null=True, blank=True)
    cost_per_gold = models.FloatField(null=True, blank=True)
    # Adjusted p of a flag below which its assessor is paused without anybody being asked; empty: nobody ever is.
    pause_below = models.FloatField(null=True, blank=True)
    # Programs gave its judgments, in the demo or by `simulate_assessors`, and every screen says so.
    is_simulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # hidden and closed; never removed

    objects = CampaignQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="judging_campaign_state", condition=Q(state__in=["draft", "open", "closed"])
            ),
            models.CheckConstraint(
                name="judging_campaign_deleted_is_closed",
                condition=Q(deleted_at__isnull=True) | ~Q(state="open"),
            ),
            models.CheckConstraint(
                name="judging_campaign_costs",
                condition=(
                    Q(cost_per_judgment__isnull=True) | Q(cost_per_judgment__gt=0, cost_per_judgment__lt=1e9)
                )
                & (Q(cost_per_gold__isnull=True) | Q(cost_per_gold__gt=0, cost_per_gold__lt=1e9)),
                violation_error_message="A judgment costs more than 0.",
            ),
            models.CheckConstraint(
                name="judging_campaign_pause",
                condition=Q(pause_below__isnull=True) | Q(pause_below__gt=0, pause_below__lte=0.1),
                violation_error_message="The adjusted p is above 0 and at most 0.1: above it there is no flag.",
            ),
            models.UniqueConstraint(
                name="judging_campaign_name",
                fields=["name"],
                condition=Q(deleted_at__isnull=True),
                violation_error_message="This name is already taken.",
            ),
            models.CheckConstraint(
                name="judging_campaign_k",
                condition=Q(judgments_per_item__gte=1, judgments_per_item__lte=20),
                violation_error_message="An item takes 1 to 20 judgments.",
            ),
            models.CheckConstraint(
                name="judging_campaign_order",
                condition=Q(judging_order="random") | Q(judging_order="informative", judgments_per_item=1),
                violation_error_message="In the order “By what it tells” an item takes 1 judgment.",
            ),
            models.CheckConstraint(
                name="judging_campaign_lease",
                condition=Q(lease_seconds__gte=1, lease_seconds__lte=86400),
                violation_error_message="An item is kept for 1 second to 1 day (86,400 seconds).",
            ),
            models.CheckConstraint(
                name="judging_campaign_gold_rate",
                condition=Q(gold_check_rate__gte=0, gold_check_rate__lte=0.5),
                violation_error_message="The share of gold checks is 0 to 0.5.",
            ),
            models.CheckConstraint(
                name="judging_campaign_gold_exposures",
                condition=Q(gold_check_exposures__gte=1, gold_check_exposures__lte=100),
                violation_error_message="A gold check is shown 1 to 100 times in all.",
            ),
            models.CheckConstraint(
                name="judging_campaign_decoys",
                condition=Q(decoys_per_check__gte=0, decoys_per_check__lte=5),
                violation_error_message="A repeated check is hidden among 0 to 5 decoys.",
            ),
            models.CheckConstraint(
                name="judging_campaign_check_grades",
                condition=Q(check_grades__in=["in-turn", "as-drawn", "at-most"]),
            ),
            models.CheckConstraint(
                name="judging_campaign_training",
                condition=Q(
                    training_pass_share__gte=0,
                    training_pass_share__lte=1,
                    training_attempts__gte=1,
                    training_attempts__lte=10,
                ),
                violation_error_message="Training is passed with a share of 0 to 1, in 1 to 10 attempts.",
            ),
            models.CheckConstraint(
                name="judging_campaign_entry", condition=Q(entry__in=["closed", "hit", "study"])
            ),
            models.CheckConstraint(
                name="judging_campaign_market",
                condition=~Q(entry="hit", market_origin="") & ~Q(entry="study", completion_code=""),
            ),
            models.CheckConstraint(
                name="judging_campaign_participants", condition=Q(judgments_per_participant__gte=1)
            ),
            models.CheckConstraint(
                name="judging_campaign_completion_url",
                condition=Q(completion_url="") | Q(completion_url__startswith="https://"),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_random_order(self) -> bool:
        """Return whether items are judged in random order, so that what is judged so far is a random part."""
        return self.judging_order == RANDOM_ORDER


class CampaignTopic(models.Model):
    """How a campaign treats a topic: which team alone may judge it, and the share of gold checks it can hide."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="topic_rules")
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="+")
    team = models.CharField(max_length=60, blank=True)  # empty: everybody
    check_rate = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_campaigntopic_unique", fields=["campaign", "topic"]),
            models.CheckConstraint(
                name="judging_campaigntopic_check_rate", condition=Q(check_rate__gte=0, check_rate__lte=0.5)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.team}"


class AssessorQuerySet(models.QuerySet["Assessor"]):
    def open_to(self, user: Any) -> "AssessorQuerySet":
        """Return the user's assessors that can judge now: active, in an open campaign."""
        return self.filter(user=user, status=Assessor.Status.ACTIVE, campaign__state=Campaign.State.OPEN)

    def judges(self) -> "AssessorQuerySet":
        """Return those who are given the drawn items: gold assessors only in a campaign without other tiers."""
        others = Assessor.objects.filter(campaign=models.OuterRef("campaign")).exclude(
            tier=Assessor.Tier.GOLD
        )
        return self.filter(~Q(tier=Assessor.Tier.GOLD) | ~models.Exists(others))


class Assessor(models.Model):
    """Whoever judges in a campaign, human or machine, with the trust they have there."""

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
    # Of a machine, kept by triggers where a judgment and a request are stored: of n_judged those without a usable
    # answer, its requests, and what they cost.
    n_failed = models.PositiveIntegerField(default=0, db_default=0)
    n_requests = models.PositiveIntegerField(default=0, db_default=0)
    requests_cost = models.DecimalField(max_digits=16, decimal_places=8, default=0, db_default=0)
    quota = models.PositiveIntegerField(null=True, blank=True)  # no more judgments than this; None: no limit
    team = models.CharField(max_length=60, blank=True)
    first_topics = models.ManyToManyField(Topic, related_name="+", blank=True)  # given before all others
    consented_at = models.DateTimeField(null=True, blank=True)
    trained_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

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
