"""Shares of relevant items: what was computed of a campaign whose judgments are all there is. Append-only."""

from django.db import models
from django.db.models import Q

from analytics.models.results import Computation, finite, method_choices


class ShareEstimate(models.Model):
    """The share of relevant items of all `n_items` items or of a topic's, by one method, or why there is none.

    `topic` is empty for all. Value and limits are within [0, 1]: where the estimate lies outside, they are cut.
    """

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="shares")
    topic = models.CharField(max_length=255, blank=True, default="")
    measure = models.CharField(max_length=40)
    method = models.CharField(max_length=20, choices=method_choices)
    n_items = models.PositiveIntegerField()
    n = models.PositiveIntegerField()  # items whose grades it rests on: audited ones, or judged ones
    value = models.FloatField(null=True)
    standard_error = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    degrees_of_freedom = models.FloatField(null=True)
    refusal = models.TextField(blank=True)
    warning = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="analytics_share_unique", fields=["computation", "topic", "method"]),
            models.CheckConstraint(
                name="analytics_share_value_or_reason",
                condition=Q(value__isnull=False, refusal="") | (Q(value__isnull=True) & ~Q(refusal="")),
            ),
            models.CheckConstraint(
                name="analytics_share_range",
                condition=Q(value__isnull=True)
                | Q(value__gte=0, value__lte=1) & (Q(low__isnull=True) | Q(low__gte=0, high__lte=1)),
            ),
            models.CheckConstraint(
                name="analytics_share_finite", condition=finite("standard_error", "degrees_of_freedom")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.measure} {self.topic or 'in all'} {self.method}"
