"""What was computed from the facts, and from which of them. Append-only: a newer computation is a new row."""

from typing import TYPE_CHECKING, Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import In

from judging.label_aggregation import DEFAULT_LABEL_SCORE
from judging.models import Assessor, Campaign, Run
from sampling.measures.registry import spellings

if TYPE_CHECKING:
    from analytics.methods import Method


def finite(*fields: str) -> Q:
    """A condition that no field holds NaN or an infinity (in PostgreSQL NaN equals itself, so `IN` finds it)."""
    condition = Q()
    for field in fields:
        condition &= Q(**{f"{field}__isnull": True}) | Q(**{f"{field}__gt": -1e300, f"{field}__lt": 1e300})
    return condition


def before_cutting(name: str) -> Coalesce:
    """Return value, low or high of estimates as it was before it was cut off at the measure's range."""
    return Coalesce(f"unbounded_{name}", name)


def within_range() -> Q:
    """A condition that no number of an estimate lies outside the range beside it; an older row has no range."""
    unknown = Q(
        range_low=None, range_high=None, unbounded_value=None, unbounded_low=None, unbounded_high=None
    )
    known = Q(range_low__isnull=False, range_high__isnull=False, value__isnull=False)
    known &= Q(range_low__gt=-1e300, range_low__lte=F("range_high"), range_high__lt=1e300)
    for field in ("value", "low", "high", "topics_low", "topics_high", "always_low", "always_high"):
        inside = Q(**{f"{field}__gte": F("range_low"), f"{field}__lte": F("range_high")})
        known &= Q(**{f"{field}__isnull": True}) | inside
    for field in ("value", "low", "high"):
        there = {f"{field}__isnull": False, f"unbounded_{field}__isnull": False}
        finite_there = Q(**there, **{f"unbounded_{field}__gt": -1e300, f"unbounded_{field}__lt": 1e300})
        known &= Q(**{field: None, f"unbounded_{field}": None}) | finite_there
    return unknown | known


class Computation(models.Model):
    """One recomputation of a campaign's numbers: which rows it saw, and when.

    It saw the judgments up to `last_judgment_id`, so many batches of draws and so many audits. `assumption` is the
    test of the papers' assumption about errors, or the reason why there is none.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="computations")
    last_judgment_id = models.BigIntegerField()
    n_batches = models.PositiveIntegerField(default=1)
    n_audits = models.PositiveIntegerField(default=0)
    bronze_score = models.CharField(max_length=40, default=DEFAULT_LABEL_SCORE)
    assumption = models.JSONField(default=dict)
    # What was done by when and whom, counted as of this computation, so that no page counts judgments: see
    # analytics/services/activity.py.
    activity = models.JSONField(default=dict)
    n_judgments = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField()
    n_audited = models.PositiveIntegerField()
    n_gold_checks = models.PositiveIntegerField()
    # The declared look whose bounds the always-valid limits are, and how many were declared; else they are a confidence
    # sequence.
    look = models.PositiveSmallIntegerField(null=True)
    n_looks = models.PositiveSmallIntegerField(null=True)
    # Every judgment that counted was of a gold judge: the corrected numbers rest on the judgments, and on no audit.
    is_by_gold_judges = models.BooleanField(default=False)
    seconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="analytics_computation_look",
                condition=Q(look=None, n_looks=None)
                | Q(look__gte=1, look__lte=F("n_looks"), n_looks__gte=2, n_looks__lte=50),
            ),
            models.CheckConstraint(
                name="analytics_computation_gold_judges",
                condition=Q(is_by_gold_judges=False) | Q(look=None, n_items__gt=0),
            ),
        ]
        indexes = [models.Index(name="analytics_computation_newest", fields=["campaign", "-id"])]

    def __str__(self) -> str:
        return f"{self.campaign} as of judgment {self.last_judgment_id}"

    @property
    def look_words(self) -> str:
        """Return which declared look this is; empty where it is none.

        >>> Computation(look=2, n_looks=5).look_words
        'declared look 2 of 5'
        """
        return f"declared look {self.look} of {self.n_looks}" if self.look else ""


class ConfusionEstimate(models.Model):
    """How an assessor or a group errs: confusion[true_grade][given_grade], rows sum to 1, null where there is no gold.

    `key` names the member of the scope: an assessor's id, a tier, a third, a period, a topic, an aggregation;
    `label` says it in words, but names nobody: see `shown_label`. `drift_p_value`: whether an assessor's error rates
    change with time.
    """

    class Scope(models.TextChoices):
        ASSESSOR = "assessor", "Assessor"
        TIER = "tier", "Tier"
        POOLED = "pooled", "All assessors"
        POPULARITY = "popularity", "By how many runs return the document"
        PERIOD = "period", "By period"
        TOPIC = "topic", "By topic"
        AGGREGATE = "aggregate", "Grades joined, against gold"

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="confusions")
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.ASSESSOR)
    key = models.CharField(max_length=100)
    label = models.CharField(max_length=200, blank=True)
    assessor = models.ForeignKey(Assessor, null=True, on_delete=models.PROTECT, related_name="confusions")
    counts = models.JSONField()
    matrix = models.JSONField()
    low = models.JSONField()
    high = models.JSONField()
    n_gold_checks = models.PositiveIntegerField()
    n_audited = models.PositiveIntegerField()
    accuracy = models.FloatField(null=True)
    accuracy_low = models.FloatField(null=True)
    accuracy_high = models.FloatField(null=True)
    drift_p_value = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="analytics_confusion_unique", fields=["computation", "scope", "key"]
            ),
            models.CheckConstraint(
                name="analytics_confusion_scope",
                condition=Q(scope="assessor", assessor__isnull=False)
                | Q(
                    scope__in=["tier", "pooled", "popularity", "period", "topic", "aggregate"],
                    assessor__isnull=True,
                ),
            ),
            models.CheckConstraint(
                name="analytics_confusion_finite",
                condition=finite("accuracy", "accuracy_low", "accuracy_high", "drift_p_value"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.label or self.key}"

    @property
    def n_labels(self) -> int:
        """Return on how many labels the counts rest; their sum is what these are worth, by chances of an audit."""
        return self.n_gold_checks + self.n_audited

    @property
    def shown_label(self) -> str:
        """Return the label; of an assessor the name of today, which no row that stays for ever holds."""
        return str(self.assessor) if self.assessor is not None else self.label


def method_choices() -> list[tuple[str, str]]:
    """Return key and label of the methods, whose libraries load only when needed."""
    from analytics.methods import choices

    return choices()


class MeasureNameField(models.CharField):  # type: ignore[type-arg]  # Django takes none when it runs
    """The name of a measure; who looks for one finds the rows that have it under an older spelling, too."""

    def deconstruct(self) -> Any:
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.CharField", arguments, options  # the column is one of text


@MeasureNameField.register_lookup
class AnySpelling(In):
    """`measure="RBP(p=0.8)@20"` also finds what was stored as RBP@20."""

    lookup_name = "exact"

    def __init__(self, column: Any, name: str) -> None:
        super().__init__(column, list(spellings(name)))


class Estimate(models.Model):
    """A measure of a run (`run_b` empty) or the difference run minus run_b, by one method, or why there is none."""

    computation = models.ForeignKey(
        Computation, on_delete=models.PROTECT, related_name="estimates", db_index=False
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    run_b = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    measure = MeasureNameField(max_length=40)
    method = models.CharField(max_length=20, choices=method_choices)
    value = models.FloatField(null=True)
    standard_error = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    p_value = models.FloatField(null=True)
    degrees_of_freedom = models.FloatField(null=True)
    # The second interval: the topics as a sample of those that could have been asked. The first is for these topics.
    topics_standard_error = models.FloatField(null=True)
    topics_low = models.FloatField(null=True)
    topics_high = models.FloatField(null=True)
    topics_refusal = models.TextField(blank=True)
    # Of the wider side: the topics, or the judging (NULL: the normal distribution). A tested difference has a p; older
    # rows have neither.
    topics_p_value = models.FloatField(null=True)
    topics_degrees_of_freedom = models.FloatField(null=True)
    # Of a run, by the tested method: its value in every topic. Differences of topics are differences of these.
    topic_values = ArrayField(models.FloatField(), null=True)
    # The third: a confidence sequence, valid at every look while judging continues, or at a declared look (the
    # computation's) bounds valid at all declared ones.
    always_low = models.FloatField(null=True)
    always_high = models.FloatField(null=True)
    # The range of the measure, at which the numbers above end, and what they were before; unknown of older rows. Means
    # and orders are made of the numbers as they were.
    range_low = models.FloatField(null=True)
    range_high = models.FloatField(null=True)
    unbounded_value = models.FloatField(null=True)
    unbounded_low = models.FloatField(null=True)
    unbounded_high = models.FloatField(null=True)
    components = models.JSONField(default=dict)  # variance by source
    n = models.PositiveIntegerField()
    # Of these, the items whose gain is above 0; of a sum, by the methods that count them.
    n_positive = models.PositiveIntegerField(null=True)
    # How much of each end of the intervals stands for documents that could not be judged, whatever they are worth;
    # empty where all could be.
    outside_low = models.FloatField(null=True)
    outside_high = models.FloatField(null=True)
    # Of a single run: how much of what it returns within the cutoff was judged, and has a gold label.
    judged_share = models.FloatField(null=True)
    gold_share = models.FloatField(null=True)
    sources = models.JSONField(default=list)
    refusal = models.TextField(blank=True)
    warning = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="analytics_estimate_unique",
                fields=["computation", "run", "run_b", "measure", "method"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="analytics_estimate_value_or_reason",
                condition=Q(value__isnull=False, refusal="") | (Q(value__isnull=True) & ~Q(refusal="")),
            ),
            models.CheckConstraint(
                name="analytics_estimate_finite",
                condition=finite(
                    "value",
                    "standard_error",
                    "low",
                    "high",
                    "p_value",
                    "degrees_of_freedom",
                    "topics_standard_error",
                    "topics_low",
                    "topics_high",
                    "always_low",
                    "always_high",
                ),
            ),
            models.CheckConstraint(name="analytics_estimate_range", condition=within_range()),
            models.CheckConstraint(
                name="analytics_estimate_topics_wider",
                condition=Q(range_low=None)
                | Q(topics_low=None)
                | Q(low__isnull=False, topics_high__isnull=False)
                & Q(topics_low__lte=F("low"), topics_high__gte=F("high")),
            ),
            models.CheckConstraint(
                name="analytics_estimate_topics_p",
                condition=Q(topics_p_value=None)
                | Q(run_b__isnull=False, p_value__isnull=False)
                & Q(topics_p_value__gte=F("p_value"), topics_p_value__lte=1),
            ),
            models.CheckConstraint(
                name="analytics_estimate_topics_freedom",
                condition=Q(topics_degrees_of_freedom=None)
                | Q(
                    topics_low__isnull=False,
                    topics_degrees_of_freedom__gt=0,
                    topics_degrees_of_freedom__lt=1e300,
                ),
            ),
            models.CheckConstraint(
                name="analytics_estimate_topic_values", condition=Q(topic_values=None) | Q(run_b=None)
            ),
            models.CheckConstraint(
                name="analytics_estimate_positive", condition=Q(n_positive=None) | Q(n_positive__lte=F("n"))
            ),
            models.CheckConstraint(
                name="analytics_estimate_outside",
                condition=Q(outside_low=None, outside_high=None)
                | Q(value__isnull=False, outside_low__isnull=False, outside_high__isnull=False)
                & Q(outside_low__gte=0, outside_high__gte=0)
                & Q(outside_low__lt=1e300, outside_high__lt=1e300),
            ),
            models.CheckConstraint(
                name="analytics_estimate_shares",
                condition=Q(judged_share=None, gold_share=None)
                | Q(run_b=None, judged_share__isnull=False, gold_share__isnull=False)
                & Q(judged_share__lte=1, gold_share__gte=0, gold_share__lte=F("judged_share")),
            ),
        ]
        # A page or an API client gets its rows at once, however many computations there are.
        indexes = [
            models.Index(name="analytics_estimate_listed", fields=["computation", "measure", "method", "id"])
        ]

    def __str__(self) -> str:
        return f"{self.run} {self.measure} {self.method}"

    def whole(self, name: str) -> float | None:
        """Return value, low or high as it was before it was cut off at the measure's range: by it runs are ordered."""
        unbounded: float | None = getattr(self, f"unbounded_{name}")
        shown: float | None = getattr(self, name)
        return shown if unbounded is None else unbounded

    @property
    def judged_words(self) -> str:
        """Return how much of what a run returns first was judged, and has a gold label; empty where unknown.

        >>> Estimate(judged_share=0.625, gold_share=0.1).judged_words
        '62 % judged, 10 % with a gold label'
        """
        if self.judged_share is None or self.gold_share is None:
            return ""
        return f"{100 * self.judged_share:.0f} % judged, {100 * self.gold_share:.0f} % with a gold label"

    @property
    def has_no_error_bar(self) -> bool:
        """Return whether nothing is known of its error: nothing was sampled, and how judges err is not measured."""
        method = self.registered_method
        return self.standard_error == 0 and not (method.is_exact or method.is_reported)

    @property
    def registered_method(self) -> "Method":
        """Return the method's entry in the registry: its words, and what it declares."""
        from analytics.methods import method_of

        return method_of(self.method)
