"""What a comparison assumes, and which comparisons belong together, as people stated it. Append-only."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from judging.models import Campaign


class JudgingConditions(models.Model):
    """What no data can tell and every comparison assumes, as the manager answered it. A new answer is a new row."""

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="judging_conditions")
    same_judges = models.BooleanField()
    same_period = models.BooleanField()
    blind_to_system = models.BooleanField()
    answered_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    answered_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.campaign}: {self.same_judges} {self.same_period} {self.blind_to_system}"


class ComparisonFamily(models.Model):
    """The comparisons among which p-values are adjusted, as somebody declared them. A new declaration is a new row.

    `name` is one of `analytics.estimation.claims`; `runs` are those that it takes in, as they were when it was
    declared: a later run joins no family. A baseline is compared with each of them; without one they are with one
    another.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="comparison_families")
    name = models.TextField()
    runs = models.JSONField()
    baseline = models.CharField(max_length=200, blank=True)
    declared_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT)
    declared_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="analytics_comparisonfamily_name",
                condition=Q(name__in=["question", "all"])
                | Q(name__startswith="runs:", baseline="")
                | (Q(name__startswith="baseline:") & ~Q(baseline="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.campaign}: {self.name}"
