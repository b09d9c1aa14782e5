"""What was drawn and audited, with the probability of every item: the facts that make estimates unbiased."""

import uuid

from django.conf import settings
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import F, Q

from judging.models import Campaign, Item, Topic
from sampling.design_options import WHOLE_TOPICS, method_choices, question_choices
from sampling.gold_samples import choice_words, declaration_choices, declaration_words
from sampling.selections import Selection, selection_choices, selection_of
from sampling.strategies import DEFAULT_STRATEGY, strategy_choices

OF_CENSUS = Q(run="", against="") | Q(declaration="", look=None) & ~Q(run="") & ~Q(run=F("against"))


class Draw(models.Model):
    """One execution of a design with a seed: a batch of a campaign's items. Append-only.

    `frame` is a Parquet file: every pair that could have been drawn, with the probability that each batch so far gave
    it, its permanent random number, its fold and its prior: with the runs, all that numbers are computed from. A later
    batch keeps the seed, hence every item already drawn (sampling/frames.py).

    A foreign draw was imported with its probabilities, a complete one is a file of all there is: each of its pairs is
    certain. Either is the only batch of its campaign; its frame has the file's pairs alone, and its seed says nothing.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="draws")
    batch = models.PositiveSmallIntegerField()
    question = models.CharField(max_length=20, choices=question_choices)
    method = models.CharField(max_length=20, choices=method_choices)
    selection = models.CharField(max_length=20, choices=selection_choices)
    parameters = models.JSONField(default=dict)
    # Sizes that were learned from judgments: from those of this many batches. All later ones must learn from the same.
    learned_from = models.PositiveSmallIntegerField(null=True)
    seed = models.BigIntegerField()
    frame = models.FileField(upload_to="frames/", max_length=300)
    frame_sha256 = models.CharField(max_length=64)
    n_frame = models.PositiveIntegerField()
    n_drawn = models.PositiveIntegerField()  # items that no earlier batch had drawn
    drawn_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["campaign", "batch"]
        constraints = [
            models.UniqueConstraint(name="sampling_draw_unique", fields=["campaign", "batch"]),
            models.CheckConstraint(name="sampling_draw_batch", condition=Q(batch__gte=1)),
            models.CheckConstraint(
                name="sampling_draw_question",
                condition=Q(question__in=["pair", "system", "baseline", "ranking", "pool", "foreign"]),
            ),
            models.CheckConstraint(
                name="sampling_draw_method", condition=Q(method__in=["default", "paper", "naive", "foreign"])
            ),
            models.CheckConstraint(
                name="sampling_draw_foreign",
                condition=Q(
                    question="foreign", method="foreign", selection__in=["foreign", "complete"], batch=1
                )
                | ~(Q(question="foreign") | Q(method="foreign") | Q(selection__in=["foreign", "complete"])),
            ),
            models.CheckConstraint(
                name="sampling_draw_learned_from",
                condition=Q(learned_from__isnull=True)
                | Q(learned_from__gte=1, learned_from__lt=F("batch"), selection="poisson"),
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.batch} of {self.campaign_id}"

    @property
    def selection_kind(self) -> Selection:
        """Return how it was drawn."""
        return selection_of(self.selection)

    @property
    def is_refitted(self) -> bool:
        """Return whether predictions learn from a batch that learned, once it is judged. Older draws do not say."""
        return self.learned_from is not None and self.parameters.get("learning") == "refit"

    @property
    def has_whole_topics(self) -> bool:
        """Return whether topics were drawn, each to be judged completely."""
        return bool(self.parameters.get("topic_selection") == WHOLE_TOPICS)


class DrawEntry(models.Model):
    """An item that some batch has drawn, and the probability that one batch gave it: estimates need every batch's."""

    draw = models.ForeignKey(Draw, on_delete=models.PROTECT, related_name="entries")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="draw_entries")
    inclusion_probability = models.FloatField()
    times = models.PositiveIntegerField()  # 0: another batch drew it; above 1: drawn again, with replacement

    class Meta:
        constraints = [
            models.UniqueConstraint(name="sampling_drawentry_unique", fields=["draw", "item"]),
            models.CheckConstraint(
                name="sampling_drawentry_probability",
                condition=Q(inclusion_probability__gt=0, inclusion_probability__lte=1)
                | Q(inclusion_probability=0, times=0),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.inclusion_probability}"


class AuditTier(models.TextChoices):
    GOLD = "gold", "Gold tier: the standard that numbers are corrected to"
    SILVER = "silver", "Silver tier: a second opinion, for agreement between tiers"


class GoldFit(models.TextChoices):
    """Whose gold predictions learn from once an audit has learned: `analytics.estimation.gold_prediction`."""

    REFIT = "refit", "Refit: predictions learn from all complete audits"
    EXACT = "exact", "Exact: predictions learn from the audits before the first that learned"


class AuditSchedule(models.Model):
    """Audit so many judged items every so often, until the planned number is reached."""

    campaign = models.OneToOneField(Campaign, on_delete=models.PROTECT, related_name="audit_schedule")
    every_seconds = models.PositiveIntegerField(default=86400)
    crontab = models.CharField(max_length=60, blank=True)  # in its five fields; goes before seconds
    strategy = models.CharField(max_length=40, choices=strategy_choices, default=DEFAULT_STRATEGY)
    tier = models.CharField(max_length=6, choices=AuditTier, default=AuditTier.GOLD)
    gold_fit = models.CharField(max_length=5, choices=GoldFit, default=GoldFit.REFIT)
    measure = models.CharField(max_length=40, default="", blank=True)  # empty: that of the newest draw
    items_each_time = models.PositiveIntegerField(default=50)
    items_in_total = models.PositiveIntegerField(default=200)
    # Complete gold audits declared as looks before the first one is drawn; a trigger keeps it from then on.
    n_looks = models.PositiveSmallIntegerField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    starts_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="sampling_auditschedule_looks",
                condition=Q(n_looks__isnull=True) | Q(n_looks__gte=2, n_looks__lte=50, tier="gold"),
                violation_error_message="Declared looks are 2 to 50 audits of the gold tier.",
            ),
            models.CheckConstraint(
                name="sampling_auditschedule_sizes",
                condition=Q(every_seconds__gte=1, items_each_time__gte=1, items_in_total__gte=1),
                violation_error_message="Seconds, items each time and items in total are at least 1.",
            ),
            models.CheckConstraint(
                name="sampling_auditschedule_tier", condition=Q(tier__in=AuditTier.values)
            ),
            models.CheckConstraint(
                name="sampling_auditschedule_gold_fit", condition=Q(gold_fit__in=GoldFit.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.items_each_time} every {self.every_seconds} s"


class Audit(models.Model):
    """A random sample of judged items for a higher tier. Append-only.

    An item has one permanent random number for a tier's audits, and an audit selects it where that is below its
    probability there: their union selects with the largest of them. `expected_in_total` counts the tier's items so far.
    A declared look has its number, and the sizes from which its interval follows: how many items audits were to select
    in all, and how many were drawn, when it was made (analytics/estimation/group_sequential.py).

    An audit by a strategy that learns has `learned_from`: to how many complete audits of the gold tier its sizes were
    fitted, 0 while these had too little gold. `gold_fit` is what the campaign's predictions of gold learn from once
    there is an audit that learned; all later ones keep it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="audits")
    sequence = models.PositiveIntegerField()
    strategy = models.CharField(max_length=40, choices=strategy_choices, default=DEFAULT_STRATEGY)
    tier = models.CharField(max_length=6, choices=AuditTier, default=AuditTier.GOLD)
    seed = models.BigIntegerField()
    expected_in_total = models.FloatField()
    n_eligible = models.PositiveIntegerField()
    n_selected = models.PositiveIntegerField()
    look = models.PositiveSmallIntegerField(null=True)
    n_looks = models.PositiveSmallIntegerField(null=True)
    n_planned = models.PositiveIntegerField(null=True)
    n_drawn = models.PositiveIntegerField(null=True)
    gold_fit = models.CharField(max_length=5, choices=GoldFit, default="", blank=True)
    measure = models.CharField(max_length=40, default="", blank=True)  # empty: not recorded
    learned_from = models.PositiveIntegerField(null=True)
    run = models.CharField(max_length=200, default="", db_default="", blank=True)
    against = models.CharField(max_length=200, default="", db_default="", blank=True)
    declaration = models.CharField(max_length=16, blank=True, default="", choices=declaration_choices)
    choice_p_value = models.FloatField(null=True)  # of a test of what is declared of imported gold
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(
                name="sampling_audit_one_declaration", fields=["campaign"], condition=~Q(declaration="")
            ),
            models.CheckConstraint(
                name="sampling_audit_declaration",
                condition=Q(declaration="", choice_p_value=None)
                | Q(declaration="probabilities", choice_p_value=None, tier="gold", look=None)
                | Q(declaration__in=["uniform", "by-topic"], tier="gold", look=None)
                & (Q(choice_p_value=None) | Q(choice_p_value__gte=0, choice_p_value__lte=1)),
            ),
            models.CheckConstraint(
                name="sampling_audit_measure", condition=Q(declaration="") | Q(measure="")
            ),
            models.UniqueConstraint(name="sampling_audit_unique", fields=["campaign", "sequence"]),
            models.UniqueConstraint(name="sampling_audit_one_look", fields=["campaign", "look"]),
            models.CheckConstraint(
                name="sampling_audit_look",
                condition=Q(look=None, n_looks=None, n_planned=None, n_drawn=None)
                | Q(
                    look__gte=1,
                    look__lte=F("n_looks"),
                    n_looks__gte=2,
                    n_looks__lte=50,
                    n_planned__gte=1,
                    n_drawn__gte=1,
                    tier="gold",
                ),
            ),
            models.CheckConstraint(name="sampling_audit_runs", condition=OF_CENSUS),
            models.CheckConstraint(name="sampling_audit_tier", condition=Q(tier__in=AuditTier.values)),
            models.CheckConstraint(
                name="sampling_audit_learned",
                condition=Q(gold_fit="", learned_from=None)
                | Q(
                    gold_fit__in=GoldFit.values,
                    learned_from__isnull=False,
                    learned_from__gte=0,
                    learned_from__lt=F("sequence"),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"audit {self.sequence}"

    @property
    def declaration_said(self) -> str:
        """Return what declared gold assumes, and what a test of it says, in sentences; empty of a drawn audit."""
        if not self.declaration:
            return ""
        sentence = f"{self.assumption[:1].upper()}{self.assumption[1:]}. "
        return (sentence + choice_words(self.declaration, self.choice_p_value)).strip()

    @property
    def assumption(self) -> str:
        """Return what numbers made with declared gold assume; empty of an audit that was drawn here."""
        return declaration_words(self.declaration, self.n_selected, self.n_eligible)


class AuditEntry(models.Model):
    """An eligible item of an audit: its probability there, and whether it was selected."""

    audit = models.ForeignKey(Audit, on_delete=models.PROTECT, related_name="entries")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="audit_entries")
    inclusion_probability = models.FloatField()
    selected = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="sampling_auditentry_unique", fields=["audit", "item"]),
            models.CheckConstraint(
                name="sampling_auditentry_probability",
                condition=Q(inclusion_probability__gt=0, inclusion_probability__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.inclusion_probability}"


class TopicCheckPlan(models.Model):
    """How many topics a manager checks, and how many bad ones they accept: an acceptance sample. Append-only.

    `sampling/acceptance.py` gives `n_checks` and `most_bad` from the limits and the risks. The topics come in the order
    of their permanent random numbers from the seed, so anyone can draw them again.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="topic_check_plans")
    sequence = models.PositiveIntegerField()
    n_topics = models.PositiveIntegerField()
    n_bad_good = models.PositiveIntegerField()  # D0: rejected with probability alpha at most
    n_bad_limit = models.PositiveIntegerField()  # D1: accepted with probability beta at most
    alpha = models.FloatField()
    beta = models.FloatField()
    n_checks = models.PositiveIntegerField()
    most_bad = models.PositiveIntegerField()
    producer_risk = models.FloatField()
    consumer_risk = models.FloatField()
    seed = models.BigIntegerField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(name="sampling_topiccheckplan_unique", fields=["campaign", "sequence"]),
            models.CheckConstraint(
                name="sampling_topiccheckplan_limits",
                condition=Q(n_bad_good__lt=F("n_bad_limit"), n_bad_limit__lte=F("n_topics")),
            ),
            models.CheckConstraint(
                name="sampling_topiccheckplan_checks",
                condition=Q(n_checks__gte=1, n_checks__lte=F("n_topics"), most_bad__lt=F("n_checks")),
            ),
            models.CheckConstraint(
                name="sampling_topiccheckplan_risks",
                condition=Q(alpha__gt=0, alpha__lt=1, beta__gt=0, beta__lt=1),
            ),
        ]

    def __str__(self) -> str:
        return f"topic checks {self.sequence}"


class JudgingLook(models.Model):
    """What the model said when the order of judging was written: in a campaign that judges by what it tells.

    Append-only. Its probabilities are the model's, and were looked at as often as there are rows. Before the first
    look `pairs` is empty. `scores` and `pairs` name runs by their id: expected MAP by run, and of neighbours the better
    one, the other and the probability that it is better.
    """

    campaign = models.ForeignKey(
        Campaign, on_delete=models.PROTECT, related_name="judging_looks", db_index=False
    )
    n_judged = models.PositiveIntegerField()  # documents of the pool
    n_pooled = models.PositiveIntegerField()
    n_work = models.PositiveIntegerField()  # what the campaign's assessors had done, when judgments were read
    last_judgment_id = models.BigIntegerField()
    n_batches = models.PositiveSmallIntegerField()
    n_topics = models.PositiveIntegerField()  # laid out so far
    n_moved = models.PositiveIntegerField()  # slots that exchanged places
    scores = models.JSONField()
    pairs = models.JSONField()
    may_stop = models.BooleanField()
    seconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="sampling_judginglook_part", condition=Q(n_judged__lte=F("n_pooled")))
        ]
        indexes = [models.Index("campaign", F("id").desc(), name="sampling_judginglook_newest")]

    def __str__(self) -> str:
        return f"after {self.n_judged} judgments"


class TopicCheck(models.Model):
    """A topic that was drawn to be checked, in the order of checking. Append-only.

    At most one of a topic in a plan, and (a trigger) no more than the plan has, of topics of its collection.
    """

    plan = models.ForeignKey(TopicCheckPlan, on_delete=models.PROTECT, related_name="checks")
    sequence = models.PositiveIntegerField()
    topic = models.ForeignKey(Topic, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(name="sampling_topiccheck_topic", fields=["plan", "topic"]),
            models.UniqueConstraint(name="sampling_topiccheck_sequence", fields=["plan", "sequence"]),
            models.CheckConstraint(name="sampling_topiccheck_first", condition=Q(sequence__gte=1)),
        ]

    def __str__(self) -> str:
        return f"check {self.sequence}"


class TopicFinding(models.Model):
    """What a check found: whether the topic's judgments are bad, and why. Append-only, one of each check."""

    topic_check = models.OneToOneField(TopicCheck, on_delete=models.PROTECT, related_name="finding")
    is_bad = models.BooleanField()
    reason = models.CharField(max_length=2000, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    created_at = models.DateTimeField(auto_now_add=True)
    salt = models.UUIDField(null=True, editable=False, db_default=RandomUUID())  # renewed by an erasure

    def __str__(self) -> str:
        return "bad" if self.is_bad else "good"
