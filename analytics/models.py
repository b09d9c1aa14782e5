"""What was computed from the facts, and from which of them. Append-only: a newer computation is a new row."""

from django.db import models
from django.db.models import Q

from judging.models import Assessor, Campaign, Run


def finite(*fields: str) -> Q:
    """A condition that no field holds NaN or an infinity (in PostgreSQL NaN equals itself, so `IN` finds it)."""
    condition = Q()
    for field in fields:
        condition &= Q(**{f"{field}__isnull": True}) | Q(**{f"{field}__gt": -1e300, f"{field}__lt": 1e300})
    return condition


class Computation(models.Model):
    """One recomputation of a campaign's numbers: what it saw, and when."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="computations")
    last_judgment_id = models.BigIntegerField()
    n_judgments = models.PositiveIntegerField()
    n_items = models.PositiveIntegerField()
    n_audited = models.PositiveIntegerField()
    n_gold_checks = models.PositiveIntegerField()
    seconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(name="analytics_computation_newest", fields=["campaign", "-id"])]

    def __str__(self) -> str:
        return f"{self.campaign} as of judgment {self.last_judgment_id}"


class ConfusionEstimate(models.Model):
    """How one assessor errs: confusion[true_grade][given_grade], rows sum to 1, null where there is no gold."""

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="confusions")
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="confusions")
    counts = models.JSONField()
    matrix = models.JSONField()
    low = models.JSONField()
    high = models.JSONField()
    n_gold_checks = models.PositiveIntegerField()
    n_audited = models.PositiveIntegerField()
    accuracy = models.FloatField(null=True)
    accuracy_low = models.FloatField(null=True)
    accuracy_high = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="analytics_confusion_unique", fields=["computation", "assessor"]),
            models.CheckConstraint(
                name="analytics_confusion_finite",
                condition=finite("accuracy", "accuracy_low", "accuracy_high"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assessor}"


class Method(models.TextChoices):
    NAIVE = "naive", "Naive (grades as given)"
    CORRECTED = "corrected", "Corrected by the audit"
    MATRIX_INVERSE = "matrix-inverse", "Matrix inverse (the papers' method)"
    IMPORTANCE = "importance", "Importance sampling (the paper's Eq 3 to 6)"
    TRUE = "true", "True value (all gold known)"


class Estimate(models.Model):
    """A measure of a run (`run_b` empty) or the difference run minus run_b, by one method, or why there is none."""

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="estimates")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="+")
    run_b = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    measure = models.CharField(max_length=40)
    method = models.CharField(max_length=20, choices=Method)
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
    n = models.PositiveIntegerField()
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
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run} {self.measure} {self.method}"


class Flag(models.Model):
    """Evidence against an assessor, for the manager to look at. It suspends nobody by itself."""

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="flags")
    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="flags")
    evidence = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="analytics_flag_unique", fields=["assessor", "computation"])
        ]

    def __str__(self) -> str:
        return f"{self.assessor}: {self.evidence}"
